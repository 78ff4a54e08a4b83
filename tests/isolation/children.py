"""Forked children in which the tests confine themselves."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - an unprivileged child may not be able to import it
import errno
import os
from collections.abc import Callable
from typing import Any

from neuroscript.isolation.child import in_child
from neuroscript.isolation.system_calls import PR_SET_DUMPABLE, prctl

NOBODY = 65534


def outcome(attempt: Callable[[], object], confine: Callable[[], object] = lambda: None, *, user: int = 0) -> str:
    """Return what an attempt returns in a confined child, or how it fails.

    Args:
        confine: What the child does before that.
        user: The user id of the child, or 0 for that of this process.

    Returns:
        The representation of the value, the name of an errno, or another exception.
    """

    def run() -> str:
        if user:
            become(user)
        confine()
        try:
            return repr(attempt())
        except OSError as error:
            return errno.errorcode[error.errno] if error.errno else str(error)
        except BaseException as error:
            return f"{type(error).__name__}: {error}"

    return in_child(run)


def become(user: int) -> None:
    """Change all user ids of this process; as for any program of that user, its files in ``/proc`` remain its own."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    prctl(PR_SET_DUMPABLE, 1)


def libc_call(name: str, *args: Any) -> int:
    """Return the result of a function of the C library, or raise its error."""
    import ctypes

    result = int(getattr(ctypes.CDLL(None, use_errno=True), name)(*args))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result
