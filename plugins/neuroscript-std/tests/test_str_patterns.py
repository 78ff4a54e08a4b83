"""Regular expressions: matches, refusals, and bounded run time."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from neuroscript import ArgumentError, CallError, Engine

BAD = "invalid pattern"
COSTLY = "pattern too costly"
LARGE = "it is too complex for a string of this length; use a simpler pattern, smaller counts or a shorter string"
MANY = "it has too many matches or searching takes too long; search a shorter string"

STATED = 10.0
"""Seconds that any call may take: five for further matches, the rest for the last one, on two busy cores."""

NOTICEABLE = 0.1
"""Seconds of a call from which on it is fair to ask what other threads did meanwhile."""

SHARE = 0.1
"""The part of its idle speed at which another thread goes on at least."""

A = "a" * 100_000
MIXED = "".join(random.Random(1).choices("ab", k=40_000))

HOSTILE: list[tuple[str, str, tuple[str, ...], Any]] = [
    ("nested plus", "matchregex", (r"(a+)+$", f"{A}!"), False),
    ("nested plus from the start", "matchregex", (r"^(a+)+$", f"{A}!"), False),
    ("nested star", "matchregex", (r"(a*)*$", f"{A}!"), True),
    ("empty loops", "matchregex", (r"^((((a*)*)*)*)*$", f"{A}!"), False),
    ("equal alternatives", "matchregex", (r"^(a|a)*$", f"{A}!"), False),
    ("overlapping alternatives", "matchregex", (r"^(a|aa)+$", f"{A}!"), False),
    ("optional letter in a loop", "matchregex", (r"^(a|a?)+$", f"{A}!"), False),
    ("anything in a loop", "matchregex", (r"(.*)*x", A), False),
    ("two runs of one letter", "matchregex", (r"(x+x+)+y", "x" * 100_000), False),
    ("many runs of one letter", "matchregex", (r"a*a*a*a*a*a*a*a*a*b", A), False),
    ("many runs of anything", "matchregex", (r".*.*.*.*.*.*=.*", A), False),
    ("letters in a loop", "matchregex", (r"^([a-zA-Z]+)*$", f"{A}!"), False),
    ("words in a loop", "matchregex", (r"^(\w+\s?)*$", "word " * 20_000 + "!"), False),
    ("any case", "matchregex", (r"(?i)^(a+)+$", "aA" * 50_000 + "!"), False),
    ("letters of other scripts", "matchregex", (r"^(\p{L}+\p{N}*)+$", "é" * 50_000 + "!"), False),
    ("repeated prefix", "matchregex", (r"^(.*a){20}$", f"{A}b"), False),
    ("huge counts in each other", "matchregex", (r"(a{1,1000}){1,1000}", A), "str.bad_pattern"),
    ("counts three deep", "matchregex", (r"((a{1,30}){1,30}){1,30}b", A), "str.bad_pattern"),
    ("counts within the limit", "matchregex", (r"((a{1,8}){1,8}){1,8}b", A), False),
    ("large counts of anything", "matchregex", (r"[\s\S]{1,1000}[\s\S]{1,1000}x", A), "str.pattern_too_costly"),
    ("large counts of letters", "matchregex", (r"\pL{500}!", "é" * 50_000), "str.pattern_too_costly"),
    ("optional letters", "matchregex", (r"^(a?){500}a{500}$", f"{A}!"), False),
    ("a mark far behind", "matchregex", (r"[ab]*a[ab]{900}($|c)c", MIXED), False),
    ("a mark far behind two letters", "matchregex", (r"(a[ab]{500}|b[ab]{400})c?$c", MIXED), False),
    ("a mark far behind, in groups", "replaceregex", (r"([ab]*a[ab]{300})(c)$", MIXED, "$1"), MIXED),
    ("many groups", "replaceregex", ("(a)?" * 200 + "b", A, "$1"), "str.pattern_too_costly"),
    ("many unused groups", "findallregex", ("(a)?" * 200 + "b", A), []),
    ("trailing blanks", "matchregex", (r"\s+$", " " * 99_999 + "x"), False),
    ("trailing blanks replaced", "replaceregex", (r"\s+$", " " * 99_999 + "x", ""), " " * 99_999 + "x"),
    ("commas and blanks", "matchregex", (r"^(?:\s*,)*\s*$", " " * 99_999 + "x"), False),
    ("quoted text", "findallregex", (r'"([^"\\]|\\.)*"', '"' + r"\a" * 50_000), []),
    ("comment of HTML", "findallregex", (r"<!--(?:-?[^>-])*(?:--)*>", "<!--" + "-a" * 50_000), []),
    ("number with groups", "matchregex", (r"^\d+(,\d+)*(\.\d+)*[eE]?(\d+)*$", "1" * 100_000 + "x"), False),
    ("name of a class", "matchregex", (r"^(([a-z])+.)+[A-Z]([a-z])+$", A), False),
    (
        "mail address",
        "matchregex",
        (r"^([a-zA-Z0-9_.\-])+@(([a-zA-Z0-9\-])+\.)+([a-zA-Z0-9]{2,4})+$", "a@" + "a." * 50_000 + "!"),
        False,
    ),
    (
        "mail address of a form",
        "matchregex",
        (r"^([0-9a-zA-Z]([-.\w]*[0-9a-zA-Z])*@(([0-9a-zA-Z])+([-\w]*[0-9a-zA-Z])*\.)+[a-zA-Z]{2,9})$", f"{A}!"),
        False,
    ),
    (
        "URL",
        "matchregex",
        (r"^(https?://)?([\da-z.-]+)\.([a-z.]{2,6})([/\w .-]*)*/?$", "http://" + "a." * 50_000 + "!"),
        False,
    ),
    (
        "URL in a string",
        "findallregex",
        (
            r"(?i)\b(?:https?://|www\d{0,3}[.])(?:[^\s()<>]+|\(([^\s()<>]+|(\([^\s()<>]+\)))*\))+",
            "www." + "(" * 100_000,
        ),
        [],
    ),
    ("look-ahead", "matchregex", (r"^(?=(a+)+$)", f"{A}!"), "str.bad_pattern"),
    ("back-reference", "matchregex", (r"(a*)*\1b", A), "str.bad_pattern"),
    ("a search to the end from every place", "findallregex", (r"a*b|a", A), "str.pattern_too_costly"),
]


class Counter:
    """A thread that counts as fast as it can."""

    def __init__(self) -> None:
        self.count = 0
        self._counts = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Counter:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._counts = False
        self._thread.join()

    def _run(self) -> None:
        while self._counts:
            self.count += 1


@pytest.fixture(scope="module")
def idle_speed() -> float:
    """How far a thread counts in a second on an idle process."""
    with Counter() as counter:
        before, started = counter.count, time.perf_counter()
        time.sleep(0.3)
        return (counter.count - before) / (time.perf_counter() - started)


def outcome(engine: Engine, name: str, args: tuple[str, ...]) -> Any:
    """Return the result of a call, or its error code."""
    try:
        return engine.call(name, args)
    except CallError as error:
        assert error.retry == "model"
        return error.code


@pytest.mark.alone
@pytest.mark.parametrize(("name", "args", "expected"), [pytest.param(*case[1:], id=case[0]) for case in HOSTILE])
def test_hostile_pattern_is_bounded_and_releases_the_gil(
    engine: Engine, idle_speed: float, name: str, args: tuple[str, ...], expected: Any
) -> None:
    """It gives its result or is refused in the stated time, while another thread keeps counting."""
    with Counter() as counter:
        before, started = counter.count, time.perf_counter()
        result = outcome(engine, f"str.{name}", args)
        seconds, counted = time.perf_counter() - started, counter.count - before

    assert expected == result
    assert seconds < STATED
    assert seconds < NOTICEABLE or counted > SHARE * idle_speed * seconds


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[", "unclosed ["),
        ("(", "unclosed ("),
        ("a)", "unmatched )"),
        ("a\\", "trailing backslash"),
        ("*", "nothing to repeat before *, +, ? or {}"),
        ("a**", "two repetitions in a row; put the first one in ()"),
        ("a{1001}", "a repetition count must be ascending and at most 1,000, nested counts multiplied"),
        ("a{2,1}", "a repetition count must be ascending and at most 1,000, nested counts multiplied"),
        ("(a{500}){3}", "a repetition count must be ascending and at most 1,000, nested counts multiplied"),
        (r"(a)\1", "unknown escape sequence; backreferences are not supported"),
        (r"a\Z", "unknown escape sequence; backreferences are not supported"),
        ("[b-a]", "invalid range or unknown class name in []"),
        (r"\p{Nothing}", "invalid range or unknown class name in []"),
        ("(?P<1 >a)", "a group name must be letters, digits and _, in <>"),
        ("(?=a)", "unknown group syntax; lookaround and atomic groups are not supported"),
        ("(?<!a)b", "unknown group syntax; lookaround and atomic groups are not supported"),
        ("(?>a)", "unknown group syntax; lookaround and atomic groups are not supported"),
    ],
)
@pytest.mark.parametrize("name", ["matchregex", "findallregex", "replaceregex"])
def test_invalid_pattern_is_explained(
    error_of: Callable[..., tuple[str, str, str]], name: str, pattern: str, why: str
) -> None:
    """By every tool in the same way, without quoting the pattern."""
    args = (pattern, "text", "x")[: 3 if name == "replaceregex" else 2]

    assert (f"str.{name}: {BAD}: {why}", "str.bad_pattern", "model") == error_of(f"str.{name}", *args)


@pytest.mark.parametrize(
    ("name", "args", "why"),
    [
        ("matchregex", (".{1,900}x", A * 5), LARGE),
        ("matchregex", (r"\pL{500}", "a"), "it is too large with its repetition counts expanded; use smaller counts"),
        ("findallregex", ("", A), MANY),
    ],
    ids=["steps", "memory", "matches"],
)
def test_costly_pattern_is_explained(
    error_of: Callable[..., tuple[str, str, str]], name: str, args: tuple[str, ...], why: str
) -> None:
    """The error says what to change."""
    expected = f"str.{name}: {COSTLY}: {why}", "str.pattern_too_costly", "model"

    assert expected == error_of(f"str.{name}", *args)


def test_pattern_length_is_limited(engine: Engine) -> None:
    """To 1,000 characters, as the spec says."""
    assert engine.call("str.matchregex", ("a" * 1_000, "a" * 1_000))
    with pytest.raises(ArgumentError) as caught:
        engine.call("str.matchregex", ("a" * 1_001, ""))

    expected = "str.matchregex: pattern: expected string of at most 1000 characters, got 1001 characters"
    assert expected == str(caught.value)


def test_match_limit_is_exact(engine: Engine) -> None:
    """100,000 matches are accepted."""
    assert 100_000 == len(engine.call("str.findallregex", ("a", A)))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^abc$", "abc\n", False),
        ("(?m)^b$", "a\nb\nc", True),
        ("a.c", "a\nc", False),
        ("(?s)a.c", "a\nc", True),
        ("(?i)ÄB", "äb", True),
        ("^.$", "漢", True),
        (r"\d", "٣", False),
        ("", "", True),
        ("\0", "a\0", True),
    ],
)
def test_patterns_search_anywhere(engine: Engine, pattern: str, text: str, expected: bool) -> None:
    """Without ^ and $; a dot matches a character, classes are ASCII, and flags are part of the pattern."""
    assert expected is engine.call("str.matchregex", (pattern, text))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"(\w)(\d)", "a1 b2", ["a1", "b2"]),
        ("a*", "baaac", ["", "aaa", ""]),
        ("a*?", "aa", ["", "", ""]),
        ("", "é漢", ["", "", ""]),
        (r"\b", "ab cd", ["", "", "", ""]),
        ("^", "a\nb", [""]),
        ("(?m)^", "a\nb", ["", ""]),
        ("^a", "aaa", ["a"]),
        (r"\bx", "xx x", ["x", "x"]),
        ("a|ab", "abab", ["a", "a"]),
        (".", "é漢😀", ["é", "漢", "😀"]),
        ("x", "", []),
        ("", "", [""]),
    ],
)
def test_matches_follow_go(engine: Engine, pattern: str, text: str, expected: list[str]) -> None:
    """From left to right; an empty match directly after another match is skipped."""
    assert expected == engine.call("str.findallregex", (pattern, text))


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "expected"),
    [
        ("a", "banana", "o", "bonono"),
        ("x", "banana", "o", "banana"),
        ("a*", "baaac", "-", "-b-c-"),
        ("", "é漢", "-", "-é-漢-"),
        ("a(x)?", "ax a", "<$1>", "<x> <>"),
        (r"(\w+) (\w+)", "one two", "$2 ${1}!", "two one!"),
        (r"(?P<first>\w)\w*", "one two", "${first}.", "o. t."),
        (r"(?P<first>\w)\w*", "one two", "$first.", "o. t."),
        ("b", "abc", "[$0]", "a[b]c"),
        ("b", "abc", "$$0", "a$0c"),
        ("b", "abc", "$ ${ ${} $- $", "a$ ${ ${} $- $c"),
        ("b", "abc", r"\1\n", r"a\1\nc"),
        ("(.)", "漢é", "$1$1", "漢漢éé"),
        ("(?s).", "a\nb", "é", "ééé"),
    ],
)
def test_replacement_templates_follow_go(
    engine: Engine, pattern: str, text: str, replacement: str, expected: str
) -> None:
    """$name and $1 are groups, $$ is a dollar sign, and a backslash is literal."""
    assert expected == engine.call("str.replaceregex", (pattern, text, replacement))


@pytest.mark.parametrize("replacement", ["$2", "$1x", "${name}", "$01", "${99999999999}", "$٣"])
@pytest.mark.parametrize("text", ["a", "b"], ids=["match", "no-match"])
def test_unknown_group_is_an_error(error_of: Callable[..., tuple[str, str, str]], text: str, replacement: str) -> None:
    """Go would insert nothing, which hides the mistake; it is an error even without a match."""
    why = "the replacement refers to an unknown group; write ${1} before a letter and $$ for a literal $"
    expected = f"str.replaceregex: {why}", "str.no_group", "model"

    assert expected == error_of("str.replaceregex", "(a)", text, replacement)


@pytest.mark.parametrize(("name", "more"), [("findallregex", ()), ("replaceregex", ("x",))])
def test_patterns_cannot_split_characters(
    error_of: Callable[..., tuple[str, str, str]], name: str, more: tuple[str, ...]
) -> None:
    r"""RE2's \C matches one byte, which Go refuses; here it is refused if it would split a character."""
    expected = f"str.{name}: {BAD}: it splits a character; use . instead of \\C", "str.bad_pattern", "model"

    assert expected == error_of(f"str.{name}", r"\C", "é", *more)


def test_event_loop_is_not_blocked_by_a_match(engine: Engine) -> None:
    """A match can take seconds, so ``acall`` runs it in a thread."""

    async def ticks() -> int:
        task = asyncio.create_task(engine.acall("str.matchregex", (r"[ab]*a[ab]{900}($|c)c", MIXED[:50_000])))
        count = 0
        while not task.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert asyncio.run(ticks()) > 3
