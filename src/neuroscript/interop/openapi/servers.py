"""The server of an operation, identified by its absolute URL.

See the OpenAPI Specification 3.1.1, "Server Object".
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from neuroscript.interop.openapi.document import Document, InvalidPart, at
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.scopes import InvalidScope as NoPlace
from neuroscript.policy.templates import host_scope

VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
WHOLE: Final = re.compile(r"https?://[^/?#@\\]+(/[!-~]*)?", re.IGNORECASE)
UNFIT: Final = re.compile(r"[^!-~]|[\\<>\"{}|^`?#]")
"""Characters that a server URL must not contain: a query or fragment, and characters that clients read differently."""

DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
"""A path segment that refers to another directory."""


@attrs.frozen
class Server:
    """A server.

    Attributes:
        url: Without a trailing ``/``.
        place: Its host and port, in the form used by capabilities.
        origin: Its scheme, host and port, such as ``https://api.example:443``; a credential belongs to one origin.
    """

    url: str
    place: str
    origin: str


def server_of(document: Document, levels: tuple[tuple[str, Any], ...], base_url: str) -> Server:
    """Return the server of an operation: *base_url* if set, otherwise the first server of the nearest level.

    Args:
        levels: The levels that may declare servers, nearest first: a path in the document and its value.

    Raises:
        Unfit: No server is declared, or its URL is not an absolute http or https URL.
    """
    if base_url:
        return server_at("base_url", base_url)
    for path, servers in levels:
        if isinstance(servers, list) and servers:
            first = document.followed(servers[0], at(path, 0))
            return server_at(at(path, 0, "url"), _url_of(first, at(path, 0)))
    raise InvalidPart("servers", "missing; pass base_url")


def server_at(path: str, url: object) -> Server:
    """Return the server at a URL, or raise `InvalidScope`."""
    if not isinstance(url, str) or UNFIT.search(url) or WHOLE.fullmatch(url) is None:
        expected = "expected an absolute http or https URL without user, query and fragment; pass base_url"
        raise InvalidPart(path, expected)
    if has_dots(url.split("/", 3)[3] if url.count("/") > 2 else ""):
        raise InvalidPart(path, "expected a URL without dot segments")
    try:
        place = host_scope(url)
        return Server(url.rstrip("/"), place, f"{url.partition(':')[0].lower()}://{place}")
    except NoPlace as error:
        raise InvalidPart(path, f"expected {error}") from None


def has_dots(path: str) -> bool:
    """Return whether a path contains a segment ``.`` or ``..``, percent-encoded or not."""
    return any(DOTS.fullmatch(segment) for segment in path.split("/"))


def _url_of(server: dict[str, Any], path: str) -> str:
    url, variables = server.get("url"), server.get("variables", {})
    if not isinstance(url, str) or not isinstance(variables, dict):
        raise InvalidPart(path, "expected a url, and an object of variables")

    def value(found: re.Match[str]) -> str:
        variable = variables.get(found[1])
        default = variable.get("default") if isinstance(variable, dict) else None
        if not isinstance(default, str):
            raise InvalidPart(at(path, "variables"), f"{quote_untrusted(found[1])} has no default")
        return default

    return VARIABLE.sub(value, url)
