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
    Giving,
    SQLQueryTool,
    engine_of,
    invoker_of,
    specified,
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


def test_nsf_28_no_tool_is_registered_whose_spec_is_not_valid() -> None:
    """Whatever its own constructor leaves out."""
    careless = Careless(specified(inputs=[ToolParam("b", "decimal", "d")]))
    for register in (Toolkit().register_tool, lambda tool: Toolkit([tool])):
        with pytest.raises(ValueError, match=r"^calculator\.b has unsupported type 'decimal'\.$"):
            register(careless)
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([careless, Careless(5), EchoTool()])

    assert (
        "from_neurosurfer neurosurfer: Careless: calculator.b has unsupported type 'decimal'.; "
        "Careless: Careless must define a ToolSpec 'spec'."
    ) == str(caught.value)


def test_nsf_29_a_tool_is_called_with_its_inputs_and_what_its_host_gives() -> None:
    """Both by name; an input goes first."""
    tool = Giving(ToolResponse(True, "done"))
    with engine_of(tool, context={"db_engine": "db", "text": "not this"}) as engine:
        result = engine.call("neurosurfer.giving", ("hello",))

    assert ("done", {"text": "hello", "db_engine": "db"}) == (result, tool.given)


def test_nsf_30_the_echo_tool_works_and_its_spec_is_strict() -> None:
    """By itself, in an engine, and with an input of another type."""
    assert ToolResponse(True, "hi") == EchoTool()(text="hi")
    with pytest.raises(ValueError, match=r"^Input 'text' expected string, got int$"):
        EchoTool().spec.check_inputs({"text": 123})
    with engine_of(EchoTool()) as engine:
        assert "hi" == engine.call("neurosurfer.echo", ("hi",))
        with pytest.raises(ArgumentError):
            engine.call("neurosurfer.echo", (123,))


def test_nsf_31_an_answer_has_three_fields() -> None:
    """Its extras are its own."""
    first, second = ToolResponse(False, "a"), ToolResponse(final_answer=False, observation="a")
    assert first == second
    first.extras["row_ids"] = [1]

    assert ({"row_ids": [1]}, {}) == (first.extras, second.extras)
    assert "ToolResponse(final_answer=False, observation='a', extras={})" == repr(second)
    with pytest.raises(TypeError):
        ToolResponse(True)  # type: ignore[call-arg]


def test_nsf_32_an_agent_stops_at_a_final_answer() -> None:
    """A loop reads it off the answer; a call through an engine gives the observation alone."""
    with invoker_of(Giving(ToolResponse(False, "more"), "first"), EchoTool()) as invoker:
        presented = None
        for name in ("first", "echo", "first"):
            answer = invoker.invoke(name, {"text": "hi"})
            if answer.final_answer:
                presented = answer.observation
                break

    assert "hi" == presented


def test_nsf_37_a_tool_without_a_call_can_not_be_made() -> None:
    """It is abstract."""
    with pytest.raises(TypeError, match="abstract"):
        type("NoCall", (BaseTool,), {"spec": specified()})()


def test_nsf_38_a_tool_has_a_spec_that_is_one() -> None:
    """The class is named."""
    call = {"__call__": EchoTool.__call__}
    for fields in (call, {**call, "spec": {"name": "x"}}):
        with pytest.raises(TypeError) as caught:
            type("NoSpec", (BaseTool,), fields)()
        assert "NoSpec must define a ToolSpec 'spec'." == str(caught.value)


def test_nsf_39_a_spec_that_is_not_valid_fails_the_constructor() -> None:
    """With what the spec says."""
    fields = {"__call__": EchoTool.__call__, "spec": specified(inputs=[])}
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
def test_nsf_39_a_spec_of_another_shape_is_not_valid_either(changes: dict[str, Any], expected: str) -> None:
    """The error is of the kind that the document names, in the constructor and where the tool is registered."""
    fields = {"__call__": EchoTool.__call__, "spec": specified(**changes)}
    for make in (type("Odd", (BaseTool,), fields), lambda: Toolkit([Careless(specified(**changes))])):
        with pytest.raises(ValueError) as caught:
            make()
        assert expected == str(caught.value)
    with pytest.raises(SpecError) as refused:
        from_neurosurfer(Careless(specified(**changes)))

    assert f"from_neurosurfer neurosurfer: Careless: {expected}" == str(refused.value)


def test_nsf_40_a_tool_answers_with_a_tool_response() -> None:
    """Any other error is a failure of the tool and is reported."""
    generator = (each for each in "ab")
    with engine_of(Giving("text"), Giving(generator, "yielding")) as engine:
        with pytest.raises(ToolFailed):
            engine.call("neurosurfer.yielding", ("a",))
        with pytest.raises(ToolFailed) as caught:
            engine.call("neurosurfer.giving", ("a",))

    assert generator.gi_frame is None
    assert "neurosurfer.giving: result: expected a ToolResponse, got str" == str(caught.value)
    assert ("neurosurfer.answer", "host") == (caught.value.code, caught.value.retry)


def test_nsf_40_an_answer_that_does_not_say_if_it_is_final_ends_its_generator() -> None:
    """One that is under way too; nothing of its extras is kept."""

    class Unsaid:
        def __bool__(self) -> bool:
            raise ValueError

    generator = (each for each in "ab")
    next(generator)
    tool = Giving(ToolResponse(Unsaid(), generator, {"n": 1}))  # type: ignore[arg-type]
    with engine_of(tool) as engine:
        with pytest.raises(ToolFailed):
            engine.call("neurosurfer.giving", ("a",))
        assert None is engine.memory.variables.get("n", None)

    assert generator.gi_frame is None


class Awaited(BaseTool):
    """A tool that is awaited, and gives an async generator."""

    spec = text_spec("awaited")

    async def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:  # type: ignore[override]
        async def letters() -> AsyncIterator[str]:
            for each in text:
                await asyncio.sleep(0)
                yield each

        return ToolResponse(True, letters())


def test_nsf_40_a_coroutine_is_awaited() -> None:
    """By callers of both worlds, and its async generator is read to where its reader stops."""

    async def read(engine: Engine) -> list[Any]:
        items = engine.astream("neurosurfer.awaited", ("abc",))
        first = await anext(items)
        await items.aclose()  # type: ignore[attr-defined]
        return [first, await engine.acall("neurosurfer.awaited", ("de",))]

    with engine_of(Awaited()) as engine:
        assert ["a", ["d", "e"]] == asyncio.run(read(engine))
        assert ["f"] == engine.call("neurosurfer.awaited", ("f",))


# What a tool gets


class Context(BaseTool):
    """A tool that names what its host gives."""

    spec = text_spec("context")

    def __call__(self, *, text: str, llm: Any, embedder: Any = "none") -> ToolResponse:
        return ToolResponse(True, f"{text} {llm} {embedder}")


def test_nsf_41_what_a_host_gives_arrives_by_name() -> None:
    """Objects as they are, sources as they are in each call; what is not there is not given."""
    tool, db, state = Giving(ToolResponse(True, "")), Database(), {"user": {"name": "ada"}}
    context = {
        "db_engine": db,
        "value": Value([1]),
        "user": State(state, "user.name"),
        "nobody": State(state, "nobody.name"),
        "place": Variable("home"),
        "sandbox": Resolver(lambda rt: len(rt.sandbox_dir) > 0),
        "key": Secret("key"),
    }
    host = Host(secrets={"key": "hush-hush-4711-now"}, variables={"home": "here", "value": "not this", "other": 2})
    policy = ExecutionPolicy(grants=("neurosurfer:call:*", "secret:read:*"))
    with engine_of(tool, context=context, host=host, policy=policy) as engine:
        engine.call("neurosurfer.giving", ("x",))
    given = dict(tool.given)

    assert db is given.pop("db_engine")
    assert {
        "text": "x",
        "value": [1],
        "user": "ada",
        "place": "here",
        "home": "here",
        "other": 2,
        "sandbox": True,
        "key": "hush-hush-4711-now",
    } == given


def test_nsf_41_nothing_takes_the_place_of_a_declared_input_that_is_left_out() -> None:
    """Neither what the host gives nor what an earlier tool did; and no tool takes the place of the host."""
    first = Giving(ToolResponse(False, "a", {"limit": 1, "db_engine": "mine", "user": "mallory"}), "first")
    second = Giving(ToolResponse(True, ""), "second")
    context = {"db_engine": (db := Database()), "limit": 2, "user": Variable("nobody")}
    with engine_of(first, SQLQueryTool(), second, context=context) as engine:
        engine.call("neurosurfer.first", ("x",))
        engine.call("neurosurfer.sql_query", ("q",))
        engine.call("neurosurfer.second", ("y",))

    assert ["q", 100] == db.asked
    assert {"text": "y", "db_engine": db, "limit": 2} == second.given


def test_nsf_41_a_secret_is_a_need_of_the_tool() -> None:
    """Without the grant it is not called."""
    tool = Giving(ToolResponse(True, ""))
    with engine_of(tool, context={"key": Secret("key")}, host=Host(secrets={"key": "hush-hush-4711-now"})) as engine:
        with pytest.raises(PolicyError):
            engine.call("neurosurfer.giving", ("x",))

    assert {} == tool.given


def test_nsf_41_a_tool_that_names_what_it_takes_gets_nothing_else() -> None:
    """It is not called without a required argument."""
    host = Host(variables={"noise": 1, "embedder": "e"})
    with engine_of(Context(), context={"llm": "model", "more": 1}, host=host) as engine:
        assert "a model e" == engine.call("neurosurfer.context", ("a",))
    with engine_of(Context()) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("neurosurfer.context", ("a",))

    assert "neurosurfer.context: llm: required by the tool, but not supplied by its host" == str(caught.value)
    assert ("inject.missing", "host") == (caught.value.code, caught.value.retry)


def test_nsf_41_a_source_that_fails_is_the_host_s() -> None:
    """Its own errors pass through; unusable settings are refused at once."""

    def broken(rt: Any) -> Any:
        raise KeyError("secret")

    def refusing(rt: Any) -> Any:
        raise ToolFailed("not today", retry="later")

    async def awaited(rt: Any) -> Any:
        return 1

    tool = Giving(ToolResponse(True, ""))
    with engine_of(tool, context={"llm": Resolver(broken)}) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("neurosurfer.giving", ("x",))
    with engine_of(tool, context={"llm": Resolver(refusing)}) as engine, pytest.raises(ToolFailed) as refused:
        engine.call("neurosurfer.giving", ("x",))
    with pytest.raises(SpecError) as wrong:
        from_neurosurfer(tool, context={"llm": Resolver(awaited), 5: 1})  # type: ignore[dict-item]
    with pytest.raises(SpecError) as other:
        from_neurosurfer(tool, context=[1])  # type: ignore[call-overload]

    assert "neurosurfer.giving: llm: its source failed (KeyError)" == str(caught.value)
    assert "neurosurfer.giving: not today" == str(refused.value)
    assert (
        "from_neurosurfer neurosurfer: context: expected str names, got int; "
        "context: llm: async resolvers are not supported here"
    ) == str(wrong.value)
    assert "from_neurosurfer neurosurfer: context: expected a mapping, got list" == str(other.value)


def test_nsf_42_a_tool_that_lacks_something_says_so_softly() -> None:
    """Text where an object was declared is not an error."""
    with engine_of(SQLQueryTool()) as engine:
        assert "DB engine not available." == engine.call("neurosurfer.sql_query", ("q",))


def test_nsf_43_an_input_that_is_left_out_has_its_default() -> None:
    """That of Python; one without any must be given, whatever the spec says."""

    class NoDefault(BaseTool):
        spec = specified("strict", inputs=[ToolParam("text", "string", "d", required=False)])

        def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
            return ToolResponse(True, text)

    with engine_of(SQLQueryTool(), NoDefault(), context={"db_engine": (db := Database())}) as engine:
        assert {"rows": [{"id": 0}, {"id": 1}]} == engine.call("neurosurfer.sql_query", ("q",))
        assert {"rows": [{"id": 0}]} == engine.call("neurosurfer.sql_query", ("q", "1"))
        with pytest.raises(ArgumentError, match="text: expected string, got nothing"):
            engine.call("neurosurfer.strict")

    assert ["q", 100, "q", 1] == db.asked


def test_nsf_43_an_input_that_never_arrives_is_refused() -> None:
    """Where the function takes neither its name nor any."""

    class Deaf(BaseTool):
        spec = specified("deaf")

        def __call__(self, operation: str, *, a: float) -> ToolResponse:  # type: ignore[override]
            return ToolResponse(True, operation)

    with pytest.raises(SpecError) as caught:
        from_neurosurfer(Deaf())

    expected = "from_neurosurfer neurosurfer: deaf: b: not a parameter of its function"
    assert expected == str(caught.value)


@pytest.mark.parametrize("name", ["self", "text"])
def test_nsf_43_an_input_that_can_not_be_given_by_name_is_refused(name: str) -> None:
    """That of the tool itself, and one that is taken by position alone, though any other name is."""

    class Placed(BaseTool):
        spec = specified("placed", inputs=[ToolParam(name, "string", "d")])

        def __call__(this, text: str, /, **kwargs: Any) -> ToolResponse:  # type: ignore[override]
            return ToolResponse(True, text)

    class Open(BaseTool):
        spec = specified("open", inputs=[ToolParam(name, "string", "d")])

        def __call__(self, **kwargs: Any) -> ToolResponse:
            return ToolResponse(True, kwargs[name])

    with pytest.raises(SpecError) as caught:
        from_neurosurfer(Placed() if name == "text" else Open())

    expected = f"{name}: not a parameter of its function"
    assert f"from_neurosurfer neurosurfer: {'placed' if name == 'text' else 'open'}: {expected}" == str(caught.value)


def test_nsf_41_what_can_not_be_given_by_name_is_not() -> None:
    """An extra or a variable called ``self`` breaks no later call; what is taken by position alone is missing."""

    class Placed(BaseTool):
        spec = text_spec("placed")

        def __call__(self, db: Any, /, *, text: str) -> ToolResponse:  # type: ignore[override]
            return ToolResponse(True, text)

    first, second = Giving(ToolResponse(False, "a", {"self": 1, "n": 2}), "first"), Giving(ToolResponse(True, ""))
    with engine_of(first, second, Placed(), context={"self": 1, "db": 2}) as engine:
        engine.call("neurosurfer.first", ("x",))
        engine.call("neurosurfer.giving", ("y",))
        with pytest.raises(ToolFailed) as caught:
            engine.call("neurosurfer.placed", ("z",))

    assert {"text": "y", "n": 2, "db": 2} == second.given
    assert "neurosurfer.placed: db: required by the tool, but not supplied by its host" == str(caught.value)


# What an engine makes of them


def test_a_tool_needs_a_grant_and_an_approval_unless_its_host_says_otherwise() -> None:
    """The same holds for every tool with unknown effects."""
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
    """As a model sends them: each of the type that the document's word means."""
    tool = Careless(
        specified("all", inputs=[ToolParam(kind[:3], kind, "d") for kind in GOOD]),
    )
    given: dict[str, Any] = {}
    tool.__class__ = type(
        "Open", (Careless,), {"__call__": lambda self, **kwargs: given.update(kwargs) or ToolResponse(True, "")}
    )
    raw = {"int": "2", "num": "3", "boo": "true", "arr": "[1]", "obj": '{"a": 1}', "str": "5"}
    with engine_of(tool) as engine:
        result = engine.execute(ToolCall("neurosurfer__all", json.dumps(raw)))

    assert result.ok
    expected = {"int": 2, "num": 3.0, "boo": True, "arr": [1], "obj": {"a": 1}, "str": "5"}
    assert expected == given
    assert [type(expected[name]) for name in raw] == [type(given[name]) for name in raw]
