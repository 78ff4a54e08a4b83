"""Conditions of a plan as data: a reference to a truth value, a comparison, or several of them.

``when = "${check.ok}"``, ``when = { value = "${count}", above = 3 }``, ``when = { failed = "fetch" }``,
``when = { any = [...] }``. No text of a plan is ever run as code.

Source: issue "Plans", ``when`` conditions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.io.text import shown
from neuroscript.workflow.plan.references import DEEPEST, Reference, Template, TooDeep

NUMBERS: Final = (int, float)

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "equals": lambda value, other: _same(value, other),
    "differs": lambda value, other: not _same(value, other),
    "above": operator.gt,
    "at_least": operator.ge,
    "below": operator.lt,
    "at_most": operator.le,
    "among": lambda value, others: _holds(others, value),
    "contains": lambda value, other: _holds(value, other),
    "empty": lambda value, wanted: (len(value) == 0) is wanted,
}
ORDERED: Final = frozenset({"above", "at_least", "below", "at_most"})
STATES: Final = ("succeeded", "failed", "skipped")
"""How a node may have ended, which a condition may ask for."""

FORMS: Final = (
    f"a condition is a reference, a table of value and one of {', '.join(COMPARISONS)}, "
    f"a table of one of {', '.join(STATES)} and a node, or a table of all, any or not"
)


class Undecided(Exception):
    """A condition of values that can not be compared; the text names types, never a value."""


@attrs.frozen(eq=False, repr=False)
class Condition:
    """Whether a node runs.

    Attributes:
        word: ``is``, a comparison, a state, ``all``, ``any`` or ``not``.
        operands: What it is about: templates, conditions, or the name of a node.
        references: Where each reference stands in it, and what it is.
        nodes: The nodes whose end it asks for.
    """

    word: str
    operands: tuple[Any, ...]
    references: tuple[tuple[str, Reference], ...] = ()
    nodes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Any, where: str, faults: list[str]) -> Condition:
        """Return the condition that plain data describes; what can not be read is noted."""
        try:
            return cls._of(data, where, faults, 0)
        except TooDeep:
            faults.append(f"{where}: nests more than {DEEPEST} deep")
            return cls("is", (Template(True),))

    @classmethod
    def _of(cls, data: Any, where: str, faults: list[str], depth: int) -> Condition:
        if depth > DEEPEST:
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
        """Return whether it holds.

        Args:
            lookup: Gives what a reference stands for, or raises `Lost`.
            state: Gives how a node has ended.

        Raises:
            Lost: A reference has no value.
            Undecided: What is compared can not be.
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
                return _true(self.operands[0].filled(lookup))
            case word:
                return _compared(word, self.operands[0].filled(lookup), self.operands[1].filled(lookup))


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
        raise Undecided(f"expected true or false, got {type_name(value)}")
    return value


def _compared(word: str, value: Any, other: Any) -> bool:
    if word in ORDERED and not _have_order(value, other):
        raise Undecided(f"{word} compares two numbers or two texts, got {type_name(value)} and {type_name(other)}")
    if word == "empty" and type(other) is not bool:
        raise Undecided(f"empty is true or false, got {type_name(other)}")
    try:
        return bool(COMPARISONS[word](value, other))
    except TypeError:
        text = f"{shown(word)} does not fit {type_name(value)} and {type_name(other)}"
        raise Undecided(text) from None


def _same(value: Any, other: Any) -> bool:
    """Tell whether two values are equal, at every level; a truth value is no number."""
    if type(value) is list and type(other) is list:
        return len(value) == len(other) and all(map(_same, value, other))
    if type(value) is dict and type(other) is dict:
        return value.keys() == other.keys() and all(_same(each, other[key]) for key, each in value.items())
    return bool(value == other) and (type(value) is bool) == (type(other) is bool)


def _holds(whole: Any, part: Any) -> bool:
    return any(_same(each, part) for each in whole) if type(whole) is list else part in whole


def _have_order(value: Any, other: Any) -> bool:
    if type(value) in NUMBERS and type(other) in NUMBERS:
        return True
    return type(value) is str and type(other) is str
