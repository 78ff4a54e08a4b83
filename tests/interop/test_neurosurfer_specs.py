"""The specs of tools of neurosurfer, and the checks of their inputs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.interop.neurosurfer_tools import GOOD, Database, EchoTool, Giving, SQLQueryTool, engine_of, specified, taking

from neuroscript import ArgType, SpecError
from neuroscript.interop.neurosurfer import (
    BaseTool,
    Toolkit,
    ToolParam,
    ToolResponse,
    ToolReturn,
    ToolSpec,
    from_neurosurfer,
)
from neuroscript.llm.wire import anthropic

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
    """A tool without parameters cannot be expressed."""
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
    """Loosely typed values are refused here; an engine repairs them, so its tool gets the declared types."""
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
    """True is not a number, and nothing is converted."""
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
    """Each object that is not a tool is reported too."""
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([foreign(name="!"), 5])

    assert (
        "from_neurosurfer neurosurfer: !: cannot be used as a name; expected ASCII letters or digits; "
        "tools: expected a neurosurfer tool, which is an instance with a spec, got int"
    ) == str(caught.value)
