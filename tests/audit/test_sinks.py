"""Where records of calls are kept: in memory, in a file, in a database."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.audit_records import ADD, KEY, RECORD, ROOT, WRITE, child, intent, mixed, outcome, refused

from neuroscript import FileAudit, MemoryAudit, Repair, SpecError, SqliteAudit, ToolFacts
from neuroscript.audit import read, read_key, verify
from neuroscript.errors import AuditError


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a trail as JSON."""
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def queried(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return what a connection of its own reads in a database."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Return the exit code of a process at its end, and what it wrote."""
    written, _ = process.communicate(timeout=120)
    return process.returncode, written


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run some work in threads at once, to the end of all of them."""
    threads = [threading.Thread(target=work, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class TestMemory:
    """A ring of the last calls."""

    def test_the_last_records_are_kept_the_oldest_first(self) -> None:
        """As many as the ring holds."""
        audit = MemoryAudit(size=2)
        for call in (1, 2, 3):
            audit.write(outcome(call))
        audit.close()

        assert (outcome(2), outcome(3)) == audit.records

    def test_beginnings_are_left_out(self) -> None:
        """The engine is told not to bring them, and those that come all the same are not shown."""
        audit = MemoryAudit()
        for record in (intent(1), outcome(1), refused(2)):
            audit.write(record)

        assert audit.intents is False
        assert (outcome(1), refused(2)) == audit.records

    @pytest.mark.parametrize(("size", "got"), [(0, ""), (-1, ""), (True, ", not bool"), (1.5, ", not float")])
    def test_a_size_that_is_none_is_refused(self, size: Any, got: str) -> None:
        """When the ring is made."""
        with pytest.raises(SpecError) as caught:
            MemoryAudit(size)

        assert f"MemoryAudit: size must be a positive integer{got}" == str(caught.value)


class TestFile:
    """JSON lines in a chain."""

    def test_a_record_is_a_line_with_all_that_is_known(self, tmp_path: Path) -> None:
        """Plain JSON, in the order in which it was written."""
        record = outcome(
            2,
            parent=1,
            depth=2,
            repairs=(Repair("a['é']", "str", "int"),),
            spent={"calls": 1, "money": {"EUR": Decimal("0.10")}},
        )
        audit = FileAudit(tmp_path / "trail.jsonl")
        audit.write(intent(2))
        audit.write(record)
        audit.close()

        begun, ended = lines_of(tmp_path / "trail.jsonl")
        assert {
            "seq": 2,
            "prev": begun["hash"],
            "kind": "outcome",
            "time": 1_700_000_000.25,
            "run": "run1",
            "session": "run1",
            "call": 2,
            "parent": 1,
            "depth": 2,
            "tool": "fs.write",
            "fingerprint": "a" * 64,
            "distribution": "neuroscript-fs",
            "version": "0.1.0",
            "effects": ["writes"],
            "policy": "c" * 64,
            "rule": "fs.*",
            "needs": ["fs:write:a.txt"],
            "types": ["str", "bytes"],
            "sizes": [5, 3],
            "digest": "01" * 16,
            "repairs": [{"where": "a['é']", "got": "str", "became": "int"}],
            "code": "ok",
            "spent": {"calls": 1, "money": {"EUR": "0.10"}},
            "seconds": 0.001,
            "hash": audit.head.partition(":")[2],
        } == ended
        assert {"code", "spent", "seconds"} == ended.keys() - begun.keys()
        assert [begun, ended] == [*read(tmp_path / "trail.jsonl")]

    def test_what_a_limit_can_not_count_is_told_by_its_type(self, tmp_path: Path) -> None:
        """Whatever somebody puts there, no value is written."""
        audit = FileAudit(tmp_path / "trail.jsonl")
        audit.write(outcome(spent={"odd": Path("secret")}))
        audit.close()

        assert {"odd": type(tmp_path).__name__} == lines_of(tmp_path / "trail.jsonl")[0]["spent"]

    @pytest.mark.parametrize("field", ["time", "seconds"])
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), "now", None])
    @pytest.mark.parametrize("make", [FileAudit, SqliteAudit])
    def test_a_clock_that_tells_nonsense_is_refused(self, make: Any, value: Any, field: str, tmp_path: Path) -> None:
        """Nothing is written, and the next record is."""
        audit = make(tmp_path / "trail")
        with pytest.raises(AuditError, match="a time in a record is not a finite number of seconds"):
            audit.write(outcome(1)._replace(**{field: value}))
        audit.write(outcome(2))
        audit.close()

        assert [2] == [record["call"] for record in read(tmp_path / "trail")]

    def test_a_file_is_gone_on_with(self, tmp_path: Path) -> None:
        """Number and hash are those of its last line; the head tells both."""
        path = tmp_path / "trail.jsonl"
        heads = []
        for call in range(1, 4):
            audit = FileAudit(path, key=KEY)
            heads.append(audit.head)
            audit.write(outcome(call))
            audit.close()
        heads.append(audit.head)

        assert ["0:" + "0" * 64, *(f"{each['seq']}:{each['hash']}" for each in lines_of(path))] == heads
        assert verify(path, key=KEY, head=heads[-1]).is_intact

    def test_the_file_is_made_for_its_owner_alone(self, tmp_path: Path) -> None:
        """Whatever the umask lets through; a file that is there keeps its mode."""
        before = os.umask(0)
        try:
            FileAudit(tmp_path / "a.jsonl").close()
            SqliteAudit(tmp_path / "a.db").close()
        finally:
            os.umask(before)

        assert [0o600, 0o600] == [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.jsonl", "a.db")]

    @pytest.mark.parametrize(("key", "got"), [(b"", ""), (b"x" * 31, ""), ("x" * 32, ", not str")])
    def test_a_short_key_is_refused(self, key: Any, got: str, tmp_path: Path) -> None:
        """Before a file is made."""
        with pytest.raises(SpecError) as caught:
            FileAudit(tmp_path / "trail.jsonl", key=key)

        assert f"FileAudit: key must be 32 bytes or more, or None{got}" == str(caught.value)
        assert not [*tmp_path.iterdir()]

    @pytest.mark.parametrize(("first", "then"), [(KEY, None), (None, KEY), (KEY, KEY[::-1])])
    def test_another_key_does_not_go_on_with_a_trail(
        self, first: bytes | None, then: bytes | None, tmp_path: Path
    ) -> None:
        """The chain would break where the key changes; the file stays as it is."""
        audit = FileAudit(tmp_path / "trail.jsonl", key=first)
        audit.write(outcome())
        audit.close()
        before = (tmp_path / "trail.jsonl").read_bytes()

        with pytest.raises(AuditError, match="record 1 at the end of the audit log does not match the key"):
            FileAudit(tmp_path / "trail.jsonl", key=then)
        assert before == (tmp_path / "trail.jsonl").read_bytes()

    @pytest.mark.parametrize(
        "data", [b"notes", b"notes\n", b"{}\n", b"SQLite format 3\0", b'{"seq":1\n{"seq":1\n{"seq":1\n']
    )
    def test_a_file_that_is_no_trail_is_left_alone(self, data: bytes, tmp_path: Path) -> None:
        """A name that was mistyped costs nobody a file."""
        (tmp_path / "notes").write_bytes(data)

        with pytest.raises(AuditError) as caught:
            FileAudit(tmp_path / "notes")
        assert "the file is not an audit log; verify it, and write to another file" == str(caught.value)
        assert data == (tmp_path / "notes").read_bytes()

    def test_what_follows_the_last_record_must_be_torn_and_nothing_else(self, tmp_path: Path) -> None:
        """An edited tail is not washed clean by whoever goes on."""
        write(tmp_path / "trail.jsonl", 2)
        with (tmp_path / "trail.jsonl").open("ab") as file:
            file.write(b"hello\n")

        with pytest.raises(AuditError, match="the data after record 2 in the audit log is not a record"):
            FileAudit(tmp_path / "trail.jsonl", key=KEY)

    def test_a_directory_is_none(self, tmp_path: Path) -> None:
        """What the system says of files is said as it says it."""
        with pytest.raises(IsADirectoryError):
            FileAudit(tmp_path)

    def test_a_closed_audit_takes_nothing(self, tmp_path: Path) -> None:
        """And may be closed again."""
        for audit in (FileAudit(tmp_path / "a.jsonl"), SqliteAudit(tmp_path / "a.db")):
            audit.close()
            audit.close()

            with pytest.raises(AuditError, match="the audit log is closed"):
                audit.write(outcome())

    def test_a_durable_audit_writes_the_same(self, tmp_path: Path) -> None:
        """It only takes longer."""
        for durable in (False, True):
            audit = FileAudit(tmp_path / f"{durable}.jsonl", durable=durable)
            audit.write(outcome())
            audit.close()

        assert (tmp_path / "True.jsonl").read_bytes() == (tmp_path / "False.jsonl").read_bytes()

    def test_records_of_a_hundred_threads_are_one_chain(self, tmp_path: Path) -> None:
        """None is lost, and each has its own number."""
        audit = FileAudit(tmp_path / "trail.jsonl", key=KEY)

        in_threads(100, lambda number: [audit.write(outcome(call, run=str(number))) for call in range(10)] and None)

        audit.close()
        found = verify(tmp_path / "trail.jsonl", key=KEY, head=audit.head)
        assert (True, 1000) == (found.is_intact, found.records)

    def test_eight_processes_write_one_chain(self, tmp_path: Path) -> None:
        """300 records each, of up to 70 kB, and none is torn."""
        children = [child("append", tmp_path / "trail.jsonl", 300, f"run{number}") for number in range(8)]

        assert [(0, b"")] * 8 == [ended(each) for each in children]
        found = verify(tmp_path / "trail.jsonl", key=KEY)
        assert (True, 2400, ()) == (found.is_intact, found.records, found.problems)

    def test_a_forked_process_goes_on_with_the_same_audit(self, tmp_path: Path) -> None:
        """Side by side with its parent."""
        assert (0, b"") == ended(child("fork", tmp_path / "trail", "file"))

        runs = [record["run"] for record in read(tmp_path / "trail")]
        assert (1, 50, 50) == tuple(map(runs.count, ("run1", "parent", "child")))
        assert verify(tmp_path / "trail", key=KEY).is_intact

    def test_a_full_disk_raises(self) -> None:
        """A device that is full stands for it."""
        audit = FileAudit("/dev/full")

        with pytest.raises(OSError, match="No space left on device"):
            audit.write(outcome())
        audit.close()

    def test_a_named_pipe_is_refused(self, tmp_path: Path) -> None:
        """Opening it would wait for another process, and so would each record."""
        os.mkfifo(tmp_path / "pipe")
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

        with pytest.raises(AuditError) as caught:
            FileAudit(tmp_path / "pipe")
        os.close(reader)

        assert str(caught.value) == "an audit log cannot be a named pipe; specify a file"

    def test_a_reader_that_has_gone_raises(self) -> None:
        """A trail may go to a pipe of this process; without its reader no call is recorded any more."""
        reader, writer = os.pipe()
        audit = FileAudit(f"/dev/fd/{writer}")
        os.close(writer)
        audit.write(outcome())
        first = json.loads(os.read(reader, 65536))
        os.close(reader)

        assert 1 == first["seq"]
        with pytest.raises(BrokenPipeError):
            audit.write(outcome())
        audit.close()

    @pytest.mark.parametrize("room", [0, 1, 200])
    def test_a_write_that_is_cut_leaves_no_trace(self, room: int, tmp_path: Path) -> None:
        """It raises, the next one does too, and when there is room again the chain goes on."""
        told = ended(child("cramped", tmp_path / "trail.jsonl", room))[1].decode().splitlines()

        size = len((tmp_path / "trail.jsonl").read_bytes().splitlines(keepends=True)[0])
        reason = f"AuditError only {room} of {size} bytes of a record were written; the disk may be full"
        assert [reason if room else "OSError [Errno 27] File too large"] * 2 == told[:2]
        found = verify(tmp_path / "trail.jsonl", key=KEY, head=told[2])
        assert (True, 2, ()) == (found.is_intact, found.records, found.problems)

    @pytest.mark.parametrize("how", ["removed", "cut", "replaced"])
    def test_a_trail_that_is_taken_away_is_noticed_by_its_writer(self, how: str, tmp_path: Path) -> None:
        """At the next record, which is refused."""
        path = tmp_path / "trail.jsonl"
        audit = FileAudit(path, key=KEY)
        for call in (1, 2):
            audit.write(outcome(call))
        lines = path.read_bytes().splitlines(keepends=True)
        match how:
            case "removed":
                path.unlink()
            case "cut":
                path.write_bytes(lines[0])
            case _:
                path.write_bytes(b"")
        texts = {"removed": "the file of the audit log was removed"}
        expected = texts.get(how, "the audit log was truncated or replaced while it was written: record 2 is gone")

        with pytest.raises(AuditError) as caught:
            audit.write(outcome(3))
        audit.close()

        assert expected == str(caught.value)

    def test_a_record_that_is_too_long_is_refused(self, tmp_path: Path) -> None:
        """For nobody would read it again; the next one is written."""
        audit = FileAudit(tmp_path / "trail.jsonl")
        with pytest.raises(AuditError, match="a record has more than 16777216 bytes"):
            audit.write(outcome(needs=("x" * 17_000_000,)))
        audit.write(outcome())
        audit.close()

        assert 1 == verify(tmp_path / "trail.jsonl").records


def write(path: Path, count: int) -> str:
    """Append records under the key and return the head."""
    audit = FileAudit(path, key=KEY)
    for call in range(count):
        audit.write(mixed(call % 5, "run1"))
    audit.close()
    return audit.head


class TestDatabase:
    """Rows of one table."""

    def test_a_call_is_a_row(self, tmp_path: Path) -> None:
        """With columns to ask for, and JSON for the rest."""
        audit = SqliteAudit(tmp_path / "trail.db")
        audit.write(outcome(1, repairs=(Repair("a", "str", "int"),), spent={"calls": 1}))
        audit.close()

        sql = "SELECT run, call, tool, kind, code, seconds, digest, effects, types, repairs, spent FROM calls"
        expected = ("run1", 1, "fs.write", "outcome", "ok", 0.001, "01" * 16, '["writes"]', '["str","bytes"]')
        repairs = '[{"where":"a","got":"str","became":"int"}]'
        assert [(*expected, repairs, '{"calls":1}')] == queried(tmp_path / "trail.db", sql)

    def test_a_database_reads_back_as_a_file_does(self, tmp_path: Path) -> None:
        """The same plain data, but for the links of the chain and the beginnings of calls that have ended."""
        records = [intent(1), outcome(1, spent={"calls": 1}), refused(2), intent(3)]
        for audit in (FileAudit(tmp_path / "a.jsonl"), SqliteAudit(tmp_path / "a.db")):
            for record in records:
                audit.write(record)
            audit.close()

        links = ("seq", "prev", "hash")
        lines = [{key: each[key] for key in each if key not in links} for each in read(tmp_path / "a.jsonl")]
        assert lines[1:] == [*read(tmp_path / "a.db")]

    def test_a_call_that_may_do_harm_is_there_when_it_begins(self, tmp_path: Path) -> None:
        """Committed, so that others see it; its outcome takes its place."""
        audit = SqliteAudit(tmp_path / "trail.db")
        sql = "SELECT call, kind FROM calls"
        for number, effect in enumerate(("writes", "deletes", "exec", "net"), 1):
            audit.write(intent(number, about=ToolFacts("t.t", effects=("reads", effect))))

        assert [(1, "intent"), (2, "intent"), (3, "intent"), (4, "intent")] == queried(tmp_path / "trail.db", sql)

        for number in (1, 2, 3):
            audit.write(outcome(number))
        audit.close()
        assert [(4, "intent"), (1, "outcome"), (2, "outcome"), (3, "outcome")] == queried(tmp_path / "trail.db", sql)
        assert [4] == [call.call for call in verify(tmp_path / "trail.db").without_outcome]

    def test_of_a_harmless_call_only_the_outcome_is_written(self, tmp_path: Path) -> None:
        """With those that come by then, when there are enough."""
        audit = SqliteAudit(tmp_path / "trail.db", batch=3)
        seen = []
        for call in range(1, 5):
            audit.write(intent(call, about=ADD))
            audit.write(outcome(call, about=ADD))
            seen.append(queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")[0][0])
        audit.close()

        assert [0, 0, 3, 3] == seen
        assert [(4,)] == queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")

    def test_a_row_does_not_wait_for_others_for_ever(self, tmp_path: Path) -> None:
        """After a second it is committed, though nothing else comes."""
        audit = SqliteAudit(tmp_path / "trail.db")
        audit.write(outcome())
        end = time.monotonic() + 30
        while not (found := queried(tmp_path / "trail.db", "SELECT call FROM calls")) and time.monotonic() < end:
            time.sleep(0.05)
        audit.close()

        assert [(1,)] == found

    def test_two_refusals_without_a_number_are_two_rows(self, tmp_path: Path) -> None:
        """A call that has no number takes nobody's place."""
        audit = SqliteAudit(tmp_path / "trail.db")
        audit.write(refused(0))
        audit.write(refused(0, about=ToolFacts("no.tool\ud800")))
        audit.close()

        assert [("fs.write",), ("no.tool\\ud800",)] == queried(tmp_path / "trail.db", "SELECT tool FROM calls")

    def test_rows_that_can_not_be_written_raise_and_are_tried_again(self, tmp_path: Path) -> None:
        """A call that may do harm is told to be refused; what has happened is written when it can be."""
        audit = SqliteAudit(tmp_path / "trail.db", batch=1)
        schema = [sql for (sql,) in queried(tmp_path / "trail.db", "SELECT sql FROM sqlite_master WHERE sql <> ''")]
        with closing(sqlite3.connect(tmp_path / "trail.db")) as other:
            other.execute("ALTER TABLE calls RENAME TO aside")
            for record in (outcome(1), intent(2)):
                with pytest.raises(sqlite3.OperationalError):
                    audit.write(record)
            other.execute("ALTER TABLE aside RENAME TO calls")
        audit.write(outcome(3))
        audit.close()

        assert schema
        assert [(1,), (3,)] == queried(tmp_path / "trail.db", "SELECT call FROM calls")

    def test_threads_share_it(self, tmp_path: Path) -> None:
        """Rows of all of them are there at the end."""
        audit = SqliteAudit(tmp_path / "trail.db", batch=7)

        in_threads(20, lambda number: [audit.write(outcome(call, run=str(number))) for call in range(1, 51)] and None)

        audit.close()
        assert [(1000,)] == queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")

    def test_kill_9_leaves_the_calls_that_had_begun(self, tmp_path: Path) -> None:
        """What was committed stays, and says of which call nobody knows the outcome."""
        with child("begin", tmp_path / "trail.db") as begun:
            assert begun.stdout is not None
            assert b"begun\n" == begun.stdout.readline()
            begun.kill()

        found = verify(tmp_path / "trail.db")
        assert [2] == [call.call for call in found.without_outcome]
        assert (True, False) == (found.is_intact, found.chained)

    def test_a_forked_process_is_refused(self, tmp_path: Path) -> None:
        """SQLite would lose rows of its parent; what that wrote is all there."""
        text = b"SQLite cannot be used in a forked process; create the audit log there, or use FileAudit"
        assert (0, text) == ended(child("fork", tmp_path / "trail", "database"))

        runs = [record["run"] for record in read(tmp_path / "trail")]
        assert (1, 50, 0) == tuple(map(runs.count, ("run1", "parent", "child")))

    def test_four_processes_share_a_database(self, tmp_path: Path) -> None:
        """Each with an audit of its own."""
        children = [child("rows", tmp_path / "trail.db", 200, f"run{number}") for number in range(4)]

        assert [(0, b"")] * 4 == [ended(each) for each in children]
        assert [(800,)] == queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")

    def test_a_process_that_forgets_to_close_loses_nothing(self, tmp_path: Path) -> None:
        """Its end does it."""
        code = "import sys; from tests.audit_records import *; SqliteAudit(sys.argv[1]).write(outcome())"
        subprocess.run([sys.executable, "-c", code, tmp_path / "trail.db"], cwd=ROOT, check=True)

        assert [(1,)] == queried(tmp_path / "trail.db", "SELECT call FROM calls")

    @pytest.mark.parametrize(("batch", "got"), [(0, ""), (True, ", not bool"), ("1", ", not str")])
    def test_a_batch_that_is_none_is_refused(self, batch: Any, got: str, tmp_path: Path) -> None:
        """Before a file is made."""
        with pytest.raises(SpecError) as caught:
            SqliteAudit(tmp_path / "trail.db", batch=batch)

        assert f"SqliteAudit: batch must be a positive integer{got}" == str(caught.value)
        assert not [*tmp_path.iterdir()]

    def test_a_file_that_is_no_database_is_left_alone(self, tmp_path: Path) -> None:
        """SQLite says so when the audit is made."""
        (tmp_path / "notes").write_text("notes " * 1000)

        with pytest.raises(sqlite3.DatabaseError):
            SqliteAudit(tmp_path / "notes")
        assert "notes " * 1000 == (tmp_path / "notes").read_text()


class TestReading:
    """Trails that are none."""

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\0" * 100,
            b"{}\n[]\n1\n",
            b'{"kind": 1}\n',
            b'{"kind": "a"',
            b"\xff\n",
            b"[" * 5000,
            b'{"kind": "a", "kind": "b"}',
        ],
    )
    def test_what_is_no_record_is_passed_over(self, data: bytes, tmp_path: Path) -> None:
        """And counted by whoever asks."""
        (tmp_path / "trail").write_bytes(data)
        unread: list[int] = []

        assert [] == [*read(tmp_path / "trail", unread=unread.append)]
        assert [*range(1, len(data.splitlines()) + 1)] == unread

    def test_a_line_without_an_end_is_refused(self, tmp_path: Path) -> None:
        """Before it takes all memory."""
        with (tmp_path / "trail").open("wb") as file:
            file.truncate(20_000_000)

        for reader in (read, verify):
            with pytest.raises(
                AuditError, match="line 1 has more than 16777216 bytes, so the file is not an audit log"
            ):
                list(reader(tmp_path / "trail"))  # type: ignore[operator]

    def test_a_foreign_database_is_refused(self, tmp_path: Path) -> None:
        """Without the words of SQLite, which may hold anything."""
        with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
            connection.execute("CREATE TABLE other (a)")

        for reader in (read, verify):
            with pytest.raises(AuditError) as caught:
                list(reader(tmp_path / "other.db"))  # type: ignore[operator]
            assert "the file is not an audit log database, or cannot be read (SQLITE_ERROR)" == str(caught.value)

    def test_a_trail_is_read_while_it_is_written(self, tmp_path: Path) -> None:
        """Each record as soon as it is there."""
        audit = FileAudit(tmp_path / "trail.jsonl")
        seen = []
        for call in (1, 2, 3):
            audit.write(outcome(call))
            seen.append(len([*read(tmp_path / "trail.jsonl")]))
        audit.close()

        assert [1, 2, 3] == seen


class TestKeys:
    """Files of keys."""

    @pytest.mark.parametrize(
        ("data", "key"),
        [
            pytest.param(KEY, KEY, id="raw"),
            pytest.param(KEY.hex().encode(), KEY, id="hexadecimal"),
            pytest.param(KEY.hex().upper().encode() + b"\r\n", KEY, id="with the end of a line"),
            pytest.param(b"a" * 63, b"a" * 63, id="digits that are no bytes"),
        ],
    )
    def test_a_key_is_read(self, data: bytes, key: bytes, tmp_path: Path) -> None:
        """As it is, or in hexadecimal digits."""
        (tmp_path / "key").write_bytes(data)
        (tmp_path / "key").chmod(0o600)

        assert (key, True) == (read_key(tmp_path / "key").key, read_key(tmp_path / "key").is_private)
        assert "KeyFile(is_private=True)" == repr(read_key(tmp_path / "key"))

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
    def test_a_key_that_others_may_read_is_told(self, mode: int, tmp_path: Path) -> None:
        """Or write."""
        (tmp_path / "key").write_bytes(KEY)
        (tmp_path / "key").chmod(mode)

        assert not read_key(tmp_path / "key").is_private

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"", "the key file has fewer than 32 bytes; create one with 'openssl rand -hex 32'"),
            (b"ab" * 31, "the key file has fewer than 32 bytes; create one with 'openssl rand -hex 32'"),
            (b"x" * 5000, "the key file has more than 4096 bytes; a key has at least 32"),
        ],
    )
    def test_what_is_no_key_is_refused(self, data: bytes, text: str, tmp_path: Path) -> None:
        """And not repeated."""
        (tmp_path / "key").write_bytes(data)

        with pytest.raises(AuditError) as caught:
            read_key(tmp_path / "key")
        assert text == str(caught.value)


def test_a_ring_loads_nothing_of_files_and_databases() -> None:
    """Each sink brings what it needs when it is first asked for."""
    code = "import sys, neuroscript; neuroscript.MemoryAudit(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert set() == {"json", "hashlib", "sqlite3", "pathlib", "neuroscript.audit.log_file"} & {*loaded}


def test_the_facts_of_many_tools_are_not_kept_for_ever(tmp_path: Path) -> None:
    """A model may ask for names that are none without an end."""
    audit = FileAudit(tmp_path / "trail.jsonl")
    for number in range(5000):
        audit.write(refused(number, about=ToolFacts(f"no.tool{number}")))
    audit.write(RECORD)
    audit.close()

    assert len(audit._forms._facts) < 4097
    assert ["no.tool4999", WRITE.tool] == [record["tool"] for record in read(tmp_path / "trail.jsonl")][-2:]
