"""The benchmarks themselves: the harness finds what is known, every goal stands, every call gives what it should."""

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
    "1,000 declared maps": 1.7,
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
    """The least times of a statement, and of the same statement twice, have the ratio that is known beforehand."""
    names = {"f": awaited_work if "await" in call else work}

    least = measure({"once": Statement(call, names), "twice": Statement(f"{call}\n{call}", names)})

    assert harness.ratio(least["twice"], least["once"]) == pytest.approx(2, abs=0.5)


class Lazy:
    """Works at length when it is called for the first time, as a tool that is compiled then."""

    def __init__(self, first: int) -> None:
        self.size = first

    def __call__(self) -> int:
        size, self.size = self.size, 10
        return sum(range(size))


@pytest.mark.alone
def test_a_slow_first_execution_does_not_count() -> None:
    """What is compiled at its first call is measured as what it is from then on."""
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
def test_a_ratio_is_taken_on_one_clock(ours: Seconds, theirs: Seconds, expected: float) -> None:
    """Executions of a millisecond and more are interrupted, and judged by the time of the process."""
    assert harness.ratio(ours, theirs) == pytest.approx(expected)


def test_the_collector_is_as_it_was_after_a_measurement() -> None:
    """While statements are timed nothing is collected; afterwards it is."""
    with harness.quiet_memory():
        while_measuring = gc.isenabled()

    assert (False, True) == (while_measuring, gc.isenabled())


@pytest.mark.parametrize("were_frozen", [True, False])
def test_what_was_kept_out_of_any_collection_stays_out_after_a_measurement(were_frozen: bool) -> None:
    """All that a worker has imported, which each collection of the tests to come would go through; and nothing else."""
    gc.unfreeze()
    if were_frozen:
        gc.freeze()

    with harness.quiet_memory():
        pass

    are_frozen = gc.get_freeze_count() > 0
    gc.freeze()  # as the tests have it
    assert were_frozen == are_frozen


def test_the_goals_are_those_of_the_issue(engine: Engine) -> None:
    """No goal is lost or eased on the way."""
    found = {each.name: each.goal for each in COMPARISONS if each.goal is not None}
    awaited_goals = {case.peer: case.goal for case in cases.against_fastmcp(engine) if case.goal is not None}

    assert found == GOALS
    assert awaited_goals == {"FastMCP Tool.run, async": 1 / 40, "FastMCP Tool.run, sync": 1 / 200}
    assert (startup.CALL_GOAL, startup.LIST_GOAL) == (2.0, 5.0)
    assert [each.goal for each in discovery.FINDINGS if each.goal] == [0.25, 0.05]
    assert discovery.LIST_GOAL == 5.0
    assert (exporting.FIRST_GOAL, exporting.AGAIN_GOAL) == (20.0, 0.05)


def test_the_registry_is_measured_by_calls_that_work() -> None:
    """Both engines have the tools that are looked up; the goal is the issue's."""
    (case,) = cases.registry_cases(many=200)

    for statement in (case.ours, case.theirs):
        assert statement is not None
        exec(statement.code, dict(statement.names))
    assert case.goal == 1.15


def outcome(statement: Statement, error: type[Exception]) -> object:
    """Return what the statement gives; one that catches an error is run without that."""
    call = statement.code.partition("except")[0].removeprefix("try:").strip()
    try:
        return eval(call, dict(statement.names))
    except error as refused:
        return refused


@pytest.mark.parametrize("each", COMPARISONS, ids=lambda each: each.name)
def test_each_call_gives_what_it_should(engine: Engine, each: Comparison) -> None:
    """The engine and its peer do the same work: one result, or a refusal that names both arguments."""
    result = outcome(cases.ours(engine, each), ArgumentError)

    if each.result is None:
        assert isinstance(result, ArgumentError)
        assert [problem.where for problem in result.problems] == ["a", "b"]
    else:
        assert (each.result, int) == (result, type(result))


def test_each_peer_gives_the_same(engine: Engine) -> None:
    """Where pydantic is installed its functions return what ours do; where it is not there is nothing to compare."""
    found = cases.against_pydantic(engine)
    expected: list[Any] = [each.result for each in COMPARISONS]
    if found[0].theirs is None:
        assert [case.theirs for case in found] == [None for _ in COMPARISONS]
        return

    results = [outcome(case.theirs, Exception) for case in found if case.theirs is not None]

    assert expected == [None if isinstance(result, Exception) else result for result in results]


def test_each_of_our_own_cases_runs(engine: Engine) -> None:
    """What is compared with a bare call or with W1 adds two and three, whichever way it takes."""
    results = {case.name: eval(case.ours.code, dict(case.ours.names)) for case in cases.own_cases(engine)}

    assert {5} == {getattr(result, "value", result) for result in results.values()}


def test_a_refused_call_is_caught_in_the_statement(engine: Engine) -> None:
    """The error cases time the refusal and the catching of it, and read its text where they say so."""
    error, read = (cases.ours(engine, each).code for each in COMPARISONS if each.result is None)

    assert error == "try:\n    engine.call('bench.two', ('x', [],))\nexcept Wrong as wrong:\n    pass"
    assert read == error.replace("pass", "str(wrong)")


def test_nothing_is_switched_off(engine: Engine) -> None:
    """The measured engine keeps every promise that it could be quicker without."""
    assert [] == promises.unkept(engine)


class Careless:
    """What an engine would be that only calls functions."""

    def __init__(self, engine: Engine) -> None:
        self.tools = engine.tools
        self.variables = self

    def get_var(self, name: str) -> None:
        return None

    def call(self, name: str, args: tuple[Any, ...]) -> Any:
        return self.tools[name].func(self, *args)


def test_an_engine_that_checks_nothing_is_found_out(engine: Engine) -> None:
    """Every promise can be broken, and is seen to be."""
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
def test_a_row_says_whether_its_goal_is_met(ratio: float | None, goal: float | None, expected: str) -> None:
    """A goal is the most that a ratio may be."""
    row = Row("calls", "W1", "acme", ratio=ratio, goal=goal, missing="acme is not installed")

    assert expected == row.verdict


def test_the_report_is_a_table_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """One missed goal makes the exit code 1, on the version that has goals; a small ratio is written as a fraction."""
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
def test_globs_choose_cases_and_json_holds_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command measures what it is asked for and writes it down."""
    code = command.main(["stages of W1: func*", "--quick", "--json", str(tmp_path / "table.json")])

    (row,) = json.loads((tmp_path / "table.json").read_text())["rows"]
    assert (0, "func(rt, 2, 3)", "") == (code, row["name"], row["verdict"])
    assert 0.5 < row["ratio"] < 3.0
    assert "stages of W1: func(rt, 2, 3)" in capsys.readouterr().out


def test_a_case_without_its_peer_is_skipped() -> None:
    """What is not installed is named, and nothing is measured."""
    case = Case("calls", "W1", "acme tool", Statement("1", {}), None, 0.5)

    (row,) = command.rows_of([case], lambda statements: {})

    assert row.verdict == "skipped: acme is not installed"


def test_start_up_is_less_what_a_bare_interpreter_takes() -> None:
    """A bare interpreter is taken off the call and off its peer; where there is no command line its row is skipped."""
    least = {"bare": Seconds(0.02, 0.01), "imports": Seconds(0.05, 0.03), "one call": Seconds(0.06, 0.04)}

    call, listed = command.startup_rows(least)

    assert call.ratio == pytest.approx(1.5)
    assert listed.verdict == "skipped: the process does not end well"


def test_processes_are_measured() -> None:
    """A process that ends well has its two times; importing takes longer than nothing."""
    least = startup.fastest(rounds=1)

    assert {"bare", "imports", "one call"} <= set(least)
    assert 0 < least["bare"].process < least["one call"].process


@pytest.mark.alone
def test_what_is_installed_is_found_in_a_part_of_the_librarys_time(tmp_path: Path) -> None:
    """Among 300 distributions, cold and from the cache; and 20 toolsets are listed without importing one of them."""
    site = discovery.site(tmp_path)
    least = discovery.fastest(site, [each for each in discovery.FINDINGS if each.goal], rounds=5)
    for module in site.folder.glob("*_module.py"):
        module.write_text("raise SystemExit(9)\n")
    words = [sys.executable, "-m", "neuroscript", "list", "acme*"]
    done = subprocess.run(words, env=site.environment, cwd=startup.ROOT, capture_output=True, text=True)
    ours, bare = discovery.listed(site, rounds=5)

    for each in discovery.FINDINGS:
        if each.goal is not None:
            assert harness.ratio(least[each], least[each.peer]) <= each.goal, each.name
    assert (done.returncode, len(done.stdout.splitlines())) == (0, discovery.OFFERING * discovery.TOOLS)
    assert harness.ratio(ours, bare) <= discovery.LIST_GOAL


def test_schemas_are_written_once_for_each_spec() -> None:
    """The second time is a look-up; both are far enough below their goals to be asked on any machine."""
    rows = command.schema_rows(exporting.fastest(rounds=3))

    assert [row.verdict for row in rows] == ["ok", "ok"]


@pytest.mark.parametrize("api", exporting.WRITERS)
def test_tools_are_written_for_models_once_for_each_spec(api: str) -> None:
    """For OpenAI half of them in strict mode; all times are far enough below their goals to be asked on any machine."""
    rows = command.export_rows(api, exporting.fastest(9, exporting.WRITERS[api]))

    assert [row.verdict for row in rows] == ["ok", "ok"]


def test_every_counted_case_has_a_goal_on_the_version_of_the_gate() -> None:
    """The instruction gate judges every case that it counts."""
    assert set(instructions.statements()) - {instructions.BARE} == set(instructions.GOALS[3, 11])
    assert set(GOALS) <= set(instructions.GOALS[3, 11])


def test_a_slope_is_free_of_what_happens_between_two_forks() -> None:
    """Two thousand calls of 700 instructions, in a process that does 20 more between two children."""
    children = "11 W1\n12 W1\n13 W1\n"
    log = "==11== I   refs:      1,350,000\n==12== I refs: 2,750,020\n==13== I   refs:  1,350,040\n==10== I refs: 9\n"

    assert {"W1": 700.0} == instructions.slopes(children, log)


def test_instructions_are_skipped_where_there_is_no_valgrind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is one line, and the exit code is 0."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert instructions.main() == 0
    assert capsys.readouterr().out == "skipped: valgrind is not installed\n"


def test_the_page_on_performance_gives_each_goal_as_it_is() -> None:
    """Whoever reads the page reads the goals that are held."""
    page = (startup.ROOT / "docs" / "explanation" / "performance.md").read_text()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    told = sorted((row[0], row[2]) for row in cells if len(row) == 4 and row[0] != "case")
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

    assert told == sorted((name, command.as_ratio(goal)) for name, goal in expected)
