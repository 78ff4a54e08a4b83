"""``neuroscript audit show`` and ``tail``: the records of an audit log, and its head."""

from __future__ import annotations

import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, BinaryIO, Final

import attrs

from neuroscript.audit.chain import Line, line_of
from neuroscript.audit.entries import calls_of, entry_of
from neuroscript.audit.filters import RecordFilter, parse_moment
from neuroscript.audit.reader import data_of, is_database, number_lines, open_log, read, rows
from neuroscript.cli.audit.rows import page
from neuroscript.cli.terminal.exit_codes import OK, UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.cli.terminal.printing import show as show_page
from neuroscript.io.text import quote_untrusted

ROWS_PER_PAGE: Final = 500
"""Rows that are aligned as one table."""

POLL_SECONDS: Final = 0.2
"""Seconds between two checks of a file that is followed."""

NO_OUTCOME: Final = "began, outcome unknown"
BEGINS: Final = "begins"

Record = dict[str, Any]


@attrs.define
class Unread:
    """The lines of an audit log that are not records."""

    lines: list[int] = attrs.field(factory=list)
    count: int = 0

    def __call__(self, number: int) -> None:
        """Add the number of a line."""
        self.count += 1
        if len(self.lines) < 5:
            self.lines.append(number)

    def report(self, name: str, read: int, output: Output) -> None:
        """Report the lines that are not records, or an empty audit log.

        Raises:
            UsageError: There are lines, and none of them is a record.
        """
        if self.count and not read:
            raise UsageError(f"{quote_untrusted(name)} is not an audit log: no line is a record")
        if self.count:
            numbers = ", ".join(map(str, self.lines)) + (" …" if self.count > len(self.lines) else "")
            what = f"line {numbers} is not a record" if self.count == 1 else f"lines {numbers} are not records"
            output.say(f"{quote_untrusted(name)}: {what}; see neuroscript audit verify")
        elif not read:
            output.say(f"{quote_untrusted(name)} contains no records")


def show(options: Namespace, output: Output) -> int:
    """Show the matching calls of an audit log, the oldest first, and return the exit code."""
    unread, count, selected = Unread(), 0, _filter_of(options)

    def counted() -> Iterator[Record]:
        nonlocal count
        for record in read(options.file, unread=unread):
            count += 1
            yield record

    if options.json:
        for record in counted():
            if selected.matches(entry_of(record)):
                output.json(record)
    else:
        entries = filter(selected.matches, calls_of(map(entry_of, counted())))
        while part := list(islice(entries, ROWS_PER_PAGE)):
            show_page([page(part, NO_OUTCOME)], output)
    unread.report(options.file, count, output)
    return OK


def tail(options: Namespace, output: Output) -> int:
    """Show the last records and the head of an audit log, follow it if requested, and return the exit code."""
    tell = _teller(options, output)
    with open_log(options.file) as stream:
        if is_database(stream):
            _tail_of_rows(options, tell)
        else:
            _tail_of_lines(options, output, stream, tell)
    return OK


def _filter_of(options: Namespace) -> RecordFilter:
    """Return the filter of the options.

    Raises:
        UsageError: A time is invalid.
    """
    return RecordFilter(
        tool=(options.tool or "").lower(),
        code=options.code or "",
        label=options.label or "",
        effect=options.effect or "",
        session=options.session or "",
        since=_moment(options, "since"),
        until=_moment(options, "until"),
    )


def _moment(options: Namespace, name: str) -> float | None:
    text: str | None = getattr(options, name)
    try:
        return None if text is None else parse_moment(text, is_end=name == "until")
    except ValueError as error:
        raise UsageError(f"--{name}: {error}") from None


def _teller(options: Namespace, output: Output) -> Callable[[list[Record]], None]:
    """Return the function that prints records."""

    def tell(records: list[Record]) -> None:
        if options.json:
            for record in records:
                output.json(record)
        elif records:
            show_page([page([entry_of(record) for record in records], BEGINS)], output)

    return tell


def _tail_of_rows(options: Namespace, tell: Callable[[list[Record]], None]) -> None:
    last = deque(rows(options.file), maxlen=max(1, options.count))
    tell([record for _, record in last] if options.count else [])
    after = last[-1][0] if last else 0
    while options.follow:
        time.sleep(POLL_SECONDS)
        for id, record in rows(options.file, after):
            tell([record])
            after = id


def _tail_of_lines(options: Namespace, output: Output, stream: BinaryIO, tell: Callable[[list[Record]], None]) -> None:
    unread, count = Unread(), 0
    kept: deque[tuple[Line, bytes]] = deque(maxlen=max(1, options.count))
    for number, raw in number_lines(stream):
        line = line_of(raw)
        if line is None:
            unread(number)
        else:
            count += 1
            kept.append((line, raw))
    unread.report(options.file, count, output)
    records = [record for _, raw in kept if (record := data_of(raw)) is not None]
    tell(records if options.count else [])
    if kept:
        _tell_head(kept[-1][0], options, output)
    if options.follow:
        _follow(stream, tell)


def _tell_head(line: Line, options: Namespace, output: Output) -> None:
    head = f"{line.seq}:{line.hash}"
    if options.json:
        output.json({"head": head})
    else:
        output.write(f"head {head}\n")


def _follow(stream: BinaryIO, tell: Callable[[list[Record]], None]) -> None:
    """Print appended records line by line; an incomplete line is read again later."""
    place = stream.tell()
    while True:
        raw = stream.readline()
        if not raw.endswith(b"\n"):
            stream.seek(place)
            time.sleep(POLL_SECONDS)
            continue
        place += len(raw)
        record = data_of(raw)
        if record is not None:
            tell([record])
