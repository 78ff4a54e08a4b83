"""A plan of Smith's as the plain data of one of ours, which the engine runs.

Source: seed-systems.md rows SM-18 to SM-20, SM-58, SM-59.
"""

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
"""A key that a reference of ours names without quotes."""

DOLLARS: Final = re.compile(r"(?<!\$)(\$+)(?=\{)")
ENDING: Final = re.compile(r"(?<!\$)(\$+)(?=\{|\Z)")

REGISTRY: Final = instance(ToolsRegistry, "load_folder and load_registry return one")

PAUSE: Final = {"backoff": 1.0, "factor": 1.0}
"""Smith waits a second before each further attempt."""


def plan_data(plan: object, registry: ToolsRegistry) -> dict[str, Any]:
    """Return a plan of ours as plain data: node 0 is ``step_0``, ``{{STEPS.0.price}}`` is ``${step_0.price}``.

    Args:
        plan: What `read_plan` gives.
        registry: What its tools are.

    Raises:
        SpecError: With everything that is wrong with it, by `plan_problems`; or it says that there is none. Or
            *registry* is no `ToolsRegistry`.
    """
    require("plan_data", registry=(registry, REGISTRY))
    problems = [*plan_problems(plan, registry.get_tools_registry())]
    if not isinstance(plan, dict) or problems:
        raise SpecError("plan", problems)
    if plan.get("status") == "error":
        raise SpecError("plan", ["says of itself that there is none"])
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
        "retry": {"count": node["retry"], **PAUSE},
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
    """Yield each part as a text of ours says it, where a dollar before a brace is written twice."""
    for part, after in zip_longest(parts, parts[1:], fillvalue=""):
        if not isinstance(part, str):
            yield _written(*part)
        elif isinstance(after, str):
            yield DOLLARS.sub(r"\1\1", part)
        else:
            yield ENDING.sub(r"\1\1", part)


def _written(step: int, path: tuple[str, ...]) -> str:
    keys = (f".{key}" if PLAINLY.fullmatch(key) else f"[{json.dumps(key)}]" for key in path)
    return f"${{{_name(step)}{''.join(keys)}}}"
