"""The tools that call other tools, through an engine as a caller would use them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from neuroscript import CallError, Engine, Host, LimitError, PolicyError, Progress, Runtime, ToolFailed, Toolset

Told = Callable[..., tuple[str, str, str]]

MAPPED: dict[str, tuple[list[Any], list[Any]]] = {
    "one argument": ([[[1, 2], []], "list.length"], [2, 0]),
    "further arguments, behind the element": ([[[1], []], "list.append", [None]], [[1, None], [None]]),
    "None as an element": ([[None, 1], "shape.select", ["a", {"missing_ok": True}]], "shape.wrong_type"),
    "a name in another spelling": ([[4], "tool.Math.Sqrt"], [2.0]),
    "no elements, of which nothing is called": ([[], "no.such"], []),
    "itself": ([[[1, 4], [9]], "list.map", ["math.sqrt"]], [[1.0, 2.0], [3.0]]),
}


@pytest.mark.parametrize(("args", "expected"), MAPPED.values(), ids=MAPPED)
def test_a_tool_is_called_for_each_element(engine: Engine, args: list[Any], expected: Any) -> None:
    """The element is the first argument, and the results stand in its order."""
    try:
        came: Any = engine.call("list.map", args)
    except CallError as error:
        assert error.retry == "model"
        came = error.code

    assert expected == came


FAILING = {
    "an element that does not fit": (
        [[1, "x"], "math.sqrt"],
        "list[1]: math.sqrt: number: expected float, got str (a text must be a decimal number, such as -1.5e3)",
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
        "list[2]: math.sqrt: a number below 0 has no real root",
        "math.domain",
        "model",
    ),
    "a tool that is not there": (
        [[1], "math.sqr"],
        "tool: no tool is called math.sqr; did you mean math.sqrt?",
        "tool.not_found",
        "model",
    ),
}


@pytest.mark.parametrize(("args", "text", "code", "retry"), FAILING.values(), ids=FAILING)
def test_a_call_that_fails_is_named_by_its_place(told: Told, args: list[Any], text: str, code: str, retry: str) -> None:
    """The caller wrote its arguments, and is told what is wrong with them; the code is that of the call."""
    assert (f"list.map: {text}", code, retry) == told("list.map", *args)


def test_a_call_within_wins_no_authority(engine: Engine) -> None:
    """What the host grants to a tool is not granted to one that calls it, and the refusal is the tool's own."""
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


def test_calls_can_not_stand_in_each_other_without_end(engine: Engine) -> None:
    """The engine's limit passes as it is."""
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
def test_a_call_that_was_written_down_is_made(engine: Engine, args: list[Any], expected: Any) -> None:
    """By the names of its arguments, as ``call_named`` does."""
    try:
        came: Any = engine.call("meta.call", args)
    except CallError as error:
        assert error.retry == "model"
        came = error.code

    assert expected == came


def test_the_caller_is_told_what_is_wrong_with_a_call_that_was_written_down(told: Told) -> None:
    """In the words of the tool that it names."""
    text = "meta.call: math.add: num2: expected float, got nothing"

    assert (text, "call.arguments", "model") == told("meta.call", "math.add", {"num1": 1})


def test_a_variable_becomes_what_a_tool_makes_of_it() -> None:
    """It is the first argument, None where there is none; a call that fails, or a constant, leaves it as it was."""
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


def test_changes_that_are_made_at_once_are_all_made() -> None:
    """None is lost between the look at the value and its change."""
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


def test_mapping_tells_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """To the host before each call and at the end, and to the log how many calls it made."""
    told: list[Progress] = []
    with Engine(plugins=["neuroscript-std"], host=Host(progress=told.append)) as engine, caplog.at_level(logging.DEBUG):
        engine.call("list.map", [[1, 2], "math.abs"])

    assert [(each.tool, each.done, each.total) for each in told] == [("list.map", done, 2) for done in range(3)]
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("neuroscript.list.map", "DEBUG", "made 2 calls")
    ]


def test_mapping_stops_when_nobody_waits() -> None:
    """It looks between two calls: the session ends in the second one, and there is no third."""
    called: list[int] = []
    tools = Toolset("g")

    @tools.tool()
    def end(rt: Runtime, number: int) -> None:
        """End the session at number 2."""
        called.append(number)
        if number == 2:
            session.close()

    with Engine(plugins=["neuroscript-std"], toolsets=[tools]) as engine, engine.session() as session:
        with pytest.raises(ToolFailed) as caught:
            session.call("list.map", [[1, 2, 3], "g.end"])

    assert called == [1, 2]
    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        "list.map: nobody waits for the result any more",
        "list.cancelled",
        "later",
    )


def test_mapping_does_not_hold_up_the_loop_that_awaits_it(engine: Engine) -> None:
    """What it calls may wait; held up, it would be done before the loop had done anything else."""

    async def others_meanwhile() -> int:
        mapped = asyncio.create_task(engine.acall("list.map", [[0.1, 0.1], "time.sleep"]))
        others = 0
        while not mapped.done():
            others += 1
            await asyncio.sleep(0.01)
        assert await mapped == [True, True]
        return others

    assert asyncio.run(others_meanwhile()) > 3
