"""Tables ``gateway`` and ``client.NAME`` of a policy file: how a gateway serves, and what each of its clients may do.

The table of a client contains settings of a policy, which narrow the policy of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.parameters import PATH, STRING, optional, require
from neuroscript.config.mcp_servers import NAME, ServerTable, is_count, is_line, is_url
from neuroscript.config.policy_file import (
    KEYS,
    MAX_FILE_BYTES,
    faults_of,
    policy_fields,
    policy_section,
    read_tables,
)
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.io.text_files import read_text_file
from neuroscript.io.toml import Place
from neuroscript.io.toml_errors import Faults
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.tools.injection_sources import Secret

ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
"""A host, with an IPv6 address in brackets, and a port."""

MAX_PORT: Final = 65_535

ENTRY: Final = re.compile(r"[A-Za-z0-9_.*?-]+")
"""A pattern of names of entry points."""

CLIENT_KEYS: Final = ("token", "scopes", "monitor")
"""The keys of a client besides those of a policy."""


@attrs.frozen
class GatewaySettings:
    """The table ``gateway``.

    Attributes:
        name: The name of the server that clients see.
        listen: The host and the port to serve HTTP on, or None to serve one client over stdio.
        names: How tools are named: ``grouped`` for ``files__read``, ``bare`` for ``read`` where it is unique.
        search_above: The number of tools above which a client gets tools to search and call, or None.
        metrics: Whether ``/metrics`` is served.
        audit: The path of the audit log, or ``""``.
        sandbox: The directory for the files of toolsets, or ``""``.
        toolsets: Patterns of the installed entry points whose tools are served too.
        instructions: What clients pass to their models.
        issuer: The issuer of access tokens, or ``""``.
        audience: The audience of these tokens: the URL of the gateway, as its clients know it.
        accept: When the tools of a server are accepted: ``first`` when it is first started, or ``review`` only by
            ``neuroscript gateway FILE --accept``.
    """

    name: str = "neuroscript"
    listen: tuple[str, int] | None = None
    names: Literal["grouped", "bare"] = "grouped"
    search_above: int | None = None
    metrics: bool = False
    audit: str = ""
    sandbox: str = ""
    toolsets: tuple[str, ...] = ()
    instructions: str = ""
    issuer: str = ""
    audience: str = ""
    accept: Literal["first", "review"] = "first"


@attrs.frozen
class ClientTable:
    """A table ``client.NAME``.

    Attributes:
        name: The name of the table, which audit records contain.
        token: The secret with the bearer token of the client, or None.
        scopes: The scopes of a token that select this client.
        monitor: Whether the client may read ``/metrics`` and the state of each server.
        changes: The fields of the policy that narrow what the gateway permits.
    """

    name: str
    token: Secret | None = None
    scopes: tuple[str, ...] = ()
    monitor: bool = False
    changes: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class GatewayFile:
    """A policy file with the settings of a gateway.

    Attributes:
        policy: What the gateway permits to all clients together.
        servers: The MCP servers behind it.
        settings: How it serves.
        clients: The clients, in order.
    """

    policy: ExecutionPolicy
    servers: tuple[ServerTable, ...]
    settings: GatewaySettings
    clients: tuple[ClientTable, ...]


def load_gateway(path: str | os.PathLike[str], *, profile: str | None = None) -> GatewayFile:
    """Load the settings of a gateway from a policy file. No server is started or reached.

    Args:
        path: As for `load_policy`. Relative paths in the file start from its directory.
        profile: The profile that replaces parts of the policy, or None.

    Raises:
        SpecError: If the file cannot be read or is invalid; ``lines`` has the line of each problem.
    """
    require("load_gateway", path=(path, PATH), profile=(profile, optional(STRING)))
    name = Path(path).name or str(path)
    faults = faults_of(read_text_file(path, quote_untrusted(name), MAX_FILE_BYTES), name)
    directory = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    stated, servers = read_tables(faults, profile, directory)
    settings, clients = read_gateway(faults, servers, directory)
    if faults.found:
        raise faults.error(name)
    return GatewayFile(ExecutionPolicy(**policy_fields(stated)), servers, settings, clients)


def read_gateway(
    faults: Faults, servers: tuple[ServerTable, ...], directory: str
) -> tuple[GatewaySettings, tuple[ClientTable, ...]]:
    """Return the settings of a gateway in a file, and note every problem."""
    values = faults.document.values
    settings = _settings(faults, ("gateway",), faults.table(("gateway",), values.get("gateway", {})), directory)
    clients = tuple(_clients(faults, ("client",), faults.table(("client",), values.get("client", {}))))
    for place, problem in _problems(settings, clients):
        faults.note(place, problem)
    for what in _writable(settings, servers, directory):
        faults.note(("gateway", "sandbox"), f"contains {what}, which tools could change; use another directory")
    return settings, clients


def _settings(faults: Faults, here: Place, table: Mapping[str, Any], directory: str) -> GatewaySettings:
    stated: dict[str, Any] = {}
    for key, value in table.items():
        if key == "toolsets":
            stated[key] = tuple(_strings(faults, (*here, key), value, ENTRY, "the name of an entry point, such as fs"))
        elif key not in CHECKS:
            faults.unknown((*here, key), (*CHECKS, "toolsets"))
        elif not CHECKS[key][0](value):
            faults.note((*here, key), CHECKS[key][1])
        else:
            stated[key] = value
    if "listen" in stated:
        host, _, port = stated["listen"].rpartition(":")
        stated["listen"] = host.removeprefix("[").removesuffix("]"), int(port)
    for key in ("audit", "sandbox"):
        if key in stated:
            stated[key] = os.path.join(directory, stated[key])  # noqa: PTH118
    return GatewaySettings(**stated)


def _clients(faults: Faults, here: Place, tables: Mapping[str, Any]) -> Iterator[ClientTable]:
    for name, value in tables.items():
        place = (*here, name)
        table = faults.table(place, value)
        if not NAME.fullmatch(name):
            faults.note(place, "a client name can contain only ASCII letters, digits, - and _")
        stated = policy_section(faults, place, table, (*KEYS, *CLIENT_KEYS))
        own: dict[str, Any] = {}
        if "token" in table:
            own["token"] = _secret(faults, (*place, "token"), table["token"])
        if "scopes" in table:
            own["scopes"] = tuple(_strings(faults, (*place, "scopes"), table["scopes"], SCOPE, "a scope"))
        if "monitor" in table:
            own["monitor"] = table["monitor"] is True
            if not isinstance(table["monitor"], bool):
                faults.note((*place, "monitor"), "must be true or false")
        yield ClientTable(name, **own, changes=policy_fields(stated) if not faults.found else {})


SCOPE: Final = re.compile(r"[!#-\[\]-~]+")
"""A scope of OAuth 2.1: visible ASCII characters without quotes and backslashes."""


def _secret(faults: Faults, place: Place, value: object) -> Secret | None:
    """Return a secret. The file must not contain the token itself, and messages never do."""
    try:
        if isinstance(value, dict) and value.keys() == {"secret"}:
            return Secret(value["secret"])
    except SpecError:
        pass
    faults.note(place, 'must be {secret = "NAME"}, the environment variable with the token')
    return None


def _strings(faults: Faults, place: Place, value: object, form: re.Pattern[str], what: str) -> Iterator[str]:
    if not isinstance(value, list):
        faults.note(place, "must be an array of strings, in brackets")
        return
    for index, each in enumerate(value):
        if isinstance(each, str) and form.fullmatch(each):
            yield each
        else:
            faults.note((*place, index), f"must be {what}, in quotes")


def _problems(settings: GatewaySettings, clients: tuple[ClientTable, ...]) -> Iterator[tuple[Place, str]]:
    """Yield the problems of the settings as a whole."""
    secrets: dict[Secret, str] = {}
    for each in clients:
        place = ("client", each.name, "token")
        if each.token is not None and secrets.setdefault(each.token, each.name) != each.name:
            yield place, f"is also the token of {quote_untrusted(secrets[each.token])}; each client needs its own"
    yield from _token_problems(settings, clients)
    if settings.metrics and settings.listen is None:
        yield ("gateway", "metrics"), "is served over HTTP; set listen"
    elif settings.metrics and not any(each.monitor for each in clients):
        yield ("gateway", "metrics"), "no client may read them; set monitor = true in a table [client.NAME]"


def _token_problems(settings: GatewaySettings, clients: tuple[ClientTable, ...]) -> Iterator[tuple[Place, str]]:
    """Yield the problems of the settings about access tokens."""
    if not settings.issuer:
        if settings.audience:
            yield ("gateway", "audience"), "needs issuer, the issuer of the access tokens"
        return
    if settings.listen is None:
        yield ("gateway", "issuer"), "access tokens are sent over HTTP; set listen"
    if not settings.audience:
        yield ("gateway", "issuer"), "needs audience, the URL of the gateway as its clients know it"
    if not any(each.scopes for each in clients):
        yield ("gateway", "issuer"), "permits nothing; set scopes in a table [client.NAME]"


def _writable(settings: GatewaySettings, servers: tuple[ServerTable, ...], directory: str) -> Iterator[str]:
    """Yield what decides about calls, or records them, and is inside the sandbox."""
    if not settings.sandbox:
        return
    sandbox = os.path.realpath(settings.sandbox)
    paths = {"this file": directory, "the audit log": settings.audit}
    paths |= {f"the accepted tools of {quote_untrusted(each.name)}": each.accepted for each in servers}
    for what, path in paths.items():
        if path and Path(os.path.realpath(path)).is_relative_to(sandbox):
            yield what


def _is_address(value: object) -> bool:
    found = ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and int(found[2]) <= MAX_PORT


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_line(value: object) -> bool:
    return _is_text(value) and is_line(value)


CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "name": (lambda value: isinstance(value, str) and NAME.fullmatch(value) is not None, "must be a name in quotes"),
    "listen": (_is_address, 'must be an address such as "127.0.0.1:8080"'),
    "names": (lambda value: value in ("grouped", "bare"), 'must be "grouped" or "bare"'),
    "search_above": (is_count, "must be a positive integer"),
    "metrics": (lambda value: isinstance(value, bool), "must be true or false"),
    "audit": (_is_line, "must be the path of a file, in quotes"),
    "sandbox": (_is_line, "must be the path of a directory, in quotes"),
    "accept": (lambda value: value in ("first", "review"), 'must be "first" or "review"'),
    "instructions": (_is_text, "must be a string, in quotes"),
    "issuer": (is_url, "must be an address such as https://id.example.com"),
    "audience": (_is_line, "must be a URL, in quotes"),
}
"""A predicate for valid values and the message for invalid ones."""
