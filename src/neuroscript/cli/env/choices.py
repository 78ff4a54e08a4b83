"""The user's choice of plugins and policy file, from options and environment variables.

Only the command reads the environment. An `Engine` does not, because an application decides itself what it loads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.terminal.output import Output
from neuroscript.io.text import quote_untrusted
from neuroscript.io.user_cache import config_file

PLUGINS_VARIABLE: Final = "NEUROSCRIPT_PLUGINS"
"""Variable with the distributions and bundles that may be loaded, separated by commas; empty means none."""


NO_AUTOLOAD_VARIABLE: Final = "NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD"
"""Variable that, if it is not empty, disables every plugin that `PLUGINS_VARIABLE` does not name."""


EXCLUDE_PREFIX: Final = "no:"
"""Prefix of a ``-p`` value that excludes a distribution or an entry point."""


def plugin_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments ``plugins`` and ``without`` of an engine, each only if the user set it.

    Raises:
        PluginError: The environment names an unknown bundle.
    """
    keywords: dict[str, Any] = {}
    names = [
        each.removeprefix(EXCLUDE_PREFIX) for each in settings.get("plugin") or () if each.startswith(EXCLUDE_PREFIX)
    ]
    if names:
        keywords["without"] = names
    if PLUGINS_VARIABLE in os.environ:
        from neuroscript.discovery.bundles import expand_bundles

        keywords["plugins"] = expand_bundles(
            tuple(filter(None, map(str.strip, os.environ[PLUGINS_VARIABLE].split(","))))
        )
    elif os.environ.get(NO_AUTOLOAD_VARIABLE):
        keywords["plugins"] = "none"
    return keywords


def files(settings: Mapping[str, Any]) -> list[str]:
    """Return the files that ``-p`` names."""
    return [each for each in settings.get("plugin") or () if not each.startswith(EXCLUDE_PREFIX)]


def warn(without: list[str], output: Output) -> None:
    """Warn about each ``-p no:NAME`` that excludes nothing, because then an unwanted plugin may be loaded."""
    if without:
        from neuroscript.discovery.installed import installed_distributions, normalize_name

        for name in without:
            names = (
                normalize_name(name) == each.key or name in map(_name, each.entry_points)
                for each in installed_distributions()
            )
            if not any(names):
                output.say(
                    f"warning: -p {EXCLUDE_PREFIX}{quote_untrusted(name)} excludes nothing; no plugin has that name"
                )


def _name(entry: Any) -> str:
    name: str = entry.name
    return name


MAX_FILE_BYTES: Final = 1024 * 1024
"""Bytes of a file that are searched; a policy file is never longer."""


def file_of(settings: Mapping[str, Any]) -> str | None:
    """Return the policy file of ``--policy``, else the user's own, else None.

    A user file that cannot be accessed counts as present, because it may contain rules.
    """
    named: str | None = settings["policy"]
    own = config_file() if named is None else None
    if own is None:
        return named
    try:
        os.lstat(own)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # it may exist and contain rules
        return own
    return own


def may_name_servers(settings: Mapping[str, Any], is_own: bool) -> bool:
    """Return whether the policy file in use may define MCP servers, without parsing it."""
    file = file_in_use(settings, is_own)
    if file is None:
        return False
    if not Path(file).is_file():  # reading it later reports the error
        return True
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES)
    except OSError:
        return True
    return b"mcp" in text or b"\\" in text  # a key may be written with escapes


def file_in_use(settings: Mapping[str, Any], is_own: bool) -> str | None:
    """Return the policy file whose servers are used, or None.

    Args:
        is_own: Whether this is the ``neuroscript`` command; an application's command reads no file implicitly.
    """
    if "policy" not in settings:
        return None
    is_wanted = is_own and settings.get("locked") is None and not os.environ.get(NO_AUTOLOAD_VARIABLE)
    return file_of(settings) if is_wanted or settings["policy"] is not None else None
