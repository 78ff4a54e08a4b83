"""Where this user's own files are: the one door to platformdirs.

Each place is an absolute path, whether it is there or not, or None where the environment names none: nothing is read
from the working directory unless it is named.

Source: design.md, rule 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

APPLICATION: Final = "neuroscript"
"""What our directories are called."""

CONFIG: Final = "neuroscript.toml"
"""The file of this user's own policy."""

PLUGINS: Final = "plugins"
"""The directory beside it, of files of Python and packages that the command loads."""

SANDBOX: Final = "sandbox"
"""The directory of the files that tools may use where the host names no other."""

XDG: Final[Mapping[str, tuple[str, str]]] = {
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
    "data": ("XDG_DATA_HOME", "~/.local/share"),
}
"""The variable that names each kind of directory on Linux, and the default: the XDG Base Directory Specification."""


def config_file() -> str | None:
    """Return where this user's own policy stands."""
    return _below(_directory("config"), CONFIG)


def plugins_directory() -> str | None:
    """Return where this user's own plugins stand."""
    return _below(_directory("config"), PLUGINS)


def cache_file(name: str) -> str | None:
    """Return where a file of this user's cache stands."""
    return _below(_directory("cache"), name)


def data_file(name: str) -> str | None:
    """Return where a file of this user's data stands."""
    return _below(_directory("data"), name)


def sandbox_directory() -> str:
    """Return where the sandbox is of a host that names none; it may be a relative path, which is then refused."""
    return os.path.join(_directory("data"), SANDBOX)


def _directory(kind: str) -> str:
    """Return the directory of one kind, as platformdirs does.

    It is asked for at every start: on Linux an absolute path in a variable or a default says it, and the library takes
    ten milliseconds to load.
    """
    if sys.platform == "linux" and "ANDROID_DATA" not in os.environ:
        variable, default = XDG[kind]
        path = os.environ.get(variable, "").strip() or os.path.expanduser(default)
        if os.path.isabs(path):
            return os.path.join(path, APPLICATION)
    import platformdirs

    found: str = getattr(platformdirs, f"user_{kind}_dir")(APPLICATION, appauthor=False)
    return found


def _below(directory: str, name: str) -> str | None:
    return os.path.join(directory, name) if os.path.isabs(directory) else None
