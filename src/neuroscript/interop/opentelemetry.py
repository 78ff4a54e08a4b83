"""OpenTelemetry spans for calls, as hooks; spans never contain argument values or results.

Names and attributes follow the OpenTelemetry conventions for tool execution; attributes of this project begin with
``neuroscript.``. Spans are nested like the calls. The span of an outermost call is a child of the current span.

See the OpenTelemetry semantic conventions for generative AI, "Execute tool span" (status: development), and "Recording
errors".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript import __version__
from neuroscript._imports import missing_extra
from neuroscript.coercion.context import name_of
from neuroscript.runtime.records import CLOSED, CallRecord
from neuroscript.tools.hookspecs import hookimpl

try:
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer, set_span_in_context
except ModuleNotFoundError as error:
    raise missing_extra("tracing needs OpenTelemetry", "otel", error) from None

MAX_OPEN_SPANS: Final = 10_000
"""Maximum number of open spans; beyond it, the oldest one is ended and marked as unfinished."""

OPERATION: Final = "execute_tool"
UNFINISHED: Final = "neuroscript.unfinished"

Key = tuple[str, int]
"""A call: its run, and its number in the run."""


class Tracing:
    """Hooks that create a span for each call, including nested and refused calls.

    Args:
        tracer_provider: The receiver of the spans; None uses the global one.
        content: Also record the types of arguments, their keyed digest and the capabilities of the call, which may
            contain the path of a file. Argument values and results are never recorded, because hooks do not receive
            them.

    Calls that are still running when an engine is closed get a span with `UNFINISHED`. Create a separate Tracing for
    each engine: two engines that share one would end each other's spans of tools with the same name.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from neuroscript.calls.hooks import Hooks
    >>> len(Hooks([Tracing(TracerProvider())]).started)
    1
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, *, content: bool = False) -> None:
        self._tracer = get_tracer("neuroscript", __version__, tracer_provider)
        self._content = content
        self._lock = Lock()
        self._open: dict[Key, _Open] = {}

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        """Start a span."""
        span = self._start_span(record)
        if not span.get_span_context().is_valid:  # no SDK is installed, and there is no parent span
            return
        with self._lock:
            self._open[record.run, record.call] = _Open(record.tool, span)
            oldest = next(iter(self._open)) if len(self._open) > MAX_OPEN_SPANS else None
            left = None if oldest is None else self._open.pop(oldest)
        if left is not None:
            left.abandon()

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        """End the span of a call, or create one for a call that was refused before it started."""
        with self._lock:
            known = self._open.pop((record.run, record.call), None)
        if known is not None:
            self._end(known.span, record)
        elif record.kind == "refused":
            self._end(self._start_span(record, time.time_ns() - round(record.seconds * 1e9)), record)

    @hookimpl
    def neuroscript_engine_closed(self, left: tuple[str, ...]) -> None:
        """End the spans of the calls that are still running."""
        for tool in left:
            with self._lock:
                key = next((key for key, known in self._open.items() if known.tool == tool), None)
                known = None if key is None else self._open.pop(key)
            if known is not None:
                known.abandon()

    def _start_span(self, record: CallRecord, start: int | None = None) -> Span:
        around = self._open.get((record.run, record.parent))
        is_known = bool(record.about.fingerprint)  # span names must not contain names that a caller invented
        return self._tracer.start_span(
            f"{OPERATION} {record.tool}" if is_known else OPERATION,
            None if around is None else set_span_in_context(around.span),
            SpanKind.INTERNAL,
            dict(self._start_attributes(record)),
            start_time=start,
        )

    def _start_attributes(self, record: CallRecord) -> Iterator[tuple[str, Any]]:
        """Yield the attributes known when a call starts."""
        about = record.about
        yield "gen_ai.operation.name", OPERATION
        yield "gen_ai.tool.name", record.tool
        yield "gen_ai.tool.type", "function"
        yield "neuroscript.run", record.run
        yield "neuroscript.session", record.session
        yield "neuroscript.call", record.call
        yield "neuroscript.depth", record.depth
        yield "neuroscript.argument.sizes", record.sizes
        for name, text in (("fingerprint", about.fingerprint), ("distribution", about.distribution)):
            if text:
                yield f"neuroscript.tool.{name}", text
        if self._content:
            yield "neuroscript.argument.types", tuple(map(name_of, record.types))
            yield "neuroscript.needs", record.needs
            if record.digest:
                yield "neuroscript.argument.digest", record.digest.hex()

    def _end(self, span: Span, record: CallRecord) -> None:
        span.set_attributes(dict(_end_attributes(record)))
        if record.code not in ("ok", CLOSED):
            span.set_attribute("error.type", record.code or "_OTHER")
            span.set_status(Status(StatusCode.ERROR))
        span.end()


def _end_attributes(record: CallRecord) -> Iterator[tuple[str, Any]]:
    """Yield the attributes known when a call has ended."""
    yield "neuroscript.outcome", record.kind
    yield "neuroscript.repairs", len(record.repairs)
    if record.rule:
        yield "neuroscript.rule", record.rule
    if record.labels:
        yield "neuroscript.labels", record.labels
    spent: Mapping[str, Any] = record.spent
    for name, amount in spent.items():
        if isinstance(amount, (int, float, Decimal)):
            yield f"neuroscript.spent.{name}", amount if isinstance(amount, (int, float)) else float(amount)


@attrs.frozen(eq=False, repr=False)
class _Open:
    """A span that has not ended, and the tool of its call."""

    tool: str
    span: Span

    def abandon(self) -> None:
        """End the span of a call whose end will not be reported."""
        self.span.set_attribute(UNFINISHED, True)
        self.span.end()
