"""The parameters of an operation: their place in a request, their serialization and their arguments.

See the OpenAPI Specification 3.1.1, "Parameter Object".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

import attrs

from neuroscript.interop.openapi.document import MOVED, Document, InvalidPart, Problems, at
from neuroscript.interop.openapi.names import Operation, argument_name
from neuroscript.interop.openapi.parameter_styles import STYLES, Style, Where
from neuroscript.interop.openapi.schemas import MAX_DESCRIPTION_CHARS, Schemas, kinds_of
from neuroscript.interop.openapi.security import CLIENT_HEADERS, TOKEN, Credential
from neuroscript.interop.openapi.servers import has_dots
from neuroscript.io.text import one_line, quote_untrusted

IGNORED: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers for which OpenAPI ignores parameters; see "Fixed Fields" of "Parameter Object"."""

SLOT: Final = re.compile(r"\{([^{}]*)\}")
LITERAL: Final = re.compile(r"[A-Za-z0-9/:@!$&'()*+,;=~._%-]*")
"""The characters allowed in a path outside its parameters."""


@attrs.frozen
class Parameter:
    """One parameter.

    Attributes:
        where: The part of the request that contains it.
        style: How it is serialized.
        required: Whether the argument is required.
        schema: The schema of the argument.
    """

    where: Where
    style: Style
    required: bool
    schema: dict[str, Any] = attrs.field(eq=False)

    @property
    def arg(self) -> str:
        """The name of the argument."""
        return self.style.arg


def parameters_of(
    document: Document,
    operation: Operation,
    schemas: Schemas,
    credentials: tuple[Credential, ...],
    notes: Problems,
) -> tuple[Parameter, ...]:
    """Return the parameters of an operation and its path item; record what is wrong with them.

    A parameter that a credential of the host already sets is left out.
    """
    given = {(each.where, each.name.lower() if each.where == "header" else each.name) for each in credentials}
    found = []
    for path, data in _merged(document, operation, notes):
        where, name = data["in"], data["name"]
        key = name.lower() if where == "header" else name
        if (where == "header" and key in IGNORED) or (where, key) in given:
            continue
        try:
            found.append(_parameter(document, data, path, schemas))
        except InvalidPart as error:
            notes.add(error.path, error.text)
    named = tuple(_told_apart(found, operation.path, notes))
    _hold_to_route(operation, named, notes)
    return named


def _merged(document: Document, operation: Operation, notes: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each parameter with its path; a parameter of the operation overrides the same one of the path item."""
    merged: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    levels = (operation.item, operation.path.rpartition(".")[0]), (operation.data, operation.path)
    for holder, path in levels:
        listed = holder.get("parameters", [])
        if not isinstance(listed, list):
            notes.add(at(path, "parameters"), "expected a list")
            continue
        seen = set()
        for index, each in enumerate(listed):
            if each is MOVED:
                continue
            place = at(path, "parameters", index)
            try:
                data = document.followed(each, place)
            except InvalidPart as error:
                notes.add(error.path, error.text)
                continue
            where, name = data.get("in"), data.get("name")
            if not isinstance(where, str) or where not in STYLES or not isinstance(name, str) or not name:
                notes.add(place, "expected a name, and in: path, query, header or cookie")
                continue
            key = where, name.lower() if where == "header" else name
            if key in seen:
                notes.add(place, "the same parameter is listed twice")
            seen.add(key)
            merged[key] = place, data
    yield from merged.values()


def _parameter(document: Document, data: dict[str, Any], path: str, schemas: Schemas) -> Parameter:
    where = cast(Where, data["in"])
    name = data["name"]
    if where in ("header", "cookie") and TOKEN.fullmatch(name) is None:
        raise InvalidPart(path, f"its name is not a valid {where} name")
    if where == "header" and name.lower() in CLIENT_HEADERS:
        raise InvalidPart(path, "only the HTTP client sets this header")
    arg = argument_name(name)
    if not arg:
        raise InvalidPart(path, "its name cannot be used as an argument name")
    content = data.get("content")
    if content is None:
        schema, style = data.get("schema", {}), _style(document, data, arg, path)
    else:
        schema, style = _as_json(content, path), Style(name, arg, "json", False)
    taken = schemas.taken(schema, at(path, "schema"))
    taken = dict(taken) if isinstance(taken, dict) else {} if taken is True else {"not": {}}
    text = one_line(data.get("description"), MAX_DESCRIPTION_CHARS)
    notes = {"description": text} if text else {}
    if data.get("deprecated") is True:
        notes["description"] = f"{notes.get('description') or taken.get('description', '')} (deprecated)".strip()
    if where == "path" and taken.get("type") == "string":
        taken["minLength"] = max(1, taken.get("minLength", 1) if type(taken.get("minLength", 1)) is int else 1)
    return Parameter(where, style, where == "path" or data.get("required") is True, {**taken, **notes})


def _style(document: Document, data: dict[str, Any], arg: str, path: str) -> Style:
    known = STYLES[data["in"]]
    style = data.get("style", known[0])
    if style not in known:
        raise InvalidPart(path, f"style: expected {' or '.join(known)}")
    explode = data.get("explode", style in ("form", "deepObject"))
    if type(explode) is not bool:
        raise InvalidPart(at(path, "explode"), "expected true or false")
    kinds, _ = kinds_of(document, data.get("schema", {}), path)
    if data["in"] == "cookie" and explode and kinds & {"array", "object"}:
        raise InvalidPart(path, "explode: a cookie has one value; only explode: false is supported")
    if style == "deepObject" and kinds and kinds != {"object"}:
        raise InvalidPart(path, "style: deepObject is for objects")
    _hold_to_scalars(document, data.get("schema", {}), path)
    return Style(data["name"], arg, style, explode)


def _hold_to_scalars(document: Document, schema: Any, path: str) -> None:
    """Reject lists and maps within lists and maps, because no style can represent them."""
    head = document.followed(schema, path) if isinstance(schema, dict) else {}
    properties = head.get("properties")
    inner = [head.get("items"), *(properties.values() if isinstance(properties, dict) else ())]
    for each in inner:
        if isinstance(each, dict) and kinds_of(document, each, path)[0] & {"array", "object"}:
            raise InvalidPart(path, "no style supports nested lists or maps; use content: application/json")


def _as_json(content: Any, path: str) -> Any:
    """Return the schema of a parameter that is sent as JSON."""
    if not isinstance(content, dict) or list(content) != ["application/json"]:
        raise InvalidPart(at(path, "content"), "only application/json is supported")
    media = content["application/json"]
    return media.get("schema", {}) if isinstance(media, dict) else {}


def _told_apart(parameters: list[Parameter], path: str, notes: Problems) -> Iterator[Parameter]:
    """Yield the parameters with unique names; where names collide, prefix all but the path parameter."""
    counted = Counter(each.arg for each in parameters)
    taken: dict[str, Parameter] = {}
    for each in parameters:
        arg = each.arg if counted[each.arg] == 1 or each.where == "path" else f"{each.where}_{each.arg}"
        if arg in taken:
            both = f"{quote_untrusted(taken[arg].style.name)}, {quote_untrusted(each.style.name)}"
            text = f"two parameters are named {quote_untrusted(arg)}: {both}"
            notes.add(at(path, "parameters"), text)
            continue
        taken[arg] = attrs.evolve(each, style=attrs.evolve(each.style, arg=arg))
        yield taken[arg]


def _hold_to_route(operation: Operation, parameters: tuple[Parameter, ...], notes: Problems) -> None:
    """Record where the path template and the path parameters differ, or the path contains invalid segments."""
    slots = Counter(SLOT.findall(operation.route))
    names = dict.fromkeys(each.style.name for each in parameters if each.where == "path")
    for name, count in slots.items():
        if name not in names:
            notes.add(operation.path, f"no parameter describes {quote_untrusted(name)} in the path")
        if count > 1:
            notes.add(operation.path, f"{quote_untrusted(name)} appears twice in the path")
    for name in names:
        if name not in slots:
            notes.add(operation.path, f"the path does not contain the parameter {quote_untrusted(name)}")
    bare = SLOT.sub("x", operation.route)
    if LITERAL.fullmatch(bare) is None or has_dots(bare):
        notes.add(operation.path, "the path contains characters that must be written as %XX, or dot segments")
