"""The work that a caller can cause before a call: it is counted, and doubling the input never squares it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.work import calls_in, seconds_in, steps_in

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    Repair,
    Runtime,
    SpecError,
    ToolCall,
    ToolNotFound,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.llm.wire.prompted.parser import ParsedCall, marked_calls
from neuroscript.names import to_snake_case
from neuroscript.runtime.wire_names import WireNames
from neuroscript.workflow import Node, Plan


def engine_of(*args: ArgSpec, does: Callable[..., Any] | None = None, **policy: Any) -> Engine:
    """Return an engine with the tool ``g.t`` and those that it needs."""
    tools = Toolset("g")
    names = "".join(f", {arg.name}" for arg in args)
    func = does or eval(f"lambda rt{names}: None")
    spec = ToolSpec("t", "g", args, return_type=ArgType.ANY, return_nullable=True)
    tools.add(spec, func, ToolPolicy(**policy))
    return Engine(toolsets=[tools], plugins="none")


SHAPES = {
    "many prefixes": "tool.",
    "many dots": "a.",
    "many dots on the wire": "__a",
    "capitals": "A",
    "camelCase": "aB",
    "wildcards": "a*",
    "another script": "é",
}

NAMED: dict[str, Callable[[Engine, str], object]] = {
    "call": lambda engine, name: engine.call(name),
    "call_named": lambda engine, name: engine.call_named(name, {}),
    "stream": lambda engine, name: next(engine.stream(name)),
    "execute": lambda engine, name: engine.execute(ToolCall(name)),
    "check": lambda engine, name: engine.check([ToolCall(name)]),
    "a nested call": lambda engine, name: engine.call("g.t", (name,)),
    "the tools of a Runtime": lambda engine, name: engine.infos.get(name),
    "a wire name": lambda engine, name: WireNames().tool(name),
    "a name for the wire": lambda engine, name: WireNames().wire(name),
    "an importer": lambda engine, name: to_snake_case(name),
    "a pattern of a policy": lambda engine, name: ExecutionPolicy(allow=(name,)),
    "a preapproved name": lambda engine, name: ExecutionPolicy(preapproved=(name,)),
    "a pattern of a toolset": lambda engine, name: Toolset("g").filtered(name),
    "an old name": lambda engine, name: Toolset("g", tuple(engine.tools.values())).alias(name, "g.t"),
    "a new name": lambda engine, name: Toolset("g", tuple(engine.tools.values())).renamed({"g.t": name}),
    "a name of a limit": lambda engine, name: _limits()(tool_calls={name: 1}),
    "a plan": lambda engine, name: _plans()(engine, Plan(nodes=(Node(name="a", tool=name),))),
}


def _limits() -> Callable[..., object]:
    from neuroscript import Limits

    return Limits


def _plans() -> Callable[..., object]:
    from neuroscript.workflow.plan.validation import check

    return check


def nested(rt: Runtime, name: str) -> Any:
    """Call another tool by name."""
    return rt.call_tool(name)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("use", NAMED.values(), ids=NAMED)
def test_name_of_any_length_takes_the_same_work(use: Callable[[Engine, str], object], shape: str) -> None:
    """Each entry point checks the length of a name before it reads the name."""
    work = []
    for count in (20_000, 40_000):
        with engine_of(ArgSpec("name", ArgType.STRING), does=nested) as engine:
            use_it = partial(use, engine, shape * count)
            calls_in(use_it)  # imports what it needs
            work.append(calls_in(use_it))

    assert work[1] <= work[0] + 100 < 1_500


def test_overlong_name_is_not_found() -> None:
    """The error contains the start of the name and no suggestions."""
    with engine_of() as engine:
        with pytest.raises(ToolNotFound) as caught:
            engine.call("tool." * 1_000 + "g.t")
        result = engine.execute(ToolCall("g__" * 1_000))
        (decision,) = engine.check([ToolCall("g__" * 1_000)])

    assert str(caught.value) == f"unknown tool {('tool.' * 20)[:64]}…"
    assert (caught.value.code, caught.value.retry, caught.value.near) == ("tool.not_found", "model", ())
    assert result.error is not None
    assert (str(result.error), result.error.retry) == (f"unknown tool {('g__' * 30)[:64]}…", "model")
    assert (decision.allowed, decision.code, decision.retry) == (False, "tool.not_found", "model")


def test_overlong_pattern_is_refused() -> None:
    """It could not match any name."""
    with pytest.raises(SpecError) as caught:
        ExecutionPolicy(allow=("*a" * 300,), preapproved=("a" * 513,))

    assert caught.value.problems == (
        f"allow: {('*a' * 300)[:64]}… is not a valid pattern; use a name, or a pattern such as fs.*",
        f"preapproved: {'a' * 64}… is not the exact name of a tool; patterns are not supported here",
    )


# Arguments


def unknown_names(count: int) -> dict[str, Any]:
    """Return *n* unknown arguments."""
    return {f"alpah{index}": 1 for index in range(count)}


@pytest.mark.parametrize("way", ["call_named", "execute", "check", "stream"])
def test_unknown_names_are_counted_and_a_hundred_are_described(way: str) -> None:
    """Similar names are searched for these only, when the error is read."""
    ways: dict[str, Callable[[Engine, dict[str, Any]], object]] = {
        "call_named": lambda engine, given: engine.call_named("g.t", given),
        "execute": lambda engine, given: str(engine.execute(ToolCall("g.t", given)).error),
        "check": lambda engine, given: engine.check([ToolCall("g.t", given)]),
        "stream": lambda engine, given: list(engine.stream("g.t", given)),
    }
    work = []
    with engine_of(ArgSpec("alpha", ArgType.INT, required=False)) as engine:
        calls_in(partial(ways[way], engine, unknown_names(200)))  # imports what it needs
        for count in (2_000, 4_000, 8_000):
            work.append(calls_in(partial(ways[way], engine, unknown_names(count))))

    assert (work[2] - work[1]) < 2.5 * (work[1] - work[0])
    assert (work[2] - work[1]) / 4_000 < 5


def test_error_of_many_unknown_names_gives_their_count() -> None:
    """The message lists twenty, the data a hundred, and the count covers all."""
    with engine_of(ArgSpec("alpha", ArgType.INT, required=False)) as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call_named("g.t", unknown_names(500_000))

    error = caught.value
    first = "alpah0: expected only alpha, got an unknown name of type int (did you mean alpha?)"
    assert str(error).startswith(f"g.t: {first}; ")
    assert str(error).endswith("; and 499980 more")
    assert str(error).count("did you mean alpha?") == 20
    assert (len(error.problems), error.total) == (100, 500_000)
    assert (error.code, error.retry) == ("arg.invalid", "model")
    assert seconds_in(lambda: str(error)) < 1


@pytest.mark.slow
def test_names_are_looked_up_in_an_index() -> None:
    """Forty unknown names among twice the arguments take less than twice the steps."""
    work = []
    for count in (400, 800):
        args = [ArgSpec(f"argument{index}", ArgType.INT, required=False) for index in range(count)]
        with engine_of(*args) as engine:
            with pytest.raises(ArgumentError) as caught:
                engine.call_named("g.t", {f"argument{index}x": 1 for index in range(40)})
            work.append(steps_in(lambda error=caught.value: error.problems))
            (problem, *_) = caught.value.problems
            assert problem.expected.endswith(f"argument19 and {count - 20} more")

    assert work[1] < 2 * work[0]


@pytest.mark.parametrize("kind", [ArgType.SLICE_STRING, ArgType.SLICE_INT])
def test_items_are_looked_up_in_an_index_of_choices(kind: ArgType) -> None:
    """Twice the choices take no further step for each item."""
    work = []
    for count in (500, 1_000):
        choices = tuple(str(index) if kind is ArgType.SLICE_STRING else index for index in range(count))
        with engine_of(ArgSpec("a", kind, choices=choices)) as engine:
            given = [[choices[-1]] * 1_000]
            engine.call("g.t", given)
            work.append(steps_in(partial(engine.call, "g.t", given)))

    assert work[1] <= work[0] * 1.01


@pytest.mark.slow
def test_wrong_choices_are_counted_and_a_hundred_are_compared() -> None:
    """They share one index of the choices."""
    work = []
    with engine_of(
        ArgSpec("a", ArgType.SLICE_STRING, choices=tuple(f"choice{index}" for index in range(1_000)))
    ) as engine:
        for count in (200, 1_000, 2_000):
            work.append(calls_in(partial(engine.call, "g.t", [["choize5"] * count])))

    assert (work[2] - work[1]) / 1_000 < 10


# Needs


def test_string_and_list_in_one_scope_are_limited_together() -> None:
    """Each item makes a need with the whole string, so the total is limited before anything is joined."""
    args = (ArgSpec("folder", ArgType.STRING), ArgSpec("names", ArgType.SLICE_STRING))
    with engine_of(*args, capabilities=("fs:read:{folder}/{names}",)) as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call("g.t", ("a" * 4_000_000, ["x"] * 100_000))
        (decision,) = engine.check([ToolCall("g.t", ("a" * 4_000_000, ["x"] * 100_000))])

    expected = "g.t: names: expected at most 8388608 characters in the capability scopes of one call, got more"
    assert (str(caught.value), caught.value.code, caught.value.retry) == (expected, "limit.text", "model")
    assert (decision.allowed, decision.code, decision.retry) == (False, "limit.text", "model")


@pytest.mark.parametrize("mark", ["\\", ":", ",", "*", "?", "[", "{", "}", "/"])
def test_special_characters_take_no_call_each(mark: str) -> None:
    """A scope escapes and reads all of them at once."""
    with engine_of(ArgSpec("a", ArgType.STRING), capabilities=("env:read:{a}",)) as engine:
        run = {count: partial(engine.call, "g.t", (mark * count,)) for count in (10_000, 20_000)}
        work = [calls_in(each) for each in (run[10_000], *run.values())]

    assert work[1] == work[2]


# Reports of a call


def test_first_twenty_repairs_are_described() -> None:
    """Further values cause no work."""
    with engine_of(ArgSpec("a", ArgType.SLICE_INT)) as engine:
        calls = [ToolCall("g.t", [["1"] * count]) for count in (1_000, 2_000)]
        executed = [calls_in(partial(engine.execute, each)) for each in calls]
        called = [calls_in(partial(engine.call, "g.t", each.arguments)) for each in calls]
        repaired = engine.execute(calls[0]).repairs

    assert [*repaired] == [Repair(f"a[{index}]", "str", "int") for index in range(20)]
    assert (executed[1] - called[1]) == pytest.approx(executed[0] - called[0], abs=1_000)


def test_repairs_run_no_code_of_a_caller() -> None:
    """This includes the keys and the container of the arguments."""
    executed: list[str] = []

    class Key(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            executed.append("==")
            return str.__eq__(self, other)

    class Arguments(list[Any]):
        def __iter__(self) -> Any:
            executed.append("iter")
            return super().__iter__()

    with engine_of(ArgSpec("a", ArgType.MAP_STRING_INT)) as engine:
        for arguments in ({Key("a"): {Key("b"): "5"}}, Arguments([{Key("b"): "5"}])):
            result = engine.execute(ToolCall("g.t", arguments))
            assert result.repairs == (Repair("a['b']", "str", "int"),)

    assert executed == []


def test_old_names_are_found_in_an_index() -> None:
    """The first lookup of a tool does not compare it with every old name."""
    work = []
    for count in (500, 1_000):
        tools = Toolset("g")
        for index in range(count):
            tools.add(ToolSpec(f"t{index}", "g"), lambda rt: None)
            tools.alias(f"g.old{index}", f"g.t{index}")
        with Engine(toolsets=[tools], plugins="none") as engine:
            work.append(steps_in(lambda engine=engine: engine.infos))

    assert work[1] < 2.2 * work[0]


@pytest.mark.alone
def test_duplicate_names_are_found_in_linear_time() -> None:
    """This covers the arguments of a tool and the keys of a map."""
    keys = [ArgSpec(f"key{index}", ArgType.INT) for index in range(16_000)]

    few, many = (
        seconds_in(lambda count=count: ArgSpec("a", ArgType.MAP, keys=keys[:count])) for count in (8_000, 16_000)
    )

    assert many < 3 * few


def test_invalid_call_in_a_reply_is_reported_once() -> None:
    """A list is not reported once for each of its values, each time with the whole string."""
    text = f"[{'1,' * 2_000}1]"

    assert marked_calls(text) == [ParsedCall("", text)]
    assert marked_calls('[{"name": "g__t"}, 5, 6]') == [
        ParsedCall("g__t", {}),
        ParsedCall("g__t", '[{"name": "g__t"}, 5, 6]'),
    ]


def test_plan_suggests_names_for_a_hundred_unknown_tools() -> None:
    """The others have no suggestion."""
    work = []
    with engine_of() as engine:
        for count in (200, 400):
            plan = Plan(nodes=tuple(Node(name=f"n{index}", tool=f"g.x{index}t") for index in range(count)))
            found = _plans()(engine, plan)
            assert len(found) == count  # type: ignore[arg-type]
            work.append(calls_in(partial(_plans(), engine, plan)))

    assert found[0] == "nodes.n0.tool: unknown tool g.x0t; did you mean g.t?"  # type: ignore[index]
    assert found[-1] == f"nodes.n{count - 1}.tool: unknown tool g.x{count - 1}t"  # type: ignore[index]
    assert (work[1] - work[0]) / 200 < 60
