"""Amounts that tools spend through their Runtime."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from tests.policy.ledgers import ledger_of, refusal_of

from neuroscript import CallError, Engine, ExecutionPolicy, Host, Runtime, ToolPolicy, Toolset
from neuroscript.calls.steps import CallFrame

meter = Toolset("meter")


@meter.tool()
def spend(rt: Runtime, what: str, amount: float, taken: float = -1) -> None:
    """Spend an amount, and settle it."""
    reserved = rt.spend(what, int(amount) if "_" in what else amount)
    if taken >= 0:
        reserved.settle(taken)


@meter.tool()
def nested(rt: Runtime, what: str, amount: float) -> None:
    """Spend an amount, and call a tool that spends the same amount."""
    rt.spend(what, amount)
    rt.call_tool("meter.spend", [what, amount])


@meter.tool(policy=ToolPolicy(capabilities=("fs:read:**", "fs:write:**"), effects=("reads", "writes")))
def files(rt: Runtime, how: str) -> int:
    """Access files in one of several ways, and return how much was read, written or listed."""
    match how:
        case "read":
            return len(rt.fs.read_bytes("f"))
        case "open":
            with rt.fs.open("f") as file:
                return len(file.read(10))
        case "write":
            rt.fs.write_text("g", "x" * 100)
            return 100
        case "list":
            return len(rt.fs.list("d"))
        case _:
            return len(rt.fs.walk())


retained: list[Runtime] = []


@meter.tool()
def retain(rt: Runtime) -> None:
    """Store a reference to the Runtime, which must not work later."""
    retained.append(rt)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "d").mkdir()
    for each in range(4):
        (tmp_path / "d" / str(each)).write_text("")
    (tmp_path / "f").write_text("x" * 100)
    policy = ExecutionPolicy(grants=["fs:read:**", "fs:write:**"])
    with Engine(toolsets=[meter], plugins="none", policy=policy, host=Host(sandbox_dir=tmp_path)) as engine:
        yield engine


def test_a_tool_spends_through_its_runtime(engine: Engine) -> None:
    """The limits of its session apply, and the error propagates unchanged."""
    engine.ledger = ledger_of(money={"EUR": "0.5"})
    engine.call("meter.spend", ["EUR", 0.4, 0.1])
    engine.call("meter.spend", ["EUR", 0.4])

    assert engine.ledger.spent == {"EUR": Decimal("0.5")}
    assert refusal_of(lambda: engine.call("meter.spend", ["EUR", 0.1])) == (
        "meter.spend: no more than 0.5 EUR are permitted",
        "limit.money",
        "host",
    )


def test_amounts_of_nested_calls_count_for_their_outer_calls(engine: Engine) -> None:
    """Frames with a tally are updated, and the outermost one has the total."""
    session = engine.session()
    session.ledger = ledger_of(sleep=10)
    outer = CallFrame(session, "g.outer", spent={})
    middle = CallFrame(session, "g.middle", 2, outer)
    inner = CallFrame(session, "g.inner", 3, middle, spent={}).started(5.0)

    session._spend(outer, "sleep", 1)
    session._spend(middle, "sleep", 2)
    session._spend(inner, "sleep", "0.5")

    assert (outer.spent, middle.spent, inner.spent) == ({"sleep": Decimal("3.5")}, None, {"sleep": Decimal("0.5")})
    assert session.ledger.spent == {"sleep": Decimal("3.5")}


def test_a_refusal_of_a_nested_call_propagates(engine: Engine) -> None:
    """It names the refused tool."""
    engine.ledger = ledger_of(money={"EUR": 3})

    assert refusal_of(lambda: engine.call("meter.nested", ["EUR", 2])) == (
        "meter.spend: no more than 3 EUR are permitted",
        "limit.money",
        "host",
    )
    assert engine.ledger.spent == {"EUR": 2}


@pytest.mark.parametrize(
    ("how", "spent"),
    [
        ("read", {"fs_bytes": 100, "fs_entries": 0}),
        ("open", {"fs_bytes": 100, "fs_entries": 0}),
        ("write", {"fs_bytes": 100, "fs_entries": 0}),
        ("list", {"fs_bytes": 0, "fs_entries": 4}),
        ("walk", {"fs_bytes": 0, "fs_entries": 6}),
    ],
)
def test_file_operations_are_counted_exactly(engine: Engine, how: str, spent: dict[str, int]) -> None:
    """By bytes and names; a limit that is lower by one refuses them, and a refused write leaves nothing."""
    engine.ledger = ledger_of(fs_bytes=10**9, fs_entries=10**9)
    engine.call("meter.files", [how])
    assert spent == engine.ledger.spent

    engine.ledger = ledger_of(**spent)
    engine.call("meter.files", [how])
    engine.ledger = ledger_of(**{name: max(0, count - 1) for name, count in spent.items()})
    what = max(spent, key=lambda name: spent[name])
    refused = refusal_of(lambda: engine.call("meter.files", [how]))
    assert refused is not None
    assert refused[1] == f"limit.{what}"
    assert refused[0].startswith("meter.files: no more than ")


def test_amounts_are_validated_without_limits(engine: Engine) -> None:
    """So a mistake in a tool shows before a host sets limits."""
    assert engine.ledger is None
    engine.call("meter.spend", ["EUR", 0.4, 0.1])
    assert engine.call("meter.files", ["read"]) == 100

    assert refusal_of(lambda: engine.call("meter.spend", ["eur", 1])) is not None
    assert refusal_of(lambda: engine.call("meter.spend", ["EUR", -1])) == (
        "meter.spend: spend: expected a number of EUR, 0 or more, got float",
        "limit.amount",
        "never",
    )


def test_nothing_is_spent_after_the_call(engine: Engine) -> None:
    """Its Runtime has stopped working."""
    engine.ledger = ledger_of(sleep=1)
    engine.call("meter.retain")

    with pytest.raises(CallError) as caught:
        retained[-1].spend("sleep", 1)
    assert (caught.value.code, caught.value.retry) == ("runtime.closed", "never")
    assert engine.ledger.spent == {"sleep": 0}


@pytest.fixture
def standard() -> Iterator[Engine]:
    with Engine(plugins=["neuroscript-std"]) as engine:
        yield engine


@pytest.mark.alone
def test_a_sleep_is_spent_before_it_begins(standard: Engine) -> None:
    """A sleep that is too long does not begin; upstream lets 10.99 pass a limit of 10."""
    standard.ledger = ledger_of(sleep=10)
    started = time.monotonic()

    assert refusal_of(lambda: standard.call("time.sleep", [10.99])) == (
        "time.sleep: no more than 10 seconds of sleep are permitted",
        "limit.sleep",
        "host",
    )
    assert time.monotonic() - started < 1
    assert standard.ledger.spent == {"sleep": 0}


def test_sleeps_can_use_their_limit_completely(standard: Engine) -> None:
    """Oversleeping of the system is not counted."""
    standard.ledger = ledger_of(sleep="0.03")
    for _ in range(3):
        standard.call("time.sleep", [0.01])

    assert standard.ledger.spent == {"sleep": Decimal("0.03")}
    assert refusal_of(lambda: standard.call("time.sleep", ["0.01"])) is not None


def test_an_interrupted_sleep_costs_its_real_duration(standard: Engine) -> None:
    """The rest of the reserved time is refunded."""
    session = standard.session()
    session.ledger = ledger_of(sleep=4_000)
    failures: list[tuple[str, str]] = []

    def sleep() -> None:
        try:
            session.call("time.sleep", [3_600])
        except CallError as error:
            failures.append((error.code, error.retry))

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    while session.ledger.spent["sleep"] != 3_600:
        time.sleep(0.001)
    session.close()
    sleeper.join()

    assert failures == [("time.cancelled", "later")]
    assert 0 < session.ledger.spent["sleep"] < 60


def test_the_ledger_is_not_imported_without_limits(tmp_path: Path) -> None:
    """Calls and file operations need neither it nor decimals."""
    code = """
import sys
from neuroscript import ArgSpec, Engine, ExecutionPolicy, Host, ToolPolicy, ToolSpec, Toolset
tools = Toolset("g")
policy = ToolPolicy(capabilities=("fs:read:**", "fs:write:**"))
tools.add(ToolSpec("t", "g"), lambda rt: rt.fs.write_text("f", "x") or rt.fs.read_text("f") and rt.fs.list() and None, policy)
host = Host(sandbox_dir=sys.argv[1])
engine = Engine(plugins="none", toolsets=[tools], host=host, policy=ExecutionPolicy(grants=["fs:read:**", "fs:write:**"]))
engine.call("g.t")
print(*sorted({"neuroscript.policy.ledger", "neuroscript.policy.counters", "neuroscript.policy.limits", "decimal"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"
    assert (tmp_path / "f").read_text() == "x"
