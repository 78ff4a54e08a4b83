"""The audit log: storing records of calls, reading them, and verifying that they are unchanged.

Names are imported on first use, so that an audit log in memory does not load the code for files and databases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.audit.chain_check import ChainProblem, OpenCall
    from neuroscript.audit.keys import KeyFile, read_key
    from neuroscript.audit.log_file import FileAudit
    from neuroscript.audit.memory import MemoryAudit
    from neuroscript.audit.reader import read
    from neuroscript.audit.sqlite import SqliteAudit
    from neuroscript.audit.verification import VerificationReport, verify

__all__ = [
    "ChainProblem",
    "FileAudit",
    "KeyFile",
    "MemoryAudit",
    "OpenCall",
    "SqliteAudit",
    "VerificationReport",
    "read",
    "read_key",
    "verify",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "chain_check": "ChainProblem OpenCall",
        "keys": "KeyFile read_key",
        "log_file": "FileAudit",
        "memory": "MemoryAudit",
        "reader": "read",
        "sqlite": "SqliteAudit",
        "verification": "VerificationReport verify",
    },
)
