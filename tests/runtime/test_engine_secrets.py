"""The sessions in which a secret is hidden: those that may know it, and none that could use redaction to guess it."""

from __future__ import annotations

import io
import json
import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import examples
from tests.work import steps_in

from neuroscript import (
    LLM,
    Approval,
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    FileAudit,
    Host,
    PendingApproval,
    Recording,
    Resolver,
    Runtime,
    Session,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
    Value,
)
from neuroscript.runtime.redaction import MARK, Redactor, is_guessable
from neuroscript.runtime.secret_set import MAX_CALL_SECRETS, SecretSet

PIN = "482913"
LONG = "kL9-x2Qm7/vT4pZ0"
"""16 characters of several classes, which cannot be guessed."""

GUESSES = " ".join(str(number) for number in range(482_000, 484_000))
"""Candidates for the PIN; the tests that send all of them send 900,000."""

ANYTHING = ArgSpec("value", ArgType.ANY)
OPEN = ToolPolicy(capabilities=("secret:read:{name}",))
FILES = ToolPolicy(capabilities=("fs:read:**", "fs:write:**"))


def tools() -> Toolset:
    """Return tools that echo their input in every way that a value can return."""
    found = Toolset("t")

    def add(name: str, func: Callable[..., Any], *args: ArgSpec, policy: ToolPolicy | None = None) -> None:
        spec = ToolSpec(name, "t", args, return_type=ArgType.ANY, return_nullable=True)
        found.add(spec, func, policy or ToolPolicy())

    def fails(rt: Runtime, value: Any) -> None:
        raise ToolFailed(str(value))

    def written(rt: Runtime, value: str) -> str:
        rt.fs.write_text("guesses.txt", value)
        return rt.fs.read_text("guesses.txt")

    def set_and_get(rt: Runtime, value: str) -> Any:
        rt.set_var("guesses", value)
        return rt.get_var("guesses")

    text = ArgSpec("value", ArgType.STRING)
    add("echo", lambda rt, value: value, ANYTHING)
    add("nested", lambda rt, value: rt.call_tool("t.echo", [value]), ANYTHING)
    add("fails", fails, text)
    add("variable", set_and_get, text)
    add("file", written, text, policy=FILES)
    add("prints", lambda rt, value: rt.println(value), text)
    add("logs", lambda rt, value: rt.logger.info("%s", value), text)
    add(
        "model",
        lambda rt, value: rt.llm.ask([Turn("user", value)]).content,
        text,
        policy=ToolPolicy(capabilities=("model:use",)),
    )
    add("login", lambda rt, password: len(password), ArgSpec("password", ArgType.STRING, secret=True))
    add("asks", lambda rt: len(rt.prompt_user("PIN?", secret=True)))
    add("lent", lambda rt, name: len(rt.secret(name)), ArgSpec("name", ArgType.STRING), policy=OPEN)
    return found


class Repeating(LLM):
    """A model with scripted replies."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def ask(self, turns: Any) -> Turn:
        self.received.append(turns[-1].content)
        return Turn("assistant", turns[-1].content)


WITHOUT = ExecutionPolicy(grants=["fs:read:**", "fs:write:**", "model:use:*"])
"""A policy without the grants that read secrets."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    host = Host(
        sandbox_dir=tmp_path,
        stdin=io.StringIO(f"{PIN}\n"),
        stderr=io.StringIO(),
        llm=Repeating(),
        secrets={"pin": PIN, "key": LONG},
    )
    policy = ExecutionPolicy(grants=["secret:read:*", "fs:read:**", "fs:write:**", "model:use:*"])
    with Engine(host=host, policy=policy, toolsets=[tools()], plugins="none") as made:
        yield made


def call_as_json(session: Session, name: str, *args: Any) -> str:
    """Return everything that a model learns about a call, as JSON."""
    result = session.execute(ToolCall(name, list(args)))
    return json.dumps([result.value, str(result.error), [each.where for each in result.repairs]])


def logged(name: str) -> tuple[io.StringIO, logging.Logger]:
    """Return a logger and its output."""
    log = io.StringIO()
    logger = logging.getLogger(name)
    logger.handlers, logger.propagate = [logging.StreamHandler(log)], False
    logger.setLevel(logging.DEBUG)
    return log, logger


WAYS = ("t.echo", "t.nested", "t.fails", "t.variable", "t.file", "t.model")
"""The tools that return a value to the session that sent it."""


# Host secrets


@pytest.mark.parametrize(
    ("secret", "guessable"),
    [
        (PIN, True),
        ("production", True),
        ("a1-B" * 3 + "xyz", True),
        ("a1-B" * 4, False),
        ("0123456789012345678", True),
        ("correcthorsebatterystaple", True),
        ("correct horse battery staple", False),
        (b"\xff\xfe\xfd\xfc" * 8, True),
        (b"\xff\xfea1" * 4, False),
        (f"{PIN}\n{' ' * 20}\n", True),
        (f"{' ' * 20}a1-B", True),
        (f"{PIN}{' ' * 20}{PIN}", True),
        (f"{PIN}\n".encode() + b" " * 20, True),
        (f"{'7' * 30}\n", True),
    ],
)
def test_secret_can_be_guessed_if_it_is_short_or_has_one_character_class(secret: str | bytes, guessable: bool) -> None:
    assert is_guessable(secret) is guessable


@pytest.mark.parametrize("way", WAYS)
def test_list_of_guesses_does_not_reveal_the_host_pin(engine: Engine, way: str) -> None:
    """A session that may not read the PIN gets every candidate back unchanged."""
    with engine.session(policy=WITHOUT) as caller:
        assert MARK not in call_as_json(caller, way, GUESSES)


def test_all_six_digit_numbers_do_not_reveal_the_host_pin(engine: Engine) -> None:
    """One call sends them, as a string and as a list."""
    numbers = list(map(str, range(100_000, 1_000_000, 7)))
    assert PIN in [*numbers, PIN]
    with engine.session(policy=WITHOUT) as caller:
        assert MARK not in call_as_json(caller, "t.echo", " ".join([*numbers, PIN]))
        assert MARK not in call_as_json(caller, "t.echo", [*numbers, PIN])


@pytest.mark.parametrize("way", WAYS)
def test_host_pin_is_hidden_from_a_session_that_may_read_it(engine: Engine, way: str) -> None:
    """That session need not guess, and redaction prevents accidental leaks."""
    with engine.session() as caller:
        assert PIN not in call_as_json(caller, way, f"the PIN is {PIN}.")


def test_session_that_received_the_pin_hides_it_under_a_narrower_policy(engine: Engine) -> None:
    """The caller is the same."""
    with engine.session() as caller:
        caller.call("t.lent", ["pin"])
        within = caller.narrowed(WITHOUT)

        assert call_as_json(within, "t.echo", PIN) == json.dumps([MARK, "None", []])
    with engine.session(policy=WITHOUT) as other:
        assert call_as_json(other, "t.echo", PIN) == json.dumps([PIN, "None", []])


@pytest.mark.parametrize("way", WAYS)
def test_long_mixed_secret_is_hidden_from_every_session(engine: Engine, way: str) -> None:
    """It cannot be guessed, so hiding it reveals nothing."""
    for caller in (engine, engine.session(), engine.session(policy=WITHOUT)):
        assert LONG not in call_as_json(caller, way, f"the key is {LONG}.")


def test_environment_variable_is_hidden_where_it_may_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary word as its value stays visible in other sessions."""
    monkeypatch.setenv("NS_STAGE", "production")
    policy = ExecutionPolicy(grants=["env:read:NS_STAGE"])
    with Engine(policy=policy, toolsets=[tools()], plugins="none") as engine:
        reader, other = engine.session(), engine.session(policy=ExecutionPolicy())

        assert call_as_json(reader, "t.echo", "in production") == json.dumps([f"in {MARK}", "None", []])
        assert call_as_json(other, "t.echo", "in production") == json.dumps(["in production", "None", []])


def test_injected_secret_is_hidden_from_sessions_that_call_the_tool(tmp_path: Path) -> None:
    """Only these sessions can receive it."""
    base = tools()
    injected = base.filtered("t.login").prefixed("u").with_injected("u.t.login", password=Value(PIN))
    with Engine(toolsets=[base, injected], plugins="none") as engine:
        caller, other = engine.session(), engine.session()
        assert caller.call("t.echo", [PIN]) == PIN

        assert caller.call("u.t.login") == len(PIN)

        assert call_as_json(caller, "t.echo", PIN) == json.dumps([MARK, "None", []])
        assert call_as_json(other, "t.echo", PIN) == json.dumps([PIN, "None", []])


# Caller secrets


@pytest.mark.parametrize("password", [PIN, LONG], ids=["pin", "long"])
@pytest.mark.parametrize("way", WAYS)
def test_secret_argument_is_hidden_only_from_its_session(engine: Engine, way: str, password: str) -> None:
    """Other sessions cannot test guesses against it, and they lose no words of their own."""
    password = password[::-1]
    text = f"{GUESSES} {password} {GUESSES}"
    with engine.session(policy=WITHOUT) as caller, engine.session(policy=WITHOUT) as other:
        caller.call("t.login", [password])

        assert password not in call_as_json(caller, way, text)
        assert MARK not in call_as_json(other, way, text)
        assert MARK not in call_as_json(engine, way, text.replace(PIN, "-"))


def test_secret_argument_is_hidden_even_in_the_call_that_sent_it(engine: Engine) -> None:
    """Values that the caller wrote itself are no exception."""
    with engine.session() as caller:
        caller.call("t.login", ["hunter22"])

        assert call_as_json(caller, "t.echo", "hunter22") == json.dumps([MARK, "None", []])


def test_secret_argument_is_hidden_from_narrowed_sessions_of_its_sender(engine: Engine) -> None:
    """This works in both directions, because they belong to one caller."""
    with engine.session() as caller:
        within = caller.narrowed(WITHOUT)
        within.call("t.login", ["hunter22"])
        caller.call("t.login", ["hunter33"])

        assert call_as_json(caller, "t.echo", "hunter22 hunter33") == json.dumps([f"{MARK} {MARK}", "None", []])
        assert call_as_json(within, "t.echo", "hunter22 hunter33") == json.dumps([f"{MARK} {MARK}", "None", []])


def test_secret_sent_to_the_engine_is_hidden_from_its_sessions(engine: Engine) -> None:
    """Existing sessions are included, because all sessions are children of the engine."""
    before = engine.session(policy=WITHOUT)
    engine.call("t.login", ["hunter22"])

    assert call_as_json(before, "t.echo", "hunter22") == json.dumps([MARK, "None", []])
    assert call_as_json(engine.session(), "t.echo", "hunter22") == json.dumps([MARK, "None", []])


def test_secret_answer_is_hidden_only_from_the_session_that_was_asked(engine: Engine) -> None:
    """It is treated like a secret argument."""
    with engine.session(policy=WITHOUT) as caller, engine.session(policy=WITHOUT) as other:
        caller.call("t.asks")

        assert call_as_json(caller, "t.echo", PIN) == json.dumps([MARK, "None", []])
        assert call_as_json(other, "t.echo", PIN) == json.dumps([PIN, "None", []])


def test_all_outputs_of_a_session_hide_its_secrets(tmp_path: Path) -> None:
    """This covers streams, prompts, printed lines and models; each session has its own output."""
    model = Repeating()
    pages = [io.StringIO(), io.StringIO()]
    with Engine(host=Host(llm=model), toolsets=[tools()], plugins="none", policy=WITHOUT) as engine:
        first, second = (engine.session(host=Host(stdout=page)) for page in pages)
        first.call("t.login", ["hunter22"])
        for each in (first, second):
            each.call("t.prints", ["hunter22"])
            each.call("t.model", ["hunter22"])
        streamed = [list(each.stream(ToolCall("t.echo", ["hunter22"]))) for each in (first, second)]

    assert [page.getvalue() for page in pages] == [f"{MARK}\n", "hunter22\n"]
    assert model.received == [MARK, "hunter22"]
    assert streamed == [[MARK], ["hunter22"]]


def test_session_does_not_displace_secrets_of_another(engine: Engine) -> None:
    """The number of secrets that it sends does not matter."""
    with engine.session() as caller, engine.session() as flooding:
        caller.call("t.login", ["hunter22"])
        for number in range(1_100):
            flooding.call("t.login", [f"flood-{number}"])

        assert call_as_json(caller, "t.echo", "hunter22") == json.dumps([MARK, "None", []])


@pytest.mark.parametrize("source", [Value(PIN), Resolver(lambda context: PIN)], ids=["value", "resolver"])
@pytest.mark.parametrize("secret", [PIN, LONG])
def test_sent_secrets_do_not_displace_injected_secrets(source: Any, secret: str) -> None:
    """After as many secrets as a session retains, all sessions and the log still hide the injected one."""
    log, logger = logged("neuroscript.test.displaced")
    source = Value(secret) if isinstance(source, Value) else Resolver(lambda context: secret)
    found = tools().with_injected("t.login", password=source)
    found.add(
        ToolSpec("take", "t", [ArgSpec("keys", ArgType.SLICE_STRING, secret=True)], return_type=ArgType.INT),
        lambda rt, keys: len(keys),
    )
    with Engine(host=Host(logger=logger), toolsets=[found], plugins="none") as engine, engine.session() as caller:
        for each in (caller, engine):
            each.call("t.login")
        for each in (caller, engine):
            each.call("t.take", [[f"flood-{number}" for number in range(MAX_CALL_SECRETS)]])

        assert [call_as_json(each, "t.echo", secret) for each in (caller, engine)] == [
            json.dumps([MARK, "None", []])
        ] * 2
        engine.call("t.logs", [secret])
    assert log.getvalue() == f"{MARK}\n"


@pytest.mark.parametrize("secret", [PIN, LONG])
def test_resolved_secrets_do_not_displace_a_fixed_one(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver may return another value for each call; a fixed value stays valid."""
    monkeypatch.setattr("neuroscript.runtime.secret_set.MAX_CALL_SECRETS", 20)
    found = tools().with_injected("t.login", password=Value(secret))
    keys = ArgSpec("keys", ArgType.SLICE_STRING, secret=True)
    found.add(ToolSpec("take", "t", [keys], return_type=ArgType.INT), lambda rt, keys: len(keys))
    resolved = [f"{number:06}{'-' + secret[::-1] if secret == LONG else ''}" for number in range(21)]
    found = found.with_injected("t.take", keys=Resolver(lambda context: resolved))
    with Engine(toolsets=[found], plugins="none") as engine, engine.session() as caller:
        caller.call("t.login")
        assert caller.call("t.take") == 21

        assert call_as_json(caller, "t.echo", secret) == json.dumps([MARK, "None", []])


def test_session_with_many_secrets_reveals_none_of_another_in_the_log() -> None:
    """Each session displaces its own secrets first, even those that another session sent before."""
    log, logger = logged("neuroscript.test.fair")
    with (
        Engine(host=Host(logger=logger), toolsets=[tools()], plugins="none") as engine,
        engine.session() as caller,
        engine.session() as flooding,
    ):
        caller.call("t.login", ["hunter22"])
        flooding.call("t.login", ["hunter22"])
        for number in range(MAX_CALL_SECRETS + 100):
            flooding.call("t.login", [f"flood-{number}"])
        engine.call("t.logs", ["hunter22"])

    assert log.getvalue() == f"{MARK}\n"


def test_adding_a_secret_is_cheap_when_many_are_known() -> None:
    """A session with many secrets does not slow down its calls or the shared log with each new one."""
    known, fresh = SecretSet(), SecretSet()
    known.add_recent(f"flood-{number:04}-secret" for number in range(MAX_CALL_SECRETS))
    for secrets in (known, fresh):
        list(secrets.spans("any words"))

    def adding(secrets: SecretSet, name: str) -> None:
        for number in range(8):
            secrets.add_recent([f"{name}-{number}"])
            assert [*secrets.spans(f"{name}-{number}")]

    assert steps_in(lambda: adding(known, "one-more")) < 2 * steps_in(lambda: adding(fresh, "the-next"))


@pytest.mark.parametrize("seed", range(examples(20)))
def test_latest_secrets_are_hidden_after_any_additions_and_removals(seed: int) -> None:
    """This includes permanent secrets, with searches at any point in between."""
    draw, secrets = random.Random(seed), SecretSet()
    redactor, permanent, recent = Redactor(secrets), set[str](), dict[str, None]()
    for number in range(400):
        name = f"canary-{draw.randrange(number + 1):04}"
        if draw.random() < 0.02:
            secrets.add(name)
            permanent.add(name)
        else:
            secrets.add_recent([name])
            recent.pop(name, None)
            recent[name] = None
        if draw.random() < 0.3:
            text = " ".join(recent | dict.fromkeys(permanent))
            assert redactor.text(text) == " ".join([MARK] * len(recent | dict.fromkeys(permanent)))
    assert redactor.text("canary-9999") == "canary-9999"


# Records of all sessions


def test_audit_log_and_recording_hide_every_known_secret(tmp_path: Path) -> None:
    """It does not matter which session knows the secret or outputs it."""
    audit, recording = tmp_path / "audit.jsonl", tmp_path / "recording.jsonl"
    log, logger = logged("neuroscript.test.engine")
    host = Host(logger=logger, secrets={"pin": PIN, "key": LONG})
    policy = ExecutionPolicy(grants=["secret:read:*"])
    with Engine(
        host=host,
        policy=policy,
        toolsets=[tools()],
        plugins="none",
        audit=FileAudit(audit),
        recording=Recording(recording),
    ) as engine:
        caller, other = engine.session(), engine.session(policy=ExecutionPolicy())
        caller.call("t.login", ["hunter22"])
        for word in ("hunter22", PIN, LONG):
            other.call("t.logs", [f"says {word}"])
            other.execute(ToolCall("t.echo", [word]))
            other.execute(ToolCall("t.fails", [word]))
            other.execute(ToolCall(f"t.{word}", []))
            other.execute(ToolCall("t.echo", {"value": 1, word: 2}))

    assert log.getvalue() == f"says {MARK}\n" * 3
    kept = audit.read_text() + recording.read_text()
    assert [word for word in ("hunter22", PIN, LONG) if word in kept] == []


def test_invalid_resumed_call_shows_no_secret(engine: Engine) -> None:
    """Its arguments are bound again before its answer counts."""
    pending = PendingApproval(ToolCall("t.echo", {LONG: 1}), "fingerprint", "policy", engine.id, "digest")
    result = engine.resume(pending, Approval.approve())

    assert str(result.error) == (
        f"t.echo: value: expected a JSON-like value, got nothing; "
        f"{MARK}: expected only value, got an unknown name of type int"
    )


def test_session_logger_cannot_be_used_to_guess(engine: Engine) -> None:
    """It hides what the session hides."""
    log, logger = logged("neuroscript.test.session")
    with engine.session(policy=WITHOUT, host=Host(logger=logger)) as caller:
        caller.call("t.logs", [GUESSES])

    assert log.getvalue() == f"{GUESSES}\n"


def test_repeated_guesses_in_random_order_change_nothing(engine: Engine) -> None:
    """One of two sessions knows a password: the other gets back exactly what it sends."""
    chance = random.Random(3)
    with engine.session(policy=WITHOUT) as caller, engine.session(policy=WITHOUT) as other:
        caller.call("t.login", ["hunter22"])
        for _ in range(20):
            guesses = [f"hunter{number}" for number in chance.sample(range(10, 100), 90)]
            for way in ("t.echo", "t.variable", "t.file"):
                sent = guesses if way == "t.echo" else " ".join(guesses)
                assert json.loads(call_as_json(other, way, sent))[0] == sent
