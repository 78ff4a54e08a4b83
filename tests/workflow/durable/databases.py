"""The databases of the tests of durable runs: SQLite files, and a PostgreSQL server that the tests start."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy as sa

from neuroscript.workflow.durable.database import CALLS, RUNS, WORKERS, Database
from neuroscript.workflow.durable.queue import Queue

MISSING: Final = "no PostgreSQL is installed here"

MEMORY: Final = Path("/dev/shm")
SERVER_BYTES: Final = 4 * 1024**3
"""The free space that a server needs at most."""


class MakeDatabase(Protocol):
    """Creates a database and returns its address."""

    def __call__(self, name: str, template: str = "first") -> str:
        """Create a copy of the database *template*, to which nothing is connected; the first one has empty tables."""


def binaries() -> Path | None:
    """Return the directory of the latest PostgreSQL programs, or None."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("postgres") is not None:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name))
    return places[-1] if places and (places[-1] / "initdb").exists() else None


@contextmanager
def sqlite(folder: Path) -> Iterator[MakeDatabase]:
    """Yield a factory for SQLite files in a folder; each is a copy of a file that contains the tables."""
    prepared(f"sqlite:///{folder}/first.sqlite")

    def make(name: str, template: str = "first") -> str:
        shutil.copy(folder / f"{template}.sqlite", folder / f"{name}.sqlite")
        return f"sqlite:///{folder / name}.sqlite"

    yield make


@contextmanager
def postgresql(programs: Path) -> Iterator[MakeDatabase]:
    """Yield a factory for databases of a PostgreSQL server, which never runs as root."""
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_server_place()))
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    quiet: dict[str, Any] = {
        "user": user,
        "cwd": folder,
        "stdin": subprocess.DEVNULL,
        "env": {"LC_ALL": "C", "PATH": os.defpath},
    }
    try:
        made = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(made, check=True, capture_output=True, **quiet)
        with (folder / "log").open("w") as log:
            settings = (
                "listen_addresses=",
                "fsync=off",
                "full_page_writes=off",
                "autovacuum=off",
                "max_connections=300",
            )
            words = ["-D", data, "-k", folder, *(word for each in settings for word in ("-c", each))]
            server = subprocess.Popen([programs / "postgres", *words], stdout=log, stderr=log, **quiet)
        try:
            yield from _databases(folder, server)
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _server_place() -> Path:
    """Return the directory for the server's files: in memory if there is enough, because each test has a database."""
    if MEMORY.exists() and shutil.disk_usage(MEMORY).free >= SERVER_BYTES:
        return MEMORY
    place = Path(tempfile.gettempdir())
    return place if place.stat().st_mode & 0o001 else Path("/tmp")  # the server's user must be able to enter it


def _databases(folder: Path, server: subprocess.Popen[bytes]) -> Iterator[MakeDatabase]:
    def address(name: str) -> str:
        return f"postgresql://postgres@/{name}?host={folder}"

    admin = sa.create_engine(
        sa.make_url(address("postgres")).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    while True:
        assert server.poll() is None, (folder / "log").read_text()
        try:
            with admin.connect() as connection:
                connection.execute(sa.text("CREATE DATABASE first"))
            break
        except sa.exc.OperationalError:  # the server is still starting
            subprocess.run(["sleep", "0.1"], check=True)
    prepared(address("first"))

    def make(name: str, template: str = "first") -> str:
        with admin.connect() as connection:
            connection.execute(sa.text(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'))
        return address(name)

    yield make
    admin.dispose()


def prepared(url: str) -> None:
    """Create all tables of a database."""
    database = Database(url)
    Queue(database).close()
    database.close()


def outlast(url: str, *, worker: str | None = None) -> None:
    """Expire the leases of a database, or that of one worker."""
    database = Database(url)
    with database.engine.begin() as connection:
        if worker is None:
            connection.execute(sa.update(RUNS).values(seen=0.0))
            connection.execute(sa.update(WORKERS).values(seen=0.0))
        else:
            connection.execute(sa.update(WORKERS).where(WORKERS.c.id == worker).values(seen=0.0))
    database.close()


def leader_of(url: str) -> str | None:
    """Return the id of the process that drives the only run of a database."""
    database = Database(url)
    with database.engine.begin() as connection:
        leader: str | None = connection.execute(sa.select(RUNS.c.leader)).scalar()
    database.close()
    return leader


def lead_by(url: str, leader: str | None) -> None:
    """Set the process that drives the only run of a database, or none."""
    database = Database(url)
    with database.engine.begin() as connection:
        connection.execute(sa.update(RUNS).values(leader=leader))
    database.close()


def ended_last(url: str, call: str) -> None:
    """Set the end of a call after those of all others, so that the order differs from the observed one."""
    database = Database(url)
    with database.engine.begin() as connection:
        latest = sa.select(sa.func.max(CALLS.c.ended)).scalar_subquery()
        connection.execute(sa.update(CALLS).where(CALLS.c.id == call).values(ended=latest + 0.001))
    database.close()


def cut_off(url: str) -> None:
    """Let PostgreSQL end all open transactions, as it does after a timeout."""
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    others = "datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
    query = sa.text(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}")
    with engine.connect() as connection:
        while connection.execute(query).scalar():
            connection.rollback()
            time.sleep(0.01)
    engine.dispose()
