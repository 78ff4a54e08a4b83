"""How this process authorizes itself to an MCP server with OAuth: as its user, or as a machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.errors import SpecError
from neuroscript.tools.injection_sources import Secret

SCOPE: Final = re.compile(r"[!#-\[\]-~]+")
"""One scope, as in RFC 6749, section 3.3."""

URL: Final = re.compile(r"https?://[^/?#@\\\s]+(?:/[!-~]*)?", re.IGNORECASE)
LINE: Final = re.compile(r"[ -~]+")
MAX_PORT: Final = 65_535


def _scopes(value: Any) -> Any:
    return tuple(value.split()) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


@attrs.frozen(kw_only=True)
class OAuth:
    """How to get access tokens for a server.

    Without a client id, this process registers itself at the issuer: by its metadata document if there is one and the
    issuer supports that, otherwise dynamically.

    Attributes:
        client_id: The client id, if you have registered a client at the issuer.
        client_secret: The secret of this client, if it has one: a string, or a `Secret` of the host.
        scopes: The scopes to request; a string with spaces, or a sequence. Without them, the server says which.
        issuer: The only issuer to use. Required with a secret, which no other issuer may receive; otherwise the server
            names it.
        grant: ``"authorization_code"`` if a user logs in, or ``"client_credentials"`` for a machine.
        redirect_port: The port on which a login waits for the browser; 0 uses a free one. Set it if the registration
            of your client contains a port.
        client_metadata_url: The ``https`` URL of a client ID metadata document that describes this client.

    Raises:
        SpecError: A field is invalid; each problem is listed.
    """

    client_id: str = ""
    client_secret: str | Secret = attrs.field(default="", repr=False)
    scopes: tuple[str, ...] = attrs.field(default=(), converter=_scopes)
    issuer: str = ""
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    redirect_port: int = 0
    client_metadata_url: str = ""

    def __attrs_post_init__(self) -> None:
        faults = [
            f"{name}: {problem}" if name else problem for name, problem in problems(attrs.asdict(self, recurse=False))
        ]
        if faults:
            raise SpecError("oauth", faults)

    @property
    def is_machine(self) -> bool:
        """Whether it needs no login of a user."""
        return self.grant == "client_credentials"


FIELDS: Final = tuple(each.name for each in attrs.fields(OAuth))
"""The keys of a table ``oauth``."""


def problems(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the field and the problem for each invalid field, with ``""`` for problems of several fields."""
    for name, value in given.items():
        problem = CHECKS[name](value) if name in CHECKS else "is unknown"
        if problem:
            yield name, problem
    grant, id, secret = (given.get(name, "") for name in ("grant", "client_id", "client_secret"))
    if grant == "client_credentials" and not (id and secret and given.get("issuer")):
        yield "", "client_credentials needs client_id, client_secret and issuer"
    elif secret and not (id and given.get("issuer")):  # otherwise the server could name an issuer that collects it
        yield "", "client_secret needs client_id and issuer"
    if id and given.get("client_metadata_url"):
        yield "", "set client_id or client_metadata_url, not both"


def _line_problem(value: object) -> str:
    return "" if isinstance(value, str) and (not value or LINE.fullmatch(value)) else "must be a string of one line"


def _secret_problem(value: object) -> str:
    return "" if isinstance(value, Secret) or not _line_problem(value) else 'must be a string, or {secret = "NAME"}'


def _scopes_problem(value: object) -> str:
    is_valid = isinstance(value, tuple) and all(isinstance(each, str) and SCOPE.fullmatch(each) for each in value)
    return "" if is_valid else "must be an array of scopes, in brackets"


def _url_problem(value: object) -> str:
    is_valid = isinstance(value, str) and (not value or URL.fullmatch(value))
    return "" if is_valid else "must be an address such as https://id.example.com"


def _document_problem(value: object) -> str:
    is_valid = isinstance(value, str) and (not value or re.fullmatch(r"https://[^/?#@\\\s]+/[!-~]+", value))
    return "" if is_valid else "must be an https address with a path, such as https://example.com/client.json"


def _grant_problem(value: object) -> str:
    is_valid = value in ("authorization_code", "client_credentials")
    return "" if is_valid else 'must be "authorization_code" or "client_credentials"'


def _port_problem(value: object) -> str:
    is_valid = type(value) is int and 0 <= value <= MAX_PORT
    return "" if is_valid else f"must be a port from 0 to {MAX_PORT}"


CHECKS: Final = {
    "client_id": _line_problem,
    "client_secret": _secret_problem,
    "scopes": _scopes_problem,
    "issuer": _url_problem,
    "grant": _grant_problem,
    "redirect_port": _port_problem,
    "client_metadata_url": _document_problem,
}
"""The check of each field, which returns its problem or ``""``; problems contain no values."""
