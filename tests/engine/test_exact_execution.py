"""`execute` runs the compiled pipeline for arguments that need no repair, and the steps for all others."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from neuroscript import CallRecord, Engine, Runtime, ToolCall, Toolset, ToolSpec, hookimpl
from neuroscript.calls.compiler import FILE
from neuroscript.engine import session as sessions


def caller() -> bool:
    """Return whether the tool that calls this was called by a compiled function."""
    return sys._getframe(2).f_code.co_filename == FILE


@pytest.fixture
def ways() -> list[bool]:
    return []


@pytest.fixture
def engine(ways: list[bool]) -> Iterator[Engine]:
    tools = Toolset("lab")

    @tools.tool
    def add(rt: Runtime, a: int, tags: list[str], note: str = "-") -> str:
        """Add."""
        ways.append(caller())
        return f"{a}{tags}{note}"

    @tools.tool
    def wait(rt: Runtime, a: int) -> int:
        """Wait."""
        ways.append(threading.current_thread() is threading.main_thread())
        return a

    with Engine(toolsets=[tools], plugins="none") as made:
        yield made


EXACT = {"a": 2, "tags": ["x"]}


@pytest.mark.parametrize("name", ["lab__add", "lab.add", "tool.Lab.Add", "LAB__ADD"])
@pytest.mark.parametrize("arguments", [EXACT, json.dumps(EXACT)], ids=["dict", "text"])
def test_exact_arguments_use_the_compiled_pipeline_from_the_second_call_on(
    engine: Engine, ways: list[bool], name: str, arguments: Any
) -> None:
    results = [engine.execute(ToolCall(name, arguments, id="7")) for _ in range(3)]

    assert [(each.id, each.tool, each.value, each.repairs) for each in results] == [("7", "lab.add", "2['x']-", ())] * 3
    assert ways == [False, True, True]
    assert all(each.seconds > 0 for each in results)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({**EXACT, "a": "2"}, ["a"]),
        ({**EXACT, "a": 2.0}, ["a"]),
        ({**EXACT, "tags": ("x",)}, ["tags"]),
        ({**EXACT, "tags": '["x"]'}, ["tags"]),
        (json.dumps({**EXACT, "a": "2"}), ["a"]),
    ],
)
def test_repairs_are_reported_and_the_function_runs_once(
    engine: Engine, ways: list[bool], arguments: Any, where: list[str]
) -> None:
    engine.execute(ToolCall("lab__add", EXACT))

    result = engine.execute(ToolCall("lab__add", arguments))

    assert (result.value, [each.where for each in result.repairs]) == ("2['x']-", where)
    assert ways == [False, False]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"a": 2}, "arg.missing"),
        ({**EXACT, "b": 1}, "arg.unknown"),
        ({**EXACT, "a": "x"}, "coercion.format"),
        ('{"a": 2, "a": 2, "tags": []}', "arg.duplicate_key"),
        ("{", "arg.not_json"),
        ("5", "arg.type"),
        (5, "arg.type"),
        ({**EXACT, "tags": ["\ud800"]}, "coercion.encoding"),
    ],
)
def test_errors_are_those_of_the_first_call(engine: Engine, ways: list[bool], arguments: Any, code: str) -> None:
    first = engine.execute(ToolCall("lab__add", arguments))
    engine.execute(ToolCall("lab__add", EXACT))

    second = engine.execute(ToolCall("lab__add", arguments))

    assert first.error is not None is not second.error
    assert (first.error.code, first.error.retry) == (second.error.code, second.error.retry) == (code, "model")
    assert str(first.error) == str(second.error)
    assert (first.tool, second.tool) == ("lab.add", "lab.add")
    assert ways == [True]


@pytest.mark.parametrize("arguments", [None, "", "  ", (), [], [2, ["x"]]])
def test_other_forms_of_arguments_have_the_same_result_each_time(engine: Engine, arguments: Any) -> None:
    results = [engine.execute(ToolCall("lab__add", arguments)) for _ in range(3)]

    assert len({(each.value, str(each.error)) for each in results}) == 1


@pytest.mark.parametrize("name", [None, 5, [], {}, b"lab.add"])
def test_a_name_that_is_no_string_is_unknown(engine: Engine, name: Any) -> None:
    errors = [engine.execute(ToolCall(name, EXACT)).error for _ in range(2)]

    assert [(each.code, each.retry) for each in errors if each] == [("tool.not_found", "model")] * 2


def test_a_closed_engine_executes_nothing(engine: Engine, ways: list[bool]) -> None:
    for _ in range(2):
        engine.execute(ToolCall("lab__add", EXACT))
    engine.close()

    error = engine.execute(ToolCall("lab__add", EXACT)).error

    assert error is not None
    assert (error.code, error.retry) == ("engine.closed", "never")
    assert len(ways) == 2


def test_changed_tools_are_used_at_once(engine: Engine) -> None:
    for _ in range(2):
        engine.execute(ToolCall("more__one", {}))
    more = Toolset("more")
    more.add(ToolSpec("one", "more", return_type="int"), lambda rt: 1)
    engine.register(more)

    assert [engine.execute(ToolCall("more__one", {})).value for _ in range(2)] == [1, 1]


def test_new_hooks_see_the_next_call(engine: Engine) -> None:
    seen = []

    class Observer:
        @hookimpl
        def neuroscript_call_finished(self, record: CallRecord) -> None:
            seen.append(record.tool)

    for _ in range(2):
        engine.execute(ToolCall("lab__add", EXACT))
    engine.add_hooks(Observer())
    for _ in range(2):
        engine.execute(ToolCall("lab__add", EXACT))

    assert seen == ["lab.add"] * 2


def test_the_cache_of_spellings_is_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_CACHED_SPELLINGS", 3)
    spellings = [f"{'tool.' * count}lab__add" for count in range(20)]

    assert {engine.execute(ToolCall(each, EXACT)).value for each in spellings} == {"2['x']-"}
    assert len(engine._names.sent) <= 2 + 3 + 1


def test_aexecute_runs_no_tool_on_the_event_loop(engine: Engine, ways: list[bool]) -> None:
    """A tool may wait for the loop of its caller."""

    async def run() -> list[Any]:
        return [(await engine.aexecute(ToolCall("lab__wait", {"a": 1}))).value for _ in range(3)]

    assert asyncio.run(run()) == [1] * 3
    assert ways == [False] * 3


def test_running_calls_of_one_tool_are_all_counted_at_the_end() -> None:
    release, tools = threading.Event(), Toolset("lab")

    @tools.tool
    def hang(rt: Runtime, a: int) -> None:
        """Hang."""
        started.release()
        release.wait(20)

    started = threading.Semaphore(0)
    engine = Engine(toolsets=[tools], plugins="none")
    engine.execute(ToolCall("lab__hang", {"a": "x"}))
    calls = [lambda a=a: engine.execute(ToolCall("lab__hang", {"a": a})) for a in (1, 2, "3")]
    calls += [lambda: engine.call("lab.hang", ("4",)), lambda: engine.call_named("lab.hang", {"a": 5})]
    threads = [threading.Thread(target=each) for each in calls]
    for each in threads:
        each.start()
    for _ in calls:
        assert started.acquire(timeout=20)

    left = engine.close(0.05)
    release.set()
    for each in threads:
        each.join(20)
    assert left == ("lab.hang",) * len(calls)
