"""Ten tasks of an operator in the console, with the clicks that they take at most, and the same in MCP Inspector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browsers import PageOpener
from tests.console import inspector_tasks
from tests.console.inspector_tasks import Inspector
from tests.console.operator_counts import Operator
from tests.console.operator_tasks import TASKS, Task, start
from tests.console.store import Store, opened, run_and_kill, save_two_runs


@pytest.mark.full
def test_inspector_does_three_tasks(tmp_path: Path, open_page: PageOpener) -> None:
    """The others are not possible, because it has no page for them."""
    (tmp_path / "sandbox").mkdir()
    (tmp_path / "sandbox" / "letter.txt").write_text("Dear Vera\n")
    try:
        with inspector_tasks.served(tmp_path) as url:
            page = open_page(url)
            inspector_tasks.connect(page)
            areas = inspector_tasks.areas(page)
            inspector = Inspector(page)
            efforts = []
            for task in (inspector.find, inspector.nested, inspector.refusal):
                operator = Operator(page)
                task(operator)
                efforts.append(operator.effort())
            text, fields = inspector.question()
            open_page.close()
    except OSError as error:
        pytest.skip(str(error))

    open_page.take_problems()  # it loads a font from another host
    assert areas == ["Servers", "Tools", "Prompts", "Resources", "Logs", "Protocol", "Console"]
    assert "May store.refund run?" in text
    assert fields == inspector_tasks.QUESTION
    assert [(each.clicks, each.keys) for each in efforts] == [(4, 3), (8, 5), (4, 2)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return the console of a store that has a history."""
    directory = tmp_path_factory.mktemp("store")
    with opened(directory) as store:
        save_two_runs(store)
        yield store


@pytest.mark.parametrize("task", [pytest.param(each, id=each.name) for each in TASKS])
def test_task_takes_few_clicks(store: Store, open_page: PageOpener, task: Task) -> None:
    """As many as before, or fewer."""
    page = open_page(store.console.link())
    page.wait_for_url(lambda url: "/enter" not in url)
    if task.name == "resume":
        run_and_kill(store.directory, "friday")
    operator = start(store, page)

    task.run(store, operator)

    assert operator.clicks <= task.max_clicks, operator.effort()
    print(task.name, operator.effort())
