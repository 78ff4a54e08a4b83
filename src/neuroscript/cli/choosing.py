"""Which installed distributions a user wants: by the environment, and by ``-p no:NAME``.

The command reads the environment; an `Engine` does not, for what an application loads is what it says.

Source: ecosystem.md part 19, autoload switch and allow-list.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from neuroscript.cli.output import Output
from neuroscript.display import shown

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
        from neuroscript.bundles import unbundled

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
        from neuroscript.installed import known, normalised

        for name in without:
            names = (normalised(name) == each.key or name in map(_name, each.entry_points) for each in known())
            if not any(names):
                output.say(f"warning: -p {NO}{shown(name)} leaves nothing out; no plugin is called so")


def _name(entry: Any) -> str:
    name: str = entry.name
    return name
