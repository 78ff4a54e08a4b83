"""Writing large results to files of the sandbox: at once, or item by item for streams.

The host writes them and not the tool, so no grant is needed; the bytes count as bytes of files.
"""

from __future__ import annotations

import json
import os
from asyncio import to_thread
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from inspect import isawaitable
from typing import Any, Final

import attrs

from neuroscript.calls import streams as collecting
from neuroscript.calls.spill import Spill, SpilledResult
from neuroscript.calls.steps import Caller, StreamItem
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.scalars import AnyContent
from neuroscript.errors import CallError, HostError, LimitError, ToolFailed
from neuroscript.io.text import sendable
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.result_text import result_text

BLOCK_BYTES: Final = 64 * 1024
"""Bytes of items that are written at once."""

MAX_TOOL_NAME_CHARS: Final = 100
"""Characters of the name of a tool in the name of a file, whose length file systems limit."""

READER_TOOL: Final = "fs.read"
"""The tool that reads such a file, if it is available."""


@attrs.frozen(eq=False, repr=False)
class SpilledStream:
    """The result of a stream that is in a file: its first characters and the file."""

    text: str
    spilled: SpilledResult


class ResultFile:
    """A file of the sandbox for one result; its name is unique.

    Args:
        session: The session whose sandbox and limits are used.
        tool: The canonical name of the tool.
        ending: The extension of the file name.
    """

    def __init__(self, session: Caller, spill: Spill, tool: str, ending: str) -> None:
        self.path = f"{spill.folder}/{tool[:MAX_TOOL_NAME_CHARS]}-{os.urandom(8).hex()}.{ending}"
        self.size = 0
        self._session, self._spill, self._tool = session, spill, tool

    def add(self, data: bytes, given: str) -> None:
        """Append some bytes.

        Args:
            given: A description of the result, for an error.

        Raises:
            CallError: They cannot be written, or there would be too many of them.
        """
        if not self.has_room(len(data)):
            raise self.refusal()
        try:
            self._session.sandbox.files(_permits, self._spend).append(self.path, data)
        except (HostError, LimitError) as error:
            text = f"returned a result {given}, which could not be written to a file: {error.text}"
            kind = LimitError if isinstance(error, LimitError) else ToolFailed
            raise kind(text, tool=self._tool, code=error.code, retry=error.retry) from error
        self.size += len(data)

    def require_whole(self, given: str) -> None:
        """Raise a `ToolFailed` if the file is not what was written, because another call changed or removed it."""
        with suppress(HostError):
            if self._session.sandbox.files(_permits, self._spend).stat(self.path).size == self.size:
                return
        raise ToolFailed(f"returned a result {given}, but its file {self.path} was changed meanwhile", tool=self._tool)

    def has_room(self, size: int) -> bool:
        """Return whether the file may have so many bytes more."""
        return self.size + size <= self._spill.max_bytes

    def refusal(self) -> LimitError:
        """Return the error of a result that is larger than a file may be."""
        text = f"a result in a file may have at most {self._spill.max_bytes} bytes"
        return LimitError(text, tool=self._tool, code="limit.items")

    def _spend(self, what: str, count: int) -> None:
        if self._session.ledger is not None:
            self._session.ledger.spend(what, count, self._tool)


def _permits(verb: str, path: str) -> None:
    """Permit everything, because the host writes."""


class SpillingCollector:
    """The items of a stream, which are written to a file once they are too many for a model, or for a call.

    Args:
        on_item: Called with each item as it comes.
        on_loop: Whether an event loop must not block while the file is written; then the methods return awaitables.
        label: Labels a file before it is written, if the session tracks labels.
    """

    def __init__(
        self,
        session: Caller,
        spill: Spill,
        on_item: Callable[[Any], object] | None,
        *,
        on_loop: bool = False,
        label: Callable[[str], object] | None = None,
    ) -> None:
        self._session, self._spill, self._tell, self._on_loop = session, spill, on_item, on_loop
        self._label = label
        self._kept: list[Any] = []
        self._lines: list[bytes] = []
        self._waiting = self._count = self._written = 0
        self._begins = ""
        self._file: ResultFile | None = None

    def add(self, item: StreamItem) -> object:
        """Add an item, and return what *on_item* returned.

        Raises:
            CallError: It cannot be written.
            BaseException: What *on_item* raised.
        """
        exact = self._session._without_secrets(item.value)
        text = sendable(f"{json.dumps(to_plain(exact), ensure_ascii=False)}\n")
        line = text.encode()
        if len(self._begins) < self._spill.preview_chars:
            self._begins = f"{self._begins}{text}"[: self._spill.preview_chars]
        if self._on_loop and self._is_due(len(line)):
            return self._awaited(exact, item, line)
        self._take(item, line)
        return None if self._tell is None else self._tell(exact)

    def end(self) -> object:
        """Write the remaining items.

        Raises:
            CallError: They cannot be written, or the file has been changed.
        """
        file = self._file
        if file is None:
            return None
        if self._on_loop:
            return to_thread(self._finish, file)
        self._finish(file)
        return None

    def _finish(self, file: ResultFile) -> None:
        self._write(file)
        self._written = 0  # after a failed check it is unknown what the file contains
        file.require_whole(f"of {self._count} items")

    async def _awaited(self, exact: Any, item: StreamItem, line: bytes) -> None:
        await to_thread(self._take, item, line)
        told = None if self._tell is None else self._tell(exact)
        if isawaitable(told):
            await told

    def _is_due(self, size: int) -> bool:
        """Return whether something must be written when so many bytes come."""
        waiting, file = self._waiting + size, self._file
        if file is None:
            return waiting > self._spill.threshold_bytes or self._count >= collecting.MAX_COLLECTED_ITEMS
        return waiting >= BLOCK_BYTES or not file.has_room(waiting)

    def _take(self, item: StreamItem, line: bytes) -> None:
        waiting, is_due = self._waiting + len(line), self._is_due(len(line))
        file = self._file
        if file is None and is_due:
            file = self._file = ResultFile(self._session, self._spill, item.tool, "jsonl")
            self._kept = []
        if file is None:
            self._kept.append(item.value)
        elif not file.has_room(waiting):
            self._write(file)
            error = file.refusal()
            error.items = self._count
            raise error
        self._lines.append(line)
        self._waiting = waiting
        self._count += 1
        if file is not None and is_due:
            self._write(file)

    @property
    def items(self) -> Any:
        """All items, or the beginning of their file."""
        if self._file is None:
            return self._kept
        return SpilledStream(self._begins, SpilledResult(self._file.path, self._file.size, self._count))

    def ended(self, error: CallError) -> CallError:
        """Return an error that ended the stream, with the file that has the items before it."""
        file = self._file
        if file is None:
            return error
        with suppress(CallError):
            self._write(file)
        if not self._written:
            return error
        told = copy(error)
        told.__cause__ = error.__cause__
        told.text = f"{error.text}; the first {self._written} items are in the file {file.path} of the sandbox"
        return told

    def _write(self, file: ResultFile) -> None:
        lines, self._lines, self._waiting = self._lines, [], 0
        if lines:
            if self._label is not None:
                self._label(file.path)
            file.add(b"".join(lines), f"of {self._count} items or more")
            self._written = self._count


def spill_result(session: Caller, spill: Spill, result: ToolResult) -> ToolResult:
    """Return a result as a model reads it: unchanged, or its beginning and the file that contains the whole.

    Args:
        result: A result whose secrets are replaced.
    """
    if type(result.value) is SpilledStream:
        return _told(session, result, result.value.text, result.value.spilled)
    if not result.ok:
        return result
    text = result_text(result)
    data = sendable(text).encode()
    if len(data) <= spill.threshold_bytes:
        return result
    data, ending = _whole(result.value, data)
    file = ResultFile(session, spill, result.tool, ending)
    try:
        file.add(data, f"of {len(data)} bytes")
    except CallError as error:
        return attrs.evolve(result, value=None, error=error)
    return _told(session, result, text[: spill.preview_chars], SpilledResult(file.path, file.size))


def _whole(value: object, text: bytes) -> tuple[bytes, str]:
    """Return the bytes of the file for a value with this text, and the extension of its name."""
    if type(value) is bytes:
        return value, "bin"
    if isinstance(value, AnyContent):
        return json.dumps(to_plain(value)).encode(), "json"
    return text, "txt" if type(value) is str else "json"


def _told(session: Caller, result: ToolResult, begins: str, spilled: SpilledResult) -> ToolResult:
    items = "" if spilled.items is None else f", {spilled.items} items as JSON lines,"
    reader = f"; read it with {READER_TOOL}" if READER_TOOL in session.infos else ""
    text = (
        f"{begins.removesuffix(chr(10))}\n[beginning of a result of {spilled.size} bytes; the full result{items} "
        f"is in the sandbox file {spilled.path}{reader}]"
    )
    return attrs.evolve(result, value=text, spilled=spilled)
