"""A row that another program has changed is one error that names the row, and affects no other run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command
from tests.conftest import ALL
from tests.workflow.durable import steps
from tests.workflow.durable.databases import MakeDatabase
from tests.workflow.durable.planted import given_out, reopen, sql

from neuroscript.errors import SpecError
from neuroscript.workflow.durable import Worker, list_runs, resume, run_durably, show_run
from neuroscript.workflow.durable.database import Database
from neuroscript.workflow.durable.encoding import Unreadable, decode_error, value_of
from neuroscript.workflow.durable.worker_registry import Workers

REMEDY = "restore the row from a backup, or delete it"
DEEP = "[" * 100_000
INFINITY, NAN = float("inf"), float("nan")
LEASE = "lease must be a number of seconds above 0, at most 604800"
PLAN = "plan is not a valid plan"

Case = tuple[str, Any, str]
"""A column, a value for it, and what is wrong with that value."""

RUN_FAULTS: list[Case] = [
    ("plan", "", "plan is not JSON"),
    ("plan", "{", "plan is not JSON"),
    ("plan", DEEP, "plan nests too deeply"),
    ("plan", "[]", PLAN),
    ("plan", "{}", PLAN),
    ("plan", '{"nodes": 1}', PLAN),
    ("plan", '{"nodes": {"a": {"tool": "step.fail"}}}', "its digest does not match its plan"),
    ("digest", "0" * 64, "its digest does not match its plan"),
    ("inputs", "", "inputs is not JSON"),
    ("inputs", DEEP, "inputs nests too deeply"),
    ("inputs", "[]", "inputs is not an object"),
    ("inputs", '{"$time": 1}', "inputs holds a value in an unknown form"),
    ("inputs", '{"other": 1}', "inputs do not match its plan"),
    ("parallel", 0, "parallel must be a positive integer"),
    ("parallel", -(2**31), "parallel must be a positive integer"),
    ("status", "lost", "status must be 'running', 'succeeded', 'failed' or 'cancelled'"),
    ("error", "{}", "error must be an object with a message"),
    ("error", DEEP, "error must be an object with a message"),
    ("started", -1.0, "started must be a time in seconds since 1970"),
    ("started", 1e300, "started must be a time in seconds since 1970"),
    ("started", INFINITY, "started must be a time in seconds since 1970"),
    ("ended", -INFINITY, "ended must be a time in seconds since 1970, or None"),
    ("seen", INFINITY, "seen must be a time in seconds since 1970"),
    ("lease", 1e300, LEASE),
    ("lease", -1.0, LEASE),
    ("lease", 0.0, LEASE),
    ("lease", INFINITY, LEASE),
]

CALL_FAULTS: list[Case] = [
    ("node", "other", "its id does not match its run, node, item and number"),
    ("item", -1, "item must be a non-negative integer, or None"),
    ("item", 3, "its id does not match its run, node, item and number"),
    ("number", 0, "number must be a positive integer"),
    ("number", 2, "its id does not match its run, node, item and number"),
    ("tool", "", "tool must be a non-empty string"),
    ("timeout", -1.0, "timeout must be a positive, finite number of seconds, or None"),
    ("timeout", INFINITY, "timeout must be a positive, finite number of seconds, or None"),
    ("patience", -1.0, "patience must be a non-negative number of seconds"),
    ("patience", INFINITY, "patience must be a non-negative number of seconds"),
    ("takes", -1, "takes must be a non-negative integer"),
    ("begun", INFINITY, "begun must be a time in seconds since 1970, or None"),
    ("ended", -1.0, "ended must be a time in seconds since 1970, or None"),
    ("code", None, "it must have all of ended, code and outcome, or none of them"),
    ("outcome", None, "it must have all of ended, code and outcome, or none of them"),
]

OUTCOME_FAULTS: list[Case] = [
    ("outcome", "", "outcome is not JSON"),
    ("outcome", DEEP, "outcome nests too deeply"),
    ("outcome", "[]", "outcome does not match its code"),
    ("outcome", "{}", "outcome does not match its code"),
    ("outcome", '{"result": 1}', "outcome holds neither a value nor an error"),
    ("outcome", '{"value": {"$bytes": 1}}', "outcome holds a value in an unknown form"),
    ("outcome", '{"value": {"$what": 1}}', "outcome holds a value in an unknown form"),
    ("outcome", '{"error": {"kind": "CallError"}}', "outcome does not match its code"),
    ("code", "tool.failed", "outcome does not match its code"),
]


def title(case: Case) -> str:
    """Return the id of a test case."""
    return f"{case[0]}={str(case[1])[:20]}"


def last_of_each_column(*cases: Case) -> list[Case]:
    """Return the last case of each column; in the full run, all.

    What a database returns for a column is checked by the same code, so PostgreSQL needs no more.
    """
    return [*cases] if ALL else [*{case[0]: case for case in cases}.values()]


Break = Callable[[str, str, Case], str]
"""Returns the address of a new database, by its name, with two runs, the first with a changed row of a table."""


@pytest.fixture(scope="module")
def broken(make_database: MakeDatabase, tmp_path_factory: pytest.TempPathFactory) -> Break:
    """Change a row in each of the databases."""
    return breaker(make_database, "two_runs", tmp_path_factory.mktemp("broken"))


@pytest.fixture(scope="module")
def broken_sqlite(make_sqlite: MakeDatabase, tmp_path_factory: pytest.TempPathFactory) -> Break:
    """Change a row in SQLite."""
    return breaker(make_sqlite, "two_sqlite_runs", tmp_path_factory.mktemp("broken"))


def breaker(make_database: MakeDatabase, original: str, folder: Path) -> Break:
    """Make both runs once; each test has a copy of their database."""
    url = make_database(original)
    with steps.engine(folder / "marks") as engine:
        for run in ("it", "other"):
            run_durably(engine, steps.wide(1, 0.0), url=url, run_id=run)

    def changed(name: str, table: str, case: Case) -> str:
        url = make_database(f"{original}_{name}", original)
        id = "it" if table == "runs" else "it.w0"
        sql(url, f"UPDATE neuroscript_{table} SET {case[0]} = :value WHERE id = :id", value=case[1], id=id)
        return url

    return changed


def where(table: str) -> str:
    """Return how an error names the row."""
    return f"neuroscript_{table} row {'it' if table == 'runs' else 'it.w0'}"


@pytest.mark.parametrize("case", last_of_each_column(*RUN_FAULTS), ids=title)
def test_changed_run_is_one_error_that_names_its_row(broken: Break, tmp_path: Path, case: Case) -> None:
    """For `resume` and the command; the other run is listed and can be resumed."""
    check_changed_run(broken, tmp_path, case)


@pytest.mark.parametrize("case", RUN_FAULTS, ids=title)
def test_each_change_of_a_run_is_one_error(broken_sqlite: Break, tmp_path: Path, case: Case) -> None:
    """With every value, in SQLite."""
    check_changed_run(broken_sqlite, tmp_path, case)


def check_changed_run(broken: Break, tmp_path: Path, case: Case) -> None:
    """Check all that the test above states."""
    url = broken(f"run{RUN_FAULTS.index(case)}", "runs", case)
    with steps.engine(tmp_path / "marks") as engine:
        with pytest.raises(SpecError) as caught:
            resume(engine, url, "it")
            show_run(url, "it")
        assert "succeeded" == resume(engine, url, "other").status

    assert str(caught.value) == f"{where('runs')}: {case[2]}; {REMEDY}"
    statuses = {run.id: run.status for run in list_runs(url)}
    assert {"it", "other"} == statuses.keys()
    assert statuses["other"] == "succeeded"
    made: Any = lambda **settings: steps.engine(tmp_path / "marks")  # noqa: E731
    if case[0] != "error":
        resumed = command("runs", "resume", url, "it", make_engine=made)
        assert CommandResult(2, "", f"neuroscript: {where('runs')}: {case[2]}; {REMEDY}\n") == resumed


@pytest.mark.parametrize("case", last_of_each_column(*CALL_FAULTS, *OUTCOME_FAULTS), ids=title)
def test_changed_call_is_one_error_that_names_its_row(broken: Break, tmp_path: Path, case: Case) -> None:
    """The other run can be resumed."""
    check_changed_call(broken, tmp_path, case)


@pytest.mark.parametrize("case", CALL_FAULTS + OUTCOME_FAULTS, ids=title)
def test_each_change_of_a_call_is_one_error(broken_sqlite: Break, tmp_path: Path, case: Case) -> None:
    """With every value, in SQLite."""
    check_changed_call(broken_sqlite, tmp_path, case)


def check_changed_call(broken: Break, tmp_path: Path, case: Case) -> None:
    """Check all that the test above states."""
    url = broken(f"call{(CALL_FAULTS + OUTCOME_FAULTS).index(case)}", "calls", case)
    with steps.engine(tmp_path / "marks") as engine:
        with pytest.raises(SpecError) as caught:
            resume(engine, url, "it")
        assert "succeeded" == resume(engine, url, "other").status

    assert str(caught.value) == f"{where('calls')}: {case[2]}; {REMEDY}"
    if case in CALL_FAULTS:
        shown = command("runs", "show", url, "it")
        assert CommandResult(2, "", f"neuroscript: {where('calls')}: {case[2]}; {REMEDY}\n") == shown


ARGUMENT_FAULTS: dict[str, tuple[str, str]] = {
    "empty": ("", "arguments is not JSON"),
    "list": ("[]", "arguments is not an object"),
    "numbers as keys": ('{"$pairs": [[1, 2]]}', "arguments is not an object"),
    "array": ('{"name": {"$array": []}}', "arguments holds a value in an unknown form"),
    "deep": (DEEP, "arguments nests too deeply"),
}


NOT_BEGUN_OR_BEGUN = pytest.mark.parametrize("begun", [None, 1.0], ids=["not begun", "begun"])


@NOT_BEGUN_OR_BEGUN
def test_worker_ends_a_call_whose_arguments_cannot_be_read(
    make_database: MakeDatabase, tmp_path: Path, begun: float | None
) -> None:
    """Without making it; the other calls are made."""
    check_unreadable_arguments(make_database, tmp_path, "deep", begun)


@NOT_BEGUN_OR_BEGUN
@pytest.mark.parametrize("fault", ["empty", "list", "numbers as keys", "array"])
def test_worker_ends_a_call_with_any_other_arguments(
    make_sqlite: MakeDatabase, tmp_path: Path, fault: str, begun: float | None
) -> None:
    """Whatever is wrong with them."""
    check_unreadable_arguments(make_sqlite, tmp_path, fault, begun)


def check_unreadable_arguments(make_database: MakeDatabase, tmp_path: Path, fault: str, begun: float | None) -> None:
    """Check all that the test above states."""
    arguments, why = ARGUMENT_FAULTS[fault]
    url = make_database(f"arguments{len(arguments)}{why[10:14]}{begun}")
    with steps.engine(tmp_path / "marks") as engine:
        run_durably(engine, steps.wide(1, 0.0), url=url, run_id="it")
        reopen(url)
        given_out(url, arguments, begun)
        with Worker(engine, url) as worker:
            trace = resume(engine, url, "it", local_calls=False)
            assert "succeeded" == run_durably(engine, steps.wide(1, 0.0), url=url, local_calls=False).status
            assert not worker.is_lost

    error = trace.nodes[0].error
    assert error is not None
    text = f"its data cannot be used: neuroscript_calls row it.w0: {why}; {REMEDY}"
    code, text = (
        ("plan.invalid_row", f"has not begun, because {text}")
        if begun is None
        else ("plan.in_doubt", f"was under way when its process died, and may have run; {text}")
    )
    assert (code, "never", f"step.once: {text}") == (error["code"], error["retry"], error["message"])
    assert 2 == sum(steps.Marks(tmp_path / "marks").of("begin").values())


@pytest.mark.parametrize("lease", [INFINITY, 1e300, -1.0])
def test_infinite_lease_is_ignored(make_database: MakeDatabase, tmp_path: Path, lease: float) -> None:
    """A worker with one is considered dead, and a run with one is not driven."""
    url = make_database(f"lease{lease}")
    with steps.engine(tmp_path / "marks") as engine:
        run_durably(engine, steps.wide(1, 0.0), url=url, run_id="it")
    sql(
        url,
        "UPDATE neuroscript_runs SET status = 'running', ended = NULL, leader = 'gone', lease = :lease",
        lease=lease,
    )
    database = Database(url)
    workers = Workers(database)
    workers.join("gone", lease)
    workers.join("here", 15.0)

    assert {"here"} == workers.alive()
    database.close()
    assert ["damaged"] == [run.status for run in list_runs(url)]


@pytest.mark.parametrize("column", ["seen", "lease", "started", "parallel", "plan", "inputs", "status", "digest"])
@pytest.mark.parametrize("value", ["abc", b"\xff\x00"], ids=["text", "bytes"])
def test_other_types_in_sqlite_are_one_error(broken_sqlite: Break, tmp_path: Path, column: str, value: Any) -> None:
    """SQLite stores values of any type in any column."""
    url = broken_sqlite(f"type_{column}_{type(value).__name__}", "runs", (column, value, ""))
    with steps.engine(tmp_path / "marks") as engine, pytest.raises(SpecError) as caught:
        resume(engine, url, "it")

    assert str(caught.value).startswith("neuroscript_runs row it: ")
    assert str(caught.value).endswith(REMEDY)
    expected = "damaged" if isinstance(value, bytes) or column not in ("plan", "inputs", "digest") else "succeeded"
    assert {"it": expected, "other": "succeeded"} == {run.id: run.status for run in list_runs(url)}


def test_invalid_utf_8_in_sqlite_is_one_error(tmp_path: Path) -> None:
    """It is not retried, unlike a locked database."""
    url = f"sqlite:///{tmp_path}/it.sqlite"
    with steps.engine(tmp_path / "marks") as engine:
        run_durably(engine, steps.wide(1, 0.0), url=url, run_id="it")
        sql(url, "UPDATE neuroscript_runs SET inputs = CAST(x'ff' AS TEXT)")
        with pytest.raises(SpecError) as caught:
            resume(engine, url, "it")

    assert str(caught.value) == f"neuroscript_runs row it: inputs must be a string, not bytes; {REMEDY}"


def test_damaged_run_is_listed_with_its_fault(broken: Break) -> None:
    """As text and as JSON."""
    url = broken("listed_damaged", "runs", ("lease", INFINITY, LEASE))
    assert command("runs", "list", url).code == 0
    states = {each["id"]: each for each in json.loads(command("runs", "list", url, "--json").out)}

    assert states["it"] == {
        "id": "it",
        "plan": "",
        "digest": "",
        "status": "damaged",
        "started": 0.0,
        "ended": None,
        "error": f"neuroscript_runs row it: {LEASE}; {REMEDY}",
    }


@pytest.mark.parametrize(
    "text",
    [
        *("", "nul", DEEP, '{"$bytes": 1}', '{"$bytes": "*"}', '{"$bytes": "YQ==", "a": 1}', '{"$tuple": 1}'),
        *('{"$array": []}', '{"$array": ["d", ["x"]]}', '{"$array": ["?", []]}', '{"$array": ["b", [1000]]}'),
        *('{"$pairs": [1]}', '{"$pairs": [[[], 1]]}', '{"$pairs": {"a": 1}}', '{"$time": 1}', '{"$time": "x"}'),
        *('{"$other": 1}', '{"a": 1, "$bytes": "YQ=="}'),
    ],
    ids=lambda text: text[:30],
)
def test_foreign_text_is_unreadable(text: str) -> None:
    """Whatever is wrong with it."""
    with pytest.raises(Unreadable):
        value_of(text)


GOOD = {"text": "a", "tool": "b", "_code": "c.d", "_retry": "never"}


@pytest.mark.parametrize(
    "data",
    [
        *(None, 1, "x", [], {}, {"kind": "CallError"}, {"kind": [], "state": {}}, {"kind": "object", "state": GOOD}),
        *(
            {"kind": "CallError", "state": state}
            for state in (None, [], {}, {**GOOD, "text": 1}, {**GOOD, "_retry": "x"})
        ),
        {"kind": "CallError", "state": {**GOOD, "items": "many"}},
        {"kind": "CallTimeout", "state": {**GOOD, "state": "over", "seconds": 1.0}},
        {"kind": "ToolNotFound", "state": {**GOOD, "near": [1]}},
        {"kind": "ArgumentError", "state": {"tool": "a", "_found": 0, "_problems": [["a"]]}},
        {"kind": "ArgumentError", "state": {"tool": "a", "_found": 0, "_problems": None}},
    ],
    ids=str,
)
def test_foreign_error_is_unreadable(data: Any) -> None:
    """Even if it would fail only when it is used."""
    with pytest.raises(Unreadable) as caught:
        decode_error(data)

    assert str(caught.value) == "holds an error in an unknown form"
