"""Secrets in every form that a text can have, and what hides them: alone, in texts, in values and in errors."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.test_startup import loaded

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    LLMError,
    MemoryAudit,
    PolicyError,
    Problem,
    ReturnError,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)
from neuroscript.runtime.redaction import MARK, Redactor, secrets_in
from neuroscript.runtime.secret_set import MAX_CALL_SECRET_CHARS, MAX_CALL_SECRETS, SecretSet

PASSWORD = "p\"ä's/<&>\\ +\n%{§}🔑=key"
"""A secret with whatever is written in another way somewhere."""


def hiding(*values: str | bytes) -> Redactor:
    """Return a redactor of these secrets."""
    secrets = SecretSet()
    for each in values:
        secrets.add(each)
    return Redactor(secrets)


def hide(redactor: Redactor, value: Any) -> None:
    """Hide what is secret in the argument of a call."""
    redactor.sets[0].add_recent(secrets_in(value))


def lower_digits(quoted: str) -> str:
    """Return what is quoted for a URL with lower-case hexadecimal digits."""
    return "".join(f"%{each[:2].lower()}{each[2:]}" for each in f"%00{quoted}".split("%")[1:])[3:]


def upper_digits(text: str) -> str:
    """Return JSON whose escapes have upper-case digits."""
    written = (json.dumps(each)[1:-1] for each in text)
    return "".join(each.upper().replace("\\U", "\\u") if each.startswith("\\u") else each for each in written)


def based(shift: int, url_safe: bool) -> Callable[[str], str]:
    """Return what writes a text in base64, so many bytes behind its begin."""
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return lambda text: encode(b"?>!"[:shift] + text.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": json.dumps,
    "JSON in UTF-8": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "HTML in JSON": lambda text: json.dumps(html.escape(text)),
    "repr in JSON": lambda text: json.dumps(repr(f'"{text}')),
    "JSON in repr": lambda text: repr(json.dumps(text)),
    "JSON with upper digits": upper_digits,
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in a script": lambda text: (
        json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ),
    "JSON of Go": lambda text: (
        json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    ),
    "repr": repr,
    "repr in ASCII": ascii,
    "repr of bytes": lambda text: repr(text.encode()),
    "URL": quote,
    "URL with nothing safe": lambda text: quote(text, safe=""),
    "URL with plus": quote_plus,
    "URL with lower digits": lambda text: lower_digits(quote(text, safe="")),
    "URL with plus and lower digits": lambda text: lower_digits(quote_plus(text)),
    "URL as a browser writes a component": lambda text: quote(text, safe="!'()*"),
    "URL, each byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML": html.escape,
    "HTML without quotes": lambda text: html.escape(text, quote=False),
    "HTML with numbers": lambda text: html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "UTF-8 read as Latin-1": lambda text: text.encode().decode("latin-1"),
}
"""How texts are written; a part of a text is written as a part of what is written."""

QUOTED = {
    "JSON in repr": 2,
    "JSON of Go": 1,
    "HTML in JSON": 1,
    "JSON": 1,
    "JSON in UTF-8": 1,
    "JSON in JSON": 3,
    "JSON of PHP": 1,
    "JSON in a script": 1,
    "repr": 1,
    "repr in ASCII": 1,
    "repr of bytes": 1,
}
"""How many characters there are around a text that is written so."""


def core(name: str, text: str) -> str:
    """Return what *text* is within a longer text that is written so."""
    written = ENCODINGS[name](text)
    if name == "repr in JSON":
        return written[4:-2]
    if name == "repr of bytes":
        return written[2:-1]
    return written[QUOTED.get(name, 0) : len(written) - QUOTED.get(name, 0)]


ANY_TEXT = some.text(some.characters(exclude_categories=["Cs"]))
ANY_SECRET = some.one_of(
    some.text(some.characters(exclude_categories=["Cs"]), min_size=6, max_size=40),
    some.text("aA0\"'\\/ +%&<\nä€🔑", min_size=6, max_size=20),
)


# The forms


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("secret", ["correcthorse", PASSWORD, "a'quoted'one", 'a "quoted" one', "sk-live_0123~."])
def test_each_form_is_hidden(name: str, secret: str) -> None:
    """The whole of it, and nothing around it."""
    around = f"<x>{core(name, secret)}(y)"

    assert hiding(secret).text(around) == f"<x>{MARK}(y)"


@pytest.mark.parametrize("secret", ["-----BEGIN-----\nMIIa\n  MIIb\n-----END-----\n", b"first line\r\nsecond\n"])
def test_a_secret_of_several_lines_is_hidden_where_they_are_made_one(secret: str | bytes) -> None:
    """As errors are told; what would be too short then is left."""
    text = secret if isinstance(secret, str) else secret.decode()

    assert hiding(secret).text(f"<{' '.join(text.split())}>") == f"<{MARK}>"
    assert hiding("a\n\n\n\n\nb").text("a b") == "a b"


@pytest.mark.parametrize("url_safe", [False, True])
@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("secret", ["secretkey", "secretkeys", "secretkeys!", "??>>??>>~~~~", "ÿÿÿÿÿÿ"])
def test_base64_is_hidden_wherever_the_secret_begins(shift: int, url_safe: bool, secret: str) -> None:
    """With padding and without; no character that has a bit of it is left."""
    written = based(shift, url_safe)(secret)
    left = {0: "", 1: "P", 2: "Pz"}[shift]
    in_a_url = quote(written, safe="")

    assert hiding(secret).text(f"({written})") == f"({left}{MARK})"
    assert hiding(secret).text(f"({written.rstrip('=')})") == f"({left}{MARK})"
    assert hiding(secret).text(f"({in_a_url.split('%3D')[0]})") == f"({left}{MARK})"


@given(secret=ANY_SECRET, before=ANY_TEXT, after=ANY_TEXT)
def test_no_form_of_a_secret_is_left_wherever_it_stands(secret: str, before: str, after: str) -> None:
    """For any secret in any surroundings, written together in any of the ways."""
    secrets = hiding(secret)

    for name, write in ENCODINGS.items():
        parts = secrets.text(write(before + secret + after)).split(MARK)
        forms = {core(name, secret), core(name, secret).replace("'", "\\'")}
        assert not [form for form in forms for part in parts if form in part], name


@given(secret=ANY_SECRET, before=some.binary(max_size=9), after=some.binary(max_size=9), url_safe=some.booleans())
def test_no_base64_of_a_secret_is_left_wherever_it_stands(
    secret: str, before: bytes, after: bytes, url_safe: bool
) -> None:
    """No run of what is left gives it back, from whichever character it is decoded."""
    written = base64.b64encode(before + secret.encode() + after, b"-_" if url_safe else None).decode()

    parts = hiding(secret).text(written).split(MARK)

    for part in parts:
        for start in range(4):
            run = part[start:].rstrip("=")
            assert secret.encode() not in base64.b64decode(run[: len(run) // 4 * 4], b"-_" if url_safe else None)
    assert len(parts) > 1


@given(some.lists(some.text('[]secrt"\\', min_size=6, max_size=12), min_size=1, max_size=4), some.text('[]secrt"\\'))
def test_to_hide_twice_hides_nothing_more(values: list[str], text: str) -> None:
    """Also where a secret looks like the mark, or the mark completes one; what is left between marks has none."""
    secrets = hiding(*values)

    once = secrets.text(text)

    assert secrets.text(once) is once
    assert not [value for value in values for part in once.split(MARK) if value in part]


@given(some.text("ghijk [secret]\n\\", max_size=200))
def test_a_text_without_secrets_is_the_very_same(text: str) -> None:
    """And so is one that the mark stands in already."""
    assert hiding("zq7!XK", PASSWORD, b"\xff\xfe\xfd\xfc\xfb\xfa").text(text) is text


@pytest.mark.parametrize(
    ("values", "text", "hidden"),
    [
        (["abcdef", "defghi"], "-abcdefghi-", f"-{MARK}-"),
        (["abcdef", "abcdefghi"], "-abcdefghi-abcdefgh-", f"-{MARK}-{MARK}gh-"),
        (["cdefgh", "abcdefghij"], "-abcdefghij-cdefgh-", f"-{MARK}-{MARK}-"),
        (["abcdef", "ghijkl"], "abcdefghijkl", MARK * 2),
        (["(a+)+$.*[^"], "(a+)+$.*[^ aaaaaaaa", f"{MARK} aaaaaaaa"),
        (["line 1\nline 2"], "line 1\nline 2\n", f"{MARK}\n"),
        ([" stripped\n"], "(stripped)( stripped\n)", f"({MARK})({MARK})"),
        (["aaaaaa"], "a" * 6 + "b" + "a" * 20 + "b" + "a" * 5, f"{MARK}b{MARK}b{'a' * 5}"),
        (["x" * 100], f"[{'x' * 64}…]", f"[{MARK}]"),
        (["\x1b[31mred"], r"\x1b[31mred", MARK),
    ],
    ids=[
        "overlapping",
        "one begins another",
        "one in another",
        "side by side",
        "regex",
        "lines",
        "blanks",
        "run",
        "cut",
        "escaped",
    ],
)
def test_secrets_that_meet_are_hidden_together(values: list[str], text: str, hidden: str) -> None:
    """None leaves a rest of another."""
    assert hiding(*values).text(text) == hidden


@pytest.mark.parametrize(
    "write",
    [
        repr,
        bytes.hex,
        lambda data: base64.b64encode(data).decode(),
        quote,
        lambda data: data.decode("latin-1"),
        lambda data: json.dumps(data.decode(errors="surrogateescape")),
    ],
    ids=["repr", "hex", "base64", "URL", "Latin-1", "JSON of a file's name"],
)
def test_bytes_are_secrets_too(write: Callable[[bytes], str]) -> None:
    """Whether they are the bytes of a text or not."""
    for data in (b"\x00\xff'\"\\key", "schlüssel".encode()):
        assert MARK in hiding(data).text(write(data))
    assert hiding("schlüssel".encode()).text("ein schlüssel") == f"ein {MARK}"


def test_what_is_not_caught_is_as_the_documents_say() -> None:
    """Another case, the other way round, split, packed, shorter: who wants to get round it can."""
    text = "CORRECTHORSE esrohtcerroc correct horse correct\nhorse c,o,r,r,e,c,t,h,o,r,s,e correcthors"

    assert hiding("correcthorse").text(text) is text


# What is kept


@pytest.mark.parametrize("value", ["", "five5", b"five5"])
def test_a_short_secret_is_refused(value: str | bytes) -> None:
    """It would hide half of what is said; the value is not in the error."""
    with pytest.raises(ValueError) as caught:
        SecretSet().add(value)

    assert str(caught.value) == "a secret needs 6 characters or more: hiding a shorter one would hide much else"


def test_a_secret_is_added_once() -> None:
    """And whoever adds it is told."""
    secrets = SecretSet()
    redactor = Redactor(secrets)

    assert redactor.is_empty
    assert [secrets.add("canary"), secrets.add("canary"), redactor.is_empty] == [True, False, False]


def test_where_there_is_nothing_to_hide_everything_is_passed_on() -> None:
    """The very same objects."""
    secrets, value, error = hiding(), ["canary"], ToolFailed("canary")

    assert secrets.text(value[0]) is value[0]
    assert secrets.plain(value) is value
    assert secrets.error(error) is error and error.text == "canary"


def test_whatever_is_in_a_secret_argument_is_hidden() -> None:
    """At any depth; short texts, truth values and keys that are words stand for nothing."""
    secrets = hiding()

    hide(
        secrets,
        {
            "Authorization": ["canary1", b"canary2", {"n": 4111111111111111, "is_it": True, "pin": "12345"}],
            "key-0451": None,
        },
    )

    text = "Authorization canary1 canary2 4111111111111111 is_it True 12345 key-0451"
    assert secrets.text(text) == f"Authorization {MARK} {MARK} {MARK} is_it True 12345 {MARK}"


@pytest.mark.parametrize("value", [None, True, 12345, "five5", [], {"authorization": "short"}])
def test_an_argument_with_nothing_to_hide_changes_nothing(value: Any) -> None:
    """There is still nothing to look for."""
    secrets = hiding()
    hide(secrets, value)

    assert secrets.is_empty


def test_the_latest_secrets_of_calls_are_kept_and_the_hosts_always() -> None:
    """The oldest gives way; one that is met again is not old."""
    secrets = hiding("of the host")
    for number in range(MAX_CALL_SECRETS):
        hide(secrets, f"canary-{number:04}")
    hide(secrets, ["canary-0000", "of the host", "one more"])

    text = secrets.text("canary-0000, canary-0001, canary-0002, canary-0999, one more, of the host")
    assert text == f"{MARK}, canary-0001, {MARK}, {MARK}, {MARK}, {MARK}"


def test_secrets_of_calls_have_no_more_text_than_they_may() -> None:
    """The oldest gives way; of a single one that is too long the begin is hidden."""
    secrets = hiding()
    hide(secrets, "canary-1")
    hide(secrets, "x" * MAX_CALL_SECRET_CHARS + "canary-2")

    assert secrets.text("canary-1 canary-2") == "canary-1 canary-2"
    assert secrets.text("x" * MAX_CALL_SECRET_CHARS + "canary-2") == f"{MARK}canary-2"


def test_threads_hide_while_others_look() -> None:
    """Whoever has hidden a value sees it no more, whatever others hide meanwhile."""
    secrets = hiding()
    left: list[str] = []

    def work(name: int) -> None:
        for number in range(50):
            hide(secrets, f"canary-{name}-{number:02}")
            left.append(secrets.text(f"<canary-{name}-{number:02}>"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)

    assert left == [f"<{MARK}>"] * 400


# Values


def test_a_plain_value_is_redacted_at_any_depth() -> None:
    """Texts, bytes and keys; the value itself is not touched."""
    secrets = hiding("canary")
    value = {"canary": ["a canary", {"b": b"\xff canary"}], "n": 5, "t": ("x", "canary")}

    redacted = secrets.plain(value)

    assert redacted == {MARK: [f"a {MARK}", {"b": b"\xff [secret]"}], "n": 5, "t": ("x", MARK)}
    assert value["n"] == 5 and "canary" in value


def test_keys_that_become_alike_stay_apart() -> None:
    """No value is lost."""
    secrets = hiding("canary1", "canary2", "canary3")

    assert secrets.plain({"canary1": 1, "canary2": 2, "canary3": 3}) == {MARK: 1, f"{MARK} 2": 2, f"{MARK} 3": 3}
    assert secrets.plain({b"canary1": 1, b"canary2": 2}) == {b"[secret]": 1, b"[secret] 2": 2}


@given(
    some.recursive(
        some.none() | some.integers() | some.text("ghijk") | some.binary(),
        lambda each: some.lists(each) | some.dictionaries(some.text("ghijk"), each),
    )
)
def test_a_plain_value_without_secrets_is_the_very_same(value: Any) -> None:
    """No copy is made of it."""
    assert hiding(PASSWORD).plain(value) is value


# Errors


def errors() -> Iterator[tuple[Any, str]]:
    """Yield an error of each kind that tells a secret wherever it can, and what it is to tell."""
    problem = Problem("map['canary']", "arg.type", "one of canary", "canary", "such as canary")
    told = f"map['{MARK}']: expected one of {MARK}, got {MARK} (such as {MARK})"
    yield ToolFailed("a canary", tool="g.t", code="x.y", retry="later"), f"g.t: a {MARK}"
    yield ToolNotFound("canary", ["canary.a"]), f"unknown tool {MARK}; did you mean {MARK}.a?"
    yield ArgumentError([problem], "g.t", found=3), f"g.t: {told}; and 2 more"
    yield ArgumentError(lambda: [problem], "g.t"), f"g.t: {told}"
    yield PolicyError("needs canary", tool="g.t", need="fs:read:canary", rule="canary*"), f"g.t: needs {MARK}"
    yield CallTimeout("canary", tool="g.t", state="abandoned"), f"g.t: {MARK}"
    yield ReturnError("result['canary']", tool="g.t"), f"g.t: result['{MARK}']"


@pytest.mark.parametrize(("error", "told"), [*errors()], ids=lambda each: type(each).__name__)
def test_an_error_tells_no_secret(error: Any, told: str) -> None:
    """Neither in words nor as data; what a host decides by stays, and so do the error and its cause."""
    cause = ValueError("canary")
    error.__cause__ = cause
    before = (error.code, error.retry, error.number, error.tool, getattr(error, "state", None))

    redacted = hiding("canary").error(error)

    assert redacted is error and error.__cause__ is cause
    assert (error.code, error.retry, error.number, error.tool, getattr(error, "state", None)) == before
    assert str(error) == told
    assert "canary" not in f"{error!r} {error.args!r} {vars(error)!r}"
    assert str(pickle.loads(pickle.dumps(error))) == told


def test_problems_that_nobody_has_looked_at_are_redacted_too() -> None:
    """They are written out for it."""
    error = ArgumentError(lambda: [Problem("a", "arg.type", "int", "canary")], "g.t")

    assert str(hiding("canary").error(error)) == f"g.t: a: expected int, got {MARK}"


def test_notes_of_an_error_are_redacted_too() -> None:
    """They stand in its traceback."""
    error = ToolFailed("failed")
    error.add_note("with canary")

    assert hiding("canary").error(error).__notes__ == [f"with {MARK}"]


# The host


def test_a_host_lends_no_short_secret() -> None:
    """It says why, by the name; a value is not told."""
    with pytest.raises(SpecError) as caught:
        Host(secrets={"pin": "12345", "key": "123456"})

    why = "6 characters or more, for hiding a shorter one would hide much else"
    assert caught.value.problems == (f"secrets['pin'] must have {why}",)


@pytest.mark.parametrize(
    ("grant", "hidden"),
    [
        ("env:read:NS_CANARY", True),
        ("env:read:ns_canary", True),
        ("env:read,write:NS_OTHER,NS_CANARY", True),
        ("*:*:NS_CANARY", True),
        ("env:read:NS_SHORT", False),
        ("env:read:NS_*", False),
        ("env:read:*", False),
        ("env:write:NS_CANARY", False),
        ("fs:read:NS_CANARY", False),
    ],
)
def test_an_environment_value_that_is_granted_by_name_is_a_secret(
    grant: str, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its exact name; also where a narrower policy does not grant it any more."""
    monkeypatch.setenv("NS_CANARY", "canary of the environment")
    monkeypatch.setenv("NS_SHORT", "short")
    policy = ExecutionPolicy(grants=[grant])

    for each in (policy, policy.narrowed(grants=())):
        with Engine(plugins="none", policy=each) as engine:
            seen = engine.secrets.text("canary of the environment") if engine.secrets else "canary of the environment"
            assert seen == (MARK if hidden else "canary of the environment")


@pytest.mark.skipif(sys.platform == "win32", reason="an environment of bytes")
def test_an_environment_value_that_is_no_unicode_is_a_secret_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the text that Python makes of it, and as its bytes."""
    monkeypatch.setitem(os.environb, b"NS_CANARY", b"can\xffary")
    with Engine(plugins="none", policy=ExecutionPolicy(grants=["env:read:NS_CANARY"])) as engine:
        hidden = engine.secrets.plain(
            [os.environ["NS_CANARY"], b"can\xffary", b"can\xffary".hex(), repr(b"can\xffary")]
        )

    assert hidden == [MARK, b"[secret]", MARK, f"b'{MARK}'"]


COUNTS = ArgSpec("counts", ArgType.MAP_STRING_INT)


def engine_of(func: Callable[..., Any], *args: ArgSpec, policy: ToolPolicy | None = None, **options: Any) -> Engine:
    """Return an engine with one tool, ``g.t``, and a host whose secret is ``canary_0123456789``."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g", args, return_type=ArgType.ANY, return_nullable=True), func, policy or ToolPolicy())
    return Engine(host=Host(secrets={"key": "canary_0123456789"}), toolsets=[tools], plugins="none", **options)


def refusal(run: Callable[[], Any]) -> Any:
    """Return the error that is raised."""
    with pytest.raises(CallError) as caught:
        run()
    return caught.value


def test_what_a_hook_says_tells_no_secret() -> None:
    """Its sentence may be read by a model."""

    class Talking:
        @hookimpl
        def neuroscript_decide(self) -> PolicyError:
            return PolicyError("not a canary_0123456789", need="canary_0123456789")

    engine = engine_of(lambda rt: None, hooks=[Talking()])

    error = refusal(lambda: engine.call("g.t"))
    assert (str(error), error.need, error.code, error.retry) == (f"g.t: not a {MARK}", MARK, "policy.hook", "host")
    assert "canary_0123456789" not in repr(engine.refusals)


@pytest.mark.parametrize(
    "kind", [ToolFailed, PolicyError, LimitError, LLMError, CallTimeout], ids=lambda kind: kind.__name__
)
def test_what_a_tool_raises_tells_no_secret_in_place_of_a_word(kind: Any) -> None:
    """Of a code, of who can make the call succeed, of a tool: hosts decide by them, and audits keep them."""
    words = (
        {"state": "canary_0123456789"}
        if kind is CallTimeout
        else {"code": "no.canary_0123456789", "retry": "canary_0123456789"}
    )
    audit = MemoryAudit()

    def raises(rt: Runtime) -> None:
        raise kind("no", **words, **({} if kind is LLMError else {"tool": "canary_0123456789"}))

    engine = engine_of(raises, audit=audit)

    error = refusal(lambda: engine.call("g.t"))
    assert error.tool == "g.t"
    assert "canary_0123456789" not in f"{error!r} {vars(error)!r} {audit.records!r}"


def test_a_tool_that_is_called_like_a_secret_keeps_its_name() -> None:
    """It is no secret, for everybody sees it."""
    tools = Toolset("canary_0123456789")
    tools.add(ToolSpec("t", "canary_0123456789", return_type=ArgType.NIL), lambda rt: rt.require("fs:write:a"))
    engine = Engine(host=Host(secrets={"key": "canary_0123456789"}), toolsets=[tools], plugins="none")

    assert refusal(lambda: engine.call("canary_0123456789.t")).tool == "canary_0123456789.t"


SECRET = ArgSpec("key", ArgType.STRING, secret=True)


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])
@pytest.mark.parametrize("name", ["canary_0123456789", "the secret of this call"])
def test_records_tell_no_secret_where_a_value_was_converted(name: str, timeout: float | None) -> None:
    """The key of a map may be one: of the host, or that which the same call gives as a secret argument."""
    audit = MemoryAudit()
    engine = engine_of(lambda rt, *args: None, COUNTS, SECRET, policy=ToolPolicy(timeout=timeout), audit=audit)

    engine.call("g.t", ({name: "5"}, "the secret of this call"))

    (record,) = audit.records
    assert [each.where for each in record.repairs] == [f"counts['{MARK}']"]


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("door", ["call_named", "acall_named", "stream", "execute"])
def test_arguments_that_do_not_fit_tell_no_secret(door: str, watched: bool) -> None:
    """The name of an unknown one may be one, through whatever door, whether anybody watches or not."""
    engine = engine_of(lambda rt, counts: None, COUNTS, audit=[MemoryAudit()] * watched)
    given = {"counts": {}, "canary_0123456789": 1}
    doors: dict[str, Callable[[], Any]] = {
        "call_named": lambda: engine.call_named("g.t", given),
        "acall_named": lambda: asyncio.run(engine.acall_named("g.t", given)),
        "stream": lambda: list(engine.stream("g.t", given)),
        "execute": lambda: engine.execute(ToolCall("g.t", given)),
    }

    error = doors[door]().error if door == "execute" else refusal(doors[door])
    assert str(error) == f"g.t: {MARK}: expected only counts, got an unknown name of type int"


def test_what_would_become_of_a_call_tells_no_secret() -> None:
    """Neither a name that is asked for, nor what is needed for a secret argument: nothing has hidden that so far."""
    path = ArgSpec("path", ArgType.STRING, secret=True)
    needing = ToolPolicy(capabilities=("fs:read:{path}",))
    engine = engine_of(lambda rt, path: None, path, policy=needing)
    calls = [
        ToolCall("g.t", ["a/b"]),
        ToolCall("g.t", ["another"]),
        ToolCall("canary_0123456789"),
        ToolCall("g.t", {"canary_0123456789": 1}),
    ]

    short, needed, unknown, unfit = engine.check(calls)

    assert (short.need, needed.need, needed.tool) == ("fs:read", "fs:read", "g.t")
    assert (unknown.tool, unknown.text) == (MARK, f"unknown tool {MARK}")
    assert "canary_0123456789" not in repr(unfit) and MARK in unfit.text


@pytest.mark.parametrize("grants", [(), ("env:read:*",), ("env:read:NS_*",)])
def test_without_secrets_nothing_is_loaded_for_them(grants: tuple[str, ...]) -> None:
    """Neither in the engine nor in a call that prints and logs."""
    code = f"""
from neuroscript import Engine, ExecutionPolicy, ToolSpec, Toolset
tools = Toolset("g")
tools.add(ToolSpec("t", "g"), lambda rt: rt.logger.info("said"))
Engine(plugins="none", toolsets=[tools], policy=ExecutionPolicy(grants={grants})).call("g.t")
"""

    assert {"neuroscript.engine.call_runtime"} == loaded(code) & {
        "neuroscript.engine.call_runtime",
        "neuroscript.runtime.secret_forms",
        "neuroscript.runtime.redaction",
    }
