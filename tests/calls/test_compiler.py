"""The call pipeline and its compiled form: both give the same outcome for every case."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs
import pytest
from tests.conftest import ALL
from tests.generator import Generator
from tests.properties import same

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Engine,
    LimitError,
    PolicyError,
    ReturnError,
    Runtime,
    SizeLimits,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    bind,
    bind_named,
)
from neuroscript.calls.pipeline import CallPipeline

SPECS = 6_000 if ALL else 300
CALLS = 40


def engine_of(spec: ToolSpec, func: Any = None, **options: Any) -> Engine:
    """Return an engine with one tool, which returns its arguments."""
    toolset = Toolset(spec.group)
    toolset.add(spec, func or (lambda rt, *values: None))
    return Engine(toolsets=[toolset], plugins="none", **options)


def given_to(engine: Engine, received: list[Any], call: Any) -> Any:
    """Return the values that a tool received in a call, or the error of the call as data."""
    received.clear()
    try:
        call()
    except ArgumentError as error:
        return str(error), error.problems, error.unlisted
    return list(received)


def bound_or_error(way: Any, spec: ToolSpec, given: Any) -> Any:
    """Return the values that plain binding gives, or its error as data."""
    try:
        return list(way(spec, given))
    except ArgumentError as error:
        return str(error), error.problems, error.unlisted


@pytest.mark.parametrize("share", range(10))
def test_compiled_pipeline_binds_what_plain_binding_binds(share: int) -> None:
    """Generated specs and arguments, positional and named, give the same values or the same problems."""
    random = Generator(share)
    fast = 0
    for _ in range(SPECS // 10):
        spec = random.spec(random.choice((0, 1, 1, 2, 2, 3)))
        received: list[Any] = []
        engine = engine_of(spec, lambda rt, *values: received.extend(values))
        for _ in range(CALLS):
            values = [random.value(arg) for arg in spec.args][: random.choice((None, None, None, 1, 2))]
            mapping = {arg.name: value for arg, value in zip(spec.args, values, strict=False)}
            if spec.variadic and len(values) == len(spec.args):
                mapping[spec.args[-1].name] = values[len(spec.args) - 1 :]
            args = random.choice((values, tuple(values), [*values, 5]))
            compiled = given_to(engine, received, lambda args=args: engine.call("g.t", args))
            assert alike(bound_or_error(bind, spec, args), compiled), (spec, args)
            compiled = given_to(engine, received, lambda mapping=mapping: engine.call_named("g.t", mapping))
            assert alike(bound_or_error(bind_named, spec, mapping), compiled), (spec, mapping)
            fast += not isinstance(compiled, tuple)
    assert fast > SPECS // 10 * CALLS // 10, "hardly a call was good, so hardly anything was compared"


def alike(walked: Any, compiled: Any) -> bool:
    """Return whether both ways gave equal values of equal types, or equal errors."""
    return walked == compiled if isinstance(walked, tuple) else same(walked, compiled)


PLAIN = (
    ArgSpec("s", ArgType.STRING),
    ArgSpec("i", ArgType.INT, minimum=0),
    ArgSpec("f", ArgType.FLOAT, default=1.5),
    ArgSpec("b", ArgType.BOOL, nullable=True, required=False),
)
KEYS = (ArgSpec("id", ArgType.INT), ArgSpec("name", ArgType.STRING, default="?"))
KINDS = {
    "plain": PLAIN,
    "list": (ArgSpec("tags", ArgType.SLICE_STRING), ArgSpec("n", ArgType.SLICE_INT, required=False)),
    "map": (ArgSpec("m", ArgType.MAP, keys=KEYS),),
    "maps": (ArgSpec("m", ArgType.SLICE_MAP, keys=KEYS),),
}
EDGES: list[tuple[str, Any]] = [
    ("plain", ("a", 1)),
    ("plain", ("a", 1, 2, None)),
    ("plain", ("a", 1, None, True)),
    ("plain", ("é", "7", "2", 0)),
    ("plain", ("\ud800", -1, float("nan"), "yes")),
    ("plain", ("a", 2**63)),
    ("plain", ("a", 2**31, 2**60)),
    ("plain", ()),
    ("plain", ("a", 1, 2, True, 5)),
    ("list", (["a"] * 13, list(range(40)))),
    ("list", (["a"] * 13 + [1],)),
    ("list", (["é"] * 13, [2**40] * 13)),
    ("list", (["\ud800"] * 13, [2**63] * 13)),
    ("list", ('["a"]', (1, 2))),
    ("list", ([],)),
    ("map", ({"id": 1, "name": "x"},)),
    ("map", ({"name": "x", "id": "1"},)),
    ("map", ({"id": 1},)),
    ("map", ({"id": 1, "name": None},)),
    ("map", ({"id": 1, "nome": "x"},)),
    ("map", ({"id": 1, 5: "x"},)),
    ("maps", ([{"name": "x", "id": 1}] * 3,)),
    ("maps", ([{"id": "1", "name": "é"}, {"id": 2}],)),
    ("maps", ([{"id": 1}, None, 3],)),
]


@pytest.mark.parametrize(("kind", "args"), EDGES, ids=[f"{kind}-{index}" for index, (kind, _) in enumerate(EDGES)])
@pytest.mark.parametrize("mode", ["lax", "strict"])
def test_edges_of_the_fast_path_agree_with_plain_binding(kind: str, args: tuple[Any, ...], mode: Any) -> None:
    """The cases are just inside and just outside of what compiled statements handle themselves."""
    spec = ToolSpec("t", "g", KINDS[kind])
    received: list[Any] = []
    engine = engine_of(spec, lambda rt, *values: received.extend(values), mode=mode)
    line, frame = engine._entry("g.t").pipeline, engine._entry("g.t").frame
    mapping = {arg.name: value for arg, value in zip(spec.args, args, strict=False)}

    for by_name, given, call in ((False, args, engine.call), (True, mapping, engine.call_named)):
        walked = bound_or_error(lambda _, each, by_name=by_name: line.bind(frame, each, by_name), spec, given)
        compiled = given_to(engine, received, lambda call=call, given=given: call("g.t", given))

        assert alike(walked, compiled)


def test_fast_path_exists_for_plain_lists_and_declared_maps() -> None:
    """Without compiled code, both ways would agree trivially."""
    for args in KINDS.values():
        engine = engine_of(ToolSpec("t", "g", args))
        entry = engine._entry("g.t")

        assert entry.function(False).__code__.co_filename == "<neuroscript call>"
        assert entry.function(True).__code__.co_filename == "<neuroscript call>"


def test_size_limits_hold_on_the_fast_path() -> None:
    """Both ways count string size, values and depth over all arguments of a call."""
    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.STRING), ArgSpec("b", ArgType.SLICE_STRING)))
    engine = engine_of(spec, size_limits=SizeLimits(text=100, nodes=20))

    assert engine.call("g.t", ("a" * 50, ["b"] * 10)) is None
    assert refusal(engine, ("a" * 50, ["b" * 30] * 2)) == "limit.text"
    assert refusal(engine, ("é" * 51, [])) == "limit.text"
    assert refusal(engine, ("a", ["b"] * 19)) == "limit.nodes"


def refusal(engine: Engine, args: Any) -> str:
    """Return the code with which a call is refused."""
    with pytest.raises(ArgumentError) as caught:
        engine.call("g.t", args)
    assert caught.value.retry == "model"
    return caught.value.code


def test_result_is_exact_or_a_return_error() -> None:
    """Results are strict, except that subclasses are converted, a tuple becomes a list, and an int may become a float."""
    results = {
        (ArgType.FLOAT, 3): 3.0,
        (ArgType.SLICE_INT, (1, 2)): [1, 2],
        (ArgType.STRING, json.dumps("a")): '"a"',
        (ArgType.NIL, None): None,
        (ArgType.ANY, None): None,
    }
    for (kind, returned), kept in results.items():
        engine = engine_of(ToolSpec("t", "g", return_type=kind), giving(returned))

        assert same(kept, engine.call("g.t"))


def giving(result: object) -> Any:
    """Return a tool function that returns *result*."""
    return lambda rt: result


@pytest.mark.parametrize(
    ("kind", "returned", "text"),
    [
        (ArgType.INT, "5", "g.t: result: expected int, got str"),
        (ArgType.INT, 2**63, "g.t: result: expected int, got int (the number must be from -2**63 to 2**63-1)"),
        (ArgType.FLOAT, float("inf"), "g.t: result: expected float, got float (the number must be finite)"),
        (ArgType.STRING, None, "g.t: result: expected string, got None"),
        (ArgType.SLICE_INT, [1, "2", None], "g.t: result[1]: expected int, got str; result[2]: expected int, got None"),
        (ArgType.NIL, 5, "g.t: result: expected nothing, got int"),
        (ArgType.ANY, {"k": object()}, "g.t: result['k']: expected a JSON-like value, got object"),
    ],
)
def test_wrong_result_type_is_reported(kind: ArgType, returned: object, text: str) -> None:
    """The error blames the tool and gives the path and the type, but not the value."""
    engine = engine_of(ToolSpec("t", "g", return_type=kind), lambda rt: returned)

    with pytest.raises(ReturnError) as caught:
        engine.call("g.t")

    assert text == str(caught.value)
    assert ("return.type", 6, "never") == (caught.value.code, caught.value.number, caught.value.retry)


def test_nullable_result_may_be_none() -> None:
    """``return_nullable`` adds None to the declared type and nothing else."""
    spec = ToolSpec(
        "t", "g", (ArgSpec("x", ArgType.ANY, required=False),), return_type=ArgType.INT, return_nullable=True
    )
    engine = engine_of(spec, lambda rt, x: x)

    assert engine.call("g.t") is None
    assert engine.call("g.t", (5,)) == 5
    with pytest.raises(ReturnError):
        engine.call("g.t", ("5",))


def test_result_shares_no_container_with_the_tool() -> None:
    """The caller may change the result without affecting the tool."""
    kept: list[Any] = [1, [2]]
    engine = engine_of(ToolSpec("t", "g", return_type=ArgType.SLICE), lambda rt: kept)

    engine.call("g.t")[1].append(3)

    assert kept == [1, [2]]


def test_argument_shares_no_container_with_the_caller() -> None:
    """A default is not shared with the spec either: each call has its own copy."""
    spec = ToolSpec("t", "g", (ArgSpec("x", ArgType.SLICE_INT, default=[1]),), return_type=ArgType.SLICE_INT)

    def grow(rt: Runtime, x: list[int]) -> list[int]:
        x.append(0)
        return x

    engine = engine_of(spec, grow)
    mine = [5]

    assert [engine.call("g.t"), engine.call("g.t"), engine.call("g.t", (mine,))] == [[1, 0], [1, 0], [5, 0]]
    assert mine == [5]


class Surprise(BaseException):
    """An exception outside ``Exception`` and the engine's errors."""


@pytest.mark.parametrize(
    "raised",
    [
        ValueError("secret"),
        KeyError("secret"),
        SystemExit(3),
        StopIteration(5),
        Surprise("secret"),
        RecursionError(),
        MemoryError(),
        ExceptionGroup("secret", [ValueError("secret")]),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_tool_exception_becomes_tool_failed(raised: BaseException) -> None:
    """The host can read its cause; the message does not contain its text."""

    def fail(rt: Runtime) -> None:
        raise raised

    engine = engine_of(ToolSpec("t", "g", return_type=ArgType.NIL), fail)

    with pytest.raises(ToolFailed) as caught:
        engine.call("g.t")

    assert caught.value.__cause__ is raised
    assert f"g.t: the tool failed ({type(raised).__name__})" == str(caught.value)
    assert ("tool.failed", 21, "never") == (caught.value.code, caught.value.number, caught.value.retry)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, GeneratorExit])
def test_interrupt_and_generator_exit_propagate(raised: type[BaseException]) -> None:
    """Ctrl-C ends the program, and closing a generator ends the code in it."""

    def interrupted(rt: Runtime, x: dict[str, Any] | None) -> None:
        raise raised

    engine = engine_of(ToolSpec("t", "g", (ArgSpec("x", ArgType.MAP, required=False),)), interrupted)
    for args in ((), ({},)):  # the compiled pipeline, and the stepwise one
        with pytest.raises(raised):
            engine.call("g.t", args)


def test_tool_may_fail_with_a_message_for_its_caller() -> None:
    """A ToolFailed from the tool keeps its message, code and retry, and receives the name of the tool."""

    def fail(rt: Runtime) -> None:
        raise ToolFailed("the shelf is empty", code="shop.empty", retry="later")

    with pytest.raises(ToolFailed) as caught:
        engine_of(ToolSpec("t", "g"), fail).call("g.t")

    assert "g.t: the shelf is empty" == str(caught.value)
    assert ("shop.empty", "later", "g.t") == (caught.value.code, caught.value.retry, caught.value.tool)


def nested_engine() -> Engine:
    """Return an engine whose tool ``g.outer`` calls the tool that it is asked to call."""
    tools = Toolset("g")
    tools.add(
        ToolSpec("outer", "g", (ArgSpec("name", ArgType.STRING), ArgSpec("args", ArgType.SLICE))),
        lambda rt, name, args: rt.call_tool(name, args),
    )
    tools.add(ToolSpec("trusted", "g"), lambda rt: None, ToolPolicy(requires_trust=True))
    tools.add(ToolSpec("number", "g", (ArgSpec("n", ArgType.INT),)), lambda rt, n: n)
    tools.add(ToolSpec("loop", "g"), lambda rt: rt.call_tool("g.loop"))
    return Engine(toolsets=[tools], plugins="none")


def test_nested_call_uses_the_same_pipeline() -> None:
    """Its arguments are coerced and its result is exact."""
    engine = nested_engine()

    assert engine.call("g.outer", ("tool.G.Number", ["7"])) == 7


def test_nested_refusal_propagates_through_the_outer_tool() -> None:
    """Policy and limits concern the host, at any depth."""
    engine = nested_engine()

    with pytest.raises(PolicyError) as refused:
        engine.call("g.outer", ("g.trusted", []))
    with pytest.raises(LimitError) as limited:
        engine.call("g.loop")

    assert ("g.trusted", "policy.trust", "host") == (refused.value.tool, refused.value.code, refused.value.retry)
    assert "g.loop: nested calls may be at most 16 deep" == str(limited.value)


def test_other_nested_errors_are_failures_of_the_outer_tool() -> None:
    """The model did not write those arguments, so the error must not blame it."""
    engine = nested_engine()

    with pytest.raises(ToolFailed) as caught:
        engine.call("g.outer", ("g.number", ["x"]))

    assert "g.outer: its call of g.number failed (coercion.format)" == str(caught.value)
    assert isinstance(caught.value.__cause__, ArgumentError)


def test_runtime_stops_working_after_its_call() -> None:
    """This also holds after a failed call."""
    kept: list[Any] = []
    for func in (lambda rt: kept.append(rt), lambda rt: kept.append(rt) or 1 / 0):
        engine = engine_of(ToolSpec("t", "g"), func)
        with suppress(ToolFailed):
            engine.call("g.t")
        for use in (
            lambda rt: rt.println("x"),
            lambda rt: rt.get_var("x"),
            lambda rt: rt.set_var("x", 1),
            lambda rt: rt.update_var("x", lambda old: old),
            lambda rt: rt.call_tool("g.t"),
            lambda rt: rt.call_tool_named("g.t", {}),
        ):
            with pytest.raises(CallError) as caught:
                use(kept[-1])

            assert (caught.value.code, caught.value.retry) == ("runtime.closed", "never")


@pytest.mark.parametrize("timeout", [None, 60], ids=["compiled", "steps"])
def test_stored_runtime_of_an_ended_call_does_not_hold_the_engine(timeout: float | None) -> None:
    """A tool may store its Runtime by mistake."""
    stored: list[Any] = []
    engine = engine_of(ToolSpec("t", "g", return_type=ArgType.NIL), lambda rt: stored.append(rt))
    engine.call("g.t", timeout=timeout)
    gone = weakref.ref(engine)

    del engine
    gc.collect()

    assert gone() is None
    assert stored[0].cancelled


@attrs.frozen
class Address:
    """A postal address."""

    street: str
    number: int = 1
    tags: list[str] = attrs.Factory(list)


@attrs.frozen
class Person:
    """A person with an address."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    home: Address | None = None


def test_attrs_class_is_delivered_as_an_instance_with_exact_fields() -> None:
    """Nested classes are instances too, in a map and in a list of maps; the records contain the map."""
    received: list[Any] = []
    spec = ToolSpec("t", "g", (ArgSpec("p", ArgType.MAP, cls=Person), ArgSpec("all", ArgType.SLICE_MAP, cls=Address)))
    engine = engine_of(spec, lambda rt, *values: received.extend(values))

    engine.call("g.t", ({"name": "Ada", "home": {"street": "Hill", "number": "7"}}, [{"street": "a", "tags": '["x"]'}]))

    assert received == [Person("Ada", Address("Hill", 7)), [Address("a", 1, ["x"])]]
    assert bind(spec, ({"name": "Ada"}, [])) == ({"name": "Ada", "home": None}, [])


def test_every_variadic_argument_of_a_class_is_an_instance() -> None:
    """The arguments before it are unchanged."""
    received: list[Any] = []
    spec = ToolSpec("t", "g", (ArgSpec("n", ArgType.INT), ArgSpec("p", ArgType.MAP, cls=Person)), variadic=True)
    engine = engine_of(spec, lambda rt, *values: received.extend(values))

    engine.call("g.t", (1, {"name": "Ada"}, {"name": "Bob"}))

    assert received == [1, Person("Ada"), Person("Bob")]


def test_class_that_refuses_its_fields_is_an_argument_error() -> None:
    """The error of the class is reported to the caller with the argument's name."""
    engine = engine_of(ToolSpec("t", "g", (ArgSpec("p", ArgType.MAP, cls=Person),)))

    with pytest.raises(ArgumentError) as caught:
        engine.call("g.t", ({"name": ""},))

    assert "g.t: p: expected a value that Person accepts, got dict" == str(caught.value)
    assert caught.value.tool == "g.t"


def test_unknown_field_of_a_class_is_reported_by_its_path() -> None:
    """Nested maps are checked against the fields of their class."""
    engine = engine_of(ToolSpec("t", "g", (ArgSpec("p", ArgType.MAP, cls=Person),)))

    with pytest.raises(ArgumentError) as caught:
        engine.call("g.t", ({"name": "Ada", "home": {"streat": "x"}},))

    assert [problem.where for problem in caught.value.problems] == ["p['home']['street']", "p['home']['streat']"]


def test_tools_with_equal_signatures_share_compiled_code() -> None:
    """The source numbers its objects, so a second tool with that signature needs no compilation."""
    from neuroscript.calls import compiler as compiled

    before = compiled._code.cache_info().currsize
    for name in ("one", "two", "three"):
        engine_of(ToolSpec(name, "shape_probe", (ArgSpec(name, ArgType.EMBEDDING, required=False),))).call(
            f"shape_probe.{name}"
        )

    assert compiled._code.cache_info().currsize - before <= 1


def test_pipeline_depends_on_the_kind_of_function() -> None:
    """Plain functions are called, waiting ones run on a thread, coroutine functions are awaited."""

    async def awaited(rt: Runtime) -> None: ...

    manners: Mapping[str, Any] = {
        "plain": (lambda rt: None, ToolPolicy(effects=("pure",))),
        "waits": (lambda rt: None, ToolPolicy(effects=("net",))),
        "coroutine": (awaited, ToolPolicy(effects=("net",))),
    }
    for manner, (func, policy) in manners.items():
        tools = Toolset("g")
        tools.add(ToolSpec("t", "g"), func, policy)
        line: CallPipeline = Engine(toolsets=[tools], plugins="none")._entry("g.t").pipeline

        assert line.run_mode == manner
