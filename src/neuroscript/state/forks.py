"""Locks in the child of a fork."""

from __future__ import annotations

import os
import threading
from typing import Any, Final
from weakref import WeakSet

WAIT_SECONDS: Final = 1.0
"""Maximum number of seconds that a fork waits for a thread that uses a database."""

_OWNERS: Final[WeakSet[Any]] = WeakSet()
_WAITED_FOR: Final[WeakSet[Any]] = WeakSet()
_held: list[Any] = []


def renew_lock(owner: Any, *, waits: bool = False) -> None:
    """Give *owner* a new ``_lock`` in a child process, because a thread of the parent may hold the inherited one.

    Args:
        waits: Whether a fork waits for the thread that holds the lock, because a library in which that thread is has
            locks of its own, which the child would inherit as locked.
    """
    _OWNERS.add(owner)
    if waits:
        _WAITED_FOR.add(owner)


def _acquire() -> None:
    for owner in tuple(_WAITED_FOR):
        if owner._lock.acquire(timeout=WAIT_SECONDS):
            _held.append(owner._lock)


def _release() -> None:
    while _held:
        _held.pop().release()


def _renew() -> None:
    _held.clear()
    for owner in tuple(_OWNERS):
        owner._lock = threading.Lock()


os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_renew)
