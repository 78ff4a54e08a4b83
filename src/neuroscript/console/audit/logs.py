"""The audit logs of a console: each is read in threads, and indexed in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from time import sleep
from typing import Final, TypeVar

import attrs
from starlette.requests import Request

from neuroscript.audit.filters import RecordFilter
from neuroscript.audit.log_reader import LoggedCall, LogReader
from neuroscript.audit.statistics import AuditStats
from neuroscript.audit.verification import VerificationReport, verify
from neuroscript.console.routing import console_of
from neuroscript.errors import AuditError

INDEX_SECONDS: Final = 0.01
"""Seconds for which the background holds the index before a page may use it."""

REQUEST_SECONDS: Final = 0.03
"""Seconds for which a request adds to an index that is not complete, so that small logs are complete at once."""

PAUSE_SECONDS: Final = 0.01
"""Seconds in between, so that a waiting page comes first."""

MAX_STORED_STATISTICS: Final = 8
"""Maximum number of different statistics that are stored for each log."""

T = TypeVar("T")


class UnreadableLog(Exception):
    """An audit log cannot be read; the message says why."""


@attrs.define(eq=False)
class ShownLog:
    """One audit log.

    Attributes:
        number: Its number in addresses, from 1.
        path: Its file.
        key: The key of its hash chain, or None.
    """

    number: int
    path: Path
    key: bytes | None = attrs.field(default=None, repr=False)
    _reader: LogReader | None = attrs.field(default=None, init=False, repr=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set, init=False, repr=False)
    _is_indexing: bool = attrs.field(default=False, init=False)
    _statistics: dict[tuple[RecordFilter, int], AuditStats] = attrs.field(factory=dict, init=False, repr=False)

    async def read(self, work: Callable[[LogReader], T]) -> T:
        """Return the result of *work*, which runs in a thread after new records were read.

        Raises:
            UnreadableLog: The log cannot be read.
        """
        found = await asyncio.to_thread(self._read, work)
        reader = self._reader
        if reader is not None and not reader.is_complete and not self._is_indexing:
            self._is_indexing = True
            self._start(self._index(reader))
        return found

    def iter_calls(self, filter: RecordFilter) -> Iterator[LoggedCall]:
        """Yield all selected calls, oldest first, in the current thread, after the whole log was indexed.

        Raises:
            UnreadableLog: The log cannot be read.
        """
        reader = self._read(_completed)
        try:
            yield from reader.iter_calls(filter)
        except (AuditError, OSError) as error:
            raise UnreadableLog(type(error).__name__) from None

    async def statistics(self, filter: RecordFilter) -> AuditStats:
        """Return the numbers of selected calls, which are computed again only if the log has changed."""

        def numbers(reader: LogReader) -> AuditStats:
            key = (filter, reader.last_id if reader.is_complete else -2)
            found = self._statistics.get(key)
            if found is None or not reader.is_complete:
                found = reader.statistics(filter)
                while len(self._statistics) >= MAX_STORED_STATISTICS:
                    self._statistics.pop(next(iter(self._statistics)), None)
                self._statistics[key] = found
            return found

        return await self.read(numbers)

    def verified(self, head: str | None) -> VerificationReport:
        """Return the result of verifying the log; the file is read once.

        Args:
            head: A head that was stored before, or None.
        """
        key = None if LogReader(self.path).is_database else self.key
        return verify(self.path, key=key, head=head)

    def _read(self, work: Callable[[LogReader], T]) -> T:
        try:
            if self._reader is None:
                self._reader = LogReader(self.path)
            self._reader.update(REQUEST_SECONDS)
            return work(self._reader)
        except AuditError as error:
            self._reader = None
            raise UnreadableLog(str(error)) from None
        except OSError as error:
            self._reader = None
            raise UnreadableLog((error.strerror or type(error).__name__).lower()) from None

    async def _index(self, reader: LogReader) -> None:
        try:
            await asyncio.to_thread(_completed, reader)
        except (AuditError, OSError):
            pass  # the next page reports it
        finally:
            self._is_indexing = False

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _completed(reader: LogReader) -> LogReader:
    """Return a reader after it has indexed the whole log."""
    while not reader.is_complete:
        reader.update(INDEX_SECONDS)
        sleep(PAUSE_SECONDS)
    return reader


def logs_of(request: Request) -> tuple[ShownLog, ...]:
    """Return the audit logs of the console."""
    state = request.app.state
    if not hasattr(state, "audit_logs"):
        settings = console_of(request).settings
        state.audit_logs = tuple(
            ShownLog(number, path, settings.audit_key) for number, path in enumerate(settings.audit, 1)
        )
    found: tuple[ShownLog, ...] = state.audit_logs
    return found
