"""Reading parts of an audit log: pages, filters, nested calls and statistics of files and databases."""

from __future__ import annotations

import json
import random
import resource
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from time import process_time

import attrs
import pytest
from tests.audit_records import ADD, WRITE, intent, outcome, refused

from neuroscript import CallRecord, FileAudit, SqliteAudit, ToolFacts
from neuroscript.audit import line_index, log_reader, read
from neuroscript.audit.call_tree import MAX_TREE_CALLS
from neuroscript.audit.entries import Entry, calls_of, entry_of
from neuroscript.audit.filters import RecordFilter, parse_moment
from neuroscript.audit.log_reader import LogReader
from neuroscript.audit.statistics import AuditStats, Timeline, ToolStats
from neuroscript.errors import AuditError
from neuroscript.runtime.records import labelled_record

DELETE = ToolFacts("fs.delete", effects=("deletes",))
START = 1_700_000_000.0

FILTERS = {
    "all": RecordFilter(),
    "a tool": RecordFilter(tool="math.add"),
    "a pattern": RecordFilter(tool="fs.*"),
    "a set of characters": RecordFilter(tool="[!m]*"),
    "no tool": RecordFilter(tool="net.*"),
    "ok": RecordFilter(code="ok"),
    "codes": RecordFilter(code="*.*"),
    "a label": RecordFilter(label="private:*"),
    "an effect": RecordFilter(effect="deletes"),
    "no effect": RecordFilter(effect="delete"),
    "a session": RecordFilter(session="s1"),
    "completed": RecordFilter(outcome="ok"),
    "failed": RecordFilter(outcome="failed"),
    "refused": RecordFilter(outcome="refused"),
    "unfinished": RecordFilter(outcome="unfinished"),
    "since": RecordFilter(since=START + 40),
    "until": RecordFilter(until=START + 40),
    "between": RecordFilter(since=START + 20, until=START + 60),
    "who deleted": RecordFilter(effect="deletes", since=START + 20, until=START + 80),
    "several": RecordFilter(tool="fs.*", code="policy.*", session="s2", since=START + 10),
}

Write = Callable[..., None]


def records(count: int = 120, seed: int = 7) -> Iterator[CallRecord]:
    """Yield records of calls with every kind of outcome; some begin long before they end, and some never end."""
    choose = random.Random(seed)
    open_calls: list[CallRecord] = []
    for call in range(1, count + 1):
        about = choose.choice([WRITE, ADD, DELETE])
        fields = {
            "about": about,
            "session": choose.choice(["s1", "s2", "s3"]),
            "time": START + call + choose.random(),
            "parent": call - 1 if call % 7 == 0 else 0,
            "depth": 2 if call % 7 == 0 else 1,
        }
        labels = choose.choice([(), ("untrusted",), ("private:mail", "untrusted")])
        if call % 5 == 0:
            yield labelled_record(refused(call, **fields), labels)
            continue
        begun = intent(call, **fields)
        yield begun
        end = outcome(call, **fields, code=choose.choice(["ok", "ok", "tool.failed", "stream.closed"]), seconds=0.5)
        if call % 11:
            open_calls.append(labelled_record(end, labels))
        while len(open_calls) > choose.randrange(6):
            yield open_calls.pop(choose.randrange(len(open_calls)))
    yield from open_calls


@pytest.fixture(params=["lines", "database"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Write]:
    """An audit log that does not exist yet, and what appends records to it."""
    path = tmp_path / "log"

    def write(*found: CallRecord) -> None:
        audit = FileAudit(path) if request.param == "lines" else SqliteAudit(path)
        for record in found:
            audit.write(record)
        audit.close()

    return path, write


def entries_of(path: Path) -> list[Entry]:
    """Return the calls in a log, newest first: the place of a call in the log is that of its outcome."""
    entries = [entry_of(each) for each in read(path)]
    ended = {each.key for each in entries if each.kind != "intent"}
    return [each for each in reversed(entries) if each.kind != "intent" or each.key not in ended]


def flat(parts: Iterable[list[Entry]]) -> list[Entry]:
    """Return the entries of all pages."""
    return [*chain.from_iterable(parts)]


def pages(reader: LogReader, filter: RecordFilter, size: int = 7) -> list[list[Entry]]:
    """Return all pages from the newest to the oldest, after checking that the way back shows the same pages."""
    forth, found = [], reader.page(filter, size=size)
    while True:
        forth.append([each.entry for each in found.calls])
        if not found.has_older:
            break
        found = reader.page(filter, size=size, before=found.calls[-1].id)
        assert found.has_newer
    back = [forth[-1]]
    while found.has_newer and found.calls and len(back) < len(forth):
        found = reader.page(filter, size=size, after=found.calls[0].id)
        back.append([each.entry for each in found.calls])
    assert [each.entry for each in reader.page(filter, size=size).calls] == forth[0]
    if len(forth) > 1:  # the way back begins at the oldest call, so its pages begin elsewhere
        assert flat(reversed(back)) == flat(forth)[: len(flat(back))]
    return forth


@pytest.mark.parametrize("indexed", [1, 5000])
@pytest.mark.parametrize("name", FILTERS)
def test_pages_contain_what_a_filter_selects(
    name: str, indexed: int, log: tuple[Path, Write], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL and Python select the same calls, each once, newest first, on as many pages as needed, with any index."""
    monkeypatch.setattr(log_reader, "MAX_INDEXED_ROWS", indexed)
    path, write = log
    write(*records())
    reader = LogReader(path)
    reader.update(10)

    found = pages(reader, FILTERS[name])
    assert flat(found) == [each for each in entries_of(path) if FILTERS[name].matches(each)]
    assert [len(each) for each in found[:-1]] == [7] * (len(found) - 1)
    exported = [each.entry for each in reader.iter_calls(FILTERS[name])]
    assert exported == flat(found)[::-1]


def test_filters_of_the_tests_select_something() -> None:
    """Otherwise the test above would show little."""
    found = [*calls_of(entry_of(json.loads(json.dumps(each, default=str))) for each in map(_data, records()))]
    selected = {name for name, filter in FILTERS.items() if any(map(filter.matches, found))}

    assert {*FILTERS} - selected == {"no tool", "no effect"}


def _data(record: CallRecord) -> dict[str, object]:
    names = ("kind", "tool", "code", "rule", "run", "call", "parent", "time", "seconds", "session", "depth")
    lists = {"labels": list(record.labels), "effects": list(record.about.effects)}
    return {**{name: getattr(record, name) for name in names}, **lists}


def test_small_blocks_give_the_same_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are longer than a block, begin in one and end in another, and a call ends in another block than it begins."""
    path = tmp_path / "log"
    audit = FileAudit(path)
    for record in records():
        audit.write(record)
    monkeypatch.setattr(line_index, "BLOCK_BYTES", 64)
    reader = LogReader(path)
    reader.update(10)

    assert reader.is_complete
    assert flat(pages(reader, RecordFilter())) == entries_of(path)
    for record in records(seed=8):
        audit.write(record._replace(run="second"))
        reader.update()
    reader.update(10)
    assert flat(pages(reader, RecordFilter())) == entries_of(path)
    audit.close()


def test_newest_page_needs_no_complete_index(tmp_path: Path) -> None:
    """One block from the end is enough; the rest is added later, and the page says so."""
    path = tmp_path / "log"
    audit = FileAudit(path)
    for call in range(1, 501):
        audit.write(outcome(call))
    audit.close()
    reader = LogReader(path)

    first = reader.page(RecordFilter(), size=20)
    assert [each.entry.key[1] for each in first.calls] == [*range(500, 480, -1)]
    assert (first.is_complete, reader.is_complete, 0 < reader.progress < 0.5) == (False, False, True)
    assert first.has_older
    reader.update(10)
    assert (reader.is_complete, reader.progress) == (True, 1.0)
    assert reader.page(RecordFilter(), size=20).is_complete


def test_calls_appear_when_they_begin_and_when_they_end(log: tuple[Path, Write]) -> None:
    """A running call has one row; its outcome takes the place of it."""
    path, write = log
    write(outcome(1), intent(2))
    reader = LogReader(path)
    states = []
    for records in ((), (outcome(2, code="tool.failed"),), (refused(3),)):
        write(*records)
        reader.update()
        found = reader.page(RecordFilter(), size=10).calls
        states.append([(each.entry.key[1], each.entry.outcome) for each in found])

    assert states == [
        [(2, "unfinished"), (1, "ok")],
        [(2, "failed"), (1, "ok")],
        [(3, "refused"), (2, "failed"), (1, "ok")],
    ]


def test_line_is_read_when_it_is_finished(tmp_path: Path) -> None:
    """Neither an index that begins within a line nor one that grows reads a part of it."""
    path, whole = tmp_path / "log", tmp_path / "whole"
    audit = FileAudit(whole)
    for call in (1, 2, 3):
        audit.write(outcome(call))
    audit.close()
    lines = whole.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:50])
    reader = LogReader(path)
    reader.update()
    counts = [len(reader.page(RecordFilter(), size=9).calls)]
    for part in (lines[1][50:], lines[2][:-1], lines[2][-1:]):
        with path.open("ab") as file:
            file.write(part)
        reader.update()
        counts.append(len(reader.page(RecordFilter(), size=9).calls))

    assert counts == [1, 2, 2, 3]
    assert reader.unread == 0


def test_truncated_or_replaced_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for calls in ((1, 2, 3), (7, 8)):
        path.unlink(missing_ok=True)
        audit = FileAudit(path)
        for call in calls:
            audit.write(outcome(call))
        audit.close()
        reader = LogReader(path) if calls[0] == 1 else reader
        reader.update()
        assert [each.entry.key[1] for each in reader.page(RecordFilter(), size=9).calls] == [*reversed(calls)]
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    reader.update()

    assert [each.entry.key[1] for each in reader.page(RecordFilter(), size=9).calls] == [7]


def test_lines_that_are_not_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    audit = FileAudit(path)
    audit.write(outcome(1))
    audit.close()
    path.write_bytes(b"no record\n[1]\n" + path.read_bytes() + b"\xff\n")
    reader = LogReader(path)
    reader.update()

    assert (reader.unread, len(reader.page(RecordFilter(), size=9).calls)) == (3, 1)


def test_line_that_is_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_index, "BLOCK_BYTES", 16)
    monkeypatch.setattr(line_index, "MAX_LINE_BYTES", 64)
    path = tmp_path / "log"
    path.write_bytes(b"x" * 5000 + b"\n")

    with pytest.raises(AuditError) as caught:
        LogReader(path).update()
    assert str(caught.value) == "a line has more than 64 bytes, so the file is not an audit log"


def test_edited_records_can_be_read(tmp_path: Path) -> None:
    """Values of other types, lone surrogates and huge numbers are no error."""
    path = tmp_path / "log"
    odd = {"kind": "outcome", "tool": "a\ud800", "call": 10**400, "time": "x", "run": ["r"], "effects": [1, "deletes"]}
    path.write_text("".join(json.dumps(each) + "\n" for each in (odd, {"kind": "other"}, {"kind": "intent"}, odd)))
    reader = LogReader(path)
    reader.update()

    found = reader.page(RecordFilter(), size=9).calls
    assert [(each.entry.kind, each.entry.tool, each.entry.time) for each in found] == [
        ("outcome", "a\\ud800", 0.0),
        ("intent", "", 0.0),
        ("other", "", 0.0),
        ("outcome", "a\\ud800", 0.0),
    ]
    assert len(reader.page(RecordFilter(tool="a*", effect="deletes"), size=9).calls) == 2
    assert reader.statistics(RecordFilter()).records == 4
    assert reader.tree(found[0].entry) is None


def test_databases_of_earlier_releases_have_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    audit = SqliteAudit(path)
    audit.write(labelled_record(outcome(1), ("private",)))
    audit.close()
    with sqlite3.connect(path) as connection:
        for index in ("calls_by_parent",):
            connection.execute(f"DROP INDEX {index}")
        connection.execute("ALTER TABLE calls DROP COLUMN labels")
    connection.close()
    reader = LogReader(path)

    assert len(reader.page(RecordFilter(), size=9).calls) == 1
    assert reader.page(RecordFilter(label="private"), size=9).calls == ()


@pytest.mark.parametrize("value", ["x", b"x", 9e999, -9e999, 1e300, 2**62, -1, None, "[1]", '{"a": 1}', "\x00"])
def test_edited_databases_can_be_read(value: object, tmp_path: Path) -> None:
    """Whatever the columns contain, in any column that permits it."""
    path = tmp_path / "log.db"
    audit = SqliteAudit(path)
    audit.write(nested(1, 0, 1))
    audit.write(nested(2, 1, 2))
    audit.close()
    connection = sqlite3.connect(path)
    names = [name for _, name, *_ in connection.execute("PRAGMA table_info(calls)") if name != "id"]
    for name in names:
        with suppress(sqlite3.IntegrityError):  # NULL, or the same number twice
            connection.execute(f"UPDATE calls SET {name} = ? WHERE call = 2 OR id = 2", (value,))
    connection.commit()
    connection.close()
    reader = LogReader(path)

    found = reader.page(RecordFilter(), size=9).calls
    assert len(found) == 2
    for each in found:
        reader.tree(each.entry)
    for filter in FILTERS.values():
        reader.page(filter, size=9)
        assert reader.statistics(filter).records <= 2
    assert reader.statistics(RecordFilter()).records == 2


def test_other_databases_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()

    with pytest.raises(AuditError, match=r"^the file is not an audit log database, or cannot be read"):
        LogReader(path).page(RecordFilter(), size=9)


# Nested calls


def nested(call: int, parent: int, depth: int, **fields: object) -> CallRecord:
    return outcome(call, parent=parent, depth=depth, **fields)


def test_tree_contains_the_calls_around_a_call(log: tuple[Path, Write]) -> None:
    """From the outermost call down, from whichever call of the tree it is asked; other calls and runs are left out."""
    path, write = log
    write(
        intent(1),
        nested(3, 2, 3),
        refused(4, parent=2, depth=3),
        nested(2, 1, 2, code="tool.failed"),
        outcome(5),
        nested(6, 1, 2),
        nested(7, 1, 2, run="other"),
    )
    reader = LogReader(path)
    reader.update()
    trees = []
    for each in reader.page(RecordFilter(tool="*"), size=20).calls:
        tree = reader.tree(each.entry)
        assert tree is not None
        trees.append((each.entry.key[1], [(depth, node.call, node.kind) for depth, node in tree.walk()]))

    whole = [(0, 1, "intent"), (1, 2, "outcome"), (2, 3, "outcome"), (2, 4, "refused"), (1, 6, "outcome")]
    expected = {1: whole, 2: whole, 3: whole, 4: whole, 6: whole, 5: [(0, 5, "outcome")], 7: [(0, 7, "outcome")]}
    assert dict(trees) == expected


def test_tree_is_limited(log: tuple[Path, Write]) -> None:
    """A call with very many nested calls shows the first ones, and that there are more."""
    path, write = log
    write(outcome(1), *(nested(call, 1, 2) for call in range(2, MAX_TREE_CALLS + 10)))
    reader = LogReader(path)
    reader.update(10)
    tree = reader.tree(reader.page(RecordFilter(), size=1).calls[0].entry)

    assert tree is not None
    assert (len([*tree.walk()]), tree.is_truncated) == (MAX_TREE_CALLS, True)


def test_edited_parents_end_the_tree(tmp_path: Path) -> None:
    """Calls that are nested in each other, or in a later call, are not followed for ever."""
    path = tmp_path / "log"
    edited = [nested(1, 2, 2), nested(2, 1, 2), nested(3, 3, 2), nested(4, 9, 2)]
    audit = SqliteAudit(path)
    for record in edited:
        audit.write(record)
    audit.close()
    reader = LogReader(path)
    trees = {each.entry.key[1]: reader.tree(each.entry) for each in reader.page(RecordFilter(), size=9).calls}

    found = {call: [node.call for _, node in tree.walk()] for call, tree in trees.items() if tree is not None}
    assert {call: sorted(calls) for call, calls in found.items()} == {1: [2], 2: [1, 2], 3: [3], 4: [4]}


# Statistics


def test_statistics_are_those_of_all_records(log: tuple[Path, Write]) -> None:
    path, write = log
    write(*records())
    reader = LogReader(path)
    reader.update(10)
    for filter in (RecordFilter(), RecordFilter(tool="fs.*", since=START + 30)):
        expected = AuditStats()
        expected.take(each for each in entries_of(path) if filter.matches(each))
        found = reader.statistics(filter)

        assert found.tools.keys() == expected.tools.keys()
        for name, tool in expected.tools.items():
            assert attrs.evolve(found.tools[name], seconds=tool.seconds) == tool
            assert sorted(found.tools[name].seconds) == sorted(tool.seconds)
        assert (found.refusals, {*found.begun}, found.calls) == (expected.refusals, {*expected.begun}, expected.calls)
        assert found.timeline is not None
        assert sum(each.total() for each in found.timeline.calls) == found.calls


def test_statistics_of_an_empty_log_have_no_timeline(log: tuple[Path, Write]) -> None:
    path, write = log
    write()
    reader = LogReader(path)
    reader.update()

    assert (reader.statistics(RecordFilter()).timeline, reader.page(RecordFilter(), size=5).calls) == (None, ())


@pytest.mark.parametrize(
    ("first", "last", "width", "count"),
    [
        pytest.param(0, 0, 60, 1, id="a moment"),
        pytest.param(30, 3600, 300, 13, id="an hour"),
        pytest.param(100, 86_400, 3600, 25, id="a day"),
        pytest.param(0, 365 * 86_400, 28 * 86_400, 14, id="a year"),
        pytest.param(0, 1e12, 689_574 * 86_400 // 28 * 28, 0, id="from 1970 to 33658"),
    ],
)
def test_timeline_has_a_readable_number_of_periods(first: float, last: float, width: int, count: int) -> None:
    timeline = Timeline.between(first, last)
    timeline.add(first, "ok")
    timeline.add(last, "ok")

    assert len(timeline.calls) <= 48
    assert sum(each["ok"] for each in timeline.calls) == 2
    if count:
        assert (timeline.width, len(timeline.calls)) == (width, count)


def test_percentiles_are_durations_of_calls() -> None:
    """The percentile is the smallest duration that this percentage of the calls did not exceed."""
    numbers = ToolStats()
    numbers.seconds.extend(float(each) for each in range(200, 0, -1))

    assert numbers.percentiles(50, 95, 99, 100) == (100.0, 190.0, 198.0, 200.0)
    assert ToolStats().percentiles(50) is None


@pytest.mark.parametrize(
    ("text", "is_end", "seconds"),
    [
        ("2026-11-27", False, 1_795_737_600.0),
        ("2026-11-27", True, 1_795_824_000.0),
        ("2026-11-27T14:30", False, 1_795_789_800.0),
        ("2026-11-27T14:30", True, 1_795_789_800.0),
        (" 2026-11-27 14:30:05Z ", False, 1_795_789_805.0),
    ],
)
def test_times_are_parsed_as_utc(text: str, is_end: bool, seconds: float) -> None:
    assert parse_moment(text, is_end=is_end) == seconds


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-11-27T25:00", "27.11.2026", "٢٠٢٦-11-27", "9999-12-31"]
)
def test_other_times_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a date such as 2026-11-27"):
        parse_moment(text, is_end=True)


def test_threads_share_a_reader(tmp_path: Path) -> None:
    """Pages, statistics and the index are used at the same time while the log grows."""
    path = tmp_path / "log"
    audit = FileAudit(path)
    for call in range(1, 1001):
        audit.write(outcome(call))
    reader, problems = LogReader(path), list[BaseException]()

    def work(run: Callable[[], object]) -> None:
        try:
            for _ in range(30):
                run()
        except BaseException as error:
            problems.append(error)

    jobs = [
        lambda: reader.update(0.001),
        lambda: reader.page(RecordFilter(tool="fs.*"), size=20),
        lambda: reader.statistics(RecordFilter()),
        lambda: audit.write(outcome(1000 + random.randrange(10**6))),
    ]
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    audit.close()
    reader.update(10)

    assert problems == []
    assert reader.statistics(RecordFilter()).records == len([*read(path)])


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("kind", ["lines", "database"])
def test_hundred_thousand_calls_are_not_loaded(kind: str, tmp_path: Path) -> None:
    """A page takes at most 100 ms of processor time with any filter, and memory does not grow with the log."""
    path = tmp_path / "log"
    audit = FileAudit(path) if kind == "lines" else SqliteAudit(path, batch=1000)
    facts = [ToolFacts(f"group{each % 7}.tool{each}", effects=("deletes",) if each == 3 else ()) for each in range(40)]
    for call in range(1, 100_001):
        fields = {"about": facts[call * 7919 % 40], "time": START + call, "session": f"s{call % 20}"}
        audit.write(refused(call, **fields) if call % 50 == 0 else outcome(call, **fields))
    audit.close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader = LogReader(path)
    while not reader.is_complete:
        reader.update(1)
    filters = [*FILTERS.values(), RecordFilter(effect="deletes", since=START + 50_000, until=START + 86_400)]
    took: list[float] = []
    for filter in filters:
        for place in ({}, {"before": reader.last_id // 2}):
            began = process_time()
            reader.page(filter, size=50, **place)
            took.append(process_time() - began)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    reader.close()

    assert max(took) <= 0.1
    assert grown <= 40_000  # KiB; a file of lines has about 70,000
    assert path.stat().st_size > 25_000_000


def test_lines_are_found_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For links from a verification to the calls around a line."""
    path = tmp_path / "log"
    audit = FileAudit(path)
    for call in range(1, 21):
        audit.write(outcome(call))
    audit.close()
    places = [0]
    for raw in path.read_bytes().splitlines(keepends=True):
        places.append(places[-1] + len(raw))
    reader = LogReader(path)
    for size in (50, line_index.SCAN_BYTES):
        monkeypatch.setattr(line_index, "SCAN_BYTES", size)
        assert [reader.id_of_line(each) for each in range(1, 22)] == places
        assert reader.id_of_line(10**6) == places[-1]
