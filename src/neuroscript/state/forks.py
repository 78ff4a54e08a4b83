"""Locks in the child of a fork."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any


def renew_lock(owner: Any) -> None:
    """Give *owner* a new ``_lock`` in a child process, because a thread of the parent may hold the inherited one."""
    reference = weakref.ref(owner)

    def renew() -> None:
        found = reference()
        if found is not None:
            found._lock = threading.Lock()

    os.register_at_fork(after_in_child=renew)
