"""The database sink for records of calls."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.audit.sink_threads import in_threads, wait_for_exit
from tests.audit_records import ADD, ROOT, child, intent, outcome, refused

from neuroscript import FileAudit, Repair, SpecError, SqliteAudit, ToolFacts
from neuroscript.audit import read, verify
from neuroscript.audit.sqlite import COLUMNS
from neuroscript.runtime.records import labelled_record


def queried(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the result of a query in a separate connection."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


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
        labelled = labelled_record(outcome(4), ("untrusted", "private:mail"))
        records = [intent(1), outcome(1, spent={"calls": 1}), refused(2), intent(3), labelled]
        for audit in (FileAudit(tmp_path / "a.jsonl"), SqliteAudit(tmp_path / "a.db")):
            for record in records:
                audit.write(record)
            audit.close()

        links = ("seq", "prev", "hash")
        lines = [{key: each[key] for key in each if key not in links} for each in read(tmp_path / "a.jsonl")]
        assert lines[1:] == [*read(tmp_path / "a.db")]

    def test_a_database_of_an_earlier_release_gets_the_column_for_labels(self, tmp_path: Path) -> None:
        """It can be read before, its rows are unchanged, and the earlier release can continue to write to it."""
        path = tmp_path / "trail.db"
        audit = SqliteAudit(path)
        audit.write(outcome(1))
        audit.close()
        with closing(sqlite3.connect(path)) as earlier:
            earlier.execute("ALTER TABLE calls DROP COLUMN labels")
            before = [*read(path)]
            first, second = SqliteAudit(path), SqliteAudit(path)
            for audit in (first, second):
                audit.write(labelled_record(outcome(2), ("untrusted",)))
                audit.close()
            names = ", ".join(name for name in COLUMNS if name != "labels")
            earlier.execute(f"INSERT INTO calls ({names}) SELECT {names.replace('call,', '3,', 1)} FROM calls LIMIT 1")
            earlier.commit()

        assert [each["call"] for each in before] == [1]
        assert [*read(path)] == [*before, {**before[0], "call": 2, "labels": ["untrusted"]}, {**before[0], "call": 3}]
        assert verify(path).is_intact

    def test_a_call_with_effects_is_committed_at_its_start(self, tmp_path: Path) -> None:
        """Other connections see it; its outcome replaces it."""
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

    def test_only_the_outcome_of_a_harmless_call_is_written(self, tmp_path: Path) -> None:
        """In a batch with later records."""
        audit = SqliteAudit(tmp_path / "trail.db", batch=3)
        seen = []
        for call in range(1, 5):
            audit.write(intent(call, about=ADD))
            audit.write(outcome(call, about=ADD))
            seen.append(queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")[0][0])
        audit.close()

        assert [0, 0, 3, 3] == seen
        assert [(4,)] == queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")

    def test_a_record_is_committed_after_a_second(self, tmp_path: Path) -> None:
        """Even if no other record follows."""
        audit = SqliteAudit(tmp_path / "trail.db")
        audit.write(outcome())
        end = time.monotonic() + 30
        while not (found := queried(tmp_path / "trail.db", "SELECT call FROM calls")) and time.monotonic() < end:
            time.sleep(0.05)
        audit.close()

        assert [(1,)] == found

    def test_two_refusals_without_a_number_are_two_rows(self, tmp_path: Path) -> None:
        """A call without a number replaces no other call."""
        audit = SqliteAudit(tmp_path / "trail.db")
        audit.write(refused(0))
        audit.write(refused(0, about=ToolFacts("no.tool\ud800")))
        audit.close()

        assert [("fs.write",), ("no.tool\\ud800",)] == queried(tmp_path / "trail.db", "SELECT tool FROM calls")

    def test_records_that_cannot_be_written_raise_and_are_retried(self, tmp_path: Path) -> None:
        """A call with effects is refused; outcomes are written when possible."""
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

    def test_threads_can_share_a_sink(self, tmp_path: Path) -> None:
        """All of their records are stored."""
        audit = SqliteAudit(tmp_path / "trail.db", batch=7)

        in_threads(20, lambda number: [audit.write(outcome(call, run=str(number))) for call in range(1, 51)] and None)

        audit.close()
        assert [(1000,)] == queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")

    def test_a_kill_leaves_the_started_calls(self, tmp_path: Path) -> None:
        """Committed records stay, and show which call has an unknown outcome."""
        with child("begin", tmp_path / "trail.db") as begun:
            assert begun.stdout is not None
            assert b"begun\n" == begun.stdout.readline()
            begun.kill()

        found = verify(tmp_path / "trail.db")
        assert [2] == [call.call for call in found.without_outcome]
        assert (True, False) == (found.is_intact, found.chained)

    def test_a_forked_process_is_refused(self, tmp_path: Path) -> None:
        """SQLite could lose records of the parent, all of which are stored."""
        text = b"SQLite cannot be used in a forked process; create the audit log there, or use FileAudit"
        assert (0, text) == wait_for_exit(child("fork", tmp_path / "trail", "database"))

        runs = [record["run"] for record in read(tmp_path / "trail")]
        assert (1, 50, 0) == tuple(map(runs.count, ("run1", "parent", "child")))

    def test_four_processes_share_a_database(self, tmp_path: Path) -> None:
        """Each with an audit of its own."""
        children = [child("rows", tmp_path / "trail.db", 200, f"run{number}") for number in range(4)]

        assert [(0, b"")] * 4 == [wait_for_exit(each) for each in children]
        assert [(800,)] == queried(tmp_path / "trail.db", "SELECT count(*) FROM calls")

    def test_a_process_that_forgets_to_close_loses_nothing(self, tmp_path: Path) -> None:
        """Its end does it."""
        code = "import sys; from tests.audit_records import *; SqliteAudit(sys.argv[1]).write(outcome())"
        subprocess.run([sys.executable, "-c", code, tmp_path / "trail.db"], cwd=ROOT, check=True)

        assert [(1,)] == queried(tmp_path / "trail.db", "SELECT call FROM calls")

    @pytest.mark.parametrize(("batch", "got"), [(0, ""), (True, ", not bool"), ("1", ", not str")])
    def test_an_invalid_batch_size_is_refused(self, batch: Any, got: str, tmp_path: Path) -> None:
        """Before a file is created."""
        with pytest.raises(SpecError) as caught:
            SqliteAudit(tmp_path / "trail.db", batch=batch)

        assert f"SqliteAudit: batch must be a positive integer{got}" == str(caught.value)
        assert not [*tmp_path.iterdir()]

    def test_a_file_that_is_not_a_database_is_unchanged(self, tmp_path: Path) -> None:
        """SQLite reports it when the sink is created."""
        (tmp_path / "notes").write_text("notes " * 1000)

        with pytest.raises(sqlite3.DatabaseError):
            SqliteAudit(tmp_path / "notes")
        assert "notes " * 1000 == (tmp_path / "notes").read_text()
