"""The user's choice of plugins and policy file, from options and environment variables.

Only the command reads the environment. An `Engine` does not, because an application decides itself what it loads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neuroscript.cli.terminal.output import Output
from neuroscript.io.text import quote_untrusted
from neuroscript.io.user_cache import config_file

if TYPE_CHECKING:
    from neuroscript.isolation.imports import ConfinedImports
    from neuroscript.policy.isolation import Isolation

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


def isolation_in_use(settings: Mapping[str, Any]) -> Isolation | None:
    """Return the isolation of the policy file in use, without a profile, and of ``--isolate-plugins``, or None.

    Commands that only describe tools need it too, because they must not import what is isolated.

    Raises:
        SpecError: The file may contain settings of isolation, and cannot be read or is invalid; or a name is invalid.
    """
    file = file_of({"policy": settings.get("policy")})
    if file is None or not may_contain(file, b"isolation"):
        return with_isolated_plugins(None, settings)
    from neuroscript.config.policy_file import load_policy

    return with_isolated_plugins(load_policy(file).isolate, settings)


def with_isolated_plugins(isolation: Isolation | None, settings: Mapping[str, Any]) -> Isolation | None:
    """Return an isolation that also isolates the plugins of ``--isolate-plugins``."""
    names = settings.get("isolate_plugins")
    if not names:
        return isolation
    import attrs

    from neuroscript.policy.isolation import Isolation

    isolation = isolation or Isolation()
    return attrs.evolve(isolation, plugins=(*isolation.plugins, *names))


@contextmanager
def confined_imports(settings: Mapping[str, Any]) -> Iterator[ConfinedImports | None]:
    """Provide what imports the plugins that the user isolates, or None if no plugin is isolated.

    Raises:
        SpecError: The settings are invalid; see `isolation_in_use`.
    """
    isolation = isolation_in_use(settings)
    if isolation is None or not isolation.plugins:
        yield None
        return
    from neuroscript.isolation.imports import ConfinedImports
    from neuroscript.isolation.pool import Pool
    from neuroscript.policy.execution_policy import ExecutionPolicy

    pool = Pool()
    try:
        yield ConfinedImports(ExecutionPolicy(isolate=isolation), lambda: pool)
    finally:
        pool.close()


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
    return file is not None and may_contain(file, b"mcp")


def may_contain(file: str, key: bytes) -> bool:
    """Return whether a policy file may contain a key, without parsing it."""
    if not Path(file).is_file():  # reading it later reports the error
        return True
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(MAX_FILE_BYTES)
    except OSError:
        return True
    return key in text or b"\\" in text  # a key may be written with escapes


def file_in_use(settings: Mapping[str, Any], is_own: bool) -> str | None:
    """Return the policy file whose servers are used, or None.

    Args:
        is_own: Whether this is the ``neuroscript`` command; an application's command reads no file implicitly.
    """
    if "policy" not in settings:
        return None
    is_wanted = is_own and settings.get("locked") is None and not os.environ.get(NO_AUTOLOAD_VARIABLE)
    return file_of(settings) if is_wanted or settings["policy"] is not None else None
