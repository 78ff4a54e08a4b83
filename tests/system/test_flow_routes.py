"""The same data flow on every route: text of a web page is sent, directly, through the Runtime, or through a plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from tests.flow.mail_tools import ASK, REFUSE, engine_with, run

from neuroscript import ApprovalRequest, CallError, Engine, FlowRule, Host, MemoryAudit
from neuroscript.workflow import Plan, plan_from_data
from neuroscript.workflow import run as run_plan
from neuroscript.workflow.durable import run_durably

Route = Callable[[Engine, Path], object]
"""Lets ``t.send`` send what ``t.page`` or ``t.pages`` returns."""

RELAYED: Final[dict[str, Any]] = {"tool": "t.relay", "inputs": {"tool": "t.page", "args": []}}
"""A node that declares no labels, so that only the run can tell what its result carries."""


def send(engine: Engine, body: object) -> None:
    run(engine, "send", "ada@home.example", body)


def directly(engine: Engine, folder: Path) -> None:
    send(engine, run(engine, "page").value)


def nested(engine: Engine, folder: Path) -> None:
    run(engine, "read_and_send", "t.page", "ada@home.example")


def from_a_variable(engine: Engine, folder: Path) -> None:
    run(engine, "keep", "text", "t.page")
    send(engine, run(engine, "recall", "text").value)


def from_a_handle(engine: Engine, folder: Path) -> None:
    handle = run(engine, "shelve", "t.page").value
    send(engine, run(engine, "unshelve", handle).value)


def from_a_file(engine: Engine, folder: Path) -> None:
    run(engine, "save", "page.txt", "t.page")
    send(engine, run(engine, "load", "page.txt").value)


def from_a_stream(engine: Engine, folder: Path) -> None:
    send(engine, " ".join(engine.stream("t.pages")))


def plan_of(nodes: dict[str, Any]) -> Plan:
    return plan_from_data({"nodes": nodes})


REFERENCE: Final = plan_of(
    {"page": RELAYED, "send": {"tool": "t.send", "inputs": {"to": "ada@home.example", "body": "Look: ${page}"}}}
)
ITEMS: Final = plan_of(
    {
        "page": {"tool": "t.relay", "inputs": {"tool": "t.pages", "args": []}},
        "send": {"tool": "t.send", "map": "${page}", "inputs": {"to": "ada@home.example", "body": "${item}"}},
    }
)
TRACE: Final = plan_of(
    {
        "page": RELAYED,
        "send": {
            "tool": "t.send",
            "depends_on": ["page"],
            "inputs": {"to": "ada@home.example", "body": "${trace[0].result}"},
        },
    }
)


def by_reference(engine: Engine, folder: Path) -> None:
    run_plan(engine, REFERENCE)


def by_items_of_a_map(engine: Engine, folder: Path) -> None:
    run_plan(engine, ITEMS)


def by_the_trace(engine: Engine, folder: Path) -> None:
    run_plan(engine, TRACE)


def in_a_durable_run(engine: Engine, folder: Path) -> None:
    run_durably(engine, REFERENCE, url=f"sqlite:///{folder}/runs.sqlite")


def after_a_plan(engine: Engine, folder: Path) -> None:
    trace = run_plan(engine, plan_of({"page": RELAYED}))
    send(engine, trace.output)


ROUTES: Final[tuple[Route, ...]] = (
    directly,
    nested,
    from_a_variable,
    from_a_handle,
    from_a_file,
    from_a_stream,
    by_reference,
    by_items_of_a_map,
    by_the_trace,
    in_a_durable_run,
    after_a_plan,
)


def taken(route: Route, folder: Path, rule: FlowRule) -> tuple[set[Any], set[str]]:
    """Return what the audit log records of ``t.send``, and the sentences that approvers received."""
    audit, asked = MemoryAudit(), list[ApprovalRequest]()
    host = Host(sandbox_dir=folder)
    with engine_with(rule, audit=audit, host=host, answers=asked) as engine, suppress(CallError):
        route(engine, folder)
    records = {(each.kind, each.code, each.labels) for each in audit.records if each.tool == "t.send"}
    return records, {re.sub(r" \(call [0-9]+\)", "", flow) for request in asked for flow in request.flows}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
def test_every_route_has_the_same_labels_and_is_refused(route: Route, tmp_path: Path) -> None:
    records, asked = taken(route, tmp_path, REFUSE)

    assert records == {("refused", "policy.flow", ("untrusted",))}
    assert asked == set()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
def test_every_route_asks_with_the_same_sentence(route: Route, tmp_path: Path) -> None:
    records, asked = taken(route, tmp_path, ASK)

    assert records == {("outcome", "ok", ("untrusted",))}
    source = "t.pages" if route in (from_a_stream, by_items_of_a_map) else "t.page"
    assert asked == {f"sends untrusted data from {source} to outside"}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
def test_a_rule_about_other_labels_lets_every_route_pass(route: Route, tmp_path: Path) -> None:
    records, asked = taken(route, tmp_path, FlowRule(["private"], ["outside"], "refuse"))

    assert records == {("outcome", "ok", ("untrusted",))}
    assert asked == set()
