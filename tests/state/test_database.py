"""A database that processes share: addresses, transactions, versions of the tables, forks and failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from neuroscript import Engine, SharedState, SpecError
from neuroscript.state.address import parse_address
from neuroscript.state.database import Database, StateUnavailable, open_database
from neuroscript.state.processes import bury
from neuroscript.state.schema import MIGRATIONS

WRONG = [
    ("", "must be sqlite"),
    ("state.sqlite", "must be sqlite"),
    ("sqlite://", "must be sqlite"),
    ("sqlite:///:memory:", "must be sqlite"),
    ("sqlite://host/file", "must be sqlite"),
    ("sqlite:///a?mode=ro", "must be sqlite"),
    ("postgresql://host", "must be sqlite"),
    ("mysql://host/name", "must be sqlite"),
    ("postgresql://[::1/name", "must be sqlite"),
    ("postgresql://user:pass@word@host/name", "must be written as %40"),
]


@pytest.mark.parametrize(("address", "text"), WRONG)
def test_a_wrong_address_is_named_without_its_password(address: str, text: str) -> None:
    with pytest.raises(SpecError, match=text) as caught:
        parse_address(address)
    assert "pass" not in str(caught.value).replace("password", "")


def test_the_name_of_an_address_has_no_password() -> None:
    address = parse_address("postgresql://me:hidden@db:5432/app?sslpassword=hidden&sslmode=require")
    assert address.name == "postgresql://me@db:5432/app?sslmode=require"
    assert "hidden" not in repr(address)


def test_every_wrong_parameter_of_state_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        SharedState(f"sqlite:///{tmp_path}/a", namespace="", connections=0, timeout=-1)
    assert [name for name in ("namespace", "connections", "timeout") if name not in str(caught.value)] == []
    with pytest.raises(SpecError, match="a lease must be"):
        SharedState(f"sqlite:///{tmp_path}/a", lease=0)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database" * 100)
    with pytest.raises(SpecError, match="file is not a database"):
        SharedState(f"sqlite:///{tmp_path}/text")
    with pytest.raises(SpecError, match="directory"):
        SharedState(f"sqlite:///{tmp_path}")
    with pytest.raises(SpecError, match="cannot be used as a database: connection"):
        SharedState(f"postgresql://nobody@/none?host={tmp_path}")


def test_a_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    SharedState(f"sqlite:///{tmp_path}/deep/state.sqlite").close()
    assert (tmp_path / "deep/state.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_transaction_is_whole_or_nothing(url: str) -> None:
    database = open_database(url)
    database.run("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    with pytest.raises(RuntimeError), database.transaction() as statements:
        statements.run("INSERT INTO t VALUES (?)", (1,))
        raise RuntimeError
    with pytest.raises(StateUnavailable) as caught, database.transaction() as statements:
        statements.run("INSERT INTO t VALUES (?)", (2,))
        statements.run("INSERT INTO t VALUES (?)", (2,))
    assert "2" not in str(caught.value), "no stored value in the text"
    assert database.run("SELECT n FROM t") == []
    database.run_many("INSERT INTO t VALUES (?)", [(3,), (4,)])
    assert database.run("SELECT n FROM t ORDER BY n") == [(3,), (4,)]
    database.close()


def test_threads_share_a_database(url: str) -> None:
    database = open_database(url, connections=3)
    database.run("CREATE TABLE t (n INTEGER)")
    database.run("INSERT INTO t VALUES (0)")

    def add() -> None:
        for _ in range(25):
            database.run("UPDATE t SET n = n + 1")

    threads = [Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.run("SELECT n FROM t") == [(200,)]
    database.close()


def test_the_clock_is_that_of_the_database(url: str) -> None:
    database = open_database(url)
    ((now,),) = database.run(f"SELECT {database.now}")
    assert abs(now - time.time()) < 5
    database.close()


def test_a_child_process_opens_its_own_connections(url: str) -> None:
    script = f"""
import os
from neuroscript import SharedState
state = SharedState({url!r})
state.database.run("CREATE TABLE t (n INTEGER)")
first = state.process.id
pid = os.fork()
state.database.run("INSERT INTO t VALUES (?)", (os.getpid(),))
other = state.process.id
if pid == 0:
    assert other != first
    os._exit(0)
assert other == first
assert os.waitpid(pid, 0)[1] == 0
assert len(state.database.run("SELECT * FROM t")) == 2
state.close()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


def test_a_newer_version_of_the_tables_is_refused(url: str) -> None:
    SharedState(url).close()
    SharedState(url).close()
    database = open_database(url)
    assert database.run("SELECT version FROM neuroscript_state") == [(len(MIGRATIONS),)]
    database.run("UPDATE neuroscript_state SET version = 1000")
    database.close()
    with pytest.raises(SpecError, match=r"version 1000.*update neuroscript here"):
        SharedState(url)


def test_processes_that_start_at_once_create_the_tables_once(url: str) -> None:
    script = f"from neuroscript import SharedState; SharedState({url!r}).close()"
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(6)]
    assert [process.wait() for process in started] == [0] * 6


def test_a_deleted_file_is_noticed(tmp_path: Path) -> None:
    state = SharedState(f"sqlite:///{tmp_path}/state.sqlite")
    (tmp_path / "state.sqlite").unlink()
    with pytest.raises(StateUnavailable, match="deleted or replaced"):
        state.database.run("SELECT 1")
    SharedState(f"sqlite:///{tmp_path}/state.sqlite").close()
    with pytest.raises(StateUnavailable, match="deleted or replaced"):
        state.database.run("SELECT 1")
    state.close()


def test_a_locked_file_is_given_up_in_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.sqlite"
    held, waiting = open_database(url), open_database(url, timeout=0.2)
    with held.transaction(), pytest.raises(StateUnavailable, match="locked"):
        waiting.run("CREATE TABLE t (n INTEGER)")
    waiting.run("CREATE TABLE t (n INTEGER)")
    held.close()
    waiting.close()


def _pid(database: Database) -> int:
    ((pid,),) = database.run("SELECT pg_backend_pid()")
    return int(pid)


def test_a_frozen_server_is_given_up_in_time(new_postgres: object) -> None:
    database = open_database(new_postgres(), timeout=0.5)  # type: ignore[operator]
    pid = _pid(database)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        with pytest.raises(StateUnavailable, match="did not answer in time"):
            database.run("SELECT 1")
        assert time.monotonic() - began < 10
    finally:
        os.kill(pid, signal.SIGCONT)
    assert _pid(database) != pid, "another connection"
    database.close()


def test_a_connection_that_the_server_closed_is_replaced(new_postgres: object) -> None:
    database = open_database(new_postgres())  # type: ignore[operator]
    pid = _pid(database)
    other = open_database(database._url)  # type: ignore[attr-defined]
    other.run("SELECT pg_terminate_backend(?)", (pid,))
    other.close()
    time.sleep(0.2)
    assert _pid(database) != pid
    database.close()


def test_a_process_that_sends_no_heartbeats_is_dead(url: str) -> None:
    with SharedState(url, namespace="a", lease=0.5) as state, SharedState(url, namespace="b") as other:
        first, stranger = state.process.id, other.process.id
        assert bury(state.database, "a") == []
        state.database.run("UPDATE neuroscript_processes SET seen = seen - 100")
        assert set(bury(state.database, "a")) <= {first}  # a heartbeat may have come between
        state.database.run("UPDATE neuroscript_processes SET ended = 1 WHERE id = ?", (first,))
        until = time.monotonic() + 10
        while state.process.id == first and time.monotonic() < until:
            time.sleep(0.05)
        assert state.process.id != first, "it joins again under another id"
        assert other.process.id == stranger
    database = open_database(url)
    assert database.run("SELECT count(*) FROM neuroscript_processes WHERE ended IS NULL") == [(0,)]
    database.close()


def test_an_engine_closes_only_the_state_that_it_opened(url: str) -> None:
    with SharedState(url) as state:
        with Engine(plugins="none", state=state):
            pass
        assert state.database.run("SELECT 1") == [(1,)]
    engine = Engine(plugins="none", state=url, namespace="app")
    own = engine._shared.state
    assert own is not None
    assert own.namespace == "app"
    own.process.id  # noqa: B018
    engine.close()
    database = open_database(url)
    assert database.run("SELECT count(*) FROM neuroscript_processes WHERE ended IS NULL") == [(0,)]
    database.close()


def test_a_child_process_does_not_wait_for_threads_of_its_parent(url: str) -> None:
    """A thread that uses the database during the fork does not exist in the child."""
    script = f"""
import os, threading, time
from neuroscript.state.database import open_database
database = open_database({url!r}, timeout=5)
entered, leave = threading.Event(), threading.Event()
def use():
    with database.transaction():
        entered.set()
        leave.wait()
thread = threading.Thread(target=use)
thread.start()
entered.wait()
pid = os.fork()
if pid == 0:
    database.run("SELECT 1")
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
leave.set()
thread.join()
database.close()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)
