"""The memory sink, reading records, and keys of sinks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.audit_records import KEY, RECORD, WRITE, intent, outcome, refused

from neuroscript import FileAudit, MemoryAudit, SpecError, ToolFacts
from neuroscript.audit import read, read_key, verify
from neuroscript.errors import AuditError


class TestMemory:
    """A ring of the last calls."""

    def test_the_last_records_are_retained_in_order(self) -> None:
        """As many as the size permits."""
        audit = MemoryAudit(size=2)
        for call in (1, 2, 3):
            audit.write(outcome(call))
        audit.close()

        assert (outcome(2), outcome(3)) == audit.records

    def test_starts_of_calls_are_omitted(self) -> None:
        """The engine does not send them, and others are not shown."""
        audit = MemoryAudit()
        for record in (intent(1), outcome(1), refused(2)):
            audit.write(record)

        assert audit.intents is False
        assert (outcome(1), refused(2)) == audit.records

    @pytest.mark.parametrize(("size", "got"), [(0, ""), (-1, ""), (True, ", not bool"), (1.5, ", not float")])
    def test_an_invalid_size_is_refused(self, size: Any, got: str) -> None:
        """When the sink is created."""
        with pytest.raises(SpecError) as caught:
            MemoryAudit(size)

        assert f"MemoryAudit: size must be a positive integer{got}" == str(caught.value)


class TestReading:
    """Reading of files that are not audit logs."""

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
    def test_lines_that_are_not_records_are_skipped(self, data: bytes, tmp_path: Path) -> None:
        """The caller can count them."""
        (tmp_path / "trail").write_bytes(data)
        unread: list[int] = []

        assert [] == [*read(tmp_path / "trail", unread=unread.append)]
        assert [*range(1, len(data.splitlines()) + 1)] == unread

    def test_a_line_without_an_end_is_refused(self, tmp_path: Path) -> None:
        """Before it uses all memory."""
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

    def test_a_log_is_read_while_it_is_written(self, tmp_path: Path) -> None:
        """Each record is available at once."""
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
    def test_a_key_file_that_others_can_access_is_refused(self, mode: int, tmp_path: Path) -> None:
        """For reading or for writing."""
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
    def test_an_invalid_key_is_refused(self, data: bytes, text: str, tmp_path: Path) -> None:
        """It is not repeated."""
        (tmp_path / "key").write_bytes(data)

        with pytest.raises(AuditError) as caught:
            read_key(tmp_path / "key")
        assert text == str(caught.value)


def test_the_memory_sink_does_not_import_other_sinks() -> None:
    """Each sink imports its dependencies on first use."""
    code = "import sys, neuroscript; neuroscript.MemoryAudit(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert set() == {"json", "hashlib", "sqlite3", "pathlib", "neuroscript.audit.log_file"} & {*loaded}


def test_cached_facts_of_tools_are_limited(tmp_path: Path) -> None:
    """A model may request any number of unknown names."""
    audit = FileAudit(tmp_path / "trail.jsonl")
    for number in range(5000):
        audit.write(refused(number, about=ToolFacts(f"no.tool{number}")))
    audit.write(RECORD)
    audit.close()

    assert len(audit._forms._facts) < 4097
    assert ["no.tool4999", WRITE.tool] == [record["tool"] for record in read(tmp_path / "trail.jsonl")][-2:]
