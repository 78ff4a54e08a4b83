"""Conditions of a plan as data: a reference to a boolean, a comparison, or a combination of conditions.

``when = "${check.ok}"``, ``when = { value = "${count}", above = 3 }``, ``when = { failed = "fetch" }``,
``when = { any = [...] }``. No string of a plan is ever executed as code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.io.text import quote_untrusted
from neuroscript.workflow.plan.references import MAX_DEPTH, Reference, Template, TooDeep

NUMBERS: Final = (int, float)

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "equals": lambda value, other: _equal(value, other),
    "ne": lambda value, other: not _equal(value, other),
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
    "in": lambda value, others: _contains(others, value),
    "contains": lambda value, other: _contains(value, other),
    "empty": lambda value, wanted: (len(value) == 0) is wanted,
}
ORDERED: Final = frozenset({"above", "at_least", "below", "at_most"})
STATES: Final = ("succeeded", "failed", "skipped")
"""The ways a node may have ended that a condition can test."""

FORMS: Final = (
    f"expected a reference, a table with value and one of {', '.join(COMPARISONS)}, "
    f"a table with one of {', '.join(STATES)} and a node, or a table with all, any or not"
)


class ComparisonError(Exception):
    """A condition whose values cannot be compared; the message names types, never a value."""


@attrs.frozen(eq=False, repr=False)
class Condition:
    """The condition of a node.

    Attributes:
        word: ``is``, a comparison, a state, ``all``, ``any`` or ``not``.
        operands: Templates, conditions, or the name of a node.
        references: Each reference in it with its path.
        nodes: The nodes whose status it tests.
    """

    word: str
    operands: tuple[Any, ...]
    references: tuple[tuple[str, Reference], ...] = ()
    nodes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Any, where: str, faults: list[str]) -> Condition:
        """Return the condition in plain data; problems are added to *faults*."""
        try:
            return cls._of(data, where, faults, 0)
        except TooDeep:
            faults.append(f"{where}: nests deeper than {MAX_DEPTH} levels")
            return cls("is", (Template(True),))

    @classmethod
    def _of(cls, data: Any, where: str, faults: list[str], depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise TooDeep
        match data:
            case bool():
                return cls("is", (Template(data),))
            case str():
                return _truth(data, where, faults)
            case {"all": list() as parts, **rest} | {"any": list() as parts, **rest} if not rest and parts:
                word = next(iter(data))
                parts = [cls._of(each, f"{where}.{word}[{n}]", faults, depth + 1) for n, each in enumerate(parts)]
                return _several(word, parts)
            case {"not": part, **rest} if not rest:
                return _several("not", [cls._of(part, f"{where}.not", faults, depth + 1)])
            case {"value": value, **rest} if len(rest) == 1 and (word := next(iter(rest))) in COMPARISONS:
                templates = (
                    Template.of(value, f"{where}.value", faults),
                    Template.of(rest[word], f"{where}.{word}", faults),
                )
                return cls(word, templates, (*templates[0].references, *templates[1].references))
            case Mapping() if len(data) == 1 and (word := next(iter(data))) in STATES and type(data[word]) is str:
                return cls(word, (data[word],), nodes=(data[word],))
            case _:
                faults.append(f"{where}: {FORMS}")
                return cls("is", (Template(True),))

    def holds(self, lookup: Callable[[Reference], Any], state: Callable[[str], str]) -> bool:
        """Return whether the condition is true.

        Args:
            lookup: Returns the value of a reference, or raises `UnresolvedReference`.
            state: Returns the status of a node.

        Raises:
            Lost: If a reference has no value.
            Undecided: If values cannot be compared.
        """
        match self.word:
            case "all":
                return all(part.holds(lookup, state) for part in self.operands)
            case "any":
                return any(part.holds(lookup, state) for part in self.operands)
            case "not":
                return not self.operands[0].holds(lookup, state)
            case word if word in STATES:
                return state(self.operands[0]) == word
            case "is":
                return _true(self.operands[0].fill(lookup))
            case word:
                return _compared(word, self.operands[0].fill(lookup), self.operands[1].fill(lookup))


def _truth(text: str, where: str, faults: list[str]) -> Condition:
    template = Template.of(text, where, faults)
    if not isinstance(template.value, Reference) and not any(fault.startswith(f"{where}: ") for fault in faults):
        faults.append(f"{where}: {FORMS}")
    return Condition("is", (template,), template.references)


def _several(word: Literal["all", "any", "not"] | str, parts: list[Condition]) -> Condition:
    references = tuple(each for part in parts for each in part.references)
    return Condition(word, tuple(parts), references, tuple(name for part in parts for name in part.nodes))


def _true(value: Any) -> bool:
    if type(value) is not bool:
        raise ComparisonError(f"expected true or false, got {type_name(value)}")
    return value


def _compared(word: str, value: Any, other: Any) -> bool:
    if word in ORDERED and not _have_order(value, other):
        raise ComparisonError(
            f"{word} compares two numbers or two strings, got {type_name(value)} and {type_name(other)}"
        )
    if word == "empty" and type(other) is not bool:
        raise ComparisonError(f"empty must be true or false, got {type_name(other)}")
    try:
        return bool(COMPARISONS[word](value, other))
    except TypeError:
        text = f"{quote_untrusted(word)} does not support {type_name(value)} and {type_name(other)}"
        raise ComparisonError(text) from None


def _equal(value: Any, other: Any) -> bool:
    """Return whether two values are equal at every level; a boolean never equals a number."""
    if type(value) is list and type(other) is list:
        return len(value) == len(other) and all(map(_equal, value, other))
    if type(value) is dict and type(other) is dict:
        return value.keys() == other.keys() and all(_equal(each, other[key]) for key, each in value.items())
    return bool(value == other) and (type(value) is bool) == (type(other) is bool)


def _contains(whole: Any, part: Any) -> bool:
    return any(_equal(each, part) for each in whole) if type(whole) is list else part in whole


def _have_order(value: Any, other: Any) -> bool:
    if type(value) in NUMBERS and type(other) in NUMBERS:
        return True
    return type(value) is str and type(other) is str
