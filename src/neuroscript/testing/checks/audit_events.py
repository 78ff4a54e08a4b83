"""Mapping from Python's audit events to capabilities, to detect undeclared side effects.

Operations on a tool's own temporary files, made with `tempfile`, are not side effects. See PEP 578 and the table of
audit events in the Python documentation.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from typing import Any, Final

WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


NEEDS: Final = {
    **dict.fromkeys(("os.listdir", "os.scandir", "os.listxattr", "os.getxattr"), "fs:read"),
    **dict.fromkeys(
        ("os.mkdir", "os.link", "os.symlink", "os.truncate", "os.utime", "os.chmod", "os.chown", "os.setxattr"),
        "fs:write",
    ),
    **dict.fromkeys(("os.remove", "os.rmdir", "shutil.rmtree"), "fs:delete"),
    **dict.fromkeys(("os.rename", "shutil.move"), "fs:write"),
    **dict.fromkeys(
        (
            *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"),
            *("http.client.connect", "urllib.Request", "ftplib.connect", "smtplib.connect"),
        ),
        "net:read",
    ),
    **dict.fromkeys(
        ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.spawn"), "shell:exec"
    ),
    **dict.fromkeys(("os.putenv", "os.unsetenv"), "env:write"),
}
"""The capability for each event except ``open``."""


LIBRARIES: Final = tuple({sysconfig.get_paths()[each] for each in ("stdlib", "platstdlib", "purelib", "platlib")})
"""The directories that modules are imported from."""


SYSTEM: Final = ("/usr/share/zoneinfo", "/usr/lib", "/lib", "/dev/null", "/dev/urandom", "/etc/localtime", "/proc/self")
"""Files that Python and its libraries read internally."""


CODE: Final = (".py", ".pyc", ".so", ".pyd", ".pth")


def need_of_event(event: str, args: tuple[Any, ...]) -> str:
    """Return the capability that an event needs, or ``""`` if it is not an external effect.

    >>> need_of_event("socket.connect", (None, ("127.0.0.1", 80)))
    'net:read'
    """
    if event == "open":
        return _opened(*args)
    if event in ("os.listdir", "os.scandir") and args and _is_library(args[0]):
        return ""
    return NEEDS.get(event, "")


def _opened(path: object, mode: object, flags: object) -> str:
    if isinstance(path, int):  # already open, such as a pipe
        return ""
    if isinstance(flags, int) and flags & WRITING and path != os.devnull:
        return "fs:write"
    return "" if _is_library(path) else "fs:read"


def _is_library(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    if text.endswith(CODE) or text.startswith((*LIBRARIES, *SYSTEM)):
        return True
    return any(text == each or (each and text.startswith(f"{each}{os.sep}")) for each in sys.path)


MAKING: Final = frozenset({"tempfile.mkdtemp", "tempfile.mkstemp"})


FOLLOWING: Final[dict[str, tuple[tuple[int, int | None], ...]]] = {
    **dict.fromkeys(("open", "os.listdir", "os.scandir", "os.truncate"), ((0, None),)),
    "os.utime": ((0, 3),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
}
"""Events that follow links: the positions of a path and of its directory in their arguments."""


STAYING: Final[dict[str, tuple[tuple[int, int | None], ...]]] = {
    **dict.fromkeys(("os.remove", "os.rmdir", "shutil.rmtree"), ((0, 1),)),
    "os.mkdir": ((0, 2),),
    "os.symlink": ((1, 2),),
    "os.link": ((0, 2), (1, 3)),
    "os.rename": ((0, 2), (1, 3)),
}
"""Events that act on a link itself."""


class Scratch:
    """The temporary files and directories created during a check."""

    def __init__(self) -> None:
        self._places: set[str] = set()

    def holds(self, event: str, args: tuple[Any, ...]) -> bool:
        """Return whether an event only affects temporary files, and record new ones.

        Opening a directory for writing is how `tempfile` creates an unnamed file.
        """
        if event in MAKING:
            self._note(_real_path(args[0], None, follow=False))
            return True
        if event == "open" and args[0] == tempfile.tempdir:
            return True
        follow = event in FOLLOWING
        places = FOLLOWING.get(event) or STAYING.get(event, ())
        found = [
            _real_path(args[path], None if directory is None else args[directory], follow=follow)
            for path, directory in places
            if path < len(args) and (directory is None or directory < len(args))
        ]
        return bool(found) and all(map(self._has, found))

    def _note(self, place: str) -> None:
        """Record a path in the directory for temporary files; elsewhere it is an ordinary file."""
        if os.path.dirname(place) == os.path.realpath(tempfile.gettempdir()):
            self._places.add(place)

    def _has(self, place: str) -> bool:
        return any(place == each or place.startswith(f"{each}{os.sep}") for each in self._places)


def _real_path(path: object, directory: object, *, follow: bool) -> str:
    """Return the real path that an event refers to, or ``""`` if it cannot be determined."""
    if isinstance(path, int):
        return _path_of(path)
    if not isinstance(path, (str, bytes, os.PathLike)):
        return ""
    start = _path_of(directory) if isinstance(directory, int) and directory >= 0 else os.getcwd()
    whole = os.path.join(start, os.fsdecode(path))
    if follow:
        return os.path.realpath(whole)
    above, name = os.path.split(whole.rstrip(os.sep))
    return os.path.join(os.path.realpath(above), name)


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
