"""The trail of calls: where records are kept, how they are read again, and whether anybody changed them.

Each name is loaded when it is first asked for, so that a ring in memory costs nothing of what files and databases need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.audit.checking import Found, OpenCall
    from neuroscript.audit.database import SqliteAudit
    from neuroscript.audit.file import FileAudit
    from neuroscript.audit.keys import KeyFile, read_key
    from neuroscript.audit.memory import MemoryAudit
    from neuroscript.audit.reading import read
    from neuroscript.audit.verifying import Verified, verify

__all__ = [
    "FileAudit",
    "Found",
    "KeyFile",
    "MemoryAudit",
    "OpenCall",
    "SqliteAudit",
    "Verified",
    "read",
    "read_key",
    "verify",
]

__getattr__ = lazy(
    __name__,
    {
        "checking": "Found OpenCall",
        "database": "SqliteAudit",
        "file": "FileAudit",
        "keys": "KeyFile read_key",
        "memory": "MemoryAudit",
        "reading": "read",
        "verifying": "Verified verify",
    },
)
