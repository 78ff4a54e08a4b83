"""The trail of calls: where records are kept, how they are read again, and whether anybody changed them.

Each name is loaded when it is first asked for, so that a ring in memory costs nothing of what files and databases need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "checking": "Found OpenCall",
    "database": "SqliteAudit",
    "file": "FileAudit",
    "keys": "KeyFile read_key",
    "memory": "MemoryAudit",
    "reading": "read",
    "verifying": "Verified verify",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    thing = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return thing
