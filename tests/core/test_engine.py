"""The doors of the engine: finding, refusing, calling from both worlds, closing."""

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
    """Return a toolset ``g`` of the given functions, read off their annotations."""
    tools = Toolset("g")
    for name, func in functions.items():
        tools.tool(name=name)(func)
    return tools


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def engine_of(tools: Toolset | None = None, **options: Any) -> Engine:
    """Return an engine with these tools alone."""
    return Engine(toolsets=[tools or tools_of(add=add)], plugins="none", **options)


@pytest.mark.parametrize("name", ["g.add", "G.Add", "tool.g.add", "TOOL.tool.G.ADD"])
def test_a_tool_is_found_under_every_spelling_of_its_name(name: str) -> None:
    """Case and leading ``tool.`` say nothing."""
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
def test_a_tool_that_is_not_there_is_named_with_its_neighbours(name: Any, text: str) -> None:
    """Whatever was given as a name."""
    with pytest.raises(ToolNotFound) as caught:
        engine_of().call(name)

    assert text == str(caught.value)
    assert ("tool.not_found", 3, "model") == (caught.value.code, caught.value.number, caught.value.retry)


class Telling(str):
    """A text that tells when it is hashed or compared."""

    def __hash__(self) -> int:
        raise AssertionError("hashed")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_a_name_that_is_a_subclass_of_str_runs_no_code() -> None:
    """It is read through the base type's own slots, as an argument is."""
    assert engine_of().call(Telling("g.add"), (1, 2)) == 3.0


def test_what_may_not_run_is_refused_before_its_arguments_are_looked_at() -> None:
    """The default permits what needs nothing; a refused tool tells nothing of its arguments, and is not proposed."""
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
        "approval": "g.approval: needs an approval, and nobody here can give it",
    }

    for name, text in texts.items():
        with pytest.raises(PolicyError) as caught:
            engine.call(f"g.{name}", (1, 2, 3))

        assert text == str(caught.value)
        assert (f"policy.{name}", 1003, "host") == (caught.value.code, caught.value.number, caught.value.retry)
    with pytest.raises(ToolNotFound) as missing:
        engine.call("g.trus")
    assert missing.value.near == ()


def test_two_toolsets_that_claim_one_name_are_refused_whole() -> None:
    """Nothing of the second set is registered, not even what is new."""
    engine = engine_of()
    second = tools_of(new=add, add=add)

    with pytest.raises(RegistryError) as caught:
        engine.register(second)

    assert "already registered: g.add" == str(caught.value)
    assert [*engine.tools] == ["g.add"]


def test_one_tool_may_be_registered_later() -> None:
    """The mapping of tools is a snapshot, and read-only."""
    engine = engine_of()
    before = engine.tools
    engine.register(tools_of(later=add).tools[0])

    assert [*before] == ["g.add"]
    assert [*engine.tools] == ["g.add", "g.later"]
    assert engine.call("g.later", (1, 1)) == 2.0
    with pytest.raises(TypeError):
        engine.tools["g.x"] = engine.tools["g.add"]  # type: ignore[index]


def test_spellings_without_end_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may spell a name in thousands of ways."""
    monkeypatch.setattr("neuroscript.engine.session.SPELLINGS", 50)
    engine = engine_of()

    for length in range(200):
        assert engine.call("tool." * length + "g.add", (1, 2)) == 3.0

    assert len(engine._positional) <= 60


def test_two_engines_share_nothing() -> None:
    """Neither tools nor variables."""

    def put(rt: Runtime, value: int) -> None:
        rt.set_var("x", value)

    def get(rt: Runtime) -> int | None:
        return rt.get_var("x")

    one, two = engine_of(tools_of(put=put, get=get)), engine_of(tools_of(put=put, get=get))
    one.call("g.put", (1,))

    assert [one.call("g.get"), two.call("g.get")] == [1, None]


def test_an_engine_says_what_it_can_not_be() -> None:
    """A keyword with no such value is a SpecError, at once."""
    for options, text in (
        ({"mode": "loose"}, "Engine: mode must be 'lax' or 'strict'"),
        ({"plugins": "some"}, "Engine: plugins must be 'installed', 'none' or a collection of names of distributions"),
    ):
        with pytest.raises(SpecError) as caught:
            Engine(**options)  # type: ignore[arg-type]

        assert text == str(caught.value)


def test_strict_mode_takes_only_exact_types() -> None:
    """For hosts whose callers are programs."""
    with pytest.raises(ArgumentError) as caught:
        engine_of(mode="strict").call("g.add", ("1", 2))

    assert [problem.code for problem in caught.value.problems] == ["coercion.type", "coercion.type"]


# Variables and output


def test_variables_are_copied_in_and_out() -> None:
    """What a tool keeps of a value, or does with it, changes no variable."""
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


def test_a_variable_holds_plain_values_alone() -> None:
    """An object of some class is refused, and the tool has failed."""

    def use(rt: Runtime) -> None:
        rt.set_var("v", object())

    with pytest.raises(ToolFailed) as caught:
        engine_of(tools_of(use=use)).call("g.use")

    assert isinstance(caught.value.__cause__, CoercionError)


def test_update_var_loses_nothing_under_threads() -> None:
    """Whoever comes too late does it again."""

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
    """Whatever the tool prints, it is one line, and no terminal obeys it."""

    def say(rt: Runtime) -> None:
        rt.println("two\nlines", 5, None, "\x1b[2J")

    engine_of(tools_of(say=say)).call("g.say")

    assert capsys.readouterr().out == "two\\nlines 5 None \\x1b[2J\n"


# execute


def test_execute_gives_a_result_with_its_repairs() -> None:
    """What was converted is told as types and places."""

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
    """By position, by name, in maps, in JSON text and among further values; what was right already is none."""
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
    """A model's loop gets the error as data."""

    def fail() -> None:
        1 / 0  # noqa: B018

    result = engine_of(tools_of(add=add, fail=fail)).execute(call)

    assert result.error is not None
    assert (code, retry, text) == (result.error.code, result.error.retry, str(result.error))
    assert json.loads(json.dumps(result_to_data(result)))["error"]["message"] == text


def test_a_result_is_written_as_plain_data() -> None:
    """Bytes as base64, keys as texts, an error with its problems."""
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


def test_errors_cross_processes() -> None:
    """A pickled error says and knows the same."""
    engine = engine_of()
    for call in (ToolCall("g.add", ("x",)), ToolCall("g.nothing")):
        error = engine.execute(call).error

        copy = pickle.loads(pickle.dumps(error))

        assert (type(copy), repr(copy)) == (type(error), repr(error))
        assert (copy.code, copy.retry) == (error.code, error.retry)  # type: ignore[union-attr]
        assert copy.retry == "model"


# Both worlds


async def slow(rt: Runtime, a: int) -> int:
    """Wait a moment."""
    await asyncio.sleep(0.01)
    return a


def test_a_coroutine_tool_is_called_from_sync_code() -> None:
    """On the engine's own loop, which starts when it is needed."""
    with engine_of(tools_of(slow=slow)) as engine:
        assert [engine.call("g.slow", ("1",)), engine.call_named("g.slow", {"a": 2})] == [1, 2]
        assert engine.execute(ToolCall("g.slow", {"a": "3"})).value == 3


def test_a_coroutine_tool_is_called_from_sync_code_inside_a_running_loop() -> None:
    """The loop of the caller stands still meanwhile, but nothing fails."""

    async def main() -> int:
        result: int = engine.call("g.slow", (5,))
        return result

    with engine_of(tools_of(slow=slow)) as engine:
        assert asyncio.run(main()) == 5


def test_a_coroutine_tool_may_call_another_one() -> None:
    """From the engine's loop itself, several deep."""

    async def outer(rt: Runtime, depth: int) -> int:
        await asyncio.sleep(0)
        inner: int = rt.call_tool("g.outer", (depth - 1,)) if depth else 0
        return inner + 1

    with engine_of(tools_of(outer=outer)) as engine:
        assert engine.call("g.outer", (5,)) == 6
        assert asyncio.run(engine.acall("g.outer", (5,))) == 6


def test_a_coroutine_tool_may_reach_another_one_through_a_thread() -> None:
    """The engine's loop stands still while its thread waits; the inner call must not wait for it."""
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


def test_acall_gives_what_call_gives() -> None:
    """The same result or the same error, for plain, waiting and coroutine tools."""
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


def test_a_waiting_tool_does_not_hold_up_the_loop() -> None:
    """It runs on a thread while the loop goes on, with the caller's context variables."""
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
    """Neither an Exception nor ours."""


@pytest.mark.parametrize("raised", [StopIteration, StopAsyncIteration, SystemExit, asyncio.CancelledError, Unusual])
@pytest.mark.parametrize("manner", ["plain", "waiting", "coroutine"])
def test_no_exception_of_a_tool_hangs_or_kills_whoever_awaits_it(raised: type[BaseException], manner: str) -> None:
    """StopIteration through a future would hang its waiter, SystemExit in a task would end the loop."""
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
        turned = manner == "coroutine" and raised in (StopIteration,)  # Python does that itself
        name = "RuntimeError" if turned else raised.__name__

        assert f"g.fail: the tool failed ({name})" == str(asyncio.run(main()))


@pytest.mark.parametrize("manner", ["waiting", "timed", "coroutine"])
def test_an_interrupt_that_a_tool_raises_on_another_thread_is_its_own(manner: str) -> None:
    """Only the main thread's means the program."""
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
def test_an_exit_in_a_task_that_a_tool_made_is_the_tools(error: type[BaseException]) -> None:
    """asyncio lets it out of the whole loop, on which other calls run and come."""
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


def test_a_cancellation_that_the_caller_asked_for_passes() -> None:
    """And reaches the tool, which has run its finally; its Runtime is dead then."""
    ended: list[Any] = []

    async def forever(rt: Runtime) -> None:
        """Wait for ever."""
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


def test_a_coroutine_tool_is_stopped_when_its_time_is_over() -> None:
    """It is cancelled, and has run its finally."""
    ended: list[int] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=0.05))
    async def forever() -> None:
        """Wait for ever."""
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


def test_a_sync_tool_is_left_behind_when_its_time_is_over() -> None:
    """A thread can not be stopped: its caller is freed, and its Runtime refuses it."""
    release = threading.Event()
    kept: list[Any] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(timeout=0.05))
    def forever(rt: Runtime) -> None:
        """Wait for ever."""
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


def test_a_tool_that_ends_in_time_is_not_disturbed_by_its_timeout() -> None:
    """Its result and its error are as without one."""
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


def test_many_awaited_calls_of_waiting_tools_lose_no_result_and_leave_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More of them than threads; idle threads end by themselves."""
    monkeypatch.setattr("neuroscript.calls.threads.IDLE", 0.2)  # seconds
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


def test_a_closed_engine_refuses() -> None:
    """Once it is closed, and every time."""
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


def test_an_engine_is_an_async_context_too() -> None:
    """For hosts whose main function is a coroutine."""

    async def main() -> Any:
        async with engine_of() as engine:
            return await engine.acall("g.add", (1, 2))

    assert asyncio.run(main()) == 3.0


def test_an_engine_that_is_dropped_is_collected() -> None:
    """Nothing global holds on to it, and the thread with its loop ends too."""
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


def test_calls_go_on_while_tools_are_registered() -> None:
    """A call sees one snapshot or the other, never a half."""
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
