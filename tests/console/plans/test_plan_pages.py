"""The pages of plan files: the list, one plan with its graph and problems, and running it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.console.page_client import text_of
from tests.console.plans.boxes import SUM, Box, activity_of, browsing, ended, start, submit

from neuroscript import Approval, ExecutionPolicy
from neuroscript.console import User
from neuroscript.console.plans.directory import PlanDirectory
from neuroscript.console.plans.progress import PlanRun

# The directory


def test_list_shows_each_plan_file_with_its_state(box: Box, plans: Path) -> None:
    """An invalid file is listed with its first problem."""
    with browsing(box, plans) as client:
        page = text_of(client.get("/plans"))

    assert "sum.toml sum Add and double. 2 a, b can run" in page
    assert "broken.toml broken 2 cannot run" in page
    assert "not.toml invalid nodes: must be a table" in page or "not.toml invalid" in page


def test_only_regular_files_of_the_directory_are_found(plans: Path, tmp_path: Path) -> None:
    """Neither other directories, nor hidden files, nor links that lead out of it, nor pipes."""
    (tmp_path / "secret.toml").write_text(SUM)
    (plans / "link.toml").symlink_to(tmp_path / "secret.toml")
    (plans / "inside.toml").symlink_to(plans / "sum.toml")
    (plans / "loop.toml").symlink_to(plans / "loop.toml")
    (plans / ".hidden.toml").write_text(SUM)
    (plans / "notes.txt").write_text(SUM)
    (plans / "below.toml").mkdir()
    os.mkfifo(plans / "pipe.toml")
    directory = PlanDirectory(plans)

    assert [file.name for file in directory.files("plan")] == [
        "broken.toml",
        "inside.toml",
        "not.toml",
        "sum.toml",
        "waits.toml",
    ]
    for name in (
        *("link.toml", "loop.toml", ".hidden.toml", "notes.txt", "below.toml", "pipe.toml", "../secret.toml"),
        *(f"{tmp_path}/secret.toml", "..", "", ".toml", "sum.toml\0", "..\\secret.toml", "./sum.toml", "none.toml"),
    ):
        assert directory.plan(name) is None, name


@pytest.mark.parametrize("path", ["%2e%2e%2fsecret.toml", "..%2fsecret.toml", "link.toml", "none.toml", "%00.toml"])
def test_page_of_a_file_elsewhere_does_not_exist(box: Box, plans: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.toml").write_text(SUM)
    (plans / "link.toml").symlink_to(tmp_path / "secret.toml")
    with browsing(box, plans) as client:
        for place in ("files", "traces"):
            assert client.client.get(f"/plans/{place}/{path}").status_code == 404


def test_large_file_is_not_shown(box: Box, plans: Path) -> None:
    (plans / "large.toml").write_bytes(b"#" * (1024 * 1024 + 1))
    with browsing(box, plans) as client:
        assert "has more than 1048576 bytes" in text_of(client.get("/plans/files/large.toml"))


def test_list_of_many_plans_is_paged(box: Box, plans: Path) -> None:
    for number in range(120):
        (plans / f"p{number:03}.toml").write_text(SUM)
    with browsing(box, plans) as client:
        first, last = client.get("/plans"), client.get("/plans", page="3")

    assert ("p000.toml" in first, "p119.toml" in first) == (True, False)
    assert ("p000.toml" in last, "p119.toml" in last) == (False, True)


def test_missing_directory_has_no_plans(box: Box, plans: Path) -> None:
    with browsing(box, plans / "missing") as client:
        assert "The directory contains no plans" in client.get("/plans")


# A plan


def test_page_of_a_plan_has_its_graph_and_the_same_as_a_table(box: Box, plans: Path) -> None:
    """Each node of the graph is a link to its row."""
    with browsing(box, plans) as client:
        page = client.get("/plans/files/sum.toml")

    assert '<a class="node" href="#node-double">' in page
    assert '<tr id="node-double" tabindex="-1"><th scope="row">double</th><td>box.add</td><td>first</td>' in page
    assert "<style" not in page
    assert " style=" not in page
    assert "can run The tools, the types of all references and the policy were checked." in text_of(page)


def test_problems_are_shown_at_the_lines_of_the_file(box: Box, plans: Path) -> None:
    """Those of the check, whose tools depend on the engine, as well as those of an invalid file."""
    with browsing(box, plans) as client:
        page, invalid = client.get("/plans/files/broken.toml"), client.get("/plans/files/not.toml")

    assert "This plan cannot run here" in page
    assert (
        '<li id="line-4" class="has-problem"><code>tool = &#34;box.ad&#34;</code><p class="error">nodes.first' in page
    )
    assert '<li id="line-9" class="has-problem"><code>inputs = ' in page
    assert "data-run disabled>Run</button>" in page
    assert "This file is not a valid plan" in invalid
    assert '<li id="line-1" class="has-problem">' in invalid


# Runs


def test_plan_runs_with_inputs_and_shows_its_outcome(box: Box, plans: Path) -> None:
    """The page of the run shows the state of each node, without JavaScript too."""
    with browsing(box, plans) as client:
        path = start(client, "sum.toml", inputs='{"a": "20"}')
        view: PlanRun = ended(client).view
        page = client.get(path)

    assert view.trace is not None
    assert view.trace.output == 44
    assert "The plan succeeded. 44 Trace" in text_of(page)
    assert '<td id="state-double"><span class="badge ok">succeeded</span>' in page
    assert '<rect class="succeeded"' in page
    assert "data-events" not in page


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ("{}", "a : expected int, got nothing"),
        ('{"a": "many"}', "a : expected int, got str"),
        ("[1]", "not a JSON object with the arguments by name"),
        ('{"a": 1', "JSON"),
        ('{"a": 1, "c": 3}', "c: expected only a, b, got an unknown name of type int"),
    ],
)
def test_invalid_inputs_are_reported_and_shown_again(box: Box, plans: Path, inputs: str, problem: str) -> None:
    """Nothing runs."""
    with browsing(box, plans) as client:
        response = submit(client, "sum.toml", inputs)

        assert response.status_code == 422
        assert problem in text_of(response.text.partition("The inputs are invalid:")[2].partition("</ul>")[0])
        assert [*next(iter(client.app.console.visitors)).activities] == []


def test_inputs_are_fields_of_their_types(box: Box, plans: Path) -> None:
    """Lists grow by buttons, without JavaScript too, and what was entered remains."""
    text = '[inputs]\nwords = "slice_string"\ncount = { type = "int", minimum = 1 }\n[nodes.a]\ntool = "box.add"\n'
    (plans / "typed.toml").write_text(f'{text}inputs = {{ a = "${{input.count}}", b = 1 }}\n')
    with browsing(box, plans) as client:
        empty = client.get("/plans/files/typed.toml")
        grown = client.post(
            "/plans/files/typed.toml/form", **{"$do": "add:arg.words", "$edited": "form", "arg.count": "5"}
        )
        live = client.post("/plans/files/typed.toml/check", **{"$edited": "form", "arg.count": "0"})
        fields = client.post("/plans/files/typed.toml/fields", **{"$do": "add:arg.words", "$edited": "form"})

    assert 'value="add:arg.words"' in empty
    assert "The inputs are invalid" not in empty
    assert 'value="remove:arg.words.0"' in grown.text
    assert 'name="arg.count" value="5"' in grown.text
    assert '<p data-problem="count">' in live.text
    assert "<html" not in fields.text + live.text
    assert 'value="remove:arg.words.0"' in fields.text


def test_secret_in_the_fields_is_not_sent_back(box: Box, plans: Path) -> None:
    """Not in the page, in the fields or in the check of what is typed."""
    text = '[inputs]\nkey = { type = "string", secret = true }\ncount = "int"\n[nodes.a]\ntool = "box.sign"\n'
    (plans / "secret.toml").write_text(f'{text}inputs = {{ key = "${{input.key}}", text = "n ${{input.count}}" }}\n')
    form = {"$do": "show", "$edited": "form", "arg.key": "hunter2-hunter2", "arg.count": "many"}
    with browsing(box, plans) as client:
        found = [client.post(f"/plans/files/secret.toml/{part}", **form) for part in ("form", "fields", "check", "run")]

    assert [each.status_code for each in found] == [200, 200, 200, 409]
    assert all("expected int, got str" in each.text for each in found)
    assert all("hunter2" not in each.text for each in found)


def test_plan_that_has_changed_does_not_run(box: Box, plans: Path) -> None:
    """The page that the user has read is of another plan."""
    with browsing(box, plans) as client:
        digest = client.get("/plans/files/sum.toml").split('name="digest" value="')[1][:64]
        (plans / "sum.toml").write_text(SUM.replace("box.add", "box.put"))
        response = client.post("/plans/files/sum.toml/run", **{"digest": digest, "$do": "run", "arg.a": "1"})

    assert response.status_code == 409
    assert "The plan has changed since the page was loaded." in response.text


def test_viewer_cannot_run_a_plan(box: Box, plans: Path) -> None:
    with browsing(box, plans, user=User("eve", "viewer")) as client:
        assert "Running a plan needs the role operator." in client.get("/plans/files/sum.toml")
        assert client.post("/plans/files/sum.toml/run", inputs='{"a": 1}').status_code == 403


@pytest.mark.parametrize("tool", ["box.put", "box.put_indirectly"])
@pytest.mark.parametrize("run_effects", [False, True])
def test_plan_runs_tools_with_effects_only_if_the_console_may(
    box: Box, plans: Path, tool: str, run_effects: bool
) -> None:
    """The session of the run refuses them, also if a tool without effects calls them."""
    (plans / "effects.toml").write_text(f'[nodes.a]\ntool = "{tool}"\ninputs = {{ text = "x" }}\n')
    with browsing(box, plans, run_effects=run_effects) as client:
        page = client.get("/plans/files/effects.toml")
        response = submit(client, "effects.toml")
        if response.status_code == 303:
            ended(client)

    assert box.ran == (["put"] if run_effects else [])
    assert ("This plan cannot run here" in page) == (tool == "box.put" and not run_effects)


def test_run_shows_its_state_while_it_runs_and_is_cancelled(box: Box, plans: Path) -> None:
    """A call that has begun is interrupted, and later nodes do not start."""
    with browsing(box, plans) as client:
        path = start(client, "waits.toml")
        assert box.waiting.wait(30)
        running = client.get(path)
        response = client.post(f"/activities/{activity_of(client).id}/cancel")
        page = client.get(path)
        trace = activity_of(client).view.trace

    assert '<td id="state-slow"><span class="badge info">running</span>' in running
    assert 'data-events="/activities/' in running
    assert "1 of 3 nodes ended" in text_of(running)
    assert response.headers["location"] == path
    assert "The run ended early: was cancelled" in text_of(page)
    assert trace is not None
    assert [node.status for node in trace.nodes] == ["succeeded", "failed", "unstarted"]


def test_events_of_a_run_replace_the_state_of_nodes(box: Box, plans: Path) -> None:
    """Of a row and of a box in the graph; a page that connects later receives the present state only."""
    with browsing(box, plans) as client:
        start(client, "waits.toml")
        assert box.waiting.wait(30)
        box.go.set()
        events = ended(client).events

    targets = [event.target for event in events]
    assert len(set(targets)) == len(targets)
    last = {event.target: event.html for event in events}
    assert "succeeded" in last["state-slow"]
    assert '<rect class="succeeded"' in last["box-slow"]
    assert "3 of 3 nodes ended" in last["plan-progress"]
    assert "The plan succeeded." in last["plan-outcome"]


def test_secret_input_is_not_sent_back(box: Box, plans: Path) -> None:
    """Not in the form after an error, not in the page of the run, and not in the trace."""
    text = '[inputs]\nkey = { type = "string", secret = true }\ncount = "int"\n[nodes.a]\ntool = "box.sign"\n'
    (plans / "secret.toml").write_text(f'{text}inputs = {{ key = "${{input.key}}", text = "n ${{input.count}}" }}\n')
    with browsing(box, plans) as client:
        wrong = '{"key": "hunter2-hunter2", "count": "many"}'
        failed = submit(client, "secret.toml", wrong)
        path = start(client, "secret.toml", inputs='{"key": "hunter2-hunter2", "count": 3}')
        ended(client)
        pages = [client.get(path), client.get(f"{path}/trace"), client.get(f"{path}/trace.json")]

    assert failed.status_code == 422
    assert all("hunter2" not in page for page in [failed.text, *pages])


def test_failed_node_is_shown_with_its_code(box: Box, plans: Path) -> None:
    policy = ExecutionPolicy(approver=lambda request: Approval.reject("not today"))
    (plans / "ask.toml").write_text('[nodes.a]\ntool = "box.approved"\ninputs = { text = "x" }\n')
    with browsing(box, plans, policy=policy) as client:
        path = start(client, "ask.toml")
        ended(client)
        page = text_of(client.get(path))

    assert "The plan failed. a failed" in page
    assert "a box.approved failed policy.rejected" in page


def test_too_many_runs_are_refused(box: Box, plans: Path) -> None:
    with browsing(box, plans) as client:
        codes = [submit(client, "waits.toml").status_code for _ in range(17)]

    assert codes == [303] * 16 + [429]


def test_run_of_another_browser_is_not_shown(box: Box, plans: Path) -> None:
    with browsing(box, plans) as client:
        path = start(client, "sum.toml", inputs='{"a": 1}')
        ended(client)
        other = type(client).of(client.app)

        for each in (path, f"{path}/trace", f"{path}/trace.json"):
            assert other.client.get(each).status_code == 404
