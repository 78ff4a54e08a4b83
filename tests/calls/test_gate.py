"""The records of each call, from the compiled pipeline and from the stepwise pipeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    FileAudit,
    Host,
    LimitError,
    Limits,
    MemoryAudit,
    PolicyError,
    ReturnError,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    Toolset,
    ToolSpec,
)

INT, STRING = ArgType.INT, ArgType.STRING


class Kept:
    """A sink that stores every record."""

    def __init__(self, *, intents: bool = True) -> None:
        self.records: list[CallRecord] = []
        self.intents = intents
        self.is_closed = False

    def write(self, record: CallRecord) -> None:
        """Store the record."""
        self.records.append(record)

    def close(self) -> None:
        """Record that it was closed."""
        self.is_closed = True

    def told(self) -> list[tuple[str, str, str]]:
        """Return the kind, tool and code of each record."""
        return [(each.kind, each.tool, each.code) for each in self.records]


def add(rt: Runtime, a: int, b: int) -> int:
    return a + b


def outer(rt: Runtime, a: int) -> Any:
    return rt.call_tool("g.add", (a, "1"))


def text(rt: Runtime, text: str, items: list[int], data: dict[str, Any] | None) -> str:
    return text * 3


def fail(rt: Runtime) -> None:
    raise OSError("a hidden detail")


def wrong(rt: Runtime) -> Any:
    return "no int"


def stream(rt: Runtime, count: int) -> Iterator[int]:
    yield from range(count)


def reads(rt: Runtime, path: str) -> str:
    return rt.fs.read_text(path)


async def awaited(rt: Runtime, a: int) -> int:
    await asyncio.sleep(0)
    return a


def write(rt: Runtime, path: str) -> str:
    return path


PAIR = (ArgSpec("a", INT), ArgSpec("b", INT))


def tools(timeout: float | None = None) -> Toolset:
    """Return tools of each kind; with a *timeout* their pipeline is not compiled."""
    found = Toolset("g")

    def put(name: str, func: Any, *args: ArgSpec, result: ArgType = INT, **policy: Any) -> None:
        stream = policy.pop("stream", False)
        spec = ToolSpec(name, "g", args, return_type=result, stream=stream)
        found.add(spec, func, ToolPolicy(timeout=timeout, **policy))

    put("add", add, *PAIR)
    put("outer", outer, PAIR[0], result=ArgType.ANY)
    put("text", text, ArgSpec("text", STRING), ArgSpec("items", ArgType.SLICE_INT),
        ArgSpec("data", ArgType.MAP, required=False), result=STRING)  # fmt: skip
    put("fail", fail, result=ArgType.NIL)
    put("wrong", wrong)
    put("stream", stream, ArgSpec("count", INT), stream=True)
    put("reads", reads, ArgSpec("path", STRING), result=STRING, capabilities=("fs:read:{path}",), effects=("reads",))
    put("awaited", awaited, PAIR[0])
    put("write", write, ArgSpec("path", STRING), result=STRING, capabilities=("fs:write:{path}",), effects=("writes",))
    return found


WAYS = {"compiled": None, "steps": 60.0}
"""The compiled and the stepwise pipeline; tools with a timeout use the latter."""

way = pytest.mark.parametrize("timeout", WAYS.values(), ids=WAYS)


def engine_of(timeout: float | None = None, *, intents: bool = False, **options: Any) -> tuple[Engine, Kept]:
    """Return an engine with the tools, and a sink that stores its records."""
    sink = Kept(intents=intents)
    return Engine(toolsets=[tools(timeout)], plugins="none", audit=sink, **options), sink


def raised(run: Any) -> CallError:
    """Return the error that *run* raises."""
    with pytest.raises(CallError) as caught:
        run()
    return caught.value


@way
@pytest.mark.parametrize("intents", [False, True])
def test_call_leaves_a_record(timeout: float | None, intents: bool) -> None:
    """It contains the tool, the caller, a digest of the arguments, the repairs and the outcome."""
    engine, sink = engine_of(timeout, intents=intents, host=Host(clock=lambda: 1_000.5))

    assert engine.call("tool.G.Add", (2, "3")) == 5

    record = sink.records[-1]
    assert [each.kind for each in sink.records] == [*["intent"] * intents, "outcome"]
    assert (record.tool, record.about.distribution, record.about.version) == ("g.add", "host", "")
    assert len(record.about.fingerprint) == 64
    assert (record.session, record.call, record.parent, record.depth) == ("engine", 1, 0, 1)
    assert (record.time, record.needs, record.types, record.sizes) == (1_000.5, (), (int, int), (0, 0))
    assert len(record.digest) == 16
    assert [(each.where, each.got, each.became) for each in record.repairs] == [("b", "str", "int")]
    assert (record.code, record.rule, dict(record.spent)) == ("ok", "*", {})
    assert 0 <= record.seconds < 60


@way
@pytest.mark.parametrize("intents", [False, True])
def test_digest_covers_the_exact_values(timeout: float | None, intents: bool) -> None:
    """Two spellings of a value have the same digest; another type or value has a different one."""
    engine, sink = engine_of(timeout, intents=intents)
    same = [("ab", [1], {"x": 1, "y": 2}), ("ab", "[1]", {"y": 2, "x": 1}), ("ab", (1.0,), '{"x": 1, "y": 2}')]
    others = [("ab", [1], None), ("ab", [1], {"x": 1.0, "y": 2}), ("ab", [2], {"x": 1, "y": 2}), ("[1]", [1], {})]
    for args in (*same, *others):
        engine.call("g.text", args)

    digests = [each.digest for each in sink.records if each.kind == "outcome"]
    assert len(set(digests[:3])) == 1
    assert len(set(digests)) == 1 + len(others)
    assert sink.records[-1].types == (str, list, dict)
    assert sink.records[-1].sizes == (3, 1, 0)


@way
@pytest.mark.parametrize("intents", [False, True])
def test_nested_call_refers_to_its_outer_call(timeout: float | None, intents: bool) -> None:
    """It gives the number of the outer call and a depth one greater; the inner call ends first."""
    engine, sink = engine_of(timeout, intents=intents)

    assert engine.call("g.outer", (4,)) == 5

    inner, outer = [each for each in sink.records if each.kind == "outcome"]
    assert (outer.tool, outer.depth, outer.parent) == ("g.outer", 1, 0)
    assert (inner.tool, inner.depth, inner.parent) == ("g.add", 2, outer.call)
    assert inner.call != outer.call
    assert len(inner.repairs) == 1


@way
@pytest.mark.parametrize(
    ("tool", "args", "error", "retry"),
    [
        ("g.fail", (), ToolFailed, "never"),
        ("g.wrong", (), ReturnError, "never"),
        ("g.reads", ("missing.txt",), ToolFailed, "model"),
    ],
)
@pytest.mark.parametrize("intents", [False, True])
def test_failure_is_an_outcome(
    timeout: float | None, tool: str, args: Any, error: Any, retry: str, intents: bool
) -> None:
    """The record contains the code of the error and no part of its message."""
    engine, sink = engine_of(timeout, intents=intents, policy=ExecutionPolicy(grants=["fs:read:*"]))

    found = raised(lambda: engine.call(tool, args))

    assert (type(found), found.retry) == (error, retry)
    assert [each.code for each in sink.records if each.kind == "outcome"] == [found.code]
    assert "hidden" not in repr(sink.records)


REFUSED: dict[str, tuple[Any, type[CallError], str, str, bool]] = {
    "no such tool": (("g.nothing", ()), ToolNotFound, "not_found", "model", False),
    "arguments": (("g.add", ("x", 1)), ArgumentError, "coercion.format", "model", False),
    "denied": (("g.awaited", (1,)), PolicyError, "policy.denied", "host", True),
    "capability": (("g.reads", ("b.txt",)), PolicyError, "policy.capability", "host", True),
}


@way
@pytest.mark.parametrize("case", REFUSED)
def test_refusal_is_recorded_once(timeout: float | None, case: str) -> None:
    """It contains the code and the rule; refusals by policy are in ``refusals`` even without an audit log."""
    (name, args), kind, code, retry, remembered = REFUSED[case]
    policy = ExecutionPolicy(deny=["g.awaited"], grants=["fs:read:a.txt"])
    engine, sink = engine_of(timeout, policy=policy)
    plain = Engine(toolsets=[tools(timeout)], plugins="none", policy=policy)

    error = raised(lambda: engine.call(name, args))
    again = raised(lambda: plain.call(name, args))

    assert type(error) is type(again) is kind
    assert [each.kind for each in sink.records] == ["refused"]
    assert sink.records[0].code == error.code
    assert code in error.code
    assert error.retry == retry
    assert [each.code for each in plain.refusals] == [code] * remembered
    assert [each.tool for each in plain.refusals] == [name] * remembered


@way
def test_refusal_of_a_nested_call_is_recorded(timeout: float | None) -> None:
    """The outer call ends with the same code."""
    engine, sink = engine_of(timeout, policy=ExecutionPolicy(deny=["g.add"]))

    error = raised(lambda: engine.call("g.outer", (1,)))
    assert (error.code, error.retry) == ("policy.denied", "host")

    assert sink.told() == [("refused", "g.add", "policy.denied"), ("outcome", "g.outer", "policy.denied")]
    assert sink.records[0].parent == sink.records[1].call


@way
def test_every_entry_point_leaves_the_same_records(timeout: float | None) -> None:
    """This covers positional and named calls, results and streams, sync and async, and calls of a model."""
    engine, sink = engine_of(timeout, intents=True)

    async def awaited() -> None:
        await engine.acall("g.add", (1, 2))
        await engine.acall_named("g.add", {"a": 1, "b": 2})
        assert [each async for each in engine.astream("g.stream", (2,))] == [0, 1]
        await engine.acall("g.awaited", (1,))

    engine.call("g.add", (1, 2))
    engine.call_named("g.add", {"a": 1, "b": 2})
    engine.execute(ToolCall("g__add", '{"a": 1, "b": 2}'))
    assert list(engine.stream("g.stream", (2,))) == [0, 1]
    assert engine.call("g.stream", (2,)) == [0, 1]
    engine.call("g.awaited", (1,))
    asyncio.run(awaited())

    names = ["add", "add", "add", "stream", "stream", "awaited", "add", "add", "stream", "awaited"]
    assert sink.told() == [
        (kind, f"g.{name}", code) for name in names for kind, code in (("intent", ""), ("outcome", "ok"))
    ]


def test_unfinished_stream_is_recorded_as_closed() -> None:
    """Its reader closed it, which is neither a failure nor an interrupt."""
    engine, sink = engine_of()

    reader = engine.stream("g.stream", (5,))
    next(reader)
    reader.close()  # type: ignore[attr-defined]

    assert sink.told() == [("outcome", "g.stream", "stream.closed")]


@way
def test_usage_of_a_call_is_recorded(timeout: float | None, tmp_path: Any) -> None:
    """The bytes that it reads are counted with and without a limit."""
    (tmp_path / "a.txt").write_text("four")
    policy = ExecutionPolicy(grants=["fs:read:*"], limits=Limits(fs_bytes=6))
    engine, sink = engine_of(timeout, policy=policy, host=Host(sandbox_dir=tmp_path))

    assert engine.call("g.reads", ("a.txt",)) == "four"
    error = raised(lambda: engine.call("g.reads", ("a.txt",)))
    assert (error.code, error.retry) == ("limit.fs_bytes", "host")

    assert [each.code for each in sink.records] == ["ok", "limit.fs_bytes"]
    assert sink.records[0].spent == {"fs_bytes": 4}
    assert sink.records[0].needs == ("fs:read:a.txt",)


class Broken(Kept):
    """A sink that cannot store records."""

    def write(self, record: CallRecord) -> None:
        """Fail as if the disk were full."""
        super().write(record)
        raise OSError("no space")


@way
@pytest.mark.parametrize(
    ("required", "refused"), [("effects", {"g.write"}), ("all", {"g.write", "g.add"}), ("none", set())]
)
def test_call_whose_record_cannot_be_stored_is_refused(timeout: float | None, required: Any, refused: set[str]) -> None:
    """By default this applies to tools with effects; other calls continue and are counted."""
    sink, grants = Broken(), ExecutionPolicy(grants=["fs:write:*"])
    engine = Engine(toolsets=[tools(timeout)], plugins="none", policy=grants, audit=sink, audit_required=required)

    for name, args in (("g.write", ("a",)), ("g.add", (1, 2))):
        if name in refused:
            error = raised(lambda name=name, args=args: engine.call(name, args))
            assert (error.code, error.retry) == ("audit.unavailable", "host")
        else:
            engine.call(name, args)

    assert sink.records


def test_closing_an_engine_closes_its_sinks_once() -> None:
    engine, sink = engine_of()
    engine.close()
    engine.close()

    assert sink.is_closed


@way
def test_result_size_is_limited(timeout: float | None) -> None:
    """It is the bytes of strings plus 8 for each value; a stream counts as a whole."""
    engine, _ = engine_of(timeout, policy=ExecutionPolicy(limits=Limits(result_bytes=32)))

    assert engine.call("g.text", ("x" * 8, [], None)) == "x" * 24
    error = raised(lambda: engine.call("g.text", ("x" * 9, [], None)))
    assert (error.code, error.retry) == ("limit.result_bytes", "host")
    assert list(engine.stream("g.stream", (4,))) == [0, 1, 2, 3]
    error = raised(lambda: list(engine.stream("g.stream", (5,))))
    assert (error.code, error.retry) == ("limit.result_bytes", "host")


def test_outermost_call_has_a_time_limit() -> None:
    """Nested calls share it, and the timeout of a tool cannot extend it."""

    def slow(rt: Runtime) -> None:
        time.sleep(0.3)

    late = Toolset("late")
    late.add(ToolSpec("slow", "late", return_type=ArgType.NIL), slow)
    engine = Engine(toolsets=[late], plugins="none", policy=ExecutionPolicy(limits=Limits(seconds=0.05)))

    error = raised(lambda: engine.call("late.slow"))
    assert (error.code, error.retry) == ("call.timeout", "later")


@way
def test_session_ledger_is_below_the_ledger_of_the_engine(timeout: float | None) -> None:
    """The limits of both apply, and usage counts in both."""
    engine, _ = engine_of(timeout, policy=ExecutionPolicy(limits=Limits(calls=5)))
    first = engine.session(policy=engine.policy.narrowed(limits=Limits(calls=2)))
    second = engine.session()

    def used(session: Any) -> int:
        for count in range(100):
            try:
                session.call("g.add", (1, 2))
            except LimitError as error:
                assert (error.code, error.retry) == ("limit.calls", "host")
                return count
        return 100

    assert used(first) == 2
    assert used(second) == 3
    assert used(engine) == 0


@way
def test_session_can_only_narrow_the_policy_of_the_engine(timeout: float | None) -> None:
    """A broader policy has no effect."""
    engine, _ = engine_of(timeout, policy=ExecutionPolicy(deny=["g.add"], grants=["fs:read:a"]))
    wide = engine.session(policy=ExecutionPolicy(grants=["*:*:*"], trusted=True))
    narrow = engine.session(policy=engine.policy.narrowed(grants=()))

    error = raised(lambda: wide.call("g.add", (1, 2)))
    assert (error.code, error.retry) == ("policy.denied", "host")
    error = raised(lambda: wide.call("g.reads", ("b",)))
    assert (error.code, error.retry) == ("policy.capability", "host")
    error = raised(lambda: narrow.call("g.reads", ("a",)))
    assert (error.code, error.retry) == ("policy.capability", "host")
    assert "g.add" not in wide.infos


def test_digests_with_a_key_can_be_compared_across_runs(tmp_path: Any) -> None:
    """Digests with another key or without a key cannot."""

    def digests(key: bytes | None) -> set[bytes]:
        ring = MemoryAudit()
        with Engine(
            toolsets=[tools()], plugins="none", audit=[FileAudit(tmp_path / repr(key), key=key), ring]
        ) as engine:
            engine.call("g.add", (1, 2))
        return {each.digest for each in ring.records}

    assert len(digests(b"k" * 32) | digests(b"k" * 32)) == 1
    assert len(digests(b"k" * 32) | digests(b"l" * 32)) == 2
    assert len(digests(None) | digests(None)) == 2


def test_refusal_has_a_time() -> None:
    """The host's clock provides it."""
    engine, sink = engine_of(policy=ExecutionPolicy(deny=["g.add"]), host=Host(clock=lambda: 77.0))
    for name, args in (("g.add", (1, 2)), ("g.outer", ("x",)), ("g.nothing", ())):
        raised(lambda name=name, args=args: engine.call(name, args))

    assert [each.time for each in sink.records] == [77.0] * 3
