"""Validation of tool calls in API responses. Errors name the member that is wrong and never contain its value.

An id may be missing, because some servers send none. Arguments may be missing only if no other member could have been
meant as arguments, so that none are dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import ArgumentError, Problem
from neuroscript.runtime.interfaces import ToolCall

OPTIONAL_FIELDS: Final = frozenset({"id", "call_id", "index", "name", "status", "type"})
"""Members that cannot be meant as arguments."""

ARGUMENTS: Final = "a map, a list or JSON text"


@attrs.frozen
class CallField:
    """A member of an object in a response.

    Attributes:
        holder: The map that holds the member.
        key: The member's key.
        within: The key of *holder* itself, for errors, or ``""``.
        required: Whether the member must be present.
    """

    holder: Mapping[str, Any]
    key: str
    within: str = attrs.field(default="", kw_only=True)
    required: bool = attrs.field(default=False, kw_only=True)

    @property
    def value(self) -> Any:
        """The member's value, or None if it is missing."""
        return self.holder.get(self.key)

    def problem(self, expected: str) -> Problem:
        """Return the problem of a member that is not what was *expected*."""
        where = f"{self.within}['{self.key}']" if self.within else self.key
        if self.value is None:
            return Problem(where, "arg.missing", expected, "None" if self.key in self.holder else "nothing")
        return Problem(where, "arg.type", expected, "an empty string" if self.value == "" else type_name(self.value))


def inner(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the map under *key*.

    Raises:
        ArgumentError: If it is missing or not a map.
    """
    member = CallField(data, key)
    if not isinstance(member.value, Mapping):
        raise ArgumentError([member.problem("a map with the call")])
    return member.value


def call_of(*, id: CallField, name: CallField, arguments: CallField) -> ToolCall:
    """Return the call that consists of these members.

    Raises:
        ArgumentError: With every member that is missing or has the wrong type.
    """
    problems = [*_id_problems(id), *_name_problems(name), *_argument_problems(arguments)]
    if problems:
        raise ArgumentError(problems)
    return ToolCall(name.value, () if arguments.value is None else arguments.value, id=id.value or "")


def _id_problems(id: CallField) -> Iterator[Problem]:
    if not isinstance(id.value, str) and (id.required or id.value is not None):
        yield id.problem("string")


def _name_problems(name: CallField) -> Iterator[Problem]:
    if not isinstance(name.value, str) or not name.value:
        yield name.problem("the name of a tool")


def _argument_problems(arguments: CallField) -> Iterator[Problem]:
    if arguments.key not in arguments.holder:
        if not OPTIONAL_FIELDS.issuperset(arguments.holder):
            yield arguments.problem(ARGUMENTS)
    elif arguments.value is not None and not isinstance(arguments.value, (Mapping, list, tuple, str)):
        yield arguments.problem(ARGUMENTS)
