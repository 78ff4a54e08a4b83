"""Tools of neurosurfer, and the values that a host passes to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.interop.neurosurfer_tools import (
    GOOD,
    Careless,
    Database,
    EchoTool,
    Recorder,
    SQLQueryTool,
    engine_of,
    invoker_of,
    make_spec,
    text_spec,
)

from neuroscript import (
    ArgumentError,
    Engine,
    ExecutionPolicy,
    Host,
    PolicyError,
    Resolver,
    Secret,
    SpecError,
    State,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    Variable,
)
from neuroscript.interop.neurosurfer import BaseTool, Toolkit, ToolParam, ToolResponse, from_neurosurfer
from neuroscript.tools.injection_sources import Value

# The tool


def test_nsf_28_a_tool_with_an_invalid_spec_is_not_registered() -> None:
    """Even if its own constructor does not validate the spec."""
    careless = Careless(make_spec(inputs=[ToolParam("b", "decimal", "d")]))
    for register in (Toolkit().register_tool, lambda tool: Toolkit([tool])):
        with pytest.raises(ValueError, match=r"^calculator\.b has unsupported type 'decimal'\.$"):
            register(careless)
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([careless, Careless(5), EchoTool()])

    assert (
        "from_neurosurfer neurosurfer: Careless: calculator.b has unsupported type 'decimal'.; "
        "Careless: Careless must define a ToolSpec 'spec'."
    ) == str(caught.value)


def test_nsf_29_a_tool_receives_its_inputs_and_the_context() -> None:
    """By name; an input overrides the context."""
    tool = Recorder(ToolResponse(True, "done"))
    with engine_of(tool, context={"db_engine": "db", "text": "not this"}) as engine:
        result = engine.call("neurosurfer.recorder", ("hello",))

    assert ("done", {"text": "hello", "db_engine": "db"}) == (result, tool.inputs)


def test_nsf_30_the_echo_tool_works_and_its_spec_is_strict() -> None:
    """On its own, in an engine, and with an input of another type."""
    assert ToolResponse(True, "hi") == EchoTool()(text="hi")
    with pytest.raises(ValueError, match=r"^Input 'text' expected string, got int$"):
        EchoTool().spec.check_inputs({"text": 123})
    with engine_of(EchoTool()) as engine:
        assert "hi" == engine.call("neurosurfer.echo", ("hi",))
        with pytest.raises(ArgumentError):
            engine.call("neurosurfer.echo", (123,))


def test_nsf_31_an_answer_has_three_fields() -> None:
    """Each answer has its own extras."""
    first, second = ToolResponse(False, "a"), ToolResponse(final_answer=False, observation="a")
    assert first == second
    first.extras["row_ids"] = [1]

    assert ({"row_ids": [1]}, {}) == (first.extras, second.extras)
    assert "ToolResponse(final_answer=False, observation='a', extras={})" == repr(second)
    with pytest.raises(TypeError):
        ToolResponse(True)  # type: ignore[call-arg]


def test_nsf_32_an_agent_stops_at_a_final_answer() -> None:
    """A loop reads it from the answer; a call through an engine returns only the observation."""
    with invoker_of(Recorder(ToolResponse(False, "more"), "first"), EchoTool()) as invoker:
        presented = None
        for name in ("first", "echo", "first"):
            answer = invoker.invoke(name, {"text": "hi"})
            if answer.final_answer:
                presented = answer.observation
                break

    assert "hi" == presented


def test_nsf_37_a_tool_class_needs_a_call_method() -> None:
    """Without one, the class is abstract."""
    with pytest.raises(TypeError, match="abstract"):
        type("NoCall", (BaseTool,), {"spec": make_spec()})()


def test_nsf_38_a_tool_class_needs_a_spec() -> None:
    """The error names the class."""
    call = {"__call__": EchoTool.__call__}
    for fields in (call, {**call, "spec": {"name": "x"}}):
        with pytest.raises(TypeError) as caught:
            type("NoSpec", (BaseTool,), fields)()
        assert "NoSpec must define a ToolSpec 'spec'." == str(caught.value)


def test_nsf_39_an_invalid_spec_fails_the_constructor() -> None:
    """With the error of the spec."""
    fields = {"__call__": EchoTool.__call__, "spec": make_spec(inputs=[])}
    with pytest.raises(ValueError, match=r"^ToolSpec\(calculator\) must define at least one input param\.$"):
        type("Empty", (BaseTool,), fields)()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"inputs": 5}, "calculator must have ToolParams as inputs and a ToolReturn as returns."),
        ({"inputs": [5]}, "calculator must have ToolParams as inputs and a ToolReturn as returns."),
        ({"returns": None}, "calculator must have ToolParams as inputs and a ToolReturn as returns."),
        ({"inputs": [ToolParam(5, "string", "d")]}, "calculator has an input whose name is not a string."),  # type: ignore[arg-type]
        ({"inputs": [ToolParam(["a"], "string", "d")]}, "calculator has an input whose name is not a string."),  # type: ignore[arg-type]
    ],
    ids=["number", "inputs", "returns", "name", "list"],
)
def test_nsf_39_a_malformed_spec_is_invalid(changes: dict[str, Any], expected: str) -> None:
    """The documented error is raised by the constructor and by the registration."""
    fields = {"__call__": EchoTool.__call__, "spec": make_spec(**changes)}
    for make in (type("Odd", (BaseTool,), fields), lambda: Toolkit([Careless(make_spec(**changes))])):
        with pytest.raises(ValueError) as caught:
            make()
        assert expected == str(caught.value)
    with pytest.raises(SpecError) as refused:
        from_neurosurfer(Careless(make_spec(**changes)))

    assert f"from_neurosurfer neurosurfer: Careless: {expected}" == str(refused.value)


def test_nsf_40_a_tool_returns_a_tool_response() -> None:
    """Any other result is a failure of the tool."""
    generator = (each for each in "ab")
    with engine_of(Recorder("text"), Recorder(generator, "yielding")) as engine:
        with pytest.raises(ToolFailed):
            engine.call("neurosurfer.yielding", ("a",))
        with pytest.raises(ToolFailed) as caught:
            engine.call("neurosurfer.recorder", ("a",))

    assert generator.gi_frame is None
    assert "neurosurfer.recorder: result: expected a ToolResponse, got str" == str(caught.value)
    assert ("neurosurfer.answer", "host") == (caught.value.code, caught.value.retry)


def test_nsf_40_an_unusable_final_answer_closes_the_generator() -> None:
    """Even if it has started; extras are not stored."""

    class Undecided:
        def __bool__(self) -> bool:
            raise ValueError

    generator = (each for each in "ab")
    next(generator)
    tool = Recorder(ToolResponse(Undecided(), generator, {"n": 1}))  # type: ignore[arg-type]
    with engine_of(tool) as engine:
        with pytest.raises(ToolFailed):
            engine.call("neurosurfer.recorder", ("a",))
        assert None is engine.memory.variables.get("n", None)

    assert generator.gi_frame is None


class Awaited(BaseTool):
    """A coroutine tool that returns an async generator."""

    spec = text_spec("awaited")

    async def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:  # type: ignore[override]
        async def letters() -> AsyncIterator[str]:
            for each in text:
                await asyncio.sleep(0)
                yield each

        return ToolResponse(True, letters())


def test_nsf_40_a_coroutine_is_awaited() -> None:
    """From sync and async code; its async generator is closed when its reader stops."""

    async def read(engine: Engine) -> list[Any]:
        items = engine.astream("neurosurfer.awaited", ("abc",))
        first = await anext(items)
        await items.aclose()  # type: ignore[attr-defined]
        return [first, await engine.acall("neurosurfer.awaited", ("de",))]

    with engine_of(Awaited()) as engine:
        assert ["a", ["d", "e"]] == asyncio.run(read(engine))
        assert ["f"] == engine.call("neurosurfer.awaited", ("f",))


# Context


class Context(BaseTool):
    """A tool with named parameters for the context."""

    spec = text_spec("context")

    def __call__(self, *, text: str, llm: Any, embedder: Any = "none") -> ToolResponse:
        return ToolResponse(True, f"{text} {llm} {embedder}")


def test_nsf_41_context_is_passed_by_name() -> None:
    """Objects are passed unchanged, sources are read for each call, and missing values are omitted."""
    tool, db, state = Recorder(ToolResponse(True, "")), Database(), {"user": {"name": "ada"}}
    context = {
        "db_engine": db,
        "value": Value([1]),
        "user": State(state, "user.name"),
        "missing": State(state, "missing.name"),
        "place": Variable("home"),
        "sandbox": Resolver(lambda rt: len(rt.sandbox_dir) > 0),
        "key": Secret("key"),
    }
    host = Host(secrets={"key": "hush-hush-4711-now"}, variables={"home": "here", "value": "not this", "other": 2})
    policy = ExecutionPolicy(grants=("neurosurfer:call:*", "secret:read:*"))
    with engine_of(tool, context=context, host=host, policy=policy) as engine:
        engine.call("neurosurfer.recorder", ("x",))
    received = dict(tool.inputs)

    assert db is received.pop("db_engine")
    assert {
        "text": "x",
        "value": [1],
        "user": "ada",
        "place": "here",
        "home": "here",
        "other": 2,
        "sandbox": True,
        "key": "hush-hush-4711-now",
    } == received


def test_nsf_41_an_omitted_input_is_not_replaced() -> None:
    """Neither by the context nor by extras of other tools; extras do not override the context."""
    first = Recorder(ToolResponse(False, "a", {"limit": 1, "db_engine": "mine", "user": "mallory"}), "first")
    second = Recorder(ToolResponse(True, ""), "second")
    context = {"db_engine": (db := Database()), "limit": 2, "user": Variable("missing")}
    with engine_of(first, SQLQueryTool(), second, context=context) as engine:
        engine.call("neurosurfer.first", ("x",))
        engine.call("neurosurfer.sql_query", ("q",))
        engine.call("neurosurfer.second", ("y",))

    assert ["q", 100] == db.queries
    assert {"text": "y", "db_engine": db, "limit": 2} == second.inputs


def test_nsf_41_a_secret_in_the_context_needs_a_grant() -> None:
    """Without it the tool is not called."""
    tool = Recorder(ToolResponse(True, ""))
    with engine_of(tool, context={"key": Secret("key")}, host=Host(secrets={"key": "hush-hush-4711-now"})) as engine:
        with pytest.raises(PolicyError):
            engine.call("neurosurfer.recorder", ("x",))

    assert {} == tool.inputs


def test_nsf_41_a_tool_without_keyword_arguments_receives_only_its_parameters() -> None:
    """It is not called without a required one."""
    host = Host(variables={"noise": 1, "embedder": "e"})
    with engine_of(Context(), context={"llm": "model", "more": 1}, host=host) as engine:
        assert "a model e" == engine.call("neurosurfer.context", ("a",))
    with engine_of(Context()) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("neurosurfer.context", ("a",))

    assert "neurosurfer.context: llm: required by the tool, but not supplied by its host" == str(caught.value)
    assert ("inject.missing", "host") == (caught.value.code, caught.value.retry)


def test_nsf_41_a_failing_source_is_an_error_for_the_host() -> None:
    """A ToolFailed passes through; invalid settings are refused at once."""

    def fail(rt: Any) -> Any:
        raise KeyError("secret")

    def refuse(rt: Any) -> Any:
        raise ToolFailed("not today", retry="later")

    async def resolve(rt: Any) -> Any:
        return 1

    tool = Recorder(ToolResponse(True, ""))
    with engine_of(tool, context={"llm": Resolver(fail)}) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("neurosurfer.recorder", ("x",))
    with engine_of(tool, context={"llm": Resolver(refuse)}) as engine, pytest.raises(ToolFailed) as refused:
        engine.call("neurosurfer.recorder", ("x",))
    with pytest.raises(SpecError) as wrong:
        from_neurosurfer(tool, context={"llm": Resolver(resolve), 5: 1})  # type: ignore[dict-item]
    with pytest.raises(SpecError) as other:
        from_neurosurfer(tool, context=[1])  # type: ignore[call-overload]

    assert "neurosurfer.recorder: llm: its source failed (KeyError)" == str(caught.value)
    assert "neurosurfer.recorder: not today" == str(refused.value)
    assert (
        "from_neurosurfer neurosurfer: context: expected str names, got int; "
        "context: llm: async resolvers are not supported here"
    ) == str(wrong.value)
    assert "from_neurosurfer neurosurfer: context: expected a mapping, got list" == str(other.value)


def test_nsf_42_a_tool_may_answer_without_its_resources() -> None:
    """A string where an object was declared is not an error."""
    with engine_of(SQLQueryTool()) as engine:
        assert "DB engine not available." == engine.call("neurosurfer.sql_query", ("q",))


def test_nsf_43_an_omitted_input_uses_the_default_of_the_function() -> None:
    """Without a default it is required, even if the spec says optional."""

    class NoDefault(BaseTool):
        spec = make_spec("strict", inputs=[ToolParam("text", "string", "d", required=False)])

        def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
            return ToolResponse(True, text)

    with engine_of(SQLQueryTool(), NoDefault(), context={"db_engine": (db := Database())}) as engine:
        assert {"rows": [{"id": 0}, {"id": 1}]} == engine.call("neurosurfer.sql_query", ("q",))
        assert {"rows": [{"id": 0}]} == engine.call("neurosurfer.sql_query", ("q", "1"))
        with pytest.raises(ArgumentError, match="text: expected string, got nothing"):
            engine.call("neurosurfer.strict")

    assert ["q", 100, "q", 1] == db.queries


def test_nsf_43_an_input_without_a_parameter_is_refused() -> None:
    """If the function accepts neither its name nor arbitrary names."""

    class Incomplete(BaseTool):
        spec = make_spec("deaf")

        def __call__(self, operation: str, *, a: float) -> ToolResponse:  # type: ignore[override]
            return ToolResponse(True, operation)

    with pytest.raises(SpecError) as caught:
        from_neurosurfer(Incomplete())

    expected = "from_neurosurfer neurosurfer: deaf: b: not a parameter of its function"
    assert expected == str(caught.value)


@pytest.mark.parametrize("name", ["self", "text"])
def test_nsf_43_an_input_that_cannot_be_passed_by_name_is_refused(name: str) -> None:
    """The instance itself, and a positional-only parameter, even if other names are accepted."""

    class Positional(BaseTool):
        spec = make_spec("placed", inputs=[ToolParam(name, "string", "d")])

        def __call__(this, text: str, /, **kwargs: Any) -> ToolResponse:  # type: ignore[override]
            return ToolResponse(True, text)

    class Open(BaseTool):
        spec = make_spec("open", inputs=[ToolParam(name, "string", "d")])

        def __call__(self, **kwargs: Any) -> ToolResponse:
            return ToolResponse(True, kwargs[name])

    with pytest.raises(SpecError) as caught:
        from_neurosurfer(Positional() if name == "text" else Open())

    expected = f"{name}: not a parameter of its function"
    assert f"from_neurosurfer neurosurfer: {'placed' if name == 'text' else 'open'}: {expected}" == str(caught.value)


def test_nsf_41_context_that_cannot_be_passed_by_name_is_omitted() -> None:
    """A variable named ``self`` does not affect later calls; a positional-only parameter is missing."""

    class Positional(BaseTool):
        spec = text_spec("placed")

        def __call__(self, db: Any, /, *, text: str) -> ToolResponse:  # type: ignore[override]
            return ToolResponse(True, text)

    first, second = Recorder(ToolResponse(False, "a", {"self": 1, "n": 2}), "first"), Recorder(ToolResponse(True, ""))
    with engine_of(first, second, Positional(), context={"self": 1, "db": 2}) as engine:
        engine.call("neurosurfer.first", ("x",))
        engine.call("neurosurfer.recorder", ("y",))
        with pytest.raises(ToolFailed) as caught:
            engine.call("neurosurfer.placed", ("z",))

    assert {"text": "y", "n": 2, "db": 2} == second.inputs
    assert "neurosurfer.placed: db: required by the tool, but not supplied by its host" == str(caught.value)


# In an engine


def test_a_tool_needs_a_grant_and_an_approval_by_default() -> None:
    """Like every tool with unknown effects."""
    unknown, trusted = from_neurosurfer(EchoTool(), group="sql.tools"), from_neurosurfer(EchoTool(), trusted=True)
    own = ToolPolicy(effects=("pure",))

    assert (("neurosurfer:call:sql.tools/echo",), True) == (
        unknown.policy.capabilities,
        unknown.policy.requires_approval,
    )
    assert (("neurosurfer:call:neurosurfer/echo",), False) == (
        trusted.policy.capabilities,
        trusted.policy.requires_approval,
    )
    assert own == from_neurosurfer(EchoTool(), policy=own).policy
    with Engine(plugins="none", toolsets=[Toolset("sql", (unknown,))]) as engine, pytest.raises(PolicyError):
        engine.call("sql.tools.echo", ("a",))


def test_loosely_typed_inputs_arrive_exact() -> None:
    """Strings of a model become the declared types."""
    tool = Careless(
        make_spec("all", inputs=[ToolParam(kind[:3], kind, "d") for kind in GOOD]),
    )
    received: dict[str, Any] = {}
    tool.__class__ = type(
        "Open", (Careless,), {"__call__": lambda self, **kwargs: received.update(kwargs) or ToolResponse(True, "")}
    )
    raw = {"int": "2", "num": "3", "boo": "true", "arr": "[1]", "obj": '{"a": 1}', "str": "5"}
    with engine_of(tool) as engine:
        result = engine.execute(ToolCall("neurosurfer__all", json.dumps(raw)))

    assert result.ok
    expected = {"int": 2, "num": 3.0, "boo": True, "arr": [1], "obj": {"a": 1}, "str": "5"}
    assert expected == received
    assert [type(expected[name]) for name in raw] == [type(received[name]) for name in raw]
