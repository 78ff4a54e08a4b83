"""How a tool is served as a resource or as a prompt, such as over MCP, and URI templates with their matching."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote_to_bytes

import attrs

from neuroscript.coercion.parameters import (
    FLAG,
    STRING,
    field_problems,
    instance,
    mapping_form,
    optional,
    require,
    require_fields,
)
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted

if TYPE_CHECKING:
    from neuroscript.spec.tool_spec import ToolSpec

MAX_URI_CHARS: Final = 2_000
"""Maximum length of a URI or a template, in characters."""

SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:(?=.)")
LITERAL: Final = re.compile(r"[!-~]*")
EXPRESSION: Final = re.compile(r"\{(\+?)([A-Za-z0-9_]+)\}")
MEDIA_TYPE: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!-~][ -~]*")


@attrs.frozen
class Resource:
    """The URI under which a tool is served as a resource: reading the resource calls the tool.

    Attributes:
        uri: A URI, or a URI template with an expression for each argument: ``{name}`` for one part of a path, or
            ``{+name}`` for a value that may contain ``/``. See RFC 6570.
        title: The name for people.
        media_type: The media type of the result. By default it is ``text/plain`` for a string, ``application/json``
            for other plain data, and detected for bytes.
        subscribable: Whether clients may subscribe to changes. The server then reads the resource regularly.
        as_tool: Whether the tool is also offered to models as a tool.

    Raises:
        SpecError: With every problem of the URI and the other fields.
    """

    uri: str
    title: str = attrs.field(default="", kw_only=True)
    media_type: str = attrs.field(default="", kw_only=True)
    subscribable: bool = attrs.field(default=False, kw_only=True)
    as_tool: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        forms = {"title": STRING, "media_type": STRING, "subscribable": FLAG, "as_tool": FLAG}
        require_fields("resource", self, uri=STRING, **forms)
        faults = list(_uri_faults(self.uri))
        if self.media_type and not MEDIA_TYPE.fullmatch(self.media_type):
            faults.append("media_type must be a media type, such as text/markdown")
        if faults:
            raise SpecError(f"resource {quote_untrusted(self.uri)}", faults)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables of the template, in order; empty for a URI without expressions."""
        return tuple(name for _, name in EXPRESSION.findall(self.uri))

    def expand(self, values: Mapping[str, str]) -> str:
        """Return the URI for a value of each variable.

        Raises:
            SpecError: A variable has no value.

        >>> Resource("notes://{name}").expand({"name": "a/b"})
        'notes://a%2Fb'
        """
        require("resource", values=(values, mapping_form(STRING, "strings")))
        missing = [name for name in self.variables if name not in values]
        if missing:
            raise SpecError("resource", [f"values must have a value for {{{name}}}" for name in missing])
        return EXPRESSION.sub(lambda found: quote(values[found[2]], safe="/" if found[1] else ""), self.uri)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded value of each variable in a URI of this template, or None if the URI does not match.

        A variable ends where the text that follows it in the template occurs first, so the time is linear.

        >>> Resource("notes://{name}").match("notes://a%2Fb")
        {'name': 'a/b'}
        """
        require("resource", uri=(uri, STRING))
        if len(uri) > MAX_URI_CHARS:
            return None
        first, *pieces = self._pieces
        if not uri.startswith(first) or (not pieces and uri != first):
            return None
        values: dict[str, str] = {}
        start = len(first)
        for index in range(0, len(pieces), 3):
            plus, name, after = pieces[index : index + 3]
            is_last = index + 3 == len(pieces)
            end = len(uri) - len(after) if is_last else uri.find(after, start)
            value = _decoded(uri[start:end], plus) if start < end and uri.startswith(after, end) else None
            if value is None:
                return None
            values[name] = value
            start = end + len(after)
        return values

    @property
    def _pieces(self) -> list[str]:
        """The text before the first expression, then for each its operator, its name and the text after it."""
        return EXPRESSION.split(self.uri)


def _uri_faults(uri: str) -> Iterator[str]:
    if len(uri) > MAX_URI_CHARS:
        yield f"a URI has at most {MAX_URI_CHARS} characters"
        return
    first, *pieces = EXPRESSION.split(uri)
    texts = [first, *pieces[2::3]]
    if not SCHEME.match(uri) or not SCHEME.match(f"{first}x"):
        yield "must begin with a scheme, such as notes:"
    if any("{" in text or "}" in text for text in texts):
        yield "an expression must be {name} or {+name}, with letters, digits and _"
    if not all(map(LITERAL.fullmatch, texts)):
        yield "must consist of printable ASCII characters without spaces; encode others with %"
    if "" in texts[1:-1]:
        yield "two expressions must have text between them"
    names = pieces[1::3]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"{{{name}}} occurs more than once"


def _decoded(text: str, plus: str) -> str | None:
    """Return the value of a variable, or None if the text contains characters that must be encoded, or no UTF-8."""
    if not plus and any(each in text for each in "/?#"):
        return None
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return None


@attrs.frozen
class Prompt:
    """A tool is served as a prompt: a user chooses it and its arguments, and its result is sent to a model.

    The result is a string, the message of the user; or a list of messages, each a map of ``role`` (``user`` or
    ``assistant``) and ``content``.

    Attributes:
        title: The name for people.
        as_tool: Whether the tool is also offered to models as a tool.
    """

    title: str = attrs.field(default="", kw_only=True)
    as_tool: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        require_fields("prompt", self, title=STRING, as_tool=FLAG)


def served_faults(spec: ToolSpec) -> Iterator[str]:
    """Yield the problems of how a tool is served."""
    faults = list(field_problems(spec, resource=optional(instance(Resource)), prompt=optional(instance(Prompt))))
    if faults:
        yield from faults
        return
    if spec.resource is not None and spec.prompt is not None:
        yield "a tool is served as a resource or as a prompt, not as both"
    if spec.variadic:
        yield "a tool that is served as a resource or as a prompt cannot be variadic"
    if spec.resource is not None:
        variables, names = spec.resource.variables, {arg.name for arg in spec.args}
        yield from (f"resource: {{{name}}} is not an argument" for name in variables if name not in names)
        for arg in spec.args:
            if arg.required and arg.name not in variables:
                yield f"resource: the argument {arg.name} is required; add {{{arg.name}}} to the URI, or a default"
