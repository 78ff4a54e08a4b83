"""Where requests go: one server, by its whole URL.

Source: OpenAPI Specification 3.1.1, "Server Object".
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from neuroscript.interop.openapi.document import Document, Unfit, at
from neuroscript.io.text import shown
from neuroscript.policy.scopes import Unfit as NoPlace
from neuroscript.policy.templates import place_of

VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
WHOLE: Final = re.compile(r"https?://[^/?#@\\]+(/[!-~]*)?", re.IGNORECASE)
UNFIT: Final = re.compile(r"[^!-~]|[\\<>\"{}|^`?#]")
"""What stands in no URL of a server: a query or fragment, and what clients read differently."""

DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)
"""A segment that leads elsewhere."""


@attrs.frozen
class Server:
    """A server.

    Attributes:
        url: Without a last ``/``.
        place: Its host and port, as a need names them.
        origin: Its scheme, host and port, as in ``https://api.example:443``; a credential belongs to one of these.
    """

    url: str
    place: str
    origin: str


def server_of(document: Document, levels: tuple[tuple[str, Any], ...], base_url: str) -> Server:
    """Return the server of an operation: that of the host, or the first one that is named nearest to it.

    Args:
        levels: Where servers may be named, the nearest first: a path in the document and what stands there.

    Raises:
        Unfit: There is none, or it is no whole URL of http or https.
    """
    if base_url:
        return server_at("base_url", base_url)
    for path, servers in levels:
        if isinstance(servers, list) and servers:
            first = document.followed(servers[0], at(path, 0))
            return server_at(at(path, 0, "url"), _filled(first, at(path, 0)))
    raise Unfit("servers", "there is none; give base_url")


def server_at(path: str, url: object) -> Server:
    """Return the server at a URL, or raise `Unfit`."""
    if not isinstance(url, str) or UNFIT.search(url) or WHOLE.fullmatch(url) is None:
        expected = "expected a whole URL of http or https, without user, query and fragment; give base_url"
        raise Unfit(path, expected)
    if has_dots(url.split("/", 3)[3] if url.count("/") > 2 else ""):
        raise Unfit(path, "a segment of dots leads elsewhere")
    try:
        place = place_of(url)
        return Server(url.rstrip("/"), place, f"{url.partition(':')[0].lower()}://{place}")
    except NoPlace as error:
        raise Unfit(path, f"expected {error}") from None


def has_dots(path: str) -> bool:
    """Tell whether a segment of a path is ``.`` or ``..``, however it is written."""
    return any(DOTS.fullmatch(segment) for segment in path.split("/"))


def _filled(server: dict[str, Any], path: str) -> str:
    url, variables = server.get("url"), server.get("variables", {})
    if not isinstance(url, str) or not isinstance(variables, dict):
        raise Unfit(path, "expected a url, and variables by name")

    def value(found: re.Match[str]) -> str:
        variable = variables.get(found[1])
        default = variable.get("default") if isinstance(variable, dict) else None
        if not isinstance(default, str):
            raise Unfit(at(path, "variables"), f"{shown(found[1])} has no default")
        return default

    return VARIABLE.sub(value, url)
