"""Tracebacks of failed tools: logged once for the host, and never shown to a model."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Host,
    LLMError,
    PluginError,
    PolicyError,
    Resolver,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
    hookimpl,
)
from neuroscript.io.tracebacks import MAX_LINE_CHARS, MAX_LINES, error_summary, traceback_text
from neuroscript.llm import converse
from neuroscript.workflow import Node, Plan, run

PRICES = {"tea": 2.0}


def price(rt: Runtime, name: str) -> float:
    local = f"local of {name}"
    return PRICES[name] + len(local)


async def async_price(rt: Runtime, name: str) -> float:
    return PRICES[name]


def prices(rt: Runtime, name: str) -> Iterator[float]:
    yield 1.0
    yield PRICES[name]


def outer(rt: Runtime, name: str) -> Any:
    return rt.call_tool("t.price", [name])


def expected(rt: Runtime, name: str) -> None:
    try:
        PRICES[name]
    except KeyError as error:
        raise ToolFailed("no such tea", retry="model") from error


def refused(rt: Runtime, name: str) -> None:
    rt.require("net:read:example.com")


def sandboxed(rt: Runtime, name: str) -> str:
    return rt.fs.read_text("missing.txt")


def exits(rt: Runtime, name: str) -> None:
    raise SystemExit(name)


NAME = ArgSpec("name", ArgType.STRING)


def tools() -> Toolset:
    found = Toolset("t")
    for func in (price, async_price, outer, expected, refused, exits):
        found.add(ToolSpec(func.__name__, "t", (NAME,), return_type=ArgType.ANY, return_nullable=True), func)
    found.add(ToolSpec("prices", "t", (NAME,), return_type=ArgType.FLOAT, stream=True), prices)
    reads = ToolPolicy(capabilities=("fs:read:**",))
    found.add(ToolSpec("sandboxed", "t", (NAME,), return_type=ArgType.STRING), sandboxed, reads)
    waits = ToolPolicy(timeout=30.0)
    found.add(ToolSpec("timed", "t", (NAME,), return_type=ArgType.FLOAT), price, waits)
    return found


class Log(logging.Handler):
    """The output of the host's logger."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def tracebacks(self) -> list[str]:
        """The messages of the logger ``traceback``."""
        return [each.getMessage() for each in self.records if each.name.endswith(".traceback")]


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Log:
    handler = Log()
    logger = logging.getLogger("neuroscript.test.tracebacks")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    return handler


def host(**parts: Any) -> Host:
    return Host(logger=logging.getLogger("neuroscript.test.tracebacks"), **parts)


def line_of(text: str) -> int:
    """Return the number of the line of this file that contains *text*."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


WAYS: dict[str, Callable[[Engine, str, str], Any]] = {
    "call": lambda engine, name, value: engine.call(name, [value]),
    "call_named": lambda engine, name, value: engine.call_named(name, {"name": value}),
    "with a timeout": lambda engine, name, value: engine.call(name, [value], timeout=30),
    "acall": lambda engine, name, value: asyncio.run(engine.acall(name, [value])),
    "execute": lambda engine, name, value: engine.execute(ToolCall(name, {"name": value})),
    "aexecute": lambda engine, name, value: asyncio.run(engine.aexecute(ToolCall(name, {"name": value}))),
    "stream": lambda engine, name, value: list(engine.stream(name, [value])),
}


def failing(way: str, name: str, value: str, **options: Any) -> Any:
    """Return the error of a call."""
    with Engine(host=host(), toolsets=[tools()], plugins="none", **options) as engine:
        try:
            return WAYS[way](engine, name, value).error
        except CallError as error:
            return error


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["t.price", "t.timed"])
def test_failure_is_logged_once_with_the_frames_of_its_author(way: str, name: str, log: Log) -> None:
    """Every way to call the tool logs it; the caller sees only the type."""
    error = failing(way, name, "coffee")

    assert str(error) == f"{name}: the tool failed (KeyError)"
    assert log.tracebacks == [
        f"{name} failed\n"
        "Traceback (most recent call last):\n"
        f'  File "{__file__}", line {line_of("return PRICES[name] + len(local)")}, in price\n'
        "    return PRICES[name] + len(local)\n"
        "           ~~~~~~^^^^^^\n"
        "KeyError: 'coffee'"
    ]
    (record,) = log.records
    assert (record.name, record.levelname) == ("neuroscript.test.tracebacks.traceback", "ERROR")
    assert (record.exc_info, record.exc_text, record.stack_info) == (None, None, None)


@pytest.mark.parametrize("name", ["t.async_price", "t.prices"])
@pytest.mark.parametrize("way", ["call", "acall", "execute", "stream"])
def test_coroutines_and_streams_are_logged_too(way: str, name: str, log: Log) -> None:
    failing(way, name, "coffee")

    (text,) = log.tracebacks
    assert text.startswith(f'{name} failed\nTraceback (most recent call last):\n  File "{__file__}", line ')
    assert text.endswith("KeyError: 'coffee'")


def test_nested_failure_is_logged_where_it_happened(log: Log) -> None:
    """The outer tools do not log it again, at any log level."""
    logging.getLogger("neuroscript.test.tracebacks").setLevel(logging.DEBUG)

    error = failing("call", "t.outer", "coffee")

    assert str(error) == "t.outer: its call of t.price failed (tool.failed)"
    assert error.is_logged
    assert [text.splitlines()[0] for text in log.tracebacks] == ["t.price failed"]


@pytest.mark.parametrize("name", ["t.expected", "t.refused", "t.sandboxed"])
def test_expected_failure_is_not_logged_as_an_error(name: str, log: Log) -> None:
    """This covers deliberate errors of a tool, refusals and missing files."""
    failing("call", name, "coffee", policy=ExecutionPolicy(grants=["fs:read:**"]))

    assert log.tracebacks == []
    assert [each.levelname for each in log.records] == (["INFO"] if name == "t.refused" else [])


def test_cause_of_an_expected_failure_is_logged_at_debug_level(log: Log) -> None:
    logging.getLogger("neuroscript.test.tracebacks").setLevel(logging.DEBUG)

    failing("call", "t.expected", "coffee")

    (record,) = log.records
    assert record.levelname == "DEBUG"
    assert record.getMessage().endswith("KeyError: 'coffee'")


def test_tool_that_exits_is_logged(log: Log) -> None:
    failing("call", "t.exits", "now")

    assert log.tracebacks[0].endswith("SystemExit: now")


def interrupts(rt: Runtime) -> None:
    raise KeyboardInterrupt("of a tool")


async def async_interrupts(rt: Runtime) -> None:
    raise KeyboardInterrupt("of a tool")


@pytest.mark.parametrize(("func", "timeout"), [(interrupts, 30), (async_interrupts, None), (async_interrupts, 30)])
def test_interrupt_raised_by_a_tool_on_another_thread_is_logged(func: Any, timeout: Any, log: Log) -> None:
    """It is a failure of the tool, because the user did not interrupt the process."""
    found = Toolset("i")
    found.add(ToolSpec("t", "i"), func)
    with Engine(host=host(), toolsets=[found], plugins="none") as engine:
        error = engine.execute(ToolCall("i.t"), timeout=timeout).error

    assert error is not None and (str(error), error.is_logged) == ("i.t: the tool failed (KeyboardInterrupt)", True)
    (text,) = log.tracebacks
    assert text.startswith("i.t failed\n") and text.endswith("KeyboardInterrupt: of a tool")
    assert [each.levelname for each in log.records] == ["ERROR"]


def test_error_with_an_unreadable_traceback_is_logged_by_its_type(log: Log) -> None:
    """The code of an exception class may fail while it is read."""

    class Odd(Exception):
        @property
        def __cause__(self) -> Any:
            raise ValueError

    def fails(rt: Runtime) -> None:
        raise Odd

    found = Toolset("o")
    found.add(ToolSpec("t", "o"), fails)
    with Engine(host=host(), toolsets=[found], plugins="none") as engine:
        error = engine.execute(ToolCall("o.t")).error

    assert str(error) == "o.t: the tool failed (Odd)"
    assert log.tracebacks == ["o.t failed\nOdd (its traceback cannot be read)"]


def test_arguments_and_local_variables_are_not_logged(log: Log) -> None:
    """The one exception is the message of the exception, which the author wrote."""
    with Engine(host=host(), toolsets=[tools()], plugins="none") as engine, suppress(CallError):
        engine.call("t.price", ["coffee"])

    text = log.tracebacks[0].replace("KeyError: 'coffee'", "")
    assert "coffee" not in text and "local of" not in text


def test_secrets_are_not_logged(log: Log) -> None:
    """Messages of the error and its causes are redacted before lines are cut."""
    secret = "kL9-x2Qm7/vT4pZ0"
    found = Toolset("s")

    def leaks(rt: Runtime) -> None:
        try:
            raise ValueError("x" * (MAX_LINE_CHARS - 20) + secret)
        except ValueError as error:
            raise RuntimeError(f"with {secret}") from error

    found.add(ToolSpec("leaks", "s"), leaks)
    with Engine(host=host(secrets={"key": secret}), toolsets=[found], plugins="none") as engine:
        engine.execute(ToolCall("s.leaks"))

    (text,) = log.tracebacks
    assert text.count("[secret]") == 2
    assert not any(secret[:length] in text for length in range(4, len(secret)))


def test_no_model_sees_a_traceback(log: Log) -> None:
    """Neither results nor the turns of a conversation contain it."""
    received: list[Any] = []

    class Model:
        def ask(self, turns: Any) -> Turn:
            return self.ask_with_tools(turns, [])

        def ask_with_tools(self, turns: Any, tools: Any) -> Turn:
            received.append(turns)
            if len(received) == 1:
                return Turn("assistant", tool_calls=(ToolCall("t.price", {"name": "coffee"}, id="1"),))
            return Turn("assistant", "sorry")

    model: Any = Model()
    with Engine(host=host(), toolsets=[tools()], plugins="none") as engine:
        converse(engine, "What does coffee cost?", model=model)
        result = engine.execute(ToolCall("t.price", {"name": "coffee"}))

    assert len(log.tracebacks) == 2
    assert "test_tracebacks" not in f"{received!r} {result!r} {vars(result.error)!r}"


@pytest.mark.parametrize("logger", [None, "broken", "silent"])
def test_broken_log_changes_nothing(logger: str | None) -> None:
    class Broken:
        def error(self, *args: Any) -> None:
            raise OSError("disk full")

        debug = info = warning = error

    class Silent(Broken):
        def isEnabledFor(self, level: int) -> bool:
            return False

    found: Any = {"broken": Broken(), "silent": Silent()}.get(logger or "")
    with Engine(host=Host(logger=found), toolsets=[tools()], plugins="none") as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("t.price", ["coffee"])

    assert str(caught.value) == "t.price: the tool failed (KeyError)"
    assert isinstance(caught.value.__cause__, KeyError)


# Host code


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError("of the host")


class Observer:
    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        raise KeyError("of the host")


class Decider:
    @hookimpl
    def neuroscript_decide(self) -> None:
        raise KeyError("of the host")


class Sink:
    def write(self, record: CallRecord) -> None:
        raise KeyError("of the host")

    def close(self) -> None:
        pass


def approved() -> Toolset:
    found = Toolset("a")
    policy = ToolPolicy(requires_approval=True)
    found.add(ToolSpec("t", "a", return_type=ArgType.NIL), lambda rt: None, policy)
    return found


@pytest.mark.parametrize(
    ("options", "what", "refusal"),
    [
        ({"policy": ExecutionPolicy(approver=raising)}, "a check of a.t", ("policy.check_failed", "host")),
        (
            {"policy": ExecutionPolicy(preapproved=["a.t"]), "hooks": [Decider()]},
            "a check of a.t",
            ("policy.check_failed", "host"),
        ),
        (
            {"policy": ExecutionPolicy(preapproved=["a.t"]), "audit": Sink(), "audit_required": "all"},
            "the audit",
            ("audit.unavailable", "host"),
        ),
        ({"policy": ExecutionPolicy(preapproved=["a.t"]), "audit": Sink()}, "the audit", None),
        (
            {"policy": ExecutionPolicy(preapproved=["a.t"]), "hooks": [Observer()]},
            "the hook neuroscript_call_finished of the plugin Observer",
            None,
        ),
    ],
    ids=["approver", "hook that decides", "audit", "audit that may fail", "hook that observes"],
)
def test_failing_host_code_is_logged(options: Any, what: str, refusal: Any, log: Log) -> None:
    """This covers approvers, hooks and sinks, whether they refuse a call or only observe it."""
    with Engine(host=host(), toolsets=[approved()], plugins="none", **options) as engine:
        result = engine.execute(ToolCall("a.t"))

    assert ((result.error.code, result.error.retry) if result.error else None) == refusal
    assert log.tracebacks[0].splitlines()[0] == f"{what} failed"
    assert log.tracebacks[0].endswith("KeyError: 'of the host'")
    assert len(log.tracebacks) == 1


def test_failing_resolver_is_logged(log: Log) -> None:
    found = tools().with_injected("t.price", name=Resolver(raising))
    with Engine(host=host(), toolsets=[found], plugins="none") as engine:
        result = engine.execute(ToolCall("t.price"))

    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("inject.failed", "host")
    assert [text.splitlines()[0] for text in log.tracebacks] == ["t.price failed"]
    assert log.tracebacks[0].endswith("KeyError: 'of the host'")


def test_failing_model_and_listener_are_logged(log: Log) -> None:
    class Broken:
        ask = ask_with_tools = raising

    model: Any = Broken()
    with Engine(host=host(), toolsets=[tools()], plugins="none") as engine, pytest.raises(LLMError):
        converse(engine, "hello", model=model, on_event=raising)

    assert {text.splitlines()[0] for text in log.tracebacks} >= {"the model failed"}
    assert all(text.endswith("KeyError: 'of the host'") for text in log.tracebacks)


def test_failing_plan_observer_is_logged(log: Log) -> None:
    plan = Plan(nodes=(Node(name="n", tool="a.t"),))
    policy = ExecutionPolicy(preapproved=["a.t"])
    with Engine(host=host(), toolsets=[approved()], plugins="none", policy=policy) as engine:
        assert run(engine, plan, watch=raising).status == "succeeded"

    assert {text.splitlines()[0] for text in log.tracebacks} == {"the observer of the plan failed"}


# Plugins


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import acme_missing", "ModuleNotFoundError: No module named 'acme_missing' (plugin.py, line 1)"),
        ("\nraise RuntimeError('please set ACME_KEY')", "RuntimeError: please set ACME_KEY (plugin.py, line 2)"),
        ("def register(registrar):\n    1 / 0", "ZeroDivisionError: division by zero (plugin.py, line 2)"),
        ("def broken(", "SyntaxError: '(' was never closed (plugin.py, line 1)"),
        ("raise SystemExit(3)", "SystemExit: 3 (plugin.py, line 1)"),
        ("raise ValueError('a\\x1b[2J\\n' + 'b' * 500)", f"ValueError: a\\x1b[2J {'b' * 190}… (plugin.py, line 1)"),
    ],
    ids=["missing module", "message", "in register", "syntax", "exit", "long"],
)
def test_plugin_that_cannot_be_loaded_gives_the_reason(source: str, reason: str, tmp_path: Path) -> None:
    """The log contains the message of its author, the file and the line."""
    path = tmp_path / "plugin.py"
    path.write_text(source)
    with Engine(plugins="none") as engine, pytest.raises(PluginError) as caught:
        engine.load_plugin(path)

    assert str(caught.value) == f"{path}: cannot be loaded: {reason}"


# Format


def test_long_traceback_is_cut_in_the_middle() -> None:
    """The first and last lines remain; long lines end with an ellipsis."""
    try:
        raise ValueError("\n".join(f"line {number} {'x' * 1000}" for number in range(1000)))
    except ValueError as error:
        lines = traceback_text(error).split("\n")

    assert len(lines) == MAX_LINES + 1
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[20] == "  ... 803 lines left out ..."
    assert lines[-1].startswith("line 999 ")
    assert max(map(len, lines)) == MAX_LINE_CHARS + 1


def test_control_characters_are_escaped() -> None:
    try:
        raise ValueError("a\x1b[2J\rb")
    except ValueError as error:
        assert traceback_text(error).endswith("ValueError: a\\x1b[2J\\rb")


def test_error_that_cannot_be_formatted_is_logged_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_summary(Mute()) == "Mute"
    assert traceback_text(Mute()).endswith("Mute: <exception str() failed>")


def test_endless_recursion_has_a_short_traceback(log: Log) -> None:
    found = Toolset("r")

    def recurses(rt: Runtime) -> None:
        recurses(rt)

    found.add(ToolSpec("t", "r"), recurses)
    with Engine(host=host(), toolsets=[found], plugins="none") as engine:
        engine.execute(ToolCall("r.t"))

    (text,) = log.tracebacks
    assert "more times]" in text and len(text.splitlines()) < 30


def test_threads_log_complete_messages(log: Log) -> None:
    with Engine(host=host(), toolsets=[tools()], plugins="none") as engine:

        def fails() -> None:
            for _ in range(20):
                engine.execute(ToolCall("t.price", {"name": "coffee"}))

        threads = [threading.Thread(target=fails) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert len(log.tracebacks) == 80 and len(set(log.tracebacks)) == 1


def test_results_of_failed_calls_are_unchanged(log: Log) -> None:
    """Stored data of a failed call contains no traceback."""
    from neuroscript import result_to_data

    with Engine(host=host(), toolsets=[tools()], plugins="none") as engine:
        data = result_to_data(engine.execute(ToolCall("t.price", {"name": "coffee"}, id="7")))

    data.pop("seconds", None)
    assert json.loads(json.dumps(data))["error"] == {
        "code": "tool.failed",
        "number": 21,
        "retry": "never",
        "message": "t.price: the tool failed (KeyError)",
    }


def test_failed_check_is_denied_with_a_clear_message(log: Log) -> None:
    with Engine(host=host(), toolsets=[approved()], plugins="none", policy=ExecutionPolicy(approver=raising)) as engine:
        with pytest.raises(PolicyError) as caught:
            engine.call("a.t")

    assert str(caught.value) == "a.t: denied because a check failed (approver, KeyError)"
    assert (caught.value.code, caught.value.retry) == ("policy.check_failed", "host")
