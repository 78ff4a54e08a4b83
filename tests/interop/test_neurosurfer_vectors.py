"""The cases of neurosurfer in ``tests/vectors/seed_systems.json``.

A case is a description; its check is in `CHECKS` under its id.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.interop.neurosurfer_tools import (
    Boom,
    Careless,
    EchoTool,
    Recorder,
    SQLQueryTool,
    engine_of,
    invoker_of,
    make_spec,
    spec_with_input,
    text_spec,
)

from neuroscript import SpecError
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
from neuroscript.runtime.wire_names import WireNames

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "seed_systems.json").read_text())
OURS = {each["id"]: each for each in VECTORS if each["system"] == "neurosurfer"}


def raised(call: Callable[[], Any], kind: type[Exception] = ValueError) -> str:
    """Return the message of the error that a call raises, or its result."""
    try:
        return f"got {call()!r}"
    except Exception as error:
        return str(error) if type(error) is kind else f"got {error!r}"


def pair() -> ToolSpec:
    """Return the spec of the cases of ``check_inputs``."""
    return make_spec("tt", inputs=[ToolParam("a", "integer", "d"), ToolParam("b", "string", "d", False)])


def input_error(case: Mapping[str, Any]) -> str:
    """Return the error message for the inputs of a case."""
    return raised(lambda: pair().check_inputs(case["given"]["raw"]))


def typed(case: Mapping[str, Any]) -> bool:
    """Return whether a value of a type is accepted unchanged or refused, as a case expects."""
    raw = {"x": case["given"]["value"]}
    if case["expect"].startswith("ValueError"):
        return raised(lambda: spec_with_input(case["given"]["type"]).check_inputs(raw)).startswith(
            "Input 'x' expected "
        )
    return spec_with_input(case["given"]["type"]).check_inputs(raw) is raw and raw == ast.literal_eval(case["expect"])


def well_formed(case: Mapping[str, Any]) -> bool:
    """Return whether the spec of the case is valid, and survives a round trip."""
    data = json.loads(case["given"].partition(": ")[2])
    inputs = [ToolParam(**each) for each in data["inputs"]]
    spec = ToolSpec(data["name"], data["description"], data["when_to_use"], inputs, ToolReturn(**data["returns"]))
    return spec.validate() is None and spec.to_json() == data  # type: ignore[func-returns-value]


def takes_an_alias(_: Any) -> bool:
    """Return whether ``str`` is valid and means string."""
    text_spec("t", "str").validate()
    return from_neurosurfer(Recorder(ToolResponse(True, ""), kind="str")).spec.args[0].type == "string"


def made(**fields: Any) -> Callable[[], Any]:
    """Return a function that makes an instance of a subclass with these fields."""
    return lambda: type("NoSpec", (BaseTool,), fields)()


CALL = {"__call__": EchoTool.__call__}
DECIMAL = {**CALL, "spec": make_spec(inputs=[ToolParam("b", "decimal", "d")])}


def validates_again(_: Any) -> bool:
    """Return whether a spec is validated when the tool is registered: in a toolkit and by the importer."""
    careless = Careless(make_spec(inputs=[ToolParam("b", "decimal", "d")]))
    expected = "calculator.b has unsupported type 'decimal'."
    return (
        raised(lambda: Toolkit([careless])) == expected
        and raised(lambda: from_neurosurfer(careless), SpecError)
        == f"from_neurosurfer neurosurfer: Careless: {expected}"
    )


def has_fresh_extras(_: Any) -> bool:
    """Return whether each answer has its own extras."""
    first, second = ToolResponse(False, "x"), ToolResponse(False, "x")
    return first.extras == {} == second.extras and first.extras is not second.extras


def never_overrides(_: Any) -> bool:
    """Return whether an input is always the caller's, regardless of forwarded values."""
    first, second = (
        Recorder(ToolResponse(False, "x", {"text": "FROM_EXTRAS"}), "a"),
        Recorder(ToolResponse(True, "y"), "b"),
    )
    with invoker_of(first, second) as invoker:
        invoker.invoke("a", {"text": "x"})
        invoker.invoke("b", {"text": "hello"})
    by_agent = second.inputs
    with engine_of(first, second, context={"text": "FROM_CONTEXT"}) as engine:
        engine.call("neurosurfer.a", ("x",))
        engine.call("neurosurfer.b", ("hello",))
    return by_agent == {"text": "hello"} == second.inputs


def stops(_: Any) -> bool:
    """Return whether a loop stops at a final answer and returns it."""
    with invoker_of(Recorder(ToolResponse(True, "hi"))) as invoker:
        answer = invoker.invoke("recorder", {"text": "x"})
    return answer.final_answer and answer.observation == "hi"


def clears(_: Any) -> bool:
    """Return whether extras exist for the second call and not for the third."""
    first, second = Recorder(ToolResponse(False, "x", {"cursor": 1}), "a"), Recorder(ToolResponse(False, "y"), "b")
    seen = []
    with invoker_of(first, second) as invoker:
        invoker.invoke("a", {"text": "x"})
        for _ in range(2):
            invoker.invoke("b", {"text": "x"})
            seen.append(second.inputs.get("cursor", "gone"))
    return seen == [1, "gone"]


def tries_again(case: Mapping[str, Any]) -> bool:
    """Return whether there are three attempts, and the observation of the case."""
    tool = Boom(9)
    with invoker_of(tool, max_tool_errors=2) as invoker:
        answer = invoker.invoke("boom", {"text": "x"})
    return f"{tool.calls} attempts, then a non-final observation {answer.observation!r}" == case["expect"] and (
        not answer.final_answer
    )


def registers_once(case: Mapping[str, Any]) -> bool:
    """Return whether the second tool with a name is refused as the case says."""
    return "ValueError: " + raised(lambda: Toolkit([EchoTool(), EchoTool()])) == case["expect"]


def refuses_a_duck(case: Mapping[str, Any]) -> bool:
    """Return whether an object with a spec that is not a tool is refused, and one without a spec too."""
    ducks = [type("Duck", (), {"spec": EchoTool.spec})(), type("Duck", (), {})()]
    toolkit: Any = Toolkit()
    return all("TypeError: " + raised(lambda d=d: toolkit.register_tool(d), TypeError) == case["expect"] for d in ducks)


def exported(case: Mapping[str, Any]) -> bool:
    """Return whether a tool is exported to Anthropic under its own name, with when to use it."""
    tool = from_neurosurfer(SQLQueryTool())
    names = WireNames({tool.name: "sql_query"}, {"sql_query": tool.name})
    (data,) = anthropic.to_tools([tool], names=names)
    expected = case["expect"]
    return (
        data["name"] == expected["name"]
        and data["input_schema"]["required"] == expected["input_schema.required"]
        and expected["description contains"] in data["description"]
    )


SMOKE = ToolSpec("echo", "Echo", "smoke", [ToolParam("text", "string", "d")], ToolReturn("string", "r"))
HEAD = "ToolSpec must have name, description, when_to_use."

CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "neurosurfer-001": well_formed,
    "neurosurfer-002": lambda case: (
        case["real_implementation"] == f"ValueError: {HEAD}" and raised(make_spec(name="").validate) == HEAD
    ),
    "neurosurfer-003": lambda case: (
        case["real_implementation"] == f"ValueError: {HEAD}" and raised(make_spec(description="").validate) == HEAD
    ),
    "neurosurfer-009": takes_an_alias,
    "neurosurfer-011": lambda case: (
        case["real_implementation"]
        == "ValueError: " + raised(make_spec("q", inputs=[ToolParam("", "string", "d")]).validate)
    ),
    "neurosurfer-012": lambda _: ToolParam(name="a", type="string", description="d").required is True,
    "neurosurfer-013": lambda _: "'description'" in raised(lambda: ToolParam(name="a", type="string"), TypeError),  # type: ignore[call-arg]
    "neurosurfer-015": lambda case: input_error(case) == "Missing required input: a",
    "neurosurfer-016": lambda case: input_error(case) == "Missing required input: a",
    "neurosurfer-017": lambda case: input_error(case) == "Unexpected inputs for tt: ['y', 'z']",
    "neurosurfer-018": lambda case: input_error(case) == "Input 'b' expected string, got NoneType",
    **{each: typed for each, case in OURS.items() if case["area"] == "check_inputs:type"},
    "neurosurfer-036": lambda case: (
        ToolSpec(
            "t",
            "d",
            "w",
            [ToolParam("a", "number", "d"), ToolParam("b", "string", "d", required=False)],
            ToolReturn("string", "r"),
        ).to_json()
        == case["expect"]
    ),
    "neurosurfer-037": lambda case: "TypeError: " + raised(made(**CALL), TypeError) == case["expect"],
    "neurosurfer-038": lambda _: (
        raised(made(**CALL, spec={"name": "x"}), TypeError) == "NoSpec must define a ToolSpec 'spec'."
    ),
    "neurosurfer-039": lambda _: "abstract" in raised(made(spec=make_spec()), TypeError),
    "neurosurfer-040": lambda _: raised(made(**DECIMAL)) == "calculator.b has unsupported type 'decimal'.",
    "neurosurfer-041": validates_again,
    "neurosurfer-047": has_fresh_extras,
    "neurosurfer-048": lambda _: ToolResponse(True, {"rows": [1]}).observation == {"rows": [1]},
    "neurosurfer-050": never_overrides,
    "neurosurfer-051": stops,
    "neurosurfer-053": clears,
    "neurosurfer-054": tries_again,
    "neurosurfer-055": registers_once,
    "neurosurfer-056": refuses_a_duck,
    "neurosurfer-057": lambda case: Toolkit([Careless(SMOKE)]).get_tools_description() == case["expect"],
    "neurosurfer-059": exported,
}


def test_each_case_has_a_check() -> None:
    """No case is missing."""
    assert set(OURS) == set(CHECKS)


@pytest.mark.parametrize("case", CHECKS)
def test_case_passes(case: str) -> None:
    """As its description says."""
    assert CHECKS[case](OURS[case])
