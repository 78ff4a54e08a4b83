"""Spans of calls, as OpenTelemetry's own SDK exports them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, StaticSampler
from opentelemetry.trace import SpanKind, StatusCode

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    Engine,
    ExecutionPolicy,
    MemoryAudit,
    Repair,
    Runtime,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    __version__,
)
from neuroscript._imports import install_hint
from neuroscript.calls.hooks import Hooks
from neuroscript.interop import opentelemetry
from neuroscript.interop.opentelemetry import Tracing
from neuroscript.policy.limits import Limits
from neuroscript.runtime.records import CallRecord, ToolFacts, labelled_record

ROOT = Path(__file__).parents[2]
ABOUT = ToolFacts("files.count", "f" * 64, "acme-files", "1.2", effects=("reads",))
BEGUN = CallRecord(
    "intent",
    ABOUT,
    "r1",
    "s1",
    1,
    0,
    1,
    "p" * 64,
    0.0,
    ("fs:read:data/a.txt",),
    (str, list),
    (10, 2),
    b"\x01" * 16,
    (),
    "",
    "files.*",
    {},
    0.0,
)


def printed(code: str) -> str:
    """Run code in a separate process, and return its output."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def finish_record(begun: CallRecord, code: str = "ok", **more: Any) -> CallRecord:
    """Return the record of the end of a call."""
    return begun._replace(**{"kind": "outcome", "code": code, "seconds": 0.25, **more})


class World:
    """Hooks that trace, and the exported spans."""

    def __init__(self, **how: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=how.pop("sampler", None))
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracing = Tracing(self.provider, **how)
        self.hooks = Hooks([self.tracing])

    def start(self, record: CallRecord) -> None:
        for tell in self.hooks.started:
            tell(record)

    def finish(self, record: CallRecord) -> None:
        for tell in self.hooks.finished:
            tell(record)

    def close(self, *left: str) -> None:
        for tell in self.hooks.closed:
            tell(left)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The ended spans, in order."""
        return list(self.exporter.get_finished_spans())


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.provider.shutdown()


FIRST = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "files.count",
    "gen_ai.tool.type": "function",
    "neuroscript.run": "r1",
    "neuroscript.session": "s1",
    "neuroscript.call": 1,
    "neuroscript.depth": 1,
    "neuroscript.argument.sizes": (10, 2),
    "neuroscript.tool.fingerprint": "f" * 64,
    "neuroscript.tool.distribution": "acme-files",
}
LAST = {"neuroscript.outcome": "outcome", "neuroscript.repairs": 0, "neuroscript.rule": "files.*"}


def test_a_call_is_a_span(world: World) -> None:
    """With the names of the semantic conventions; arguments only have sizes."""
    world.start(BEGUN)
    world.finish(finish_record(BEGUN))

    (span,) = world.spans
    assert ("execute_tool files.count", SpanKind.INTERNAL, None) == (span.name, span.kind, span.parent)
    assert {**FIRST, **LAST} == dict(span.attributes or {})
    assert (StatusCode.UNSET, ()) == (span.status.status_code, span.events)
    assert span.instrumentation_scope is not None
    assert ("neuroscript", __version__) == (span.instrumentation_scope.name, span.instrumentation_scope.version)


def test_initial_attributes_are_available_to_samplers() -> None:
    """The conventions require it when a span starts."""
    seen: list[Any] = []

    class Looking(StaticSampler):
        def should_sample(self, parent: Any, trace: int, name: str, kind: Any, attributes: Any, *more: Any) -> Any:
            seen.append((name, dict(attributes)))
            return super().should_sample(parent, trace, name, kind, attributes, *more)

    world = World(sampler=Looking(Decision.DROP))
    world.start(BEGUN)
    world.finish(finish_record(BEGUN))

    assert [("execute_tool files.count", FIRST)] == seen
    assert [] == world.spans


def test_content_is_types_needs_and_a_digest() -> None:
    """Records contain no values, so spans contain none."""
    world = World(content=True)
    world.start(BEGUN)
    world.finish(finish_record(BEGUN))

    (span,) = world.spans
    more = {
        "neuroscript.argument.types": ("str", "list"),
        "neuroscript.argument.digest": "01" * 16,
        "neuroscript.needs": ("fs:read:data/a.txt",),
    }
    assert {**FIRST, **more, **LAST} == dict(span.attributes or {})


def test_a_failed_call_has_its_code(world: World) -> None:
    """As the error type, which has few values; its message may contain anything, and is not exported."""
    world.start(BEGUN)
    world.finish(finish_record(BEGUN, "tool.failed"))

    (span,) = world.spans
    assert {**FIRST, **LAST, "error.type": "tool.failed"} == dict(span.attributes or {})
    assert (StatusCode.ERROR, None) == (span.status.status_code, span.status.description)


def test_a_call_that_never_started_is_a_span_too(world: World) -> None:
    """Hosts look for refusals; the span lasts as long as the gates ran."""
    world.finish(finish_record(BEGUN, "policy.denied", kind="refused", rule="files.*"))

    (span,) = world.spans
    assert {**FIRST, **LAST, "neuroscript.outcome": "refused", "error.type": "policy.denied"} == dict(
        span.attributes or {}
    )
    assert StatusCode.ERROR == span.status.status_code
    assert span.end_time is not None and span.start_time is not None
    assert 0.25 <= (span.end_time - span.start_time) / 1e9 < 5


def test_a_call_of_an_unknown_tool_is_a_span_without_its_name(world: World) -> None:
    """A model may invent any number of names; the requested name is an attribute."""
    world.finish(finish_record(BEGUN, "tool.not_found", kind="refused", about=ToolFacts("maths.ad")))

    (span,) = world.spans
    assert ("execute_tool", "maths.ad") == (span.name, dict(span.attributes or {})["gen_ai.tool.name"])


def test_a_missing_digest_is_not_an_attribute() -> None:
    """An engine without an audit sink computes none."""
    world = World(content=True)
    world.start(BEGUN._replace(digest=b""))
    world.finish(finish_record(BEGUN))

    assert "neuroscript.argument.digest" not in dict(world.spans[0].attributes or {})


def test_repairs_and_usage_are_attributes(world: World) -> None:
    """As numbers."""
    spent = {"calls": 1, "fs_bytes": 120, "money": Decimal("0.5"), "of": {"EUR": Decimal(1)}}
    world.start(BEGUN)
    world.finish(finish_record(BEGUN, repairs=(Repair("tags[0]", "int", "str"),), spent=spent))

    attributes = dict(world.spans[0].attributes or {})
    assert 1 == attributes["neuroscript.repairs"]
    assert {"calls": 1, "fs_bytes": 120, "money": 0.5} == {
        name.removeprefix("neuroscript.spent."): amount
        for name, amount in attributes.items()
        if name.startswith("neuroscript.spent.")
    }


def test_labels_are_an_attribute(world: World) -> None:
    """Their names, if there are any."""
    world.finish(labelled_record(finish_record(BEGUN)._replace(kind="refused"), ("untrusted", "private:mail")))
    assert dict(world.spans[0].attributes or {})["neuroscript.labels"] == ("untrusted", "private:mail")


def test_nested_calls_are_nested_spans(world: World) -> None:
    """Refused ones too, on any thread."""
    inner = BEGUN._replace(about=ToolFacts("math.add", "a" * 64), call=2, parent=1, depth=2)
    deepest = BEGUN._replace(
        about=ToolFacts("math.sub", "b" * 64), call=3, parent=2, depth=3, kind="refused", code="limit.depth"
    )
    steps = [(world.start, BEGUN), (world.start, inner), (world.finish, deepest), (world.finish, finish_record(inner))]
    for tell, record in steps:
        thread = threading.Thread(target=tell, args=(record,))
        thread.start()
        thread.join()
    world.finish(finish_record(BEGUN))

    names = {span.context.span_id: span.name for span in world.spans if span.context is not None}
    assert [
        ("execute_tool math.sub", "execute_tool math.add"),
        ("execute_tool math.add", "execute_tool files.count"),
        ("execute_tool files.count", None),
    ] == [(span.name, span.parent and names[span.parent.span_id]) for span in world.spans]
    assert 1 == len({span.context.trace_id for span in world.spans if span.context is not None})


def test_a_call_is_in_the_current_span(world: World) -> None:
    """For example that of a request or an agent."""
    with world.provider.get_tracer("app").start_as_current_span("request"):
        world.start(BEGUN)
        world.finish(finish_record(BEGUN))

    call, request = world.spans
    assert call.parent is not None and request.context is not None
    assert request.context.span_id == call.parent.span_id


def test_calls_of_two_runs_are_separate(world: World) -> None:
    """Their numbers are equal."""
    other = BEGUN._replace(run="r2", about=ToolFacts("math.add", "a" * 64))
    world.start(BEGUN)
    world.start(other)
    world.finish(finish_record(BEGUN))
    world.finish(finish_record(other))

    assert ["execute_tool files.count", "execute_tool math.add"] == [span.name for span in world.spans]


def test_abandoned_calls_end_with_their_engine(world: World) -> None:
    """Later events do not create another span; calls of other engines continue."""
    other = BEGUN._replace(call=2, about=ToolFacts("math.add", "a" * 64))
    world.start(BEGUN)
    world.start(other)
    world.close("files.count", "files.gone")
    world.finish(finish_record(BEGUN))

    assert [("execute_tool files.count", {**FIRST, "neuroscript.unfinished": True})] == [
        (span.name, dict(span.attributes or {})) for span in world.spans
    ]
    world.finish(finish_record(other))
    assert 2 == len(world.spans)


def test_calls_without_an_end_do_not_accumulate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest one is ended if there are too many."""
    monkeypatch.setattr(opentelemetry, "MAX_OPEN_SPANS", 3)
    for number in range(1, 9):
        world.start(BEGUN._replace(call=number))
    world.finish(finish_record(BEGUN._replace(call=8)))

    reported = [(dict(span.attributes or {})["neuroscript.call"], span.attributes) for span in world.spans]
    assert [1, 2, 3, 4, 5, 8] == [number for number, _ in reported]
    assert [True] * 5 + [None] == [(each or {}).get("neuroscript.unfinished") for _, each in reported]


def test_concurrent_threads_lose_no_span(world: World) -> None:
    """Eight of them, with 200 calls each."""

    def run(first: int) -> None:
        for number in range(first, first + 200):
            world.start(BEGUN._replace(call=number))
            world.finish(finish_record(BEGUN._replace(call=number)))

    threads = [threading.Thread(target=run, args=(1_000 * number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1_600 == len({dict(span.attributes or {})["neuroscript.call"] for span in world.spans})


ALONE = """
from neuroscript.interop.opentelemetry import Tracing
from tests.interop.test_opentelemetry import BEGUN, finish_record
tracing = Tracing()
tracing.neuroscript_call_started(BEGUN)
print(len(tracing._open))
tracing.neuroscript_call_finished(finish_record(BEGUN))
"""


def test_without_a_provider_nothing_is_retained() -> None:
    """The global provider creates no spans until a program configures it."""
    assert "0\n" == printed(ALONE)


GLOBAL = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from neuroscript.interop.opentelemetry import Tracing
from tests.interop.test_opentelemetry import BEGUN, finish_record
tracing = Tracing()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)
tracing.neuroscript_call_started(BEGUN)
tracing.neuroscript_call_finished(finish_record(BEGUN))
"""


def test_the_global_provider_may_be_set_later() -> None:
    """Programs initialize in different orders."""
    assert "execute_tool files.count" == json.loads(printed(GLOBAL))["name"]


def test_the_error_without_opentelemetry_says_what_to_install() -> None:
    """The other interop modules do not need it."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None; import neuroscript.llm.wire.detect\n"
        "try:\n    import neuroscript.interop.opentelemetry\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )

    assert f"tracing needs OpenTelemetry; install it with: {install_hint('otel')}\n" == printed(code)


# Through an engine


def tools(timeout: float | None = None) -> Toolset:
    """Return tools that call each other; with a *timeout* their call pipelines are not compiled."""
    made = Toolset("g")

    def add(rt: Runtime, a: int) -> int:
        return a + 1

    def outer(rt: Runtime, a: int) -> Any:
        return rt.call_tool("g.middle", (a,)) + rt.call_tool("g.add", (str(a),))

    def middle(rt: Runtime, a: int) -> Any:
        return rt.call_tool("g.add", (a,))

    def denied(rt: Runtime, a: int) -> Any:
        return rt.call_tool("g.secret", (a,))

    def secret(rt: Runtime, a: int) -> int:
        return a

    def fails(rt: Runtime, a: int) -> None:
        raise OSError("canary")

    async def later(rt: Runtime, a: int) -> Any:
        await asyncio.sleep(0)
        return rt.call_tool("g.add", (a,))

    def stream(rt: Runtime, a: int) -> Iterator[Any]:
        for number in range(a):
            yield rt.call_tool("g.add", (number,))

    for func in (add, outer, middle, denied, secret, fails, later, stream):
        spec = ToolSpec(
            func.__name__, "g", (ArgSpec("a", ArgType.INT),), return_type=ArgType.ANY, stream=func is stream
        )
        made.add(spec, func, ToolPolicy(timeout=timeout, effects=("reads",) if func is middle else ()))
    return made


@pytest.fixture(params=[None, 60.0], ids=["compiled", "steps"])
def engine(request: pytest.FixtureRequest, world: World) -> Iterator[Engine]:
    policy = ExecutionPolicy(deny=["g.secret"], limits=Limits(money={"EUR": 1}))
    with Engine(toolsets=[tools(request.param)], plugins="none", policy=policy, hooks=[world.tracing]) as made:
        yield made


def trees(world: World) -> list[tuple[str, str | None]]:
    """Return each ended span and its parent, by the names of their tools."""
    names = {span.context.span_id: span.name.removeprefix("execute_tool g.") for span in world.spans if span.context}
    return [
        (span.name.removeprefix("execute_tool g."), span.parent and names[span.parent.span_id]) for span in world.spans
    ]


OUTER = [("add", "middle"), ("middle", "outer"), ("add", "outer"), ("outer", None)]


@pytest.mark.parametrize("entry_point", ["call", "acall", "execute", "timed"])
def test_nested_calls_of_an_engine_are_nested_spans(entry_point: str, engine: Engine, world: World) -> None:
    """Through every entry point, and on any thread."""
    entry_points: dict[str, Any] = {
        "call": lambda: engine.call("g.outer", (5,)),
        "acall": lambda: asyncio.run(engine.acall("g.outer", (5,))),
        "execute": lambda: engine.execute(ToolCall("g__outer", '{"a": 5}')).value,
        "timed": lambda: engine.call("g.outer", (5,), timeout=60),
    }

    assert entry_points[entry_point]() == 12

    assert trees(world) == OUTER
    assert 1 == len({span.context.trace_id for span in world.spans if span.context is not None})
    repairs = [dict(span.attributes or {})["neuroscript.repairs"] for span in world.spans]
    assert repairs == [0, 0, 1, 0]


def test_coroutines_and_streams_are_spans_with_their_calls(engine: Engine, world: World) -> None:
    """Until the last item."""
    assert engine.call("g.later", (5,)) == 6
    assert list(engine.stream("g.stream", (2,))) == [1, 2]

    assert trees(world) == [("add", "later"), ("later", None), ("add", "stream"), ("add", "stream"), ("stream", None)]


def test_a_refused_or_failed_call_ends_its_span_and_the_enclosing_ones(engine: Engine, world: World) -> None:
    """With the code of the error, without its message."""
    for name, args in (("g.denied", (1,)), ("g.fails", (1,)), ("g.outer", ("x",)), ("g.nothing", ())):
        with pytest.raises(CallError):
            engine.call(name, args)

    reported = [(span.name, dict(span.attributes or {}).get("error.type")) for span in world.spans]
    assert reported == [
        ("execute_tool g.secret", "policy.denied"),
        ("execute_tool g.denied", "policy.denied"),
        ("execute_tool g.fails", "tool.failed"),
        ("execute_tool g.outer", "coercion.format"),
        ("execute_tool", "tool.not_found"),
    ]
    assert trees(world)[:2] == [("secret", "denied"), ("denied", None)]
    assert all(span.status.status_code is StatusCode.ERROR for span in world.spans)
    assert "canary" not in "".join(str(span.to_json()) for span in world.spans)
    assert world.tracing._open == {}


def test_calls_of_many_threads_have_their_own_parents(engine: Engine, world: World) -> None:
    """Each is in the span that is current for its caller."""
    tracer = world.provider.get_tracer("app")

    def work(name: str) -> None:
        with tracer.start_as_current_span(name):
            for _ in range(20):
                engine.call("g.outer", (5,))

    threads = [threading.Thread(target=work, args=(f"app{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    traces: dict[int, list[str]] = {}
    for span in world.spans:
        assert span.context is not None
        traces.setdefault(span.context.trace_id, []).append(span.name)
    assert sorted(len(names) for names in traces.values()) == [81] * 4
    assert world.tracing._open == {}


def test_spans_and_records_agree(world: World) -> None:
    """The same numbers, the same code, the same digest."""
    tracing, audit = Tracing(world.provider, content=True), MemoryAudit()
    with Engine(toolsets=[tools()], plugins="none", hooks=[tracing], audit=audit) as engine:
        engine.call("g.outer", (5,))

    for span, record in zip(world.spans, audit.records, strict=True):
        attributes = dict(span.attributes or {})
        assert attributes["neuroscript.call"] == record.call
        assert attributes["neuroscript.tool.fingerprint"] == record.about.fingerprint
        assert attributes["neuroscript.argument.digest"] == record.digest.hex()
        assert attributes["neuroscript.depth"] == record.depth


def test_an_abandoned_call_ends_its_span_with_the_engine(world: World) -> None:
    """Its later end does not create another one."""
    inside, free = threading.Event(), threading.Event()
    made = Toolset("g")

    def wait(rt: Runtime) -> None:
        inside.set()
        free.wait(30)

    made.add(ToolSpec("wait", "g", return_type=ArgType.NIL), wait)
    engine = Engine(toolsets=[made], plugins="none", hooks=[world.tracing])
    caller = threading.Thread(target=engine.execute, args=(ToolCall("g.wait", ()),))
    caller.start()
    assert inside.wait(30)

    engine.close(grace=0)
    free.set()
    caller.join()

    assert [dict(span.attributes or {}).get("neuroscript.unfinished") for span in world.spans] == [True]
