"""What creates the instances in the arguments of a tool, checked where capabilities depend on a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from neuroscript.policy.templates import Template, key_paths
from neuroscript.spec.instance_checks import KeyPath, checked_maker
from neuroscript.spec.instances import Convert, maker_of
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

LoadClass = Callable[[], ArgSpec | None]
"""Returns the spec of an argument with its class, or None if its tool cannot be loaded."""

NO_CLASSES: Final[Mapping[str, LoadClass]] = {}


def instance_makers(
    spec: ToolSpec, templates: Iterable[Template], classes: Mapping[str, LoadClass] = NO_CLASSES
) -> dict[int, Convert]:
    """Return the function that creates the instances in each argument that has some, by the index of the argument.

    Args:
        templates: The capability templates of the tool. An instance in which a value that they name has changed is
            refused with an `ArgumentError`.
        classes: What loads the classes that *spec* does not name, by the name of the argument.
    """
    names = [arg.name for arg in spec.args]
    texts = [each.text for each in templates]
    found: dict[int, Any] = {}
    for index, arg in enumerate(spec.args):
        paths = [path for text in texts for path in key_paths(text, arg.name, names)]
        load = classes.get(arg.name)
        make = _maker(arg, spec.full_name, paths) if load is None else _loading_maker(load, spec.full_name, paths)
        if make is not None:
            found[index] = make
    return found


def instance_names(spec: ToolSpec) -> list[str]:
    """Return the names of the arguments that have instances."""
    return [arg.name for arg in spec.args if maker_of(arg, spec.full_name) is not None]


def _maker(arg: ArgSpec, tool: str, paths: Sequence[KeyPath]) -> Convert | None:
    make = maker_of(arg, tool)
    return checked_maker(arg, make, tool, paths) if make is not None and paths else make


def _loading_maker(load: LoadClass, tool: str, paths: Sequence[KeyPath]) -> Convert:
    """Return a function that loads the class of an argument before it creates the first instance.

    If the tool cannot be loaded, the value stays plain, because the function of the tool then reports why.
    """
    found: list[Convert | None] = []

    def made(value: Any) -> Any:
        if not found:
            arg = load()
            found.append(None if arg is None else _maker(arg, tool, paths))
        make = found[0]
        return value if make is None else make(value)

    return made
