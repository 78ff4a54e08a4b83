"""Texts of a server, made safe to look at before a person or a model does: escaped, on one line, and cut.

Source: issue "MCP", text from outside; contract section 6.

Tools of others as ours: the word of each, what it needs until a host says more, and what a call gives to it.

Source: contract sections 1, 3 and 5; issue "MCP and the frameworks", in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar

from neuroscript.coercion.json_schema import MANY, NAMED, ONE, REFUSED, size_faults
from neuroscript.errors import UNSET, SpecError
from neuroscript.io.text import one_line, shown
from neuroscript.names import word_of
from neuroscript.policy.scopes import literal
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import ArgSpec

LONGEST: Final = 1_000
"""How many characters are kept of a description, or of what a server says of an error."""


NOTES: Final = ("description", "title")
"""Keywords of a schema under which a text for readers stands."""


KEPT: Final = frozenset(
    {
        *(*ONE, *MANY, *NAMED, *NOTES, *REFUSED),
        *("$schema", "$ref", "type", "enum", "const", "default", "format", "pattern", "nullable", "required"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties"),
        *("dependentRequired", "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated"),
    }
)
"""Keywords that are taken; any other asks nothing of a value, and a model would read what stands there."""


def message_of(error: BaseException) -> str:
    """Return what an exception says, ``""`` where that fails in its turn."""
    try:
        return str(error)
    except Exception:  # of the error itself
        return ""


def bounded_schema(schema: Any, subject: str) -> Any:
    """Return `plain_schema` of a schema that nobody has looked at.

    Args:
        subject: Whose schema it is, for the error.

    Raises:
        SpecError: It is too deep, too large, or no JSON.
    """
    faults = list(size_faults(schema))
    if faults:
        raise SpecError(subject, faults)
    return plain_schema(schema)


def plain_schema(schema: Any) -> Any:
    """Return a schema with its known keywords alone, whose texts for readers are such lines; it asks what it asked.

    Names of properties, choices and defaults stay as they are, for they are what is sent.
    """
    if not isinstance(schema, dict):
        return schema
    return {word: _plain(word, each) for word, each in schema.items() if word in KEPT}


def _plain(word: str, value: Any) -> Any:
    """Return what stands under a keyword."""
    match value:
        case str() if word in NOTES:
            return one_line(value, LONGEST)
        case dict() if word in NAMED:
            return {name: plain_schema(each) for name, each in value.items()}
        case list() if word in MANY:
            return [plain_schema(each) for each in value]
        case dict() if word in ONE:
            return plain_schema(value)
        case _:
            return value


class Named(Protocol):
    """What others have given a name."""

    @property
    def name(self) -> str:
        """Its name there."""


Thing = TypeVar("Thing", bound=Named)


def by_word(
    things: Iterable[tuple[str, Thing]], faults: list[str], mending: str = "leave out all but one"
) -> dict[str, Thing]:
    """Return things by the words that their texts make; those without a word, or with that of another, are noted.

    Args:
        things: Each behind the text that it is to be called by here.
        mending: What to do about those that come to one word.
    """
    found: dict[str, list[Thing]] = {}
    for text, each in things:
        word = word_of(text)
        if word:
            found.setdefault(word, []).append(each)
        else:
            faults.append(f"{shown(each.name)}: makes no name of letters and digits of ASCII")
    for word, several in found.items():
        if len(several) > 1:
            names = " and ".join(shown(each.name) for each in several)
            faults.append(f"{names} would all be called {word}; {mending}")
    return {word: several[0] for word, several in found.items() if len(several) == 1}


def unknown_needs(system: str, group: str, name: str, trusted: bool) -> ToolPolicy:
    """Return what a tool needs of which nobody says what it does: ``SYSTEM:call:GROUP/NAME``, and it may do anything.

    Args:
        name: What it is called there.
        trusted: Whether it is called without an approval of each call.
    """
    return ToolPolicy(
        capabilities=(call_need(system, group, name),),
        effects=("net", "reads", "writes", "deletes"),
        requires_approval=not trusted,
    )


def call_need(system: str, group: str, name: str) -> str:
    """Return the need to call the tool that has a name there, ``SYSTEM:call:GROUP/NAME``."""
    return f"{system}:call:{literal(f'{group}/{name}')}"


def given(args: Iterable[ArgSpec], values: tuple[Any, ...]) -> dict[str, Any]:
    """Return exact values by name, without those that were not given and have no default here: those are left to it."""
    pairs = zip(args, values, strict=True)
    return {arg.name: value for arg, value in pairs if value is not None or not _may_stay_away(arg)}


def _may_stay_away(arg: ArgSpec) -> bool:
    return not arg.required and (arg.default is UNSET or not arg.nullable)
