"""What is asked of an argument beyond its type: whether it was given, whether it may be None, keys, choices, bounds.

With `values`, which knows the types, this is the only place that decides what is accepted.

Source: contract section 3.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from neuroscript.coercion.context import (
    BOUNDS,
    CHOICE,
    FAILED,
    LAX,
    LENGTH,
    MISSING,
    ROOT,
    UNKNOWN,
    Coercion,
    SizeLimits,
    Walk,
    Where,
)
from neuroscript.coercion.parameters import Form, instance, one_of, require
from neuroscript.coercion.scalars import Misfit, flattened
from neuroscript.coercion.types import ELEMENTS, TEXT_HOLDERS, ArgType
from neuroscript.coercion.values import by_text, copied, element, exact, items_of, pairs_of
from neuroscript.errors import MAX_PROBLEMS, UNSET, SpecError
from neuroscript.io.text import shown

if TYPE_CHECKING:
    from neuroscript.coercion.rule_text import Rule

TYPE: Final = Form(
    "an ArgType, its word or an ArgSpec",
    lambda rule: isinstance(rule, str) or isinstance(getattr(rule, "type", None), ArgType),
)
MODE: Final = one_of("lax", "strict")
LIMITS: Final = instance(SizeLimits)

ABSENT: Final = object()
"""Stands for an optional argument that was not given and has no default."""


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
    if not isinstance(type, str) or mode != "lax" or limits is not LAX.sizes:
        require("coerce", type=(type, TYPE), mode=(mode, MODE), limits=(limits, LIMITS))
    rule = named_type(type) if isinstance(type, str) else type
    walk = Walk(Coercion(mode, limits))
    if value is None:
        return None
    way: Callable[..., Any] = exact if isinstance(rule, ArgType) else fit
    result = walk.limited(way, rule, value, ROOT)
    if walk.noted:
        from neuroscript.coercion.problems import value_error

        raise value_error(walk, None if isinstance(rule, ArgType) else rule)
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
            walk.note((where, name), UNKNOWN, type(value))
    return found


def absent(walk: Walk, rule: Rule, where: Where) -> Any:
    """Return what stands for an argument or key that was not given: its default, or `ABSENT`."""
    if rule.required:
        return walk.note(where, MISSING, "nothing")
    return ABSENT if rule.default is UNSET else copied(rule.default)


def given(walk: Walk, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of an argument or key that was given, perhaps as None.

    Source: contract section 3, the table of None and absence.
    """
    if rule.required and not rule.nullable:
        if value is None:
            return walk.note(where, MISSING, "None")
    elif value is None or _says_nothing(walk, rule, value):
        return None if rule.nullable or rule.default is UNSET else copied(rule.default)
    return fit(walk, rule, value, where)


def _says_nothing(walk: Walk, rule: Rule, value: object) -> bool:
    if walk.terms.mode != "lax" or rule.type in TEXT_HOLDERS:
        return False
    text = flattened(value)
    return type(text) is str and (text == "" or text == "null")


def further(walk: Walk, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of one of the further values of a variadic tool.

    One that is given is never absent: it is a value, or, where the rule is nullable, what stands for None.
    """
    if rule.nullable and (value is None or _says_nothing(walk, rule, value)):
        return None
    return element(walk, rule.type, value, where) if value is None else fit(walk, rule, value, where)


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
        _note_length(walk, rule, len(result), where)
    if rule.type in ELEMENTS:
        choices = frozenset(rule.choices)
        for index, item in enumerate(result):
            _fault(walk, rule, choices, item, (where, index))
    else:
        _fault(walk, rule, rule.choices, result, where)
    return walk.noted > before


def _fault(walk: Walk, rule: Rule, choices: Container[Any], result: Any, where: Where) -> None:
    """Note that a value is no choice or out of bounds; a value and the choices have one type, so ``==`` decides."""
    if rule.choices and result not in choices:
        _note_choice(walk, rule, result, where)
    if type(result) in _NUMBERS and not _between(result, rule.minimum, rule.maximum):
        walk.note(where, BOUNDS, type(result))


def _note_length(walk: Walk, rule: Rule, length: int, where: Where) -> None:
    from neuroscript.coercion.rule_text import counted

    walk.note(where, LENGTH, counted(length, rule.type))


def _note_choice(walk: Walk, rule: Rule, result: object, where: Where) -> None:
    """Note another choice, with one that is near if the note is going to be described."""
    hint = ""
    if walk.noted < MAX_PROBLEMS:
        from neuroscript.coercion.problems import near_choice

        hint = near_choice(rule, result)
    walk.note(where, Misfit(CHOICE.code, "", hint), type(result))


_SIZED: Final = frozenset({str, bytes, list, dict, array})
_NUMBERS: Final = frozenset({int, float})


def _between(number: float, low: float | None, high: float | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)
