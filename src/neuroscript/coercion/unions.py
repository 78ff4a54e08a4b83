"""Unions: which alternative a value is.

A value that strictly is one alternative takes the first such. Otherwise it takes the alternative that can repair it,
and of several the first declared, except that a boolean yields to a number. A string stays a string where one
alternative is a plain string, unless an alternative before it has a format that can read the string. A discriminator
selects the alternative of a map.

All work on alternatives counts against the limit of values, so nested unions cannot multiply it without bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import (
    INVALID,
    MISSING,
    CoercionPass,
    CoercionSettings,
    LimitExceeded,
    SizeLimits,
    Where,
    type_name,
)
from neuroscript.coercion.rule_text import format_choices, rule_phrase
from neuroscript.coercion.scalars import BLANKS, Rejection, entry, to_builtin
from neuroscript.coercion.types import ELEMENTS, NUMBER_TYPES, TYPES, VALUES, ArgType
from neuroscript.coercion.values import adapt, unfenced
from neuroscript.io.text import NotJSON, parse_json

if TYPE_CHECKING:
    from neuroscript.coercion.rule_text import Rule

TEXT_PER_NODE: Final = 256
ITEMS_PER_NODE: Final = 16
"""How many characters and items count as one value when an alternative copied or parsed them in vain."""

EXACT: Final = CoercionSettings("strict", SizeLimits(depth=1_000, nodes=2**40, text=2**40))
"""The settings for values that were coerced before; the limits of that coercion were sufficient."""


class _Misfit(Exception):
    """An alternative does not fit, so its trial stops."""


class _Trial(CoercionPass):
    """A pass that tries one alternative and stops at the first problem.

    Its work counts against the limits of the pass it belongs to.

    Attributes:
        lax: The settings of the outermost pass if that is lax, for formats that are read before a plain string.
    """

    describes = False

    def __init__(self, outer: CoercionPass, terms: CoercionSettings) -> None:
        super().__init__(terms)
        self._outer = outer
        self.lax = _lax_terms(outer)
        self.depth = outer.depth
        self._text_before: int = getattr(outer, "_text_before", 0) + outer.text

    def attempt(self, rule: Rule, value: object, where: Where) -> Any:
        """Return the exact value for a rule, or `INVALID`."""
        try:
            return coerce_present(self, rule, value, where)
        except _Misfit:
            self.noted += 1
            self._outer.spend(where, 1 + self.text // TEXT_PER_NODE)
            return INVALID

    def note(self, where: Where, misfit: Rejection, got: str | type) -> Any:
        raise _Misfit

    def within(self, where: Where, fill: Callable[..., Any], *parts: Any) -> Any:
        try:
            return super().within(where, fill, *parts)
        except _Misfit:
            self._outer.spend(where, len(parts[-1]) // ITEMS_PER_NODE)
            raise

    def charge(self, where: Where, value: object) -> None:
        if type(value) is str:
            self._outer.spend(where, len(value) // TEXT_PER_NODE)

    def spend(self, where: Where, nodes: int, text: int = 0) -> None:
        self.nodes += nodes
        self.text += text
        self._outer.spend(where, nodes)
        if self._text_before + self.text > self.terms.sizes.text:
            raise self.too_much_text(where)

    @property
    def text_left(self) -> int:
        return self.terms.sizes.text - self._text_before - self.text

    @property
    def nodes_left(self) -> int:
        return self._outer.nodes_left

    def _exceed(self, where: Where, code: str, most: int, what: str) -> LimitExceeded:
        return self._outer._exceed(where, code, most, what)


def _lax_terms(walk: CoercionPass) -> CoercionSettings | None:
    return walk.lax if isinstance(walk, _Trial) else walk.terms if walk.terms.mode == "lax" else None


def coerce_union(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    """Return the exact value for a union, or `INVALID`. *value* is not None."""
    value = adapt(walk, value)
    nodes = walk.nodes
    if walk.terms.mode == "lax" and not rule.holds_text:
        value = _decoded(walk, value, where)
    tagged = _tagged(walk, rule, value, where)
    if tagged is not None:
        alternative, value = tagged
        return INVALID if alternative is None else _chosen(walk, alternative, value, where)
    found = _first_strict(walk, rule, value, where)
    if found is None and walk.terms.mode == "lax":
        found = _first_repaired(walk, rule, value, where)
    if found is None:
        return _refused(walk, rule, value, where)
    result, trial = found
    walk.spend(where, 0, trial.text)
    walk.work += walk.nodes - nodes - trial.nodes + trial.work
    return result


def alternative_of(rule: Rule, value: Any) -> Any:
    """Return the first alternative that an exact value strictly is, or None."""
    return next((each for each in rule.any_of if is_exactly(each, value)), None)


def is_exactly(rule: Rule, value: Any) -> bool:
    """Return whether an exact value other than None strictly fits a rule."""
    if not _may_fit(rule, value):
        return False
    return CoercionPass(EXACT).limited(coerce_present, rule, value, None) is not INVALID


def _decoded(walk: CoercionPass, value: Any, where: Where) -> Any:
    """Return the container in a JSON string, or the value itself."""
    text = to_builtin(value)
    if type(text) is not str:
        return value
    text = unfenced(text)
    if text.lstrip(BLANKS)[:1] not in ("{", "["):
        return value
    if len(text) > walk.text_left:
        raise walk.too_much_text(where)
    walk.charge(where, text)
    try:
        return parse_json(text, walk.nodes_left)
    except NotJSON:
        return value


def _tagged(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> tuple[Any, Any] | None:
    """Return the map alternative that the discriminator of a map selects, or None if there is no discriminator.

    If the discriminator is missing and no alternative can do without it, or if it has no valid value, this is recorded
    and the alternative is None.
    """
    name = rule.discriminator
    cls = type(value)
    if not name or not (cls is dict or (walk.terms.mode != "strict" and issubclass(cls, dict))):
        return None
    maps = [each for each in rule.any_of if each.type in VALUES]
    tags = {id(each): next(key for key in each.keys if key.name == name) for each in maps}
    found = to_builtin(entry(value, name))
    may_be_other = any(TYPES[each.type].accepts_objects for each in rule.any_of)
    if any(tag.nullable and _may_be_none(tag, found) for tag in tags.values()):
        return None
    if found is None:
        if may_be_other or any(not tag.required for tag in tags.values()):
            return None
        choices = tuple(choice for tag in tags.values() for choice in tag.choices)
        walk.note((where, name), Rejection(MISSING.code, format_choices(choices)), "nothing")
        return None, value
    for exactly in (True,) if may_be_other else (True, False):
        for alternative in maps:
            if _selects(walk, tags[id(alternative)], found, exactly):
                return alternative, value
    if may_be_other:
        return None
    choices = tuple(choice for tag in tags.values() for choice in tag.choices)
    walk.note((where, name), Rejection("coercion.choice", format_choices(choices)), f"another {type_name(found)}")
    return None, value


def _may_be_none(tag: Rule, found: Any) -> bool:
    return found is None or (not tag.holds_text and type(found) is str and found in ("", "null"))


def _selects(walk: CoercionPass, tag: Rule, found: Any, exactly: bool) -> bool:
    if exactly:
        return any(type(choice) is type(found) and choice == found for choice in tag.choices)
    return _Trial(walk, walk.terms).attempt(tag, found, None) is not INVALID


def _chosen(walk: CoercionPass, alternative: Rule, value: Any, where: Where) -> Any:
    """Coerce by one alternative; its problems are those of the union."""
    before = walk.noted
    try:
        return coerce_present(walk, alternative, value, where)
    finally:  # a limit may end the pass after other problems
        if walk.noted > before:
            walk.choose(where, alternative)


def _strict_order(walk: CoercionPass, rule: Rule, value: Any) -> Iterator[Rule]:
    """Yield the alternatives to try strictly, those that the type of the value excludes left out."""
    return (each for each in rule.any_of if _may_fit(each, value))


def _may_fit(rule: Rule, value: Any) -> bool:
    """Return whether the type of a value does not already exclude a rule."""
    cls = type(value)
    if cls is dict:
        return rule.type not in ELEMENTS and not rule.format
    return cls is not list or (rule.type not in VALUES and not rule.format)


def _first_strict(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    """Return the exact value and the trial of the first alternative that a value strictly is, or None."""
    strict = _strict_terms(walk.terms) if walk.terms.mode == "lax" else walk.terms
    lax = _lax_terms(walk)
    text = to_builtin(value)
    for alternative in _strict_order(walk, rule, value):
        if type(text) is str and lax is not None and _is_plain_text(alternative):
            read = _first_format(walk, lax, rule, alternative, text, where)
            if read is not None:
                return read
            value = text
        trial = _Trial(walk, strict)
        result = trial.attempt(alternative, value, where)
        if result is not INVALID:
            return result, trial
    return None


@lru_cache(maxsize=32)
def _strict_terms(terms: CoercionSettings) -> CoercionSettings:
    return attrs.evolve(terms, mode="strict", adapters=())


def _is_plain_text(rule: Rule) -> bool:
    return rule.type is ArgType.STRING and not rule.choices and not rule.format


def _first_format(walk: CoercionPass, lax: CoercionSettings, rule: Rule, until: Rule, text: str, where: Where) -> Any:
    """Return the canonical text and the trial of the first format before *until* that can read a string, or None."""
    for alternative in rule.any_of:
        if alternative is until:
            return None
        if alternative.format:
            trial = _Trial(walk, lax)
            result = trial.attempt(alternative, text, where)
            if result is not INVALID:
                return result, trial
    return None


def _first_repaired(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    """Return the exact value and the trial of the alternative that can repair a value, or None."""
    found: list[tuple[Rule, Any, _Trial]] = []
    for alternative in rule.any_of:
        trial = _Trial(walk, walk.terms)
        result = trial.attempt(alternative, value, where)
        if result is not INVALID:
            found.append((alternative, result, trial))
            if alternative.type is not ArgType.BOOL:
                break
    if not found:
        return None
    others = [each for each in found if each[0].type in NUMBER_TYPES]
    _, result, trial = others[0] if others and found[0][0].type is ArgType.BOOL else found[0]
    return result, trial


def _refused(walk: CoercionPass, rule: Rule, value: Any, where: Where) -> Any:
    """Record that no alternative fits: with the problems of the only one of the same shape, or of the whole union."""
    cls = type(value)
    kinds: Any = VALUES if issubclass(cls, dict) else ELEMENTS if issubclass(cls, (list, tuple)) else ()
    shaped = [each for each in rule.any_of if each.type in kinds]
    if len(shaped) == 1 and walk.describes:
        return _chosen(walk, shaped[0], value, where)
    return walk.note(where, Rejection("coercion.type", rule_phrase(rule), _hint(rule)), type(value))


def _hint(rule: Rule) -> str:
    choices = tuple(choice for each in rule.any_of for choice in each.choices)
    return f"choose {format_choices(choices)}" if choices and all(each.choices for each in rule.any_of) else ""
