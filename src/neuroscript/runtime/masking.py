"""Secret arguments of a call, and a copy of its arguments that is safe to show to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from neuroscript.coercion.values import copy_exact
from neuroscript.spec.nested_values import accepting_alternatives, nested_values
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec


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
    elif arg.holds_secret:
        for inner, each in nested_values(arg, value):
            yield from _secret_in(inner, each)


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
    if not arg.holds_secret:
        return copy_exact(value)
    if arg.any_of:
        for each in accepting_alternatives(arg, value):
            value = _masked(each, value)
        return value
    if type(value) is list:
        return _masked_items(arg, value)
    return _masked_map(arg, value) if type(value) is dict else copy_exact(value)


def _masked_items(arg: ArgSpec, values: list[Any]) -> list[Any]:
    if arg.items is not None:
        return [_masked(arg.items, each) for each in values]
    if arg.prefix_items:
        count = len(arg.prefix_items)
        return [*map(_masked, arg.prefix_items, values), *map(copy_exact, values[count:])]
    return [_masked_map(arg, each) if type(each) is dict else copy_exact(each) for each in values]


def _masked_map(arg: ArgSpec, values: dict[Any, Any]) -> dict[Any, Any]:
    keys = {key.name: key for key in arg.keys}
    masked = {}
    for name, each in values.items():
        inner = keys.get(name, arg.value_spec)
        masked[name] = copy_exact(each) if inner is None else _masked(inner, each)
    return masked
