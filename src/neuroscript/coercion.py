"""What is asked of an argument beyond its type: whether it was given, whether it may be None, keys, choices, bounds.

With `values`, which knows the types, this is the only place that decides what is accepted.

Source: contract section 3.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Protocol

from neuroscript.argtypes import ELEMENTS, TEXT_HOLDERS, ArgType, worded
from neuroscript.display import shown
from neuroscript.errors import UNSET, CoercionError, SpecError
from neuroscript.names import near
from neuroscript.scalars import Misfit, flattened
from neuroscript.values import by_text, copied, element, exact, items_of, pairs_of
from neuroscript.walk import FAILED, LAX, ROOT, Coercion, SizeLimits, Walk, Where, type_name

ABSENT: Final = object()
"""Stands for an optional argument that was not given and has no default."""


class Rule(Protocol):
    """What is asked of one argument or key; an `ArgSpec` is one."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> ArgType: ...
    @property
    def required(self) -> bool | None: ...
    @property
    def default(self) -> Any: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def choices(self) -> tuple[Any, ...]: ...
    @property
    def keys(self) -> tuple[Any, ...]: ...
    @property
    def extra_keys(self) -> bool: ...
    @property
    def minimum(self) -> float | None: ...
    @property
    def maximum(self) -> float | None: ...
    @property
    def min_length(self) -> int | None: ...
    @property
    def max_length(self) -> int | None: ...


def coerce(
    value: object,
    type: ArgType | Rule | str,
    *,
    mode: Literal["lax", "strict"] = "lax",
    limits: SizeLimits = LAX.sizes,
) -> Any:
    """Return *value* as the exact built-in that *type* names; None passes for every type, as upstream has it.

    Args:
        value: What a caller sent. It is not changed, and no code of its own runs.
        type: An `ArgType`, its word, or an `ArgSpec`, whose choices, bounds and keys then hold too.
        mode: ``"strict"`` accepts only what already has the exact type at every level.
        limits: How large the value may be.

    Returns:
        A value that shares no container with *value*.

    Raises:
        CoercionError: With every problem found.
        SpecError: *type* is no word of the contract.

    >>> coerce('["a", "b"]', "slice_string")
    ['a', 'b']

    Source: contract section 3; upstream ``coerceArg``.
    """
    rule = named_type(type) if isinstance(type, str) else type
    walk = Walk(Coercion(mode, limits))
    if value is None:
        return None
    way: Callable[..., Any] = exact if isinstance(rule, ArgType) else fit
    result = walk.limited(way, rule, value, ROOT)
    if walk.noted:
        raise CoercionError(walk.problems, found=walk.noted)
    return result


def named_type(word: str) -> ArgType:
    """Return the `ArgType` that *word* names, or raise a `SpecError`."""
    try:
        return ArgType(word)
    except ValueError:
        raise SpecError("type", [f"{shown(word)} is no ArgType; the words are {', '.join(ArgType)}"]) from None


def members(
    walk: Walk, rules: Iterable[Rule], given_by_name: dict[str, Any], extra_keys: bool, where: Where
) -> dict[str, Any]:
    """Return by name the exact value of each rule that has one; a name that no rule has is noted or kept.

    Args:
        given_by_name: Its keys are exact texts. It is used up.
    """
    found: dict[str, Any] = {}
    for rule in rules:
        inside = (where, rule.name)
        if rule.name in given_by_name:
            found[rule.name] = given(walk, rule, given_by_name.pop(rule.name), inside)
        elif (value := absent(walk, rule, inside)) is not ABSENT:
            found[rule.name] = value
    for name, value in given_by_name.items():
        if extra_keys:
            found[name] = exact(walk, ArgType.ANY, value, (where, name))
        else:
            _unknown(walk, name, value, rules, where)
    return found


def _unknown(walk: Walk, name: str, value: object, rules: Iterable[Rule], where: Where) -> None:
    names = [rule.name for rule in rules]
    alike = near(name, names)
    hint = f"did you mean {' or '.join(alike)}?" if alike else ""
    expected = f"only {', '.join(names)}" if names else "nothing"
    walk.note((where, name), Misfit("arg.unknown", expected, hint), f"an unknown name with {type_name(value)}")


def absent(walk: Walk, rule: Rule, where: Where) -> Any:
    """Return what stands for an argument or key that was not given: its default, or `ABSENT`."""
    if rule.required:
        return walk.note(where, Misfit("arg.missing", described(rule)), "nothing")
    return ABSENT if rule.default is UNSET else copied(rule.default)


def given(walk: Walk, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of an argument or key that was given, perhaps as None.

    Source: contract section 3, the table of None and absence.
    """
    if rule.required and not rule.nullable:
        if value is None:
            return walk.note(where, Misfit("arg.missing", described(rule)), "None")
    elif value is None or _says_nothing(walk, rule, value):
        return None if rule.nullable or rule.default is UNSET else copied(rule.default)
    return fit(walk, rule, value, where)


def _says_nothing(walk: Walk, rule: Rule, value: object) -> bool:
    if walk.terms.mode != "lax" or rule.type in TEXT_HOLDERS:
        return False
    text = flattened(value)
    return type(text) is str and (text == "" or text == "null")


def further(walk: Walk, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of one of the further values of a variadic tool."""
    if value is not None:
        return fit(walk, rule, value, where)
    return None if rule.nullable else element(walk, rule.type, value, where)


def fit(walk: Walk, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value for the rule's type, with its keys, choices and bounds, or `FAILED`."""
    if not rule.keys:
        result = exact(walk, rule.type, value, where)
    elif rule.type in ELEMENTS:
        items = items_of(walk, rule.type, value, where)
        result = FAILED if items is FAILED else walk.within(where, _maps, rule, items)
    else:
        result = _map(walk, rule, value, where)
    if result is not FAILED and bounded(rule) and _faults(walk, rule, result, where):
        return FAILED
    return result


def _maps(walk: Walk, rule: Rule, items: list[Any], where: Where) -> list[Any]:
    return [
        element(walk, ArgType.MAP, None, (where, index)) if item is None else _map(walk, rule, item, (where, index))
        for index, item in enumerate(items)
    ]


def _map(walk: Walk, rule: Rule, value: object, where: Where) -> Any:
    pairs = pairs_of(walk, ArgType.MAP, value, where)
    return FAILED if pairs is FAILED else walk.within(where, _declared, rule, pairs)


def _declared(walk: Walk, rule: Rule, pairs: list[tuple[Any, Any]], where: Where) -> dict[str, Any]:
    """Return a map with declared keys, in the order in which they were given; those with a default follow."""
    by_name = by_text(walk, pairs, where)
    order = [*by_name]
    found = members(walk, rule.keys, by_name, rule.extra_keys, where)
    return {name: found.pop(name) for name in order if name in found} | found


def bounded(rule: Rule) -> bool:
    """Tell whether *rule* asks for more of a value than its type and its keys."""
    bounds = (rule.minimum, rule.maximum, rule.min_length, rule.max_length)
    return bool(rule.choices) or bounds != (None, None, None, None)


def _faults(walk: Walk, rule: Rule, result: Any, where: Where) -> bool:
    before = walk.noted
    if type(result) in _SIZED and not _between(len(result), rule.min_length, rule.max_length):
        walk.note(where, Misfit("coercion.length", described(rule)), f"a length of {len(result)}")
    if rule.type in ELEMENTS:
        for index, item in enumerate(result):
            _fault(walk, rule, item, (where, index))
    else:
        _fault(walk, rule, result, where)
    return walk.noted > before


def _fault(walk: Walk, rule: Rule, result: Any, where: Where) -> None:
    if rule.choices and not any(type(each) is type(result) and each == result for each in rule.choices):
        walk.note(where, Misfit("coercion.choice", described(rule)), f"another {type_name(result)}")
    if type(result) in _NUMBERS and not _between(result, rule.minimum, rule.maximum):
        walk.note(where, Misfit("coercion.bounds", described(rule)), f"{type_name(result)} out of bounds")


_SIZED: Final = frozenset({str, bytes, list, dict, array})
_NUMBERS: Final = frozenset({int, float})


def _between(number: float, low: float | None, high: float | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


def described(rule: Rule) -> str:
    """Return in words what *rule* asks, as it stands behind "expected"."""
    parts = [worded(rule.type)]
    if rule.choices:
        parts.append(f"one of {', '.join(repr(choice) for choice in rule.choices)}")
    if rule.minimum is not None or rule.maximum is not None:
        parts.append(_span(rule.minimum, rule.maximum, ""))
    if rule.min_length is not None or rule.max_length is not None:
        parts.append(_span(rule.min_length, rule.max_length, "a length "))
    return ", ".join(parts)


def _span(low: float | None, high: float | None, what: str) -> str:
    if low is None:
        return f"{what}at most {high}"
    return f"{what}at least {low}" if high is None else f"{what}from {low} to {high}"
