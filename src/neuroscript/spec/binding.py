"""Binding of call arguments to the exact values of a spec, in order.

`bind_arguments` implements every rule and finds every problem. The compiled fast path handles only values that need
no further check, such as an int for an int argument, and falls back to `bind_arguments` in every other case. Tests
run every case through both.

The module also parses arguments that arrive as JSON text, and reports repairs: the types of values that were converted
for the tool, so that a host can see which mistakes its model makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from sys import float_info
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import ABSENT, coerce_argument, coerce_trailing, default_argument, match_names
from neuroscript.coercion.context import (
    INVALID,
    LAX,
    MISSING,
    CoercionPass,
    CoercionSettings,
    LimitExceeded,
    SizeLimits,
    Where,
    place,
    type_name,
)
from neuroscript.coercion.parameters import (
    instance,
    is_number,
    require,
)
from neuroscript.coercion.scalars import Rejection, to_builtin
from neuroscript.coercion.types import LISTS, ArgType
from neuroscript.coercion.values import items_of, string_keyed
from neuroscript.errors import MAX_LISTED_PROBLEMS, ArgumentError, Problem
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.spec.tool_spec import ToolSpec

SPEC: Final = instance(ToolSpec)


def bind(spec: ToolSpec, args: Sequence[object]) -> tuple[Any, ...]:
    """Return one exact value for each argument of *spec*, in order.

    Args:
        args: A list or tuple of arguments. It may be shorter than the spec, and longer only if the spec is variadic.

    Returns:
        A tuple as long as ``spec.args``. Each value has the exact built-in type of its `ArgType`, or is None for a
        missing optional argument. Trailing values of a variadic spec follow.

    Raises:
        ArgumentError: With every problem found, not only the first.
    """
    if type(spec) is not ToolSpec:
        require("bind", spec=(spec, SPEC))
    return bind_arguments(spec, LAX, args, by_name=False)


def bind_named(spec: ToolSpec, mapping: Mapping[str, object]) -> tuple[Any, ...]:
    """Return the same as `bind` for a dict of arguments by name; a variadic argument is a list."""
    if type(spec) is not ToolSpec:
        require("bind_named", spec=(spec, SPEC))
    return bind_arguments(spec, LAX, mapping, by_name=True)


class CallWalk(CoercionPass):
    """The pass over the arguments of one call.

    Attributes:
        spec: The tool; set only if a problem was recorded.
    """

    spec: ToolSpec

    def problems(self) -> list[Problem]:
        """Return the recorded problems."""
        from neuroscript.coercion.problems import Rules, problems_of

        args = self.spec.args
        return problems_of(self, Rules(args, further=args[-1] if self.spec.variadic else None))


def bind_arguments(spec: ToolSpec, coercion: CoercionSettings, args: object, *, by_name: bool) -> tuple[Any, ...]:
    """Return the exact values of *args* under the settings of *coercion*, or raise an `ArgumentError`."""
    walk = CallWalk(coercion)
    try:
        values = _by_name(walk, spec, args) if by_name else _by_position(walk, spec, args)
    except (LimitExceeded, RecursionError) as end:
        walk.ended(end)
    if walk.noted:
        walk.spec = spec
        raise ArgumentError(walk.problems, spec.full_name, walk.noted)
    if spec.schema:
        _ask_schema(spec, values)
    return tuple([None if value is ABSENT else value for value in values])


def _ask_schema(spec: ToolSpec, values: list[Any]) -> None:
    """Validate exact values against schema constraints beyond the spec; missing arguments are left out."""
    from neuroscript.coercion.plain_data import to_plain
    from neuroscript.coercion.schema_validation import validator_for

    checker = validator_for(spec.schema)
    if checker is None:
        return
    by_name = spec.by_name(values)
    rules = {arg.name: arg for arg in spec.args}
    given = {
        name: to_plain(value)
        for name, value in by_name.items()
        if value is not ABSENT and (value is not None or rules[name].nullable)
    }
    problems = checker.problems(given)
    if problems:
        raise ArgumentError(problems, spec.full_name)


def _by_position(walk: CoercionPass, spec: ToolSpec, args: Any) -> list[Any]:
    items = args if type(args) is tuple else _in_order(spec, args)
    rules = spec.args[:-1] if spec.variadic else spec.args
    count = len(items)
    values: list[Any] = []
    for index, rule in enumerate(rules):
        where = (None, rule.name)
        values.append(
            coerce_argument(walk, rule, items[index], where) if index < count else default_argument(walk, rule, where)
        )
    if spec.variadic:
        return [*values, *_further(walk, spec, items[len(rules) :])]
    if count > len(rules):
        walk.note(None, Rejection("arg.count", f"at most {len(rules)} arguments"), str(count))
    return values


def _in_order(spec: ToolSpec, args: Any) -> Sequence[Any]:
    kind = type(args)
    if issubclass(kind, list):
        return list.__getitem__(args, slice(None))
    if issubclass(kind, tuple):
        return tuple.__getitem__(args, slice(None))
    hint = "use call_named for arguments by name" if issubclass(kind, dict) else ""
    raise _not_arguments(spec, "a list or tuple of arguments", args, hint)


def _by_name(walk: CoercionPass, spec: ToolSpec, mapping: Any) -> list[Any]:
    if not issubclass(type(mapping), dict):
        hint = "use call for positional arguments" if issubclass(type(mapping), (list, tuple)) else ""
        raise _not_arguments(spec, "a dict of arguments by name", mapping, hint)
    by_name = string_keyed(walk, [*dict.items(mapping)], None)
    rest = by_name.pop(spec.args[-1].name, ABSENT) if spec.variadic else ABSENT
    fixed = spec.args[:-1] if spec.variadic else spec.args
    found = match_names(walk, fixed, by_name, False, None)
    values = [found.get(rule.name, ABSENT) for rule in fixed]
    return [*values, *_further(walk, spec, _listed(walk, spec, rest))] if spec.variadic else values


def _listed(walk: CoercionPass, spec: ToolSpec, rest: object) -> Any:
    if rest is ABSENT or rest is None:
        return []
    rule = spec.args[-1]
    return items_of(walk, LISTS.get(rule.type, ArgType.SLICE_ANY), rest, (None, rule.name))


def _further(walk: CoercionPass, spec: ToolSpec, items: Any) -> list[Any]:
    rule = spec.args[-1]
    where = (None, rule.name)
    if items is INVALID:
        return []
    if not items and rule.required:
        walk.note(where, MISSING, "nothing")
    return [coerce_trailing(walk, rule, item, (where, index)) for index, item in enumerate(items)]


def _not_arguments(spec: ToolSpec, expected: str, given: object, hint: str) -> ArgumentError:
    return ArgumentError([Problem("", "arg.type", expected, type_name(given), hint)], tool=spec.full_name)


def parse_timeout(timeout: Any) -> float:
    if not is_number(timeout) or not 0 < timeout <= float_info.max:
        problem = Problem("timeout", "arg.type", "a positive number of seconds", type_name(timeout))
        raise ArgumentError([problem])
    return float(timeout)


def parse_arguments(given: Any, tool: str, sizes: SizeLimits = LAX.sizes) -> Any:
    """Return the arguments of a call as a dict, list or tuple; a blank string and None mean no arguments.

    Args:
        sizes: How many values JSON text may contain; the outermost object or array does not count.

    Raises:
        ArgumentError: *given* is a string that is not JSON, or JSON of another type.
    """
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    if not isinstance(given, str):
        return given
    try:
        decoded = parse_json(given, sizes.nodes + 1)
    except NotJSON as error:
        raise ArgumentError([_problem(error, sizes)], tool=tool) from None
    if not isinstance(decoded, (dict, list)):
        problem = Problem("", "arg.type", "a JSON object or array of arguments", type_name(decoded))
        raise ArgumentError([problem], tool=tool)
    return decoded


def _problem(error: NotJSON, sizes: SizeLimits) -> Problem:
    if error.code == "limit.nodes":
        return Problem("", error.code, f"at most {sizes.nodes} values in one call", "more")
    return Problem("", error.code, "arguments as JSON", "str", error.hint)


def by_name(spec: ToolSpec, values: Sequence[Any]) -> dict[str, Any] | None:
    """Return positional values as arguments by name, or None if there are too many of them.

    The values of a variadic argument become a list; missing ones stay missing.
    """
    names = [arg.name for arg in spec.args]
    if len(values) <= len(names) - spec.variadic:
        return dict(zip(names, values, strict=False))
    if not spec.variadic:
        return None
    count = len(names) - 1
    return {**dict(zip(names, values[:count], strict=False)), names[-1]: list(values[count:])}


@attrs.frozen
class Repair:
    """A value of another type that was converted to the declared type without loss.

    Attributes:
        where: Its place, as in an error: ``tags[1]``.
        got: The name of the type that the caller sent. The same as *became* for a string that was changed to the
            canonical form of its format or to the spelling of a choice. With the number of items for a list in which
            items were repeated.
        became: The name of the type that the tool received.
    """

    where: str
    got: str
    became: str


_ALL: Final = slice(None)


KEYS: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""Key types whose lookup runs no code of a caller."""


def repairs(spec: ToolSpec, given: Any, values: tuple[Any, ...]) -> tuple[Repair, ...]:
    """Return one `Repair` for each value whose type differs between the call and the tool.

    Args:
        given: The arguments as they were passed to `bind`: a list, tuple or dict.
        values: The result of `bind`.

    Returns:
        At most `MAX_LISTED_PROBLEMS` repairs.
    """
    if issubclass(type(given), dict):
        return tuple(islice(_repairs_by_name(spec, given, values), MAX_LISTED_PROBLEMS))
    items = list.__getitem__(given, _ALL) if issubclass(type(given), list) else tuple.__getitem__(given, _ALL)
    return tuple(islice(_repairs_in_order(spec, items, values), MAX_LISTED_PROBLEMS))


def _repairs_by_name(spec: ToolSpec, given: dict[Any, Any], values: tuple[Any, ...]) -> Iterator[Repair]:
    before = _plain_keys(given)
    for name, after in spec.by_name(values).items():
        if name in before:
            yield from _converted((None, name), before[name], after)


def _repairs_in_order(spec: ToolSpec, given: Sequence[Any], values: tuple[Any, ...]) -> Iterator[Repair]:
    last = len(spec.args) - 1
    for index, (before, after) in enumerate(zip(given, values, strict=False)):
        where: Where = (None, spec.args[min(index, last)].name)
        yield from _converted((where, index - last) if spec.variadic and index >= last else where, before, after)


def _converted(where: Where, before: Any, after: Any) -> Iterator[Repair]:
    """Yield a repair for each value whose type changed. Places are formatted only for those."""
    if type(before) is not type(after):
        yield Repair(place(where), type_name(before), type_name(after))
    elif type(after) is str:
        if before != after:
            yield Repair(place(where), "str", "str")
    elif type(after) is list and len(before) != len(after):
        yield Repair(place(where), f"list of {len(before)} items", f"list of {len(after)} unique items")
    elif type(after) is list:
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            if type(old) is not type(new) or type(new) in (list, dict) or (type(new) is str and old != new):
                yield from _converted((where, index), old, new)
    elif type(after) is dict:
        old_keys = _plain_keys(before)
        for key, new in after.items():
            if key in old_keys:
                yield from _converted((where, key), old_keys[key], new)
        if len(old_keys) == len(after) and old_keys.keys() != after.keys():
            for old_key, (key, new) in zip(old_keys, after.items(), strict=True):
                if key not in old_keys:
                    yield Repair(place((where, key)), f"{type_name(old_key)} key", f"{type_name(key)} key")
                    yield from _converted((where, key), old_keys[old_key], new)


def _plain_keys(value: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dict with exact keys, without keys of other types."""
    if type(value) is dict and not [key for key in value if type(key) is not str]:
        return value
    pairs = [(to_builtin(key), each) for key, each in dict.items(value)]
    return {key: each for key, each in pairs if type(key) in KEYS}
