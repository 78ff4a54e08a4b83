"""Tables ``mcp.NAME`` of a policy file: MCP servers, how to start or reach them, and how far to trust them.

Tables are validated here. Servers are neither started nor reached.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.config import oauth as oauth_fields
from neuroscript.config.oauth import OAuth
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.io.toml import Place
from neuroscript.io.toml_errors import Faults
from neuroscript.names import canonical, is_group_name
from neuroscript.policy.scopes import is_tool_pattern
from neuroscript.tools.injection_sources import Secret

URL: Final = re.compile(r"(https?)://([^/?#@\\\s]+)(?:[/?][!-~]*)?", re.IGNORECASE)
"""A complete URL without user name and password: its scheme and authority."""

BREAKS: Final = re.compile(r"[\0\r\n]")
NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
VARIABLE: Final = re.compile(r"[^=\0]+")
HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

ACCESS: Final = ("confine", "read", "write", "network")
"""The keys of a confined program."""

SECONDS: Final = 30.0
"""Default timeout of a call and of opening a connection."""


@attrs.frozen
class ServerTable:
    """The settings of a server in a table ``mcp.NAME``; see `neuroscript.interop.mcp.from_mcp`.

    Attributes:
        name: The name of the table.
        group: The group of the tools.
        command: The program and its arguments, or empty.
        url: The URL, or ``""``.
        env: Environment variables: strings, or secrets of the host.
        headers: HTTP headers: strings, or secrets of the host.
        cwd: The program's working directory; by default the directory of the file.
        timeout: The timeout in seconds.
        trusted: Whether its tools run without approval.
        trust_annotations: Whether its annotations of tools are trusted.
        select: Patterns of the tools to import, or None.
        skip: Whether to skip tools that cannot be imported.
        accepted: The file with the accepted definitions.
        plain_http: Whether secrets may be sent to another machine unencrypted.
        confine: Whether the program runs confined.
        read: Files and directories that a confined program may read.
        write: Files and directories that a confined program may change.
        network: Whether a confined program may use the network.
        roots: Whether the server receives the directory of the sandbox.
        sampling: Whether the server may use the host's model.
        resources: ``"tools"`` to add tools for the resources and prompts of the server, or None.
        description_chars: The maximum length of a description that models read; None for complete descriptions.
        oauth: How to get access tokens for the server, or None if it needs none.
    """

    name: str
    group: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str | Secret] = attrs.field(factory=dict, repr=False)
    headers: Mapping[str, str | Secret] = attrs.field(factory=dict, repr=False)
    cwd: str = ""
    timeout: float = SECONDS
    trusted: bool = False
    trust_annotations: bool = False
    select: tuple[str, ...] | None = None
    skip: bool = False
    accepted: str = ""
    plain_http: bool = False
    confine: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    roots: bool = False
    sampling: bool = False
    resources: Literal["tools"] | None = None
    description_chars: int | None = None
    oauth: OAuth | None = None

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the secrets that it uses."""
        values = (*self.env.values(), *self.headers.values(), self.oauth and self.oauth.client_secret)
        return frozenset(each.name for each in values if isinstance(each, Secret))


def tables_in(faults: Faults, place: Place, value: object, directory: str) -> tuple[ServerTable, ...]:
    """Return the servers in a table of tables, in order, and note every problem.

    Args:
        directory: The directory of the file, which relative paths start from.
    """
    found: list[ServerTable] = []
    groups: dict[str, Place] = {}
    for name, each in faults.table(place, value).items():
        here = (*place, name)
        if not NAME.fullmatch(name):
            faults.note(here, "a server name can contain only ASCII letters, digits, - and _")
        made = _table(faults, here, faults.table(here, each), directory)
        other = groups.setdefault(made.group, here)
        if other is not here:
            faults.note(
                (*here, "group"),
                f"{quote_untrusted(made.group)} is also the group of {quote_untrusted(str(other[-1]))}",
            )
        found.append(made)
    return tuple(found)


def _table(faults: Faults, here: Place, table: Mapping[str, Any], directory: str) -> ServerTable:
    name = str(here[-1])
    stated: dict[str, Any] = {}
    for key, value in table.items():
        if key in TAKERS:
            stated[key] = TAKERS[key](faults, (*here, key), value)
        elif key not in CHECKS:
            faults.unknown((*here, key), KEYS)
        elif CHECKS[key][0](value):
            stated[key] = value
        else:
            faults.note((*here, key), CHECKS[key][1])
    for problem in _problems(name, table):
        faults.note(here, problem)
    places = {key: os.path.join(directory, stated.get(key, default)) for key, default in _paths(name)}  # noqa: PTH118
    group = canonical(stated.get("group", name.replace("-", "_")))
    for key in ("read", "write"):
        if key in stated:
            stated[key] = tuple(os.path.join(directory, each) for each in stated[key])  # noqa: PTH118
    numbers = {"timeout": float(stated["timeout"])} if "timeout" in stated else {}
    command = tuple(stated.get("command", ()))
    return ServerTable(**{**stated, "name": name, "group": group, "command": command, **places, **numbers})


def _problems(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a table as a whole."""
    if ("command" in table) == ("url" in table):
        yield "set either command or url"
    elif "url" in table:
        yield from (f"{key} cannot be used with url" for key in ("env", "cwd") if key in table)
    else:
        yield from (f"{key} cannot be used with command" for key in ("headers", "oauth") if key in table)
    if "oauth" in table and any(name.lower() == "authorization" for name in _names(table.get("headers"))):
        yield "oauth cannot be used with the header Authorization"
    yield from access_problems("url" in table, table)
    if NAME.fullmatch(name) and "group" not in table and not is_group(name.replace("-", "_")):
        yield "is not a valid name of a group; set group"


def _names(headers: object) -> list[str]:
    return [name for name in headers if isinstance(name, str)] if isinstance(headers, dict) else []


def access_problems(has_url: object, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the settings of a confined program."""
    named = [key for key in ACCESS if given.get(key)]
    if has_url:
        yield from (f"{key} cannot be used with url, because this process does not start the server" for key in named)
    elif named and not given.get("confine"):
        yield f"{', '.join(named)} can only be used with confine"


def _paths(name: str) -> Iterator[tuple[str, str]]:
    """Yield the keys that are paths, and their defaults."""
    yield "cwd", ""
    yield "accepted", f"{name}.mcp.json"


# Requirements on each key


def is_command(value: object) -> bool:
    """Return whether a value is a program with its arguments."""
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return is_list and all(isinstance(each, str) and "\0" not in each for each in value) and bool(value[0])  # type: ignore[attr-defined, index]


def is_url(value: object) -> bool:
    """Return whether a value is a complete URL without a password."""
    return isinstance(value, str) and URL.fullmatch(value) is not None


def is_group(value: object) -> bool:
    """Return whether a value is the name of a group, in any spelling."""
    return isinstance(value, str) and is_group_name(canonical(value))


def is_seconds(value: object) -> bool:
    """Return whether a value is a positive, finite number of seconds."""
    if isinstance(value, bool):
        return False
    try:
        return 0 < float(value) < float("inf")  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def is_line(value: object) -> bool:
    """Return whether a value is a string of one line."""
    return isinstance(value, str) and not BREAKS.search(value)


def _is_number(value: object) -> bool:
    return not isinstance(value, str) and is_seconds(value)


def is_count(value: object) -> bool:
    """Return whether a value is a positive integer."""
    return type(value) is int and value > 0


def _is_path(value: object) -> bool:
    return isinstance(value, str) and bool(value) and is_line(value)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


TRUTH: Final = (_is_bool, "must be true or false")

CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "command": (is_command, "must be an array of strings: the program and its arguments"),
    "url": (is_url, "must be an address such as http://127.0.0.1:8000/mcp, without a password"),
    "cwd": (_is_path, "must be the path of a directory, in quotes"),
    "timeout": (_is_number, "must be a positive, finite number of seconds"),
    "trusted": TRUTH,
    "trust_annotations": TRUTH,
    "skip": TRUTH,
    "plain_http": TRUTH,
    "confine": TRUTH,
    "network": TRUTH,
    "roots": TRUTH,
    "sampling": TRUTH,
    "description_chars": (is_count, "must be a positive integer"),
    "group": (is_group, "must be the name of a group, such as files"),
    "accepted": (_is_path, "must be the path of a file, in quotes"),
    "resources": (lambda value: value == "tools", 'must be "tools"'),
}
"""A predicate for valid values and the message for invalid ones; messages contain no values."""


def _texts(faults: Faults, place: Place, value: object) -> dict[str, str | Secret]:
    """Return strings or secrets by name. Messages contain no values, because values may be secret."""
    found: dict[str, str | Secret] = {}
    names = VARIABLE if place[-1] == "env" else HEADER
    for name, each in faults.table(place, value).items():
        here = (*place, name)
        if not names.fullmatch(name):
            faults.note(here, "is not a valid name")
        elif is_line(each):
            found[name] = each
        elif (secret := _secret(each)) is not None:
            found[name] = secret
        else:
            faults.note(here, 'must be a string of one line, in quotes, or {secret = "NAME"}')
    return found


def _secret(value: object) -> Secret | None:
    if not isinstance(value, dict) or value.keys() != {"secret"}:
        return None
    try:
        return Secret(value["secret"])
    except SpecError:
        return None


def _patterns(faults: Faults, place: Place, value: object) -> tuple[str, ...]:
    """Return tool patterns; a single pattern needs no brackets."""
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not patterns:
        faults.note(place, "must be an array of patterns such as files.read_*, in brackets")
        return ()
    found: list[str] = []
    for index, each in enumerate(patterns):
        if isinstance(each, str) and is_tool_pattern(canonical(each)):
            found.append(each)
        else:
            here = place if patterns is not value else (*place, index)
            faults.note(here, "must be the name of a tool, or a pattern such as files.read_*")
    return tuple(found)


def _files(faults: Faults, place: Place, value: object) -> tuple[str, ...]:
    """Return paths; a single path needs no brackets."""
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not all(map(_is_path, paths)):
        faults.note(place, "must be an array of paths, in brackets")
        return ()
    return tuple(paths)


def _oauth(faults: Faults, place: Place, value: object) -> OAuth | None:
    """Return how to get access tokens; ``true`` stands for the defaults. Messages contain no values."""
    if value is True:
        return OAuth()
    if not isinstance(value, dict):
        faults.note(place, 'must be true, or a table such as {scopes = ["notes:read"]}')
        return None
    given: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in value.items()}
    if "client_secret" in given:
        given["client_secret"] = _secret(given["client_secret"]) or given["client_secret"]
    unknown = [name for name in given if name not in oauth_fields.FIELDS]
    for name in unknown:
        faults.unknown((*place, name), oauth_fields.FIELDS)
    known = {name: each for name, each in given.items() if name not in unknown}
    found = [*oauth_fields.problems(known)]
    for name, problem in found:
        faults.note((*place, name) if name else place, problem)
    return None if found else OAuth(**known)


TAKERS: Final[Mapping[str, Callable[[Faults, Place, object], Any]]] = {
    "env": _texts,
    "headers": _texts,
    "select": _patterns,
    "read": _files,
    "write": _files,
    "oauth": _oauth,
}
"""Parsers of values that contain other values."""

KEYS: Final = (*CHECKS, *TAKERS)
