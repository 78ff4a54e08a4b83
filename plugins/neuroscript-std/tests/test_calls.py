"""The tools that call other tools, called through an engine."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from neuroscript import CallError, Engine, Host, LimitError, PolicyError, Progress, Runtime, ToolFailed, Toolset

ErrorOf = Callable[..., tuple[str, str, str]]

MAPPED: dict[str, tuple[list[Any], list[Any]]] = {
    "one argument": ([[[1, 2], []], "list.length"], [2, 0]),
    "further arguments, behind the element": ([[[1], []], "list.append", [None]], [[1, None], [None]]),
    "None as an element": ([[None, 1], "shape.select", ["a", {"missing_ok": True}]], "shape.wrong_type"),
    "a name in another spelling": ([[4], "tool.Math.Sqrt"], [2.0]),
    "no elements, of which nothing is called": ([[], "no.such"], []),
    "itself": ([[[1, 4], [9]], "list.map", ["math.sqrt"]], [[1.0, 2.0], [3.0]]),
}


@pytest.mark.parametrize(("args", "expected"), MAPPED.values(), ids=MAPPED)
def test_map_calls_the_tool_for_each_element(engine: Engine, args: list[Any], expected: Any) -> None:
    """The element is the first argument, and the results are in order."""
    try:
        result: Any = engine.call("list.map", args)
    except CallError as error:
        assert error.retry == "model"
        result = error.code

    assert expected == result


FAILING = {
    "an element that does not fit": (
        [[1, "x"], "math.sqrt"],
        "list[1]: math.sqrt: number: expected float, got str (a string must be a decimal number, such as -1.5e3)",
        "call.arguments",
        "model",
    ),
    "an argument too many": (
        [[1], "math.sqrt", [2]],
        "list[0]: math.sqrt: expected at most 1 arguments, got 2",
        "call.arguments",
        "model",
    ),
    "a tool that fails": (
        [[4, 1, -1], "math.sqrt"],
        "list[2]: math.sqrt: a negative number has no real square root",
        "math.domain",
        "model",
    ),
    "a tool that is not there": (
        [[1], "math.sqr"],
        "tool: unknown tool math.sqr; did you mean math.sqrt?",
        "tool.not_found",
        "model",
    ),
}


@pytest.mark.parametrize(("args", "text", "code", "retry"), FAILING.values(), ids=FAILING)
def test_map_reports_the_position_of_a_failed_call(
    error_of: ErrorOf, args: list[Any], text: str, code: str, retry: str
) -> None:
    """With the message and the code of the inner call."""
    assert (f"list.map: {text}", code, retry) == error_of("list.map", *args)


def test_inner_call_gains_no_authority(engine: Engine) -> None:
    """A grant for a tool does not apply to a tool that calls it, and the refusal is that of the inner tool."""
    assert engine.call("crypto.hmacwith", ["a", "signing"])

    for tool, args in (
        ("list.map", [["a"], "crypto.hmacwith", ["signing"]]),
        ("meta.call", ["crypto.hmacwith", {"data": "a", "secret_name": "signing"}]),
        ("meta.call", ["list.map", {"list": ["a"], "tool": "llm.ask"}]),
    ):
        with pytest.raises(PolicyError) as caught:
            engine.call(tool, args)
        assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")
        assert caught.value.tool == ("llm.ask" if "list.map" in args else "crypto.hmacwith")


def test_call_depth_is_limited(engine: Engine) -> None:
    """The limit error of the engine passes through unchanged."""
    call: dict[str, Any] = {"tool": "math.abs", "arguments": {"number": 1}}
    for _ in range(14):
        call = {"tool": "meta.call", "arguments": call}
    assert engine.call_named("meta.call", call) == 1

    with pytest.raises(LimitError) as caught:
        engine.call_named("meta.call", {"tool": "meta.call", "arguments": call})
    assert (caught.value.code, caught.value.retry) == ("limit.depth", "host")


CALLED = {
    "a call": (["math.add", {"num1": 1, "num2": "2"}], 3.0),
    "a call without arguments": (["list.isempty"], "call.arguments"),
    "a result that is None": (["list.head", {"list": []}], None),
    "a name for the wire": (["math__add", {"num1": 1, "num2": 2}], "tool.not_found"),
    "an unknown argument": (["math.abs", {"number": 1, "x": 2}], "call.arguments"),
    "a tool that fails": (["math.sqrt", {"number": -1}], "math.domain"),
    "arguments in order": (["math.abs", [1]], "coercion.type"),
}


@pytest.mark.parametrize(("args", "expected"), CALLED.values(), ids=CALLED)
def test_meta_call_passes_named_arguments(engine: Engine, args: list[Any], expected: Any) -> None:
    """As ``call_named`` does."""
    try:
        result: Any = engine.call("meta.call", args)
    except CallError as error:
        assert error.retry == "model"
        result = error.code

    assert expected == result


def test_meta_call_reports_argument_errors(error_of: ErrorOf) -> None:
    """With the message of the inner tool."""
    text = "meta.call: math.add: num2: expected float, got nothing"

    assert (text, "call.arguments", "model") == error_of("meta.call", "math.add", {"num1": 1})


def test_var_change_applies_the_tool() -> None:
    """The old value is the first argument, None if unset; a failed call or a constant changes nothing."""
    host = Host(variables={"rows": [1]}, constants={"limits": [3]})
    with Engine(plugins=["neuroscript-std"], host=host) as engine:
        codes = []
        for args in (["rows", "math.abs"], ["limits", "list.append", [4]], ["none", "list.append", [1]]):
            with pytest.raises(ToolFailed) as caught:
                engine.call("var.change", args)
            codes.append((caught.value.code, caught.value.retry))

        assert codes == [("call.arguments", "model"), ("var.constant", "model"), ("call.arguments", "model")]
        assert engine.call("var.get", ["rows"]) == [1]
        assert engine.call("var.change", ["rows", "list.append", [2]]) == [1, 2]
        assert engine.call("var.get", ["rows"]) == [1, 2]
        assert engine.call("var.change", ["none", "str.tojsonstring"]) == "null"


def test_var_change_is_atomic() -> None:
    """No concurrent change is lost."""
    with Engine(plugins=["neuroscript-std"], host=Host(variables={"n": 0.0})) as engine:

        def change() -> None:
            for _ in range(200):
                engine.call("var.change", ["n", "math.add", [1]])

        threads = [threading.Thread(target=change) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert engine.call("var.get", ["n"]) == 1600


def test_map_reports_progress(caplog: pytest.LogCaptureFixture) -> None:
    """To the host before each call and at the end, and the number of calls to the log."""
    reports: list[Progress] = []
    with (
        Engine(plugins=["neuroscript-std"], host=Host(progress=reports.append)) as engine,
        caplog.at_level(logging.DEBUG),
    ):
        engine.call("list.map", [[1, 2], "math.abs"])

    assert [(each.tool, each.done, each.total) for each in reports] == [("list.map", done, 2) for done in range(3)]
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("neuroscript.list.map", "DEBUG", "made 2 calls")
    ]


def test_map_stops_when_cancelled(isolate: object) -> None:
    """The session ends in the second call, and there is no third. If the function is in a worker, that is killed."""
    called: list[int] = []
    tools = Toolset("g")

    @tools.tool()
    def end(rt: Runtime, number: int) -> None:
        """End the session at number 2."""
        called.append(number)
        if number == 2:
            session.close()

    with Engine(plugins=["neuroscript-std"], toolsets=[tools]) as engine, engine.session() as session:
        with pytest.raises(CallError) as caught:
            session.call("list.map", [[1, 2, 3], "g.end"])

    assert called == [1, 2]
    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        ("was stopped because the engine was closed", "engine.closed", "never")
        if isolate == ("*",)
        else ("list.map: the call was cancelled", "list.cancelled", "later")
    )


def test_map_does_not_block_the_event_loop(engine: Engine) -> None:
    """Otherwise it would finish before the loop did anything else."""

    async def others_meanwhile() -> int:
        mapped = asyncio.create_task(engine.acall("list.map", [[0.1, 0.1], "time.sleep"]))
        others = 0
        while not mapped.done():
            others += 1
            await asyncio.sleep(0.01)
        assert await mapped == [True, True]
        return others

    assert asyncio.run(others_meanwhile()) > 3
