"""Generated code that makes the instances of formats within nested arguments, as statements of a compiled pipeline.

It is used where nothing else reads the exact values of a call, and no class may reject one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_origin

from neuroscript.calls.codegen import CodeWriter
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.coercion.types import ELEMENTS
from neuroscript.spec.annotations import is_typed_dict
from neuroscript.spec.tool_spec import ArgSpec

NEVER_REJECTED: Final = frozenset({"date-time", "date", "time", "duration", "uuid", "decimal"})
"""The formats whose classes accept every canonical text."""


def is_made_in_place(arg: ArgSpec) -> bool:
    """Return whether the only classes in an argument are those of formats, in maps and lists that the call copies."""
    if arg.format:
        return arg.cls is None or arg.format in NEVER_REJECTED
    is_map = arg.cls is None or is_typed_dict(get_origin(arg.cls) or arg.cls)
    has_others = arg.any_of or arg.prefix_items or arg.value_spec or arg.key_spec
    return is_map and not has_others and all(map(is_made_in_place, arg.nested))


def write_instances(name: str, arg: ArgSpec, source: CodeWriter, store: str = "") -> None:
    """Add what makes the instances in an exact value, for which `is_made_in_place` is true.

    The maps and lists around them belong to this call, so they are changed and not copied again.

    Args:
        store: The statement that writes a value that has become an instance back to where it came from.
    """
    inner, level = source.inner(), next(source.levels)
    if arg.format and arg.cls is not None:
        make = source.name(FORMATS[arg.format].maker(arg.cls))
        inner.add(f"{name} = {make}({name})", *([store] if store else []))
    elif arg.type in ELEMENTS:
        index, item = f"n{level}", f"i{level}"
        body = source.inner()
        loop = f"for {item} in {name}:"
        if arg.items is None:
            _write_members(item, arg.keys, body)
        elif arg.items.format:
            write_instances(item, arg.items, body, f"{name}[{index}] = {item}")
            loop = f"for {index}, {item} in enumerate({name}):"
        else:
            write_instances(item, arg.items, body)
        if body.lines:
            inner.add(loop)
            inner.add(*body.lines, indent=1)
    else:
        _write_members(name, arg.keys, inner)
    if inner.lines and not (arg.required and not arg.nullable):
        source.add(f"if {name} is not None:")
        source.add(*inner.lines, indent=1)
    else:
        source.add(*inner.lines)


def _write_members(name: str, keys: Sequence[ArgSpec], source: CodeWriter) -> None:
    """Add what makes the instances in the values of a map."""
    for key in keys:
        value, word, inner = f"v{next(source.levels)}", source.name(key.name), source.inner()
        write_instances(value, key, inner, f"{name}[{word}] = {value}")
        if inner.lines:
            source.add(f"{value} = {name}[{word}]" if key.required else f"{value} = {name}.get({word})")
            source.add(*inner.lines)
