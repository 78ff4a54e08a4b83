"""One writer at a time for a file that several processes append to."""

from __future__ import annotations

from contextlib import suppress

from neuroscript.errors import AuditError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def lock(file: int) -> None:
    """Wait until nobody else holds the file, and hold it.

    Raises:
        AuditError: The system has no such locks.
    """
    if fcntl is None:
        raise AuditError("this system lacks the locks that a FileAudit needs; take a SqliteAudit")
    fcntl.flock(file, fcntl.LOCK_EX)


def unlock(file: int) -> None:
    """Let others hold the file."""
    fcntl.flock(file, fcntl.LOCK_UN)


def wait(file: int) -> None:
    """Wait until nobody writes to the file, as far as the system and the file know locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH)
            fcntl.flock(file, fcntl.LOCK_UN)
