"""Verification of the audit log finds every change."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit_records import KEY, child, intent, outcome, refused

from neuroscript import FileAudit, SpecError
from neuroscript.audit import ChainProblem, OpenCall, VerificationReport, verify
from neuroscript.audit.chain_check import MAX_LISTED_PROBLEMS


def written(path: Path, count: int, key: bytes | None = KEY) -> str:
    """Append records and return the head."""
    audit = FileAudit(path, key=key)
    for call in range(1, count + 1):
        audit.write(outcome(call, needs=("fs:write:a",) * (call % 3)))
    audit.close()
    return audit.head


def trail(count: int, torn_at: int = 0, key: bytes | None = KEY) -> tuple[list[bytes], str]:
    """Return the lines of a trail, with one record that was torn and finished where that is wanted, and its head."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "trail.jsonl")
        head = written(path, torn_at or count, key)
        if torn_at:
            with path.open("rb+") as file:
                file.truncate(path.stat().st_size - 50)
            head = written(path, count - torn_at, key)
        return path.read_bytes().splitlines(keepends=True), head


WHOLE, WHOLE_HEAD = trail(6)
TORN, TORN_HEAD = trail(6, torn_at=3)
TRAILS = {"whole": (WHOLE, WHOLE_HEAD), "torn": (TORN, TORN_HEAD)}


def verify_bytes(data: bytes, **how: Any) -> VerificationReport:
    """Return the report for these bytes."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "trail.jsonl")
        path.write_bytes(data)
        return verify(path, **{"key": KEY, **how})


def kinds(found: VerificationReport) -> list[tuple[int, str]]:
    """Return the line and the kind of each problem."""
    return [(problem.line, problem.kind) for problem in found.problems]


class TestProperties:
    """With the key every change of an audit log is found, and with a head every truncation."""

    @pytest.mark.parametrize("name", TRAILS)
    def test_an_unchanged_audit_log_is_intact(self, name: str) -> None:
        """Otherwise the properties would prove nothing."""
        lines, head = TRAILS[name]

        assert verify_bytes(b"".join(lines), head=head).is_intact

    @pytest.mark.parametrize("name", TRAILS)
    @given(data=st.data())
    def test_a_changed_byte_is_found(self, name: str, data: st.DataObject) -> None:
        """For any byte and any value; also an inserted or a removed one."""
        lines, head = TRAILS[name]
        whole = b"".join(lines)
        place = data.draw(st.integers(0, len(whole) - 1))
        byte = data.draw(st.binary(max_size=2).filter(lambda byte: byte != whole[place : place + 1]))

        assert not verify_bytes(whole[:place] + byte + whole[place + 1 :], head=head).is_intact

    @pytest.mark.parametrize("name", TRAILS)
    @given(data=st.data())
    def test_a_removed_inserted_or_moved_line_is_found(self, name: str, data: st.DataObject) -> None:
        """For one line or several."""
        lines, head = TRAILS[name]
        changed = data.draw(st.lists(st.sampled_from(lines), max_size=9).filter(lambda changed: changed != lines))

        assert not verify_bytes(b"".join(changed), head=head).is_intact

    @pytest.mark.parametrize("name", TRAILS)
    @given(data=st.data())
    def test_without_a_head_only_truncation_is_not_found(self, name: str, data: st.DataObject) -> None:
        """The remaining log is then a prefix with unchanged whole records."""
        lines, _ = TRAILS[name]
        changed = data.draw(st.lists(st.sampled_from(lines), max_size=9))

        assert (changed == lines[: len(changed)] or not verify_bytes(b"".join(changed)).is_intact) is True

    @given(cut=st.integers(1, len(b"".join(WHOLE))))
    def test_a_truncated_log_is_found_by_the_head(self, cut: int) -> None:
        """At any position."""
        assert not verify_bytes(b"".join(WHOLE)[:-cut], head=WHOLE_HEAD).is_intact

    @given(st.binary(max_size=300).filter(lambda data: not data.startswith(b"SQLite format 3")))
    def test_any_bytes_can_be_verified(self, data: bytes) -> None:
        """Nothing is raised, and no file except an empty one is intact."""
        assert (not data) == verify_bytes(data).is_intact

    @given(seq=st.integers(0, 8), text=st.text(max_size=5))
    def test_a_forged_record_without_the_key_is_found(self, seq: int, text: str) -> None:
        """Although its plain hash is correct."""
        body = json.dumps({"seq": seq, "prev": WHOLE_HEAD[2:], "kind": "outcome", "run": text, "call": 7})
        raw = body.replace(": ", ":").replace(", ", ",")[:-1].encode()
        forged = b'%b,"hash":"%b"}\n' % (raw, hashlib.sha256(raw).hexdigest().encode())

        assert not verify_bytes(b"".join([*WHOLE, forged])).is_intact


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda lines: lines[:2] + lines[3:], [(3, "removed")], id="one removed"),
        pytest.param(lambda lines: lines[3:], [(1, "removed")], id="the first ones removed"),
        pytest.param(lambda lines: [lines[1], lines[0], *lines[2:]], [(2, "reordered")], id="two swapped"),
        pytest.param(lambda lines: [*lines[:2], *lines[3:], lines[2]], [(6, "reordered")], id="one moved to the end"),
        pytest.param(lambda lines: [*lines[:3], *lines[2:]], [(4, "inserted")], id="one doubled"),
        pytest.param(lambda lines: [*lines, lines[0]], [(7, "inserted")], id="an old one at the end"),
        pytest.param(lambda lines: [*lines[:2], b"\n", *lines[2:]], [(3, "inserted")], id="an empty line"),
        pytest.param(
            lambda lines: [*lines[:2], lines[2].replace(b"ok", b"no"), *lines[3:]], [(3, "edited")], id="one edited"
        ),
        pytest.param(
            lambda lines: [*lines[:2], b"gone\n", *lines[4:]], [(3, "edited"), (4, "removed")], id="two for one"
        ),
        pytest.param(lambda lines: [*lines[:5], b"gone\n"], [(6, "edited")], id="the last one edited"),
        pytest.param(lambda lines: lines[:4], [(5, "cut tail")], id="the tail cut"),
        pytest.param(lambda lines: [], [(1, "cut tail")], id="all cut"),
        pytest.param(
            lambda lines: [*lines[:5], lines[5][:-9]], [(6, "torn tail"), (7, "cut tail")], id="the tail torn"
        ),
        pytest.param(lambda lines: [b"hello\n"] * 3, [(0, "damaged")], id="no trail"),
        pytest.param(
            lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
            [(n, "edited") for n in range(1, 7)],
            id="other ends of lines",
        ),
    ],
)
def test_a_problem_is_named_where_it_is(
    change: Callable[[list[bytes]], list[bytes]], expected: list[tuple[int, str]]
) -> None:
    """By the number of the line and a word for it."""
    found = verify_bytes(b"".join(change(WHOLE)), head=WHOLE_HEAD)

    if expected == [(0, "damaged")]:
        assert found.problems[0] == ChainProblem(0, "damaged", "no line is a record: the file is not an audit log")
    else:
        assert expected == kinds(found)


def test_a_truncated_and_continued_log_is_found_by_the_head(tmp_path: Path) -> None:
    """Its number exists again, with another record."""
    path = tmp_path / "trail.jsonl"
    head = written(path, 5)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    audit = FileAudit(path, key=KEY)
    for call in range(6, 9):
        audit.write(refused(call))
    audit.close()

    text = "record 5 is not the one in the head: the audit log was truncated and rewritten"
    assert (ChainProblem(5, "cut tail", text),) == verify(path, key=KEY, head=head).problems
    assert verify(path, key=KEY).is_intact


@pytest.mark.parametrize("key", [None, KEY])
def test_a_record_of_another_log_with_the_same_key_is_found(key: bytes | None) -> None:
    """Its hash and its number are valid, but it does not follow the previous record."""
    lines, _ = trail(6, key=key)
    with tempfile.TemporaryDirectory() as directory:
        audit = FileAudit(Path(directory, "other.jsonl"), key=key)
        for call in range(1, 7):
            audit.write(refused(call))
        audit.close()
        others = Path(directory, "other.jsonl").read_bytes().splitlines(keepends=True)

    one = verify_bytes(b"".join([*lines[:3], others[3], *lines[4:]]), key=key)
    rest = verify_bytes(b"".join([*lines[:3], *others[3:]]), key=key)

    assert [(4, "edited"), (5, "edited")] == kinds(one)
    assert [(4, "edited")] == kinds(rest)


def test_an_older_head_matches_a_longer_log(tmp_path: Path) -> None:
    """So it is enough to store a head from time to time."""
    heads = [written(tmp_path / "trail.jsonl", 2) for _ in range(3)]

    assert [True] * 3 == [verify(tmp_path / "trail.jsonl", key=KEY, head=head).is_intact for head in heads]


@pytest.mark.parametrize("cut", [2, 30, 100, 400])
def test_a_torn_tail_is_completed_and_reported(cut: int, tmp_path: Path) -> None:
    """By a record with the number of torn bytes, and by verify, which does not count it as damage."""
    path = tmp_path / "trail.jsonl"
    written(path, 3)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - cut)
    torn = path.read_bytes().splitlines()[-1]
    head = written(path, 1)

    found = verify(path, key=KEY, head=head)
    lines = path.read_bytes().splitlines(keepends=True)
    assert (torn + b"\n", 5) == (lines[2], len(lines))
    recovered = json.loads(lines[3])
    assert ("recovered", len(torn) + 1) == (recovered["kind"], recovered["cut"])
    assert hashlib.sha256(torn + b"\n").hexdigest() == recovered["sha256"]
    text = f"{len(torn) + 1} bytes are not a record: a crash or a full disk interrupted a write, and the next writer recorded it"
    assert (ChainProblem(3, "torn tail repaired", text),) == found.problems
    assert (True, 4) == (found.is_intact, found.records)


def test_removed_torn_bytes_are_reported() -> None:
    """The record about them contains their number."""
    place = next(index for index, line in enumerate(TORN) if b'"kind":"recovered"' in line)
    without = b"".join([*TORN[: place - 1], *TORN[place:]])

    assert (place, "removed") in kinds(verify_bytes(without, head=TORN_HEAD))


def test_a_record_without_its_line_end_is_retained(tmp_path: Path) -> None:
    """It is complete, so nothing is removed; the repair is reported."""
    path = tmp_path / "trail.jsonl"
    written(path, 3)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 1)
    head = written(path, 1)

    found = verify(path, key=KEY, head=head)
    text = "the end of the previous line was lost: a crash or a full disk interrupted a write"
    assert (ChainProblem(4, "torn tail repaired", text),) == found.problems
    assert (True, 5) == (found.is_intact, found.records)


def test_a_torn_tail_after_a_long_record_is_found(tmp_path: Path) -> None:
    """At any distance from the last complete record."""
    path = tmp_path / "trail.jsonl"
    audit = FileAudit(path)
    audit.write(outcome(1, needs=("x" * 300_000,)))
    audit.write(outcome(2, needs=("y" * 900_000,)))
    audit.close()
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - 1000)
    FileAudit(path).close()

    assert ["torn tail repaired"] == [problem.kind for problem in verify(path).problems]


def test_a_repair_that_was_torn_itself_is_repaired(tmp_path: Path) -> None:
    """A crash while a writer recovers from a crash."""
    path = tmp_path / "trail.jsonl"
    written(path, 2)
    with path.open("ab") as file:
        file.write(b'{"seq":3,"pre\n{"seq":3,"prev":"00')

    head = written(path, 1)

    assert [(3, "torn tail repaired")] == kinds(verify(path, key=KEY, head=head))
    assert verify(path, key=KEY, head=head).is_intact


def test_zero_blocks_after_a_power_failure_are_a_torn_tail(tmp_path: Path) -> None:
    """As some file systems leave them."""
    path = tmp_path / "trail.jsonl"
    written(path, 2)
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size + 5000)

    head = written(path, 1)

    assert (True, [(3, "torn tail repaired")]) == (
        verify(path, key=KEY, head=head).is_intact,
        kinds(verify(path, key=KEY)),
    )


def test_a_writer_completes_a_tail_that_another_one_has_torn(tmp_path: Path) -> None:
    """While it has the file open."""
    path = tmp_path / "trail.jsonl"
    audit = FileAudit(path, key=KEY)
    audit.write(outcome(1))
    with path.open("ab") as file:
        file.write(b'{"seq":2,"prev":"12')
    audit.write(outcome(2))
    audit.close()

    found = verify(path, key=KEY, head=audit.head)
    assert (True, 3, [(2, "torn tail repaired")]) == (found.is_intact, found.records, kinds(found))


@pytest.mark.parametrize(
    ("written_with", "asked_with", "text"),
    [
        (KEY, KEY[::-1], "no record at the beginning matches this key: the audit log has another key, or was edited"),
        (None, KEY, "the audit log was written without a key"),
        (
            KEY,
            None,
            "no record at the beginning matches its plain SHA-256: the audit log needs its key, or was edited",
        ),
    ],
)
def test_a_wrong_key_is_one_problem(
    written_with: bytes | None, asked_with: bytes | None, text: str, tmp_path: Path
) -> None:
    """Not one for each record; the links are still checked."""
    path = tmp_path / "trail.jsonl"
    written(path, 5, written_with)
    whole = verify(path, key=asked_with)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    less = verify(path, key=asked_with)

    assert (ChainProblem(0, "wrong key", text),) == whole.problems
    assert (5, False) == (whole.records, whole.keyed)
    assert [(0, "wrong key"), (4, "removed")] == kinds(less)


@pytest.mark.parametrize("key", [None, KEY])
def test_a_report_states_its_guarantee(key: bytes | None, tmp_path: Path) -> None:
    """Without a key, a forger can recompute every hash."""
    head = written(tmp_path / "trail.jsonl", 3, key)

    found = verify(tmp_path / "trail.jsonl", key=key, head=head)

    worth = "without a key, damage is detected but not forgery, because every hash can be recomputed"
    assert ("with this key, forgery is detected too" if key else worth) == found.guarantee
    assert VerificationReport(3, first=1, last=3, head=head, keyed=key is not None) == found


@pytest.mark.parametrize("head", ["", "1", "1:abc", "01:" + "a" * 64, "1:" + "A" * 64, "1:" + "a" * 64 + "\n"])
def test_an_invalid_head_is_refused(head: str, tmp_path: Path) -> None:
    """It is not reported as a head that does not match."""
    written(tmp_path / "trail.jsonl", 1)

    with pytest.raises(SpecError) as caught:
        verify(tmp_path / "trail.jsonl", key=KEY, head=head)
    assert "audit: head must be seq:hash, as 'audit tail' prints it" == str(caught.value)


def test_problems_without_an_end_are_counted() -> None:
    """So that no file can take all memory."""
    found = verify_bytes(b"".join([*WHOLE, b"x\n" * 5000]))

    assert (MAX_LISTED_PROBLEMS, 4000) == (len(found.problems), found.unlisted)
    assert not found.is_intact


def test_calls_without_outcome_are_reported(tmp_path: Path) -> None:
    """By tool, run and number, and by the line of their start."""
    audit = FileAudit(tmp_path / "trail.jsonl")
    for record in (intent(1), intent(2), outcome(2), refused(3), intent(1, run="run2"), intent(4), refused(4)):
        audit.write(record)
    audit.close()

    expected = (OpenCall("fs.write", "run1", 1, 1), OpenCall("fs.write", "run2", 1, 5))
    assert expected == verify(tmp_path / "trail.jsonl").without_outcome


def test_a_line_being_written_is_awaited(tmp_path: Path) -> None:
    """Verifying a log that is in use does not report it as torn."""
    path = tmp_path / "trail.jsonl"
    path.write_bytes(b"".join(WHOLE[:5]) + WHOLE[5][:200])
    found: list[VerificationReport] = []
    reader = threading.Thread(target=lambda: found.append(verify(path, key=KEY, head=WHOLE_HEAD)))
    with path.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        reader.start()
        reader.join(0.3)
        file.write(WHOLE[5][200:])
        fcntl.flock(file, fcntl.LOCK_UN)
    reader.join()

    assert [True] == [each.is_intact for each in found]


def test_a_killed_writer_loses_no_acknowledged_record(tmp_path: Path) -> None:
    """Within 1,000 of them; the rest is a valid chain, and shows which call has no outcome."""
    path = tmp_path / "trail.jsonl"
    with child("acknowledge", path, 1000) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 501:
                break
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split()
    acknowledged = int(rest[-1]) if rest else 501

    found = verify(path, key=KEY)
    assert 501 <= acknowledged < 1000
    assert {each.kind for each in found.problems} <= {"torn tail"}  # Linux may end a partial write at a page boundary
    assert found.records in (acknowledged, acknowledged + 1)
    assert [(found.records + 1) // 2] * (found.records % 2) == [call.call for call in found.without_outcome]
