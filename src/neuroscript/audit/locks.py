"""File locks, for several processes that append to one file."""

from __future__ import annotations

from contextlib import suppress

from neuroscript.errors import AuditError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock(file: int) -> None:
    """Acquire an exclusive lock on a file.

    Raises:
        AuditError: If the system does not support file locks.
    """
    if fcntl is None:
        raise AuditError("this system does not support the file locks that FileAudit needs; use SqliteAudit")
    fcntl.flock(file, fcntl.LOCK_EX)


def unlock(file: int) -> None:
    """Release the lock."""
    fcntl.flock(file, fcntl.LOCK_UN)


def wait(file: int) -> None:
    """Wait until no process writes to the file, if the system and the file support locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH)
            fcntl.flock(file, fcntl.LOCK_UN)
