"""The user's configuration, cache and data directories, and a cache of small files with change detection.

Each directory is an absolute path, whether or not it exists, or None if the environment defines none: nothing is read
from the working directory unless it is named explicitly.

The file functions never raise OSError: a file that cannot be read counts as missing, and a file that cannot be
cached is read again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from time import time_ns
from typing import Any, Final

APPLICATION: Final = "neuroscript"
"""The name of our directories."""


CONFIG: Final = "neuroscript.toml"
"""The file with the user's policy."""


PLUGINS: Final = "plugins"
"""The directory next to it, with Python files and packages that the command loads."""


SANDBOX: Final = "sandbox"
"""The directory of files that tools may use if the host configures no other."""


XDG: Final[Mapping[str, tuple[str, str]]] = {
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
    "data": ("XDG_DATA_HOME", "~/.local/share"),
}
"""The variable and default for each kind of directory on Linux, from the XDG Base Directory Specification."""


def config_file() -> str | None:
    """Return the path of the user's policy file."""
    return _below(_directory("config"), CONFIG)


def plugins_directory() -> str | None:
    """Return the path of the user's plugins."""
    return _below(_directory("config"), PLUGINS)


def cache_file(name: str) -> str | None:
    """Return the path of a file in the user's cache."""
    return _below(_directory("cache"), name)


def data_file(name: str) -> str | None:
    """Return the path of a file in the user's data."""
    return _below(_directory("data"), name)


def sandbox_directory() -> str:
    """Return the sandbox directory for hosts that name none. It may be relative, and is then rejected."""
    return os.path.join(_directory("data"), SANDBOX)


def _directory(kind: str) -> str:
    """Return the directory of one kind, as platformdirs does.

    This runs at every start, and platformdirs takes ten milliseconds to import. On Linux, an absolute path in the
    environment variable or the default is enough.
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


CHUNK: Final = 1 << 16
"""Number of bytes that are read at once."""


READING: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""The flags for reading. O_NONBLOCK keeps a named pipe from blocking; it counts as an empty file."""


FINE_TIMESTAMP_NS: Final = 100_000_000
"""Nanoseconds within which two changes of a file may get the same timestamp, if the file system stores fractions."""


COARSE_TIMESTAMP_NS: Final = 2_000_000_000
"""The same for file systems that store whole seconds."""


MAX_AGE_NS: Final = 90 * 24 * 3600 * 1_000_000_000
"""The age in nanoseconds after which a cache file is removed."""


MAX_FILES: Final = 20_000
"""Maximum number of files below one folder that are examined; nothing is cached for larger folders."""


Stamp = tuple[int, int]
"""The modification time of a file or folder in nanoseconds, and its size; zeros if it does not exist."""


def read_text(file: str) -> str:
    """Return the content of a file, or ``""`` if it cannot be read, in a third of the time of opening a text file."""
    try:
        descriptor = os.open(file, READING)
    except (OSError, ValueError):
        return ""
    data = b""
    try:
        while len(part := os.read(descriptor, CHUNK)) == CHUNK:
            data += part
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return (data + part).decode("utf-8", "replace")


def read_json(file: str) -> Any:
    """Return the content of a JSON file, or None if the file does not exist."""
    text = read_text(file)
    if not text:
        return None
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def write_json(file: str, data: Any) -> bool:
    """Write a JSON file in the same way as `write_text`."""
    import json

    return write_text(file, json.dumps(data, separators=(",", ":")))


def write_text(file: str, text: str) -> bool:
    """Write a file atomically, readable only by this user; return whether that succeeded."""
    unfinished = f"{file}.{os.urandom(6).hex()}"
    try:
        data = text.encode()
        os.makedirs(os.path.dirname(file), 0o700, exist_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except (OSError, ValueError):  # the path or the text cannot be encoded
        return False
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
        os.replace(unfinished, file)
    except OSError:
        remove(unfinished)
        return False
    return True


def tidy(directory: str, heads: tuple[str, ...]) -> None:
    """Remove old files of ours from a directory of the cache.

    Args:
        heads: The strings with which our files begin. Other files belong to the user, whatever their names are.
    """
    oldest = time_ns() - MAX_AGE_NS
    with suppress(OSError):
        for name in os.listdir(directory):
            file = os.path.join(directory, name)
            if 0 < stamp(file)[0] < oldest and name.endswith(".json") and read_text(file).startswith(heads):
                remove(file)


def remove(file: str) -> None:
    """Remove a file if it exists and can be removed."""
    with suppress(OSError, ValueError):
        os.unlink(file)


def cache_path(kind: str, *parts: object) -> str | None:
    """Return the cache file for the item identified by *parts*, or None if there is no cache."""
    return cache_file(f"{kind}-{checksum(repr(parts)):016x}.json")


def checksum(text: str) -> int:
    """Return a number below 2**61 for a text. It needs no import, unlike CRC-32, which comes from a shared library."""
    return int.from_bytes(text.encode("utf-8", "surrogatepass"), "big") % (2**61 - 1)


def stamp(file: str) -> Stamp:
    """Return the modification time and size of a file or folder."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return 0, 0
    return status.st_mtime_ns, status.st_size


def stamps(files: Iterable[str]) -> list[list[Any]]:
    """Return files with their stamps, as JSON data."""
    return [[each, *stamp(each)] for each in files]


def are_unchanged(kept: Any) -> bool:
    """Return whether files are unchanged since `stamps` was called for them."""
    try:
        return all((changed, size) == stamp(file) for file, changed, size in kept)
    except (TypeError, ValueError):
        return False


def are_settled(found: Iterable[list[Any]], read: int) -> bool:
    """Return whether files are unchanged since they were read, and the next change will be visible in their stamps.

    Args:
        found: The stamps of the files, taken after reading.
        read: When the first file was read, in nanoseconds. A file that changed shortly before may have been read in its
            old state and stamped in its new one.
    """
    return all(
        read - changed > (FINE_TIMESTAMP_NS if changed % 1_000_000_000 else COARSE_TIMESTAMP_NS)
        for _, changed, _ in found
        if changed
    )


def stamps_below(roots: Iterable[str]) -> list[list[Any]] | None:
    """Return all files of packages and modules with their stamps, in order, or None if there are too many."""
    found: list[list[Any]] = []
    for file in _files(roots):
        found.append([file, *stamp(file)])
        if len(found) > MAX_FILES:
            return None
    return found


def _files(roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        if not os.path.isdir(root):
            yield root
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(each for each in folders if each != "__pycache__" and not each.startswith("."))
            yield from (os.path.join(folder, each) for each in sorted(files))
