"""Durable runs in the console: listed, shown, started, cancelled and resumed, with SQLite."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest
from tests.console.page_client import PageClient, text_of
from tests.console.plans.boxes import Box, activity_of, browsing, ended, start

from neuroscript.console import User
from neuroscript.workflow import load_plan

pytest.importorskip("sqlalchemy")

from neuroscript.workflow.durable import list_runs, run_durably, show_run


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


def start_and_leave(client: PageClient, box: Box) -> str:
    """Start a durable run, leave it as a process that ends does, and return its id."""
    start(client, "waits.toml", durable="1")
    assert box.waiting.wait(60)
    activity = activity_of(client)
    Thread(target=lambda: (time.sleep(0.2), box.go.set())).start()  # its worker waits for the call that runs
    response = client.post(f"/activities/{activity.id}/cancel")
    assert response.status_code == 303
    return str(activity.view.run_id)


def test_durable_runs_are_listed_and_shown(box: Box, plans: Path, url: str) -> None:
    """Runs that another process has made are listed, with their calls."""
    with box.engine() as engine:
        run_durably(engine, load_plan(plans / "sum.toml"), {"a": 1}, url, run_id="first")
    with browsing(box, plans, runs=url) as client:
        listed, page = text_of(client.get("/plans/runs")), text_of(client.get("/plans/runs/first"))
        unknown = client.client.get("/plans/runs/none")

    assert "first sum succeeded" in listed
    assert "double box.add ok 1" in page
    assert unknown.status_code == 404


def test_durable_run_is_started_and_its_trace_shown(box: Box, plans: Path, url: str) -> None:
    with browsing(box, plans, runs=url) as client:
        path = start(client, "sum.toml", inputs='{"a": 3}', durable="1")
        view = ended(client).view
        page = client.get(path)
        state, calls = show_run(url, view.run_id)

    assert view.problems == ()
    assert view.trace.output == 10
    assert state.status == "succeeded"
    assert [call.node for call in calls] == ["first", "double"]
    assert f'href="/plans/runs/{view.run_id}"' in page


def test_run_that_was_left_is_resumed(box: Box, plans: Path, url: str) -> None:
    """Calls that have ended are not made again."""
    with browsing(box, plans, runs=url) as client:
        run = start_and_leave(client, box)
        interrupted = text_of(client.get(f"/plans/runs/{run}"))
        response = client.post(f"/plans/runs/{run}/resume")
        view = ended(client).view
        page = text_of(client.get(str(response.headers["location"])))
        state, calls = show_run(url, run)

    assert "Status interrupted" in interrupted
    assert view.problems == ()
    assert "The plan succeeded." in page
    assert state.status == "succeeded"
    assert [call.starts for call in calls if call.node == "first"] == [1]


def test_run_that_was_left_is_cancelled(box: Box, plans: Path, url: str) -> None:
    """Afterwards it cannot be cancelled again."""
    with browsing(box, plans, runs=url) as client:
        run = start_and_leave(client, box)
        response = client.post(f"/plans/runs/{run}/cancel")
        again = client.post(f"/plans/runs/{run}/cancel")
        page = client.get(f"/plans/runs/{run}")
        resumed = client.post(f"/plans/runs/{run}/resume")
        trace = ended(client).view.trace
        outcome, listed = client.get(str(resumed.headers["location"])), client.get("/plans/traces")

    badge = '<span class="badge warn">cancelled</span>'
    assert response.status_code == 303
    assert again.status_code == 409
    assert "was already cancelled" in again.text
    assert "Status cancelled" in text_of(page)
    assert badge in page
    assert [trace.status, *(node.status for node in trace.nodes)] == [
        "cancelled",
        "succeeded",
        "succeeded",
        "unstarted",
    ]
    assert '<div class="notice warn">\n  <p>The run was cancelled.</p>' in outcome
    assert "2 of 3 nodes ended" in outcome
    assert badge in listed
    assert [state.status for state in list_runs(url)] == ["cancelled"]


def test_resuming_obeys_the_effects_of_the_console(box: Box, plans: Path, url: str) -> None:
    """A run with effects that another process left is not continued by a console that runs none."""
    (plans / "put.toml").write_text('[nodes.a]\ntool = "box.put"\ninputs = { text = "x" }\n')
    with browsing(box, plans, runs=url, run_effects=True) as client:
        start(client, "put.toml", durable="1")
        ended(client)
        run = list_runs(url)[0].id
    assert box.ran == ["put"]
    with browsing(box, plans, runs=url) as client:
        client.post(f"/plans/runs/{run}/resume")
        view = ended(client).view

    assert view.trace is None
    assert "is not allowed by the host" in view.problems[0]
    assert box.ran == ["put"]


def test_viewer_changes_no_run(box: Box, plans: Path, url: str) -> None:
    with browsing(box, plans, runs=url, user=User("eve", "viewer")) as client:
        assert client.get("/plans/runs")
        for action in ("cancel", "resume"):
            assert client.post(f"/plans/runs/x/{action}").status_code == 403


def test_console_without_a_database_has_no_durable_runs(box: Box, plans: Path) -> None:
    """It does not open the database that a user has by default."""
    with browsing(box, plans) as client:
        assert client.client.get("/plans/runs").status_code == 404
        for action in ("cancel", "resume"):
            assert client.post(f"/plans/runs/x/{action}").status_code == 404


def test_unusable_database_is_reported(box: Box, plans: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    with browsing(box, plans, runs=f"sqlite:///{tmp_path}/text") as client:
        response = client.client.get("/plans/runs")

    assert response.status_code == 422
    assert "cannot be used as a database" in response.text


def test_secret_input_is_not_stored_durably(box: Box, plans: Path, url: str) -> None:
    text = '[inputs]\nkey = { type = "string", secret = true }\n[nodes.a]\ntool = "box.sign"\n'
    (plans / "secret.toml").write_text(f'{text}inputs = {{ key = "${{input.key}}", text = "x" }}\n')
    with browsing(box, plans, runs=url) as client:
        path = start(client, "secret.toml", inputs='{"key": "hunter2-hunter2"}', durable="1")
        view = ended(client).view
        page = client.get(path)

    assert "is secret, and a durable run stores inputs and arguments unencrypted" in view.problems[0]
    assert "hunter2" not in page


def test_read_only_console_leaves_runs_of_other_processes_alone(box: Box, plans: Path, url: str) -> None:
    """Its worker would take their calls, and refuse those with effects; the trace of an ended run is still shown."""
    with box.engine() as engine:
        run_durably(engine, load_plan(plans / "sum.toml"), {"a": 1}, url, run_id="ended")
    with browsing(box, plans, runs=url) as client:
        start(client, "waits.toml", durable="1")
        assert box.waiting.wait(60)
        first = activity_of(client)
        start(client, "sum.toml", '{"a": 1}', durable="1")
        refused = ended(client).view
        client.post("/plans/runs/ended/resume")
        shown = ended(client).view
        box.go.set()
        client.client.portal.call(first.wait)  # type: ignore[union-attr]

    assert "another run of this database goes on" in refused.problems[0]
    assert refused.trace is None
    assert shown.problems == ()
    assert shown.trace.output == 6
    assert first.view.trace.status == "succeeded"
