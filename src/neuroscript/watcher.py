"""Plugins of files that change: which of them did since the last look.

Files are looked at, for no system tells of changes on every kind of file system; a look asks the system once for each.

Source: contract section 7, level C; issue "Plugins", ``--watch``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from neuroscript.checks import PATHS, as_tuple, require
from neuroscript.discovery import offered
from neuroscript.errors import PluginError

Stamp = tuple[tuple[str, int, int, int], ...]
"""Of each file its path, when it was written (nanoseconds), its size (bytes) and its number; none if there is none."""


class Watcher:
    """Tells which plugins are not what they were, for `Engine.reload_plugin`.

    It does not wait, and keeps no thread: whoever has it asks it as often as wanted.

    Args:
        plugins: Files of Python, and packages, of which every module counts.
        directories: Directories of plugins, in which new ones count too.

    >>> watcher = Watcher(["docs/examples/shop.py"])
    >>> watcher.changed()
    ()

    Source: contract section 7, level C.
    """

    def __init__(
        self, plugins: Iterable[str | os.PathLike[str]] = (), directories: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        plugins, directories = as_tuple(plugins), as_tuple(directories)
        require("Watcher", plugins=(plugins, PATHS), directories=(directories, PATHS))
        self._plugins = tuple(os.fspath(each) for each in plugins)
        self._directories = tuple(os.fspath(each) for each in directories)
        self._stamps: dict[str, Stamp] = {}
        self.changed()

    def changed(self) -> tuple[str, ...]:
        """Return the plugins that changed, came or went since the last look, and take note of what they are now.

        Returns:
            Their paths: as they were given, and in a directory as `Engine.load_plugins` has them.
        """
        before = self._stamps
        self._stamps = {path: _stamp(path) for path in dict.fromkeys((*before, *self._offered()))}
        return tuple(path for path, stamp in self._stamps.items() if stamp != before.get(path, ()))

    def _offered(self) -> Iterator[str]:
        yield from self._plugins
        for directory in self._directories:
            with suppress(PluginError):  # as when it is gone for a moment; what is known of it stays
                yield from offered(directory)


def _stamp(plugin: str) -> Stamp:
    path = Path(plugin)
    try:
        return tuple(_marks(sorted(path.rglob("*.py")) if path.is_dir() else [path]))
    except OSError:  # it goes while it is looked at
        return ()


def _marks(files: Iterable[Path]) -> Iterator[tuple[str, int, int, int]]:
    for file in files:
        with suppress(OSError):
            status = file.stat()
            yield str(file), status.st_mtime_ns, status.st_size, status.st_ino
