"""The connections to the databases of durable runs: a pool for each database and process."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript.errors import SpecError
from neuroscript.workflow.durable.schema import prepare, sa
from neuroscript.workflow.durable.wakeup import Wakeup

DEFAULT_CONNECTIONS: Final = 10
"""Default maximum of connections to a database from one process, besides the one that waits for notifications."""

MAX_CONNECTIONS: Final = 1_000

IDLE_TIMEOUT_SECONDS: Final = 5.0
"""Seconds after which PostgreSQL ends an idle transaction, because its locks block other processes."""

LOCK_TIMEOUT_SECONDS: Final = 30.0
"""Seconds that a transaction waits for a lock or a connection, and seconds for which a failed one is retried."""

_POOLS: Final[dict[Hashable, Pool]] = {}
_LOCK: Final = Lock()


@attrs.define
class Pool:
    """The connections of this process to a database.

    Attributes:
        size: The maximum number of connections.
        file: The SQLite file, or None.
        identity: The device and inode of the file; None for PostgreSQL.
        users: How many drivers, workers and other users have it open.
    """

    engine: sa.Engine
    wakeup: Wakeup
    size: int
    file: Path | None
    identity: tuple[int, int] | None
    users: int = 0

    def is_gone(self) -> bool:
        """Return whether the SQLite file was deleted or replaced since the pool was opened."""
        return self.file is not None and _identity(self.file) != self.identity


def check_connections(connections: int | None) -> None:
    """Raise a `SpecError` unless a number of connections is valid."""
    if connections is not None and (type(connections) is not int or not 1 <= connections <= MAX_CONNECTIONS):
        raise SpecError("durable", [f"connections must be an integer from 1 to {MAX_CONNECTIONS}"])


def acquire(url: sa.URL, makes: bool, connections: int | None) -> Pool:
    """Return the pool of a database and count its users; `release` it after use.

    Args:
        makes: Whether to create a missing SQLite file.
        connections: The size of the pool; None accepts the size that it has.

    Raises:
        SpecError: If the pool is in use with another size.
    """
    check_connections(connections)
    file = _file(url, makes)
    key = (os.getpid(), url, None if file is None else _identity(file))  # a pool does not survive a fork
    with _LOCK:
        pool = _POOLS.get(key)
        if pool is None:
            pool = _opened(url, file, connections or DEFAULT_CONNECTIONS)
            _POOLS[key] = pool
        elif connections not in (None, pool.size):
            text = f"this process already uses the database with {pool.size} connections; pass the same number"
            raise SpecError("durable", [text])
        pool.users += 1
        return pool


def release(pool: Pool) -> None:
    """Give a pool back; its last user closes it."""
    with _LOCK:
        pool.users -= 1
        if pool.users:
            return
        for key in [key for key, each in _POOLS.items() if each is pool]:
            del _POOLS[key]
    pool.engine.dispose()


def _opened(url: sa.URL, file: Path | None, size: int) -> Pool:
    limits: dict[str, Any] = {"pool_size": size, "max_overflow": 0, "pool_timeout": LOCK_TIMEOUT_SECONDS}
    limits["hide_parameters"] = True  # errors must not contain the arguments of calls
    prepare_connection: Callable[[Any, Any], None]
    if file is None:
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), **limits)
        prepare_connection = _limit_idle_transactions
    else:
        engine = sa.create_engine(url, **limits)
        prepare_connection = _configure_sqlite
    sa.event.listen(engine, "connect", prepare_connection)
    try:
        prepare(engine)
    except BaseException:
        engine.dispose()
        raise
    wakeup = Wakeup(url.render_as_string(hide_password=False), None if file is None else str(file.absolute()))
    return Pool(engine, wakeup, size, file, None if file is None else _identity(file))


def _file(url: sa.URL, makes: bool) -> Path | None:
    if url.drivername != "sqlite":
        return None
    file = Path(str(url.database))
    if not makes:
        file.stat()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():  # arguments and results must be readable only by this user
        os.close(os.open(file, os.O_CREAT, 0o600))
    return file


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _configure_sqlite(connection: Any, _: object) -> None:
    """Make SQLite writers wait for the lock from the start of a transaction, and readers never wait."""
    connection.isolation_level = "IMMEDIATE"
    connection.text_factory = _text
    connection.execute(f"PRAGMA busy_timeout={LOCK_TIMEOUT_SECONDS * 1000:.0f}")
    connection.execute("PRAGMA journal_mode=WAL")


def _text(data: bytes) -> str | bytes:
    """Return an SQLite string; invalid UTF-8 stays bytes, which the row checks reject."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _limit_idle_transactions(connection: Any, _: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_SECONDS * 1000:.0f}")
    connection.commit()
