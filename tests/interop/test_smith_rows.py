"""The documented behavior of Smith, as listed in ``docs/how-to/coming-from-smith.md``.

Each row has a test with its id in the name, or is in `LISTED` with the reason why it has none, or in `RUNS`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import (
    ArgSpec,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    Host,
    LLMError,
    PluginError,
    PolicyError,
    ReturnError,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.interop.smith import (
    ToolsRegistry,
    from_smith,
    load_file,
    load_folder,
    load_registry,
    metadata_of,
    payload_of,
    plan_problems,
    plan_task,
    problems_of,
    read_plan,
    referred_steps,
    resolve,
    write_registry,
)
from neuroscript.interop.smith.tool_files import Contents
from neuroscript.workflow import plan_from_data

LISTED = {
    "SM-8": "guidance: descriptive names",
    "SM-12": "guidance: atomic parameters, consistent names, no free-form prompts",
    "SM-25": "guidance: a checklist for authors; problems_of is its second line",
    "SM-26": "guidance: no hidden global state",
    "SM-57": "the original's code: names of its events; here a Step is told, and the trace holds the rest",
    "SM-64": "the original's code: one lock for each tool; here a node never runs twice at once, and a tool may",
}
"""Rows without a test, and why."""

RUNNING = Path(__file__).parents[1] / "workflow" / "test_smith_runs.py"
"""The tests of the rows of what runs a plan."""


def metadata(**changes: Any) -> dict[str, Any]:
    """Return the METADATA of the document's section 2, with changes."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {
        "name": "weather_fetcher",
        "function": "run_weather",
        "dangerous": False,
        "parameters": schema,
        **changes,
    }


def file_of(folder: Path, name: str, said: object, code: str = "def run_weather(city):\n    return city\n") -> Path:
    """Write a tool of Smith's."""
    path = folder / name
    path.write_text(f"METADATA = {said!r}\n\n{code}")
    return path


def run_weather(city: str = "Oslo") -> str:
    """Return a city."""
    return f"sunny in {city}"


def called(tool: ToolImplementation, arguments: Mapping[str, Any], policy: ExecutionPolicy | None = None) -> Any:
    """Call a tool by an engine that grants nothing."""
    with engine_of(tool, policy=policy) as engine:
        return engine.call_named(tool.name, arguments)


def engine_of(*tools: ToolImplementation, policy: ExecutionPolicy | None = None) -> Engine:
    """Return an engine with tools."""
    return Engine(plugins="none", toolsets=[Toolset("smith", tools)], policy=policy or ExecutionPolicy())


def test_each_row_has_a_test_or_a_reason() -> None:
    """Sixty-four rows; some are listed instead of tested, some are tested where plans are run."""
    tested = {f"SM-{int(name.split('_')[2])}" for name in globals() if name.startswith("test_sm_")}
    runs = {f"SM-{int(number)}" for number in re.findall(r"def test_sm_(\d+)_", RUNNING.read_text())}

    assert {f"SM-{number}" for number in range(1, 65)} == tested | set(LISTED) | runs
    assert not tested & (set(LISTED) | runs)
    assert len(LISTED) <= 15


def test_the_page_has_every_row() -> None:
    """In their order, each with what became of it; and it names those without a test."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-smith.md").read_text()
    rows = re.findall(r"^\| (SM-\d+) \| [^|]+ \| (same|fixed|different|guidance) \|", page, re.MULTILINE)

    assert [f"SM-{number}" for number in range(1, 65)] == [row for row, _ in rows]
    assert {row for row, word in rows if word == "guidance"} <= set(LISTED)
    (untested,) = re.findall(r"Each row\s+has\s+a\s+test\s+of\s+its\s+name\s+but\s([^.]*)\.", page)
    assert list(LISTED) == re.findall(r"SM-\d+", untested)


# A file, its METADATA and its function


def test_sm_01_a_file_is_a_tool(tmp_path: Path) -> None:
    """One that stands alone, wherever the host has it."""
    tool = load_file(file_of(tmp_path, "WEATHER.py", metadata()))

    assert ("smith.weather_fetcher", "Berlin") == (tool.name, called(tool, {"city": "Berlin"}))


def test_sm_02_a_file_without_metadata_is_refused(tmp_path: Path) -> None:
    """Nothing of it is registered, and nothing of its module is left."""
    path = tmp_path / "deep.py"
    path.write_text("def run_deep(): ...\n")
    before = set(sys.modules)
    with pytest.raises(SpecError) as caught:
        load_file(path)

    assert f"{path}: METADATA: expected a dict, got nothing" == str(caught.value)
    assert set(sys.modules) <= before


def test_sm_02_metadata_have_to_be_a_dict() -> None:
    """And nothing else is looked at where they are not."""
    assert ("METADATA: expected a dict, got list",) == problems_of(["name"])


def test_sm_03_a_function_is_called_as_its_metadata_say_whatever_its_own_parameters_are(tmp_path: Path) -> None:
    """It may take any names, have others besides, or say other types; none of it counts."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    said = metadata(function="run_given", parameters=schema)
    tool = load_file(file_of(tmp_path, "any.py", said, "def run_given(hidden=1, **given: str):\n    return given\n"))

    assert ["a", "b"] == [arg.name for arg in tool.spec.args]
    assert [{"a": 5}, {"a": 5, "b": "x"}] == [called(tool, each) for each in ({"a": "5"}, {"a": 5, "b": "x"})]


def test_sm_03_a_function_that_does_not_take_what_its_metadata_say_fails_in_its_own_words(tmp_path: Path) -> None:
    """When it is called; nobody looked before."""
    tool = load_file(file_of(tmp_path, "a.py", metadata(), "def run_weather(town):\n    return town\n"))
    with pytest.raises(ToolFailed) as caught:
        called(tool, {"city": "Berlin"})

    expected = "TypeError: run_weather() got an unexpected keyword argument 'city'"
    assert f"smith.weather_fetcher: {expected}" == str(caught.value)


def test_sm_04_metadata_need_a_name_a_function_and_parameters_and_dangerous_may_be_left_out() -> None:
    """Everything that is missing is told at once; further keys are kept."""
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
        ({"name": ""}, "name: expected the name of the tool, got an empty text"),
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
def test_sm_04_what_is_wrong_is_told_with_its_place(changes: dict[str, Any], expected: str) -> None:
    """And never with its value."""
    assert (expected,) == problems_of(metadata(**changes))


def test_sm_04_a_number_that_python_makes_no_text_of_is_a_problem_like_any_other() -> None:
    """So that METADATA without problems can be written."""
    assert ("METADATA['notes'][1]: expected a JSON value, got a number with too many digits",) == problems_of(
        metadata(notes=[2**4095, 10**5000])
    )
    json.loads(json.dumps(2**4095))


def test_sm_05_two_tools_of_one_name_are_both_refused(tmp_path: Path) -> None:
    """Whatever the order of their files is, and where one name is only written otherwise; the others are there."""
    file_of(tmp_path, "a.py", metadata())
    file_of(tmp_path, "b.py", metadata(name="WeatherFetcher"))
    file_of(tmp_path, "c.py", metadata(name="other"))
    registry = load_folder(tmp_path)

    assert ["other"] == registry.list_tool_names() == [tool.spec.name for tool in registry.toolset]
    assert [
        f"{tmp_path}/a.py: its tool weather_fetcher has the same name as the one in b.py",
        f"{tmp_path}/b.py: its tool WeatherFetcher has the same name as the one in a.py",
    ] == [*map(str, registry.errors)]
    assert {"plugin.duplicate"} == {each.code for each in registry.errors}
    assert ("name: weather_fetcher is the name of another tool",) == problems_of(metadata(), taken=["Weather-Fetcher"])


def test_sm_06_the_function_has_the_very_name() -> None:
    """Of a function that is given, and of those that a file defines."""
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
    """With its properties, and what is required is among them."""
    assert expected == list(problems_of(metadata(parameters=parameters)))


def test_sm_07_what_is_a_tuple_in_python_is_a_list_of_the_schema() -> None:
    """Wherever it stands; what is no JSON at all is told once, with its place."""
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
def test_sm_09_each_parameter_has_a_type(schema: Any, expected: list[str]) -> None:
    """One of six words, or several, or null beside one."""
    assert expected == list(problems_of(metadata(parameters={"type": "object", "properties": {"x": schema}})))


def test_sm_10_an_optional_parameter_that_is_not_given_is_not_passed() -> None:
    """So the function's own default counts; one of the schema goes before it."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    default = {"type": "object", "properties": {"city": {"type": "string", "default": "Rome"}}}

    assert "sunny in Oslo" == called(from_smith(metadata(parameters=schema), run_weather), {})
    assert "sunny in Rome" == called(from_smith(metadata(parameters=default), run_weather), {})
    with pytest.raises(ArgumentError, match="city: expected string, got nothing"):
        called(from_smith(metadata(), run_weather), {})


NESTED = {
    "type": "object",
    "properties": {
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
        "days": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
    "required": ["place"],
}


def test_sm_11_nested_objects_are_kept_and_coerced() -> None:
    """At every depth."""

    def run_weather(place: Any, days: Any = ()) -> Any:
        return [place, days]

    tool = from_smith(metadata(parameters=NESTED), run_weather)

    assert [{"lat": 1.5}, [{"n": 2}]] == called(tool, {"place": {"lat": "1.5"}, "days": [{"n": "2"}]})
    with pytest.raises(ArgumentError, match=r"place\['lat'\]: expected float, got str"):
        called(tool, {"place": {"lat": "x"}})


def test_sm_11_what_is_within_is_checked_too() -> None:
    """Types and what is required."""
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
def test_sm_14_what_has_no_problems_is_a_tool_and_nothing_else_is(schema: Any, notes: Any) -> None:
    """Whatever stands in METADATA, and nothing but a SpecError is raised."""
    said = metadata(parameters={"type": "object", "properties": {"x": schema}, "required": ["x"]}, notes=notes)
    problems = problems_of(said)
    try:
        from_smith(said, run_weather)
    except SpecError as error:
        assert problems == error.problems
    else:
        assert () == problems


def nested(levels: int, *, as_tuple: bool = False) -> Any:
    """Return lists, or tuples, one in the other."""
    found: Any = "x"
    for _ in range(levels):
        found = (found,) if as_tuple else [found]
    return found


def doubled(levels: int) -> Any:
    """Return a list that is small, and written down has two to the power of so many values."""
    found: Any = "x"
    for _ in range(levels):
        found = [found, found]
    return found


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


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
def test_sm_14_metadata_that_nobody_could_look_through_are_refused_at_once(notes: Any, expected: str) -> None:
    """What holds itself, nests too deeply or is too large: copies and comparisons of it would never end."""
    assert (f"METADATA: {expected}",) == problems_of(metadata(notes=notes))
    assert (f"METADATA: {expected}",) == problems_of(metadata(parameters={"type": "object", "properties": notes}))


# The document's examples


def test_sm_13_the_good_example_is_accepted_and_gets_its_symbol() -> None:
    """By name."""
    schema = {"type": "object", "properties": {"symbol": {"type": "string"}}, "required": ["symbol"]}
    good = {"name": "finance_price", "function": "run_finance_price", "dangerous": False, "parameters": schema}

    def run_finance_price(symbol: str) -> Any:
        return {"symbol": symbol, "price": 5.5}

    assert () == problems_of(good, names={"run_finance_price": run_finance_price})
    assert {"symbol": "X", "price": 5.5} == called(from_smith(good, run_finance_price), {"symbol": "X"})


def test_sm_14_the_bad_example_is_refused_with_all_that_the_document_finds() -> None:
    """Its name says nothing, and its parameters have no structure."""
    assert (
        "function: expected a name that describes what the tool does, such as run_finance; run is too general",
        "parameters['type']: expected the string object, got nothing",
        "parameters['properties']: expected a dict of parameters, got nothing",
    ) == problems_of({"name": "finance", "function": "run", "parameters": {}})


@pytest.mark.parametrize(
    "name", ["run", "main", "execute", "do_everything", "handle_request", "runTool", "_call", "run_"]
)
def test_sm_14_a_function_whose_name_has_no_word_of_its_own_is_refused(name: str) -> None:
    """Each of its words would fit any tool."""
    expected = f"function: expected a name that describes what the tool does, such as run_weather_fetcher; {name} is too general"

    assert (expected,) == problems_of(metadata(function=name))


def test_sm_15_a_tool_that_is_not_dangerous_runs() -> None:
    """Without any grant; the document lets such a tool look, and do no more."""
    tool = from_smith(metadata(), run_weather)

    assert "sunny in Berlin" == called(tool, {"city": "Berlin"})
    assert (("net", "reads"), False) == (tool.policy.effects, tool.policy.requires_approval)


def test_sm_16_a_dangerous_tool_runs_only_for_a_user_who_says_so() -> None:
    """By its very name, or call by call; a pattern is not enough, and a no is a no."""
    tool = from_smith(metadata(dangerous=True), run_weather)
    asked: list[ApprovalRequest] = []

    def answered(request: ApprovalRequest) -> Approval:
        asked.append(request)
        return Approval.approve() if request.arguments["city"] == "Rome" else Approval.reject()

    for policy in (None, ExecutionPolicy(allow=("smith.*",))):
        with pytest.raises(PolicyError, match="requires approval, but there is no approver"):
            called(tool, {"city": "Berlin"}, policy)
    with pytest.raises(PolicyError) as caught:
        called(tool, {"city": "Berlin"}, ExecutionPolicy(approver=answered))
    named = ExecutionPolicy(preapproved=("smith.weather_fetcher",))
    approving = ExecutionPolicy(approver=answered)

    assert ("policy.rejected", "never") == (caught.value.code, caught.value.retry)
    assert "sunny in Berlin" == called(tool, {"city": "Berlin"}, named)
    assert "sunny in Rome" == called(tool, {"city": "Rome"}, approving)
    assert [{"city": "Berlin"}, {"city": "Rome"}] == [each.arguments for each in asked]


def test_sm_16_a_policy_of_the_host_takes_no_approval_away() -> None:
    """It says what else a tool needs."""
    policy = ToolPolicy(capabilities=("net:write:api.example",), effects=("net",))
    calm, dangerous = (from_smith(metadata(dangerous=each), run_weather, policy=policy) for each in (False, True))

    assert (policy, True) == (calm.policy, dangerous.policy.requires_approval)
    assert policy.capabilities == dangerous.policy.capabilities


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ToolPolicy(effects=("net", "reads")), False),
        (ToolPolicy(effects=("writes",)), True),
        (ToolPolicy(effects=("deletes",)), True),
        (ToolPolicy(effects=("exec",)), True),
        (ToolPolicy(requires_approval=True), True),
        (ToolPolicy(requires_trust=True), True),
    ],
    ids=str,
)
def test_sm_17_a_tool_of_ours_that_changes_things_is_dangerous_there(policy: ToolPolicy, expected: bool) -> None:
    """And one that asks for approval or for trust."""
    tool = ToolImplementation(ToolSpec("tidy", "house"), lambda rt: None, policy)

    assert expected is metadata_of(tool)["dangerous"]


# Errors


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise ValueError('no such city')", "ValueError: no such city"),
        ("raise ValueError('a\\n b\\x1b[2J')", "ValueError: a b\\x1b[2J"),
        ("raise RuntimeError", "RuntimeError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('no such city')", "SystemExit: no such city"),
    ],
    ids=["text", "lines", "silent", "expression", "end"],
)
def test_sm_21_an_error_of_a_tool_is_told_with_its_type_and_its_text(tmp_path: Path, code: str, expected: str) -> None:
    """One line of it; the exception itself is the cause."""
    tool = load_file(file_of(tmp_path, "a.py", metadata(), f"def run_weather(city):\n    {code}\n"))
    with pytest.raises(ToolFailed) as caught:
        called(tool, {"city": "Berlin"})

    assert (f"smith.weather_fetcher: {expected}", "tool.failed", "model") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )
    assert expected.partition(":")[0] == type(caught.value.__cause__).__name__


def test_sm_21_what_a_tool_says_itself_in_our_words_passes_and_an_error_without_a_text_is_its_type() -> None:
    """Its code too; a SpecError is told like any other exception."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError

    def raising(error: Exception) -> ToolFailed:
        def run_weather(city: str) -> None:
            raise error

        with pytest.raises(ToolFailed) as caught:
            called(from_smith(metadata(), run_weather), {"city": "Rome"})
        return caught.value

    own = raising(ToolFailed("closed on Mondays", code="weather.closed", retry="later"))

    assert ("closed on Mondays", "weather.closed", "later") == (own.text, own.code, own.retry)
    assert "SpecError: a: b" == raising(SpecError("a", ["b"])).text
    assert "Broken" == raising(Broken()).text


def test_sm_21_a_coroutine_function_is_awaited_and_its_errors_are_told_alike() -> None:
    """From both worlds."""

    async def run_weather(city: str) -> str:
        await asyncio.sleep(0)
        if city == "Nowhere":
            raise ValueError("no such city")
        return city

    tool = from_smith(metadata(), run_weather)
    with engine_of(tool) as engine:
        assert "Rome" == asyncio.run(engine.acall_named(tool.name, {"city": "Rome"}))
    with pytest.raises(ToolFailed, match="ValueError: no such city"):
        called(tool, {"city": "Nowhere"})


def test_sm_21_a_secret_of_the_host_is_hidden_in_what_a_tool_says() -> None:
    """An exception is no way out for it."""

    def run_weather(city: str) -> str:
        raise ValueError(f"refused for {city}")

    tool = from_smith(metadata(), run_weather)
    with Engine(
        plugins="none", toolsets=[Toolset("smith", (tool,))], host=Host(secrets={"k": "sesame-open-42-now"})
    ) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call_named(tool.name, {"city": "sesame-open-42-now"})

    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "before"),
    [("sesame-open-42-now", "y" * 990), ("-----BEGIN KEY-----\nMIIabc\n  MIIdef\n-----END KEY-----\n", "")],
    ids=["far behind", "of several lines"],
)
def test_sm_21_no_part_of_a_secret_is_left_where_a_text_is_made_one_line(secret: str, before: str) -> None:
    """Nor where it is long."""

    def run_weather(city: str) -> str:
        raise ValueError(f"{before}no such key: {secret}!")

    host = Host(secrets={"k": secret})
    tool = from_smith(metadata(), run_weather)
    with Engine(plugins="none", toolsets=[Toolset("smith", (tool,))], host=host) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call_named(tool.name, {"city": "Rome"})

    assert caught.value.text.replace("[secret] !", "[secret]!") == f"ValueError: {before}no such key: [secret]!"


def test_sm_22_a_function_that_is_not_there_is_refused_when_it_is_loaded_and_the_others_are_there(
    tmp_path: Path,
) -> None:
    """With the name of the file."""
    path = file_of(tmp_path, "bad.py", metadata(function="weather", name="bad"))
    file_of(tmp_path, "good.py", metadata())
    registry = load_folder(tmp_path)

    assert ["weather_fetcher"] == registry.list_tool_names()
    assert [(f"{path}: function: the file has no function weather; did you mean run_weather?", "plugin.spec")] == [
        (str(each), each.code) for each in registry.errors
    ]


@pytest.mark.parametrize(
    "module", ["smith.tools.weather", "WEATHER", "weather.py", "Weather", "smith.tools.WEATHER.py"]
)
def test_sm_23_a_module_is_found_however_it_is_written(tmp_path: Path, module: str) -> None:
    """Without the package, without the ending, in capitals or not."""
    file_of(tmp_path, "WEATHER.py", metadata())
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata(module=module)]}))
    registry = load_registry(tmp_path / "registry.json")

    assert (["weather_fetcher"], (), ()) == (registry.list_tool_names(), registry.errors, registry.drift)


def test_sm_23_what_can_not_be_imported_is_a_plugin_error(tmp_path: Path) -> None:
    """An ImportError, any other, an end of the interpreter, broken Python, and no file; the cause is the original."""
    codes = {
        "a.py": (
            "import no_such_module",
            "ModuleNotFoundError: No module named 'no_such_module' (a.py, line 1)",
            "plugin.import",
        ),
        "b.py": ("\n1 / 0", "ZeroDivisionError: division by zero (b.py, line 2)", "plugin.import"),
        "c.py": ("raise SystemExit", "SystemExit (c.py, line 1)", "plugin.exit"),
        "d.py": ("def", "SyntaxError: invalid syntax (d.py, line 1)", "plugin.import"),
    }
    before = set(sys.modules)
    for name, (code, reason, kind) in codes.items():
        (tmp_path / name).write_text(code)
        with pytest.raises(PluginError) as caught:
            load_file(tmp_path / name)
        assert (f"{tmp_path}/{name}: cannot be loaded: {reason}", kind) == (str(caught.value), caught.value.code)
        assert re.split("[: ]", reason)[0] == type(caught.value.__cause__).__name__
    with pytest.raises(PluginError, match="no such Python file or package"):
        load_file(tmp_path / "z.py")

    assert set(sys.modules) <= before


def test_sm_23_the_name_of_a_module_is_given_back_when_its_tool_is_gone(tmp_path: Path) -> None:
    """And not before: its function may import late."""
    before = set(sys.modules)
    tool = load_file(file_of(tmp_path, "a.py", metadata()))
    during = set(sys.modules) - before
    assert "Rome" == called(tool, {"city": "Rome"})
    del tool
    gc.collect()

    assert 1 == len([name for name in during if name.startswith("neuroscript_plugin_a_")])
    assert not [name for name in during if name.startswith("neuroscript_plugin_a_") and name in sys.modules]


def test_sm_24_a_file_is_plain_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imports it needs nothing of ours, and has the function."""
    (tmp_path / "smith" / "tools").mkdir(parents=True)
    file_of(tmp_path / "smith" / "tools", "WEATHER_FETCHER.py", metadata())
    monkeypatch.syspath_prepend(str(tmp_path))

    found = importlib.import_module("smith.tools.WEATHER_FETCHER").run_weather("Berlin")

    for name in ("smith.tools.WEATHER_FETCHER", "smith.tools", "smith"):
        sys.modules.pop(name, None)
    assert "Berlin" == found


# The registry


def test_sm_27_metadata_that_an_author_has_added_by_hand_are_found_by_their_name(tmp_path: Path) -> None:
    """Without a module, as the document has them."""
    file_of(tmp_path, "WEATHER_FETCHER.py", metadata())
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata()]}))

    assert ["weather_fetcher"] == load_registry(tmp_path / "registry.json").list_tool_names()


def test_sm_27_a_registry_is_written_and_read_again(tmp_path: Path) -> None:
    """Of a folder: version, auto_generated, and METADATA with a module each."""
    file_of(tmp_path, "b.py", metadata(notes=["é"]))
    file_of(tmp_path, "a.py", metadata(name="other", dangerous=True))
    write_registry(tmp_path / "registry.json", load_folder(tmp_path))
    written = json.loads((tmp_path / "registry.json").read_text())
    registry = load_registry(tmp_path / "registry.json")

    assert {
        "version": "1.0",
        "auto_generated": True,
        "tools": [metadata(name="other", dangerous=True, module="a"), metadata(notes=["é"], module="b")],
    } == written
    assert (written["tools"], (), ()) == (registry.get_tools_registry(), registry.errors, registry.drift)


def test_sm_27_each_difference_between_file_and_registry_is_told(tmp_path: Path) -> None:
    """With its place; the file says what the tool is."""
    file_of(tmp_path, "a.py", metadata(notes=[1, 2], domain="web"))
    file_of(tmp_path, "b.py", metadata(name="unlisted"))
    listed = metadata(module="a", notes=[1, 2, 3], output_type="text", dangerous=0)
    listed["parameters"] = {"type": "object", "properties": {"city": {"type": "number"}}, "required": []}
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [listed, metadata(name="gone", module="gone")]}))
    registry = load_registry(tmp_path / "registry.json")
    same = "differs between the file and the registry"

    assert (
        "b.py: is not in the registry",
        f"weather_fetcher: dangerous: {same}",
        f"weather_fetcher: parameters['properties']['city']['type']: {same}",
        "weather_fetcher: parameters['required'][0]: is only in the file",
        "weather_fetcher: notes[2]: is only in the registry",
        "weather_fetcher: domain: is only in the file",
        "weather_fetcher: output_type: is only in the registry",
    ) == registry.drift
    assert [f"{tmp_path}/registry.json: tools[1]['module']: gone matches no file in the folder"] == [
        *map(str, registry.errors)
    ]
    assert "string" == registry.get_tool_by_name("weather_fetcher")["parameters"]["properties"]["city"]["type"]


@pytest.mark.parametrize("in_file", [True, False])
def test_sm_27_a_tool_is_dangerous_when_its_file_or_the_registry_says_so(tmp_path: Path, in_file: bool) -> None:
    """So that drift takes no gate away."""
    file_of(tmp_path, "a.py", metadata(dangerous=in_file))
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata(module="a", dangerous=not in_file)]}))
    registry = load_registry(tmp_path / "registry.json")

    assert [True] == [tool.policy.requires_approval for tool in registry.toolset]
    assert registry.get_tool_by_name("weather_fetcher")["dangerous"]
    assert ("weather_fetcher: dangerous: differs between the file and the registry",) == registry.drift


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "line 1, column 2 is not JSON"),
        ("[]", "expected an object with tools, got list"),
        ("{}", "tools: expected a list of METADATA, got nothing"),
        (
            '{"tools": [5, {"name": ""}, {"name": "a", "module": 5}]}',
            "tools[0]: expected METADATA, got int; tools[1]['name']: expected the name of the tool, got an empty text; "
            "tools[2]['module']: expected the name of a file, got int",
        ),
    ],
    ids=["broken", "list", "empty", "entries"],
)
def test_sm_27_a_registry_that_is_none_is_refused_with_every_problem(tmp_path: Path, text: str, expected: str) -> None:
    """Nothing is imported."""
    path = tmp_path / "registry.json"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_registry(path)

    assert f"{path}: {expected}" == str(caught.value)


def test_sm_27_a_module_leads_out_of_no_folder(tmp_path: Path) -> None:
    """It is the name of a file there, and nothing else; what is not listed is not imported."""
    inside = tmp_path / "inside"
    inside.mkdir()
    file_of(tmp_path, "evil.py", metadata(), "raise SystemExit\n")
    file_of(inside, "unlisted.py", metadata(), "raise SystemExit\n")
    (inside / "registry.json").write_text(json.dumps({"tools": [metadata(module="../evil")]}))
    registry = load_registry(inside / "registry.json")

    assert ([], 1) == (registry.list_tool_names(), len(registry.errors))
    assert ("unlisted.py: is not in the registry",) == registry.drift


@pytest.mark.parametrize(
    ("raised", "expected", "code"),
    [
        ("RuntimeError", "cannot be loaded: RuntimeError (bad.py, line 3)", "plugin.import"),
        ("SystemExit", "cannot be loaded: SystemExit (bad.py, line 3)", "plugin.exit"),
    ],
)
def test_sm_27_metadata_that_fail_when_they_are_looked_at_stop_no_other_file(
    tmp_path: Path, raised: str, expected: str, code: str
) -> None:
    """Nothing of the module is left."""
    bad, modules = tmp_path / "bad.py", set(sys.modules)
    bad.write_text(f"class Odd(dict):\n    def get(self, *key):\n        raise {raised}\nMETADATA = Odd()\n")
    file_of(tmp_path, "good.py", metadata())
    registry = load_folder(tmp_path)
    added = {each for each in set(sys.modules) - modules if "_bad_" in each}

    assert (["weather_fetcher"], set()) == (registry.list_tool_names(), added)
    assert [(f"{bad}: {expected}", code)] == [(str(each), each.code) for each in registry.errors]


def test_sm_27_a_file_that_others_could_change_is_not_imported(tmp_path: Path) -> None:
    """As of every folder of plugins."""
    path = file_of(tmp_path, "a.py", metadata(), "raise SystemExit\n")
    path.chmod(0o666)
    registry = load_folder(tmp_path)

    assert ([], ["plugin.unsafe"]) == (registry.list_tool_names(), [each.code for each in registry.errors])


def test_sm_27_what_is_called_like_a_file_and_is_none_is_told(tmp_path: Path) -> None:
    """A link to nothing, one to itself, and a pipe, which nobody waits for."""
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "knot.py").symlink_to(tmp_path / "knot.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    reason = "no such Python file or package (a directory with __init__.py)"

    assert [f"{tmp_path}/{name}.py: {reason}" for name in ("gone", "knot", "pipe")] == [
        *map(str, load_folder(tmp_path).errors)
    ]


def test_sm_27_a_file_that_two_entries_mean_is_that_of_neither(tmp_path: Path) -> None:
    """It is not even imported."""
    file_of(tmp_path, "a.py", metadata(), "raise SystemExit\n")
    file_of(tmp_path, "b.py", metadata(name="b"))
    entries = [metadata(module="a"), metadata(name="b"), metadata(name="other", module="A.py")]
    (tmp_path / "registry.json").write_text(json.dumps({"tools": entries}))
    registry = load_registry(tmp_path / "registry.json")

    assert (["b"], ()) == (registry.list_tool_names(), registry.drift)
    assert [f"{tmp_path}/registry.json: tools[0] and tools[2] refer to the same file, a.py"] * 2 == [
        *map(str, registry.errors)
    ]


@pytest.mark.parametrize("name", ["my.tool", "smith.tools.x", "x.py"])
def test_sm_27_what_is_written_of_a_file_is_found_again_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Though a list of others may write it with a package or an ending."""
    file_of(tmp_path, f"{name}.py", metadata())
    write_registry(tmp_path / "registry.json", load_folder(tmp_path))
    registry = load_registry(tmp_path / "registry.json")

    assert (["weather_fetcher"], (), ()) == (registry.list_tool_names(), registry.errors, registry.drift)


def test_sm_27_a_registry_that_others_could_change_is_refused(tmp_path: Path) -> None:
    """It says which files are imported, and none of them is."""
    file_of(tmp_path, "a.py", metadata(), "raise SystemExit\n")
    path = tmp_path / "registry.json"
    path.write_text(json.dumps({"tools": [metadata(module="a")]}))
    path.chmod(0o666)
    with pytest.raises(PluginError) as caught:
        load_registry(path)

    reason = f"it is not loaded: other users can write to {path}; run 'chmod go-w' to fix this"
    assert (f"{path}: {reason}", "plugin.unsafe") == (str(caught.value), caught.value.code)


def test_sm_27_a_folder_that_is_not_there_or_that_others_could_change_is_refused(tmp_path: Path) -> None:
    """As a whole, at once."""
    with pytest.raises(PluginError) as caught:
        load_folder(tmp_path / "none")
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    with pytest.raises(PluginError) as unsafe:
        load_folder(open_folder)

    assert f"{tmp_path}/none: it cannot be read (FileNotFoundError)" == str(caught.value)
    assert "plugin.unsafe" == unsafe.value.code


def test_sm_27_tools_of_ours_are_written_too() -> None:
    """METADATA of any tool are sound, and say what it takes."""
    with Engine() as engine:
        found = [metadata_of(tool) for tool in engine.tools.values()]
        add = metadata_of(engine.tools["math.add"], function="run_addition")

    assert [] == [each["name"] for each in found if problems_of(each)]
    assert len(found) > 50
    assert ("math__add", "run_addition", False) == (add["name"], add["function"], add["dangerous"])
    assert {"num1", "num2"} == set(add["parameters"]["required"])


def test_sm_27_two_tools_of_one_name_are_not_written(tmp_path: Path) -> None:
    """And there is no file."""
    tool = ToolImplementation(ToolSpec("ping", "net", (ArgSpec("host", "string"),)), lambda rt, host: None)  # type: ignore[arg-type]
    with pytest.raises(SpecError) as caught:
        write_registry(tmp_path / "registry.json", [tool, tool])
    write_registry(tmp_path / "other.json", [tool])

    assert f"{tmp_path}/registry.json: several tools have the name net__ping" == str(caught.value)
    assert ["other.json"] == [each.name for each in tmp_path.iterdir()]
    assert [metadata_of(tool)] == json.loads((tmp_path / "other.json").read_text())["tools"]


@attrs.define
class Scripted:
    """A model that gives its answers one after the other, and keeps what it was asked."""

    answers: Sequence[str | LLMError]
    asked: list[tuple[Turn, ...]] = attrs.field(factory=list)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the next answer."""
        self.asked.append(tuple(turns))
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, LLMError):
            raise answer
        return Turn("assistant", answer)

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the next answer."""
        return self.ask(turns)

    def embed(self, text: str) -> Sequence[float]:
        """Return nothing."""
        return ()


def node(**changes: Any) -> dict[str, Any]:
    """Return a sound node of a plan, with changes; one that is None is left out."""
    whole = {
        "id": 0,
        "tool": "w",
        "function": "run_w",
        "inputs": {"city": "Rome"},
        "depends_on": [],
        "retry": 0,
        "timeout": 60,
        "on_fail": "halt",
        **changes,
    }
    return {key: each for key, each in whole.items() if each is not None}


def plan(*nodes: Any, last: Any = 0) -> dict[str, Any]:
    """Return a plan."""
    return {"nodes": list(nodes), "final_output_node": last}


def tools() -> list[dict[str, Any]]:
    """Return the METADATA that plans are held to."""
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return [{**metadata(name="w", function="run_w", parameters=schema), "notes": "for authors", "description": "Ask."}]


def test_sm_28_a_planner_is_told_what_a_tool_takes_and_no_more() -> None:
    """Name, description, function and parameters."""
    model = Scripted([json.dumps(plan(node()))])
    found = plan_task("How is it in Rome?", tools(), model)
    told = json.loads(model.asked[0][0].content.partition("Tools:\n")[2])

    assert {"status": "success", **plan(node())} == found
    assert [{"name", "description", "function", "parameters"}] == [set(each) for each in told]
    assert ["system", "user"] == [turn.role for turn in model.asked[0]]
    assert "How is it in Rome?" == model.asked[0][1].content


def test_sm_29_a_function_is_loaded_by_its_name_and_a_file_that_has_changed_is_loaded_anew(tmp_path: Path) -> None:
    """When the registry is read; what an engine has stays what it was."""
    file_of(tmp_path, "a.py", metadata())
    registry = load_folder(tmp_path)
    (before,) = registry.toolset
    file_of(tmp_path, "a.py", metadata(), "def run_weather(city):\n    return city.upper()\n")

    assert "Rome" == called(registry.toolset.tools[0], {"city": "Rome"})
    registry.reset_cache()
    assert "ROME" == called(registry.toolset.tools[0], {"city": "Rome"})
    assert "Rome" == called(before, {"city": "Rome"})


def test_sm_32_a_tool_is_added_to_an_engine_that_knows_nothing_of_it(tmp_path: Path) -> None:
    """Without a change of either."""
    with Engine(plugins="none") as engine:
        engine.register(Toolset("smith", (load_file(file_of(tmp_path, "a.py", metadata())),)))

        assert "Rome" == engine.call("smith.weather_fetcher", ("Rome",))


def generated() -> Iterator[int]:
    """Yield a number."""
    yield 1


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b"x", "result: expected a JSON value, got bytes"),
        ({"a": [1, {2}]}, "result['a'][1]: expected a JSON value, got set"),
        ({"a": float("inf")}, "result['a']: expected a JSON value, got a number that is not finite"),
        ({1: 2}, "result: expected a JSON value, got int as a key"),
        (generated(), "result: expected a JSON value, got generator"),
        ([object(), {3}], "result[0]: expected a JSON value, got object; "
                          "result[1]: expected a JSON value, got set"),
    ],
    ids=["bytes", "nested", "infinite", "key", "stream", "several"],
)  # fmt: skip
def test_sm_33_a_result_that_json_can_not_hold_is_an_error_that_names_the_place(result: Any, expected: str) -> None:
    """Each place, and no value."""

    def run_weather(city: str) -> Any:
        return result

    with pytest.raises(ToolFailed) as caught:
        called(from_smith(metadata(), run_weather), {"city": "Rome"})

    assert (f"smith.weather_fetcher: {expected}", "return.type", "never") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )


def test_sm_33_a_generator_is_no_result_and_is_ended() -> None:
    """Whoever else holds it."""
    generator = (each for each in "ab")
    next(generator)

    def run_weather(city: str) -> Any:
        return generator

    with pytest.raises(ToolFailed):
        called(from_smith(metadata(), run_weather), {"city": "Rome"})

    assert None is generator.gi_frame


def test_sm_33_what_json_can_hold_comes_back() -> None:
    """A tuple as a list; what holds itself is refused by the engine, and ends."""

    def run_weather(city: str) -> Any:
        return {"a": (1, 2.5, None, True), "b": city}

    def run_endless(city: str) -> Any:
        endless: list[Any] = []
        endless.append(endless)
        return endless

    assert {"a": [1, 2.5, None, True], "b": "Rome"} == called(from_smith(metadata(), run_weather), {"city": "Rome"})
    with pytest.raises(ReturnError, match="at most 64 levels"):
        called(from_smith(metadata(function="run_endless"), run_endless), {"city": "Rome"})


# Plans


def first(data: Any) -> str:
    """Return the first problem of a plan."""
    return plan_problems(data, tools())[0]


def test_sm_34_a_plan_is_an_object() -> None:
    """Nothing else is looked at."""
    assert ["Plan is not a JSON object."] * 3 == [*map(first, ([], None, "{}"))]


def test_sm_35_a_plan_has_nodes() -> None:
    """At least one."""
    plans: list[Any] = [{}, {"nodes": []}, {"nodes": {}}]

    assert ["Missing or empty 'nodes' list."] * 3 == [*map(first, plans)]


@pytest.mark.parametrize("number", ["0", 0.0, None, True], ids=str)
def test_sm_36_ids_are_integers(number: Any) -> None:
    """True is none; nor has a node that is no object one."""
    assert "Every node.id must be an integer." == first(plan(node(id=number)))
    assert "Every node.id must be an integer." == first(plan("node"))


def test_sm_37_ids_are_unique_and_may_have_gaps() -> None:
    """Each is told once."""
    assert ("Duplicate node id 0.",) == plan_problems(plan(node(), node(), node()), tools())
    assert () == plan_problems(plan(node(id=3), node(id=9, depends_on=[3]), last=9), tools())


@pytest.mark.parametrize("changes", [{"tool": None}, {"function": None}, {"tool": ""}, {"tool": ["w"]}], ids=str)
def test_sm_38_a_node_has_a_tool_and_a_function(changes: dict[str, Any]) -> None:
    """Both are texts."""
    assert "Node 0: missing 'tool' or 'function'." == first(plan(node(**changes)))


def test_sm_39_a_tool_is_one_of_the_registry() -> None:
    """By its name in Smith."""
    assert "Node 0: tool 'zz' not in registry." == first(plan(node(tool="zz")))


def test_sm_40_a_function_is_that_of_its_tool() -> None:
    """By METADATA."""
    assert "Node 0: invalid function 'run' for tool 'w' (expected 'run_w')." == first(plan(node(function="run")))


def test_sm_41_inputs_are_an_object() -> None:
    """A list is none."""
    assert "Node 0: 'inputs' must be an object." == first(plan(node(inputs=["Rome"])))


def test_sm_42_no_input_is_made_up() -> None:
    """Each has its name in METADATA."""
    assert "Node 0: invalid input 'zz' for tool 'w'." == first(plan(node(inputs={"zz": 1, "city": "Rome"})))


def test_sm_43_required_inputs_are_there_and_fit() -> None:
    """Null is nothing; what is of another type is coerced, or refused before anything runs."""
    assert ("Node 0: missing required input 'city' for tool 'w'.",) == plan_problems(plan(node(inputs=None)), tools())
    assert ("Node 0: city: expected string, got None.",) == plan_problems(plan(node(inputs={"city": None})), tools())
    assert (
        "Node 0: city: expected string, got int.",
        "Node 0: days: expected int, got str (a string must be a decimal integer, such as 42).",
    ) == plan_problems(plan(node(inputs={"city": 5, "days": "x"})), tools())
    assert () == plan_problems(plan(node(inputs={"city": "Rome", "days": "3"})), tools())


def test_sm_44_dependencies_are_a_list_of_integers() -> None:
    """Which may be left out."""
    assert "Node 1: 'depends_on' must be a list." == first(plan(node(id=1, depends_on=0), last=1))
    assert "Node 1: depends_on contains non-int id (str)." == first(plan(node(id=1, depends_on=["0"]), last=1))
    assert () == plan_problems(plan(node(depends_on=None)), tools())


def test_sm_45_dependencies_are_nodes() -> None:
    """Of this plan."""
    assert "Node 0: depends_on references unknown id 7." == first(plan(node(depends_on=[7])))


def test_sm_46_dependencies_come_before() -> None:
    """So there is no cycle."""
    assert "Node 0: depends_on id 0 must be < 0." == first(plan(node(depends_on=[0])))
    assert "Node 0: depends_on id 1 must be < 0." == first(plan(node(depends_on=[1]), node(id=1)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(({"retry": each}, "Node 0: 'retry' must be a non-negative integer.") for each in (-3, "x", None, 1.5, True)),
        *(({"timeout": each}, "Node 0: 'timeout' must be a positive number.") for each in (0, -1, "x", None, True)),
        *(({"on_fail": each}, "Node 0: 'on_fail' must be 'halt' or 'continue'.") for each in ("stop", 5, None, [])),
    ],
    ids=str,
)
def test_sm_47_how_a_node_runs_is_said_and_nothing_is_repaired(changes: dict[str, Any], expected: str) -> None:
    """What is missing is a problem, too."""
    assert (expected,) == plan_problems(plan(node(**changes)), tools())


def test_sm_47_a_timeout_is_a_number_that_can_be_waited_for() -> None:
    """JSON writes whole numbers that no clock counts to."""
    expected = "Node 0: 'timeout' must be a positive number."

    assert (expected,) == plan_problems(plan(node(timeout=10**400)), tools())
    with pytest.raises(SpecError) as caught:
        plan_from_data({"nodes": {"a": {"tool": "t", "timeout": 10**400}}})

    assert ("nodes.a.timeout must be a positive, finite number of seconds",) == caught.value.problems


@pytest.mark.parametrize("last", [None, 7, "0", False], ids=str)
def test_sm_48_the_last_node_is_one_of_the_plan(last: Any) -> None:
    """By its id."""
    assert ("Invalid or missing 'final_output_node' id.",) == plan_problems(plan(node(), last=last), tools())


def test_sm_48_every_problem_is_told_at_once() -> None:
    """Of all nodes, in their order."""
    found = plan_problems(plan(node(tool="zz", retry=-1), node(id=2, inputs={}, depends_on=[5]), last=9), tools())

    assert (
        "Node 0: tool 'zz' not in registry.",
        "Node 0: 'retry' must be a non-negative integer.",
        "Node 2: missing required input 'city' for tool 'w'.",
        "Node 2: depends_on references unknown id 5.",
        "Invalid or missing 'final_output_node' id.",
    ) == found


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "error", "error": "no"}',
        '```json\n{"status": "error", "error": "no"}\n```',
        'So:\n{"status": "error", "error": "no"} !',
    ],
    ids=["bare", "fenced", "within a text"],
)
def test_sm_49_a_plan_that_says_that_there_is_none_passes_through(text: str) -> None:
    """And is unwrapped."""
    model = Scripted([text])

    assert {"status": "error", "error": "no"} == read_plan(text) == plan_task("Fly.", tools(), model)
    assert () == plan_problems(read_plan(text), tools())


def test_sm_49_broken_json_goes_back_once_for_its_writing() -> None:
    """With the place; that is no further attempt."""
    whole = json.dumps(plan(node()))
    model = Scripted([whole.replace("[]", "[", 1), whole])

    assert {"status": "success", **plan(node())} == plan_task("Go.", tools(), model, attempts=1)
    assert re.fullmatch(r"That is no JSON: line 1, column \d+ is not JSON\. .*", model.asked[1][-1].content)


def test_sm_50_after_three_attempts_there_is_no_plan() -> None:
    """Each time the model is told every problem."""
    bad = json.dumps(plan(node(tool="zz"), last=7))
    model = Scripted([bad, "no", "no {", bad])
    found = plan_task("Go.", tools(), model)
    problems = "Node 0: tool 'zz' not in registry. Invalid or missing 'final_output_node' id."

    reason = "Node 0: tool 'zz' not in registry."
    assert {"status": "error", "error": f"Unable to build valid plan. Reason: {reason}"} == found
    assert 4 == len(model.asked)
    assert f"The plan is not valid: {problems} Answer with the whole corrected plan." == model.asked[1][-1].content


def test_sm_50_a_model_that_can_not_be_asked_is_asked_once() -> None:
    """Whoever lends it has tried again already."""
    model = Scripted([LLMError("no model is lent")])

    assert {"status": "error", "error": "Unable to build valid plan. Reason: no model is lent"} == plan_task(
        "Go.", tools(), model
    )


# Payloads


def payload(result: Any) -> dict[str, Any]:
    """Return the payload of a call of a tool that gives *result*, or raises it."""

    def run_weather(city: str) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    with engine_of(from_smith(metadata(), run_weather)) as engine:
        return payload_of(engine.execute(ToolCall("smith.weather_fetcher", {"city": "Rome"})))


def test_sm_51_a_map_with_a_status_is_the_payload() -> None:
    """Whatever the status is."""
    for each in ({"status": "success", "temp": 3}, {"status": "error", "error": "x"}):
        assert each == payload(each)


def test_sm_52_another_map_is_a_result() -> None:
    """Below ``result``."""
    assert {"status": "success", "result": {"a": 1}} == payload({"a": 1})


def test_sm_53_anything_else_is_a_result() -> None:
    """None too."""
    assert {"status": "success", "result": "deleted"} == payload("deleted")
    assert {"status": "success", "result": None} == payload(None)


def test_sm_54_an_error_is_told_in_its_own_words() -> None:
    """With its type, which the original loses."""
    expected = "smith.weather_fetcher: ValueError: no such city"

    assert {"status": "error", "error": expected} == payload(ValueError("no such city"))


# References


def test_sm_58_a_reference_alone_is_the_very_object() -> None:
    """That below ``result`` or ``results`` of a payload."""
    thing = {"a": [1, {"b": None}]}
    steps = {0: thing, 1: {"status": "success", "result": thing}, 2: {"status": "success", "results": [thing]}}
    inputs = {"x": "{{STEPS.0}}", "y": [" {{ STEPS.1 }} ", {"z": "{{STEPS.2}}"}], "n": 5}

    assert {"x": thing, "y": [thing, {"z": [thing]}], "n": 5} == resolve(inputs, steps)
    assert resolve(inputs, steps)["x"] is thing


def test_sm_59_a_reference_within_a_text_is_its_text_and_json_of_what_is_none() -> None:
    """Of a part of a result, by keys and numbers."""
    steps = {0: {"temp": 3, "name": "Oslo", "tags": ["a", {"b": True}], "none": None}}
    text = "{{STEPS.0.name}} {{STEPS.0.temp}} {{STEPS.0.tags}} {{STEPS.0.tags.1.b}} {{STEPS.0.none}}"

    assert {"x": 'Oslo 3 ["a", {"b": true}] true null'} == resolve({"x": text}, steps)
    assert {"x": 3} == resolve({"x": "{{STEPS.0.temp}}"}, steps)
    assert {"x": 3} == resolve({"x": "{{STEPS.0.a.temp}}"}, {0: {"status": "success", "result": {"a": {"temp": 3}}}})
    assert {"x": 3} == resolve({"x": "{{STEPS.0.result.temp}}"}, {0: {"status": "success", "result": {"temp": 3}}})


def test_sm_59_a_reference_to_nothing_is_an_error() -> None:
    """All of them at once, each with its place."""
    inputs = {"a": "{{STEPS.7}}", "b": ["in {{STEPS.0.nope.x}}", "{{STEPS.0.tags.5}}"], "c": "{{STEPS.one}}"}
    with pytest.raises(ArgumentError) as caught:
        resolve(inputs, {0: {"temp": 3, "tags": []}})

    assert (
        "a: expected a result of step 7, got nothing; "
        "b[0]: expected nope.x in the result of step 0, got nothing; "
        "b[1]: expected tags.5 in the result of step 0, got nothing; "
        "c: expected a reference such as {{STEPS.0}} or {{STEPS.0.price}}, got another string"
    ) == str(caught.value)
    assert ("plan.reference", "model") == (caught.value.code, caught.value.retry)


def test_sm_59_what_a_result_holds_is_no_reference() -> None:
    """So that what a tool brings from outside reads no other step."""
    steps = {0: "{{STEPS.1}}", 1: "secret"}

    assert {"x": "{{STEPS.1}}", "y": "a {{STEPS.1}}"} == resolve({"x": "{{STEPS.0}}", "y": "a {{STEPS.0}}"}, steps)


def test_sm_59_a_node_refers_to_what_it_depends_on() -> None:
    """At whatever distance; what comes beside it may not have ended."""
    one, two = node(id=1, depends_on=[0]), node(id=2, inputs={"city": "{{STEPS.0.a}} {{STEPS.1}}"}, depends_on=[1])
    wrong = node(id=2, inputs={"city": "{{STEPS.1}}", "days": "{{STEPS.9}}"}, depends_on=[0])

    assert () == plan_problems(plan(node(), one, two, last=2), tools())
    assert (
        "Node 2: inputs refer to step 1, which is not in 'depends_on'.",
        "Node 2: inputs refer to step 9, which is not in 'depends_on'.",
    ) == plan_problems(plan(node(), one, wrong, last=2), tools())
    assert frozenset({0, 1}) == referred_steps(two["inputs"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ENDLESS, "nests deeper than 64 levels"),
        ([nested(5_000), "{{STEPS.0}}"], "nests deeper than 64 levels"),
        (doubled(40), "more than 50000 values or 1048576 characters"),
    ],
    ids=["endless", "deep", "doubled"],
)
def test_sm_41_inputs_that_nobody_could_look_through_are_refused_at_once(given: Any, expected: str) -> None:
    """Their references are not looked for."""
    assert (f"Node 0: 'inputs': {expected}.",) == plan_problems(plan(node(inputs={"city": given})), tools())
    assert "Node 0: 'inputs' must be an object." == plan_problems(plan(node(inputs=given)), tools())[0]


def test_sm_59_a_reference_that_names_no_step_is_found_before_anything_runs() -> None:
    """At every depth."""
    found = plan_problems(plan(node(inputs={"city": "{{STEPS.one}}"})), tools())

    assert ("Node 0: inputs contain a reference without a valid step.",) == found


def test_sm_60_metadata_that_are_changed_later_change_nothing(tmp_path: Path) -> None:
    """Neither those of the file, by its own function, nor the copies that a host has."""
    code = "def run_weather(city):\n    METADATA['parameters'].clear()\n    return len(METADATA['parameters'])\n"
    file_of(tmp_path, "a.py", metadata(), code)
    registry = load_folder(tmp_path)
    changed = called(registry.tool("weather_fetcher"), {"city": "Rome"})
    registry.get_tools_registry()[0]["parameters"].clear()

    assert (0, metadata(module="a")) == (changed, registry.get_tool_by_name("weather_fetcher"))


def test_sm_60_a_reset_by_another_thread_takes_nothing_from_who_reads() -> None:
    """Before whichever line of the reader it comes."""
    registry = ToolsRegistry("smith", lambda: Contents((), ()))
    code = ToolsRegistry.contents.fget.__code__  # type: ignore[attr-defined]

    def resetting(frame: FrameType, event: str, arg: object) -> Any:
        registry.reset_cache()
        return resetting

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: resetting if frame.f_code is code else None)
    try:
        found = registry.list_tool_names()
    finally:
        sys.settrace(before)

    assert [] == found


def test_sm_60_the_registry_has_the_functions_of_smith(tmp_path: Path) -> None:
    """Each tool's METADATA are copies; an unknown name is a ValueError in its words."""
    file_of(tmp_path, "b.py", metadata())
    registry = load_folder(tmp_path)
    registry.get_tools_registry()[0]["parameters"].clear()

    assert [metadata(module="b")] == registry.get_tools_registry()
    assert metadata(module="b") == registry.get_tool_by_name("weather_fetcher")
    assert "smith.weather_fetcher" == registry.tool("weather_fetcher").name
    with pytest.raises(ValueError) as caught:
        registry.get_tool_by_name("nope")
    assert "Tool 'nope' not found in registry" == str(caught.value)

    (tmp_path / "b.py").unlink()
    assert ["weather_fetcher"] == registry.list_tool_names()
    registry.reset_cache()
    assert [] == registry.list_tool_names()
