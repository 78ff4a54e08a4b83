"""The documented behavior of neurosurfer, as listed in ``docs/how-to/coming-from-neurosurfer.md``.

Each row has a test with its id in the name, or is in `LISTED` with the reason why it has none.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from neuroscript import (
    ArgType,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    Limits,
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
from neuroscript.interop.neurosurfer import (
    BaseTool,
    Invoker,
    Toolkit,
    ToolParam,
    ToolResponse,
    ToolReturn,
    ToolSpec,
    from_neurosurfer,
)
from neuroscript.llm.wire import anthropic
from neuroscript.tools.injection_sources import Value

LISTED = {
    "NSF-36": "guidance: when a streaming tool is to say that it is final",
    "NSF-47": "guidance: what makes a good tool",
    "NSF-48": "guidance: how to name a tool that has changed",
    "NSF-60": "true of the original's parser of Action lines alone; interop.prompted reads what models write",
}
"""Rows without a test, and why."""

GRANTED = ExecutionPolicy(grants=("neurosurfer:call:*",))
"""What a host permits that knows these tools."""


def specified(name: str = "calculator", **changes: Any) -> ToolSpec:
    """Return the spec of the document, with some fields changed."""
    fields = {
        "name": name,
        "description": "Performs arithmetic operations",
        "when_to_use": "Use when you must compute a numeric result",
        "inputs": [
            ToolParam(name="operation", type="string", description="add|sub|mul|div", required=True),
            ToolParam(name="a", type="number", description="Left operand", required=True),
            ToolParam(name="b", type="number", description="Right operand", required=True),
        ],
        "returns": ToolReturn(type="number", description="Result of the operation"),
    }
    return ToolSpec(**{**fields, **changes})  # type: ignore[arg-type]


def taking(kind: str, required: bool = True) -> ToolSpec:
    """Return the spec of a tool that takes ``x`` of a type."""
    return specified("tt", inputs=[ToolParam("x", kind, "d", required)])


def text_spec(name: str, kind: str = "string") -> ToolSpec:
    """Return the spec of a tool that takes ``text``."""
    return ToolSpec(name, "d", "w", [ToolParam("text", kind, "d")], ToolReturn("string", "r"))


class EchoTool(BaseTool):
    """The document's first tool."""

    spec = ToolSpec(
        name="echo",
        description="Echoes text back to the caller.",
        when_to_use="Use for basic echo or smoke testing",
        inputs=[ToolParam(name="text", type="string", description="Text to echo", required=True)],
        returns=ToolReturn(type="string", description="The echoed text"),
    )

    def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
        return ToolResponse(final_answer=True, observation=text)


class SQLQueryTool(BaseTool):
    """The document's second tool."""

    spec = ToolSpec(
        name="sql_query",
        description="Execute a SQL query and return rows as JSON.",
        when_to_use="When you need structured data from the database.",
        inputs=[
            ToolParam(name="query", type="string", description="The SQL query to run", required=True),
            ToolParam(name="limit", type="integer", description="Max rows to return", required=False),
        ],
        returns=ToolReturn(type="object", description="Query results as a JSON object"),
    )

    def __call__(self, *, query: str, limit: int = 100, **kwargs: Any) -> ToolResponse:
        db = kwargs.get("db_engine")
        if db is None:
            return ToolResponse(final_answer=True, observation="DB engine not available.")
        rows = db.execute(query).fetchmany(size=limit)
        return ToolResponse(final_answer=False, observation={"rows": [dict(r) for r in rows]})


class StreamLinesTool(BaseTool):
    """The document's third tool; it says when its generator has ended."""

    spec = ToolSpec(
        name="stream_lines",
        description="Stream lines back to the caller (demo).",
        when_to_use="When producing incremental output is better for UX.",
        inputs=[ToolParam(name="lines", type="array", description="List of lines to stream", required=True)],
        returns=ToolReturn(type="string", description="A stream of lines"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.ended = 0

    def __call__(self, *, lines: Iterable[str], **kwargs: Any) -> ToolResponse:
        def _gen() -> Generator[str, None, None]:
            try:
                yield from lines
            finally:
                self.ended += 1

        return ToolResponse(final_answer=True, observation=_gen())


class Giving(BaseTool):
    """A tool that answers what it is made with, and remembers what it was given."""

    def __init__(self, answer: Any, name: str = "giving", kind: str = "string") -> None:
        self.spec = text_spec(name, kind)
        super().__init__()
        self.answer = answer
        self.given: dict[str, Any] = {}

    def __call__(self, *, text: Any, **kwargs: Any) -> Any:
        self.given = {"text": text, **kwargs}
        return self.answer


class Boom(BaseTool):
    """A tool that fails so many times."""

    spec = text_spec("boom")

    def __init__(self, times: int, error: Exception | None = None) -> None:
        super().__init__()
        self.times, self.calls = times, 0
        self.error = error or RuntimeError("kaput")

    def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return ToolResponse(False, f"{text} at last")


def plain_echo(text: str) -> str:
    """Echo, as a tool of the house."""
    return text


class Database:
    """Rows, as a tool of the document asks for them."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def execute(self, query: str) -> Database:
        self.asked.append(query)
        return self

    def fetchmany(self, size: int) -> list[list[tuple[str, int]]]:
        self.asked.append(size)
        return [[("id", number)] for number in range(min(size, 2))]


@contextmanager
def engine_of(
    *tools: Any, policy: ExecutionPolicy = GRANTED, host: Host | None = None, **given: Any
) -> Iterator[Engine]:
    """Yield an engine with tools of neurosurfer."""
    taken = from_neurosurfer(tools, **{"trusted": True, **given})
    with Engine(plugins="none", toolsets=[taken], policy=policy, host=host or Host()) as engine:
        yield engine


@contextmanager
def invoker_of(*tools: BaseTool, **options: Any) -> Iterator[Invoker]:
    """Yield what calls tools as an agent does, with no time between attempts."""
    with engine_of(*tools) as engine:
        yield Invoker(engine, Toolkit(tools), **{"wait": lambda seconds: None, **options})


def test_each_row_has_a_test_or_a_reason() -> None:
    """Sixty rows; four of them are listed instead of tested."""
    tested = {f"NSF-{int(name.split('_')[2])}" for name in globals() if name.startswith("test_nsf_")}

    assert {f"NSF-{number}" for number in range(1, 61)} == tested | set(LISTED)
    assert not tested & set(LISTED)
    assert len(LISTED) == 4


def test_the_page_has_every_row() -> None:
    """In their order, each with what became of it; and it names those without a test."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-neurosurfer.md").read_text()
    rows = re.findall(r"^\| (NSF-\d+) \| [^|]+ \| (same|fixed|different|guidance) \|", page, re.MULTILINE)

    assert [f"NSF-{number}" for number in range(1, 61)] == [row for row, _ in rows]
    (untested,) = re.findall(r"Each row\s+has\s+a\s+test\s+of\s+its\s+name\s+but\s([^.]*)\.", page)
    assert list(LISTED) == re.findall(r"NSF-\d+", untested)


# The spec


def test_nsf_1_the_modules_have_the_names_of_the_documents() -> None:
    """And the package has all of them."""
    from neuroscript.interop import neurosurfer
    from neuroscript.interop.neurosurfer import base_tool, tool_spec, toolkit

    assert (ToolSpec, ToolParam, ToolReturn) == (tool_spec.ToolSpec, tool_spec.ToolParam, tool_spec.ToolReturn)
    assert (BaseTool, ToolResponse, Toolkit) == (base_tool.BaseTool, base_tool.ToolResponse, toolkit.Toolkit)
    assert all(hasattr(neurosurfer, name) for name in neurosurfer.__all__)


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "array", "object"])
def test_nsf_2_there_are_six_types(kind: str) -> None:
    """Each may be that of an input and of a result."""
    specified(inputs=[ToolParam("x", kind, "d")], returns=ToolReturn(kind, "r")).validate()


@pytest.mark.parametrize("kind", ["float", "int", "list", "dict", "bool", "String", "", None, ["string"]], ids=str)
def test_nsf_2_and_no_other(kind: Any) -> None:
    """``float``, which every release takes, is none."""
    with pytest.raises(ValueError) as caught:
        specified(inputs=[ToolParam("x", kind, "d")]).validate()

    assert f"calculator.x has unsupported type '{kind}'." == str(caught.value)


def test_nsf_3_str_is_another_word_for_string() -> None:
    """For the spec, for inputs and in an engine."""
    spec = ToolSpec("t", "d", "w", [ToolParam("text", "str", "d")], ToolReturn("str", "r"))
    spec.validate()

    assert {"text": "a"} == spec.check_inputs({"text": "a"})
    with pytest.raises(ValueError, match=r"^Input 'text' expected str, got int$"):
        spec.check_inputs({"text": 1})
    assert ArgType.STRING == from_neurosurfer(Giving(ToolResponse(True, ""), kind="str")).spec.args[0].type


def test_nsf_4_an_input_has_a_name_a_type_a_description_and_is_required() -> None:
    """By position and by keyword; it compares and shows its fields, and they can be set."""
    given = ToolParam("query", "string", "SQL to execute")

    assert ToolParam(name="query", type="string", description="SQL to execute", required=True) == given
    assert "ToolParam(name='query', type='string', description='SQL to execute', required=True)" == repr(given)
    given.required = False
    assert ToolParam("query", "string", "SQL to execute", False) == given
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'description'"):
        ToolParam(name="a", type="string")  # type: ignore[call-arg]


def test_nsf_5_a_return_has_a_type_and_a_description() -> None:
    """Both of them."""
    assert ToolReturn("object", "rows") == ToolReturn(type="object", description="rows")
    with pytest.raises(TypeError):
        ToolReturn("object")  # type: ignore[call-arg]


def test_nsf_6_a_spec_has_five_fields() -> None:
    """All of them, and each can be set."""
    spec = specified()
    spec.name = "other"

    assert specified("other") == spec
    assert repr(spec).startswith("ToolSpec(name='other', description='Performs arithmetic operations', when_to_use=")
    with pytest.raises(TypeError):
        ToolSpec("t", "d", "w", [])  # type: ignore[call-arg]


def test_nsf_7_a_name_is_that_of_one_tool() -> None:
    """In a toolkit and in an engine."""
    with pytest.raises(ValueError):
        Toolkit([EchoTool(), EchoTool()])
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([EchoTool(), EchoTool()])

    expected = "from_neurosurfer neurosurfer: echo and echo have the same name here, echo; leave out all but one"
    assert expected == str(caught.value)


def test_nsf_8_inputs_are_several_under_names_of_their_own() -> None:
    """In their order they are the arguments of our spec."""
    assert ["query", "limit"] == [arg.name for arg in from_neurosurfer(SQLQueryTool()).spec.args]


def test_nsf_9_a_well_formed_spec_is_valid() -> None:
    """The document's calculator."""
    specified().validate()


@pytest.mark.parametrize("field", ["name", "description", "when_to_use"])
def test_nsf_10_three_texts_may_not_be_empty(field: str) -> None:
    """Each of them."""
    with pytest.raises(ValueError) as caught:
        specified(**{field: ""}).validate()

    assert "ToolSpec must have name, description, when_to_use." == str(caught.value)


def test_nsf_11_a_tool_takes_at_least_one_input() -> None:
    """A tool without any can not be said."""
    with pytest.raises(ValueError) as caught:
        specified("t", inputs=[]).validate()

    assert "ToolSpec(t) must define at least one input param." == str(caught.value)


def test_nsf_12_a_type_of_an_input_that_is_none_is_refused() -> None:
    """It is named."""
    with pytest.raises(ValueError) as caught:
        specified(inputs=[ToolParam("b", "decimal", "d")]).validate()

    assert "calculator.b has unsupported type 'decimal'." == str(caught.value)


def test_nsf_13_a_type_of_the_result_that_is_none_is_refused() -> None:
    """It is named."""
    with pytest.raises(ValueError) as caught:
        specified(returns=ToolReturn("list", "r")).validate()

    assert "calculator.returns has unsupported type 'list'." == str(caught.value)


def test_nsf_14_a_name_that_two_inputs_have_is_refused() -> None:
    """It is named."""
    with pytest.raises(ValueError) as caught:
        specified("q", inputs=[ToolParam("query", "string", "d")] * 2).validate()

    assert "q has duplicate input 'query'." == str(caught.value)


def test_nsf_15_the_document_s_first_example_of_a_message_is_raised() -> None:
    """Of ``float``, which no release refuses."""
    with pytest.raises(ValueError) as caught:
        specified(inputs=[ToolParam("b", "float", "d")]).validate()

    assert "calculator.b has unsupported type 'float'." == str(caught.value)


def test_nsf_16_an_input_has_a_name() -> None:
    """It may have an empty description."""
    specified("q", inputs=[ToolParam("a", "string", "")]).validate()
    with pytest.raises(ValueError) as caught:
        specified("q", inputs=[ToolParam("", "string", "d")]).validate()

    assert "q has an input with empty name." == str(caught.value)


# Inputs


def test_nsf_17_inputs_are_looked_at_and_never_changed() -> None:
    """What is loosely typed is refused here; an engine is what mends it, and its tool gets what it declares."""
    raw = {"x": "5"}
    with pytest.raises(ValueError):
        taking("integer").check_inputs(raw)

    tool = Giving(ToolResponse(True, "done"), kind="integer")
    with engine_of(tool) as engine:
        engine.call_named("neurosurfer.giving", {"text": "5"})
    assert ({"x": "5"}, {"text": 5}) == (raw, tool.given)
    with pytest.raises(ValueError, match=r"^Inputs for tt expected object, got list$"):
        taking("integer").check_inputs([1])  # type: ignore[arg-type]


def test_nsf_18_what_is_required_must_be_there() -> None:
    """The first that is not is named."""
    with pytest.raises(ValueError) as caught:
        specified().check_inputs({"operation": "add"})

    assert "Missing required input: a" == str(caught.value)


def test_nsf_19_what_is_not_declared_is_refused() -> None:
    """All of it is named, in order."""
    with pytest.raises(ValueError) as caught:
        taking("integer").check_inputs({"x": 1, "z": 1, "y": 2})

    assert "Unexpected inputs for tt: ['y', 'z']" == str(caught.value)


GOOD: dict[str, list[Any]] = {
    "integer": [5, -1, 10**30],
    "number": [5, 5.5],
    "boolean": [True, False],
    "array": [[], [1, "a"]],
    "object": [{}, {"a": 1}],
    "string": ["", "a"],
}
BAD: dict[str, list[Any]] = {
    "integer": [True, 5.0, "5", None],
    "number": [True, "5", None],
    "boolean": [1, 0, "true", None],
    "array": [(1,), "abc", {"a": 1}, None],
    "object": [[("a", 1)], "{}", None],
    "string": [1, b"a", None],
}


@pytest.mark.parametrize("kind", GOOD)
def test_nsf_20_each_type_takes_its_own_values_alone(kind: str) -> None:
    """True is no number, and nothing is converted."""
    for value in GOOD[kind]:
        assert {"x": value} == taking(kind).check_inputs({"x": value})
    for value in BAD[kind]:
        with pytest.raises(ValueError):
            taking(kind).check_inputs({"x": value})


def test_nsf_21_a_value_of_another_type_is_named_by_its_type_alone() -> None:
    """The value is not in the message."""
    with pytest.raises(ValueError) as caught:
        taking("integer").check_inputs({"x": "hush"})

    assert "Input 'x' expected integer, got str" == str(caught.value)


def test_nsf_22_missing_comes_before_extra_and_extra_before_type() -> None:
    """The first that is wrong is raised."""
    spec = specified(inputs=[ToolParam("a", "integer", "d"), ToolParam("b", "string", "d", False)])
    raised = []
    for raw in ({"z": 1, "b": 1}, {"a": "x", "z": 1}, {"a": "x", "b": 1}):
        with pytest.raises(ValueError) as caught:
            spec.check_inputs(raw)
        raised.append(str(caught.value))

    assert [
        "Missing required input: a",
        "Unexpected inputs for calculator: ['z']",
        "Input 'a' expected integer, got str",
    ] == raised


def test_nsf_23_what_is_optional_may_stay_away() -> None:
    """It is not put there."""
    assert {} == taking("integer", required=False).check_inputs({})


def test_nsf_24_none_is_no_value_of_an_optional_input() -> None:
    """In an engine it means what it means for every argument: that nothing is given."""
    with pytest.raises(ValueError, match=r"^Input 'x' expected string, got NoneType$"):
        taking("string", required=False).check_inputs({"x": None})
    with engine_of(SQLQueryTool(), context={"db_engine": (db := Database())}) as engine:
        engine.call_named("neurosurfer.sql_query", {"query": "q", "limit": None})

    assert ["q", 100] == db.asked


def test_nsf_25_the_inputs_themselves_are_returned() -> None:
    """The very object."""
    raw = {"x": 5}

    assert raw is taking("integer").check_inputs(raw)


def test_nsf_26_a_spec_is_written_as_json_has_it() -> None:
    """With all of its fields."""
    data = SQLQueryTool.spec.to_json()

    assert {
        "name": "sql_query",
        "description": "Execute a SQL query and return rows as JSON.",
        "when_to_use": "When you need structured data from the database.",
        "inputs": [
            {"name": "query", "type": "string", "description": "The SQL query to run", "required": True},
            {"name": "limit", "type": "integer", "description": "Max rows to return", "required": False},
        ],
        "returns": {"type": "object", "description": "Query results as a JSON object"},
    } == json.loads(json.dumps(data))


def test_nsf_27_the_spec_is_what_is_written_of_a_tool() -> None:
    """In a toolkit, and for models and readers by all exporters."""
    spec = from_neurosurfer(SQLQueryTool()).spec
    (written,) = anthropic.to_tools([from_neurosurfer(SQLQueryTool())])

    assert "- `limit`: integer (optional) — Max rows to return" in Toolkit([SQLQueryTool()]).get_tools_description()
    assert "object: Query results as a JSON object" == spec.return_help
    assert ["The SQL query to run", "Max rows to return"] == [arg.description for arg in spec.args]
    assert (
        "Execute a SQL query and return rows as JSON. When to use: When you need structured data from the database."
        == written["description"]
    )


# The tool


class Careless(BaseTool):
    """A tool whose constructor looks at nothing, as those of the package."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def __call__(self, **kwargs: Any) -> ToolResponse:
        return ToolResponse(True, "x")


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


@pytest.mark.parametrize("observation", ["a", {"rows": [1]}, [1], 5, 1.5, True, None], ids=repr)
def test_nsf_33_an_observation_is_any_plain_value(observation: Any) -> None:
    """A map too, as the document's own tool gives."""
    with engine_of(Giving(ToolResponse(False, observation))) as engine:
        result = engine.call("neurosurfer.giving", ("a",))

    assert (observation, type(observation)) == (result, type(result))


class Delta(BaseModel):
    """A piece of a reply, as neurosurfer's models give it."""

    content: str | None = None


class Choice(BaseModel):
    """One of the choices of a reply, or of a piece of it."""

    message: Delta | None = None
    delta: Delta | None = None


class Reply(BaseModel):
    """A reply, or a piece of it."""

    choices: list[Choice]


def test_nsf_33_a_reply_of_a_model_is_its_text() -> None:
    """Whole, and piece by piece."""
    whole = Reply(choices=[Choice(message=Delta(content="all of it"))])
    pieces = [Reply(choices=[Choice(delta=Delta(content=each))]) for each in ("a", None, "b")]
    with engine_of(
        Giving(ToolResponse(True, whole), "whole"),
        Giving(ToolResponse(True, iter(pieces)), "pieces"),
        Giving(ToolResponse(True, Delta(content="other")), "other"),
    ) as engine:
        assert "all of it" == engine.call("neurosurfer.whole", ("",))
        assert ["a", "", "b"] == list(engine.stream("neurosurfer.pieces", ("",)))
        assert {"content": "other"} == engine.call("neurosurfer.other", ("",))


class Endless(BaseModel):
    """A piece that no data can be made of."""

    def model_dump(self, **options: Any) -> Any:
        raise StopIteration


def test_nsf_34_an_item_that_can_not_be_told_is_no_end_of_the_stream() -> None:
    """What comes behind it would be lost without a word."""

    async def pieces() -> AsyncIterator[Any]:
        yield "a"
        yield Endless()

    tools = (
        Giving(ToolResponse(True, iter(["a", Endless(), "b"])), "plain"),
        Giving(ToolResponse(True, pieces()), "far"),
    )
    with engine_of(*tools) as engine:
        raised = []
        for name in ("plain", "far"):
            with pytest.raises(ToolFailed) as caught:
                engine.call(f"neurosurfer.{name}", ("x",))
            raised.append(str(caught.value))

    assert [f"neurosurfer.{name}: the tool failed (RuntimeError) (after 1 item)" for name in ("plain", "far")] == raised


class Poll(BaseModel):
    """Something else that has choices."""

    choices: list[Any]


@pytest.mark.parametrize("choices", [["tea", "milk"], [{"message": "tea"}], [{"label": "tea"}], [], [None]], ids=repr)
def test_nsf_33_what_has_other_choices_is_no_reply(choices: list[Any]) -> None:
    """It stays what it is."""
    with engine_of(Giving(ToolResponse(False, Poll(choices=choices)))) as engine:
        assert {"choices": choices} == engine.call("neurosurfer.giving", ("a",))


def test_nsf_34_a_generator_is_a_stream_for_its_reader() -> None:
    """Item by item; a call gives the list, and whoever stops ends the generator."""
    tool = StreamLinesTool()
    with engine_of(tool) as engine:
        items = engine.stream("neurosurfer.stream_lines", (["a", "b", "c"],))
        assert ("a", 0) == (next(items), tool.ended)
        items.close()  # type: ignore[attr-defined]
        assert 1 == tool.ended
        assert ["a", "b"] == engine.call("neurosurfer.stream_lines", ('["a", "b"]',))
        assert 2 == tool.ended
    with engine_of(tool, policy=ExecutionPolicy(grants=GRANTED.grants, limits=Limits(result_bytes=20))) as engine:
        with pytest.raises(LimitError):
            engine.call("neurosurfer.stream_lines", (["long enough"] * 3,))
    assert 3 == tool.ended


def test_nsf_34_a_generator_that_others_hold_is_closed_too() -> None:
    """Nobody waits for it to be forgotten."""

    async def letters() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async def read(engine: Engine) -> Any:
        items = engine.astream("neurosurfer.awaited", ("x",))
        await anext(items)
        await items.aclose()  # type: ignore[attr-defined]
        return awaited.ag_frame  # type: ignore[attr-defined]

    plain, awaited = (each for each in "ab"), letters()
    with engine_of(
        Giving(ToolResponse(True, plain), "plain"), Giving(ToolResponse(True, awaited), "awaited")
    ) as engine:
        items = engine.stream("neurosurfer.plain", ("x",))
        next(items)
        items.close()  # type: ignore[attr-defined]
        assert asyncio.run(read(engine)) is None

    assert plain.gi_frame is None


def test_nsf_34_an_agent_reads_the_items_as_they_come() -> None:
    """Of a stream of one item, and of one of none, too."""
    tool = StreamLinesTool()
    with invoker_of(tool, EchoTool()) as invoker:
        answer = invoker.invoke("stream_lines", {"lines": ["a", "b"]})
        assert ("a", 0, ["b"], 1) == (next(answer.observation), tool.ended, [*answer.observation], tool.ended)
        assert answer.final_answer
        assert [] == list(invoker.invoke("stream_lines", {"lines": []}).observation)
        assert ["a"] == list(invoker.invoke("stream_lines", {"lines": ["a"]}).observation)
        ended = tool.ended
        answer = invoker.invoke("stream_lines", {"lines": ["a", "b"]})
        next(answer.observation)
        answer.observation.close()
        assert ended + 1 == tool.ended
        assert "text" == invoker.invoke("echo", {"text": "text"}).observation


def test_nsf_35_extras_are_there_for_the_calls_that_follow() -> None:
    """As variables of the session, of which each gets a copy; other sessions see nothing of them."""
    ids = [1, 2]
    first, second = (
        Giving(ToolResponse(False, "a", {"row_ids": ids}), "first"),
        Giving(ToolResponse(True, "b"), "second"),
    )
    with engine_of(first, second) as engine:
        session = engine.session()
        session.call("neurosurfer.first", ("x",))
        session.call("neurosurfer.second", ("y",))
        assert {"text": "y", "row_ids": [1, 2]} == second.given
        assert ids is not second.given["row_ids"]
        engine.call("neurosurfer.second", ("z",))

    assert {"text": "z"} == second.given


def test_nsf_35_an_object_is_handed_on_as_it_is() -> None:
    """A variable holds its handle, which is given up when another extra takes its place."""
    connection, rows = object(), [{"price": Decimal("1.5")}]
    first = Giving(ToolResponse(False, "a", {"connection": connection, "rows": rows}), "first")
    other = Giving(ToolResponse(False, "a", {"connection": "closed", "rows": None}), "other")
    second = Giving(ToolResponse(True, "b"), "second")
    seen = []
    with engine_of(first, other, second) as engine:
        for name in ("first", "other"):
            engine.call(f"neurosurfer.{name}", ("x",))
            engine.call("neurosurfer.second", ("y",))
            seen.append((second.given, len(engine.memory.handles)))

    assert connection is seen[0][0]["connection"]
    assert rows is seen[0][0]["rows"]
    assert ({"text": "y", "connection": "closed", "rows": None}, 0) == seen[1]
    assert 2 == seen[0][1]


def test_nsf_35_an_agent_gets_objects_and_gives_them_up_after_the_next_call() -> None:
    """Nothing is kept longer."""
    connection = object()
    first = Giving(ToolResponse(False, "a", {"connection": connection}), "first")
    second = Giving(ToolResponse(True, "b"), "second")
    with engine_of(first, second) as engine:
        invoker = Invoker(engine, Toolkit([first, second]))
        answer = invoker.invoke("first", {"text": "x"})
        kept = len(engine.memory.handles)
        invoker.invoke("second", {"text": "y"})
        assert (1, 0) == (kept, len(engine.memory.handles))

    assert connection is answer.extras["connection"] is second.given["connection"]


def test_nsf_35_an_agent_hands_nothing_on_of_a_call_that_has_failed() -> None:
    """Though its tool had answered: neither to its next attempt nor to another tool; what came before is there."""

    class Broken(Giving):
        def __call__(self, *, text: Any, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return ToolResponse(True, (1 / 0 for each in "a"), {"cursor": 1, "connection": object()})

    seen: list[dict[str, Any]] = []
    first, second = Giving(ToolResponse(False, "a", {"n": 1}), "first"), Giving(ToolResponse(True, "b"), "second")
    tools = [first, Broken(None, "broken"), second]
    with engine_of(*tools) as engine:
        invoker = Invoker(engine, Toolkit(tools), max_tool_errors=1, wait=lambda seconds: None)
        for name in ("first", "broken", "second"):
            invoker.invoke(name, {"text": "x"})
        kept = len(engine.memory.handles)

    assert ([{"n": 1}] * 2, {"text": "x", "n": 1}, 0) == (seen, second.given, kept)


def test_nsf_35_an_extra_is_never_lost_in_silence() -> None:
    """What can have no name fails the call; none of the others is kept then."""
    extras = {"good": 1, 5: "x", "neurosurfer.answer": True, "\ud800": 2}
    generator = (each for each in "ab")
    bad, second = Giving(ToolResponse(False, generator, extras), "bad"), Giving(ToolResponse(True, "b"), "second")  # type: ignore[arg-type]
    odd, none = Giving(ToolResponse(False, "a", [1]), "odd"), Giving(ToolResponse(True, "a", None), "none")  # type: ignore[arg-type]
    with engine_of(bad, second, odd, none) as engine:
        raised = []
        for name in ("bad", "odd"):
            with pytest.raises(ToolFailed) as caught:
                engine.call(f"neurosurfer.{name}", ("x",))
            raised.append((str(caught.value), caught.value.code, caught.value.retry))
        engine.call("neurosurfer.none", ("y",))
        engine.call("neurosurfer.second", ("y",))

    names = (
        "expected names of type str, got int; neurosurfer.answer: names must not begin with neurosurfer.; "
        "expected names of valid Unicode, got lone surrogates"
    )
    assert [
        (f"neurosurfer.bad: extras: {names}", "neurosurfer.extras", "host"),
        ("neurosurfer.odd: extras: expected a mapping, got list", "neurosurfer.extras", "host"),
    ] == raised
    assert {"text": "y"} == second.given
    assert generator.gi_frame is None


@pytest.mark.parametrize("value", ["mallory", object()], ids=["plain", "object"])
def test_nsf_35_a_constant_of_the_host_is_not_replaced(value: Any) -> None:
    """The call says so, and nothing is left behind, of the other extras neither."""
    tool = Giving(ToolResponse(False, "a", {"before": 1, "user": value, "after": object()}))
    with engine_of(tool, host=Host(constants={"user": "ada"})) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("neurosurfer.giving", ("x",))
        assert 0 == len(engine.memory.handles)
        assert ["user"] == list(engine.memory.variables)

    assert "neurosurfer.giving: user is a constant" == str(caught.value)


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
    """Anything else is the tool's failure, and is told."""
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
    """And without what it can not do without it is not called."""
    host = Host(variables={"noise": 1, "embedder": "e"})
    with engine_of(Context(), context={"llm": "model", "more": 1}, host=host) as engine:
        assert "a model e" == engine.call("neurosurfer.context", ("a",))
    with engine_of(Context()) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("neurosurfer.context", ("a",))

    assert "neurosurfer.context: llm: required by the tool, but not supplied by its host" == str(caught.value)
    assert ("inject.missing", "host") == (caught.value.code, caught.value.retry)


def test_nsf_41_a_source_that_fails_is_the_host_s() -> None:
    """What it says itself passes; what can not be used is refused at once."""

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
    """A text comes where an object was promised, and is no error."""
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


def test_nsf_44_the_streaming_tool_gives_its_lines() -> None:
    """By itself and in an engine."""
    lines = ["Step 1...", "Step 2...", "Done."]
    with engine_of(StreamLinesTool()) as engine:
        assert lines == list(StreamLinesTool()(lines=lines).observation)
        assert lines == list(engine.stream("neurosurfer.stream_lines", (lines,)))


# The agent


def test_nsf_45_the_steps_of_a_call_come_in_their_order() -> None:
    """Chosen by name, inputs looked at strictly, called by the line, answered, streamed."""
    with invoker_of(SQLQueryTool(), StreamLinesTool(), Giving(ToolResponse(False, "x", {"n": 1}))) as invoker:
        with pytest.raises(ValueError, match=r"^Input 'limit' expected integer, got str$"):
            invoker.invoke("sql_query", {"query": "q", "limit": "2"})
        assert ToolResponse(True, "DB engine not available.") == invoker.invoke("sql_query", {"query": "q"})
        assert ToolResponse(False, "x", {"n": 1}) == invoker.invoke("giving", {"text": "a"})
        assert ["a"] == list(invoker.invoke("stream_lines", {"lines": ["a"]}).observation)


def test_nsf_45_a_tool_of_another_kind_under_that_name_is_no_final_answer() -> None:
    """What was said of the call before is not said of this one."""
    tool = Giving(ToolResponse(True, iter("ab")))
    own = Toolset("neurosurfer")
    own.tool(name="echo")(plain_echo)
    with engine_of(tool) as engine:
        engine.register(own)
        invoker = Invoker(engine, Toolkit([tool, EchoTool()]))
        assert ["a", "b"] == list(invoker.invoke("giving", {"text": "x"}).observation)
        assert ToolResponse(False, "hi") == invoker.invoke("echo", {"text": "hi"})


def test_nsf_45_a_stream_of_another_kind_under_that_name_loses_no_item() -> None:
    """Though no tool of neurosurfer has told that it is one."""

    def echo(text: str) -> Iterator[str]:
        """Give the letters of a text."""
        yield from text

    own = Toolset("neurosurfer")
    own.tool()(echo)
    with Engine(plugins="none", toolsets=[own]) as engine:
        answer = Invoker(engine, Toolkit([EchoTool()])).invoke("echo", {"text": "abc"})

        assert ["a", "b", "c"] == list(answer.observation)


def test_nsf_45_a_call_that_is_refused_is_not_made() -> None:
    """The policy is that of the engine, and a refusal is not tried again."""
    tool = Giving(ToolResponse(True, "x"))
    with engine_of(tool, policy=ExecutionPolicy()) as engine, pytest.raises(PolicyError):
        Invoker(engine, Toolkit([tool])).invoke("giving", {"text": "a"})

    assert {} == tool.given


def test_nsf_46_extras_serve_the_next_call_of_an_agent_and_are_gone_after_it() -> None:
    """Those of the next one take their place."""
    first = Giving(ToolResponse(False, "a", {"cursor": 1, "page": 1}), "first")
    second = Giving(ToolResponse(False, "b", {"page": 2}), "second")
    with invoker_of(first, second) as invoker:
        seen = []
        invoker.invoke("first", {"text": "x"})
        for _ in range(3):
            invoker.invoke("second", {"text": "y"})
            seen.append(second.given)

    assert [
        {"text": "y", "cursor": 1, "page": 1},
        {"text": "y", "page": 2},
        {"text": "y", "page": 2},
    ] == seen


# The toolkit


def test_nsf_49_a_toolkit_has_the_tools_that_it_is_given() -> None:
    """None, where it is given none."""
    assert [] == list(Toolkit().registry)
    assert ["echo", "sql_query"] == list(Toolkit(tools=[EchoTool(), SQLQueryTool()], logger=None).registry)
    with engine_of() as engine:
        engine.register(from_neurosurfer(Toolkit([EchoTool()]), trusted=True))
        assert "a" == engine.call("neurosurfer.echo", ("a",))


def test_nsf_50_tools_and_specs_are_found_by_name() -> None:
    """Those of the very tool."""
    toolkit = Toolkit([tool := EchoTool()])

    assert ({"echo": tool}, {"echo": EchoTool.spec}) == (toolkit.registry, toolkit.specs)


@pytest.mark.parametrize(
    ("thing", "name"),
    [(SimpleNamespace(spec=EchoTool.spec), "SimpleNamespace"), (object(), "object"), (EchoTool, "ABCMeta")],
    ids=["spec", "nothing", "class"],
)
def test_nsf_51_what_is_no_tool_is_refused(thing: Any, name: str) -> None:
    """By its type."""
    with pytest.raises(TypeError) as caught:
        Toolkit().register_tool(thing)
    with pytest.raises(SpecError) as taken:
        from_neurosurfer(thing)

    assert f"Invalid tool type: {name}. Expected a subclass of BaseTool." == str(caught.value)
    expected = "expected a neurosurfer tool, which is an instance with a spec"
    assert f"from_neurosurfer neurosurfer: tools: {expected}, got {name}" == str(taken.value)


def test_nsf_52_a_name_that_is_taken_is_refused() -> None:
    """The toolkit is what it was."""
    toolkit = Toolkit([EchoTool()])
    with pytest.raises(ValueError) as caught:
        toolkit.register_tool(EchoTool())

    assert ("Tool 'echo' is already registered.", ["echo"]) == (str(caught.value), list(toolkit.specs))


def test_nsf_53_a_spec_that_was_changed_since_is_looked_at_again() -> None:
    """Where the tool is registered."""
    tool = Giving(ToolResponse(True, "x"))
    tool.spec.inputs.append(ToolParam("text", "string", "again"))
    with pytest.raises(ValueError, match=r"^giving has duplicate input 'text'\.$"):
        Toolkit([tool])
    with pytest.raises(SpecError, match=r"Giving: giving has duplicate input 'text'\.$"):
        from_neurosurfer(tool)


def test_nsf_54_a_toolkit_describes_its_tools() -> None:
    """To the letter."""
    smoke = ToolSpec("echo", "Echo", "smoke", [ToolParam("text", "string", "d")], ToolReturn("string", "r"))

    assert (
        "### `echo`\nEcho\n**When to use**: smoke\n**Inputs**:\n- `text`: string (required) — d\n"
        "**Returns**: string — r\n\n"
        "### `calculator`\nPerforms arithmetic operations\n"
        "**When to use**: Use when you must compute a numeric result\n**Inputs**:\n"
        "- `operation`: string (required) — add|sub|mul|div\n- `a`: number (required) — Left operand\n"
        "- `b`: number (required) — Right operand\n**Returns**: number — Result of the operation\n"
    ) == Toolkit([Careless(smoke), Careless(specified())]).get_tools_description()


def test_nsf_55_a_registration_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """By the logger of the module, or by the one that is given."""
    caplog.set_level(logging.INFO)
    Toolkit([EchoTool()])
    Toolkit([EchoTool()], logger=logging.getLogger("mine"))

    assert [
        ("neuroscript.interop.neurosurfer.toolkit", "Registered tool: echo"),
        ("mine", "Registered tool: echo"),
    ] == [(each.name, each.getMessage()) for each in caplog.records]


def test_nsf_56_inputs_that_are_not_declared_are_left_out_if_the_agent_lets_that_be() -> None:
    """Else they are refused."""
    tool = Giving(ToolResponse(True, "x"))
    with invoker_of(tool) as invoker:
        invoker.invoke("giving", {"text": "a", "more": 1})
    with invoker_of(tool, allow_input_pruning=False) as invoker:
        with pytest.raises(ValueError, match=r"^Unexpected inputs for giving: \['more'\]$"):
            invoker.invoke("giving", {"text": "a", "more": 1})

    assert {"text": "a"} == tool.given


def test_nsf_57_an_agent_repairs_a_call_once_and_what_it_makes_is_looked_at_too() -> None:
    """Of an unknown tool and of bad inputs."""
    told: list[str] = []

    def repair(tool: str, inputs: Mapping[str, Any], error: ValueError) -> tuple[str, dict[str, Any]]:
        told.append(str(error))
        return "echo", {"text": "mended"} if len(told) < 3 else {"text": 5}

    with invoker_of(EchoTool(), repair=repair) as invoker:
        assert "mended" == invoker.invoke("ecco", {"text": "a"}).observation
        assert "mended" == invoker.invoke("echo", {"text": 1}).observation
        with pytest.raises(ValueError, match=r"^Input 'text' expected string, got int$"):
            invoker.invoke("echo", {})

    assert [
        "Unknown tool 'ecco'",
        "Input 'text' expected string, got int",
        "Missing required input: text",
    ] == told


def test_nsf_57_whatever_a_model_has_sent_can_be_repaired() -> None:
    """Inputs that are no object, and a tool that has no name."""
    told: list[str] = []

    def repair(tool: str, inputs: Mapping[str, Any], error: ValueError) -> tuple[str, dict[str, Any]]:
        told.append(str(error))
        return "echo", {"text": "mended"}

    sent: list[Any] = [("echo", ["a"]), ("echo", None), ("echo", "a"), (["echo"], {}), (None, {})]
    with invoker_of(EchoTool(), repair=repair) as invoker:
        answers = [invoker.invoke(tool, inputs).observation for tool, inputs in sent]

    assert ["mended"] * 5 == answers
    assert [f"Inputs for echo expected object, got {name}" for name in ("list", "NoneType", "str")] == told[:3]
    assert ["Unknown tool of type list", "Unknown tool of type None"] == told[3:]


def test_nsf_58_attempts_and_pauses_are_numbers_that_there_are() -> None:
    """Both are looked at when the invoker is made."""
    with engine_of(EchoTool()) as engine, pytest.raises(SpecError) as caught:
        Invoker(engine, Toolkit([EchoTool()]), max_tool_errors=-1, backoff_sec=float("nan"))

    assert "Invoker: max_tool_errors: expected 0 or more; backoff_sec: expected 0 or more" == str(caught.value)


def test_nsf_58_a_tool_that_fails_is_called_twice_again_with_more_time_between() -> None:
    """So that a third attempt may give the answer."""
    waited: list[float] = []
    tool = Boom(2)
    with invoker_of(tool, backoff_sec=0.5, wait=waited.append) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert (ToolResponse(False, "a at last"), 3, [0.5, 1.0]) == (answer, tool.calls, waited)


def test_nsf_58_a_tool_that_its_host_has_to_mend_is_not_called_again() -> None:
    """What it has done is not done three times over, and nobody waits."""
    waited: list[float] = []
    tool = Boom(9, ToolFailed("no such table", retry="host"))
    with invoker_of(tool, Giving("text"), wait=waited.append) as invoker:
        told = [invoker.invoke(name, {"text": "a"}).observation for name in ("boom", "giving")]

    assert [
        "[tool:boom] failed after retries: no such table",
        "[tool:giving] failed after retries: result: expected a ToolResponse, got str",
    ] == told
    assert (1, []) == (tool.calls, waited)


def test_nsf_59_a_tool_that_goes_on_failing_is_answered_for() -> None:
    """Not finally; with what it raised."""
    tool = Boom(9)
    with invoker_of(tool) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert (ToolResponse(False, "[tool:boom] failed after retries: kaput"), 3) == (answer, tool.calls)


def test_nsf_59_what_the_tool_means_to_say_is_said_and_no_secret_is() -> None:
    """The text of a ToolFailed is its own."""
    with invoker_of(Boom(9, ToolFailed("come back later")), max_tool_errors=0) as invoker:
        meant = invoker.invoke("boom", {"text": "a"}).observation
    boom = Boom(9, RuntimeError("the key is hush-hush-4711-now"))
    with engine_of(boom, host=Host(secrets={"key": "hush-hush-4711-now"})) as engine:
        hidden = Invoker(engine, Toolkit([boom]), max_tool_errors=0).invoke("boom", {"text": "a"}).observation

    assert "[tool:boom] failed after retries: come back later" == meant
    assert "[tool:boom] failed after retries: the key is [secret]" == hidden


def test_nsf_59_an_exception_that_can_not_say_anything_is_told_by_its_type() -> None:
    """The agent goes on."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    with invoker_of(Boom(9, Silent()), max_tool_errors=1) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert ToolResponse(False, "[tool:boom] failed after retries: Silent") == answer


def test_nsf_45_a_spec_that_is_changed_later_changes_no_call() -> None:
    """Neither what an agent looks at nor what the engine takes."""
    tool = Giving(ToolResponse(True, "x"))
    with invoker_of(tool) as invoker:
        tool.spec.inputs[0].type = "decimal"
        tool.spec.inputs.append(ToolParam("more", "string", "d"))
        answer = invoker.invoke("giving", {"text": "a"})

    assert (ToolResponse(True, "x"), {"text": "a"}) == (answer, tool.given)


# Tools of the package itself, by their shape


def foreign(kind: str = "str", **changes: Any) -> Any:
    """Return what is shaped like a tool of the package, whose classes are none of ours."""
    param = SimpleNamespace(name="x", type=kind, description="d", required=True)
    fields = {"name": "far", "description": "d", "when_to_use": "w", "inputs": [param]}
    spec = SimpleNamespace(**{**fields, "returns": SimpleNamespace(type=kind, description="r"), **changes})

    def called(self: Any, **kwargs: Any) -> Any:
        return SimpleNamespace(final_answer=False, observation=[type(kwargs["x"]).__name__], extras={})

    return type("Far", (), {"spec": spec, "__call__": called})()


ALIASES = {"str": ("a", "str"), "int": ("1", "int"), "float": ("1", "float"), "bool": ("true", "bool")}
ALIASES |= {"list": ("[1]", "list"), "dict": ("{}", "dict"), "integer": ("1", "int")}


@pytest.mark.parametrize("kind", ALIASES)
def test_a_tool_of_the_package_may_call_types_as_python_does(kind: str) -> None:
    """What arrives is exact all the same; one of ours may not, for the document does not."""
    given, arrived = ALIASES[kind]
    with engine_of(foreign(kind)) as engine:
        assert [arrived] == engine.call("neurosurfer.far", (given,))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"inputs": []}, "ToolSpec(far) must define at least one input param."),
        ({"inputs": [5]}, "its spec lacks attributes of a neurosurfer ToolSpec"),
        ({"inputs": 5}, "'int' object is not iterable"),
        ({"returns": None}, "its spec lacks attributes of a neurosurfer ToolSpec"),
        ({"returns": SimpleNamespace(type="set", description="r")}, "far.returns has unsupported type 'set'."),
        ({"name": ""}, "ToolSpec must have name, description, when_to_use."),
        ({"name": 5}, "ToolSpec must have name, description, when_to_use."),
    ],
    ids=["none", "shape", "number", "returns", "type", "name", "text"],
)
def test_a_tool_of_the_package_whose_spec_is_none_is_refused(changes: dict[str, Any], expected: str) -> None:
    """By what is wrong with it."""
    with pytest.raises(SpecError) as caught:
        from_neurosurfer(foreign(**changes))

    assert f"from_neurosurfer neurosurfer: Far: {expected}" == str(caught.value)


def test_a_name_that_makes_no_word_is_refused() -> None:
    """And so is what is no tool at all, each for itself."""
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([foreign(name="!"), 5])

    assert (
        "from_neurosurfer neurosurfer: !: cannot be used as a name; expected ASCII letters or digits; "
        "tools: expected a neurosurfer tool, which is an instance with a spec, got int"
    ) == str(caught.value)


# What an engine makes of them


def test_a_tool_needs_a_grant_and_an_approval_unless_its_host_says_otherwise() -> None:
    """As every tool of which nobody says what it does."""
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
