"""The benchmark cases as data: tools, calls of them, and goals.

Every goal is a ratio, for Python 3.11, between a call through a plain `Engine` and the same work through a peer. All
features are enabled: the tools take ``rt``, so each call creates and revokes a Runtime; `promises` proves the rest.
"""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import attrs

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    FileAudit,
    FlowLabels,
    Limits,
    MemoryAudit,
    Runtime,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)

from .harness import Statement

INT, FLOAT, STRING, BOOL = ArgType.INT, ArgType.FLOAT, ArgType.STRING, ArgType.BOOL
PAIR: Final = (ArgSpec("a", INT), ArgSpec("b", INT))

LINE: Final = (
    ArgSpec("sku", STRING),
    ArgSpec("count", INT),
    ArgSpec("price", STRING, format="decimal", cls=Decimal),
)
ORDER: Final = (
    ArgSpec("id", INT),
    ArgSpec("day", STRING, format="date", cls=datetime.date),
    ArgSpec("lines", ArgType.SLICE_MAP, keys=LINE),
)
ROW: Final = (ArgSpec("id", INT), ArgSpec("name", STRING), ArgSpec("weight", FLOAT), ArgSpec("active", BOOL))


def two(rt: Runtime, a: int, b: int) -> int:
    return a + b


def tags(rt: Runtime, text: str, tags: list[str]) -> int:
    return len(tags)


def eight(rt: Runtime, a: int, b: float, c: str, d: bool, e: int, f: float, g: str, h: bool) -> int:
    return a


def length(rt: Runtime, items: list[Any]) -> int:
    return len(items)


def nested(rt: Runtime, a: int, b: int) -> Any:
    return rt.call_tool("bench.two", (a, b))


async def awaited(rt: Runtime, a: int, b: int) -> int:
    return a + b


def without_runtime(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def two_awaited(a: int, b: int) -> int:
    """Add two numbers, for a peer."""
    return a + b


def needs(rt: Runtime, path: str) -> int:
    return len(path)


def total(rt: Runtime, *numbers: int) -> int:
    return sum(numbers)


def toolset() -> Toolset:
    """Return the measured tools."""
    tools = Toolset("bench")

    def add(name: str, args: Sequence[ArgSpec], func: Any, needs: Sequence[str] = (), **further: Any) -> None:
        spec = ToolSpec(name, "bench", tuple(args), return_type=further.pop("result", INT), **further)
        tools.add(spec, func, ToolPolicy(capabilities=tuple(needs)))

    add("two", PAIR, two)
    add("default", (PAIR[0], ArgSpec("b", INT, default=3)), two)
    add("tags", (ArgSpec("text", STRING), ArgSpec("tags", ArgType.SLICE_STRING)), tags)
    kinds = (INT, FLOAT, STRING, BOOL) * 2
    add("eight", [ArgSpec(name, kind) for name, kind in zip("abcdefgh", kinds, strict=True)], eight)
    add("integers", (ArgSpec("items", ArgType.SLICE_INT),), length)
    add("strings", (ArgSpec("items", ArgType.SLICE_STRING),), length)
    add("maps", (ArgSpec("items", ArgType.SLICE_MAP),), length)
    add("rows", (ArgSpec("items", ArgType.SLICE_MAP, keys=ROW),), length)
    add("orders", (ArgSpec("items", ArgType.SLICE_MAP, keys=ORDER),), length)
    add("nested", PAIR, nested)
    add("needs", (ArgSpec("path", STRING),), needs, needs=["fs:read:{path}"])
    add("any_result", PAIR, two, result=ArgType.ANY)
    add("awaited", PAIR, awaited)
    add("total", (ArgSpec("numbers", INT),), total, variadic=True)
    tools.tool()(without_runtime)
    return tools


POLICY: Final = ExecutionPolicy(grants=["fs:read:d/**"])
"""The permissions of the measured tools; one of them has a need."""

GOALS_FOR: Final = (3, 11)
"""The version of Python to which the goals apply."""


@attrs.frozen
class Comparison:
    """One call, through the engine and through pydantic's `validate_call` of the same function.

    Attributes:
        name: Its name in the table.
        tool: The tool, and the function of `peers`.
        given: The arguments, positional or named.
        result: The result of both; None if both refuse the call.
        goal: The maximum ratio of our time to the peer's; None if it is only reported.
        read: Whether the message of the refusal is read.
    """

    name: str
    tool: str
    given: tuple[Any, ...] | dict[str, Any]
    result: int | None
    goal: float | None = None
    read: bool = False


HUNDRED_THOUSAND: Final = list(range(100_000))
ROWS: Final = [{"id": index, "name": f"row {index}", "weight": index / 4, "active": True} for index in range(1_000)]
ORDERS: Final = [
    {
        "id": index,
        "day": "2026-11-23",
        "lines": [{"sku": f"item {line}", "count": line, "price": f"{line}.50"} for line in range(5)],
    }
    for index in range(100)
]
STRINGS: Final = [f"text {index}" for index in range(1_000)]
MIXED: Final[list[Any]] = [(index, str(index), float(index))[index % 3] for index in range(1_000)]

EIGHT: Final = (7, 0.5, "a word", True, 42, 2.25, "another", False)
EIGHT_OTHERWISE: Final = ("7", "0.5", "a word", "true", 42.0, 2, "another", 0)
"""The same values in other spellings; a string has none."""

COMPARISONS: Final = (
    Comparison("W1", "two", (2, 3), 5, 0.65),
    Comparison("W2", "tags", ("a word", ["red", "green", "blue"]), 3, 0.90),
    Comparison("W3", "eight", EIGHT, 7, 0.88),
    Comparison("W1 named", "two", {"a": 2, "b": 3}, 5, 0.45),
    Comparison("W1 coerced", "two", ("2", 3.0), 5, 1.15),
    Comparison("W3 coerced", "eight", EIGHT_OTHERWISE, 7, 1.9),
    Comparison("100,000 ints", "integers", (HUNDRED_THOUSAND,), 100_000, 1.9),
    Comparison("1,000 declared maps", "rows", (ROWS,), 1_000, 1.5),
    Comparison("error", "two", ("x", []), None, 2.6),
    Comparison("error, text read", "two", ("x", []), None, read=True),
    Comparison("default omitted", "default", (2,), 5),
    Comparison("default omitted, named", "default", {"a": 2}, 5),
    Comparison("nested call", "nested", (2, 3), 5),
    Comparison("100 nested orders", "orders", (ORDERS,), 100, 2.5),
    Comparison("1,000 strings", "strings", (STRINGS,), 1_000),
    Comparison("1,000 maps", "maps", (ROWS,), 1_000, 4.0),
    Comparison("1,000 mixed numbers", "integers", (MIXED,), 1_000, 6.0),
)


@attrs.frozen
class Case:
    """Two statements whose times are compared.

    Attributes:
        group: Its part of the table.
        name: Its name in the table.
        peer: What it is compared with.
        ours: The measured statement.
        theirs: The statement that it is compared with; None if the peer is not installed.
        goal: The maximum ratio of the two; None if it is only reported.
    """

    group: str
    name: str
    peer: str
    ours: Statement
    theirs: Statement | None
    goal: float | None = None


def against_pydantic(engine: Engine) -> list[Case]:
    """Return the cases of `COMPARISONS`."""
    return [
        Case("calls", each.name, "pydantic validate_call", ours(engine, each), _pydantic(each), each.goal)
        for each in COMPARISONS
    ]


def ours(engine: Engine, each: Comparison) -> Statement:
    """Return the statement that makes a call through *engine*."""
    names: dict[str, Any] = {"engine": engine, "Wrong": ArgumentError}
    method = "call_named" if isinstance(each.given, dict) else "call"
    return Statement(_caught(each, f"engine.{method}('bench.{each.tool}', {_written(each.given, names)})"), names)


def _pydantic(each: Comparison) -> Statement | None:
    if find_spec("pydantic") is None or find_spec("typing_extensions") is None:
        return None
    from .peers import GUARDED, WRONG

    names: dict[str, Any] = {"guarded": GUARDED[each.tool], "Wrong": WRONG}
    return Statement(_caught(each, f"guarded({_words(each.given, names)})"), names)


def _words(given: tuple[Any, ...] | dict[str, Any], names: dict[str, Any]) -> str:
    if isinstance(given, dict):
        return ", ".join(f"{name}={_written(value, names)}" for name, value in given.items())
    return ", ".join(_written(value, names) for value in given)


def _written(value: Any, names: dict[str, Any]) -> str:
    """Return a value as code, or the name of a variable if that code would be long."""
    if isinstance(value, tuple):
        return f"({', '.join(_written(each, names) for each in value)},)"
    if len(value if isinstance(value, list) else ()) < 100:
        return repr(value)
    names["items"] = value
    return "items"


def _caught(each: Comparison, call: str) -> str:
    if each.result is not None:
        return call
    return f"try:\n    {call}\nexcept Wrong as wrong:\n    {'str(wrong)' if each.read else 'pass'}"


FASTMCP: Final = (
    ("W1", "async", "engine.call('bench.two', (2, 3))", 1 / 40),
    ("W1", "sync", "engine.call('bench.two', (2, 3))", 1 / 200),
    ("W1, acall", "async", "await engine.acall('bench.two', (2, 3))", None),
    ("W1, acall of a coroutine", "async", "await engine.acall('bench.awaited', (2, 3))", None),
)
"""Name, kind of FastMCP's function, our statement, goal. FastMCP calls a sync function on a thread."""


def against_fastmcp(engine: Engine) -> list[Case]:
    """Return the cases of `FASTMCP`: its in-process ``Tool.run``, which is awaited."""
    peers: dict[str, Statement | None] = {"async": None, "sync": None}
    if find_spec("fastmcp") is not None:
        from fastmcp.tools import Tool

        funcs = {"async": two_awaited, "sync": without_runtime}
        tools = {kind: Tool.from_function(func) for kind, func in funcs.items()}
        peers = {kind: Statement("await tool.run({'a': 2, 'b': 3})", {"tool": tool}) for kind, tool in tools.items()}
    return [
        Case("awaited", name, f"FastMCP Tool.run, {kind}", Statement(code, {"engine": engine}), peers[kind], goal)
        for name, kind, code, goal in FASTMCP
    ]


def registry_cases(many: int = 100_000) -> list[Case]:
    """Return the case of an engine with *many* tools: ten calls of W1, each by another name."""
    small, large = engine_of(10, called=1), engine_of(many, called=10)
    code = "for name in names: engine.call(name, (2, 3))"
    return [
        Case(
            "registry",
            f"look-up among {many:,}",
            "among 10",
            Statement(code, {"engine": large, "names": [f"many.t{index * many // 10}" for index in range(10)]}),
            Statement(code, {"engine": small, "names": [f"many.t{index}" for index in range(10)]}),
            1.15,
        )
    ]


def engine_of(count: int, called: int) -> Engine:
    """Return an engine with *count* tools; every *called*-th has been called before."""
    tools = Toolset("many")
    for index in range(count):
        tools.add(ToolSpec(f"t{index}", "many", PAIR, return_type=INT), two)
    engine = Engine(toolsets=[tools], plugins="none")
    for index in range(0, count, called):
        engine.call(f"many.t{index}", (2, 3))
    return engine


class Observer:
    """A hook that is notified of every call, and does nothing."""

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        """Do nothing."""


LIMITS: Final = ExecutionPolicy(limits=Limits(calls=10**15))

FLOW_RULES: Final = ExecutionPolicy(flow="untrusted-text", labels=[FlowLabels("bench.*", sources=[], sinks=[])])
"""The measured tools read nothing from outsiders, so no call carries a label."""

DUMPS: Final = 8
"""The maximum ratio of a call with an audit log of JSON lines to ``json.dumps`` of one record."""


def watched_cases(log: Path) -> list[Case]:
    """Return the cases of W1 with limits, an observer and audits; an audit log of JSON lines is written to *log*."""
    audited = engine_with(policy=LIMITS, hooks=[Observer()], audit=MemoryAudit())
    observed = engine_with(policy=LIMITS, hooks=[Observer()])
    limited, ring = engine_with(policy=LIMITS), engine_with(audit=MemoryAudit())
    found = [
        ("limits", limited, None),
        ("the memory audit", ring, None),
        ("limits and an observer", observed, 2.0),
        ("limits, an observer and the memory audit", audited, 4.0),
    ]
    pydantic = _pydantic(COMPARISONS[0])
    code = "engine.call('bench.two', (2, 3))"
    cases = [Case("watched", name, "validate_call", Statement(code, {"engine": engine}), pydantic, goal)
             for name, engine, goal in found]  # fmt: skip
    plain, lines = engine_with(), engine_with(audit=FileAudit(log, key=bytes(32)))
    lines.call("bench.two", (2, 3))
    record = json.loads(log.read_bytes().splitlines()[-1])
    names = {"engine": plain, "dumps": json.dumps, "record": record}
    peer = Statement(f"{code}\n{chr(10).join(['dumps(record)'] * DUMPS)}", names)
    ours = Statement(code, {"engine": lines})
    ruled = Statement(code, {"engine": engine_with(policy=FLOW_RULES)})
    cases.append(Case("watched", "flow rules, no labels", "W1", ruled, Statement(code, {"engine": plain}), 1.6))
    return [*cases, Case("watched", "an audit log of JSON lines", f"W1 and {DUMPS} x json.dumps", ours, peer, 1.0)]


def engine_with(**options: Any) -> Engine:
    """Return an engine with the measured tools and these options."""
    return Engine(toolsets=[toolset()], plugins="none", **options)


def many_patterns(count: int) -> ExecutionPolicy:
    """Return a policy of *count* patterns and as many grants, the last of which permits all measured tools."""
    others = [f"group{index}.tool*" for index in range(count - 1)]
    grants = [f"fs:read:folder{index}/**" for index in range(count - 1)]
    return ExecutionPolicy(allow=[*others, "bench.*"], deny=others, grants=grants)


STAGES: Final = {
    "bare call": "plain(2, 3)",
    "func(rt, 2, 3)": "func(rt, 2, 3)",
    "compiled function": "compiled((2, 3))",
    "engine.call": "engine.call('bench.two', (2, 3))",
}
"""The layers of W1 from the inside out; each is compared with the bare call."""

PRICES: Final = {
    "without rt": "engine.call('bench.without_runtime', (2, 3))",
    "a list of arguments": "engine.call('bench.two', [2, 3])",
    "another spelling": "engine.call('tool.Bench.Two', (2, 3))",
    "result of type any": "engine.call('bench.any_result', (2, 3))",
    "a need with an argument": "engine.call('bench.needs', ('d/abc',))",
    "variadic": "engine.call('bench.total', (2, 3))",
    "execute, a repair": "engine.execute(repaired_call)",
}
"""Optional features of tools and calls; each is compared with ``engine.call`` of W1."""


ENTRIES: Final[Mapping[str, tuple[str, str, float | None]]] = {
    "execute": ("engine.execute(call)", "call_named", 5.0),
    "execute, JSON text": ("engine.execute(json_call)", "call_named", 12.0),
    "execute, a dict as the call": ("engine.execute(dict_call)", "call_named", None),
    "a timeout": ("engine.call('bench.two', (2, 3), 60)", "hand-off", 2.5),
}
"""The other ways to call W1: the code, what it is compared with, and the goal."""

PEERS: Final = {"call_named": "engine.call_named('bench.two', {'a': 2, 'b': 3})", "hand-off": "hand_off()"}


class HandOff:
    """Passes a lock to a thread through a queue, and waits until the thread has released it."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[threading.Lock] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._queue.get().release()

    def __call__(self) -> None:
        lock = threading.Lock()
        lock.acquire()
        self._queue.put(lock)
        lock.acquire(timeout=60)


def own_cases(engine: Engine) -> list[Case]:
    """Return the cases that compare the engine with a bare call, and with itself."""
    names: Mapping[str, Any] = {
        "engine": engine,
        "plain": without_runtime,
        "func": two,
        "rt": object(),
        "compiled": engine._entry("bench.two").function(False),
        "call": ToolCall("bench__two", {"a": 2, "b": 3}),
        "json_call": ToolCall("bench__two", '{"a": 2, "b": 3}'),
        "dict_call": {"name": "bench__two", "arguments": {"a": 2, "b": 3}},
        "repaired_call": ToolCall("bench__two", {"a": "2", "b": 3}),
        "hand_off": HandOff(),
    }
    bare, call = (Statement(STAGES[name], names) for name in ("bare call", "engine.call"))
    stages = [
        Case("stages of W1", name, "bare call", Statement(code, names), bare)
        for name, code in STAGES.items()
        if name != "bare call"
    ]
    prices = [Case("prices", name, "W1", Statement(code, names), call) for name, code in PRICES.items()]
    entries = [
        Case("entries", name, peer, Statement(code, names), Statement(PEERS[peer], names), goal)
        for name, (code, peer, goal) in ENTRIES.items()
    ]
    return stages + prices + entries
