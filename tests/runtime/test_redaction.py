"""Redaction of the secrets of calls and of the host, in values and in errors."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.runtime.hidden_secrets import PASSWORD, hiding
from tests.system.test_startup import loaded

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


def hide(redactor: Redactor, value: Any) -> None:
    """Register the secrets in an argument of a call."""
    redactor.sets[0].add_recent(secrets_in(value))


# Retained secrets


@pytest.mark.parametrize("value", ["", "five5", b"five5"])
def test_short_secret_is_refused(value: str | bytes) -> None:
    """It would hide parts of ordinary words; the error does not contain it."""
    with pytest.raises(ValueError) as caught:
        SecretSet().add(value)

    assert (
        str(caught.value)
        == "a secret needs 6 characters or more, because redacting a shorter one would also redact unrelated text"
    )


def test_secret_is_added_once() -> None:
    """The return value says whether it was new."""
    secrets = SecretSet()
    redactor = Redactor(secrets)

    assert redactor.is_empty
    assert [secrets.add("canary"), secrets.add("canary"), redactor.is_empty] == [True, False, False]


def test_unchanged_objects_are_passed_through() -> None:
    """Without a match the same objects are returned."""
    secrets, value, error = hiding(), ["canary"], ToolFailed("canary")

    assert secrets.text(value[0]) is value[0]
    assert secrets.plain(value) is value
    assert secrets.error(error) is error and error.text == "canary"


def test_everything_in_a_secret_argument_is_hidden() -> None:
    """All levels count, except short strings, booleans and keys that are ordinary words."""
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
def test_argument_without_secrets_changes_nothing(value: Any) -> None:
    """The redactor still has no forms to search for."""
    secrets = hiding()
    hide(secrets, value)

    assert secrets.is_empty


def test_latest_call_secrets_and_all_host_secrets_are_retained() -> None:
    """The oldest call secret is dropped first; using one again makes it recent."""
    secrets = hiding("of the host")
    for number in range(MAX_CALL_SECRETS):
        hide(secrets, f"canary-{number:04}")
    hide(secrets, ["canary-0000", "of the host", "one more"])

    text = secrets.text("canary-0000, canary-0001, canary-0002, canary-0999, one more, of the host")
    assert text == f"{MARK}, canary-0001, {MARK}, {MARK}, {MARK}, {MARK}"


def test_total_size_of_call_secrets_is_limited() -> None:
    """The oldest is dropped first; of a single secret that is too long, the start is hidden."""
    secrets = hiding()
    hide(secrets, "canary-1")
    hide(secrets, "x" * MAX_CALL_SECRET_CHARS + "canary-2")

    assert secrets.text("canary-1 canary-2") == "canary-1 canary-2"
    assert secrets.text("x" * MAX_CALL_SECRET_CHARS + "canary-2") == f"{MARK}canary-2"


def test_secret_is_hidden_while_other_threads_add_secrets() -> None:
    """A thread never sees a value that it has added."""
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


def test_plain_value_is_redacted_at_any_depth() -> None:
    """Strings, bytes and keys are redacted in a copy."""
    secrets = hiding("canary")
    value = {"canary": ["a canary", {"b": b"\xff canary"}], "n": 5, "t": ("x", "canary")}

    redacted = secrets.plain(value)

    assert redacted == {MARK: [f"a {MARK}", {"b": b"\xff [secret]"}], "n": 5, "t": ("x", MARK)}
    assert value["n"] == 5 and "canary" in value


def test_keys_that_become_equal_stay_distinct() -> None:
    """No value is lost."""
    secrets = hiding("canary1", "canary2", "canary3")

    assert secrets.plain({"canary1": 1, "canary2": 2, "canary3": 3}) == {MARK: 1, f"{MARK} 2": 2, f"{MARK} 3": 3}
    assert secrets.plain({b"canary1": 1, b"canary2": 2}) == {b"[secret]": 1, b"[secret] 2": 2}


@pytest.mark.slow
@given(
    some.recursive(
        some.none() | some.integers() | some.text("ghijk") | some.binary(),
        lambda each: some.lists(each) | some.dictionaries(some.text("ghijk"), each),
    )
)
def test_plain_value_without_secrets_is_returned_unchanged(value: Any) -> None:
    """No copy is made."""
    assert hiding(PASSWORD).plain(value) is value


# Errors


def errors() -> Iterator[tuple[Any, str]]:
    """Yield an error of each kind that contains a secret in every field, with its expected redacted form."""
    problem = Problem("map['canary']", "arg.type", "one of canary", "canary", "such as canary")
    reported = f"map['{MARK}']: expected one of {MARK}, got {MARK} (such as {MARK})"
    yield ToolFailed("a canary", tool="g.t", code="x.y", retry="later"), f"g.t: a {MARK}"
    yield ToolNotFound("canary", ["canary.a"]), f"unknown tool {MARK}; did you mean {MARK}.a?"
    yield ArgumentError([problem], "g.t", found=3), f"g.t: {reported}; and 2 more"
    yield ArgumentError(lambda: [problem], "g.t"), f"g.t: {reported}"
    yield PolicyError("needs canary", tool="g.t", need="fs:read:canary", rule="canary*"), f"g.t: needs {MARK}"
    yield CallTimeout("canary", tool="g.t", state="abandoned"), f"g.t: {MARK}"
    yield ReturnError("result['canary']", tool="g.t"), f"g.t: result['{MARK}']"


@pytest.mark.parametrize(("error", "message"), [*errors()], ids=lambda each: type(each).__name__)
def test_error_contains_no_secret(error: Any, message: str) -> None:
    """Its message and data are redacted; fields that hosts decide by, the error object and its cause stay."""
    cause = ValueError("canary")
    error.__cause__ = cause
    before = (error.code, error.retry, error.number, error.tool, getattr(error, "state", None))

    redacted = hiding("canary").error(error)

    assert redacted is error and error.__cause__ is cause
    assert (error.code, error.retry, error.number, error.tool, getattr(error, "state", None)) == before
    assert str(error) == message
    assert "canary" not in f"{error!r} {error.args!r} {vars(error)!r}"
    assert str(pickle.loads(pickle.dumps(error))) == message


def test_lazy_problems_are_redacted_too() -> None:
    """Redaction creates their list."""
    error = ArgumentError(lambda: [Problem("a", "arg.type", "int", "canary")], "g.t")

    assert str(hiding("canary").error(error)) == f"g.t: a: expected int, got {MARK}"


def test_notes_of_an_error_are_redacted_too() -> None:
    """A traceback shows them."""
    error = ToolFailed("failed")
    error.add_note("with canary")

    assert hiding("canary").error(error).__notes__ == [f"with {MARK}"]


# Host secrets


def test_host_cannot_provide_a_short_secret() -> None:
    """The error gives its name and not its value."""
    with pytest.raises(SpecError) as caught:
        Host(secrets={"pin": "12345", "key": "123456"})

    why = "6 characters or more, because redacting a shorter one would also redact unrelated text"
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
def test_environment_value_granted_by_name_is_a_secret(
    grant: str, hidden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exact name is required; the value stays secret under a narrower policy without that grant."""
    monkeypatch.setenv("NS_CANARY", "canary of the environment")
    monkeypatch.setenv("NS_SHORT", "short")
    policy = ExecutionPolicy(grants=[grant])

    for each in (policy, policy.narrowed(grants=())):
        with Engine(plugins="none", policy=each) as engine:
            seen = engine.secrets.text("canary of the environment") if engine.secrets else "canary of the environment"
            assert seen == (MARK if hidden else "canary of the environment")


@pytest.mark.skipif(sys.platform == "win32", reason="an environment of bytes")
def test_environment_value_that_is_not_unicode_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's string and the bytes are both hidden."""
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


def test_hook_messages_contain_no_secret() -> None:
    """A model may read them."""

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
def test_tool_errors_contain_no_secret_in_a_code(kind: Any) -> None:
    """This covers the code, the retry value and the tool name, which hosts and audit logs use."""
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


def test_tool_named_like_a_secret_keeps_its_name() -> None:
    """Names of tools are public."""
    tools = Toolset("canary_0123456789")
    tools.add(ToolSpec("t", "canary_0123456789", return_type=ArgType.NIL), lambda rt: rt.require("fs:write:a"))
    engine = Engine(host=Host(secrets={"key": "canary_0123456789"}), toolsets=[tools], plugins="none")

    assert refusal(lambda: engine.call("canary_0123456789.t")).tool == "canary_0123456789.t"


SECRET = ArgSpec("key", ArgType.STRING, secret=True)


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])
@pytest.mark.parametrize("name", ["canary_0123456789", "the secret of this call"])
def test_records_of_repairs_contain_no_secret(name: str, timeout: float | None) -> None:
    """A map key may be a secret of the host, or the value of a secret argument of the same call."""
    audit = MemoryAudit()
    engine = engine_of(lambda rt, *args: None, COUNTS, SECRET, policy=ToolPolicy(timeout=timeout), audit=audit)

    engine.call("g.t", ({name: "5"}, "the secret of this call"))

    (record,) = audit.records
    assert [each.where for each in record.repairs] == [f"counts['{MARK}']"]


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("entry_point", ["call_named", "acall_named", "stream", "execute"])
def test_argument_errors_contain_no_secret(entry_point: str, watched: bool) -> None:
    """The name of an unknown argument may be a secret, at every entry point, with or without observers."""
    engine = engine_of(lambda rt, counts: None, COUNTS, audit=[MemoryAudit()] * watched)
    given = {"counts": {}, "canary_0123456789": 1}
    entry_points: dict[str, Callable[[], Any]] = {
        "call_named": lambda: engine.call_named("g.t", given),
        "acall_named": lambda: asyncio.run(engine.acall_named("g.t", given)),
        "stream": lambda: list(engine.stream("g.t", given)),
        "execute": lambda: engine.execute(ToolCall("g.t", given)),
    }

    error = entry_points[entry_point]().error if entry_point == "execute" else refusal(entry_points[entry_point])
    assert str(error) == f"g.t: {MARK}: expected only counts, got an unknown name of type int"


def test_static_checks_show_no_secret() -> None:
    """This covers requested names and needs for a secret argument that no call has registered yet."""
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
def test_redaction_modules_load_only_with_secrets(grants: tuple[str, ...]) -> None:
    """An engine without secrets, and a call that prints and logs, do not load them."""
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
