"""MCP servers that the policy file of a command defines, and their tools in its engine.

Servers are started as programs. A policy file that is not named on the command line is therefore used only from the
user's own directory, and only if no other user can change it. The working directory is never searched.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neuroscript.cli.env.choices import file_in_use, may_name_servers
from neuroscript.cli.terminal.output import Output
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.engine.engine import Engine
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_path


def tables(settings: Mapping[str, Any], is_own: bool, output: Output) -> tuple[ServerTable, ...]:
    """Return the servers in the policy file in use; an invalid file of the user's own produces a warning.

    Raises:
        SpecError: The file of ``--policy`` cannot be read, or is invalid.
    """
    if not may_name_servers(settings, is_own):
        return ()
    from neuroscript.config.policy_file import load_servers

    file = file_in_use(settings, is_own) or ""
    try:
        found = load_servers(file)
    except SpecError as error:
        if settings["policy"] is not None:
            raise
        for sentence in error.sentences[:1]:
            output.say(f"warning: {sentence}")
        return ()
    return found if not found or settings["policy"] is not None or _is_safe(file, output) else ()


def _is_safe(file: str, output: Output) -> bool:
    """Return whether only the user can write a file that starts programs; otherwise print a warning."""
    from neuroscript.io.private_files import exposure

    exposed = exposure(Path(file))
    if exposed is not None:
        output.say(f"warning: {quote_path(file)}: its MCP servers are not started: {exposed}")
    return exposed is None


def secrets_of(found: Iterable[ServerTable]) -> dict[str, str]:
    """Return the secrets that servers need, by name, from environment variables."""
    names = {name for each in found for name in each.secrets}
    if not names:
        return {}
    from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS

    return {name: os.environ[name] for name in names if len(os.environ.get(name, "")) >= MIN_SECRET_CHARS}


def add_servers(engine: Engine, found: Iterable[ServerTable], output: Output) -> None:
    """Add the tools of servers to an engine, and report unusable servers and newly accepted tools."""
    from neuroscript.interop.mcp.client.servers import add_server

    for table in found:
        is_known = os.path.lexists(table.accepted)
        error = add_server(engine, table)
        if error is not None:
            output.say(f"warning: {error}")
        if not is_known and os.path.lexists(table.accepted):
            output.say(f"mcp.{table.name}: accepted its current tools in {quote_path(table.accepted)}")


def accept_hint(settings: Mapping[str, Any], tool: str, output: Output) -> str:
    """Return how to review and accept a changed tool, or ``""`` if no policy file defines its server."""
    group = tool.rpartition(".")[0]
    for table in tables(settings, True, output):
        if table.group == group:
            named = [] if settings["policy"] is None else ["--policy", settings["policy"]]
            words = shlex.join(["neuroscript", "mcp", "tools", table.name, *named])
            return f"review the changes with: {words}; accept them by adding --accept"
    return ""
