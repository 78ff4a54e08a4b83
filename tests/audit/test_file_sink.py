"""The file sink for records of calls."""

from __future__ import annotations

import json
import os
import stat
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.audit.sink_threads import in_threads, wait_for_exit
from tests.audit_records import KEY, child, intent, mixed, outcome

from neuroscript import FileAudit, Repair, SpecError, SqliteAudit
from neuroscript.audit import read, verify
from neuroscript.errors import AuditError


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a trail as JSON."""
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


class TestFile:
    """JSON lines in a chain."""

    def test_a_record_is_a_line_with_all_its_fields(self, tmp_path: Path) -> None:
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

        begun, wait_for_exit = lines_of(tmp_path / "trail.jsonl")
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
        } == wait_for_exit
        assert {"code", "spent", "seconds"} == wait_for_exit.keys() - begun.keys()
        assert [begun, wait_for_exit] == [*read(tmp_path / "trail.jsonl")]

    def test_an_unknown_kind_of_amount_is_written_as_its_type(self, tmp_path: Path) -> None:
        """Its value is not written."""
        audit = FileAudit(tmp_path / "trail.jsonl")
        audit.write(outcome(spent={"odd": Path("secret")}))
        audit.close()

        assert {"odd": type(tmp_path).__name__} == lines_of(tmp_path / "trail.jsonl")[0]["spent"]

    @pytest.mark.parametrize("field", ["time", "seconds"])
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), "now", None])
    @pytest.mark.parametrize("make", [FileAudit, SqliteAudit])
    def test_an_invalid_time_is_refused(self, make: Any, value: Any, field: str, tmp_path: Path) -> None:
        """Nothing is written, and the next record is."""
        audit = make(tmp_path / "trail")
        with pytest.raises(AuditError, match="a time in a record is not a finite number of seconds"):
            audit.write(outcome(1)._replace(**{field: value}))
        audit.write(outcome(2))
        audit.close()

        assert [2] == [record["call"] for record in read(tmp_path / "trail")]

    def test_an_existing_file_is_continued(self, tmp_path: Path) -> None:
        """Number and hash are those of its last line; the head contains both."""
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

    def test_the_file_is_created_for_its_owner_only(self, tmp_path: Path) -> None:
        """For any umask; an existing file keeps its mode."""
        before = os.umask(0)
        try:
            FileAudit(tmp_path / "a.jsonl").close()
            SqliteAudit(tmp_path / "a.db").close()
        finally:
            os.umask(before)

        assert [0o600, 0o600] == [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.jsonl", "a.db")]

    @pytest.mark.parametrize(("key", "got"), [(b"", ""), (b"x" * 31, ""), ("x" * 32, ", not str")])
    def test_a_short_key_is_refused(self, key: Any, got: str, tmp_path: Path) -> None:
        """Before a file is created."""
        with pytest.raises(SpecError) as caught:
            FileAudit(tmp_path / "trail.jsonl", key=key)

        assert f"FileAudit: key must be 32 bytes or more, or None{got}" == str(caught.value)
        assert not [*tmp_path.iterdir()]

    @pytest.mark.parametrize(("first", "then"), [(KEY, None), (None, KEY), (KEY, KEY[::-1])])
    def test_another_key_does_not_continue_a_log(self, first: bytes | None, then: bytes | None, tmp_path: Path) -> None:
        """The chain would break where the key changes; the file is unchanged."""
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
    def test_a_file_that_is_not_a_log_is_unchanged(self, data: bytes, tmp_path: Path) -> None:
        """A wrong name destroys no file."""
        (tmp_path / "notes").write_bytes(data)

        with pytest.raises(AuditError) as caught:
            FileAudit(tmp_path / "notes")
        assert "the file is not an audit log; verify it, and write to another file" == str(caught.value)
        assert data == (tmp_path / "notes").read_bytes()

    def test_bytes_after_the_last_record_must_be_a_torn_tail(self, tmp_path: Path) -> None:
        """An edited tail stays detectable when another process continues the log."""
        write(tmp_path / "trail.jsonl", 2)
        with (tmp_path / "trail.jsonl").open("ab") as file:
            file.write(b"hello\n")

        with pytest.raises(AuditError, match="the data after record 2 in the audit log is not a record"):
            FileAudit(tmp_path / "trail.jsonl", key=KEY)

    def test_a_directory_is_refused(self, tmp_path: Path) -> None:
        """With the error of the operating system."""
        with pytest.raises(IsADirectoryError):
            FileAudit(tmp_path)

    def test_a_closed_sink_accepts_no_record(self, tmp_path: Path) -> None:
        """It can be closed again."""
        for audit in (FileAudit(tmp_path / "a.jsonl"), SqliteAudit(tmp_path / "a.db")):
            audit.close()
            audit.close()

            with pytest.raises(AuditError, match="the audit log is closed"):
                audit.write(outcome())

    def test_a_durable_sink_writes_the_same(self, tmp_path: Path) -> None:
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

    def test_processes_write_one_chain(self, tmp_path: Path, full_counts: bool) -> None:
        """The records have up to 70 kB, and none is torn."""
        processes, records = (8, 300) if full_counts else (4, 150)
        children = [child("append", tmp_path / "trail.jsonl", records, f"run{number}") for number in range(processes)]

        assert [(0, b"")] * processes == [wait_for_exit(each) for each in children]
        found = verify(tmp_path / "trail.jsonl", key=KEY)
        assert (True, processes * records, ()) == (found.is_intact, found.records, found.problems)

    def test_a_forked_process_continues_the_same_log(self, tmp_path: Path) -> None:
        """At the same time as its parent."""
        assert (0, b"") == wait_for_exit(child("fork", tmp_path / "trail", "file"))

        runs = [record["run"] for record in read(tmp_path / "trail")]
        assert (1, 50, 50) == tuple(map(runs.count, ("run1", "parent", "child")))
        assert verify(tmp_path / "trail", key=KEY).is_intact

    def test_a_full_disk_raises(self) -> None:
        """The test uses a device that is always full."""
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

    @pytest.mark.parametrize("free_bytes", [0, 1, 200])
    def test_a_partial_write_is_removed(self, free_bytes: int, tmp_path: Path) -> None:
        """It raises, so does the next one, and the chain continues when the disk has space again."""
        reported = wait_for_exit(child("cramped", tmp_path / "trail.jsonl", free_bytes))[1].decode().splitlines()

        size = len((tmp_path / "trail.jsonl").read_bytes().splitlines(keepends=True)[0])
        reason = f"AuditError only {free_bytes} of {size} bytes of a record were written; the disk may be full"
        assert [reason if free_bytes else "OSError [Errno 27] File too large"] * 2 == reported[:2]
        found = verify(tmp_path / "trail.jsonl", key=KEY, head=reported[2])
        assert (True, 2, ()) == (found.is_intact, found.records, found.problems)

    @pytest.mark.parametrize("how", ["removed", "cut", "replaced"])
    def test_a_removed_log_is_noticed_by_its_writer(self, how: str, tmp_path: Path) -> None:
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
        """It could not be read; the next one is written."""
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
