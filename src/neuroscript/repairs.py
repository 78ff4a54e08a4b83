"""What was converted on the way to a tool, as types and places, so that a host sees what its model keeps getting wrong.

Source: contract section 1, ToolResult.repairs.
"""

from __future__ import annotations

from typing import Any

from neuroscript.display import shown
from neuroscript.errors import LISTED
from neuroscript.runtime import Repair
from neuroscript.spec import ToolSpec
from neuroscript.walk import type_name


def repairs(spec: ToolSpec, given: Any, values: tuple[Any, ...]) -> tuple[Repair, ...]:
    """Return one `Repair` for each value among *given* that the caller wrote in another type than the tool receives.

    Args:
        given: The arguments as they were bound, a list, a tuple or a dict.
        values: What `bind` made of them.
    """
    names = [arg.name for arg in spec.args]
    if spec.variadic:
        count = len(names) - 1
        if isinstance(given, dict):
            values = (*values[:count], list(values[count:]))
        else:
            names[count:] = [f"{names[count]}[{index}]" for index in range(len(values) - count)]
    found: list[Repair] = []
    for index, (where, after) in enumerate(zip(names, values, strict=False)):
        if isinstance(given, dict) and where in given:
            _compare(where, given[where], after, found)
        elif not isinstance(given, dict) and index < len(given):
            _compare(where, given[index], after, found)
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
