"""Which installed distributions a user wants: by the environment, and by ``-p no:NAME``.

The command reads the environment; an `Engine` does not, for what an application loads is what it says.

Source: ecosystem.md part 19, autoload switch and allow-list.

Which policy file a command means, and whether servers may stand in it; little is loaded to tell.

Source: issue "Authority", policy as a file; issue "MCP", ``[mcp.NAME]`` in the configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.terminal.output import Output
from neuroscript.io.text import shown
from neuroscript.io.user_cache import config_file

ONLY: Final = "NEUROSCRIPT_PLUGINS"
"""Names the distributions that may be loaded, and bundles of them, with commas between; an empty text means none."""


NO_AUTOLOAD: Final = "NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD"
"""Any text but an empty one: nothing is loaded but what `ONLY` names."""


NO: Final = "no:"
"""How a value of ``-p`` begins that leaves out a distribution or an entry point."""


def choice(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords ``plugins`` and ``without`` of an engine, each where the user says something.

    Raises:
        PluginError: The environment names a bundle that there is not.
    """
    keywords: dict[str, Any] = {}
    names = [each.removeprefix(NO) for each in settings.get("plugin") or () if each.startswith(NO)]
    if names:
        keywords["without"] = names
    if ONLY in os.environ:
        from neuroscript.discovery.bundles import unbundled

        keywords["plugins"] = unbundled(tuple(filter(None, map(str.strip, os.environ[ONLY].split(",")))))
    elif os.environ.get(NO_AUTOLOAD):
        keywords["plugins"] = "none"
    return keywords


def files(settings: Mapping[str, Any]) -> list[str]:
    """Return the files that ``-p`` names."""
    return [each for each in settings.get("plugin") or () if not each.startswith(NO)]


def warn(without: list[str], output: Output) -> None:
    """Say which names of ``-p no:NAME`` leave nothing out, for then something is loaded that was not wanted."""
    if without:
        from neuroscript.discovery.installed import known, normalised

        for name in without:
            names = (normalised(name) == each.key or name in map(_name, each.entry_points) for each in known())
            if not any(names):
                output.say(f"warning: -p {NO}{shown(name)} leaves nothing out; no plugin is called so")


def _name(entry: Any) -> str:
    name: str = entry.name
    return name


LONGEST: Final = 1024 * 1024
"""How many bytes of a file are looked at; a longer one is no policy file."""


def file_of(settings: Mapping[str, Any]) -> str | None:
    """Return the file that is named, else the user's own where there is one; one that can not be seen counts too."""
    named: str | None = settings["policy"]
    own = config_file() if named is None else None
    if own is None:
        return named
    try:
        os.lstat(own)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # so it may well say something
        return own
    return own


def may_name_servers(settings: Mapping[str, Any], is_own: bool) -> bool:
    """Tell whether the file in use may name servers, by a look that costs next to nothing."""
    file = file_in_use(settings, is_own)
    if file is None:
        return False
    if not Path(file).is_file():  # which whoever reads it tells of
        return True
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(LONGEST)
    except OSError:
        return True
    return b"mcp" in text or b"\\" in text  # as a key may be written with escapes


def file_in_use(settings: Mapping[str, Any], is_own: bool) -> str | None:
    """Return the file whose servers count, or None.

    Args:
        is_own: Whether the command is ours; that of a host takes no file that is not named.
    """
    if "policy" not in settings:
        return None
    is_wanted = is_own and settings.get("locked") is None and not os.environ.get(NO_AUTOLOAD)
    return file_of(settings) if is_wanted or settings["policy"] is not None else None
