"""The servers of MCP that a command's policy file names: which there are, and their tools for its engine.

They are started as programs, so a file that is only found counts where plugins that are only found do: in the user's
own directory, where no other user can change it. Nothing of the working directory is read unless it is named.

Source: issue "MCP", ``[mcp.NAME]`` in the configuration.
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
from neuroscript.io.text import shown_path


def tables(settings: Mapping[str, Any], is_own: bool, output: Output) -> tuple[ServerTable, ...]:
    """Return the servers that the file in use names; the user's own file, not named, is told of where it is broken.

    Raises:
        SpecError: The file that is named can not be read, or is wrong.
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
    """Tell whether nobody else could have written a file that starts programs; if somebody could, say so."""
    from neuroscript.io.private_files import exposure

    exposed = exposure(Path(file))
    if exposed is not None:
        output.say(f"warning: {shown_path(file)}: no server in it is started: {exposed}")
    return exposed is None


def lent(found: Iterable[ServerTable]) -> dict[str, str]:
    """Return the secrets that servers take, by name: variables of the environment that a host may lend."""
    names = {name for each in found for name in each.secrets}
    if not names:
        return {}
    from neuroscript.runtime.secret_forms import SHORTEST

    return {name: os.environ[name] for name in names if len(os.environ.get(name, "")) >= SHORTEST}


def join(engine: Engine, found: Iterable[ServerTable], output: Output) -> None:
    """Add the tools of servers to an engine; say which can not be used, and which were accepted as they are now."""
    from neuroscript.interop.mcp.client.servers import add_server

    for table in found:
        is_known = os.path.lexists(table.accepted)
        error = add_server(engine, table)
        if error is not None:
            output.say(f"warning: {error}")
        if not is_known and os.path.lexists(table.accepted):
            output.say(f"mcp.{table.name}: its tools are accepted as they are now, in {shown_path(table.accepted)}")


def accepting(settings: Mapping[str, Any], tool: str, output: Output) -> str:
    """Return how a tool that is not what was accepted is looked at and accepted, or ``""`` where no file names it."""
    group = tool.rpartition(".")[0]
    for table in tables(settings, True, output):
        if table.group == group:
            named = [] if settings["policy"] is None else ["--policy", settings["policy"]]
            words = shlex.join(["neuroscript", "mcp", "tools", table.name, *named])
            return f"see what is different with: {words}; and accept it with the same and --accept"
    return ""
