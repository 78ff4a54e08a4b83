"""The operations of a description as a set of tools, or everything that is wrong with it.

Source: issue "Models", other routes in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, overload

import attrs

from neuroscript.coercion.parameters import BY_NAME, FLAG, NUMBER, STRING, STRINGS, as_tuple, optional, require
from neuroscript.errors import SpecError
from neuroscript.interop.openapi.call import Manner
from neuroscript.interop.openapi.document import SUBJECT, Document, Notes, Unfit, at, document_of, tried
from neuroscript.interop.openapi.names import Operation, named, required_word, told_apart
from neuroscript.interop.openapi.operations import METHODS, Giving, tool_of
from neuroscript.interop.openapi.security import Named, bound
from neuroscript.interop.openapi.servers import server_at
from neuroscript.io.text import shown
from neuroscript.names import canonical, is_word, word_of
from neuroscript.tools.derived import matching
from neuroscript.tools.toolset import Toolset

SECONDS: Final = (0.1, 300.0)
BYTES: Final = (0, 8 * 1024 * 1024)
"""What the http toolset permits of seconds, and of bytes of an answer."""

MOST: Final = 5_000
"""Operations of a description."""

FORMS: Final = {
    "group": optional(STRING),
    "base_url": STRING,
    "select": optional(STRINGS),
    "secrets": optional(BY_NAME),
    "private": STRINGS,
    "seconds": NUMBER,
    "limit": NUMBER,
    "skip": FLAG,
}
"""What each parameter has to be."""


@attrs.frozen
class Taken:
    """What was taken of a description, and what was not.

    Attributes:
        toolset: The tools.
        skipped: Why each of the others was left out: at least one text with a path for each.
    """

    toolset: Toolset
    skipped: tuple[str, ...]


@overload
def from_openapi(
    document: Mapping[str, Any] | str,
    *,
    group: str | None = ...,
    base_url: str = ...,
    select: str | Iterable[str] | None = ...,
    secrets: Named | None = ...,
    private: Sequence[str] = ...,
    seconds: float = ...,
    limit: int = ...,
    skip: Literal[False] = ...,
) -> Toolset: ...


@overload
def from_openapi(
    document: Mapping[str, Any] | str,
    *,
    group: str | None = ...,
    base_url: str = ...,
    select: str | Iterable[str] | None = ...,
    secrets: Named | None = ...,
    private: Sequence[str] = ...,
    seconds: float = ...,
    limit: int = ...,
    skip: Literal[True],
) -> Taken: ...


def from_openapi(
    document: Mapping[str, Any] | str,
    *,
    group: str | None = None,
    base_url: str = "",
    select: str | Iterable[str] | None = None,
    secrets: Named | None = None,
    private: Sequence[str] = (),
    seconds: float = 30.0,
    limit: int = 1024 * 1024,
    skip: bool = False,
) -> Toolset | Taken:
    """Return the operations of an OpenAPI description of 3.0 or 3.1 as tools.

    Each makes one request through ``http.get`` or ``http.request``, so the engine needs the http toolset too, and each
    needs the host of its server: ``net:read:HOST:PORT``, and ``net:write`` for all methods but GET.

    Args:
        document: The description, as a mapping or as JSON text; nothing in it is run or fetched.
        group: The group of the tools; None means what the description is called.
        base_url: The URL of the server; without one, that of the description.
        select: Patterns of the tools to take, as in ``pets.get_*``; all others are not looked at. None takes all.
        secrets: For each security scheme the name of a secret that the host provides. That secret is sent to
            *base_url*, or else to the first server of the whole description, by scheme, host and port. A mapping of
            URLs to names says which server gets which secret, ``{"token": {"https://files.example": "files-token"}}``.
        private: Private addresses with their ports that may be reached, as ``http.get`` has them; each is a need,
            ``lan:reach:ADDRESS:PORT``.
        seconds: How long a request may take, 0.1 to 300.
        limit: Bytes that an answer may have, at most 8 MiB.
        skip: Whether operations that can not be taken are left out, and a `Taken` is returned that says why.

    Raises:
        SpecError: With everything that is wrong, each with its path in the document.
    """
    patterns = (select,) if isinstance(select, str) else as_tuple(select)
    places = (private,) if isinstance(private, str) else as_tuple(private)
    parts = {"group": group, "base_url": base_url, "select": patterns, "secrets": secrets, "private": places}
    parts |= {"seconds": seconds, "limit": limit, "skip": skip}
    require("from_openapi", **{name: (each, FORMS[name]) for name, each in parts.items()})
    read = document_of(document)
    faults, notes = Notes(), Notes()
    giving = _giving(read, group, base_url, secrets or {}, Manner(seconds, limit, places), faults)
    operations = list(_operations(read, faults, notes))
    if faults.texts:
        raise SpecError(SUBJECT, [*faults.texts, *notes.texts])
    chosen = told_apart(_selected(named(operations, notes), giving.group, patterns, notes), notes)
    tools = [tool_of(read, each, giving, notes) for each in chosen]
    if notes.texts and not skip:
        raise SpecError(SUBJECT, notes.texts)
    toolset = Toolset(giving.group, tuple(filter(None, tools)))
    return Taken(toolset, tuple(notes.texts)) if skip else toolset


def _giving(
    document: Document, group: str | None, base_url: str, secrets: Named, manner: Manner, notes: Notes
) -> Giving:
    """Return what the host gives; what is wrong with it is noted."""
    info = document.root.get("info")
    title = info.get("title", "") if isinstance(info, dict) else ""
    word = word_of(title) if group is None else canonical(group)
    if not word or not all(map(is_word, word.split("."))):
        what = "info.title" if group is None else "group"
        notes.add("", f"{required_word(title if group is None else group, what)}; give a word as group")
    if base_url:
        try:
            server_at("base_url", base_url)
        except Unfit as error:
            notes.add(error.path, error.text)
    servers = bound(document, secrets, base_url, notes)
    for name, value, (low, high) in (("seconds", manner.seconds, SECONDS), ("limit", manner.limit, BYTES)):
        if not low <= value <= high:
            notes.add(name, f"expected {low} to {high}")
    return Giving(word, base_url, servers, manner)


def _operations(document: Document, faults: Notes, notes: Notes) -> Iterator[Operation]:
    """Yield the operations in their order; what is wrong with one of them is noted, and what is with all is a fault."""
    paths = document.root.get("paths")
    if not isinstance(paths, dict):
        faults.add("paths", "expected paths by name")
        return
    count = 0
    for route, given in paths.items():
        if route.startswith("x-"):
            continue
        path = at("paths", route)
        if not route.startswith("/"):
            notes.add(path, "a path begins with /")
            continue
        found = list(_of_path(document, given, path, route, notes))
        count += len(found)
        yield from found
    if count > MOST:
        faults.add("paths", f"more than {MOST} operations")


def _of_path(document: Document, given: Any, path: str, route: str, notes: Notes) -> Iterator[Operation]:
    item = tried(notes, document.followed, given, path) or {}
    for method in METHODS:
        place = at(path, method)
        data = tried(notes, document.followed, item[method], place) if method in item else None
        if data is not None:
            yield Operation(place, route, method.upper(), item, data)


def _selected(operations: list[Operation], group: str, patterns: Sequence[str] | None, notes: Notes) -> list[Operation]:
    """Return the operations whose tools a pattern matches; of what has no name nothing is noted any more then."""
    if patterns is None:
        return operations
    found = []
    for pattern in patterns:
        matches = matching(pattern)
        some = [each for each in operations if matches(f"{group}.{each.name}")]
        if not some:
            text = f"select: no operation has a name that {shown(pattern)} matches"
            raise SpecError(SUBJECT, [text, *notes.texts])
        found.extend(some)
    notes.texts.clear()
    chosen = {id(each) for each in found}
    return [each for each in operations if id(each) in chosen]
