"""Parameters of a wrong type are rejected with an error that says what to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from neuroscript import Engine
from neuroscript.errors import ArgumentError, SpecError
from neuroscript.workflow import arun, check, make_plan, plan_from_data, plan_of_json, plan_of_toml, run
from neuroscript.workflow.durable import Worker, cancel, list_runs, prune, resume, run_durably, show_run

PLAN: Any = plan_from_data({"nodes": {"a": {"tool": "x.y"}}})
SAMPLES: list[Any] = [None, 5, "text", [], {}, {5: 5}, object(), object]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """Return an engine without tools."""
    with Engine(plugins="none") as engine:
        yield engine


class Model:
    """A model that is never asked."""

    def ask(self, turns: Any) -> Any:
        raise AssertionError


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "check session": lambda engine, value: check(value, PLAN),
    "check plan": lambda engine, value: check(engine, value),
    "run session": lambda engine, value: run(value, PLAN),
    "run plan": lambda engine, value: run(engine, value),
    "run parallel": lambda engine, value: run(engine, PLAN, parallel=value),
    "arun session": lambda engine, value: asyncio.run(arun(value, PLAN)),
    "arun plan": lambda engine, value: asyncio.run(arun(engine, value)),
    "planned session": lambda engine, value: make_plan(value, Model(), "goal"),
    "planned llm": lambda engine, value: make_plan(engine, value, "goal"),
    "planned goal": lambda engine, value: make_plan(engine, Model(), [value]),  # type: ignore[arg-type]
    "planned attempts": lambda engine, value: make_plan(engine, Model(), "goal", attempts=[value]),  # type: ignore[arg-type]
    "plan_from_data data": lambda engine, value: plan_from_data(value),
    "plan_of_json text": lambda engine, value: plan_of_json(value),
    "plan_of_toml text": lambda engine, value: plan_of_toml([value]),  # type: ignore[arg-type]
    "run_durably session": lambda engine, value: run_durably(value, PLAN),
    "run_durably plan": lambda engine, value: run_durably(engine, value),
    "run_durably url": lambda engine, value: run_durably(engine, PLAN, None, [value]),  # type: ignore[arg-type]
    "run_durably inputs": lambda engine, value: run_durably(engine, PLAN, [value]),  # type: ignore[arg-type]
    "run_durably run_id": lambda engine, value: run_durably(engine, PLAN, run_id=[value]),  # type: ignore[arg-type]
    "resume session": lambda engine, value: resume(value, "sqlite:////nonexistent/it", "it"),
    "resume url": lambda engine, value: resume(engine, [value], "it"),  # type: ignore[arg-type]
    "resume run": lambda engine, value: resume(engine, "sqlite:////nonexistent/it", [value]),  # type: ignore[arg-type]
    "Worker session": lambda engine, value: Worker(value, "sqlite:////nonexistent/it"),
    "Worker url": lambda engine, value: Worker(engine, [value]),  # type: ignore[arg-type]
    "list_runs url": lambda engine, value: list_runs([value]),  # type: ignore[arg-type]
    "show_run url": lambda engine, value: show_run([value], "it"),  # type: ignore[arg-type]
    "cancel url": lambda engine, value: cancel([value], "it"),  # type: ignore[arg-type]
    "prune url": lambda engine, value: prune([value], timedelta()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: str(value)[:10])
def test_wrong_type_is_always_spec_error(engine: Engine, name: str, value: Any) -> None:
    """For every parameter."""
    with pytest.raises((SpecError, ArgumentError)):
        FUNCTIONS[name](engine, value)


def test_error_says_what_to_pass() -> None:
    """With every invalid parameter."""
    with pytest.raises(SpecError) as caught:
        run_durably(None, {})  # type: ignore[arg-type]

    assert str(caught.value) == (
        "run_durably: session must be a Session, not None; pass an Engine or one of its sessions;"
        " plan must be a Plan, not dict; load_plan, plan_from_data and planned return one"
    )
