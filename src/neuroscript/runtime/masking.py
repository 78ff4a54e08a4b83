"""Secret arguments of a call, and a copy of its arguments that is safe to show to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import copy_exact
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

MAPS: Final = ArgType.SLICE_MAP
"""The type whose values are lists of maps, each with the declared keys."""


def secret_values(spec: ToolSpec, values: Sequence[Any]) -> Iterator[Any]:
    """Yield each secret argument value of a call as a whole, except None.

    Args:
        values: One exact value for each argument, in order, and all values of a variadic argument.
    """
    for arg, value in _paired(spec, values):
        yield from _secret_in(arg, value)


def _paired(spec: ToolSpec, values: Sequence[Any]) -> Iterator[tuple[ArgSpec, Any]]:
    for index, value in enumerate(values):
        yield spec.args[min(index, len(spec.args) - 1)], value


def _secret_in(arg: ArgSpec, value: Any) -> Iterator[Any]:
    if value is None:
        return
    if arg.secret:
        yield value
    elif arg.keys:
        for each in value if arg.type is MAPS else [value]:
            for key in arg.keys:
                yield from _secret_in(key, each.get(key.name))


def mask_secrets(spec: ToolSpec, values: Sequence[Any]) -> dict[str, Any]:
    """Return a copy of the arguments of a call by name, with ``[secret]`` in place of each secret except None.

    Args:
        values: One exact value for each argument, in order, and all values of a variadic argument, which become a list.
    """
    shown = [_masked(arg, value) for arg, value in _paired(spec, values)]
    names = [arg.name for arg in spec.args]
    if spec.variadic:
        last = len(names) - 1
        shown[last:] = [shown[last:]]
    return dict(zip(names, shown, strict=True))


def _masked(arg: ArgSpec, value: Any) -> Any:
    if value is None:
        return None
    if arg.secret:
        from neuroscript.runtime.redaction import MARK  # expensive to import

        return MARK
    if not any(key.holds_secret for key in arg.keys):
        return copy_exact(value)
    if arg.type is MAPS:
        return [_masked_map(arg, each) for each in value]
    return _masked_map(arg, value)


def _masked_map(arg: ArgSpec, value: dict[str, Any]) -> dict[str, Any]:
    keys = {key.name: key for key in arg.keys}
    return {name: _masked(keys[name], each) if name in keys else copy_exact(each) for name, each in value.items()}
