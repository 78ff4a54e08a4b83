"""Argument rules in words: the type with its bounds, lengths, choices and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from neuroscript.coercion.types import ELEMENTS, TYPES, ArgType, type_phrase
from neuroscript.io.text import MAX_NAME_CHARS, quote_untrusted

MAX_LISTED: Final = 20
"""Maximum number of choices or keys that an error lists; the rest are counted."""


class Rule(Protocol):
    """The rule for one argument or key; `ArgSpec` implements it."""

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
    def secret(self) -> bool: ...
    @property
    def minimum(self) -> float | None: ...
    @property
    def maximum(self) -> float | None: ...
    @property
    def exclusive_minimum(self) -> float | None: ...
    @property
    def exclusive_maximum(self) -> float | None: ...
    @property
    def lowest(self) -> float | None: ...
    @property
    def highest(self) -> float | None: ...
    @property
    def has_bounds(self) -> bool: ...
    @property
    def min_length(self) -> int | None: ...
    @property
    def max_length(self) -> int | None: ...
    @property
    def items(self) -> Any: ...
    @property
    def prefix_items(self) -> tuple[Any, ...]: ...
    @property
    def unique_items(self) -> bool: ...
    @property
    def value_spec(self) -> Any: ...
    @property
    def key_spec(self) -> Any: ...
    @property
    def any_of(self) -> tuple[Any, ...]: ...
    @property
    def format(self) -> str: ...
    @property
    def is_refined(self) -> bool: ...
    @property
    def has_parts(self) -> bool: ...
    @property
    def holds_text(self) -> bool: ...
    @property
    def discriminator(self) -> str: ...


def expected_type(rule: Rule) -> str:
    """Return the type of an argument with its bounds, length and all choices, but without its keys.

    >>> from neuroscript import ArgSpec
    >>> expected_type(ArgSpec("size", "int", minimum=1, maximum=9))
    'int from 1 to 9'
    """
    return _together(rule, f"{_bounds(rule)}{_choices(rule, len(rule.choices))}")


def expected_text(rule: Rule) -> str:
    """Return the full rule of an argument, as it follows "expected" in an error.

    >>> from neuroscript import ArgSpec
    >>> expected_text(ArgSpec("place", "map", keys=(ArgSpec("town", "string"), ArgSpec("zip", "int", required=False))))
    'map with keys town, zip (optional)'
    """
    return _together(rule, f"{_bounds(rule)}{_choices(rule, MAX_LISTED)}{_keys(rule)}")


def rule_phrase(rule: Rule) -> str:
    """Return the type of a rule with its refinements, such as ``list of date`` or ``int or 'auto'``.

    >>> from neuroscript import ArgSpec
    >>> rule_phrase(ArgSpec("days", "slice", items=ArgSpec("day", "string", format="date")))
    'list of date'
    """
    if not rule.is_refined:
        return type_phrase(rule.type)
    if rule.any_of:
        return " or ".join(dict.fromkeys(map(_alternative, rule.any_of)))
    if rule.format:
        from neuroscript.coercion.string_formats import FORMATS

        return FORMATS[rule.format].expected
    if rule.type in ELEMENTS:
        return _sequence(rule)
    values = "" if rule.value_spec is None else f" of {_alternative(rule.value_spec)}"
    keys = "" if rule.key_spec is None else f" by {_alternative(rule.key_spec)}"
    return f"map{values}{keys}"


def _sequence(rule: Rule) -> str:
    unique = "unique " if rule.unique_items else ""
    if rule.prefix_items:
        return f"list of {len(rule.prefix_items)} {unique}items ({', '.join(map(_alternative, rule.prefix_items))})"
    if rule.items is None:
        element = ELEMENTS[rule.type]
        what = "items" if element is ArgType.ANY else element
        return f"list of {unique}{what}" if unique or what != "items" else "list"
    return f"list of {unique}{_alternative(rule.items)}"


def _alternative(rule: Rule) -> str:
    """Return the phrase of a nested rule: its choices if it has some, otherwise its type."""
    if rule.choices and rule.type not in ELEMENTS:
        return " or ".join(_shown_choices(rule.choices))
    null = " or null" if rule.nullable and rule.type is not ArgType.NIL else ""
    return f"{rule_phrase(rule)}{_length(rule)}{_bounds(rule)}{null}"


def _shown_choices(choices: Sequence[Any]) -> list[str]:
    shown = [*map(format_choice, choices[:MAX_LISTED])]
    return [*shown, f"{len(choices) - MAX_LISTED} more"] if len(choices) > MAX_LISTED else shown


def expected_element(rule: Rule) -> str:
    """Return the rule for each element of a list."""
    return f"{type_phrase(ELEMENTS[rule.type])}{_bounds(rule)}{_choices(rule, MAX_LISTED)}{_keys(rule)}"


def expected_values(rule: Rule) -> str:
    """Return the rule for the list of trailing values of a variadic tool."""
    return _list_of(rule.type, f"{_length(rule)}{_bounds(rule)}{_choices(rule, MAX_LISTED)}{_keys(rule)}")


def expected_names(names: Sequence[str]) -> str:
    """Return the list of valid names."""
    return f"only {_listed(names[:MAX_LISTED], len(names))}" if names else "nothing"


def format_count(count: int, kind: ArgType) -> str:
    """Return a number with its unit: characters, bytes, items or keys.

    >>> format_count(1, ArgType.STRING), format_count(2, ArgType.SLICE_INT)
    ('1 character', '2 items')
    """
    return f"{count} {_unit(count, kind)}"


def format_choice(choice: object) -> str:
    """Return a choice as an error shows it; strings are cut to `MAX_NAME_CHARS` characters."""
    if type(choice) is str and len(choice) > MAX_NAME_CHARS:
        choice = f"{choice[:MAX_NAME_CHARS]}…"
    return repr(choice)


def format_choices(choices: Sequence[Any], most: int = MAX_LISTED) -> str:
    """Return the choices as the rest of a sentence, with the number of those beyond *most*.

    >>> format_choices(("a", "b", "c"), 2)
    "one of 'a', 'b' and 1 more"
    """
    return f"one of {_listed([*map(format_choice, choices[:most])], len(choices))}"


def _unit(count: int, kind: ArgType) -> str:
    unit = TYPES[kind].unit
    return unit if count == 1 else f"{unit}s"


def _together(rule: Rule, asked: str) -> str:
    """Return the type and length of a value with its constraints, or with those of its elements."""
    head = f"{rule_phrase(rule)}{_length(rule)}"
    return f"{head}{_of_each(asked)}" if rule.type in ELEMENTS else f"{head}{asked}"


def _list_of(kind: ArgType, asked: str) -> str:
    return f"list of {type_phrase(kind)}{_of_each(asked)}"


def _of_each(asked: str) -> str:
    return f", each{asked.removeprefix(',')}" if asked else ""


def _bounds(rule: Rule) -> str:
    above, below = rule.exclusive_minimum, rule.exclusive_maximum
    if above is None and below is None:
        return _span(rule.minimum, rule.maximum, "from", "of")
    low = f"more than {above}" if above is not None else f"of at least {rule.minimum}"
    high = f"less than {below}" if below is not None else f"at most {rule.maximum}"
    has_low = above is not None or rule.minimum is not None
    has_high = below is not None or rule.maximum is not None
    return f" {' and '.join(text for text, is_set in ((low, has_low), (high, has_high)) if is_set)}"


def _length(rule: Rule) -> str:
    low, high = rule.min_length, rule.max_length
    if low is None and high is None:
        return ""
    word = "of" if TYPES[rule.type].unit in ("character", "byte") else "with"
    unit = _unit(high if high is not None else low or 0, rule.type)
    return f" {word} {low} {unit}" if low == high else f"{_span(low, high, word, word)} {unit}"


def _span(low: float | None, high: float | None, between: str, beyond: str) -> str:
    if low is None:
        return "" if high is None else f" {beyond} at most {high}"
    return f" {beyond} at least {low}" if high is None else f" {between} {low} to {high}"


def _choices(rule: Rule, most: int) -> str:
    return f", {format_choices(rule.choices, most)}" if rule.choices else ""


def _keys(rule: Rule) -> str:
    if not rule.keys:
        return ""
    names = [
        quote_untrusted(key.name) if key.required else f"{quote_untrusted(key.name)} (optional)"
        for key in rule.keys[:MAX_LISTED]
    ]
    others = " and others" if rule.extra_keys else ""
    return f"{',' if _length(rule) else ''} with keys {_listed(names, len(rule.keys))}{others}"


def _listed(names: Sequence[str], count: int) -> str:
    """Return the names separated by commas, followed by the number of omitted ones."""
    return f"{', '.join(names)} and {count - len(names)} more" if count > len(names) else ", ".join(names)
