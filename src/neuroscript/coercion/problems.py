"""What a pass over arguments has noted, as problems: each names the whole rule of its place, and a near name.

The wording is made when the problems are read, because most callers never read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final

import attrs

from neuroscript.coercion.context import BOUNDS, CHOICE, MISSING, ROOT, UNKNOWN, Walk, Where, name_of, place
from neuroscript.coercion.rule_text import (
    Rule,
    expected,
    expected_element,
    expected_names,
    expected_values,
    written_choice,
)
from neuroscript.coercion.scalars import Misfit
from neuroscript.coercion.types import ELEMENTS, LISTS, ArgType, worded
from neuroscript.errors import LISTED, CoercionError, Problem
from neuroscript.io.near_names import NearNames

_GOT: Final = {
    UNKNOWN.code: "an unknown name with {}",
    CHOICE.code: "another {}",
    BOUNDS.code: "{} out of bounds",
}
"""What was given, by the code of the fault, around the name of its type."""


@attrs.frozen(eq=False, repr=False)
class Rules:
    """Where the rules of a walk are found.

    Attributes:
        args: The arguments of a call, by name; none where the walk went over one value.
        whole: The rule of that one value.
        further: The rule of each further value of a variadic tool.
    """

    args: Sequence[Rule] = ()
    whole: Rule | None = None
    further: Rule | None = None


def value_error(walk: Walk, rule: Rule | None = None) -> CoercionError:
    """Return the error of one value that does not fit its rule, or its type."""
    return CoercionError(partial(problems_of, walk, Rules(whole=rule)), found=walk.noted)


def sentences(walk: Walk, rule: Rule | None = None, subject: str = "") -> list[str]:
    """Return the problems of one value, at most `LISTED`, and how many more there are.

    Args:
        subject: What the value is called before each place in it.
    """
    problems = [each._replace(where=f"{subject}{each.where}") for each in problems_of(walk, Rules(whole=rule))]
    listed = [*map(str, problems[:LISTED])]
    return [*listed, f"and {walk.noted - LISTED} more"] if walk.noted > LISTED else listed


def problems_of(walk: Walk, rules: Rules) -> list[Problem]:
    """Return what a walk has noted, in its order, at most `MAX_PROBLEMS`."""
    words = _Words(rules)
    return [words.problem(*note) for note in walk.notes]


class _Words:
    """The rules at the places of one walk, with an index of the names at each."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._near: dict[int, NearNames] = {}

    def problem(self, where: Where, misfit: Misfit, got: str | type) -> Problem:
        """Return one note as a problem."""
        told = got if type(got) is str else _GOT.get(misfit.code, "{}").format(name_of(got))
        if misfit.code == UNKNOWN.code and where is not None:
            return self._unknown(where, told)
        found = self._at(where)
        hint = "" if found.is_secret and misfit.code == CHOICE.code else misfit.hint
        return Problem(place(where), misfit.code, _expected(found, misfit), told, hint)

    def _unknown(self, where: tuple[Any, object], got: str) -> Problem:
        rule = None if where[0] is None else self._at(where[0]).rule
        near = self._names(rule).near(str(where[1]))
        hint = f"did you mean {' or '.join(near)}?" if near else ""
        return Problem(place(where), UNKNOWN.code, expected_names(self._names(rule).names), got, hint)

    def _names(self, rule: Rule | None) -> NearNames:
        """Return the names that may be given: the keys of a rule, or the arguments of the call."""
        found = self._near.get(id(rule))
        if found is None:
            rules = self._rules.args if rule is None else rule.keys
            found = self._near[id(rule)] = NearNames(each.name for each in rules)
        return found

    def _at(self, where: Where) -> _Place:
        """Return the rule of a place."""
        steps = _steps(where)
        rule = self._rules.whole
        if rule is None and steps:
            name = steps.pop(0)
            rule = next((each for each in self._rules.args if each.name == name), None)
        if rule is not None and rule is self._rules.further:
            if not steps:
                return _Place(rule, "values", rule.secret)
            steps.pop(0)
        return _within(rule, steps)


@attrs.frozen(eq=False, repr=False)
class _Place:
    """The rule of a place.

    Attributes:
        part: ``element`` of a list of the rule, all further ``values``, or ``""`` for a value of the rule itself.
        is_secret: Whether it is in a secret value.
    """

    rule: Rule | None
    part: str = ""
    is_secret: bool = False


def _within(rule: Rule | None, steps: Sequence[object]) -> _Place:
    part, is_secret = "", rule is not None and rule.secret
    for step in steps:
        if rule is None:
            break
        if rule.type in ELEMENTS and not part:
            part = "element"
        else:
            rule, part = next((key for key in rule.keys if key.name == step), None), ""
            is_secret = is_secret or (rule is not None and rule.secret)
    return _Place(rule, part, is_secret)


def _expected(found: _Place, misfit: Misfit) -> str:
    """Return the whole rule if a fault names only the type, else what the fault says."""
    rule = found.rule
    if rule is None:
        return misfit.expected
    if misfit.expected not in ("", worded(_kind(found))):
        return misfit.expected
    match found.part:
        case "values":
            return f"at least one {expected(rule)}" if misfit.code == MISSING.code else expected_values(rule)
        case "element":
            return expected_element(rule)
    return expected(rule)


def _kind(found: _Place) -> ArgType:
    """Return the type that a fault at a place names."""
    assert found.rule is not None
    kind = found.rule.type
    if found.part == "values":
        return LISTS.get(kind, ArgType.SLICE_ANY)
    return ELEMENTS[kind] if found.part == "element" else kind


def _steps(where: Where) -> list[object]:
    """Return the names, keys and indexes that lead to a place, from the outermost in."""
    steps: list[object] = []
    while where is not None and where is not ROOT:
        where, step = where
        steps.append(step)
    return steps[::-1]


def near_choice(rule: Rule, value: object) -> str:
    """Return a hint at the choice that is spelled like a string, or ``""``."""
    if type(value) is not str:
        return ""
    near = _index_of(tuple([each for each in rule.choices if type(each) is str])).near(
        value
    )  # a faulty spec has others
    return f"did you mean {written_choice(near[0])}?" if near else ""


@lru_cache(maxsize=64)
def _index_of(choices: tuple[str, ...]) -> NearNames:
    return NearNames(choices)
