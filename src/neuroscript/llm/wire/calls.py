"""What stands in an object that should be a call; what is missing or of another kind is named, its value never.

An id may be missing, for there are servers that give none. Arguments may be missing where nothing else stands beside
the name that could have been meant as them, so that none are ever dropped.

Source: contract section 6; peers.md part 0.1, "unknown extra arg silently dropped".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import ArgumentError, Problem
from neuroscript.runtime.interfaces import ToolCall

IDLE: Final = frozenset({"id", "call_id", "index", "name", "status", "type"})
"""Members beside which arguments may be missing."""

ARGUMENTS: Final = "a map, a list or JSON text"


@attrs.frozen
class Member:
    """A place in the object: the map that holds it, its key there, and the key of that map itself, if it is within one.

    Attributes:
        holder: The map.
        key: The key.
        within: The key of the map, for errors, or ``""``.
        required: Whether it must be there.
    """

    holder: Mapping[str, Any]
    key: str
    within: str = attrs.field(default="", kw_only=True)
    required: bool = attrs.field(default=False, kw_only=True)

    @property
    def value(self) -> Any:
        """What stands there, None where nothing does."""
        return self.holder.get(self.key)

    def problem(self, expected: str) -> Problem:
        """Return what is wrong with it, if it is not what was *expected*."""
        where = f"{self.within}['{self.key}']" if self.within else self.key
        if self.value is None:
            return Problem(where, "arg.missing", expected, "None" if self.key in self.holder else "nothing")
        return Problem(where, "arg.type", expected, "an empty text" if self.value == "" else type_name(self.value))


def inner(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the map that stands under *key*.

    Raises:
        ArgumentError: There is none, or it is something else.
    """
    member = Member(data, key)
    if not isinstance(member.value, Mapping):
        raise ArgumentError([member.problem("a map with the call")])
    return member.value


def call_of(*, id: Member, name: Member, arguments: Member) -> ToolCall:
    """Return the call whose parts stand at these places.

    Raises:
        ArgumentError: With everything that is missing or of another kind.
    """
    problems = [*_id_problems(id), *_name_problems(name), *_argument_problems(arguments)]
    if problems:
        raise ArgumentError(problems)
    return ToolCall(name.value, () if arguments.value is None else arguments.value, id=id.value or "")


def _id_problems(id: Member) -> Iterator[Problem]:
    if not isinstance(id.value, str) and (id.required or id.value is not None):
        yield id.problem("string")


def _name_problems(name: Member) -> Iterator[Problem]:
    if not isinstance(name.value, str) or not name.value:
        yield name.problem("the name of a tool")


def _argument_problems(arguments: Member) -> Iterator[Problem]:
    if arguments.key not in arguments.holder:
        if not IDLE.issuperset(arguments.holder):
            yield arguments.problem(ARGUMENTS)
    elif arguments.value is not None and not isinstance(arguments.value, (Mapping, list, tuple, str)):
        yield arguments.problem(ARGUMENTS)
