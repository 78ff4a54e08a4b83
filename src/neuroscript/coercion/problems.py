"""The recorded problems of a pass as `Problem` objects, each with the full rule for its place and a similar name.

The messages are built when the problems are first read, because most callers never read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import attrs

from neuroscript.coercion.context import (
    BOUNDS,
    CHOICE,
    MISSING,
    ROOT,
    UNKNOWN,
    CoercionPass,
    KeyItself,
    Where,
    name_of,
    place,
)
from neuroscript.coercion.rule_text import (
    Rule,
    expected_element,
    expected_names,
    expected_text,
    expected_values,
    format_choice,
)
from neuroscript.coercion.scalars import Rejection
from neuroscript.coercion.types import ELEMENTS, LISTS, ArgType, type_phrase
from neuroscript.errors import MAX_LISTED_PROBLEMS, CoercionError, Problem
from neuroscript.io.near_names import NearNames

_GOT: Final = {
    UNKNOWN.code: "an unknown name of type {}",
    CHOICE.code: "another {}",
    BOUNDS.code: "{} out of bounds",
}
"""The text for what was received, by error code; it wraps the type name."""


@attrs.frozen(eq=False, repr=False)
class Rules:
    """The rules that apply to a pass.

    Attributes:
        args: The arguments of a call; empty if the pass covered a single value.
        whole: The rule of that single value.
        further: The rule for each trailing value of a variadic tool.
    """

    args: Sequence[Rule] = ()
    whole: Rule | None = None
    further: Rule | None = None


def value_error(walk: CoercionPass, rule: Rule | None = None) -> CoercionError:
    """Return the error for one value that does not fit its rule or its type."""
    return CoercionError(partial(problems_of, walk, Rules(whole=rule)), found=walk.noted)


def sentences(walk: CoercionPass, rule: Rule | None = None, subject: str = "") -> list[str]:
    """Return the problems of one value, at most `MAX_LISTED_PROBLEMS`, and how many more there are.

    Args:
        subject: The name of the value; precedes each place in it.
    """
    problems = [each._replace(where=f"{subject}{each.where}") for each in problems_of(walk, Rules(whole=rule))]
    listed = [*map(str, problems[:MAX_LISTED_PROBLEMS])]
    return [*listed, f"and {walk.noted - MAX_LISTED_PROBLEMS} more"] if walk.noted > MAX_LISTED_PROBLEMS else listed


def problems_of(walk: CoercionPass, rules: Rules) -> list[Problem]:
    """Return the problems recorded in a pass, in order, at most `MAX_PROBLEMS`."""
    words = _Words(rules, walk.chosen)
    return [words.problem(*note) for note in walk.notes]


class _Words:
    """The rules for each place of one pass, with an index of the names at each place."""

    def __init__(self, rules: Rules, chosen: Mapping[Where, Any]) -> None:
        self._rules = rules
        self._chosen = chosen
        self._near: dict[int, NearNames] = {}

    def problem(self, where: Where, misfit: Rejection, got: str | type) -> Problem:
        """Return a recorded problem as a `Problem`."""
        received = got if type(got) is str else _GOT.get(misfit.code, "{}").format(name_of(got))
        if misfit.code == UNKNOWN.code and where is not None:
            return self._unknown(where, received)
        found = self._at(where)
        hint = "" if found.is_secret and misfit.code == CHOICE.code else misfit.hint
        return Problem(place(where), misfit.code, _expected(found, misfit), received, hint)

    def _unknown(self, where: tuple[Any, object], got: str) -> Problem:
        names = self._names(self._at(where[0]).rule)
        near = names.near(str(where[1]))
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        return Problem(place(where), UNKNOWN.code, expected_names(names.names), got, hint)

    def _names(self, rule: Rule | None) -> NearNames:
        """Return the names that are valid here: the keys of a rule, or the arguments of the call."""
        found = self._near.get(id(rule))
        if found is None:
            rules = self._rules.args if rule is None else rule.keys
            found = self._near[id(rule)] = NearNames(each.name for each in rules)
        return found

    def _at(self, where: Where) -> _Place:
        """Return the rule for a place."""
        steps = _steps(where)
        rule, at = self._rules.whole, ROOT
        if rule is None and steps:
            at, name = steps.pop(0)
            rule = next((each for each in self._rules.args if each.name == name), None)
        if rule is not None and rule is self._rules.further:
            if not steps:
                return _Place(rule, "values", rule.secret)
            at, _ = steps.pop(0)
        return _within(rule, steps, self._chosen, at)


@attrs.frozen(eq=False, repr=False)
class _Place:
    """The rule for a place.

    Attributes:
        part: ``element`` for an element of a list, ``values`` for all trailing values, or ``""`` for the value itself.
        is_secret: Whether the place is inside a secret value.
    """

    rule: Rule | None
    part: str = ""
    is_secret: bool = False


def _within(rule: Rule | None, steps: Sequence[tuple[Where, object]], chosen: Mapping[Where, Any], at: Where) -> _Place:
    """Return the rule for a place within a value.

    Args:
        steps: The steps from the value to the place, each with the place that it leads to.
        chosen: The alternative whose problems were recorded, by the place of its union.
        at: The place of the value.
    """
    part, is_secret = "", rule is not None and rule.secret
    rule = _alternative(rule, chosen, at)
    for inside, step in steps:
        if rule is None:
            break
        rule, part = _part(rule, step, part)
        is_secret = is_secret or (rule is not None and rule.secret)
        rule = _alternative(rule, chosen, inside)
    return _Place(rule, part, is_secret)


def _alternative(rule: Rule | None, chosen: Mapping[Where, Any], at: Where) -> Rule | None:
    while rule is not None and rule.any_of and at in chosen and chosen[at] in rule.any_of:
        rule = chosen[at]
    return rule


def _part(rule: Rule, step: object, part: str) -> tuple[Rule | None, str]:
    """Return the rule for an item, key or value, and whether the rule describes an element of it."""
    if rule.type in ELEMENTS and not part:
        if rule.prefix_items:
            return (rule.prefix_items[step] if type(step) is int and step < len(rule.prefix_items) else None), ""
        return (rule, "element") if rule.items is None else (rule.items, "")
    if type(step) is KeyItself:
        return rule.key_spec, ""
    key = next((key for key in rule.keys if key.name == step), None)
    return (rule.value_spec if key is None else key), ""


def _expected(found: _Place, misfit: Rejection) -> str:
    """Return the full rule if the fault names only the type, otherwise the text of the fault."""
    rule = found.rule
    if rule is None:
        return misfit.expected
    if misfit.expected not in ("", type_phrase(_kind(found))) and not (rule.is_refined and misfit.code in _BY_RULE):
        return misfit.expected
    match found.part:
        case "values":
            return f"at least one {expected_text(rule)}" if misfit.code == MISSING.code else expected_values(rule)
        case "element":
            return expected_element(rule)
    return expected_text(rule)


_BY_RULE: Final = frozenset({"coercion.type", "coercion.format", "coercion.null_element"})
"""Faults of refined rules for which the rule says more than the fault."""


def _kind(found: _Place) -> ArgType:
    """Return the type that a fault at this place names."""
    assert found.rule is not None
    kind = found.rule.type
    if found.part == "values":
        return LISTS.get(kind, ArgType.SLICE_ANY)
    return ELEMENTS[kind] if found.part == "element" else kind


def _steps(where: Where) -> list[tuple[Where, object]]:
    """Return the places from the outermost to *where*, each with its name, key or index."""
    steps: list[tuple[Where, object]] = []
    while where is not None and where is not ROOT:
        steps.append((where, where[1]))
        where = where[0]
    return steps[::-1]


def near_choice(rule: Rule, value: object) -> str:
    """Return a suggestion for the choice that is spelled like *value*, or ``""``."""
    if type(value) is not str:
        return ""
    choices = tuple([each for each in rule.choices if type(each) is str])  # an invalid spec may have other types
    near = _index_of(choices).near(value)
    return f"did you mean {format_choice(near[0])}?" if near else ""


@lru_cache(maxsize=64)
def _index_of(choices: tuple[str, ...]) -> NearNames:
    return NearNames(choices)
