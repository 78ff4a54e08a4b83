"""The METADATA and parameters of a tool of Smith."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.interop.smith_tools import ENDLESS, call_tool, doubled, metadata, nested, run_weather, write_tool

from neuroscript import ArgumentError, SpecError, ToolFailed
from neuroscript.interop.smith import from_smith, load_file, load_folder, problems_of

# A file, its METADATA and its function


def test_sm_01_a_file_is_a_tool(tmp_path: Path) -> None:
    """A single file in any directory."""
    tool = load_file(write_tool(tmp_path, "WEATHER.py", metadata()))

    assert ("smith.weather_fetcher", "Berlin") == (tool.name, call_tool(tool, {"city": "Berlin"}))


def test_sm_02_a_file_without_metadata_is_refused(tmp_path: Path) -> None:
    """Nothing is registered, and its module is removed."""
    path = tmp_path / "deep.py"
    path.write_text("def run_deep(): ...\n")
    before = set(sys.modules)
    with pytest.raises(SpecError) as caught:
        load_file(path)

    assert f"{path}: METADATA: expected a dict, got nothing" == str(caught.value)
    assert set(sys.modules) <= before


def test_sm_02_metadata_must_be_a_dict() -> None:
    """Nothing else is checked otherwise."""
    assert ("METADATA: expected a dict, got list",) == problems_of(["name"])


def test_sm_03_a_function_is_called_with_the_declared_parameters(tmp_path: Path) -> None:
    """Its own signature and annotations are ignored."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    declared = metadata(function="run_given", parameters=schema)
    tool = load_file(
        write_tool(tmp_path, "any.py", declared, "def run_given(hidden=1, **given: str):\n    return given\n")
    )

    assert ["a", "b"] == [arg.name for arg in tool.spec.args]
    assert [{"a": 5}, {"a": 5, "b": "x"}] == [call_tool(tool, each) for each in ({"a": "5"}, {"a": 5, "b": "x"})]


def test_sm_03_a_function_that_rejects_the_declared_parameters_fails_when_called(tmp_path: Path) -> None:
    """With its own exception, because the signature is not checked in advance."""
    tool = load_file(write_tool(tmp_path, "a.py", metadata(), "def run_weather(town):\n    return town\n"))
    with pytest.raises(ToolFailed) as caught:
        call_tool(tool, {"city": "Berlin"})

    expected = "TypeError: run_weather() got an unexpected keyword argument 'city'"
    assert f"smith.weather_fetcher: {expected}" == str(caught.value)


def test_sm_04_name_function_and_parameters_are_required() -> None:
    """All missing keys are reported at once; further keys are retained."""
    further = metadata(description="Ask.", domain="web", output_type="text", notes=["n"], prohibited_outputs=[])

    assert (
        "name: expected the name of the tool, got nothing",
        "function: expected the name of the function, got nothing",
        "parameters: expected a JSON Schema with type, properties and required, got nothing",
    ) == problems_of({})
    assert () == problems_of({key: each for key, each in metadata().items() if key != "dangerous"})
    assert () == problems_of(further)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": ""}, "name: expected the name of the tool, got an empty string"),
        ({"name": 5}, "name: expected the name of the tool, got int"),
        ({"name": "天気"}, "name: 天気 cannot be used as a name; expected ASCII letters or digits"),
        ({"function": None}, "function: expected the name of the function, got None"),
        ({"function": "run weather"}, "function: run weather is not a valid function name"),
        ({"dangerous": "no"}, "dangerous: expected True or False, got str"),
        ({"dangerous": 1}, "dangerous: expected True or False, got int"),
        ({"description": 5}, "description: expected a string, got int"),
        ({"notes": {"a": [{1}]}}, "METADATA['notes']['a'][0]: expected a JSON value, got set"),
        ({"notes": {5: 1}}, "METADATA['notes']: expected a JSON value, got int as a key"),
        ({"notes": float("nan")}, "METADATA['notes']: expected a JSON value, got a number that is not finite"),
    ],
    ids=str,
)
def test_sm_04_an_invalid_value_is_reported_with_its_path(changes: dict[str, Any], expected: str) -> None:
    """The error does not contain the value."""
    assert (expected,) == problems_of(metadata(**changes))


def test_sm_04_a_number_with_too_many_digits_is_a_problem() -> None:
    """METADATA without problems can always be written as JSON."""
    assert ("METADATA['notes'][1]: expected a JSON value, got a number with too many digits",) == problems_of(
        metadata(notes=[2**4095, 10**5000])
    )
    json.loads(json.dumps(2**4095))


def test_sm_05_tools_with_the_same_name_are_all_refused(tmp_path: Path) -> None:
    """In any order of files and any spelling; other tools are loaded."""
    write_tool(tmp_path, "a.py", metadata())
    write_tool(tmp_path, "b.py", metadata(name="WeatherFetcher"))
    write_tool(tmp_path, "c.py", metadata(name="other"))
    registry = load_folder(tmp_path)

    assert ["other"] == registry.list_tool_names() == [tool.spec.name for tool in registry.toolset]
    assert [
        f"{tmp_path}/a.py: its tool weather_fetcher has the same name as the one in b.py",
        f"{tmp_path}/b.py: its tool WeatherFetcher has the same name as the one in a.py",
    ] == [*map(str, registry.errors)]
    assert {"plugin.duplicate"} == {each.code for each in registry.errors}
    assert ("name: weather_fetcher is the name of another tool",) == problems_of(metadata(), taken=["Weather-Fetcher"])


def test_sm_06_a_function_needs_the_exact_name() -> None:
    """For a function object, and for the names in a file."""
    with pytest.raises(SpecError) as caught:
        from_smith(metadata(function="weather"), run_weather)

    problem = "function: the file has no function weather; did you mean run_weather?"
    assert f"METADATA of run_weather: {problem}" == str(caught.value)
    assert (problem,) == problems_of(metadata(function="weather"), names={"run_weather": run_weather})
    assert ("function: run_weather is not a function but a int",) == problems_of(metadata(), names={"run_weather": 5})


INTO_ITSELF = "only references within the schema are supported, such as #/$defs/name"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([], ["parameters: expected a JSON Schema with type, properties and required, got list"]),
        (
            {},
            [
                "parameters['type']: expected the string object, got nothing",
                "parameters['properties']: expected a dict of parameters, got nothing",
            ],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", "c"]},
            [
                "parameters['required']: b is not one of the properties",
                "parameters['required']: c is not one of the properties",
            ],
        ),
        (
            {"type": "object", "properties": {}, "required": "a"},
            ["parameters['required']: expected a list of names, got str"],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": [5]},
            ["parameters['required']: expected a list of names, got another list"],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "$ref": "https://a.b/c"}}},
            ["parameters: #/properties/a/$ref: " + INTO_ITSELF],
        ),
    ],
    ids=["list", "empty", "undeclared", "text", "numbers", "another document"],
)
def test_sm_07_parameters_are_the_schema_of_an_object(parameters: Any, expected: list[str]) -> None:
    """Required names must be properties."""
    assert expected == list(problems_of(metadata(parameters=parameters)))


def test_sm_07_a_tuple_is_a_list_of_the_schema() -> None:
    """This holds at every depth; values that are not JSON are reported once, with their path."""
    properties = {
        "city": {"type": ("string", "null"), "enum": ("Rome", None)},
        "days": {"type": "array", "default": ()},
    }
    schema = {"type": "object", "properties": properties, "required": ("city",)}
    tool = from_smith(metadata(parameters=schema), run_weather)

    assert [("city", True, True), ("days", False, False)] == [
        (arg.name, arg.required, arg.nullable) for arg in tool.spec.args
    ]
    assert ("METADATA['parameters']['properties']['x']['default']: expected a JSON value, got set",) == problems_of(
        metadata(parameters={"type": "object", "properties": {"x": {"type": "array", "default": {1}}}})
    )


TYPES = "string, number, integer, boolean, object or array"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, [f"parameters['properties']['x']['type']: expected {TYPES}, got nothing"]),
        ({"type": "str"}, [f"parameters['properties']['x']['type']: expected {TYPES}, got another string"]),
        ({"type": []}, [f"parameters['properties']['x']['type']: expected {TYPES}, got list"]),
        (
            {"type": ["string", "str"]},
            [f"parameters['properties']['x']['type']: expected {TYPES}, optionally with null, got another type"],
        ),
        ("string", ["parameters['properties']['x']: expected a JSON Schema with a type, got str"]),
        *(({"type": kind}, []) for kind in ("string", "number", "boolean", "object", "array", "integer")),
        ({"type": ["string", "null"]}, []),
    ],
    ids=str,
)
def test_sm_09_each_parameter_needs_a_type(schema: Any, expected: list[str]) -> None:
    """One or several of six types, optionally with null."""
    assert expected == list(problems_of(metadata(parameters={"type": "object", "properties": {"x": schema}})))


def test_sm_10_an_omitted_optional_parameter_is_not_passed() -> None:
    """The function's own default applies, unless the schema has one."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    default = {"type": "object", "properties": {"city": {"type": "string", "default": "Rome"}}}

    assert "sunny in Oslo" == call_tool(from_smith(metadata(parameters=schema), run_weather), {})
    assert "sunny in Rome" == call_tool(from_smith(metadata(parameters=default), run_weather), {})
    with pytest.raises(ArgumentError, match="city: expected string, got nothing"):
        call_tool(from_smith(metadata(), run_weather), {})


NESTED = {
    "type": "object",
    "properties": {
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        "days": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
    "required": ["place"],
}


def test_sm_11_nested_objects_are_preserved_and_coerced() -> None:
    """At every level."""

    def run_weather(place: Any, days: Any = ()) -> Any:
        return [place, days]

    tool = from_smith(metadata(parameters=NESTED), run_weather)

    assert [{"lat": 1.5}, [{"n": 2}]] == call_tool(tool, {"place": {"lat": "1.5"}, "days": [{"n": "2"}]})
    with pytest.raises(ArgumentError, match=r"place\['lat'\]: expected float, got str"):
        call_tool(tool, {"place": {"lat": "x"}})


def test_sm_11_nested_schemas_are_checked() -> None:
    """Their types and required names."""
    inner = {"type": "object", "properties": {"a": {}}, "required": ["b"]}
    schema = {"type": "object", "properties": {"x": inner, "y": {"type": "array", "items": inner}}}
    where = "parameters['properties']['x']"

    assert (
        f"{where}['required']: b is not one of the properties",
        f"{where}['properties']['a']['type']: expected {TYPES}, got nothing",
    ) == problems_of(metadata(parameters={**schema, "properties": {"x": inner}}))


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.binary(max_size=1)
    | st.sampled_from(["object", "string", "array", "null", "#/a", "\ud800", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "items", "$ref", "enum", "anyOf", "x", 5]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(ANYTHING, ANYTHING)
def test_sm_14_metadata_are_a_tool_exactly_if_they_have_no_problems(schema: Any, notes: Any) -> None:
    """For any METADATA; the only exception is a SpecError."""
    declared = metadata(parameters={"type": "object", "properties": {"x": schema}, "required": ["x"]}, notes=notes)
    problems = problems_of(declared)
    try:
        from_smith(declared, run_weather)
    except SpecError as error:
        assert problems == error.problems
    else:
        assert () == problems


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        (ENDLESS, "nests deeper than 64 levels"),
        (nested(400), "nests deeper than 64 levels"),
        (nested(400, as_tuple=True), "nests deeper than 64 levels"),
        (doubled(40), "more than 50000 values or 1048576 characters"),
    ],
    ids=["endless", "deep", "deep tuples", "doubled"],
)
def test_sm_14_recursive_or_huge_metadata_are_refused_at_once(notes: Any, expected: str) -> None:
    """Copying or comparing them would never end."""
    assert (f"METADATA: {expected}",) == problems_of(metadata(notes=notes))
    assert (f"METADATA: {expected}",) == problems_of(metadata(parameters={"type": "object", "properties": notes}))


# The document's examples


def test_sm_13_the_good_example_of_the_document_is_accepted() -> None:
    """The tool receives its symbol by name."""
    schema = {"type": "object", "properties": {"symbol": {"type": "string"}}, "required": ["symbol"]}
    good = {"name": "finance_price", "function": "run_finance_price", "dangerous": False, "parameters": schema}

    def run_finance_price(symbol: str) -> Any:
        return {"symbol": symbol, "price": 5.5}

    assert () == problems_of(good, names={"run_finance_price": run_finance_price})
    assert {"symbol": "X", "price": 5.5} == call_tool(from_smith(good, run_finance_price), {"symbol": "X"})


def test_sm_14_the_bad_example_of_the_document_is_refused() -> None:
    """For every reason in the document: a vague name, and parameters without a structure."""
    assert (
        "function: expected a name that describes what the tool does, such as run_finance; run is too general",
        "parameters['type']: expected the string object, got nothing",
        "parameters['properties']: expected a dict of parameters, got nothing",
    ) == problems_of({"name": "finance", "function": "run", "parameters": {}})


@pytest.mark.parametrize(
    "name", ["run", "main", "execute", "do_everything", "handle_request", "runTool", "_call", "run_"]
)
def test_sm_14_a_vague_function_name_is_refused(name: str) -> None:
    """Each of its words could describe any tool."""
    expected = f"function: expected a name that describes what the tool does, such as run_weather_fetcher; {name} is too general"

    assert (expected,) == problems_of(metadata(function=name))
