"""What was converted on the way to a tool, as types and places, so that a host sees what its model keeps getting wrong.

Source: contract section 1, ToolResult.repairs.
"""

from __future__ import annotations

from typing import Any

from neuroscript.coercion import type_name
from neuroscript.display import shown
from neuroscript.errors import LISTED
from neuroscript.runtime import Repair
from neuroscript.spec import ToolSpec


def repairs(spec: ToolSpec, given: Any, values: tuple[Any, ...]) -> tuple[Repair, ...]:
    """Return one `Repair` for each value among *given* that the caller wrote in another type than the tool receives.

    Args:
        given: The arguments as they were bound, a list, a tuple or a dict.
        values: What `bind` made of them.
    """
    names = [arg.name for arg in spec.args]
    found: list[Repair] = []
    if isinstance(given, dict):
        if spec.variadic:
            values = (*values[: len(names) - 1], list(values[len(names) - 1 :]))
        pairs = [(name, given[name], value) for name, value in zip(names, values, strict=False) if name in given]
    else:
        names.extend(f"{names[-1]}[{index}]" for index in range(1, len(values) - len(names) + 1))
        pairs = list(zip(names, given, values, strict=False))
    for where, before, after in pairs:
        _compare(where, before, after, found)
    return tuple(found[:LISTED])


def _compare(where: str, before: Any, after: Any, found: list[Repair]) -> None:
    if type(before) is not type(after):
        found.append(Repair(where, type_name(before), type_name(after)))
    elif type(after) is list:
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            _compare(f"{where}[{index}]", old, new, found)
    elif type(after) is dict:
        for key, new in after.items():
            if key in before:
                _compare(f"{where}[{shown(str(key))!r}]", before[key], new, found)
