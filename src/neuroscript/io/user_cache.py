"""Where this user's own files are: the one door to platformdirs.

Each place is an absolute path, whether it is there or not, or None where the environment names none: nothing is read
from the working directory unless it is named.

Source: design.md, rule 1.

Small files that were read once: what they say, and whether they have changed since.

Nothing here raises an OSError: what can not be read says nothing, and what can not be kept is read again.

Source: performance.md part 6.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from time import time_ns
from typing import Any, Final

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


CHUNK: Final = 1 << 16
"""How many bytes are read at once."""


READING: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""A named pipe is not waited for, and says nothing."""


FINE: Final = 100_000_000
"""Nanoseconds within which two changes of a file may look like one, where the file system counts fractions."""


COARSE: Final = 2_000_000_000
"""The same, where it counts whole seconds."""


OLDEST: Final = 90 * 24 * 3600 * 1_000_000_000
"""Nanoseconds after which a file of the cache is taken away."""


MOST: Final = 20_000
"""How many files below one folder are looked at; of a larger one nothing is kept."""


Stamp = tuple[int, int]
"""When a file or a folder was changed, in nanoseconds, and its size; zeros where there is none."""


def read_text(file: str) -> str:
    """Return what a file says, or nothing where there is none; a text file of the library costs three times as much."""
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
    """Return what a file of JSON says, or None where there is none."""
    text = read_text(file)
    if not text:
        return None
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def write_json(file: str, data: Any) -> bool:
    """Write a file of JSON as `write_text` does."""
    import json

    return write_text(file, json.dumps(data, separators=(",", ":")))


def write_text(file: str, text: str) -> bool:
    """Write a file, whole or not at all, that only this user reads; tell whether that was possible."""
    unfinished = f"{file}.{os.urandom(6).hex()}"
    try:
        data = text.encode()
        os.makedirs(os.path.dirname(file), 0o700, exist_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except (OSError, ValueError):  # a path that is no text can not be kept
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
    """Remove our files that were written to a directory of the cache long ago.

    Args:
        heads: How the text of our files begins. A file with another text is the user's, whatever its name is.
    """
    oldest = time_ns() - OLDEST
    with suppress(OSError):
        for name in os.listdir(directory):
            file = os.path.join(directory, name)
            if 0 < stamp(file)[0] < oldest and name.endswith(".json") and read_text(file).startswith(heads):
                remove(file)


def remove(file: str) -> None:
    """Take a file away, if it is there and that is possible."""
    with suppress(OSError, ValueError):
        os.unlink(file)


def kept_at(kind: str, *parts: object) -> str | None:
    """Return the file of the cache for something that *parts* tell from all else, or None where there is no cache."""
    return cache_file(f"{kind}-{crc32(repr(parts).encode()):08x}.json")


def stamp(file: str) -> Stamp:
    """Return when a file or a folder was changed, and its size."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return 0, 0
    return status.st_mtime_ns, status.st_size


def stamps(files: Iterable[str]) -> list[list[Any]]:
    """Return files with their stamps, as JSON holds them."""
    return [[each, *stamp(each)] for each in files]


def are_unchanged(kept: Any) -> bool:
    """Tell whether files are what they were when `stamps` was asked for them."""
    try:
        return all((changed, size) == stamp(file) for file, changed, size in kept)
    except (TypeError, ValueError):
        return False


def are_settled(found: Iterable[list[Any]], read: int) -> bool:
    """Tell whether files are still what they were when they were read, and the next change will show in their stamps.

    Args:
        found: Their stamps, taken later than that.
        read: When the first of them was read, in nanoseconds: what was changed after a moment before may have been
            read as it was, and stamped as it is.
    """
    return all(read - changed > (FINE if changed % 1_000_000_000 else COARSE) for _, changed, _ in found if changed)


def below(roots: Iterable[str]) -> list[list[Any]] | None:
    """Return all files of some packages and modules with their stamps, in order, or None where there are too many."""
    found: list[list[Any]] = []
    for file in _files(roots):
        found.append([file, *stamp(file)])
        if len(found) > MOST:
            return None
    return found


def _files(roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        if not os.path.isdir(root):
            yield root
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(each for each in folders if each != "__pycache__" and not each.startswith("."))
            yield from (os.path.join(folder, each) for each in sorted(files))
