"""What creates the instances in the arguments of a tool, checked where capabilities depend on a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript.policy.templates import Template, key_paths
from neuroscript.spec.instance_checks import checked_maker
from neuroscript.spec.instances import Convert, maker_of
from neuroscript.spec.tool_spec import ToolSpec


def instance_makers(spec: ToolSpec, templates: Iterable[Template]) -> dict[int, Convert]:
    """Return the function that creates the instances in each argument that has some, by the index of the argument.

    Args:
        templates: The capability templates of the tool. An instance in which a value that they name has changed is
            refused with an `ArgumentError`.
    """
    names = [arg.name for arg in spec.args]
    texts = [each.text for each in templates]
    found: dict[int, Any] = {}
    for index, arg in enumerate(spec.args):
        make = maker_of(arg, spec.full_name)
        if make is None:
            continue
        paths = [path for text in texts for path in key_paths(text, arg.name, names)]
        found[index] = checked_maker(arg, make, spec.full_name, paths) if paths else make
    return found
