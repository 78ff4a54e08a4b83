"""What a console keeps of the work of browsers is bounded, whatever tools return."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from tests.console.page_client import BASE, PageClient

from neuroscript import Content, Engine, Image, Runtime, ToolPolicy, Toolset
from neuroscript.console import app
from neuroscript.console.tools import results
from neuroscript.console.tools.results import view_of

LARGE = 3_000_000


def test_value_of_a_call_that_has_ended_is_not_stored() -> None:
    """Its page needs only the beginning; a browser can look at fifty calls."""
    tools = Toolset("large")

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def text(rt: Runtime) -> str:
        """Return a large string."""
        return "x" * LARGE

    with (
        Engine(plugins=(), toolsets=[tools]) as engine,
        TestClient(application := app(engine), base_url=BASE, follow_redirects=False) as client,
    ):
        browser = PageClient.of(application, client)
        call = browser.post("/tools/large.text/run", **{"$do": "run"}).headers["location"]
        (activity,) = next(iter(application.console.visitors)).activities
        assert client.portal is not None
        client.portal.call(activity.wait)
        page = browser.get(call)

    assert ">done<" in page
    assert activity.view.result.value is None
    assert len(activity.view.view.text) < LARGE / 10
    assert sum(len(each.html) for each in activity.events) < LARGE / 2


def test_pictures_of_a_result_have_a_common_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that exceed it are left out."""
    monkeypatch.setattr(results, "MAX_PICTURE_BYTES", 100)
    pictures = [Image(b"GIF89a" + b"x" * size, "image/gif") for size in (40, 30, 20, 40)]
    view = view_of(Content(*pictures))

    assert [len(each.data) for each in view.pictures] == [46, 36]
