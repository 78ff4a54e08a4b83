"""The databases of the tests of durable runs: SQLite files, and a PostgreSQL server that the tests start."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy as sa

from neuroscript.workflow.durable.database import CALLS, RUNS, WORKERS, Database

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
def postgresql(programs: Path) -> Iterator[Server]:
    """Yield a PostgreSQL server, which creates databases."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_server_place()))
    server = Server(programs, folder)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """A PostgreSQL server, which never runs as root; calling it creates a database, as `MakeDatabase`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user)
        self._quiet: dict[str, Any] = {
            "user": user,
            "cwd": folder,
            "stdin": subprocess.DEVNULL,
            "env": {"LC_ALL": "C", "PATH": os.defpath},
        }
        url = sa.make_url(self._address("postgres")).set(drivername="postgresql+psycopg")
        self._admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def create(self) -> None:
        """Create the server's files."""
        data = self._folder / "data"
        words = [self._programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(words, check=True, capture_output=True, **self._quiet)

    def start(self) -> None:
        """Start the server, and prepare the first database unless it exists."""
        settings = ("listen_addresses=", "fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=300")
        words = ["-D", self._folder / "data", "-k", self._folder, *(word for each in settings for word in ("-c", each))]
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", *words], stdout=log, stderr=log, **self._quiet
            )
        while True:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            try:
                with self._admin.connect() as connection:
                    query = "SELECT count(*) FROM pg_database WHERE datname = 'first'"
                    if not connection.execute(sa.text(query)).scalar():
                        connection.execute(sa.text("CREATE DATABASE first"))
                        prepared(self._address("first"))
                return
            except sa.exc.OperationalError:  # the server is still starting
                subprocess.run(["sleep", "0.1"], check=True)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT disconnects its clients, and SIGQUIT is like a crash."""
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait()

    def __call__(self, name: str, template: str = "first") -> str:
        """Create a database."""
        with self._admin.connect() as connection:
            connection.execute(sa.text(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'))
        return self._address(name)

    def _address(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self._folder}"


def _server_place() -> Path:
    """Return the directory for the server's files: in memory if there is enough, because each test has a database."""
    if MEMORY.exists() and shutil.disk_usage(MEMORY).free >= SERVER_BYTES:
        return MEMORY
    place = Path(tempfile.gettempdir())
    return place if place.stat().st_mode & 0o001 else Path("/tmp")  # the server's user must be able to enter it


def prepared(url: str) -> None:
    """Create all tables of a database."""
    Database(url).close()


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


def outlast_leader(url: str) -> None:
    """Expire the leases of the processes that drive the runs of a database, and not those of workers."""
    database = Database(url)
    with database.engine.begin() as connection:
        connection.execute(sa.update(RUNS).values(seen=0.0))
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
