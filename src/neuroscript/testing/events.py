"""What an audit event of Python means for the world outside, as a need.

Source: PEP 578; the table of audit events of Python; contract section 5.
"""

from __future__ import annotations

import os
import sys
import sysconfig
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
"""The need that goes with an event, but for ``open``."""

LIBRARIES: Final = tuple({sysconfig.get_paths()[each] for each in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Where modules are read from when they are loaded."""

SYSTEM: Final = ("/usr/share/zoneinfo", "/usr/lib", "/lib", "/dev/null", "/dev/urandom", "/etc/localtime", "/proc/self")
"""What Python and its libraries read for themselves."""

CODE: Final = (".py", ".pyc", ".so", ".pyd", ".pth")


def needed(event: str, args: tuple[Any, ...]) -> str:
    """Return the need of whoever causes an event, or nothing where it is no effect outside.

    >>> needed("socket.connect", (None, ("127.0.0.1", 80)))
    'net:read'
    """
    if event == "open":
        return _opened(*args)
    if event in ("os.listdir", "os.scandir") and args and _is_library(args[0]):
        return ""
    return NEEDS.get(event, "")


def _opened(path: object, mode: object, flags: object) -> str:
    if isinstance(path, int):  # what is open already, such as a pipe
        return ""
    if isinstance(flags, int) and flags & WRITING and path != os.devnull:
        return "fs:write"
    return "" if _is_library(path) else "fs:read"


def _is_library(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    if text.endswith(CODE) or text.startswith((*LIBRARIES, *SYSTEM)):
        return True
    return any(text == each or (each and text.startswith(f"{each}{os.sep}")) for each in sys.path)
