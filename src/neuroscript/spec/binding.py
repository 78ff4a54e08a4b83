"""Arguments into exact values, in the order of a spec: once as a plain walk, and once as statements to be compiled.

The walk (`bound`) is what the contract says: it knows every rule and finds every problem. The
statements (`positional`, `named`) only see what needs no second look, such as an int where an int is declared; at the
first doubt they hand the whole call over to the walk. The tests run every case through both.

Source: contract sections 2 and 3; performance.md part 2.

A call as it is sent: arguments that may be JSON text, and the seconds that it may take.

Source: contract section 1, ToolCall.

What was converted on the way to a tool, as types and places: a host sees what its model keeps getting wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from sys import float_info
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import ABSENT, absent, further, given, members
from neuroscript.coercion.context import (
    FAILED,
    LAX,
    MISSING,
    Coercion,
    Exceeded,
    SizeLimits,
    Walk,
    Where,
    place,
    type_name,
)
from neuroscript.coercion.parameters import (
    instance,
    is_number,
    require,
)
from neuroscript.coercion.scalars import Misfit, flattened
from neuroscript.coercion.types import LISTS, ArgType
from neuroscript.coercion.values import by_text, items_of
from neuroscript.errors import LISTED, ArgumentError, Problem
from neuroscript.io.text import NotJSON, parsed
from neuroscript.spec.tool_spec import ToolSpec

SPEC: Final = instance(ToolSpec)


def bind(spec: ToolSpec, args: Sequence[object]) -> tuple[Any, ...]:
    """Return one exact value for each argument of *spec*, in order.

    Args:
        args: What the caller gave, a list or a tuple; may be shorter than the spec, never longer unless it is variadic.

    Returns:
        A tuple as long as ``spec.args``, each value of the exact built-in its `ArgType` names, or None for an optional
        one that was not given. Of a variadic spec, each further value follows.

    Raises:
        ArgumentError: With every problem found, not only the first.

    Source: contract section 3; upstream ``validateAndCoerceArgs``.
    """
    if type(spec) is not ToolSpec:
        require("bind", spec=(spec, SPEC))
    return bound(spec, LAX, args, by_name=False)


def bind_named(spec: ToolSpec, mapping: Mapping[str, object]) -> tuple[Any, ...]:
    """Return the same as `bind` for arguments by name, a dict; a variadic argument is given as a list."""
    if type(spec) is not ToolSpec:
        require("bind_named", spec=(spec, SPEC))
    return bound(spec, LAX, mapping, by_name=True)


class CallWalk(Walk):
    """The walk over the arguments of one call.

    Attributes:
        spec: The tool; it is set where a problem was noted.
    """

    spec: ToolSpec

    def problems(self) -> list[Problem]:
        """Return what was noted."""
        from neuroscript.coercion.problems import Rules, problems_of

        args = self.spec.args
        return problems_of(self, Rules(args, further=args[-1] if self.spec.variadic else None))


def bound(spec: ToolSpec, coercion: Coercion, args: object, *, by_name: bool) -> tuple[Any, ...]:
    """Return the exact values of what was given, on the terms of *coercion*, or raise an `ArgumentError`."""
    walk = CallWalk(coercion)
    try:
        values = _by_name(walk, spec, args) if by_name else _by_position(walk, spec, args)
    except (Exceeded, RecursionError) as end:
        walk.ended(end)
    if walk.noted:
        walk.spec = spec
        raise ArgumentError(walk.problems, spec.full_name, walk.noted)
    if spec.schema:
        _ask_schema(spec, values)
    return tuple([None if value is ABSENT else value for value in values])


def _ask_schema(spec: ToolSpec, values: list[Any]) -> None:
    """Hold exact values to what a schema asks beyond the spec; an argument without a value is not there for it."""
    from neuroscript.coercion.plain_data import plain
    from neuroscript.coercion.schema_validation import checker_of

    checker = checker_of(spec.schema)
    if checker is None:
        return
    by_name = spec.by_name(values)
    rules = {arg.name: arg for arg in spec.args}
    given = {
        name: plain(value)
        for name, value in by_name.items()
        if value is not ABSENT and (value is not None or rules[name].nullable)
    }
    problems = checker.problems(given)
    if problems:
        raise ArgumentError(problems, spec.full_name)


def _by_position(walk: Walk, spec: ToolSpec, args: Any) -> list[Any]:
    items = args if type(args) is tuple else _in_order(spec, args)
    rules = spec.args[:-1] if spec.variadic else spec.args
    count = len(items)
    values: list[Any] = []
    for index, rule in enumerate(rules):
        where = (None, rule.name)
        values.append(given(walk, rule, items[index], where) if index < count else absent(walk, rule, where))
    if spec.variadic:
        return [*values, *_further(walk, spec, items[len(rules) :])]
    if count > len(rules):
        walk.note(None, Misfit("arg.count", f"at most {len(rules)} arguments"), str(count))
    return values


def _in_order(spec: ToolSpec, args: Any) -> Sequence[Any]:
    kind = type(args)
    if issubclass(kind, list):
        return list.__getitem__(args, slice(None))
    if issubclass(kind, tuple):
        return tuple.__getitem__(args, slice(None))
    hint = "arguments by name go to call_named" if issubclass(kind, dict) else ""
    raise _not_arguments(spec, "a list or tuple of arguments", args, hint)


def _by_name(walk: Walk, spec: ToolSpec, mapping: Any) -> list[Any]:
    if not issubclass(type(mapping), dict):
        hint = "arguments in order go to call" if issubclass(type(mapping), (list, tuple)) else ""
        raise _not_arguments(spec, "a dict of arguments by name", mapping, hint)
    by_name = by_text(walk, [*dict.items(mapping)], None)
    rest = by_name.pop(spec.args[-1].name, ABSENT) if spec.variadic else ABSENT
    fixed = spec.args[:-1] if spec.variadic else spec.args
    found = members(walk, fixed, by_name, False, None)
    values = [found.get(rule.name, ABSENT) for rule in fixed]
    return [*values, *_further(walk, spec, _listed(walk, spec, rest))] if spec.variadic else values


def _listed(walk: Walk, spec: ToolSpec, rest: object) -> Any:
    if rest is ABSENT or rest is None:
        return []
    rule = spec.args[-1]
    return items_of(walk, LISTS.get(rule.type, ArgType.SLICE_ANY), rest, (None, rule.name))


def _further(walk: Walk, spec: ToolSpec, items: Any) -> list[Any]:
    rule = spec.args[-1]
    where = (None, rule.name)
    if items is FAILED:
        return []
    if not items and rule.required:
        walk.note(where, MISSING, "nothing")
    return [further(walk, rule, item, (where, index)) for index, item in enumerate(items)]


def _not_arguments(spec: ToolSpec, expected: str, given: object, hint: str) -> ArgumentError:
    return ArgumentError([Problem("", "arg.type", expected, type_name(given), hint)], tool=spec.full_name)


def seconds_of(timeout: Any) -> float:
    if not is_number(timeout) or not 0 < timeout <= float_info.max:
        problem = Problem("timeout", "arg.type", "seconds above 0", type_name(timeout))
        raise ArgumentError([problem])
    return float(timeout)


def arguments_of(given: Any, tool: str, sizes: SizeLimits = LAX.sizes) -> Any:
    """Return the arguments of a call as a dict, a list or a tuple; a blank text and None stand for none.

    Args:
        sizes: How many values JSON text may hold; the object or array around all of them does not count.

    Raises:
        ArgumentError: It is a text that is no JSON, or JSON of something else.
    """
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    if not isinstance(given, str):
        return given
    try:
        decoded = parsed(given, sizes.nodes + 1)
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
    """Return values in order as a caller would send them by name, or None where there are too many of them.

    Those of a variadic argument are a list; those that are left out stay so.
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
    """A value that was not of the declared type and could be converted without loss.

    Attributes:
        where: Its place, as in an error: ``tags[1]``.
        got: The name of the type that was given.
        became: The name of the type that the tool received.
    """

    where: str
    got: str
    became: str


_ALL: Final = slice(None)


KEYS: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""The types of keys that run no code of a caller when they are looked up."""


def repairs(spec: ToolSpec, given: Any, values: tuple[Any, ...]) -> tuple[Repair, ...]:
    """Return one `Repair` for each value among *given* that the caller wrote in another type than the tool receives.

    Args:
        given: The arguments as they were bound, a list, a tuple or a dict.
        values: What `bind` made of them.

    Returns:
        At most `LISTED` repairs.
    """
    if issubclass(type(given), dict):
        return tuple(islice(_repairs_by_name(spec, given, values), LISTED))
    items = list.__getitem__(given, _ALL) if issubclass(type(given), list) else tuple.__getitem__(given, _ALL)
    return tuple(islice(_repairs_in_order(spec, items, values), LISTED))


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
    """Yield what differs in type, with its place, which is written out only then."""
    if type(before) is not type(after):
        yield Repair(place(where), type_name(before), type_name(after))
    elif type(after) is list:
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            if type(old) is not type(new) or type(new) in (list, dict):
                yield from _converted((where, index), old, new)
    elif type(after) is dict:
        old_keys = _plain_keys(before)
        for key, new in after.items():
            if key in old_keys:
                yield from _converted((where, key), old_keys[key], new)


def _plain_keys(value: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dict with the keys that a caller wrote as exact values, and none of another type."""
    if type(value) is dict and not [key for key in value if type(key) is not str]:
        return value
    pairs = [(flattened(key), each) for key, each in dict.items(value)]
    return {key: each for key, each in pairs if type(key) in KEYS}
