"""Patterns: what they find, what is refused, and that none of them stops the process."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from neuroscript import ArgumentError, CallError, Engine

BAD = "the pattern is not valid"
COSTLY = "the pattern costs too much"
LARGE = "it is too large for so long a text; give a simpler pattern, smaller counts or less text"
MANY = "it finds too many matches, or takes too long for them; search less text at once"

STATED = 10.0
"""Seconds that any call may take: five for further matches, the rest for the last one, on two busy cores."""

NOTICEABLE = 0.1
"""Seconds of a call from which on it is fair to ask what other threads did meanwhile."""

SHARE = 0.1
"""The part of its idle speed at which another thread goes on at least."""

A = "a" * 100_000
MIXED = "".join(random.Random(1).choices("ab", k=100_000))

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
    ("many groups that nobody asks for", "findallregex", ("(a)?" * 200 + "b", A), []),
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
        "URL in a text",
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
    """A thread that counts as fast as it is let."""

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
    """How far a thread counts in a second while nothing else is done here."""
    with Counter() as counter:
        before, started = counter.count, time.perf_counter()
        time.sleep(0.3)
        return (counter.count - before) / (time.perf_counter() - started)


def outcome(engine: Engine, name: str, args: tuple[str, ...]) -> Any:
    """Return the result of a call, or the code of its error."""
    try:
        return engine.call(name, args)
    except CallError as error:
        assert error.retry == "model"
        return error.code


@pytest.mark.alone
@pytest.mark.parametrize(("name", "args", "expected"), [pytest.param(*case[1:], id=case[0]) for case in HOSTILE])
def test_a_hostile_pattern_ends_and_holds_up_nobody(
    engine: Engine, idle_speed: float, name: str, args: tuple[str, ...], expected: Any
) -> None:
    """It gives its result, or is refused, in the stated time, while another thread goes on counting."""
    with Counter() as counter:
        before, started = counter.count, time.perf_counter()
        came = outcome(engine, f"str.{name}", args)
        seconds, counted = time.perf_counter() - started, counter.count - before

    assert expected == came
    assert seconds < STATED
    assert seconds < NOTICEABLE or counted > SHARE * idle_speed * seconds


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[", "a [ is not closed"),
        ("(", "a ( is not closed"),
        ("a)", "a ) closes nothing"),
        ("a\\", "it ends in a backslash"),
        ("*", "there is nothing to repeat before *, +, ? or {}"),
        ("a**", "two repetitions follow each other; put the first one in ()"),
        ("a{1001}", "counts go from low to high and up to 1,000, multiplied where they stand in each other"),
        ("a{2,1}", "counts go from low to high and up to 1,000, multiplied where they stand in each other"),
        ("(a{500}){3}", "counts go from low to high and up to 1,000, multiplied where they stand in each other"),
        (r"(a)\1", "a letter or digit behind a backslash has no meaning; there are no back-references"),
        (r"a\Z", "a letter or digit behind a backslash has no meaning; there are no back-references"),
        ("[b-a]", "a range in [] goes backwards, or a class has no such name"),
        (r"\p{Nothing}", "a range in [] goes backwards, or a class has no such name"),
        ("(?P<1 >a)", "the name of a group is letters, digits and _, in <>"),
        ("(?=a)", "there is no such group; look-around and atomic groups are not supported"),
        ("(?<!a)b", "there is no such group; look-around and atomic groups are not supported"),
        ("(?>a)", "there is no such group; look-around and atomic groups are not supported"),
    ],
)
@pytest.mark.parametrize("name", ["matchregex", "findallregex", "replaceregex"])
def test_a_bad_pattern_is_explained(
    told: Callable[..., tuple[str, str, str]], name: str, pattern: str, why: str
) -> None:
    """The caller hears what is wrong, the same from each tool, and nothing of the pattern."""
    args = (pattern, "text", "x")[: 3 if name == "replaceregex" else 2]

    assert (f"str.{name}: {BAD}: {why}", "str.bad_pattern", "model") == told(f"str.{name}", *args)


@pytest.mark.parametrize(
    ("name", "args", "why"),
    [
        ("matchregex", (".{1,900}x", A * 5), LARGE),
        ("matchregex", (r"\pL{500}", "a"), "it is too large when its counts are written out; give smaller counts"),
        ("findallregex", ("", A), MANY),
    ],
    ids=["steps", "memory", "matches"],
)
def test_a_costly_pattern_is_explained(
    told: Callable[..., tuple[str, str, str]], name: str, args: tuple[str, ...], why: str
) -> None:
    """The caller hears what to change."""
    expected = f"str.{name}: {COSTLY}: {why}", "str.pattern_too_costly", "model"

    assert expected == told(f"str.{name}", *args)


def test_a_long_pattern_is_refused(engine: Engine) -> None:
    """A thousand characters are the most, and the spec says so."""
    assert engine.call("str.matchregex", ("a" * 1_000, "a" * 1_000))
    with pytest.raises(ArgumentError) as caught:
        engine.call("str.matchregex", ("a" * 1_001, ""))

    expected = "str.matchregex: pattern: expected string of at most 1000 characters, got 1001 characters"
    assert expected == str(caught.value)


def test_as_many_matches_as_permitted_are_found(engine: Engine) -> None:
    """A hundred thousand is the last number that passes."""
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
def test_a_pattern_fits_anywhere(engine: Engine, pattern: str, text: str, expected: bool) -> None:
    """Without ^ and $ it is a search; a dot is a character, classes are ASCII, and flags stand in the pattern."""
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
def test_matches_are_found_as_go_finds_them(engine: Engine, pattern: str, text: str, expected: list[str]) -> None:
    """From left to right, each beginning where the last ended; an empty one directly behind a match does not count."""
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
def test_a_replacement_is_a_template_of_go(
    engine: Engine, pattern: str, text: str, replacement: str, expected: str
) -> None:
    """A dollar sign before a name or a number is a group, before a dollar sign itself; a backslash is a backslash."""
    assert expected == engine.call("str.replaceregex", (pattern, text, replacement))


@pytest.mark.parametrize("replacement", ["$2", "$1x", "${name}", "$01", "${99999999999}", "$٣"])
@pytest.mark.parametrize("text", ["a", "b"], ids=["match", "no-match"])
def test_a_group_that_is_not_there_is_an_error(
    told: Callable[..., tuple[str, str, str]], text: str, replacement: str
) -> None:
    """Go would put nothing there, and the loss would not be seen; it is an error whether or not there is a match."""
    why = "the replacement names a group that the pattern does not have; write ${1} before a letter, $$ for a $"
    expected = f"str.replaceregex: {why}", "str.no_group", "model"

    assert expected == told("str.replaceregex", "(a)", text, replacement)


@pytest.mark.parametrize(("name", "more"), [("findallregex", ()), ("replaceregex", ("x",))])
def test_a_character_is_not_parted(told: Callable[..., tuple[str, str, str]], name: str, more: tuple[str, ...]) -> None:
    r"""RE2 knows \C, one byte, which Go refuses; it is refused here where it would part a character."""
    expected = f"str.{name}: {BAD}: it parts a character; write . in place of \\C", "str.bad_pattern", "model"

    assert expected == told(f"str.{name}", r"\C", "é", *more)


def test_an_event_loop_goes_on_during_a_match(engine: Engine) -> None:
    """A match may take seconds, so ``acall`` makes it on a thread."""

    async def ticks() -> int:
        task = asyncio.create_task(engine.acall("str.matchregex", (r"[ab]*a[ab]{900}($|c)c", MIXED[:50_000])))
        count = 0
        while not task.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert asyncio.run(ticks()) > 3
