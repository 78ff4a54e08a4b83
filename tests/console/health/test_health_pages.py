"""The pages about the health of an engine, without JavaScript."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import attrs
import pytest
from starlette.testclient import TestClient
from tests.console.health.conftest import ChangingServer
from tests.console.page_client import BASE, PageClient, text_of

from neuroscript import Engine, ExecutionPolicy, Lock, PluginError, ToolCall
from neuroscript.cli.doctor.check import Finding
from neuroscript.cli.doctor.command import run_checks
from neuroscript.config.lock_diff import Selection, pins_of
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.console import User, app
from neuroscript.console.application import ConsoleApp
from neuroscript.discovery.installed import installed_distributions
from neuroscript.interop.mcp.client.servers import add_server

HOSTILE = '"><script>alert(1)</script>\u202e\x07'


@contextmanager
def browser(application: ConsoleApp, user: User | None = None) -> Iterator[PageClient]:
    """Provide a browser that is signed in to a console, and close the engine."""
    with application.console.engine, TestClient(application, base_url=BASE, follow_redirects=False) as client:
        yield PageClient.of(application, client, user)


def eventually(client: PageClient, path: str, text: str) -> str:
    """Load a page until it contains a string, and return it."""
    end = monotonic() + 60
    while text not in (html := client.get(path)):
        assert monotonic() < end, text_of(html)
        sleep(0.02)
    return html


def compared(client: PageClient) -> str:
    """Compare the server with what was accepted, and return its page."""
    assert client.post("/health/servers/far/review").headers["location"] == "/health/servers/far"
    return eventually(client, "/health/servers/far", "ompared at")


def digest_in(html: str) -> str:
    found = re.search(r'name="digest" value="(\w+)"', html)
    assert found
    return found[1]


# Plugins


def test_plugins_and_their_problems_are_shown() -> None:
    engine = Engine(plugins=["neuroscript-std", "unknown-plugin"])
    engine.add_plugin_errors(PluginError("acme 1.2", HOSTILE, code="plugin.import"))
    with browser(app(engine)) as client:
        html = client.get("/health")
    text = text_of(html)

    assert re.search(r"neuroscript-std \d\S+ \d+ ", text)
    assert "unknown-plugin" in text
    assert "acme 1.2 plugin.import" in text
    assert "<script>alert" not in html
    assert "\u202e" not in html


def test_engine_without_problems_says_so() -> None:
    with browser(app(Engine(plugins="none"))) as client:
        text = text_of(client.get("/health"))

    assert "All plugins that the engine loads can be used." in text
    assert "The engine has no tools." in text
    assert "The policy isolates no tools." in text
    assert "Run neuroscript doctor on this machine" in text


def lock_of_installed() -> Lock:
    pins, errors = pins_of(Selection(installed_distributions(), (), None), None)
    assert not errors
    return Lock(pins)


def test_lock_without_differences(tmp_path: Path) -> None:
    path, lock = tmp_path / "neuroscript.lock", lock_of_installed()
    lock.write(path)
    with browser(app(Engine(), lock=path)) as client:
        assert "locked" in text_of(client.get("/health"))
        client.post("/health/lock")
        text = text_of(eventually(client, "/health", "compared at"))

    assert f"No differences from the {len(lock.distributions)} locked distributions" in text


def test_lock_with_differences_shows_each_change(tmp_path: Path) -> None:
    """A changed version and tool, a distribution that is missing, and one that is not locked."""
    path = tmp_path / "neuroscript.lock"
    std, *others = sorted(lock_of_installed().distributions, key=lambda each: each.key != "neuroscript-std")
    tool = std.tools["math.add"]
    spec = {**tool.data["spec"], "description": "Add."}
    changed = attrs.evolve(
        std, version="0.0.1", tools={**std.tools, "math.add": type(tool).of(_definition({**tool.data, "spec": spec}))}
    )
    Lock([changed, attrs.evolve(others[0], name="acme-tools"), *others[1:]]).write(path)
    with browser(app(Engine(), lock=path)) as client:
        assert "0.0.1" in text_of(client.get("/health"))
        client.post("/health/lock")
        text = text_of(eventually(client, "/health", "compared at"))

    assert "3 distributions differ from the lock file" in text
    assert re.search(r"acme-tools \S+ missing It is locked, but not installed\.", text)
    assert re.search(rf"{others[0].name} \S+ new It is installed, but not locked\.", text)
    assert "version: changed from 0.0.1 to" in text
    assert "math.add : description" in text


def _definition(data: dict[str, Any]) -> Any:
    from neuroscript.config.tool_diff import Definition

    return Definition.of_data(data)


def test_broken_lock_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "neuroscript.lock"
    path.write_text("{")
    with browser(app(Engine(plugins="none"), lock=path)) as client:
        assert "cannot be used" in text_of(client.get("/health"))
        client.post("/health/lock")
        assert "could not be compared" in text_of(eventually(client, "/health", "could not be compared"))


# Checks


def test_checks_of_the_installation_are_run() -> None:
    """Those of ``neuroscript doctor``, in a thread, with what to do about each problem."""
    with browser(app(Engine(plugins="none"), checks=partial(run_checks, Namespace(policy="/no/file")))) as client:
        assert "have not been run since" in client.get("/health")
        assert client.post("/health/checks").headers["location"] == "/health"
        html = eventually(client, "/health", "checked at")
    text = text_of(html)

    assert re.search(r"Python ok \d+\.\d+\.\d+", text)
    assert re.search(r"\d broken, ", text)
    assert "policy broken" in text.lower()


def test_findings_show_what_to_do() -> None:
    found = {
        "versions": [Finding("Python", "ok", "3.11.7")],
        "extras": [Finding(HOSTILE, "warning", HOSTILE, fix=HOSTILE), Finding("x", "optional", "is not installed")],
        "programs": [],
    }
    with browser(app(Engine(plugins="none"), checks=lambda: found)) as client:
        client.post("/health/checks")
        html = eventually(client, "/health", "checked at")

    assert "Everything in use works , 1 warning, checked at" in text_of(html).replace("works,", "works ,")
    assert "<script>alert" not in html
    assert re.findall(r"<details( open)?>\s*<summary>(\w+)", html) == [("", "Versions"), (" open", "Extras")]


def test_failed_checks_are_reported() -> None:
    """An exception is not shown, because its text may contain a value."""

    def fail() -> Any:
        raise ValueError("secret-123")

    with browser(app(Engine(plugins="none"), checks=fail)) as client:
        client.post("/health/checks")
        html = eventually(client, "/health", "The checks failed")

    assert "internal error (ValueError)" in html
    assert "secret-123" not in html


def test_missing_parts_cannot_be_started() -> None:
    with browser(app(Engine(plugins="none"))) as client:
        found = [client.post(f"/health/{each}").status_code for each in ("checks", "lock", "servers/x/review")]
        assert [*found, client.client.get("/health/servers/x").status_code] == [404] * 4


# MCP servers


def test_servers_are_shown_with_their_tools(application: ConsoleApp) -> None:
    with browser(application) as client:
        text = text_of(client.get("/health"))
        page = text_of(client.get("/health/servers/far"))

    assert re.search(r"far \S*python\S* 2 accepted", text)
    assert "Accepted 2 tools" in page
    assert "Each of its tools needs approval" in page


def test_changed_definitions_are_shown_and_accepted(application: ConsoleApp, far: ChangingServer) -> None:
    """Exactly what was shown is accepted, and the engine refuses the changed tool until it is loaded again."""
    with browser(application) as client:
        html = compared(client)
        text = text_of(html)
        assert "3 tools differ from what was accepted" in text
        assert "<del>-Add.</del>\n<ins>+Add, and send the numbers to me.</ins>" in html
        assert [*re.findall(r'<h3><span class="mono">(\w+)</span> <span class="badge \w+">(\w+)', html)] == [
            ("add", "changed"),
            ("mul", "new"),
            ("sub", "removed"),
        ]
        assert "changed" in text_of(client.get("/health"))
        response = client.post("/health/servers/far/accept", digest=digest_in(html))
        assert response.headers["location"] == "/health/servers/far?accepted=1"
        assert "were accepted" in client.get(response.headers["location"])
        assert "All 2 definitions are the accepted ones" in compared(client)

    assert far.accepted == {"add": "Add, and send the numbers to me.", "mul": "Multiply."}


def test_only_what_was_read_is_accepted(application: ConsoleApp, far: ChangingServer) -> None:
    """Not what another review has found meanwhile, not after someone else has accepted, and nothing without a review."""
    with browser(application) as client:
        nothing = client.post("/health/servers/far/accept", digest="0")
        old = digest_in(compared(client))
        far.offer(add="Something else.")
        client.post("/health/servers/far/review")
        new = digest_in(eventually(client, "/health/servers/far", "Something else."))
        other = client.post("/health/servers/far/accept", digest=old)
        Path(far.table.accepted).write_text(json.dumps({"mcp": 2, "tools": {}}))
        late = client.post("/health/servers/far/accept", digest=new)

    assert [each.status_code for each in (nothing, other, late)] == [409, 409, 409]
    assert old != new
    assert far.accepted == {}


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("operator", 403), ("approver", 303)])
def test_only_approvers_accept(role: Any, status: int, application: ConsoleApp, far: ChangingServer) -> None:
    """Others read the differences."""
    with TestClient(application, base_url=BASE, follow_redirects=False) as shared, application.console.engine:
        approver = PageClient.of(application, shared)
        digest = digest_in(compared(approver))
        client = PageClient.of(
            application, TestClient(application, base_url=BASE, follow_redirects=False), User("a", role)
        )
        html = client.get("/health/servers/far")
        assert "send the numbers to me" in html
        assert ("Accept these definitions" in html) == (role == "approver")
        assert client.post("/health/servers/far/accept", digest=digest).status_code == status

    assert ("mul" in far.accepted) == (role == "approver")


def test_server_that_cannot_be_reached_is_reported(tmp_path: Path) -> None:
    """Neither its arguments nor its environment are shown, because they can contain secrets."""
    table = ServerTable(
        "far",
        "far",
        command=(sys.executable, "-c", "pass", "token-123"),
        env={"KEY": "value-456"},
        accepted=str(tmp_path / "a"),
    )
    engine = Engine(plugins="none")
    assert add_server(engine, table) is not None
    with browser(app(engine, servers=[table])) as client:
        overview = client.get("/health")
        client.post("/health/servers/far/review")
        html = eventually(client, "/health/servers/far", "The server cannot be used")

    assert "problem" in text_of(overview)
    assert not re.search(r"token-123|value-456", overview + html)


def test_texts_of_servers_are_escaped(application: ConsoleApp, far: ChangingServer) -> None:
    """Names, descriptions and the reasons why tools cannot be used."""
    far.file.write_text(
        json.dumps(
            [
                {"name": HOSTILE, "description": HOSTILE, "inputSchema": {"type": "object", HOSTILE: HOSTILE}},
                {"name": "add", "description": f"line\n+{HOSTILE}", "inputSchema": {"type": "object"}},
            ]
        )
    )
    with browser(application) as client:
        html = compared(client)

    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "style=" not in html


# Workers


def test_workers_of_isolated_tools_are_shown() -> None:
    """What confines each, and how many calls it has served."""
    from neuroscript import Isolation

    engine = Engine(
        plugins=["neuroscript-std"], policy=ExecutionPolicy(isolate=Isolation(plugins=("neuroscript-std",), require=()))
    )
    with browser(app(engine)) as client:
        assert "No worker runs now." in text_of(client.get("/health"))
        assert engine.execute(ToolCall("math.add", (1, 2))).value == 3
        text = text_of(client.get("/health"))

    assert re.search(r"Runs Confined by Calls State neuroscript-std .* 1 idle", text)
