"""Reload local plugins when their files change; a plugin that cannot be loaded keeps its previous tools."""

from __future__ import annotations

from argparse import Namespace
from time import sleep
from typing import Final

from neuroscript.cli.env.choices import files
from neuroscript.cli.env.engine import directories
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.discovery.local_plugins import Watcher, check_owner
from neuroscript.engine.engine import Engine
from neuroscript.errors import PluginError, RegistryError
from neuroscript.io.text import quote_path

POLL_SECONDS: Final = 0.2
"""Seconds between two checks of the files."""


def watcher(options: Namespace, is_own: bool) -> Watcher:
    """Return a watcher of the plugins that *options* load from files; create it before the plugins are loaded.

    Args:
        is_own: Whether this is the ``neuroscript`` command, which also loads the user's own plugin directory.

    Raises:
        UsageError: The options load no plugin from a file.
    """
    plugins, folders = files(vars(options)), directories(vars(options), is_own)
    if not plugins and not folders:
        raise UsageError("--watch needs a local plugin; add -p FILE or --plugins-dir DIR")
    return Watcher(plugins, folders)


def wait(watcher: Watcher, engine: Engine, output: Output) -> None:
    """Wait until at least one changed plugin has been reloaded, and report each reload and failure."""
    is_new = False
    while not is_new:
        sleep(POLL_SECONDS)
        for path in watcher.changed():
            is_new = _reloaded(path, engine, output) or is_new


def _reloaded(path: str, engine: Engine, output: Output) -> bool:
    try:
        _load(path, engine)
    except PluginError as error:
        output.say(f"{error}; its previous tools remain")
        return False
    except RegistryError as error:
        output.say(f"{quote_path(path)}: {error}; its previous tools remain")
        return False
    output.say(f"reloaded {quote_path(path)}")
    return True


def _load(path: str, engine: Engine) -> None:
    """Reload a plugin, or load it if it was missing or could not be loaded before."""
    try:
        engine.reload_plugin(path)
    except PluginError as error:
        if error.code != "plugin.unknown":
            raise
        engine.load_plugin(check_owner(path))
