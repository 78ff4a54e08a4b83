"""The pages of traces: of runs of this browser and of files, and the differences between two."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from tests.console.page_client import PageClient, text_of
from tests.console.plans.boxes import Box, activity_of, browsing, ended, start

from neuroscript.console import User
from neuroscript.workflow import Attempt, NodeTrace, Trace, load_trace, save_trace

TRACE = Trace(
    run="r1",
    plan="p",
    digest="0" * 64,
    inputs={"a": 1},
    status="failed",
    nodes=(
        NodeTrace("get", "web.get", "succeeded", (), {"url": "x"}, [1, 2], None, "", (Attempt(1, None, 5.0, 0.5),)),
        NodeTrace(
            "save",
            "fs.write",
            "failed",
            ("get",),
            {"path": "a"},
            None,
            {"code": "tool.failed", "message": "fs.write: the disk is full", "retry": "later"},
            "",
            (Attempt(1, None, 5.5, 1.5, "tool.failed"), Attempt(2, None, 8.0, 1.0, "tool.failed")),
        ),
        NodeTrace("send", "mail.send", "unstarted", ("save",)),
    ),
    error={"code": "plan.failed", "message": "save failed", "retry": "never"},
    started=5.0,
    seconds=4.0,
)


def run_sum(client: PageClient, number: int) -> str:
    """Run the plan ``sum`` with an input, and return the key of its trace."""
    start(client, "sum.toml", inputs=json.dumps({"a": number}))
    return f"run:{ended(client).id}"


def test_stored_trace_is_listed_and_shown(box: Box, plans: Path) -> None:
    """Its graph, its times, a row and the values of each node, and it is not listed as a plan."""
    save_trace(TRACE, plans / "run.json")
    with browsing(box, plans) as client:
        listed, page = client.get("/plans/traces"), client.get("/plans/traces/run.json")
        assert "run.json" not in client.get("/plans")
    text = text_of(page)

    assert '<a href="/plans/traces/run.json">run.json</a>' in listed
    assert "failed 4 s, run r1" in text
    assert "save failed fs.write 2 +500 ms 3.5 s tool.failed: fs.write: the disk is full" in text
    assert "error plan.failed: save failed" in text
    assert '<g id="box-save"><title>save: fs.write, failed' in page
    assert '<svg class="timeline-picture"' in page
    assert page.count('<rect class="failed" x=') >= 3
    assert '{ "path": "a" }' in text


def test_trace_of_cancelled_run_says_so(box: Box, plans: Path) -> None:
    """With a colour of its own, between that of success and that of failure."""
    error = {"code": "plan.cancelled", "message": "the run was cancelled"}
    nodes = (TRACE.nodes[0], attrs.evolve(TRACE.nodes[2], needs=()))
    save_trace(attrs.evolve(TRACE, status="cancelled", error=error, nodes=nodes), plans / "run.json")
    with browsing(box, plans) as client:
        page = client.get("/plans/traces/run.json")

    assert '<span class="badge warn">cancelled</span>' in page
    assert '<span class="badge info">unstarted</span>' in page
    assert "error plan.cancelled: the run was cancelled" in text_of(page)


@pytest.mark.parametrize(
    "text",
    ['{"trace": 1}', '{"trace": 2, "nodes": []}', '{"trace": 1, "nodes": ', '{"trace": 1, "x": "' + "\x00" + '"}'],
)
def test_invalid_trace_is_reported(box: Box, plans: Path, text: str) -> None:
    (plans / "bad.json").write_text(text)
    with browsing(box, plans) as client:
        response = client.client.get("/plans/traces/bad.json")

    assert response.status_code == 422
    assert "Not a valid trace" in response.text


def test_trace_of_a_run_is_shown_downloaded_and_saved(box: Box, plans: Path) -> None:
    """The saved file is the same trace, and has its own page."""
    with browsing(box, plans) as client:
        run_sum(client, 1)
        activity = activity_of(client)
        path = f"/plans/running/{activity.id}/trace"
        page = client.get(path)
        download = client.client.get(f"{path}.json")
        saved = client.post(path)
        shown = client.get(str(saved.headers["location"]))
    name = f"sum.{activity.view.trace.run}.trace.json"

    assert "double succeeded box.add 1" in text_of(page)
    assert download.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert json.loads(download.text)["output"] == 6
    assert saved.status_code == 303
    assert load_trace(plans / name) == activity.view.trace
    assert "Trace of sum" in shown


def test_saving_needs_an_operator_and_a_directory(box: Box, plans: Path) -> None:
    with browsing(box, plans, user=User("eve", "viewer")) as client:
        assert client.post("/plans/running/x/trace").status_code == 403
    with browsing(box, plans) as client:
        assert client.post("/plans/running/x/trace").status_code == 404


def test_name_of_a_saved_trace_has_only_harmless_characters(plans: Path) -> None:
    """The name of a plan may be any string."""
    from neuroscript.console.plans.directory import PlanDirectory

    name = PlanDirectory(plans).save(attrs.evolve(TRACE, plan='../../é\n"x"', run="../r"))

    assert name == "x.-r.trace.json"
    assert (plans / name).is_file()


def test_two_runs_are_compared(box: Box, plans: Path) -> None:
    with browsing(box, plans) as client:
        first, second = run_sum(client, 1), run_sum(client, 2)
        page = text_of(client.get("/plans/compare", a=first, b=second))
        same = text_of(client.get("/plans/compare", a=first, b=first))

    assert "inputs.a 2, was 1" in page
    assert "nodes.double.result 8, was 6" in page
    assert "The runs do not differ." in same


def test_stored_trace_is_compared_with_a_run(box: Box, plans: Path) -> None:
    save_trace(TRACE, plans / "run.json")
    with browsing(box, plans) as client:
        second = run_sum(client, 2)
        page = client.get("/plans/compare", a="file:run.json", b=second)

    assert '<option value="file:run.json" selected>run.json</option>' in page
    assert "plan has changed" in text_of(page)
    assert "nodes.send was removed" in text_of(page)


@pytest.mark.parametrize("key", ["file:../run.json", "run:x", "/etc/passwd", "file:", "x"])
def test_unknown_trace_is_not_compared(box: Box, plans: Path, key: str) -> None:
    with browsing(box, plans) as client:
        response = client.client.get("/plans/compare", params={"a": key, "b": ""})

    assert response.status_code == 422
    assert "There is no such trace." in response.text


def test_large_trace_is_shown_in_part(box: Box, plans: Path) -> None:
    """The page says how many nodes are left out."""
    nodes = tuple(NodeTrace(f"n{number}", "box.add", "succeeded") for number in range(700))
    save_trace(attrs.evolve(TRACE, nodes=nodes, error=None, status="succeeded"), plans / "large.json")
    with browsing(box, plans) as client:
        page = client.get("/plans/traces/large.json")

    assert "The graph is too large for a picture." in page
    assert "And 200 more" in page
    assert len(page) < 800_000
