"""Load the operations of a description as a toolset, or report everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, overload

import attrs

from neuroscript.coercion.parameters import BY_NAME, FLAG, NUMBER, STRING, STRINGS, as_tuple, optional, require
from neuroscript.errors import SpecError
from neuroscript.interop.openapi.call import RequestSettings
from neuroscript.interop.openapi.document import SUBJECT, Document, InvalidPart, Problems, at, document_of, try_call
from neuroscript.interop.openapi.names import Operation, name_operations, name_problem, unique_operations
from neuroscript.interop.openapi.operations import METHODS, HostSettings, tool_of
from neuroscript.interop.openapi.security import SecretNames, bind_secrets
from neuroscript.interop.openapi.servers import server_at
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, is_word, to_snake_case
from neuroscript.tools.derived import name_matcher
from neuroscript.tools.toolset import Toolset

TIMEOUT_SECONDS_RANGE: Final = (0.1, 300.0)
RESPONSE_BYTES_RANGE: Final = (0, 8 * 1024 * 1024)
"""The timeouts in seconds and response sizes in bytes that the http toolset accepts."""

MAX_OPERATIONS: Final = 5_000
"""Maximum number of operations in a description."""

FORMS: Final = {
    "group": optional(STRING),
    "base_url": STRING,
    "select": optional(STRINGS),
    "secrets": optional(BY_NAME),
    "private": STRINGS,
    "seconds": NUMBER,
    "limit": NUMBER,
    "skip": FLAG,
    "formats": FLAG,
}
"""The required type of each parameter."""


@attrs.frozen
class LoadResult:
    """The tools loaded from a description, and the problems of the operations that were left out.

    Attributes:
        toolset: The tools.
        skipped: Why operations were left out: at least one string with a path for each.
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
    secrets: SecretNames | None = ...,
    private: Sequence[str] = ...,
    seconds: float = ...,
    limit: int = ...,
    skip: Literal[False] = ...,
    formats: bool = ...,
) -> Toolset: ...


@overload
def from_openapi(
    document: Mapping[str, Any] | str,
    *,
    group: str | None = ...,
    base_url: str = ...,
    select: str | Iterable[str] | None = ...,
    secrets: SecretNames | None = ...,
    private: Sequence[str] = ...,
    seconds: float = ...,
    limit: int = ...,
    skip: Literal[True],
    formats: bool = ...,
) -> LoadResult: ...


def from_openapi(
    document: Mapping[str, Any] | str,
    *,
    group: str | None = None,
    base_url: str = "",
    select: str | Iterable[str] | None = None,
    secrets: SecretNames | None = None,
    private: Sequence[str] = (),
    seconds: float = 30.0,
    limit: int = 1024 * 1024,
    skip: bool = False,
    formats: bool = False,
) -> Toolset | LoadResult:
    """Return the operations of a description as tools: OpenAPI 3.1 or 3.0, or Swagger 2.0.

    Each tool makes one request through ``http.get`` or ``http.request``, so the engine needs the http toolset too. Each
    tool needs the capability for the host of its server: ``net:read:HOST:PORT``, and also ``net:write`` for every
    method except GET.

    Args:
        document: The description, as a mapping or as JSON text; nothing in it is executed or fetched.
        group: The group of the tools; None derives it from the title of the description.
        base_url: The URL of the server; the default is the one in the description.
        select: Patterns of the tools to load, such as ``pets.get_*``; other operations are not examined. None loads
            all.
        secrets: The name of a host secret for each security scheme. The secret is sent only to the server of
            *base_url*, or else to the first server of the whole description, compared by scheme, host and port. To
            choose the secret by server, pass a mapping from URLs to names:
            ``{"token": {"https://files.example": "files-token"}}``.
        private: Private addresses with ports that may be reached, as for ``http.get``; each needs the capability
            ``lan:reach:ADDRESS:PORT``.
        seconds: Timeout of a request in seconds, 0.1 to 300.
        limit: Maximum size of a response in bytes, at most 8 MiB.
        skip: Leave out operations that cannot be loaded, and return a `LoadResult` with the reasons.
        formats: Check the standard formats of strings, such as ``date-time``. The string itself is sent unchanged.

    Raises:
        SpecError: With every problem found, each with its path in the document.
    """
    patterns = (select,) if isinstance(select, str) else as_tuple(select)
    places = (private,) if isinstance(private, str) else as_tuple(private)
    parts = {"group": group, "base_url": base_url, "select": patterns, "secrets": secrets, "private": places}
    parts |= {"seconds": seconds, "limit": limit, "skip": skip, "formats": formats}
    require("from_openapi", **{name: (each, FORMS[name]) for name, each in parts.items()})
    read = document_of(document)
    faults, notes = Problems(), Problems()
    giving = _read_settings(
        read, group, base_url, secrets or {}, RequestSettings(seconds, limit, places), formats, faults
    )
    operations = list(_operations(read, faults, notes))
    if faults.texts:
        raise SpecError(SUBJECT, [*faults.texts, *notes.texts])
    chosen = unique_operations(_selected(name_operations(operations, notes), giving.group, patterns, notes), notes)
    tools = [tool_of(read, each, giving, notes) for each in chosen]
    if notes.texts and not skip:
        raise SpecError(SUBJECT, notes.texts)
    toolset = Toolset(giving.group, tuple(filter(None, tools)))
    return LoadResult(toolset, tuple(notes.texts)) if skip else toolset


def _read_settings(
    document: Document,
    group: str | None,
    base_url: str,
    secrets: SecretNames,
    settings: RequestSettings,
    formats: bool,
    notes: Problems,
) -> HostSettings:
    """Return the settings of the host; record what is wrong with them."""
    info = document.root.get("info")
    title = info.get("title", "") if isinstance(info, dict) else ""
    word = to_snake_case(title) if group is None else canonical(group)
    if not word or not all(map(is_word, word.split("."))):
        what = "info.title" if group is None else "group"
        notes.add("", f"{name_problem(title if group is None else group, what)}; pass a valid group")
    if base_url:
        try:
            server_at("base_url", base_url)
        except InvalidPart as error:
            notes.add(error.path, error.text)
    servers = bind_secrets(document, secrets, base_url, notes)
    for name, value, (low, high) in (
        ("seconds", settings.seconds, TIMEOUT_SECONDS_RANGE),
        ("limit", settings.limit, RESPONSE_BYTES_RANGE),
    ):
        if not low <= value <= high:
            notes.add(name, f"expected {low} to {high}")
    return HostSettings(word, base_url, servers, settings, formats)


def _operations(document: Document, faults: Problems, notes: Problems) -> Iterator[Operation]:
    """Yield the operations in document order.

    Problems of one operation go to *notes*; problems of the whole description go to *faults*.
    """
    paths = document.root.get("paths")
    if not isinstance(paths, dict):
        faults.add("paths", "expected an object with paths as keys")
        return
    count = 0
    for route, item in paths.items():
        if route.startswith("x-"):
            continue
        path = at("paths", route)
        if not route.startswith("/"):
            notes.add(path, "expected a path that begins with /")
            continue
        found = list(_of_path(document, item, path, route, notes))
        count += len(found)
        yield from found
    if count > MAX_OPERATIONS:
        faults.add("paths", f"more than {MAX_OPERATIONS} operations")


def _of_path(document: Document, given: Any, path: str, route: str, notes: Problems) -> Iterator[Operation]:
    item = try_call(notes, document.followed, given, path) or {}
    for method in METHODS:
        place = at(path, method)
        data = try_call(notes, document.followed, item[method], place) if method in item else None
        if data is not None:
            yield Operation(place, route, method.upper(), item, data)


def _selected(
    operations: list[Operation], group: str, patterns: Sequence[str] | None, notes: Problems
) -> list[Operation]:
    """Return the operations whose tool names match a pattern; clear the problems of operations that got no name."""
    if patterns is None:
        return operations
    found = []
    for pattern in patterns:
        matches = name_matcher(pattern)
        some = [each for each in operations if matches(f"{group}.{each.name}")]
        if not some:
            text = f"select: no operation matches {quote_untrusted(pattern)}"
            raise SpecError(SUBJECT, [text, *notes.texts])
        found.extend(some)
    notes.texts.clear()
    chosen = {id(each) for each in found}
    return [each for each in operations if id(each) in chosen]
