"""The kind of audit log at a path: a database by its suffix, otherwise a file of JSON lines."""

from __future__ import annotations

import os
from typing import Final

from neuroscript.runtime.records import AuditSink

DATABASES: Final = (".db", ".sqlite", ".sqlite3")
"""The suffixes of audit logs that are databases."""


def is_database_path(path: str | os.PathLike[str]) -> bool:
    """Return whether a path means a database."""
    return os.fspath(path).lower().endswith(DATABASES)


def sink_at(path: str | os.PathLike[str]) -> AuditSink:
    """Open the audit log at a path, as a `SqliteAudit` or as a `FileAudit` without a key.

    Raises:
        AuditError: If the file is not an audit log.
        OSError: If the file cannot be opened, read or written.
        sqlite3.Error: If the file is not a database, or cannot be written.
    """
    if is_database_path(path):
        from neuroscript.audit.sqlite import SqliteAudit

        return SqliteAudit(path)
    from neuroscript.audit.log_file import FileAudit

    return FileAudit(path)
