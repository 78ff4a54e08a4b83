"""A span of OpenTelemetry for each call, as hooks; content stays out of it.

Names and attributes are those of OpenTelemetry's conventions for the execution of a tool, and ours begin with
``neuroscript.``. Spans stand in each other as the calls do; that of a call from outside stands in the span that is
current where the call is made.

Source: OpenTelemetry semantic conventions for generative AI, "Execute tool span" (status: development), and "Recording
errors"; reliability.md part 2, row 18.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript._imports import missing
from neuroscript.coercion.context import name_of
from neuroscript.runtime.records import CLOSED, CallRecord
from neuroscript.tools.hookspecs import hookimpl

try:
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer, set_span_in_context
except ModuleNotFoundError as error:
    raise missing("tracing needs OpenTelemetry", "otel", error) from None

MOST: Final = 10_000
"""How many spans may be open at once; of more, the oldest is ended as one that never was."""

OPERATION: Final = "execute_tool"
UNFINISHED: Final = "neuroscript.unfinished"

Key = tuple[str, int]
"""A call: the run, and its number there."""


class Tracing:
    """Hooks that make a span of each call, those within calls and those that are refused included.

    Args:
        tracer_provider: Where spans go; None means the global one.
        content: Whether to tell the types of arguments, their keyed digest and what a call needs, such as the path of a
            file. There is no more to be had: hooks are told no values, and so arguments and results are in no span.

    Calls that are left behind when an engine is closed get a span too, with `UNFINISHED`. Give each engine a Tracing of
    its own: two that share one would end each other's spans of tools of one name.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> from neuroscript.calls.hooks import Hooks
    >>> len(Hooks([Tracing(TracerProvider())]).started)
    1
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, *, content: bool = False) -> None:
        from neuroscript import __version__

        self._tracer = get_tracer("neuroscript", __version__, tracer_provider)
        self._content = content
        self._lock = Lock()
        self._open: dict[Key, _Open] = {}

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        """Begin a span."""
        span = self._begun(record)
        if not span.get_span_context().is_valid:  # there is no SDK, and no span to stand in
            return
        with self._lock:
            self._open[record.run, record.call] = _Open(record.tool, span)
            oldest = next(iter(self._open)) if len(self._open) > MOST else None
            left = None if oldest is None else self._open.pop(oldest)
        if left is not None:
            left.abandon()

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        """End the span of a call, and make one of a call that was refused and never began."""
        with self._lock:
            known = self._open.pop((record.run, record.call), None)
        if known is not None:
            self._end(known.span, record)
        elif record.kind == "refused":
            self._end(self._begun(record, time.time_ns() - round(record.seconds * 1e9)), record)

    @hookimpl
    def neuroscript_engine_closed(self, left: tuple[str, ...]) -> None:
        """End the spans of the calls that are left behind."""
        for tool in left:
            with self._lock:
                key = next((key for key, known in self._open.items() if known.tool == tool), None)
                known = None if key is None else self._open.pop(key)
            if known is not None:
                known.abandon()

    def _begun(self, record: CallRecord, start: int | None = None) -> Span:
        around = self._open.get((record.run, record.parent))
        is_known = bool(record.about.fingerprint)  # a name that a caller made up names no kind of span
        return self._tracer.start_span(
            f"{OPERATION} {record.tool}" if is_known else OPERATION,
            None if around is None else set_span_in_context(around.span),
            SpanKind.INTERNAL,
            dict(self._first(record)),
            start_time=start,
        )

    def _first(self, record: CallRecord) -> Iterator[tuple[str, Any]]:
        """Yield what is known when a call begins."""
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
            yield "neuroscript.policy.tool_policy", record.needs
            if record.digest:
                yield "neuroscript.argument.digest", record.digest.hex()

    def _end(self, span: Span, record: CallRecord) -> None:
        span.set_attributes(dict(_last(record)))
        if record.code not in ("ok", CLOSED):
            span.set_attribute("error.type", record.code or "_OTHER")
            span.set_status(Status(StatusCode.ERROR))
        span.end()


def _last(record: CallRecord) -> Iterator[tuple[str, Any]]:
    """Yield what is known when a call has ended."""
    yield "neuroscript.outcome", record.kind
    yield "neuroscript.repairs", len(record.repairs)
    if record.rule:
        yield "neuroscript.rule", record.rule
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
        """End the span of a call of which no end will be told."""
        self.span.set_attribute(UNFINISHED, True)
        self.span.end()
