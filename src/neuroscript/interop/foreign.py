"""Third-party tools as ours: safe descriptions and schemas, tool names, default policies and the arguments to send."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeVar

from neuroscript.coercion.schema_inspection import MANY, MARK, NAMED, ONE, REFUSED, size_faults
from neuroscript.errors import UNSET, SpecError
from neuroscript.io.text import one_line, quote_untrusted, several_lines
from neuroscript.names import to_snake_case
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES
from neuroscript.policy.scopes import literal
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import ArgSpec

MAX_DESCRIPTION_CHARS: Final = 1_000
"""Maximum length of a description, or of a server's error message, in characters."""


TEXT_KEYWORDS: Final = ("description", "title")
"""Schema keywords that contain text for readers."""


KNOWN_KEYWORDS: Final = frozenset(
    {
        *(*ONE, *MANY, *NAMED, *TEXT_KEYWORDS, *REFUSED),
        *("$schema", "$ref", "type", "enum", "const", "default", "format", "pattern", "nullable", "required"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties"),
        *("dependentRequired", "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "deprecated"),
    }
)
"""Keywords that are retained; any other keyword restricts no value, but a model would read its content."""


def message_of(error: BaseException) -> str:
    """Return the message of an exception, or ``""`` if reading it fails."""
    try:
        return str(error)
    except Exception:  # raised by the exception's own __str__
        return ""


def bounded_schema(schema: Any, subject: str) -> Any:
    """Return `plain_schema` of an unchecked schema.

    Args:
        subject: The owner of the schema, for the error.

    Raises:
        SpecError: It is too deep, too large, or not JSON.
    """
    faults = list(size_faults(schema))
    if faults:
        raise SpecError(subject, faults)
    return plain_schema(schema)


def plain_schema(schema: Any, longest: int | None = MAX_DESCRIPTION_CHARS) -> Any:
    """Return an equivalent schema with only known keywords and one-line descriptions.

    Names of properties, choices and defaults are not changed, because they are sent to the tool.

    Args:
        longest: The maximum length of a description, in characters. None for a schema that the host has accepted:
            descriptions are then complete, with their lines, and unknown keywords stay.
    """
    if not isinstance(schema, dict):
        return schema
    words = KNOWN_KEYWORDS if longest is not None else schema.keys() - {MARK}
    return {word: _safe_value(word, each, longest) for word, each in schema.items() if word in words}


def safe_text(text: object, longest: int | None) -> str:
    """Return untrusted text on one line and shortened, or with its lines if *longest* is None."""
    return several_lines(text) if longest is None else one_line(text, longest)


def _safe_value(word: str, value: Any, longest: int | None) -> Any:
    """Return the safe value of a keyword."""
    match value:
        case str() if word in TEXT_KEYWORDS:
            return safe_text(value, longest)
        case dict() if word in NAMED:
            return {name: plain_schema(each, longest) for name, each in value.items()}
        case list() if word in MANY:
            return [plain_schema(each, longest) for each in value]
        case dict() if word in ONE:
            return plain_schema(value, longest)
        case _:
            return value


class HasName(Protocol):
    """A third-party object with a name."""

    @property
    def name(self) -> str:
        """The name in its own system."""


NamedObject = TypeVar("NamedObject", bound=HasName)


def tools_by_name(
    things: Iterable[tuple[str, NamedObject]], faults: list[str], remedy: str = "leave out all but one"
) -> dict[str, NamedObject]:
    """Return objects by the tool names derived from their labels; record labels that make no name or the same name.

    Args:
        things: Pairs of a label and an object.
        remedy: What to do about objects with the same name, for the error.
    """
    found: dict[str, list[NamedObject]] = {}
    for text, each in things:
        word = to_snake_case(text)
        if word:
            found.setdefault(word, []).append(each)
        else:
            faults.append(f"{quote_untrusted(each.name)}: cannot be used as a name; expected ASCII letters or digits")
    for word, several in found.items():
        if len(several) > 1:
            names = " and ".join(quote_untrusted(each.name) for each in several)
            faults.append(f"{names} have the same name here, {word}; {remedy}")
    return {word: several[0] for word, several in found.items() if len(several) == 1}


def default_policy(system: str, group: str, name: str, trusted: bool) -> ToolPolicy:
    """Return the policy of a tool with unknown effects: it needs ``SYSTEM:call:GROUP/NAME`` and may do anything.

    Args:
        name: Its name in its own system.
        trusted: Whether it is called without approval.
    """
    return ToolPolicy(
        capabilities=(call_capability(system, group, name),),
        effects=("net", "reads", "writes", "deletes"),
        requires_approval=not trusted,
        sources=ALL_SOURCES,
        sinks=ALL_SINKS,
    )


def call_capability(system: str, group: str, name: str) -> str:
    """Return the capability ``SYSTEM:call:GROUP/NAME`` for a tool, with its name in its own system."""
    return f"{system}:call:{literal(f'{group}/{name}')}"


def passed_arguments(args: Iterable[ArgSpec], values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the values by name, without omitted arguments that have no default here: the tool applies its own."""
    pairs = zip(args, values, strict=True)
    return {arg.name: value for arg, value in pairs if value is not None or not _may_stay_away(arg)}


def _may_stay_away(arg: ArgSpec) -> bool:
    return not arg.required and (arg.default is UNSET or not arg.nullable)
