"""The servers that a host's file names, as tools of an engine: each for itself, and one that is broken stops no other.

What a server says its tools are is written down when it is first seen. From then on nothing is started before one of
its tools is called, and a tool that is not what stands there is not called.

Source: issue "MCP", ``[mcp.NAME]`` in the configuration; reliability.md part 4.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from neuroscript.coercion.context import type_name
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.config.policy_file import load_servers
from neuroscript.engine.engine import Engine
from neuroscript.errors import LISTED, PluginError, RegistryError, SpecError
from neuroscript.interop.mcp.client import accepted_definitions as file
from neuroscript.interop.mcp.client.load import McpServer, from_mcp
from neuroscript.io.text import first, shown_path


def add_servers(engine: Engine, path: str | os.PathLike[str]) -> tuple[PluginError, ...]:
    """Add the tools of the servers that a file names; they end with the engine.

    Each server that cannot be used is listed in `Engine.plugin_errors`, and so is each tool of a server that cannot be
    used, unless the file says ``skip``; neither stops any other. A server whose definitions have not been accepted
    before is started, or reached, now.

    Args:
        path: As for `neuroscript.load_policy`. Its ``mcp`` tables start programs: name none that others could write.

    Returns:
        Why some servers, or some of their tools, cannot be used; one error for each server.

    Raises:
        SpecError: The file can not be read, or something in it is wrong; nothing has been added then.
    """
    problems = (add_server(engine, table) for table in load_servers(path))
    return tuple(each for each in problems if each is not None)


def add_server(engine: Engine, table: ServerTable) -> PluginError | None:
    """Add the tools of one server, with the secrets of the engine's host, or return why some or all cannot be used."""
    subject = f"mcp.{table.name}"
    try:
        skipped = _added(engine, table)
        problem = PluginError(subject, "; ".join(skipped), code="plugin.spec") if skipped else None
    except SpecError as error:
        place = f"{error.subject}: " if error.subject == shown_path(table.accepted) else ""
        problem = PluginError(subject, f"{place}{'; '.join(error.problems)}", code="plugin.spec")
    except RegistryError as error:
        problem = PluginError(subject, str(error), code="plugin.duplicate")
    except PluginError as error:
        problem = PluginError(subject, error.reason, code=error.code)
    except Exception as error:  # of what a server says; no server stops a command that needs none of its tools
        problem = PluginError(subject, f"cannot be used ({type_name(error)})", code="plugin.broken")
        problem.__cause__ = error
    if problem is not None:
        engine.add_plugin_errors(problem)
    return problem


def _added(engine: Engine, table: ServerTable) -> list[str]:
    """Add the tools of one server that can be used, and return why others cannot."""
    server = _accepted(table, engine.host.secrets)
    try:
        engine.add_hooks(server)
    except BaseException:
        server.close()
        raise
    return [] if table.skip else first(server.skipped, LISTED)


def _accepted(table: ServerTable, secrets: Mapping[str, str]) -> McpServer:
    """Return a server with the tools that were accepted; of one that was never seen, those that it has now."""
    if os.path.lexists(table.accepted):
        return _server(table, secrets, table.accepted, table.select)
    server = _server(table, secrets, None, table.select)
    if os.path.lexists(table.accepted):  # somebody has accepted it meanwhile, and that holds
        server.close()
        return _accepted(table, secrets)
    try:
        file.write(table.accepted, server.definitions)
    except OSError as error:
        server.close()
        reason = f"what it says its tools are can not be written down ({type(error).__name__})"
        raise PluginError(table.name, reason) from error
    return server


def looked_at(table: ServerTable, secrets: Mapping[str, str]) -> McpServer:
    """Return a server with all that it says its tools are now, whatever was accepted; what can not be taken is skipped.

    Args:
        secrets: Texts by name, those of the host.

    Raises:
        SpecError: The table names no server, or a secret that the host does not lend.
        PluginError: ``mcp.start``, the server can not be reached.
    """
    return _server(table, secrets, None, None)


def _server(
    table: ServerTable, secrets: Mapping[str, str], accepted: str | None, select: Iterable[str] | None
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
    )
