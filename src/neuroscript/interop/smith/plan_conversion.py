"""Conversion of Smith plans to the plain data of plans that the engine runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from neuroscript.coercion.parameters import instance, require
from neuroscript.errors import SpecError
from neuroscript.interop.smith.plan_check import plan_problems
from neuroscript.interop.smith.references import parts_of
from neuroscript.interop.smith.registry import ToolsRegistry

PLAINLY: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes in one of our references."""

DOLLARS: Final = re.compile(r"(?<!\$)(\$+)(?=\{)")
ENDING: Final = re.compile(r"(?<!\$)(\$+)(?=\{|\Z)")

REGISTRY: Final = instance(ToolsRegistry, "load_folder and load_registry return one")

SMITH_RETRY: Final = {"backoff": 1.0, "factor": 1.0}
"""Smith waits one second before each retry."""


def plan_data(plan: object, registry: ToolsRegistry) -> dict[str, Any]:
    """Return our plan as plain data: node 0 becomes ``step_0``, and ``{{STEPS.0.price}}`` becomes ``${step_0.price}``.

    Args:
        plan: The plan from `read_plan`.
        registry: The registry with its tools.

    Raises:
        SpecError: The plan is invalid, with every problem from `plan_problems`; the plan reports that no plan exists;
            or *registry* is not a `ToolsRegistry`.
    """
    require("plan_data", registry=(registry, REGISTRY))
    problems = [*plan_problems(plan, registry.get_tools_registry())]
    if not isinstance(plan, dict) or problems:
        raise SpecError("plan", problems)
    if plan.get("status") == "error":
        raise SpecError("plan", ["has the status error, so there is nothing to convert"])
    return {
        "nodes": {_name(node["id"]): _node(node, registry) for node in plan["nodes"]},
        "output": f"${{{_name(plan['final_output_node'])}}}",
    }


def _name(id: int) -> str:
    return f"step_{id}"


def _node(node: Mapping[str, Any], registry: ToolsRegistry) -> dict[str, Any]:
    notes = node.get("metadata")
    purpose = notes.get("purpose") if isinstance(notes, dict) else None
    return {
        "tool": registry.tool(node["tool"]).name,
        "inputs": _converted(node.get("inputs", {})),
        "depends_on": [_name(each) for each in dict.fromkeys(node.get("depends_on", []))],
        "retry": {"count": node["retry"], **SMITH_RETRY},
        "timeout": node["timeout"],
        "on_fail": node["on_fail"],
        **({"description": purpose} if isinstance(purpose, str) else {}),
    }


def _converted(value: Any) -> Any:
    match value:
        case dict():
            return {key: _converted(each) for key, each in value.items()}
        case list():
            return [*map(_converted, value)]
        case str():
            parts = [*parts_of(value)]
            alone = [each for each in parts if not isinstance(each, str) or each.strip()]
            used = alone if len(alone) == 1 and not isinstance(alone[0], str) else parts
            return "".join(_texts(used))
        case _:
            return value


def _texts(parts: list[Any]) -> Iterator[str]:
    """Yield each part as it is written in our plans, where a dollar before a brace is doubled."""
    for part, after in zip_longest(parts, parts[1:], fillvalue=""):
        if not isinstance(part, str):
            yield _format_reference(*part)
        elif isinstance(after, str):
            yield DOLLARS.sub(r"\1\1", part)
        else:
            yield ENDING.sub(r"\1\1", part)


def _format_reference(step: int, path: tuple[str, ...]) -> str:
    keys = (f".{key}" if PLAINLY.fullmatch(key) else f"[{json.dumps(key)}]" for key in path)
    return f"${{{_name(step)}{''.join(keys)}}}"
