"""Labels of durable runs: they survive the process, and a worker in another one applies its rules to them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flow.mail_tools import ADDRESS, PAGE, REFUSE, engine_with
from tests.workflow.durable.databases import MakeDatabase
from tests.workflow.durable.planted import reopen, sql

from neuroscript import FlowRule, SpecError
from neuroscript.flow.labels import MAX_SOURCES, Labels, Source
from neuroscript.workflow import Plan, Trace, plan_from_data, run
from neuroscript.workflow.durable import Worker, resume, run_durably
from neuroscript.workflow.durable.encoding import Unreadable, text_of, value_of
from neuroscript.workflow.durable.labels import (
    labelled_inputs,
    labelled_inputs_text,
    labelled_text,
    labelled_value,
)
from neuroscript.workflow.plan.flows import PlanLabels

NOTHING: Final = FlowRule(["host:none"], ["outside"], "refuse")
BY_SESSION: Final = FlowRule(["untrusted"], ["outside"], "refuse", "session")

PLAN: Final[Plan] = plan_from_data(
    {
        "inputs": {"memo": "string"},
        "nodes": {
            "page": {"tool": "t.relay", "inputs": {"tool": "t.page", "args": []}},
            "broken": {"tool": "t.relay", "inputs": {"tool": "t.broken", "args": []}, "on_fail": "continue"},
            "both": {"tool": "t.upper", "inputs": {"text": "${page} ${input.memo}"}},
            "items": {"tool": "t.upper", "map": ["${page}", "plain"], "inputs": {"text": "${item}"}},
            "plain": {"tool": "t.upper", "inputs": {"text": "plain"}, "depends_on": ["both"]},
            "checked": {"tool": "t.summary", "inputs": {"text": "${both}"}},
            "send": {"tool": "t.send", "inputs": {"to": "ada", "body": "${both}"}, "on_fail": "continue"},
        },
    }
)
MEMO: Final[dict[str, Any]] = {"inputs": {"memo": "m-31"}, "labels": {"memo": ["private:notes"]}}
EXPECTED: Final = {
    "page": ("untrusted",),
    "broken": ("untrusted",),
    "both": ("private:notes", "untrusted"),
    "items": ("untrusted",),
    "checked": ("private:notes",),
    "send": ("private:notes", "untrusted"),
}


def labels(trace: Trace) -> dict[str, tuple[str, ...]]:
    """Return the labels of each node that has some."""
    return {node.name: node.labels for node in trace.nodes if node.labels}


def codes(trace: Trace) -> dict[str, str]:
    """Return the error code of each node that failed."""
    return {node.name: node.error["code"] for node in trace.nodes if node.error is not None}


@contextmanager
def working(url: str, *rules: FlowRule) -> Iterator[None]:
    """Make the calls of a database in another engine."""
    with engine_with(*rules, trusted=True) as engine, Worker(engine, url):
        yield


def test_durable_run_has_the_labels_of_a_plain_one(make_database: MakeDatabase) -> None:
    """Also when it has ended and is read by another engine."""
    url = make_database("labels_labelled")
    with engine_with(REFUSE, trusted=True) as engine:
        plain = run(engine, PLAN, **MEMO)
    with engine_with(REFUSE, trusted=True) as engine:
        durable = run_durably(engine, PLAN, url=url, run_id="it", **MEMO)
        assert engine.labels == ("private:notes", "untrusted")
    with engine_with(REFUSE, trusted=True) as engine:
        again = resume(engine, url, "it")
        assert engine.labels == ("private:notes", "untrusted")

    assert EXPECTED == labels(plain) == labels(durable) == labels(again)
    assert {"broken": "tool.failed", "send": "policy.flow"} == codes(plain) == codes(durable) == codes(again)


def test_worker_of_another_process_applies_its_rules(make_database: MakeDatabase) -> None:
    url = make_database("labels_other_worker")
    with working(url, REFUSE), engine_with(NOTHING, trusted=True) as engine:
        trace = run_durably(engine, PLAN, url=url, local_calls=False, **MEMO)

    assert labels(trace) == EXPECTED
    assert codes(trace) == {"broken": "tool.failed", "send": "policy.flow"}
    error = trace["send"].error
    assert error is not None
    assert error["message"] == (
        "t.send: would send untrusted data from t.page to outside, which the host does not allow"
    )


def test_worker_without_rules_makes_no_labelled_call(make_sqlite: MakeDatabase) -> None:
    """It could not follow the labels."""
    url, plan = make_sqlite("labels_no_rules"), plan_from_data({"nodes": {"page": {"tool": "t.page"}}})
    with working(url), engine_with(NOTHING) as engine:
        trace = run_durably(engine, plan, url=url, local_calls=False)
    with working(url), engine_with() as engine:
        unlabelled = run_durably(engine, plan, url=url, local_calls=False)

    error = trace["page"].error
    assert error is not None
    assert (error["code"], error["message"]) == (
        "policy.flow",
        "t.page: was not made, because the run has rules about information flow, and this worker has none",
    )
    assert unlabelled.status == "succeeded"


def test_resumed_run_has_the_labels_of_its_inputs(make_database: MakeDatabase) -> None:
    """Another process repeats every call, because none was queued before."""
    url = make_database("labels_resumed")
    with engine_with(REFUSE, trusted=True) as engine:
        run_durably(engine, PLAN, url=url, run_id="it", **MEMO)
    reopen(url)
    with engine_with(REFUSE, trusted=True) as engine:
        assert labels(resume(engine, url, "it")) == EXPECTED


@pytest.mark.parametrize(
    ("rule", "body"), [(REFUSE, f"write to {ADDRESS}"), (BY_SESSION, "anything")], ids=["values", "session"]
)
def test_other_workers_know_what_the_session_had_read(make_sqlite: MakeDatabase, rule: FlowRule, body: str) -> None:
    """Also the worker of a process that resumes the run."""
    plan = plan_from_data(
        {
            "inputs": {"body": "string"},
            "nodes": {
                "send": {"tool": "t.send", "inputs": {"to": "ada", "body": body}, "on_fail": "continue"},
                "other": {"tool": "t.send", "inputs": {"to": "ada", "body": "${input.body}"}, "on_fail": "continue"},
            },
        }
    )
    expected = {"send": "policy.flow"} if rule is REFUSE else {"send": "policy.flow", "other": "policy.flow"}
    url = make_sqlite(f"labels_had_read_{rule.by}")
    allowing = FlowRule(["untrusted"], ["outside"], "allow", rule.by)
    with working(url, rule), engine_with(allowing) as engine:
        assert engine.call("t.page") == PAGE
        inputs = {"body": ADDRESS}  # the user's own words
        trace = run_durably(engine, plan, inputs, url=url, run_id="it", local_calls=False)
    reopen(url)
    with working(url, rule), engine_with(allowing) as engine:
        resumed = resume(engine, url, "it", local_calls=False)

    assert expected == codes(trace) == codes(resumed)


def test_results_of_a_run_without_rules_carry_what_their_tools_declare(make_sqlite: MakeDatabase) -> None:
    """If a session with rules continues the run."""
    url = make_sqlite("labels_without_rules")
    plan = plan_from_data(
        {"nodes": {"page": {"tool": "t.page"}, "up": {"tool": "t.upper", "inputs": {"text": "${page}"}}}}
    )
    with engine_with() as engine:
        assert labels(run_durably(engine, plan, url=url, run_id="it")) == {}
    with engine_with(NOTHING) as engine:
        assert labels(resume(engine, url, "it")) == {"page": ("untrusted",), "up": ("untrusted",)}
    with engine_with() as engine:
        assert labels(resume(engine, url, "it")) == {}


def test_session_without_rules_reads_a_labelled_run(make_sqlite: MakeDatabase) -> None:
    url = make_sqlite("labels_without_rules_later")
    with engine_with(NOTHING, trusted=True) as engine:
        run_durably(engine, PLAN, url=url, run_id="it", **MEMO)
    with engine_with(trusted=True) as engine:
        trace = resume(engine, url, "it")

    assert (trace["page"].result, labels(trace)) == (PAGE, {})


def test_many_runs_share_a_worker_without_sharing_labels(make_sqlite: MakeDatabase) -> None:
    """The session of a worker has not read what it returns to a run."""
    url = make_sqlite("labels_many")
    page = plan_from_data({"nodes": {"page": {"tool": "t.page"}}})
    send = plan_from_data({"nodes": {"send": {"tool": "t.send", "inputs": {"to": ADDRESS}}}})
    with working(url, REFUSE, BY_SESSION), ThreadPoolExecutor() as threads:
        found = []
        for plan in (page, send):
            with engine_with(NOTHING) as engine:
                found.append(threads.submit(run_durably, engine, plan, url=url, local_calls=False).result())

    assert [trace.status for trace in found] == ["succeeded", "succeeded"]


# The rows

LABEL_FAULTS: Final = {
    "no pair": "[]",
    "null": '[null, {"a": 1}]',
    "list": '[[], {"a": 1}]',
    "unknown label": '[{"secret": ["t.page"]}, {"a": 1}]',
    "no label": '[{"A b:c": ["t.page"]}, {"a": 1}]',
    "no origins": '[{"untrusted": []}, {"a": 1}]',
    "origins": '[{"untrusted": "t.page"}, {"a": 1}]',
    "number": '[{"untrusted": [1]}, {"a": 1}]',
    "many": '[{"untrusted": [' + ", ".join(['"a"'] * (MAX_SOURCES + 1)) + ']}, {"a": 1}]',
}


@pytest.mark.parametrize("text", LABEL_FAULTS.values(), ids=LABEL_FAULTS)
def test_foreign_labels_are_unreadable(text: str) -> None:
    with pytest.raises(Unreadable, match=r"^holds labels in an unknown form$"):
        labelled_value(f'{{"$labelled": {text}}}')


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"inputs": {}, "nodes": {}}',
        '{"inputs": {"other": {}}, "nodes": {}, "session": {}}',
        '{"inputs": {}, "nodes": {"other": {}}, "session": {}}',
        '{"inputs": {}, "nodes": [], "session": {}}',
        '{"inputs": {"memo": {"secret": ["x"]}}, "nodes": {}, "session": {}}',
        '{"inputs": {}, "nodes": {}, "session": 1}',
    ],
)
def test_foreign_labels_of_a_plan_are_unreadable(text: str) -> None:
    with pytest.raises(Unreadable, match=r"^holds labels in an unknown form$"):
        labelled_inputs(f'{{"$labelled": [{text}, {{}}]}}', PLAN)


def test_changed_labels_are_one_error_that_names_the_row(make_database: MakeDatabase) -> None:
    """For the run and its calls; a call that has not begun is not made."""
    remedy = "restore the row from a backup, or delete it"
    first = make_database("labels_changed")
    with engine_with(NOTHING, trusted=True) as engine:
        run_durably(engine, PLAN, url=first, run_id="it", **MEMO)
    for table, column, id, what in (
        ("runs", "inputs", "it", "neuroscript_runs row it: inputs holds labels in an unknown form"),
        ("calls", "outcome", "it.page", "neuroscript_calls row it.page: outcome holds labels in an unknown form"),
    ):
        url = make_database(f"labels_changed_{table}", "labels_changed")
        text = '{"$labelled": [{"secret": ["x"]}, {"value": 1}]}'
        sql(url, f"UPDATE neuroscript_{table} SET {column} = :text WHERE id = :id", text=text, id=id)
        with engine_with(NOTHING, trusted=True) as engine, pytest.raises(SpecError) as caught:
            resume(engine, url, "it")
        assert str(caught.value) == f"{what}; {remedy}"


def test_origins_from_a_row_are_escaped() -> None:
    _, found = labelled_value('{"$labelled": [{"untrusted": ["a\\u001b[31m"]}, 1]}')

    assert found == {"untrusted": (Source("a\\x1b[31m", 0),)}


def test_versions_without_labels_reject_labelled_rows() -> None:
    """They read rows with `value_of`."""
    for value in ({}, {"text": "a"}, 1):
        with pytest.raises(Unreadable):
            value_of(labelled_text(value, {}))


NAMES: Final = st.sampled_from(["untrusted", "private", "private:mail", "crm:x"])
SOURCES: Final = st.lists(st.sampled_from(["t.page", "t.mail", "input.x"]), min_size=1, max_size=3, unique=True)
LABELS: Final = st.dictionaries(NAMES, SOURCES.map(lambda tools: tuple(Source(tool, 0) for tool in tools)))
VALUES: Final = st.dictionaries(st.text(), st.none() | st.integers() | st.text())


@given(VALUES, st.none() | LABELS)
def test_labels_are_restored_with_their_value(value: dict[str, Any], found: Labels | None) -> None:
    assert labelled_value(labelled_text(value, found)) == (value, found)


@given(VALUES, LABELS, LABELS, LABELS)
def test_labels_of_a_plan_are_restored(value: Any, memo: Labels, page: Labels, session: Labels) -> None:
    start = PlanLabels({"memo": memo}, {"page": page}, session)

    assert labelled_inputs(labelled_inputs_text(value, start), PLAN) == (value, start)
    assert labelled_inputs(text_of(value), PLAN) == (value, None)


def test_numbers_of_calls_are_not_stored() -> None:
    """They are those of another process."""
    found = {"untrusted": (Source("t.page", 3), Source("t.page", 7))}

    assert labelled_value(labelled_text(1, found)) == (1, {"untrusted": (Source("t.page", 0),)})


def test_unknown_input_is_a_problem(make_sqlite: MakeDatabase) -> None:
    with engine_with(NOTHING, trusted=True) as engine, pytest.raises(SpecError) as caught:
        run_durably(engine, PLAN, {"memo": "x"}, make_sqlite("labels_unknown_input"), labels={"mem": ["untrusted"]})

    assert caught.value.problems == ("labels.mem: the plan has no input mem",)
