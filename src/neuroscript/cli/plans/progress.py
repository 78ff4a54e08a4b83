"""Progress of a plan on a terminal: the running nodes with their seconds, and how many are done.

The display stays below the output of tools, is hidden during prompts, and is removed when the plan ends. Nothing is
drawn if stderr is not a terminal. A terminal without cursor control gets one line for each finished node.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any, Final, TextIO

from neuroscript.approval.request import ApprovalRequest, Approver
from neuroscript.io.text import is_terminal
from neuroscript.runtime.prompter import TERMINAL
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.runner import Step

TICK_SECONDS: Final = 0.1
"""Seconds between two updates of the display."""

DEFAULT_SIZE: Final = (80, 24)
"""Columns and rows assumed for a terminal that does not report its size."""


def display_of(plan: Plan) -> Display | None:
    """Return the display of a run, or None if stderr is not a terminal."""
    return Display(sys.stderr, len(plan.nodes)) if is_terminal(sys.stderr) else None


class Display:
    """The progress lines of a run on a terminal.

    A terminal without cursor control gets one line for each finished node.

    Args:
        stream: The stream of the terminal.
        total: The number of nodes.
    """

    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream = stream
        self._total = total
        self._done = 0
        self._running: dict[tuple[str, int | None], float] = {}
        self._drawn: list[str] = []
        self._is_at_start = True
        self._lock = RLock()
        self._over = Event()
        self._is_away = False
        self._is_steered = os.environ.get("TERM", "dumb") not in ("", "dumb")

    def watch(self, step: Step) -> None:
        """Record a step of the run; the display shows it at the next tick."""
        if not self._is_steered:
            if step.kind == "finished":
                self._write(f"{step.node} {step.code}, {step.done} of {step.total} done\n")
            return
        with self._lock:
            self._done = step.done
            match step.kind:
                case "started":
                    self._running[step.node, step.item] = monotonic()
                case "ended":
                    self._running.pop((step.node, step.item), None)

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """Show the display during the context; other output to the terminal appears above it."""
        if not self._is_steered:
            yield
            return
        ticker = Thread(target=self._tick, name="neuroscript-progress", daemon=True)
        out = StreamAbove(sys.stdout, self) if is_terminal(sys.stdout) else sys.stdout
        try:
            with redirect_stdout(out), redirect_stderr(StreamAbove(self._stream, self)):
                ticker.start()
                yield
        finally:
            self._over.set()
            ticker.join()
            with self._lock:
                self._erase()

    def asked_by(self, approver: Approver | None) -> Approver | None:
        """Return an approver that hides the display while it asks."""
        if approver is None:
            return None

        def asking(request: ApprovalRequest) -> Any:
            with self._hidden_display():
                return approver(request)

        return asking

    @contextmanager
    def _hidden_display(self) -> Iterator[None]:
        with self._lock:
            self._erase()
            self._is_away = True
        try:
            yield
        finally:
            self._is_away = False

    def above(self, stream: TextIO, text: str) -> int:
        """Write a string to a stream of the same terminal; the display is redrawn below it."""
        with self._lock:
            self._erase()
            if text:
                self._is_at_start = text.endswith("\n")
            written = stream.write(text)
            stream.flush()
            return written

    def _tick(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            if not TERMINAL.acquire(blocking=False):  # a prompt is on the terminal
                continue
            try:
                with self._lock:
                    self._draw()
            finally:
                TERMINAL.release()

    def _draw(self) -> None:
        lines = self._lines()
        if self._is_away or not self._is_at_start or lines == self._drawn:
            return
        text = "".join(f"{line}\n" for line in lines)
        self._write(f"{self._erasing()}{text}")
        self._drawn = lines

    def _lines(self) -> list[str]:
        """Return the lines of the display, no wider and no higher than the terminal."""
        (columns, rows), now = self._size(), monotonic()
        max_calls = max(1, rows - 3)
        running = list(self._running.items())
        lines = [
            _format_line(_name(*which), f"  {int(now - began)} s", columns - 1) for which, began in running[:max_calls]
        ]
        if len(running) > max_calls:
            lines.append(f"  and {len(running) - max_calls} more")
        lines.append(f"{self._done} of {self._total} done")
        return [line[: max(1, columns - 1)] for line in lines]

    def _size(self) -> tuple[int, int]:
        """Return the columns and rows of the terminal, which stdout may not be connected to."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):  # the terminal has been closed
            return DEFAULT_SIZE
        return size.columns or DEFAULT_SIZE[0], size.lines or DEFAULT_SIZE[1]

    def _erase(self) -> None:
        if self._drawn:
            self._write(self._erasing())
            self._drawn = []

    def _erasing(self) -> str:
        return f"\x1b[{len(self._drawn)}A\r\x1b[J" if self._drawn else ""

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal has been closed
            self._stream.write(text)
            self._stream.flush()


def _name(node: str, item: int | None) -> str:
    return node if item is None else f"{node}[{item}]"


def _format_line(name: str, seconds: str, width: int) -> str:
    """Return the line of a call, with its name cut to fit, because the running seconds must remain visible."""
    return f"  {name[: max(1, width - 2 - len(seconds))]}{seconds}"


class StreamAbove:
    """A proxy of a terminal stream that writes above the display."""

    def __init__(self, stream: TextIO, display: Display) -> None:
        self._stream = stream
        self._display = display

    def write(self, text: str) -> int:
        """Write a string above the display."""
        return self._display.above(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
