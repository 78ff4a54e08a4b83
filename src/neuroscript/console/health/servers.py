"""The MCP servers of an engine: their state, and reviewing and accepting their definitions."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import attrs

from neuroscript.config.mcp_servers import ServerTable
from neuroscript.engine.engine import Engine
from neuroscript.errors import NeuroScriptError, SpecError
from neuroscript.interop.mcp.client.accepted_definitions import (
    Definition,
    Definitions,
    Difference,
    differences,
    read,
    write,
)
from neuroscript.interop.mcp.client.definition_diff import diff_lines
from neuroscript.interop.mcp.client.servers import inspect_server

PREFIX: Final = "mcp."
"""The beginning of the names of servers in `Engine.plugin_errors`."""


class ChangedMeanwhile(NeuroScriptError):
    """What was reviewed is not what would be accepted."""


@attrs.frozen
class ServerState:
    """A server as the engine uses it.

    Attributes:
        table: Its settings.
        address: The program, or the host of its URL; arguments can contain secrets.
        tools: The number of its tools in the engine.
        accepted: The number of accepted tools, or None if none were accepted yet.
        problem: Why it or some of its tools cannot be used, or ``""``.
    """

    table: ServerTable
    address: str
    tools: int
    accepted: int | None
    problem: str


@attrs.frozen
class ToolReview:
    """A tool that differs from what was accepted.

    Attributes:
        difference: How it differs.
        lines: The differences, each beginning with ``+``, ``-`` or a space, or the name of a part with a colon.
    """

    difference: Difference
    lines: tuple[str, ...]


@attrs.frozen
class ServerReview:
    """What a server offers now, compared with what was accepted.

    Attributes:
        table: Its settings.
        old: The accepted definitions.
        now: The current definitions.
        changes: The tools that differ.
        skipped: Why other tools cannot be used.
    """

    table: ServerTable
    old: Definitions = attrs.field(repr=False)
    now: Definitions = attrs.field(repr=False)
    changes: tuple[ToolReview, ...]
    skipped: tuple[str, ...]

    @property
    def digest(self) -> str:
        """A digest of all that was compared, so that exactly that is accepted."""
        return digest_of(self.old, self.now)


def digest_of(*definitions: Definitions) -> str:
    """Return a digest of definitions."""
    data = [sorted((name, each.digest) for name, each in one.items()) for one in definitions]
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def server_states(engine: Engine, tables: Iterable[ServerTable]) -> tuple[ServerState, ...]:
    """Return the states of servers, in the order of their tables."""
    problems: dict[str, list[str]] = {}
    for error in engine.plugin_errors:
        problems.setdefault(error.distribution, []).append(error.reason)
    return tuple(_state(engine, table, problems) for table in tables)


def _state(engine: Engine, table: ServerTable, problems: Mapping[str, Sequence[str]]) -> ServerState:
    found = list(problems.get(f"{PREFIX}{table.name}", ()))
    try:
        accepted: int | None = len(accepted_definitions(table)) if os.path.lexists(table.accepted) else None
    except SpecError as error:
        accepted = None
        found.append("; ".join(error.problems))
    tools = sum(name.rpartition(".")[0] == table.group for name in engine.tools)
    return ServerState(table, _address(table), tools, accepted, "; ".join(dict.fromkeys(found)))


def _address(table: ServerTable) -> str:
    if table.command:
        return os.path.basename(table.command[0])  # noqa: PTH119
    parts = urlsplit(table.url)
    return f"{parts.scheme}://{parts.netloc}"


def accepted_definitions(table: ServerTable) -> Definitions:
    """Return the accepted definitions of a server; none if there is no file.

    Raises:
        SpecError: The file cannot be read or is invalid.
    """
    return read(table.accepted) if os.path.lexists(table.accepted) else {}


def review_server(table: ServerTable, secrets: Mapping[str, str]) -> ServerReview:
    """Start or reach a server, and compare its tools with the accepted ones.

    Args:
        secrets: The values of the host's secrets, by name.

    Raises:
        SpecError: The file with the accepted tools is invalid, or the settings are.
        PluginError: The server cannot be reached.
    """
    old = accepted_definitions(table)
    with inspect_server(table, secrets) as server:
        now, skipped = dict(server.definitions), tuple(server.skipped)
    changes = tuple(_review(each, old, now) for each in differences(old, now))
    return ServerReview(table, old, now, changes, skipped)


def _review(difference: Difference, old: Definitions, now: Definitions) -> ToolReview:
    name = difference.name
    nothing = Definition(name, {})
    lines = diff_lines(old.get(name, nothing), now.get(name, nothing))
    return ToolReview(difference, tuple(lines))


def accept_review(review: ServerReview, digest: str) -> None:
    """Write the definitions that were reviewed as accepted.

    Args:
        digest: The digest of the review that the user has read.

    Raises:
        ChangedMeanwhile: The user has read another review, or other definitions were accepted since then.
        SpecError: The file with the accepted tools is invalid.
        OSError: The file cannot be written.
    """
    if digest != review.digest or digest_of(accepted_definitions(review.table), review.now) != digest:
        raise ChangedMeanwhile("The definitions have changed since you have read them; compare them again.")
    write(review.table.accepted, review.now)
