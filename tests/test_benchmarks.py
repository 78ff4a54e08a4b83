"""The benchmarks themselves: the harness measures known ratios, goals are unchanged, and every call is correct."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks import __main__ as command
from tests.benchmarks import awaited, cases, discovery, exporting, harness, instructions, promises, startup
from tests.benchmarks.__main__ import Row
from tests.benchmarks.cases import COMPARISONS, Case, Comparison
from tests.benchmarks.harness import Seconds, Statement

from neuroscript import ArgumentError, Engine

GOALS = {
    "W1": 0.65,
    "W2": 0.90,
    "W3": 0.88,
    "W1 named": 0.45,
    "W1 coerced": 1.15,
    "W3 coerced": 1.9,
    "100,000 ints": 1.9,
    "1,000 declared maps": 1.5,
    "100 nested orders": 2.5,
    "1,000 maps": 4.0,
    "1,000 mixed numbers": 6.0,
    "error": 2.6,
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(toolsets=[cases.toolset(), promises.toolset()], policy=cases.POLICY)


def work() -> int:
    return sum(range(200))


async def awaited_work() -> int:
    return work()


@pytest.mark.alone
@pytest.mark.parametrize(
    ("measure", "call"),
    [
        pytest.param(lambda statements: harness.fastest(statements, patience=50, most=150), "f()", id="called"),
        pytest.param(lambda statements: awaited.fastest(statements, rounds=80), "await f()", id="awaited"),
    ],
)
def test_twice_the_work_takes_twice_the_time(
    measure: Callable[[Mapping[str, Statement]], Mapping[str, Seconds]], call: str
) -> None:
    """The minimum times of a statement and of the same statement twice have the known ratio."""
    names = {"f": awaited_work if "await" in call else work}

    least = measure({"once": Statement(call, names), "twice": Statement(f"{call}\n{call}", names)})

    assert harness.ratio(least["twice"], least["once"]) == pytest.approx(2, abs=0.5)


class Lazy:
    """Is slow at its first call, like a tool that is compiled then."""

    def __init__(self, first: int) -> None:
        self.size = first

    def __call__(self) -> int:
        size, self.size = self.size, 10
        return sum(range(size))


@pytest.mark.alone
def test_slow_first_execution_does_not_count() -> None:
    """Code that is compiled at its first call is measured after that."""
    statements = {name: Statement("f()", {"f": Lazy(first)}) for name, first in (("slow", 1_000_000), ("quick", 10))}

    least = harness.fastest(statements, patience=50, most=150)

    assert harness.ratio(least["slow"], least["quick"]) == pytest.approx(1, abs=0.4)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param(Seconds(2e-6, 9e-6), Seconds(1e-6, 3e-6), 2.0, id="short, by the wall's clock"),
        pytest.param(Seconds(2e-3, 9e-3), Seconds(1e-6, 3e-3), 3.0, id="long, by the processor's"),
        pytest.param(Seconds(2e-6, 6e-3), Seconds(1e-3, 3e-3), 2.0, id="the other one long"),
    ],
)
def test_ratio_uses_one_clock(ours: Seconds, theirs: Seconds, expected: float) -> None:
    """Executions of a millisecond and more are interrupted, so the process clock measures them."""
    assert harness.ratio(ours, theirs) == pytest.approx(expected)


def test_measurement_restores_the_garbage_collector() -> None:
    """Nothing is collected while statements are timed."""
    with harness.quiet_memory():
        while_measuring = gc.isenabled()

    assert (False, True) == (while_measuring, gc.isenabled())


@pytest.mark.parametrize("were_frozen", [True, False])
def test_measurement_keeps_frozen_objects_frozen(were_frozen: bool) -> None:
    """A worker freezes all imported objects, because each later collection would traverse them."""
    gc.unfreeze()
    if were_frozen:
        gc.freeze()

    with harness.quiet_memory():
        pass

    are_frozen = gc.get_freeze_count() > 0
    gc.freeze()  # as in the test configuration
    assert were_frozen == are_frozen


def test_goals_are_unchanged(engine: Engine) -> None:
    """No goal is missing or relaxed."""
    found = {each.name: each.goal for each in COMPARISONS if each.goal is not None}
    awaited_goals = {case.peer: case.goal for case in cases.against_fastmcp(engine) if case.goal is not None}

    assert found == GOALS
    assert awaited_goals == {"FastMCP Tool.run, async": 1 / 40, "FastMCP Tool.run, sync": 1 / 200}
    assert (startup.CALL_GOAL, startup.LIST_GOAL) == (2.0, 5.0)
    assert [each.goal for each in discovery.FINDINGS if each.goal] == [0.25, 0.05]
    assert discovery.LIST_GOAL == 5.0
    assert (exporting.FIRST_GOAL, exporting.AGAIN_GOAL) == (20.0, 0.05)


def test_registry_benchmark_makes_valid_calls() -> None:
    """Both engines contain the tools that are looked up, and the goal is unchanged."""
    (case,) = cases.registry_cases(many=200)

    for statement in (case.ours, case.theirs):
        assert statement is not None
        exec(statement.code, dict(statement.names))
    assert case.goal == 1.15


def outcome(statement: Statement, error: type[Exception]) -> object:
    """Return the result of a statement; a statement that catches an error is run without that."""
    call = statement.code.partition("except")[0].removeprefix("try:").strip()
    try:
        return eval(call, dict(statement.names))
    except error as refused:
        return refused


@pytest.mark.parametrize("each", COMPARISONS, ids=lambda each: each.name)
def test_each_call_returns_the_expected_result(engine: Engine, each: Comparison) -> None:
    """The engine and its peer do the same work: one result, or a refusal that lists both arguments."""
    result = outcome(cases.ours(engine, each), ArgumentError)

    if each.result is None:
        assert isinstance(result, ArgumentError)
        assert [problem.where for problem in result.problems] == ["a", "b"]
    else:
        assert (each.result, int) == (result, type(result))


def test_each_peer_returns_the_same(engine: Engine) -> None:
    """Without pydantic there is nothing to compare."""
    found = cases.against_pydantic(engine)
    expected: list[Any] = [each.result for each in COMPARISONS]
    if found[0].theirs is None:
        assert [case.theirs for case in found] == [None for _ in COMPARISONS]
        return

    results = [outcome(case.theirs, Exception) for case in found if case.theirs is not None]

    assert expected == [None if isinstance(result, Exception) else result for result in results]


def test_each_internal_case_runs(engine: Engine) -> None:
    """Every case that is compared with a bare call or with W1 adds two and three."""
    results = {case.name: eval(case.ours.code, dict(case.ours.names)) for case in cases.own_cases(engine)}

    assert {5} == {getattr(result, "value", result) for result in results.values()}


def test_refused_call_is_caught_in_the_statement(engine: Engine) -> None:
    """Error cases time the refusal and its handling, and read the message if they say so."""
    error, read = (cases.ours(engine, each).code for each in COMPARISONS if each.result is None)

    assert error == "try:\n    engine.call('bench.two', ('x', [],))\nexcept Wrong as wrong:\n    pass"
    assert read == error.replace("pass", "str(wrong)")


def test_all_features_stay_enabled(engine: Engine) -> None:
    """The measured engine keeps every promise that costs time."""
    assert [] == promises.unkept(engine)


class Careless:
    """An engine that only calls functions."""

    def __init__(self, engine: Engine) -> None:
        self.tools = engine.tools
        self.variables = self

    def get_var(self, name: str) -> None:
        return None

    def call(self, name: str, args: tuple[Any, ...]) -> Any:
        return self.tools[name].func(self, *args)


def test_engine_without_checks_is_detected(engine: Engine) -> None:
    """Each promise can be broken, and its check notices."""
    careless: Any = Careless(engine)

    assert list(promises.PROMISES) == promises.unkept(careless)


@pytest.mark.parametrize(
    ("ratio", "goal", "expected"),
    [
        pytest.param(0.5, 0.5, "ok", id="met"),
        pytest.param(0.51, 0.5, "MISSED", id="missed"),
        pytest.param(0.51, None, "", id="no goal"),
        pytest.param(None, 0.5, "skipped: acme is not installed", id="no peer"),
    ],
)
def test_row_says_whether_its_goal_is_met(ratio: float | None, goal: float | None, expected: str) -> None:
    """A goal is the maximum of a ratio."""
    row = Row("calls", "W1", "acme", ratio=ratio, goal=goal, missing="acme is not installed")

    assert expected == row.verdict


def test_report_is_a_table_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """One missed goal makes the exit code 1, on the version with goals; a small ratio is shown as a fraction."""
    rows = [
        Row("calls", "W1", "acme", 210.0, 400.0, 0.525, 0.65),
        Row("calls", "W2", "acme", 400.0, 500.0, 0.8, 0.75),
        Row("awaited", "W1", "far", 210.0, 21_000.0, 0.01, 1 / 40),
        Row("calls", "W3", "gone", goal=0.88, missing="gone is not installed"),
    ]

    code = command.report(rows, 3.2, (3, 11))

    assert code == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "case         compared with  ours ns  peer ns  ratio  goal",
        "calls: W1    acme               210      400   0.53  0.65  ok",
        "calls: W2    acme               400      500   0.80  0.75  MISSED",
        "awaited: W1  far                210   21,000  1/100  1/40  ok",
        "calls: W3    gone                                    0.88  skipped: gone is not installed",
        "",
        "4 cases, 1 goals missed, 3 s",
    ]
    assert command.report(rows[:1], 3.2, (3, 11)) == 0
    assert command.report(rows, 3.2, (3, 12)) == 0


@pytest.mark.alone
def test_globs_select_cases_and_json_contains_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = command.main(["stages of W1: func*", "--quick", "--json", str(tmp_path / "table.json")])

    (row,) = json.loads((tmp_path / "table.json").read_text())["rows"]
    assert (0, "func(rt, 2, 3)", "") == (code, row["name"], row["verdict"])
    assert 0.5 < row["ratio"] < 3.0
    assert "stages of W1: func(rt, 2, 3)" in capsys.readouterr().out


def test_case_without_its_peer_is_skipped() -> None:
    """The row names the missing package, and nothing is measured."""
    case = Case("calls", "W1", "acme tool", Statement("1", {}), None, 0.5)

    (row,) = command.rows_of([case], lambda statements: {})

    assert row.verdict == "skipped: acme is not installed"


def test_startup_time_excludes_the_bare_interpreter() -> None:
    """It is subtracted from the call and its peer; without a command line that row is skipped."""
    least = {"bare": Seconds(0.02, 0.01), "imports": Seconds(0.05, 0.03), "one call": Seconds(0.06, 0.04)}

    call, listed = command.startup_rows(least)

    assert call.ratio == pytest.approx(1.5)
    assert listed.verdict == "skipped: the process does not end well"


def test_processes_are_measured() -> None:
    """A successful process has two times, and an import takes more than none."""
    least = startup.fastest(rounds=1)

    assert {"bare", "imports", "one call"} <= set(least)
    assert 0 < least["bare"].process < least["one call"].process


@pytest.mark.alone
@pytest.mark.slow
def test_discovery_is_faster_than_the_library(tmp_path: Path) -> None:
    """There are 300 distributions, with and without a cache; listing 20 toolsets imports none of them."""
    site = discovery.site(tmp_path)
    least = discovery.fastest(site, [each for each in discovery.FINDINGS if each.goal], rounds=3)
    for module in site.folder.glob("*_module.py"):
        module.write_text("raise SystemExit(9)\n")
    words = [sys.executable, "-m", "neuroscript", "list", "acme*"]
    done = subprocess.run(words, env=site.environment, cwd=startup.ROOT, capture_output=True, text=True)
    ours, bare = discovery.listed(site, rounds=3)

    for each in discovery.FINDINGS:
        if each.goal is not None:
            assert harness.ratio(least[each], least[each.peer]) <= each.goal, each.name
    assert (done.returncode, len(done.stdout.splitlines())) == (0, discovery.OFFERING * discovery.TOOLS)
    assert harness.ratio(ours, bare) <= discovery.LIST_GOAL


def test_schemas_are_written_once_for_each_spec() -> None:
    """The second time is a lookup; both times are far enough below their goals for any machine."""
    rows = command.schema_rows(exporting.fastest(rounds=3))

    assert [row.verdict for row in rows] == ["ok", "ok"]


@pytest.mark.parametrize("api", exporting.WRITERS)
def test_model_tools_are_written_once_for_each_spec(api: str) -> None:
    """Half of those for OpenAI use strict mode; all times are far enough below their goals for any machine."""
    rows = command.export_rows(api, exporting.fastest(3, exporting.WRITERS[api]))

    assert [row.verdict for row in rows] == ["ok", "ok"]


def test_every_counted_case_has_a_goal_on_the_gated_version() -> None:
    """The instruction gate judges every case that it counts."""
    assert set(instructions.statements()) - {instructions.BARE} == set(instructions.GOALS[3, 11])
    assert set(GOALS) <= set(instructions.GOALS[3, 11])


def test_slope_excludes_work_between_two_forks() -> None:
    """The example has two thousand calls of 700 instructions, in a process that does 20 more between two children."""
    children = "11 W1\n12 W1\n13 W1\n"
    log = "==11== I   refs:      1,350,000\n==12== I refs: 2,750,020\n==13== I   refs:  1,350,040\n==10== I refs: 9\n"

    assert {"W1": 700.0} == instructions.slopes(children, log)


def test_instruction_counts_are_skipped_without_valgrind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is one line, and the exit code is 0."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert instructions.main() == 0
    assert capsys.readouterr().out == "skipped: valgrind is not installed\n"


def test_performance_page_lists_each_goal() -> None:
    """The page and the code contain the same goals."""
    page = (startup.ROOT / "docs" / "explanation" / "performance.md").read_text()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    reported = sorted((row[0], row[2]) for row in cells if len(row) == 4 and row[0] != "case")
    (registry,) = cases.registry_cases(many=10)
    expected = [
        *GOALS.items(),
        ("look-up among 100,000", registry.goal),
        ("W1", 1 / 40),
        ("W1", 1 / 200),
        ("one call", startup.CALL_GOAL),
        ("neuroscript list", startup.LIST_GOAL),
        *((each.name, each.goal) for each in discovery.FINDINGS if each.goal is not None),
        ("list of 20 toolsets", discovery.LIST_GOAL),
        ("1,000 tools", exporting.FIRST_GOAL),
        ("1,000 tools again", exporting.AGAIN_GOAL),
        *((f"1,000 tools for {api}", exporting.FIRST_GOAL) for api in exporting.WRITERS),
        *((f"1,000 tools for {api} again", exporting.AGAIN_GOAL) for api in exporting.WRITERS),
    ]

    assert reported == sorted((name, command.as_ratio(goal)) for name, goal in expected)
