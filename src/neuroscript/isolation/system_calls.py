"""Calls into the C library and the kernel, which raise OSError when they fail.

This package confines processes between fork and exec, so its modules for the kernel import as little as possible.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing would take longer to import than everything else here
    from typing import Any, Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

MISSING: Final = "needs Linux, and a Python with ctypes"
"""The reason why a layer is not available without `LIBC`."""

try:
    import ctypes
except ImportError:
    ctypes = None  # type: ignore[assignment]

LIBC: Final[Any] = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" and ctypes else None
"""The C library, or None where this package cannot call it."""


def call(name: str, *args: int | bytes | None) -> int:
    """Call a function of the C library, and return its result.

    Raises:
        OSError: It returned a negative number, or this is not Linux.
    """
    if LIBC is None:
        raise OSError(MISSING)
    result = int(getattr(LIBC, name)(*map(_convert, args)))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def _convert(value: int | bytes | None) -> Any:
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value)


def prctl(option: int, value: int) -> None:
    """Change an attribute of this process.

    Raises:
        OSError: The kernel refuses it.
    """
    call("prctl", option, value, 0, 0, 0)


def forbid_new_privileges() -> None:
    """Forbid this process, and all that it starts, to gain privileges with an exec.

    Raises:
        OSError: The kernel refuses it.
    """
    prctl(PR_SET_NO_NEW_PRIVS, 1)
