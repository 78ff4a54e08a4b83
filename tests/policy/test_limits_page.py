"""Each row of the table of limits in ``docs/reference/limits.md``: what is refused, its code, and who can fix it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from neuroscript import (
    ArgType,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Host,
    Limits,
    Runtime,
    Session,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text()
ROW = re.compile(
    r"^\| `(\w+)` \| .+ \| (session|outermost call|call) \| `([a-z_.]+)` \| (model|later|host) \|$", re.MULTILINE
)
ROWS = ROW.findall(PAGE)

meter = Toolset("meter")


@meter.tool()
def echo(text: str) -> str:
    """Return a string unchanged."""
    return text


@meter.tool(policy=ToolPolicy(capabilities=("fs:read",), effects=("reads",)))
def read(rt: Runtime) -> str:
    """Read ten bytes."""
    return rt.fs.read_text("d/ten")


@meter.tool(policy=ToolPolicy(capabilities=("fs:read",), effects=("reads",)))
def look(rt: Runtime) -> int:
    """Look at one name."""
    return len(rt.fs.list("d"))


@meter.tool()
def spend(rt: Runtime, what: str) -> None:
    """Spend one of something."""
    rt.spend(what, 1)


@meter.tool()
def count(most: int) -> Iterator[int]:
    """Count up."""
    yield from range(most)


@meter.tool()
def twice(rt: Runtime, tool: str, args: list[str]) -> None:
    """Make the same call two times, within one."""
    for _ in range(2):
        rt.call_tool(tool, args)


released = threading.Event()


@meter.tool()
def wait(rt: Runtime) -> None:
    """Wait until the test is over."""
    released.wait()


Call = tuple[str, tuple[Any, ...]]
ECHO: Call = ("meter.echo", ("a",))


def twice_within(tool: str, *args: str) -> Call:
    """Return a call that makes a call two times."""
    return "meter.twice", (f"meter.{tool}", list(args))


CASES: dict[str, tuple[Any, Call, Call]] = {
    "calls": (1, ECHO, ECHO),
    "tool_calls": ({"meter.echo": 1}, ECHO, ECHO),
    "rates": ({"meter.*": "1/day"}, ECHO, ECHO),
    "max_identical_calls": (1, ECHO, ECHO),
    "fs_bytes": (10, ("meter.read", ()), ("meter.read", ())),
    "fs_entries": (1, ("meter.look", ()), ("meter.look", ())),
    "net_bytes": (1, ("meter.spend", ("net_bytes",)), ("meter.spend", ("net_bytes",))),
    "net_calls": (1, ("meter.spend", ("net_calls",)), ("meter.spend", ("net_calls",))),
    "sleep": (1, ("meter.spend", ("sleep",)), ("meter.spend", ("sleep",))),
    "money": ({"EUR": 1}, ("meter.spend", ("EUR",)), ("meter.spend", ("EUR",))),
    "money_per_call": ({"EUR": 1}, ("meter.spend", ("EUR",)), twice_within("spend", "EUR")),
    "seconds": (1.0, ECHO, ("meter.wait", ())),
    "depth": (1, ECHO, twice_within("echo", "a")),
    "result_bytes": (9, ECHO, ("meter.echo", ("ab",))),
    "items": (1, ("meter.count", (1,)), ("meter.count", (2,))),
}
"""For each limit a value, a call that fits into it alone, and one that does not fit behind that one."""


@pytest.fixture
def engine_of(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """An engine with these limits, which must record every call."""
    released.clear()
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "ten").write_text("x" * 10)
    host = Host(sandbox_dir=tmp_path, clock=lambda: 1e9)

    def made(audit: Any = (), **limits: Any) -> Engine:
        policy = ExecutionPolicy(grants=["fs:read:*"], limits=Limits(**limits))
        watched = {"audit": audit, "audit_required": "all"}
        return Engine(toolsets=[meter], plugins="none", host=host, policy=policy, **watched)

    yield made
    released.set()


def refusal(session: Session, call: Call) -> tuple[str, str] | None:
    """Return the code and the retry of a refused call."""
    try:
        session.call(*call)
    except CallError as error:
        return error.code, error.retry
    return None


def test_the_table_lists_each_limit_once() -> None:
    """And no unknown one."""
    names = [name for name, *_ in ROWS]

    assert sorted(names) == sorted(attrs.fields_dict(Limits))
    assert sorted(names) == sorted([*CASES, "concurrency"])


@pytest.mark.parametrize(("limit", "of", "code", "retry"), [row for row in ROWS if row[0] != "concurrency"])
def test_each_limit_refuses_as_documented(
    engine_of: Callable[..., Engine], limit: str, of: str, code: str, retry: str
) -> None:
    """Session limits include child sessions; call limits do not affect the next call."""
    value, fits, exceeds = CASES[limit]
    with engine_of(**{limit: value}) as engine:
        assert refusal(engine, fits) is None
        assert refusal(engine, exceeds) == (code, retry)

        after = refusal(engine.session(), fits)
        assert after == ((code, retry) if of == "session" else None)


def test_concurrency_is_limited_as_documented(engine_of: Callable[..., Engine]) -> None:
    """For all sessions together, until a call has ended."""
    (row,) = (row for row in ROWS if row[0] == "concurrency")
    met: list[Any] = []
    with engine_of(concurrency=1) as engine:
        spec = ToolSpec("call", "inside", return_type=ArgType.NIL)
        engine.register(ToolImplementation(spec, lambda rt: met.append(refusal(engine.session(), ECHO))))

        assert refusal(engine, ("inside.call", ())) is None
        assert refusal(engine, ECHO) is None

    assert row[1:] == ("session", *met[0])


class Failing:
    """A sink that fails to record the start of the first call."""

    def __init__(self) -> None:
        self.has_failed = False

    def write(self, record: CallRecord) -> None:
        """Fail, the first time."""
        if record.kind == "intent" and not self.has_failed:
            self.has_failed = True
            raise OSError("no space")

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("limit", ["calls", "tool_calls", "rates", "max_identical_calls", "concurrency"])
def test_a_call_that_did_not_begin_costs_nothing(engine_of: Callable[..., Engine], limit: str) -> None:
    """With invalid arguments, or with an audit log that cannot record it."""
    value = CASES[limit][0] if limit in CASES else 1
    with engine_of(**{limit: value}, audit=Failing()) as engine:
        assert refusal(engine, ("meter.echo", (5,))) == ("coercion.type", "model")
        assert refusal(engine, ECHO) == ("audit.unavailable", "host")
        assert refusal(engine, ECHO) is None
