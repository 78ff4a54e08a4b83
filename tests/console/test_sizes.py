"""Sizes of pages and files, and the time that the server needs for a page."""

from __future__ import annotations

import gzip
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pytest
from tests.console.conftest import MakeApp, ServedConsole
from tests.console.visits import visits
from tests.console.world import world_with

from neuroscript import Engine, ToolPolicy, Toolset
from neuroscript.console import app
from neuroscript.console.application import ConsoleApp
from neuroscript.console.rendering import STATIC

MAX_PAGE_BYTES: Final = 60_000
"""Maximum size of the first page, without compression."""

MAX_STATIC_BYTES: Final = 60_000
"""Maximum size of all style sheets and scripts, compressed."""

MAX_PAGE_SECONDS: Final = 0.1
"""Maximum time that the server needs for a page."""

TOOLS: Final = 1_000


def many_tools() -> Toolset:
    """Return a thousand tools with descriptions."""
    tools = Toolset("many")

    def run(text: str, count: int = 1) -> str:
        """Return a string several times."""
        return text * count

    for number in range(TOOLS):
        description = f"Return text number {number} as often as the caller wants, and say what happened to it."
        tools.tool(run, name=f"run_{number}", description=description, policy=ToolPolicy(effects=("pure",)))
    return tools


def large_app() -> ConsoleApp:
    """Return a console of an engine with a thousand tools."""
    return app(Engine(plugins=(), toolsets=[many_tools()]))


@pytest.fixture
def make_app() -> MakeApp:
    """Return what makes the application of `console`."""
    return large_app


def test_first_page_of_many_tools_is_small(console: ServedConsole) -> None:
    """It shows one page of them."""
    client = console.sign_in()
    first = client.get("/", follow_redirects=True)

    assert first.status_code == 200
    assert "<h1>" in first.text
    assert len(first.content) <= MAX_PAGE_BYTES
    assert len(console.engine.tools) == TOOLS


def test_styles_and_scripts_are_small() -> None:
    """Together, whatever a page uses of them."""
    files = [path for path in STATIC.iterdir() if path.suffix in (".css", ".js")]

    assert len(files) >= 2
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) <= MAX_STATIC_BYTES


@pytest.mark.alone
@pytest.mark.full
def test_server_is_fast(tmp_path: Path, console: ServedConsole) -> None:
    """The shortest of some requests for each page, with a thousand tools and with every kind of content."""
    seconds: dict[str, float] = {}
    with world_with(tmp_path, str) as world:
        client = world.served.sign_in()
        for visit in visits(world, str):
            if visit.form is None and not visit.is_part:
                seconds[visit.path] = shortest(client, visit.path)
    many = console.sign_in()
    for path in ("/", *(f"/{area.name}" for area in areas_of(console))):
        seconds[f"many {path}"] = shortest(many, path)

    assert {path: each for path, each in seconds.items() if each > MAX_PAGE_SECONDS} == {}


def areas_of(console: ServedConsole) -> Any:
    """Return the areas in the navigation."""
    from neuroscript.console.areas import AREAS

    return [each for each in AREAS if each.is_shown(console.app.console)]


def shortest(client: Any, path: str) -> float:
    """Return the shortest time of some requests, in seconds."""
    times = []
    for _ in range(10):
        started = perf_counter()
        client.get(path, follow_redirects=True)
        times.append(perf_counter() - started)
    return min(times)
