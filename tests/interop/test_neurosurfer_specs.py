"""The specs of tools of neurosurfer, and the checks of their inputs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.interop.neurosurfer_tools import (
    GOOD,
    Database,
    EchoTool,
    Recorder,
    SQLQueryTool,
    engine_of,
    make_spec,
    spec_with_input,
)

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


def test_nsf_1_modules_have_the_documented_names() -> None:
    """The package exports all of them."""
    from neuroscript.interop import neurosurfer
    from neuroscript.interop.neurosurfer import base_tool, tool_spec, toolkit

    assert (ToolSpec, ToolParam, ToolReturn) == (tool_spec.ToolSpec, tool_spec.ToolParam, tool_spec.ToolReturn)
    assert (BaseTool, ToolResponse, Toolkit) == (base_tool.BaseTool, base_tool.ToolResponse, toolkit.Toolkit)
    assert all(hasattr(neurosurfer, name) for name in neurosurfer.__all__)


@pytest.mark.parametrize("kind", ["string", "integer", "number", "boolean", "array", "object"])
def test_nsf_2_six_types_are_supported(kind: str) -> None:
    """For inputs and for results."""
    make_spec(inputs=[ToolParam("x", kind, "d")], returns=ToolReturn(kind, "r")).validate()


@pytest.mark.parametrize("kind", ["float", "int", "list", "dict", "bool", "String", "", None, ["string"]], ids=str)
def test_nsf_2_other_types_are_refused(kind: Any) -> None:
    """Including ``float``, which every release of the package accepts."""
    with pytest.raises(ValueError) as caught:
        make_spec(inputs=[ToolParam("x", kind, "d")]).validate()

    assert f"calculator.x has unsupported type '{kind}'." == str(caught.value)


def test_nsf_3_str_is_an_alias_of_string() -> None:
    """For the spec, for inputs and in an engine."""
    spec = ToolSpec("t", "d", "w", [ToolParam("text", "str", "d")], ToolReturn("str", "r"))
    spec.validate()

    assert {"text": "a"} == spec.check_inputs({"text": "a"})
    with pytest.raises(ValueError, match=r"^Input 'text' expected str, got int$"):
        spec.check_inputs({"text": 1})
    assert ArgType.STRING == from_neurosurfer(Recorder(ToolResponse(True, ""), kind="str")).spec.args[0].type


def test_nsf_4_an_input_has_four_fields() -> None:
    """By position or keyword; inputs can be compared, printed and modified."""
    param = ToolParam("query", "string", "SQL to execute")

    assert ToolParam(name="query", type="string", description="SQL to execute", required=True) == param
    assert "ToolParam(name='query', type='string', description='SQL to execute', required=True)" == repr(param)
    param.required = False
    assert ToolParam("query", "string", "SQL to execute", False) == param
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'description'"):
        ToolParam(name="a", type="string")  # type: ignore[call-arg]


def test_nsf_5_a_return_has_a_type_and_a_description() -> None:
    """Both are required."""
    assert ToolReturn("object", "rows") == ToolReturn(type="object", description="rows")
    with pytest.raises(TypeError):
        ToolReturn("object")  # type: ignore[call-arg]


def test_nsf_6_a_spec_has_five_fields() -> None:
    """All are required, and can be modified."""
    spec = make_spec()
    spec.name = "other"

    assert make_spec("other") == spec
    assert repr(spec).startswith("ToolSpec(name='other', description='Performs arithmetic operations', when_to_use=")
    with pytest.raises(TypeError):
        ToolSpec("t", "d", "w", [])  # type: ignore[call-arg]


def test_nsf_7_a_tool_name_is_unique() -> None:
    """In a toolkit and in an engine."""
    with pytest.raises(ValueError):
        Toolkit([EchoTool(), EchoTool()])
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([EchoTool(), EchoTool()])

    expected = "from_neurosurfer neurosurfer: echo and echo have the same name here, echo; leave out all but one"
    assert expected == str(caught.value)


def test_nsf_8_inputs_become_arguments_in_order() -> None:
    """With their own names."""
    assert ["query", "limit"] == [arg.name for arg in from_neurosurfer(SQLQueryTool()).spec.args]


def test_nsf_9_a_complete_spec_is_valid() -> None:
    """The document's calculator."""
    make_spec().validate()


@pytest.mark.parametrize("field", ["name", "description", "when_to_use"])
def test_nsf_10_name_description_and_when_to_use_are_required(field: str) -> None:
    """None of them may be empty."""
    with pytest.raises(ValueError) as caught:
        make_spec(**{field: ""}).validate()

    assert "ToolSpec must have name, description, when_to_use." == str(caught.value)


def test_nsf_11_a_tool_has_at_least_one_input() -> None:
    """A tool without parameters cannot be expressed."""
    with pytest.raises(ValueError) as caught:
        make_spec("t", inputs=[]).validate()

    assert "ToolSpec(t) must define at least one input param." == str(caught.value)


def test_nsf_12_an_unsupported_input_type_is_refused() -> None:
    """The error names it."""
    with pytest.raises(ValueError) as caught:
        make_spec(inputs=[ToolParam("b", "decimal", "d")]).validate()

    assert "calculator.b has unsupported type 'decimal'." == str(caught.value)


def test_nsf_13_an_unsupported_return_type_is_refused() -> None:
    """The error names it."""
    with pytest.raises(ValueError) as caught:
        make_spec(returns=ToolReturn("list", "r")).validate()

    assert "calculator.returns has unsupported type 'list'." == str(caught.value)


def test_nsf_14_a_duplicate_input_is_refused() -> None:
    """The error names it."""
    with pytest.raises(ValueError) as caught:
        make_spec("q", inputs=[ToolParam("query", "string", "d")] * 2).validate()

    assert "q has duplicate input 'query'." == str(caught.value)


def test_nsf_15_the_first_documented_error_is_raised() -> None:
    """For ``float``, which no release of the package refuses."""
    with pytest.raises(ValueError) as caught:
        make_spec(inputs=[ToolParam("b", "float", "d")]).validate()

    assert "calculator.b has unsupported type 'float'." == str(caught.value)


def test_nsf_16_an_input_needs_a_name() -> None:
    """Its description may be empty."""
    make_spec("q", inputs=[ToolParam("a", "string", "")]).validate()
    with pytest.raises(ValueError) as caught:
        make_spec("q", inputs=[ToolParam("", "string", "d")]).validate()

    assert "q has an input with empty name." == str(caught.value)


# Inputs


def test_nsf_17_check_inputs_is_strict_and_modifies_nothing() -> None:
    """Loosely typed values are refused here; an engine repairs them, so its tool gets the declared types."""
    raw = {"x": "5"}
    with pytest.raises(ValueError):
        spec_with_input("integer").check_inputs(raw)

    tool = Recorder(ToolResponse(True, "done"), kind="integer")
    with engine_of(tool) as engine:
        engine.call_named("neurosurfer.recorder", {"text": "5"})
    assert ({"x": "5"}, {"text": 5}) == (raw, tool.inputs)
    with pytest.raises(ValueError, match=r"^Inputs for tt expected object, got list$"):
        spec_with_input("integer").check_inputs([1])  # type: ignore[arg-type]


def test_nsf_18_missing_inputs_are_refused() -> None:
    """The error names the first one."""
    with pytest.raises(ValueError) as caught:
        make_spec().check_inputs({"operation": "add"})

    assert "Missing required input: a" == str(caught.value)


def test_nsf_19_undeclared_inputs_are_refused() -> None:
    """The error names all of them in order."""
    with pytest.raises(ValueError) as caught:
        spec_with_input("integer").check_inputs({"x": 1, "z": 1, "y": 2})

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
def test_nsf_20_each_type_accepts_only_its_own_values(kind: str) -> None:
    """True is not a number, and nothing is converted."""
    for value in GOOD[kind]:
        assert {"x": value} == spec_with_input(kind).check_inputs({"x": value})
    for value in BAD[kind]:
        with pytest.raises(ValueError):
            spec_with_input(kind).check_inputs({"x": value})


def test_nsf_21_an_error_names_the_type_of_a_value() -> None:
    """It does not contain the value."""
    with pytest.raises(ValueError) as caught:
        spec_with_input("integer").check_inputs({"x": "hush"})

    assert "Input 'x' expected integer, got str" == str(caught.value)


def test_nsf_22_missing_inputs_are_reported_before_extra_ones_and_wrong_types() -> None:
    """Only the first problem is raised."""
    spec = make_spec(inputs=[ToolParam("a", "integer", "d"), ToolParam("b", "string", "d", False)])
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


def test_nsf_23_an_optional_input_may_be_omitted() -> None:
    """It is not added to the inputs."""
    assert {} == spec_with_input("integer", required=False).check_inputs({})


def test_nsf_24_none_is_not_a_value_of_an_optional_input() -> None:
    """In an engine, None means that the argument is omitted, as for every tool."""
    with pytest.raises(ValueError, match=r"^Input 'x' expected string, got NoneType$"):
        spec_with_input("string", required=False).check_inputs({"x": None})
    with engine_of(SQLQueryTool(), context={"db_engine": (db := Database())}) as engine:
        engine.call_named("neurosurfer.sql_query", {"query": "q", "limit": None})

    assert ["q", 100] == db.queries


def test_nsf_25_check_inputs_returns_the_same_object() -> None:
    """It makes no copy."""
    raw = {"x": 5}

    assert raw is spec_with_input("integer").check_inputs(raw)


def test_nsf_26_to_json_returns_all_fields() -> None:
    """As plain data."""
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


def test_nsf_27_exports_contain_the_spec() -> None:
    """In a toolkit, in our spec, and in a model's tool definition."""
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


def make_foreign_tool(kind: str = "str", **changes: Any) -> Any:
    """Return an object with the attributes of a tool of the package, but of no class of ours."""
    param = SimpleNamespace(name="x", type=kind, description="d", required=True)
    fields = {"name": "far", "description": "d", "when_to_use": "w", "inputs": [param]}
    spec = SimpleNamespace(**{**fields, "returns": SimpleNamespace(type=kind, description="r"), **changes})

    def called(self: Any, **kwargs: Any) -> Any:
        return SimpleNamespace(final_answer=False, observation=[type(kwargs["x"]).__name__], extras={})

    return type("Far", (), {"spec": spec, "__call__": called})()


ALIASES = {"str": ("a", "str"), "int": ("1", "int"), "float": ("1", "float"), "bool": ("true", "bool")}
ALIASES |= {"list": ("[1]", "list"), "dict": ("{}", "dict"), "integer": ("1", "int")}


@pytest.mark.parametrize("kind", ALIASES)
def test_a_tool_of_the_package_may_use_python_type_names(kind: str) -> None:
    """Values are exact; our own tools may not use these names, because the document has none."""
    raw, arrived = ALIASES[kind]
    with engine_of(make_foreign_tool(kind)) as engine:
        assert [arrived] == engine.call("neurosurfer.far", (raw,))


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
def test_an_invalid_spec_of_a_package_tool_is_refused(changes: dict[str, Any], expected: str) -> None:
    """With the problem."""
    with pytest.raises(SpecError) as caught:
        from_neurosurfer(make_foreign_tool(**changes))

    assert f"from_neurosurfer neurosurfer: Far: {expected}" == str(caught.value)


def test_a_name_without_letters_or_digits_is_refused() -> None:
    """Objects that are not tools are reported too."""
    with pytest.raises(SpecError) as caught:
        from_neurosurfer([make_foreign_tool(name="!"), 5])

    assert (
        "from_neurosurfer neurosurfer: !: cannot be used as a name; expected ASCII letters or digits; "
        "tools: expected a neurosurfer tool, which is an instance with a spec, got int"
    ) == str(caught.value)
