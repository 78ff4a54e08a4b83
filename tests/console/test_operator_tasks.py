"""Ten tasks of an operator in the console, with the clicks that they take at most, and the same in MCP Inspector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browsers import PageOpener
from tests.console import inspector_tasks
from tests.console.operator_counts import Operator
from tests.console.operator_tasks import BEGIN, END, PAGE, RESULTS, TASKS, Task, do, sign_in, table
from tests.console.store import Store, opened, save_two_runs

QUICK = ("find", "approve")
"""Tasks that run without the full counts too."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store that has a history, and its console."""
    with opened(tmp_path_factory.mktemp("store")) as store:
        save_two_runs(store)
        yield store


@pytest.mark.parametrize(
    "task",
    [pytest.param(each, id=each.name, marks=[pytest.mark.full] if each.name not in QUICK else []) for each in TASKS],
)
def test_task_takes_few_clicks(store: Store, open_page: PageOpener, task: Task) -> None:
    """As many as documented, or fewer."""
    effort = do(task, store, sign_in(store, open_page))

    assert effort.clicks <= task.max_clicks


@pytest.mark.full
def test_inspector_does_three_tasks(tmp_path: Path, open_page: PageOpener) -> None:
    """The others are not possible, because it has no page for them."""
    efforts = []
    try:
        with inspector_tasks.connected(tmp_path, open_page) as inspector:
            areas = inspector_tasks.areas(inspector.page)
            for task in (inspector.find, inspector.nested, inspector.refusal):
                operator = Operator(inspector.page)
                task(operator)
                efforts.append((operator.clicks, operator.keys))
            text, fields = inspector.question()
    except OSError as error:
        pytest.skip(str(error))
    open_page.take_problems()  # it loads a font from another host

    assert areas == ["Servers", "Tools", "Prompts", "Resources", "Logs", "Protocol", "Console"]
    assert "May store.refund run?" in text
    assert fields == inspector_tasks.QUESTION
    assert efforts == [(4, 3), (8, 5), (4, 2)]


def test_page_has_the_measured_results() -> None:
    """The table is written by ``python -m tests.console.operator_tasks``."""
    results: dict[str, Any] = json.loads(RESULTS.read_text())
    block = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]

    assert block.split("\n") == ["", *table(results), "", ""]
    assert {task.name: task.max_clicks for task in TASKS} == {
        name: each["clicks"] for name, each in results["console"].items()
    }
