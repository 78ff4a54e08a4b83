"""The MCP servers in a configuration file as tools of an engine; a broken server does not affect the others.

The definitions of a server are stored when it is first seen. From then on, a server is started only when one of its
tools is called, and a tool whose definition has changed is not called.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from neuroscript.coercion.context import type_name
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.config.policy_file import load_servers
from neuroscript.engine.engine import Engine
from neuroscript.errors import MAX_LISTED_PROBLEMS, PluginError, RegistryError, SpecError
from neuroscript.interop.mcp.client import accepted_definitions as file
from neuroscript.interop.mcp.client.connection import Openings
from neuroscript.interop.mcp.client.load import McpServer, from_mcp
from neuroscript.io.text import first, quote_path


def add_servers(engine: Engine, path: str | os.PathLike[str]) -> tuple[PluginError, ...]:
    """Add the tools of the servers in a file; the servers end with the engine.

    A server that cannot be used is listed in `Engine.plugin_errors`. So is each unusable tool of a server, unless the
    file sets ``skip``. Neither affects other servers or tools. A server without accepted definitions is started or
    reached now.

    Args:
        path: A file as for `neuroscript.load_policy`. Its ``mcp`` tables start programs, so only use a file that no
            other user can write.

    Returns:
        One error for each server that cannot be used, or has tools that cannot be used.

    Raises:
        SpecError: The file cannot be read or is invalid; nothing was added.
    """
    problems = (add_server(engine, table) for table in load_servers(path))
    return tuple(each for each in problems if each is not None)


def add_server(engine: Engine, table: ServerTable) -> PluginError | None:
    """Add the tools of one server, with the secrets of the engine's host; return why some or all cannot be used."""
    _, problem = try_server(engine, table)
    if problem is not None:
        engine.add_plugin_errors(problem)
    return problem


def try_server(
    engine: Engine, table: ServerTable, openings: Openings | None = None
) -> tuple[McpServer | None, PluginError | None]:
    """Add the tools of one server; return it, or None, and why some or all of its tools cannot be used.

    Args:
        openings: Decides when the server may be started or reached again.
    """
    subject = f"mcp.{table.name}"
    server: McpServer | None = None
    try:
        server = _added(engine, table, openings)
        skipped = [] if table.skip else first(server.skipped, MAX_LISTED_PROBLEMS)
        problem = PluginError(subject, "; ".join(skipped), code="plugin.spec") if skipped else None
    except SpecError as error:
        place = f"{error.subject}: " if error.subject == quote_path(table.accepted) else ""
        problem = PluginError(subject, f"{place}{'; '.join(error.problems)}", code="plugin.spec")
    except RegistryError as error:
        problem = PluginError(subject, str(error), code="plugin.duplicate")
    except PluginError as error:
        problem = PluginError(subject, error.reason, code=error.code)
    except Exception as error:  # caused by the server; it must not stop a command that does not need its tools
        problem = PluginError(subject, f"cannot be used ({type_name(error)})", code="plugin.broken")
        problem.__cause__ = error
    return server, problem


def _added(engine: Engine, table: ServerTable, openings: Openings | None) -> McpServer:
    """Return a server, after its usable tools were added."""
    server = _accepted_server(table, engine.host.secrets, openings)
    try:
        engine.add_hooks(server)
    except BaseException:
        server.close()
        raise
    return server


def _accepted_server(table: ServerTable, secrets: Mapping[str, str], openings: Openings | None) -> McpServer:
    """Return a server with its accepted tools; a new server gets the tools it has now."""
    if os.path.lexists(table.accepted):
        return _server(table, secrets, table.accepted, table.select, openings)
    server = _server(table, secrets, None, table.select, openings)
    if os.path.lexists(table.accepted):  # another process has accepted it meanwhile; its definitions apply
        server.close()
        return _accepted_server(table, secrets, openings)
    try:
        file.write(table.accepted, server.definitions)
    except OSError as error:
        server.close()
        reason = f"its tool definitions cannot be stored ({type(error).__name__})"
        raise PluginError(table.name, reason) from error
    return server


def inspect_server(table: ServerTable, secrets: Mapping[str, str]) -> McpServer:
    """Return a server with all of its current tools, regardless of what was accepted; invalid ones are skipped.

    Args:
        secrets: The values of the host's secrets, by name.

    Raises:
        SpecError: The table describes no valid server, or uses a secret that the host does not provide.
        PluginError: ``mcp.start``: the server cannot be reached.
    """
    return _server(table, secrets, None, None)


def _server(
    table: ServerTable,
    secrets: Mapping[str, str],
    accepted: str | None,
    select: Iterable[str] | None,
    openings: Openings | None = None,
) -> McpServer:
    return from_mcp(
        table.command,
        url=table.url,
        group=table.group,
        env=table.env,
        headers=table.headers,
        secrets=secrets,
        cwd=table.cwd or None,
        trusted=table.trusted,
        trust_annotations=table.trust_annotations,
        select=select,
        skip=True,
        accepted=accepted,
        timeout=table.timeout,
        plain_http=table.plain_http,
        confine=table.confine,
        read=table.read,
        write=table.write,
        network=table.network,
        roots=table.roots,
        sampling=table.sampling,
        resources=table.resources,
        description_chars=table.description_chars,
        oauth=table.oauth or False,
        openings=openings,
    )
