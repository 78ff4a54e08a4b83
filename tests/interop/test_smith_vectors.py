"""The cases of Smith in ``tests/vectors/seed_systems.json`` about tools and invalid plans.

A case is a description; its check is in `CHECKS` under its id.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.interop.smith_tools import call_tool, first, metadata, node, payload, plan, run_weather, write_tool

from neuroscript import ArgumentError, ExecutionPolicy, PolicyError
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.interop.smith import from_smith, load_folder, problems_of, resolve

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "seed_systems.json").read_text())
OURS = {each["id"]: each for each in VECTORS if each["system"] == "smith"}
RUNS = {"smith-037", "smith-039", "smith-040", "smith-046"}
"""Cases of what runs a plan."""

SMITHS: Mapping[str, Any] = {"properties": {"city": {"type": "string"}}, "type": "object"}


def loads_the_others(_: Any, folder: Path) -> bool:
    """Return whether a file that cannot be imported is reported, and another one is loaded."""
    path = folder / "broken.py"
    path.write_text("import no_such_module\n")
    write_tool(folder, "sound.py", metadata())
    registry = load_folder(folder)
    return registry.list_tool_names() == ["weather_fetcher"] and [each.distribution for each in registry.errors] == [
        str(path)
    ]


def is_unknown(expected: str, folder: Path) -> bool:
    """Return whether an unknown name is refused with this message."""
    try:
        load_folder(folder).get_tool_by_name("nope")
    except ValueError as error:
        return f"ValueError: {error}" == expected
    return False


def gives_payloads(expected: str, _: Path) -> bool:
    """Return whether results become the three payloads."""
    reported = re.findall(r"\{'status'.*?\}(?= /)", expected)
    found = [payload({"a": 1}), payload("deleted")]
    given = {"status": "success", "temp": 3}
    return [*map(ast.literal_eval, reported)] == found and payload(given) == given


def tells_of_an_unknown_path(_: Any, __: Path) -> bool:
    """Return whether an unknown path is an error, and a known one alone its text."""
    try:
        resolve({"city": "in {{STEPS.0.temp}} {{STEPS.0.nope}}"}, {0: {"temp": 3}})
    except ArgumentError:
        return resolve({"city": "in {{STEPS.0.temp}}"}, {0: {"temp": 3}}) == {"city": "in 3"}
    return False


def is_not_run(_: Any, __: Path) -> bool:
    """Return whether a dangerous tool without an approval does nothing, and is denied."""
    executed: list[str] = []

    def run_weather(city: str) -> None:
        executed.append(city)

    with pytest.raises(PolicyError) as caught:
        call_tool(from_smith(metadata(dangerous=True), run_weather), {"city": "Rome"})
    return executed == [] and (caught.value.code, caught.value.retry) == ("policy.approval", "host")


def shows_resolved_inputs(_: Any, __: Path) -> bool:
    """Return whether the approver sees the values of the references."""
    seen: list[Any] = []

    def approved(request: ApprovalRequest) -> Approval:
        seen.append(request.arguments)
        return Approval.approve()

    inputs = resolve({"city": "{{STEPS.0.name}}"}, {0: {"name": "Rome"}})
    call_tool(from_smith(metadata(dangerous=True), run_weather), inputs, ExecutionPolicy(approver=approved))
    return seen == [{"city": "Rome"}]


def says(expected: str, *nodes: dict[str, Any]) -> bool:
    """Return whether a plan of these nodes is refused with this message."""
    return f"rejected: {first(plan(*nodes))}" == expected


CHECKS: Mapping[str, Callable[[Any, Path], bool]] = {
    "smith-002": lambda _, __: "parameters['properties']" in str(problems_of(OURS["smith-002"]["given"])),
    "smith-003": lambda _, __: (
        not problems_of({key: each for key, each in metadata().items() if key != "dangerous"})
        and not from_smith(metadata(), run_weather).policy.requires_approval
    ),
    "smith-005": lambda _, __: bool(problems_of(metadata(parameters={**SMITHS, "properties": {"city": {}}}))),
    "smith-007": lambda _, __: bool(problems_of(metadata(parameters={**SMITHS, "required": ["town"]}))),
    "smith-013": loads_the_others,
    "smith-015": is_unknown,
    "smith-017": lambda expected, _: says(expected, node(id="0")),
    "smith-025": lambda expected, _: says(expected, node(), node(id=1, depends_on=0)),
    "smith-027": lambda expected, _: says(expected, node(depends_on=[0])),
    "smith-030": lambda expected, _: says(expected, node(retry=-3)) and says(expected, node(retry="x")),
    "smith-033": lambda _, __: first(plan(node(inputs={"city": 5}))) == "Node 0: city: expected string, got int.",
    "smith-035": gives_payloads,
    "smith-041": lambda _, __: resolve({"city": "{{STEPS.0}}"}, {0: {"temp": [3]}}) == {"city": {"temp": [3]}},
    "smith-042": tells_of_an_unknown_path,
    "smith-043": is_not_run,
    "smith-045": shows_resolved_inputs,
}
"""What holds, given what the case expects and an empty folder."""


def test_each_case_has_a_check() -> None:
    """No case is missing; those of plan execution are checked with it."""
    assert set(OURS) == set(CHECKS) | RUNS
    assert not set(CHECKS) & RUNS


@pytest.mark.parametrize("case", CHECKS)
def test_case_passes(case: str, tmp_path: Path) -> None:
    """Through an engine, if something is called."""
    assert CHECKS[case](OURS[case]["expect"], tmp_path)
