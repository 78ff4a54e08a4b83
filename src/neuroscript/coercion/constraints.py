"""Constraints beyond the type: required arguments, None, keys, choices and bounds.

This module and `values`, which handles the types, are the only places that decide what is accepted.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from neuroscript.coercion.context import (
    BOUNDS,
    CHOICE,
    INVALID,
    LAX,
    LENGTH,
    MISSING,
    ROOT,
    UNKNOWN,
    CoercionPass,
    CoercionSettings,
    SizeLimits,
    Where,
)
from neuroscript.coercion.parameters import Form, instance, one_of, require
from neuroscript.coercion.scalars import Rejection, to_builtin
from neuroscript.coercion.types import ELEMENTS, ArgType
from neuroscript.coercion.values import coerce_element, coerce_value, copy_exact, items_of, pairs_of, string_keyed
from neuroscript.errors import MAX_PROBLEMS, UNSET, SpecError
from neuroscript.io.text import quote_untrusted

if TYPE_CHECKING:
    from neuroscript.coercion.rule_text import Rule
    from neuroscript.spec.tool_spec import ArgSpec  # for pyright: the converters of its fields do not fit the Protocol

TYPE: Final = Form(
    "an ArgType, its name or an ArgSpec",
    lambda rule: isinstance(rule, str) or isinstance(getattr(rule, "type", None), ArgType),
)
MODE: Final = one_of("lax", "strict")
LIMITS: Final = instance(SizeLimits)

ABSENT: Final = object()
"""Marks an optional argument that was not passed and has no default."""


def coerce(
    value: object,
    type: ArgType | Rule | ArgSpec | str,
    *,
    mode: Literal["lax", "strict"] = "lax",
    limits: SizeLimits = LAX.sizes,
) -> Any:
    """Return *value* as the exact built-in for *type*. None is accepted for every type.

    Args:
        value: The value from a caller. It is not modified, and none of its own code runs.
        type: An `ArgType`, its name, or an `ArgSpec`, whose choices, bounds and keys are checked too.
        mode: ``"lax"`` converts, for example, ``"42"`` to an int; ``"strict"`` accepts only exact types at every level.
        limits: The maximum size of the value.

    Returns:
        A value that shares no container with *value*.

    Raises:
        CoercionError: With all problems found.
        SpecError: *type* is not the name of an ArgType, or another parameter is invalid.

    >>> coerce('["a", "b"]', "slice_string")
    ['a', 'b']
    """
    if not isinstance(type, str) or mode != "lax" or limits is not LAX.sizes:
        require("coerce", type=(type, TYPE), mode=(mode, MODE), limits=(limits, LIMITS))
    rule = named_type(type) if isinstance(type, str) else type
    walk = CoercionPass(CoercionSettings(mode, limits))
    if value is None:
        return None
    way: Callable[..., Any] = coerce_value if isinstance(rule, ArgType) else coerce_present
    result = walk.limited(way, rule, value, ROOT)
    if walk.noted:
        from neuroscript.coercion.problems import value_error

        raise value_error(walk, None if isinstance(rule, ArgType) else rule)
    return result


def named_type(word: str) -> ArgType:
    """Return the `ArgType` with this name, or raise a `SpecError`."""
    try:
        return ArgType(word)
    except ValueError:
        raise SpecError(
            "type", [f"{quote_untrusted(word)} is not an ArgType; use one of {', '.join(ArgType)}"]
        ) from None


def match_names(
    walk: CoercionPass, rules: Iterable[Rule], given_by_name: dict[str, Any], extra_keys: bool, where: Where
) -> dict[str, Any]:
    """Return the exact value of each rule that has one, by name. Names without a rule are reported or passed through.

    Args:
        given_by_name: The arguments; the keys are exact strings. The dict is consumed.
        extra_keys: Whether to pass names without a rule through instead of reporting them.
    """
    found: dict[str, Any] = {}
    for rule in rules:
        inside = (where, rule.name)
        if rule.name in given_by_name:
            found[rule.name] = coerce_argument(walk, rule, given_by_name.pop(rule.name), inside)
        elif (value := default_argument(walk, rule, inside)) is not ABSENT:
            found[rule.name] = value
    for name, value in given_by_name.items():
        if extra_keys:
            found[name] = coerce_value(walk, ArgType.ANY, value, (where, name))
        else:
            walk.note((where, name), UNKNOWN, type(value))
    return found


def default_argument(walk: CoercionPass, rule: Rule, where: Where) -> Any:
    """Return the value of an argument or key that is missing: its default, or `ABSENT`."""
    if rule.required:
        return walk.note(where, MISSING, "nothing")
    return ABSENT if rule.default is UNSET else copy_exact(rule.default)


def coerce_argument(walk: CoercionPass, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of an argument or key that was passed, possibly as None.

    See docs/reference/contract.md, "None and missing values".
    """
    if rule.required and not rule.nullable:
        if value is None:
            return walk.note(where, MISSING, "None")
    elif value is None or _says_nothing(walk, rule, value):
        return None if rule.nullable or rule.default is UNSET else copy_exact(rule.default)
    return coerce_present(walk, rule, value, where)


def _says_nothing(walk: CoercionPass, rule: Rule, value: object) -> bool:
    if walk.terms.mode != "lax" or rule.holds_text:
        return False
    text = to_builtin(value)
    return type(text) is str and (text == "" or text == "null")


def coerce_trailing(walk: CoercionPass, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of a trailing value of a variadic tool, or of an item, a key or a value of a container.

    Such a value is never missing. It may be None only if the rule is nullable or plain `any`.
    """
    if rule.nullable and (value is None or _says_nothing(walk, rule, value)):
        return None
    if value is None and rule.is_refined:
        from neuroscript.coercion.refinements import NULL

        return walk.note(where, NULL, "None")
    return coerce_element(walk, rule.type, value, where) if value is None else coerce_present(walk, rule, value, where)


def coerce_present(walk: CoercionPass, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value for a rule after checking type, keys, choices and bounds; `FAILED` if a check fails."""
    if not rule.has_parts:
        result = coerce_value(walk, rule.type, value, where)
    elif rule.is_refined:
        from neuroscript.coercion.refinements import coerce_refined

        result = coerce_refined(walk, rule, value, where)
        if rule.unique_items and result is not INVALID:
            return _checked_set(walk, rule, result, where)
    elif rule.type in ELEMENTS:
        items = items_of(walk, rule.type, value, where)
        result = INVALID if items is INVALID else walk.within(where, _maps, rule, items)
    else:
        result = coerce_map(walk, rule, value, where)
    if result is not INVALID and check_bounds(rule):
        return _checked(walk, rule, result, where)
    return result


def _maps(walk: CoercionPass, rule: Rule, items: list[Any], where: Where) -> list[Any]:
    return [
        coerce_element(walk, ArgType.MAP, None, (where, index))
        if item is None
        else coerce_map(walk, rule, item, (where, index))
        for index, item in enumerate(items)
    ]


def coerce_map(walk: CoercionPass, rule: Rule, value: object, where: Where) -> Any:
    """Return the exact value of a map with declared keys."""
    pairs = pairs_of(walk, ArgType.MAP, value, where)
    return INVALID if pairs is INVALID else walk.within(where, _declared, rule, pairs)


def _declared(walk: CoercionPass, rule: Rule, pairs: list[tuple[Any, Any]], where: Where) -> dict[str, Any]:
    """Return a map with declared keys in the caller's order, followed by the keys filled from defaults."""
    by_name = string_keyed(walk, pairs, where)
    order = [*by_name]
    found = match_names(walk, rule.keys, by_name, rule.extra_keys, where)
    return {name: found.pop(name) for name in order if name in found} | found


def check_bounds(rule: Rule) -> bool:
    """Return whether a rule has choices, bounds or lengths to check."""
    return rule.has_bounds


def _checked(walk: CoercionPass, rule: Rule, result: Any, where: Where) -> Any:
    """Return a value whose length, choices and bounds were checked, with choices in their own spelling."""
    before = walk.noted
    _check_length(walk, rule, result, where)
    if rule.type in ELEMENTS:
        _fit_items(walk, rule, result, where)
    else:
        result = _fit(walk, rule, rule.choices, result, where)
    return INVALID if walk.noted > before else result


def _checked_set(walk: CoercionPass, rule: Rule, result: list[Any], where: Where) -> Any:
    """Return checked items without repetitions. Choices come first, because two spellings are one choice."""
    from neuroscript.coercion.refinements import drop_repeated

    before = walk.noted
    if check_bounds(rule):
        _fit_items(walk, rule, result, where)
    result = drop_repeated(walk, result, where)
    _check_length(walk, rule, result, where)
    return INVALID if walk.noted > before else result


def _check_length(walk: CoercionPass, rule: Rule, result: Any, where: Where) -> None:
    if type(result) in _SIZED and not _between(len(result), rule.min_length, rule.max_length):
        from neuroscript.coercion.rule_text import format_count

        walk.note(where, LENGTH, format_count(len(result), rule.type))


def _fit_items(walk: CoercionPass, rule: Rule, items: list[Any], where: Where) -> None:
    choices = frozenset(rule.choices)
    for index, item in enumerate(items):
        fit = _fit(walk, rule, choices, item, (where, index))
        if fit is not item:
            items[index] = fit


def _fit(walk: CoercionPass, rule: Rule, choices: Container[Any], result: Any, where: Where) -> Any:
    """Return a value that is one of the choices and within the bounds; report any other.

    The value and the choices have the same type, so ``==`` is enough. A string that equals exactly one choice but for
    case and surrounding whitespace becomes that choice in lax mode.
    """
    if rule.choices and result not in choices:
        same = _same_choices(rule, result) if walk.terms.mode == "lax" and type(result) is str else []
        if len(same) != 1:
            _note_choice(walk, rule, result, where)
            return result
        result = same[0]
    if type(result) in _NUMBERS and not _between(result, rule.lowest, rule.highest):
        walk.note(where, BOUNDS, type(result))
    elif rule.is_refined and rule.format == "decimal" and not _is_decimal_between(result, rule):
        walk.note(where, BOUNDS, "decimal number")
    return result


def _same_choices(rule: Rule, text: str) -> Sequence[str]:
    """Return the choices that equal *text* but for case and surrounding whitespace."""
    return _folded_choices(rule.choices).get(text.strip().casefold(), ())


@lru_cache(maxsize=64)
def _folded_choices(choices: tuple[Any, ...]) -> dict[str, list[str]]:
    """Return the choices by their folded spelling."""
    found: dict[str, list[str]] = {}
    for each in choices:
        if type(each) is str:
            found.setdefault(each.strip().casefold(), []).append(each)
    return found


def _is_decimal_between(text: str, rule: Rule) -> bool:
    from decimal import Decimal

    number = Decimal(text)
    above, below = rule.exclusive_minimum, rule.exclusive_maximum
    return (
        (rule.minimum is None or number >= Decimal(repr(rule.minimum)))
        and (rule.maximum is None or number <= Decimal(repr(rule.maximum)))
        and (above is None or number > Decimal(repr(above)))
        and (below is None or number < Decimal(repr(below)))
    )


def _note_choice(walk: CoercionPass, rule: Rule, result: object, where: Where) -> None:
    """Report a value that is not one of the choices. Suggest a similar choice if the problem will be described."""
    hint = ""
    if walk.describes and walk.noted < MAX_PROBLEMS:
        from neuroscript.coercion.problems import near_choice

        hint = near_choice(rule, result)
    walk.note(where, Rejection(CHOICE.code, "", hint), type(result))


_SIZED: Final = frozenset({str, bytes, list, dict, array})
_NUMBERS: Final = frozenset({int, float})


def _between(number: float, low: float | None, high: float | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


Bound = float | None
"""A finite number, or None for no bound."""


def stricter_bounds(
    inclusive: Bound, exclusive: Bound, *, is_lower: bool, is_integer: bool = False
) -> tuple[Bound, Bound]:
    """Return the stricter one of two bounds on the same side, in its place, and None in the other place.

    An exclusive bound of integers becomes the inclusive one, so each range of integers has one form.

    >>> stricter_bounds(None, 0, is_lower=True, is_integer=True)
    (1, None)
    >>> stricter_bounds(0, 0.5, is_lower=True)
    (None, 0.5)
    """
    if exclusive is None:
        return inclusive, None
    if is_integer:
        nearest = math.floor(exclusive) + 1 if is_lower else math.ceil(exclusive) - 1
        if inclusive is None or (inclusive < nearest if is_lower else inclusive > nearest):
            return nearest, None
        return inclusive, None
    if inclusive is not None and (inclusive > exclusive if is_lower else inclusive < exclusive):
        return inclusive, None
    return None, exclusive or (0 if type(exclusive) is int else 0.0)  # -0.0 is 0.0


def nearest_float(bound: float, *, is_lower: bool) -> float:
    """Return the first float within an exclusive bound; infinity if no float is within it.

    >>> nearest_float(0, is_lower=True)
    5e-324
    """
    number = float(bound)
    if number > bound if is_lower else number < bound:  # an int between two floats
        return number
    return math.nextafter(number, math.inf if is_lower else -math.inf)
