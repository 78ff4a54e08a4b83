"""Requests to the pages of approvals, without a browser."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.console.approvals.conftest import ServedDesk
from tests.console.approvals.desks import desk_tools, until

from neuroscript import Engine, ExecutionPolicy, FileApprover
from neuroscript.cli import main
from neuroscript.console import User

VIEWER = User("eve", "viewer")


class Client:
    """A browser of a user, as the forms of a page use it."""

    def __init__(self, desk: ServedDesk, user: User | None = None) -> None:
        self._http = TestClient(desk.served.app, base_url="http://127.0.0.1", follow_redirects=False)
        link = desk.served.app.link() if user is None else desk.served.link(user).removeprefix(desk.served.url)
        self._http.get(link)
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', self._http.get("/browser").text)[0]

    def get(self, path: str) -> str:
        """Return a page as text, without tags."""
        return text_of(self._http.get(path).text)

    def html(self, path: str) -> str:
        """Return a page."""
        return self._http.get(path).text

    def post(self, path: str, **fields: str) -> Any:
        """Send a form."""
        return self._http.post(path, data={"csrf": self.csrf, **fields}, headers={"origin": "http://127.0.0.1"})


def text_of(html: str) -> str:
    """Return the text of a page, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


@pytest.fixture
def client(desk: ServedDesk) -> Client:
    """Return a browser of the local user."""
    return Client(desk)


def stored_digest(path: Path) -> str:
    digest: str = json.loads(path.read_text())["digest"]
    return digest


def test_page_shows_the_card_of_the_terminal(desk: ServedDesk, client: Client) -> None:
    """Every part is on the page, and secrets are masked also in the form."""
    call = desk.call("desk.send", "a\u202eb<script>", "hunter2")
    (waiting,) = desk.waiting()
    html = client.html("/approvals")
    shown = text_of(html)

    assert (
        'tool desk.send about Send a message. effects deletes arguments to = "a\\u202eb<script>" key = [secret]'
        in shown
    )
    assert "<title>(1) Approvals · NeuroScript</title>" in html
    assert [] == [
        word for word in ("hunter2", "\u202e", "<script>") if word in html.replace('<script type="module"', "")
    ]
    assert [] == [word for word in (waiting.request.digest, waiting.request.policy) if word not in html]
    desk.answer(waiting, desk_answer("reject"))
    call.result()


def desk_answer(verdict: Any) -> Any:
    from neuroscript import Approval

    return Approval(verdict)


@pytest.mark.parametrize(
    ("fields", "ran", "outcome"),
    [
        ({"verdict": "approve"}, [("a", False)], "approved"),
        ({"verdict": "session"}, [("a", False)], "approved_for_session"),
        ({"verdict": "modify", "arguments": '{"path": "b"}'}, [("b", False)], "modified"),
        ({"verdict": "reject", "reason": " in\nuse "}, [], "rejected"),
        ({"verdict": "stop"}, [], "stopped"),
    ],
    ids=["approve", "session", "modify", "reject", "stop"],
)
def test_form_answers_a_live_request(
    fields: dict[str, str], ran: list[Any], outcome: str, desk: ServedDesk, client: Client
) -> None:
    """The browser returns to the list, which says what the user did."""
    call = desk.call("desk.delete", "a")
    (waiting,) = desk.waiting()
    response = client.post(f"/approvals/live/{waiting.id}", digest=waiting.request.digest, **fields)
    call.result()

    assert (303, f"/approvals?done={waiting.id}") == (response.status_code, response.headers["location"])
    assert (ran, outcome, "local") == (desk.ran, desk.inbox.ended[0].outcome, desk.inbox.ended[0].by)
    assert desk.inbox.ended[0].reason == ("in\\nuse" if "reason" in fields else "")
    assert "local " in client.get(response.headers["location"])


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"verdict": "approve", "digest": "0" * 64}, 409, "The form shows another call than the one that waits."),
        ({"verdict": "approve"}, 409, "The form shows another call than the one that waits."),
        ({"verdict": "anything"}, 422, "The form contains no answer to this call."),
        ({"verdict": "modify", "arguments": "[1]"}, 422, "expected a JSON object."),
        ({"verdict": "modify", "arguments": '{"path": 1, "x": 2}'}, 422, "Nothing was approved."),
    ],
    ids=["other digest", "no digest", "no verdict", "not an object", "invalid arguments"],
)
def test_form_that_is_no_answer_approves_nothing(
    fields: dict[str, str], status: int, text: str, desk: ServedDesk, client: Client
) -> None:
    """The request waits on."""
    call = desk.call("desk.delete", "a")
    (waiting,) = desk.waiting()
    if status == 422:
        fields = {"digest": waiting.request.digest, **fields}
    response = client.post(f"/approvals/live/{waiting.id}", **fields)

    assert (status, [], 1) == (response.status_code, desk.ran, len(desk.inbox))
    assert text in text_of(response.text)
    assert fields.get("arguments", "") in unescape(response.text)  # what the user wrote is not lost
    desk.answer(waiting, desk_answer("reject"))
    call.result()


def test_viewer_sees_the_request_and_cannot_answer(desk: ServedDesk) -> None:
    """The page has no form, and the server refuses a form that is sent anyway."""
    call = desk.call("desk.delete", "a")
    (waiting,) = desk.waiting()
    client = Client(desk, VIEWER)
    response = client.post(f"/approvals/live/{waiting.id}", digest=waiting.request.digest, verdict="approve")

    assert (403, []) == (response.status_code, desk.ran)
    assert "Only a user with the role approver can answer; yours is viewer." in client.get("/approvals")
    assert "Approve once" not in client.get(f"/approvals/live/{waiting.id}")
    desk.answer(waiting, desk_answer("reject"))
    call.result()


def test_changed_arguments_are_checked_while_typing(desk: ServedDesk, client: Client) -> None:
    """The fragment names what changed, or what is wrong; nothing is answered."""
    call = desk.call("desk.delete", "a")
    (waiting,) = desk.waiting()

    def checked(arguments: str) -> str:
        return text_of(client.post(f"/approvals/live/{waiting.id}/check", arguments=arguments).text)

    assert [
        "Valid. Changed: path , force .",
        "Valid; nothing has changed yet.",
        "path: expected string, got nothing",
    ] == [checked('{"path": "b", "force": true}'), checked('{"path": "a", "force": false}'), checked("{}")]
    assert "line 1, column 2 is not JSON" in checked("{")
    assert 1 == len(desk.inbox)
    desk.answer(waiting, desk_answer("reject"))
    call.result()


def test_stored_call_runs_once_when_it_is_approved(desk: ServedDesk, client: Client) -> None:
    """Its file is gone, and the page shows the result as text."""
    path = desk.suspend("desk.delete", "<b>a")
    shown = client.get("/approvals")
    response = client.post(f"/approvals/stored/{path.name}", digest=stored_digest(path), verdict="approve")
    page = client.get(response.headers["location"])

    assert 'arguments path = "<b>a"' in shown
    assert (303, [("<b>a", False)], False) == (response.status_code, desk.ran, path.exists())
    assert "The call was approved, and has run. Result deleted <b>a" in page
    again = client.post(f"/approvals/stored/{path.name}", digest="0" * 64, verdict="approve")
    assert (409, 1) == (again.status_code, len(desk.ran))


def test_stored_call_runs_with_other_arguments(desk: ServedDesk, client: Client) -> None:
    """They are checked first; invalid ones leave the file in its place."""
    path = desk.suspend("desk.delete", "a")
    where, digest = f"/approvals/stored/{path.name}", stored_digest(path)
    wrong = client.post(where, digest=digest, verdict="modify", arguments='{"path": []}')
    response = client.post(where, digest=digest, verdict="modify", arguments='{"path": "b", "force": "true"}')
    page = client.get(response.headers["location"])

    assert (422, 303, [("b", True)]) == (wrong.status_code, response.status_code, desk.ran)
    assert "deleted b" in page


def test_stored_call_is_rejected(desk: ServedDesk, client: Client) -> None:
    """It does not run, and its file is gone."""
    path = desk.suspend("desk.delete", "a")
    response = client.post(f"/approvals/stored/{path.name}", digest=stored_digest(path), verdict="reject")

    assert "The call was rejected." in client.get(response.headers["location"])
    assert ([], False) == (desk.ran, path.exists())


def test_changed_file_cannot_be_approved(desk: ServedDesk, client: Client) -> None:
    """The page says what has changed, also for another tool and for a file that others can read."""
    path = desk.suspend("desk.delete", "a")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "arguments": {"path": "b", "force": False}}))
    broken = desk.suspend("desk.delete", "c")
    broken.write_text("{")
    shared = desk.suspend("desk.delete", "d")
    shared.chmod(0o644)
    unknown = desk.suspend("desk.delete", "e")
    unknown.write_text(json.dumps({**json.loads(unknown.read_text()), "tool": "desk.gone"}))
    shown = client.get("/approvals")

    for text in (
        "needs a new approval because these have changed: digest.",
        "the file cannot be used: line 1, column 2 is not JSON.",
        "the file cannot be used: other users can access the file: its mode is 0644, but must be 0600.",
        "unknown tool desk.gone",
    ):
        assert f"This call cannot be approved: {text}" in shown
    for each in (path, broken, shared, unknown):
        response = client.post(f"/approvals/stored/{each.name}", digest=data["digest"], verdict="approve")
        assert (409, True) == (response.status_code, each.exists())
    assert [] == desk.ran


def test_changed_policy_is_noticed(tmp_path: Path, desk: ServedDesk, client: Client) -> None:
    """A call that another policy has suspended cannot be approved here."""
    policy = ExecutionPolicy(approver=FileApprover(desk.directory), deny=("math.*",))
    with Engine(plugins=(), toolsets=[desk_tools([])], policy=policy) as other:
        other.session().execute({"name": "desk.delete", "arguments": ["a"]})

    assert "these have changed: policy." in client.get("/approvals")


@pytest.mark.parametrize("name", ["../secret.json", "..%2fsecret.json", "%2e%2e/secret.json", ".hidden.json", "a.txt"])
def test_files_outside_the_directory_are_not_found(name: str, desk: ServedDesk, client: Client) -> None:
    """A name leads only to files that the list shows."""
    desk.suspend("desk.delete", "a").rename(desk.directory.parent / "secret.json")

    assert "Not found" in client.get(f"/approvals/stored/{name}")
    assert client.post(f"/approvals/stored/{name}", digest="0" * 64, verdict="approve").status_code in (404, 409)
    assert [] == desk.ran


def test_one_of_many_users_and_processes_resumes_a_stored_call(desk: ServedDesk, tmp_path: Path) -> None:
    """Browsers and the command line answer at the same moment: the call runs once."""
    clients = [Client(desk) for _ in range(4)]
    for number in range(5):
        path = desk.suspend("desk.delete", f"file {number}")
        digest, barrier = stored_digest(path), Barrier(len(clients) + 1)

        def answer(client: Client, path: Path = path, digest: str = digest, barrier: Barrier = barrier) -> None:
            barrier.wait()
            response = client.post(f"/approvals/stored/{path.name}", digest=digest, verdict="approve")
            if response.status_code == 303:
                pages.append(client.get(response.headers["location"]))

        def reject(path: Path = path, barrier: Barrier = barrier) -> None:
            barrier.wait()
            main(["approve", str(path), "--reject", "by the command line"])

        pages: list[str] = []
        threads = [*(Thread(target=answer, args=(each,)) for each in clients), Thread(target=reject)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        ran = [values for values in desk.ran if values[0] == f"file {number}"]
        results = [page for page in pages if f"deleted file {number}" in page]
        assert len(ran) == len(results) <= 1
        assert not path.exists()


def test_large_lists_are_paged(desk: ServedDesk, client: Client) -> None:
    """Each page has twenty requests, newest first."""
    for number in range(23):
        desk.suspend("desk.delete", f"file-{number}")
    first, second = client.html("/approvals"), client.html("/approvals?page=2")

    assert (20, 3) == (first.count('class="card approval"'), second.count('class="card approval"'))
    assert "(23) Approvals" in first
    assert "Page 1 of 2" in text_of(first)


def test_count_is_in_the_navigation(desk: ServedDesk, client: Client) -> None:
    """Every page shows it, and it is a fragment of its own for refreshing."""
    before = client.get("/approvals/count")
    desk.suspend("desk.delete", "a")

    assert ("", "1 waiting") == (before, client.get("/approvals/count"))
    assert "Approvals 1 waiting" in client.get("/browser")


@pytest.mark.parametrize("kind", ["live", "stored"])
def test_form_approves_with_other_arguments(kind: str, desk: ServedDesk, client: Client) -> None:
    """Invalid ones, another digest and other buttons approve nothing."""
    if kind == "live":
        call = desk.call("desk.archive", ["a", "b"], 3)
        (waiting,) = desk.waiting()
        id, digest = waiting.id, waiting.request.digest
    else:
        path = desk.suspend("desk.archive", ["a", "b"], 3)
        id, digest = path.name, stored_digest(path)
    where = f"/approvals/{kind}/{id}/change"
    form = {"$edited": "json", "$json": '{"paths": ["c"], "days": 2}'}
    shown = client.html(where)
    wrong = client.post(where, **{**form, "$json": '{"paths": 1}', "digest": digest, "$do": "approve"})
    other = client.post(where, **form, digest="0" * 64, **{"$do": "approve"})
    looked = client.post(where, **form, digest=digest, **{"$do": "show"})
    part = client.post(f"{where}/check", **form)
    assert [] == desk.ran
    done = client.post(where, **form, digest=digest, **{"$do": "approve"})

    assert (422, 409, 200, 303) == (wrong.status_code, other.status_code, looked.status_code, done.status_code)
    assert "Valid. Changed: paths , days ." in text_of(part.text)
    assert "\na</textarea>" in shown
    if kind == "live":
        call.result()
    assert [(["c"], 2)] == desk.ran


def test_events_stream_ends_when_the_browser_leaves(desk: ServedDesk) -> None:
    """The inbox has no listener left, and a browser that is signed out receives nothing more."""
    link = desk.served.link()
    with httpx.Client(base_url=desk.served.url) as browser:
        browser.get(link)
        with browser.stream("GET", "/approvals/events") as response:
            texts = response.iter_text()  # the response is closed when nothing refers to this iterator
            assert '"count": 0' in next(texts)
            assert 1 == len(desk.inbox._listeners)
        until(lambda: not desk.inbox._listeners)
        with browser.stream("GET", "/approvals/events") as response:
            (visitor,) = desk.served.app.console.visitors
            desk.served.app.console.visitors.remove(visitor)
            assert 2 > sum("count" in text for text in response.iter_text())
    until(lambda: not desk.inbox._listeners)
