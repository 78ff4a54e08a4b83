"""The entry points of the engine: lookup, refusals, sync and async calls, and closing."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import pickle
import threading
import time
from typing import Any

import attrs
import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    CallTimeout,
    CoercionError,
    Engine,
    PolicyError,
    RegistryError,
    Repair,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    result_to_data,
    tool,
)

WAITS = ToolPolicy(effects=("reads",))


def tools_of(**functions: Any) -> Toolset:
    """Return a toolset ``g`` read from the annotations of these functions."""
    tools = Toolset("g")
    for name, func in functions.items():
        tools.tool(name=name)(func)
    return tools


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def engine_of(tools: Toolset | None = None, **options: Any) -> Engine:
    """Return an engine with these tools."""
    return Engine(toolsets=[tools or tools_of(add=add)], plugins="none", **options)


@pytest.mark.parametrize("name", ["g.add", "G.Add", "tool.g.add", "TOOL.tool.G.ADD"])
def test_tool_is_found_under_every_spelling_of_its_name(name: str) -> None:
    """Case and a leading ``tool.`` do not matter."""
    engine = engine_of()

    assert [engine.call(name, (1, 2)), engine.call_named(name, {"a": 1, "b": 2})] == [3.0, 3.0]
    assert engine.call(name, [1, 2]) == 3.0, "the second time it is remembered"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.ad", "unknown tool g.ad; did you mean g.add?"),
        ("g__add", "unknown tool g__add; did you mean g.add?"),
        ("x" * 100, f"unknown tool {'x' * 64}…"),
        ("\x1b[2J", "unknown tool \\x1b[2J"),
        (5, "unknown tool <int>"),
        (["g.add"], "unknown tool <list>"),
    ],
)
def test_unknown_tool_is_reported_with_similar_names(name: Any, text: str) -> None:
    """Any type of name is handled."""
    with pytest.raises(ToolNotFound) as caught:
        engine_of().call(name)

    assert text == str(caught.value)
    assert ("tool.not_found", 3, "model") == (caught.value.code, caught.value.number, caught.value.retry)


class Telling(str):
    """A string that records hashing and comparisons."""

    def __hash__(self) -> int:
        raise AssertionError("hashed")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_name_of_a_str_subclass_runs_no_code() -> None:
    """It is read through the slots of the base type, like an argument."""
    assert engine_of().call(Telling("g.add"), (1, 2)) == 3.0


def test_refused_call_is_refused_before_its_arguments_are_checked() -> None:
    """The default policy allows tools without needs; a refusal reveals nothing about arguments and suggests nothing."""
    tools = Toolset("g")
    policies = {
        "trust": ToolPolicy(requires_trust=True, capabilities=("fs:read",), requires_approval=True),
        "approval": ToolPolicy(requires_approval=True),
    }
    for name, policy in policies.items():
        tools.add(ToolSpec(name, "g", (ArgSpec("path", ArgType.STRING),)), lambda rt, path: path, policy)
    engine = engine_of(tools)
    texts = {
        "trust": "g.trust: requires a trusted host",
        "approval": "g.approval: requires approval, but there is no approver",
    }

    for name, text in texts.items():
        with pytest.raises(PolicyError) as caught:
            engine.call(f"g.{name}", (1, 2, 3))

        assert text == str(caught.value)
        assert (f"policy.{name}", 1003, "host") == (caught.value.code, caught.value.number, caught.value.retry)
    with pytest.raises(ToolNotFound) as missing:
        engine.call("g.trus")
    assert missing.value.near == ()


def test_toolset_with_a_name_conflict_is_refused_as_a_whole() -> None:
    """None of its tools is registered."""
    engine = engine_of()
    second = tools_of(new=add, add=add)

    with pytest.raises(RegistryError) as caught:
        engine.register(second)

    assert "already registered: g.add" == str(caught.value)
    assert [*engine.tools] == ["g.add"]


def test_single_tool_can_be_registered_later() -> None:
    """The mapping of tools is a read-only snapshot."""
    engine = engine_of()
    before = engine.tools
    engine.register(tools_of(later=add).tools[0])

    assert [*before] == ["g.add"]
    assert [*engine.tools] == ["g.add", "g.later"]
    assert engine.call("g.later", (1, 1)) == 2.0
    with pytest.raises(TypeError):
        engine.tools["g.x"] = engine.tools["g.add"]  # type: ignore[index]


def test_remembered_spellings_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may spell a name in thousands of ways."""
    monkeypatch.setattr("neuroscript.engine.session.MAX_CACHED_SPELLINGS", 50)
    engine = engine_of()

    for length in range(200):
        assert engine.call("tool." * length + "g.add", (1, 2)) == 3.0

    assert len(engine._positional) <= 60


def test_two_engines_share_nothing() -> None:
    """They share neither tools nor variables."""

    def put(rt: Runtime, value: int) -> None:
        rt.set_var("x", value)

    def get(rt: Runtime) -> int | None:
        return rt.get_var("x")

    one, two = engine_of(tools_of(put=put, get=get)), engine_of(tools_of(put=put, get=get))
    one.call("g.put", (1,))

    assert [one.call("g.get"), two.call("g.get")] == [1, None]


def test_invalid_engine_option_is_a_spec_error() -> None:
    for options, text in (
        ({"mode": "loose"}, "Engine: mode must be 'lax' or 'strict'"),
        ({"plugins": "some"}, "Engine: plugins must be 'installed', 'none' or a collection of names of distributions"),
    ):
        with pytest.raises(SpecError) as caught:
            Engine(**options)  # type: ignore[arg-type]

        assert text == str(caught.value)


def test_strict_mode_accepts_exact_types_only() -> None:
    """It is meant for hosts whose callers are programs."""
    with pytest.raises(ArgumentError) as caught:
        engine_of(mode="strict").call("g.add", ("1", 2))

    assert [problem.code for problem in caught.value.problems] == ["coercion.type", "coercion.type"]


# Variables and output


def test_variables_are_copied_in_and_out() -> None:
    """A tool that changes its copy does not change the variable."""
    seen: list[Any] = []

    def use(rt: Runtime) -> None:
        mine = {"list": [1]}
        rt.set_var("v", mine)
        mine["list"].append(2)
        rt.get_var("v")["list"].append(3)
        seen.append(rt.get_var("v"))
        seen.append(rt.get_var("nothing", "default"))
        seen.append(rt.update_var("v", lambda old: old["list"] + [4]))

    engine_of(tools_of(use=use)).call("g.use")

    assert seen == [{"list": [1]}, "default", [1, 4]]


def test_variable_holds_plain_values_only() -> None:
    """An instance of another class is refused, and the tool fails."""

    def use(rt: Runtime) -> None:
        rt.set_var("v", object())

    with pytest.raises(ToolFailed) as caught:
        engine_of(tools_of(use=use)).call("g.use")

    assert isinstance(caught.value.__cause__, CoercionError)


def test_update_var_is_atomic_under_threads() -> None:
    """A losing thread repeats its update."""

    def count(rt: Runtime) -> None:
        rt.update_var("n", lambda old: (old or 0) + 1)

    engine = engine_of(tools_of(count=count))
    threads = [threading.Thread(target=lambda: [engine.call("g.count") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert engine.memory.variables.get("n", 0) == 4000


def test_println_writes_one_escaped_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Line breaks and terminal sequences in it have no effect."""

    def say(rt: Runtime) -> None:
        rt.println("two\nlines", 5, None, "\x1b[2J")

    engine_of(tools_of(say=say)).call("g.say")

    assert capsys.readouterr().out == "two\\nlines 5 None \\x1b[2J\n"


# execute


def test_execute_reports_repairs() -> None:
    """Each repair gives types and a path."""

    def total(xs: list[int], scale: float = 1.0, note: str | None = None) -> float:
        return sum(xs) * scale

    engine = engine_of(tools_of(total=total))
    result = engine.execute(ToolCall("g__total", '{"xs": [1, "2", 3.0], "scale": 2}', id="call-1"))

    assert result == attrs.evolve(
        ToolResult("call-1", "g.total", 12.0),
        repairs=(Repair("xs[1]", "str", "int"), Repair("xs[2]", "float", "int"), Repair("scale", "int", "float")),
        seconds=result.seconds,
    )
    assert result.ok
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("arguments", "repairs"),
    [
        (("1", 2), [("a", "str", "float")]),
        ([1.0, None], []),
        ({"a": 1.0, "b": "null"}, [("b", "str", "None")]),
        ('["1"]', [("a", "str", "float")]),
        ({"a": 1.0, "m": '{"k": 1}'}, [("m", "str", "dict")]),
        ({"a": 1.0, "m": {"k": "1"}}, [("m['k']", "str", "int")]),
        ({"a": 1.0, "more": ["1", 2]}, [("more[0]", "str", "int")]),
        ((1.0, None, None, "1", 2.0), [("more[0]", "str", "int"), ("more[1]", "float", "int")]),
    ],
)
def test_each_conversion_is_a_repair(arguments: Any, repairs: list[tuple[str, str, str]]) -> None:
    """This covers positional, named, nested, JSON and variadic values; a correct value produces none."""
    tools = Toolset("g")
    args = (
        ArgSpec("a", ArgType.FLOAT),
        ArgSpec("b", ArgType.INT, required=False),
        ArgSpec("m", ArgType.MAP_STRING_INT, required=False),
        ArgSpec("more", ArgType.INT, required=False),
    )
    tools.add(ToolSpec("t", "g", args, variadic=True), lambda rt, *values: None)

    result = engine_of(tools).execute(ToolCall("g.t", arguments))

    assert result.error is None
    assert repairs == [(repair.where, repair.got, repair.became) for repair in result.repairs]


@pytest.mark.parametrize(
    ("call", "code", "retry", "text"),
    [
        (ToolCall("g.nothing"), "tool.not_found", "model", "unknown tool g.nothing"),
        (ToolCall("g.add", "{"), "arg.not_json", "model",
         "g.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)"),
        (ToolCall("g.add", '{"a": 1, "a": 2}'), "arg.duplicate_key", "model",
         "g.add: expected arguments as JSON, got str (the JSON text contains a duplicate key)"),
        (ToolCall("g.add", "5"), "arg.type", "model", "g.add: expected a JSON object or array of arguments, got int"),
        (ToolCall("g.add", 5), "arg.type", "model", "g.add: expected a list or tuple of arguments, got int"),  # type: ignore[arg-type]
        (ToolCall("g.add", ""), "arg.missing", "model",
         "g.add: a: expected float, got nothing; b: expected float, got nothing"),
        (ToolCall(None), "tool.not_found", "model", "unknown tool <None>"),  # type: ignore[arg-type]
        (ToolCall("g.fail"), "tool.failed", "never", "g.fail: the tool failed (ZeroDivisionError)"),
    ],
)  # fmt: skip
def test_execute_never_raises_a_call_error(call: ToolCall, code: str, retry: str, text: str) -> None:
    """A model loop receives the error as data."""

    def fail() -> None:
        1 / 0  # noqa: B018

    result = engine_of(tools_of(add=add, fail=fail)).execute(call)

    assert result.error is not None
    assert (code, retry, text) == (result.error.code, result.error.retry, str(result.error))
    assert json.loads(json.dumps(result_to_data(result)))["error"]["message"] == text


def test_result_is_written_as_plain_data() -> None:
    """Bytes become base64, keys become strings, and an error includes its problems."""
    good = ToolResult(
        "1", "g.t", {"b": b"hi", "n": [1.0], 7: None}, repairs=(Repair("a", "str", "int"),), seconds=0.1234567
    )
    bad = engine_of().execute(ToolCall("g.add", ("x",), id="2"))

    assert result_to_data(good) == {
        "id": "1",
        "tool": "g.t",
        "ok": True,
        "value": {"b": {"$base64": "aGk="}, "n": [1.0], "7": None},
        "repairs": [{"where": "a", "got": "str", "became": "int"}],
        "seconds": 0.123457,
    }
    assert result_to_data(bad)["error"] == {
        "code": "arg.invalid",
        "number": 4,
        "retry": "model",
        "message": "g.add: a: expected float, got str (a string must be a decimal number, such as -1.5e3); "
        "b: expected float, got nothing",
        "problems": [
            {
                "where": "a",
                "code": "coercion.format",
                "expected": "float",
                "got": "str",
                "hint": "a string must be a decimal number, such as -1.5e3",
            },
            {"where": "b", "code": "arg.missing", "expected": "float", "got": "nothing", "hint": ""},
        ],
    }


def test_errors_can_be_pickled() -> None:
    """The copy has the same message and attributes."""
    engine = engine_of()
    for call in (ToolCall("g.add", ("x",)), ToolCall("g.nothing")):
        error = engine.execute(call).error

        copy = pickle.loads(pickle.dumps(error))

        assert (type(copy), repr(copy)) == (type(error), repr(error))
        assert (copy.code, copy.retry) == (error.code, error.retry)  # type: ignore[union-attr]
        assert copy.retry == "model"


# Sync and async


async def slow(rt: Runtime, a: int) -> int:
    """Wait a moment."""
    await asyncio.sleep(0.01)
    return a


def test_coroutine_tool_is_called_from_sync_code() -> None:
    """It runs on the engine's own loop, which starts on demand."""
    with engine_of(tools_of(slow=slow)) as engine:
        assert [engine.call("g.slow", ("1",)), engine.call_named("g.slow", {"a": 2})] == [1, 2]
        assert engine.execute(ToolCall("g.slow", {"a": "3"})).value == 3


def test_coroutine_tool_is_called_from_sync_code_inside_a_running_loop() -> None:
    """The call blocks the caller's loop but succeeds."""

    async def main() -> int:
        result: int = engine.call("g.slow", (5,))
        return result

    with engine_of(tools_of(slow=slow)) as engine:
        assert asyncio.run(main()) == 5


def test_coroutine_tool_may_call_another_one() -> None:
    """The nested calls start on the engine's loop, several levels deep."""

    async def outer(rt: Runtime, depth: int) -> int:
        await asyncio.sleep(0)
        inner: int = rt.call_tool("g.outer", (depth - 1,)) if depth else 0
        return inner + 1

    with engine_of(tools_of(outer=outer)) as engine:
        assert engine.call("g.outer", (5,)) == 6
        assert asyncio.run(engine.acall("g.outer", (5,))) == 6


def test_coroutine_tool_may_reach_another_one_through_a_thread() -> None:
    """The engine's loop is blocked while its thread waits, so the inner call must not need it."""
    tools = tools_of(slow=slow)

    @tools.tool(policy=ToolPolicy(timeout=5))
    def between(rt: Runtime) -> int:
        """Call a coroutine tool from a thread of one's own."""
        result: int = rt.call_tool("g.slow", (7,))
        return result

    @tools.tool()
    async def outer(rt: Runtime) -> int:
        """Call a tool that has a time limit."""
        await asyncio.sleep(0)
        result: int = rt.call_tool("g.between")
        return result

    with engine_of(tools) as engine:
        assert engine.call("g.outer") == 7


def test_acall_returns_what_call_returns() -> None:
    """Results and errors are equal for plain, waiting and coroutine tools."""
    tools = tools_of(add=add, slow=slow)

    @tools.tool(policy=WAITS)
    def waiting(a: int) -> int:
        """Wait for something."""
        return 10 // a

    async def both(name: str, given: Any) -> list[Any]:
        named = isinstance(given, dict)
        ways = (engine.call_named, engine.acall_named) if named else (engine.call, engine.acall)
        outcomes = []
        for way in ways:
            try:
                answered = way(name, given)
                outcomes.append(await answered if asyncio.iscoroutine(answered) else answered)
            except CallError as error:
                outcomes.append((type(error), str(error)))
        return outcomes

    with engine_of(tools) as engine:
        for name, given in (
            ("g.add", ("1", 2)),
            ("g.add", {"a": "x"}),
            ("g.slow", ("1",)),
            ("g.slow", {"a": "x"}),
            ("g.waiting", {"a": "5"}),
            ("g.waiting", (0,)),
            ("g.nothing", ()),
        ):
            first, second = asyncio.run(both(name, given))

            assert first == second


def test_waiting_tool_does_not_block_the_loop() -> None:
    """It runs on a thread, with the caller's context variables."""
    name = contextvars.ContextVar("name", default="")
    started = threading.Event()
    release = threading.Event()
    tools = Toolset("g")

    @tools.tool(policy=WAITS)
    def wait() -> str:
        """Wait for a word."""
        started.set()
        release.wait(10)
        return name.get()

    async def main() -> Any:
        name.set("caller")
        task = asyncio.create_task(engine.acall("g.wait"))
        while not started.is_set():
            await asyncio.sleep(0.001)
        release.set()
        return await task

    with engine_of(tools) as engine:
        assert asyncio.run(main()) == "caller"


class Unusual(BaseException):
    """An exception outside ``Exception`` and the engine's errors."""


@pytest.mark.parametrize("raised", [StopIteration, StopAsyncIteration, SystemExit, asyncio.CancelledError, Unusual])
@pytest.mark.parametrize("manner", ["plain", "waiting", "coroutine"])
def test_no_exception_of_a_tool_hangs_or_kills_its_awaiting_caller(raised: type[BaseException], manner: str) -> None:
    """StopIteration in a future would hang its caller, and SystemExit in a task would end the loop."""
    tools = Toolset("g")

    def fail() -> None:
        """Fail."""
        raise raised

    async def afail() -> None:
        """Fail."""
        raise raised

    tools.tool(name="fail", policy=WAITS if manner == "waiting" else ToolPolicy())(
        afail if manner == "coroutine" else fail
    )

    async def main() -> Any:
        with pytest.raises(ToolFailed) as caught:
            await asyncio.wait_for(engine.acall("g.fail"), 5)
        return caught.value

    with engine_of(tools) as engine:
        turned = manner == "coroutine" and raised in (StopIteration,)  # Python does this itself
        name = "RuntimeError" if turned else raised.__name__

        assert f"g.fail: the tool failed ({name})" == str(asyncio.run(main()))


@pytest.mark.parametrize("manner", ["waiting", "timed", "coroutine"])
def test_interrupt_raised_by_a_tool_on_another_thread_is_a_failure(manner: str) -> None:
    """Only an interrupt of the main thread ends the program."""
    tools = Toolset("g")

    def fail() -> None:
        """Fail."""
        raise KeyboardInterrupt

    async def afail() -> None:
        """Fail."""
        raise KeyboardInterrupt

    policy = {"waiting": WAITS, "timed": ToolPolicy(timeout=30)}.get(manner, ToolPolicy())
    tools.tool(name="fail", policy=policy)(afail if manner == "coroutine" else fail)

    with engine_of(tools) as engine, pytest.raises(ToolFailed) as caught:
        asyncio.run(engine.acall("g.fail")) if manner == "waiting" else engine.call("g.fail")

    assert "g.fail: the tool failed (KeyboardInterrupt)" == str(caught.value)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_exit_in_a_task_of_a_tool_is_a_tool_failure(error: type[BaseException]) -> None:
    """asyncio would let it end the whole loop, which other calls use."""
    tools = Toolset("g")

    async def fail() -> None:
        raise error

    loops: set[threading.Thread] = set()

    @tools.tool()
    async def within() -> None:
        """Fail in a task."""
        loops.add(threading.current_thread())
        await asyncio.create_task(fail())

    @tools.tool()
    async def one() -> int:
        """Return 1."""
        return 1

    with engine_of(tools) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.within")

        assert f"g.within: the tool failed ({error.__name__})" == str(caught.value)
        assert 1 == engine.call("g.one")
        (loop,) = loops
    loop.join(10)
    assert not loop.is_alive()


def test_requested_cancellation_propagates() -> None:
    """It reaches the tool, whose finally blocks run, and its Runtime stops working."""
    ended: list[Any] = []

    async def forever(rt: Runtime) -> None:
        """Wait forever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(rt)

    async def main() -> None:
        task = asyncio.create_task(engine.acall("g.forever"))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with engine_of(tools_of(forever=forever)) as engine:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())

    (rt,) = ended
    with pytest.raises(CallError):
        rt.get_var("x")


def test_coroutine_tool_is_stopped_at_its_timeout() -> None:
    """It is cancelled, and its finally blocks run."""
    ended: list[int] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=0.05))
    async def forever() -> None:
        """Wait forever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    with engine_of(tools) as engine:
        for run in (lambda: engine.call("g.forever"), lambda: asyncio.run(engine.acall("g.forever"))):
            with pytest.raises(CallTimeout) as caught:
                run()

            assert "g.forever: did not end within 0.05 s and was stopped" == str(caught.value)
            assert ("stopped", "call.timeout", "later") == (caught.value.state, caught.value.code, caught.value.retry)
    assert ended == [1, 1]


def test_sync_tool_is_abandoned_at_its_timeout() -> None:
    """A thread cannot be stopped: the caller returns, and the Runtime stops working."""
    release = threading.Event()
    kept: list[Any] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=0.05))
    def forever(rt: Runtime) -> None:
        """Wait forever."""
        kept.append(rt)
        release.wait(30)

    with engine_of(tools) as engine:
        for run in (lambda: engine.call("g.forever"), lambda: asyncio.run(engine.acall("g.forever"))):
            with pytest.raises(CallTimeout) as caught:
                run()

            assert "g.forever: did not end within 0.05 s and was abandoned and may still run" == str(caught.value)
            assert caught.value.state == "abandoned"
            with pytest.raises(CallError) as refused:
                kept[-1].set_var("x", 1)
            assert (refused.value.code, refused.value.retry) == ("runtime.closed", "never")
    release.set()


def test_tool_that_ends_in_time_is_unaffected_by_its_timeout() -> None:
    """Its result and error are the same as without a timeout."""
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=30))
    def quick(a: int) -> int:
        """Divide."""
        return 10 // a

    @tools.tool(policy=ToolPolicy(timeout=30))
    async def aquick(a: int) -> int:
        """Divide."""
        return 10 // a

    with engine_of(tools) as engine:
        for name in ("g.quick", "g.aquick"):
            assert [engine.call(name, (5,)), asyncio.run(engine.acall(name, (5,)))] == [2, 2]
            with pytest.raises(ToolFailed):
                engine.call(name, (0,))


def test_many_awaited_calls_lose_no_result_and_leave_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are more calls than threads; idle threads end on their own."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE_SECONDS", 0.2)  # seconds
    tools = Toolset("g")

    @tools.tool(policy=WAITS)
    def waiting(a: int) -> int:
        """Wait a moment."""
        time.sleep(0.001)
        return a

    async def main() -> list[Any]:
        return await asyncio.gather(*(engine.acall("g.waiting", (index,)) for index in range(1000)))

    before = threading.active_count()
    with engine_of(tools) as engine:
        assert asyncio.run(main()) == list(range(1000))
        assert threading.active_count() - before <= 64
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_closed_engine_refuses_calls() -> None:
    tools = tools_of(add=add, slow=slow)
    with engine_of(tools) as engine:
        assert engine.call("g.add", (1, 2)) == 3.0
        assert engine.call("g.slow", (1,)) == 1

    for run in (
        lambda: engine.call("g.add", (1, 2)),
        lambda: engine.call_named("g.add", {}),
        lambda: asyncio.run(engine.acall("g.add", (1, 2))),
    ):
        with pytest.raises(CallError) as caught:
            run()

        assert ("the engine is closed", "engine.closed", "never") == (
            str(caught.value),
            caught.value.code,
            caught.value.retry,
        )
    result = engine.execute(ToolCall("g.add"))
    assert (result.error.code, result.error.retry) == ("engine.closed", "never")  # type: ignore[union-attr]
    engine.close()


def test_engine_is_an_async_context_manager() -> None:
    async def main() -> Any:
        async with engine_of() as engine:
            return await engine.acall("g.add", (1, 2))

    assert asyncio.run(main()) == 3.0


def test_unreferenced_engine_is_collected() -> None:
    """No global refers to it, and the thread with its loop ends too."""
    import weakref

    engine = engine_of()
    engine.register(tool(slow, group="g"))
    engine.call("g.add", (1, 2))
    engine.call("g.slow", (1,))
    thread = engine._world.threads.loop().thread
    gone = weakref.ref(engine)
    del engine
    gc.collect()

    assert gone() is None
    thread.join(10)
    assert not thread.is_alive()


def test_calls_continue_while_tools_are_registered() -> None:
    """A call sees a complete snapshot, before or after the registration."""
    engine = engine_of()
    failures: list[BaseException] = []

    def calling() -> None:
        try:
            for _ in range(3000):
                assert engine.call("G.add", (1, 2)) == 3.0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calling) for _ in range(4)]
    for thread in threads:
        thread.start()
    for index in range(200):
        engine.register(tools_of(**{f"new{index}": add}))
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(engine.tools) == 201
