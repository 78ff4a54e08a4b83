"""Plugins of files loaded anew when they change, while a command goes on; what can not be loaded changes nothing."""

from __future__ import annotations

from argparse import Namespace
from time import sleep
from typing import Final

from neuroscript.cli.env.choices import files
from neuroscript.cli.env.engine import directories
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.discovery.local_plugins import Watcher, guarded
from neuroscript.engine.engine import Engine
from neuroscript.errors import PluginError, RegistryError
from neuroscript.io.text import shown_path

PAUSE: Final = 0.2
"""Seconds between two looks at the files."""


def watcher(options: Namespace, is_own: bool) -> Watcher:
    """Return what watches the plugins that *options* bring; it is to be there before they are loaded.

    Args:
        is_own: Whether the command is ours, and so loads the plugins of the user's own directory.

    Raises:
        UsageError: They bring none that are read from files.
    """
    plugins, folders = files(vars(options)), directories(vars(options), is_own)
    if not plugins and not folders:
        raise UsageError("--watch is for plugins of files; name one with -p, or a directory with --plugins-dir")
    return Watcher(plugins, folders)


def wait(watcher: Watcher, engine: Engine, output: Output) -> None:
    """Wait until plugins have changed and at least one of them has been loaded anew; tell of each."""
    is_new = False
    while not is_new:
        sleep(PAUSE)
        for path in watcher.changed():
            is_new = _reloaded(path, engine, output) or is_new


def _reloaded(path: str, engine: Engine, output: Output) -> bool:
    try:
        _load(path, engine)
    except PluginError as error:
        output.say(f"{error}; its tools are what they were")
        return False
    except RegistryError as error:
        output.say(f"{shown_path(path)}: {error}; its tools are what they were")
        return False
    output.say(f"loaded {shown_path(path)} anew")
    return True


def _load(path: str, engine: Engine) -> None:
    """Load a plugin anew, or for the first time where it was broken, or not there, until now."""
    try:
        engine.reload_plugin(path)
    except PluginError as error:
        if error.code != "plugin.unknown":
            raise
        engine.load_plugin(guarded(path))
