"""Tools and plans for the pages of plans, and browsers whose runs go on between requests."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated, Any

from starlette.testclient import TestClient
from tests.console.page_client import BASE, PageClient

from neuroscript import Arg, Engine, ExecutionPolicy, Runtime, ToolPolicy, Toolset
from neuroscript.console import User, app
from neuroscript.console.activities import Activity

SUM = """\
name = "sum"
description = "Add and double."

[inputs]
a = "int"
b = { type = "int", required = false, default = 2 }

[nodes.first]
tool = "box.add"
inputs = { a = "${input.a}", b = "${input.b}" }

[nodes.double]
tool = "box.add"
inputs = { a = "${first}", b = "${first}" }
"""

BROKEN = """\
name = "broken"

[nodes.first]
tool = "box.ad"
inputs = { a = 1, b = 2 }

[nodes.second]
tool = "box.add"
inputs = { a = "x", b = "${first}" }
"""

WAITS = """\
name = "waits"

[nodes.first]
tool = "box.add"
inputs = { a = 1, b = 2 }

[nodes.slow]
tool = "box.wait"
inputs = { text = "sum ${first}" }

[nodes.last]
tool = "box.add"
inputs = { a = "${first}", b = 1 }
depends_on = ["slow"]
"""


class Box:
    """A set of tools, of which one waits until the test lets it go.

    Attributes:
        tools: The tools.
        go: Set to let calls of ``box.wait`` return.
        ran: The names of the tools with effects that ran.
    """

    def __init__(self) -> None:
        self.go = Event()
        self.waiting = Event()
        self.ran: list[str] = []
        self.tools = tools = Toolset("box")

        @tools.tool(policy=ToolPolicy(effects=("pure",)))
        def add(a: int, b: int) -> int:
            """Return the sum of two numbers."""
            return a + b

        @tools.tool(policy=ToolPolicy(effects=("reads", "idempotent")))
        def wait(text: str) -> str:
            """Wait for the test, and return the text."""
            self.waiting.set()
            assert self.go.wait(60)
            return text

        @tools.tool(policy=ToolPolicy(effects=("writes",)))
        def put(text: str) -> str:
            """Change something."""
            self.ran.append("put")
            return text

        @tools.tool(policy=ToolPolicy(effects=("reads",)))
        def put_indirectly(rt: Runtime, text: str) -> str:
            """Change something through another tool."""
            return str(rt.call_tool("box.put", [text]))

        @tools.tool(policy=ToolPolicy(effects=("reads",), requires_approval=True))
        def approved(text: str) -> str:
            """Return the text after an approver has approved it."""
            self.ran.append("approved")
            return text

        @tools.tool(policy=ToolPolicy(effects=("pure",)))
        def sign(key: Annotated[str, Arg("The key.", secret=True)], text: str) -> str:
            """Sign a string."""
            return text[::-1]

    def engine(self, policy: ExecutionPolicy | None = None) -> Engine:
        return Engine(plugins="none", toolsets=self.tools, policy=policy)


@contextmanager
def browsing(
    box: Box, plans: Path | None, *, policy: ExecutionPolicy | None = None, user: User | None = None, **options: Any
) -> Iterator[PageClient]:
    """Serve a console in an event loop that runs until the end, and sign a browser in."""
    with box.engine(policy) as engine:
        console = app(engine, plans=plans, **options)
        with TestClient(console, base_url=BASE, follow_redirects=False) as client:
            try:
                yield PageClient.of(console, client, user)
            finally:
                box.go.set()
                for each in console.console.visitors:
                    for activity in each.activities:
                        client.portal.call(activity.wait)  # type: ignore[union-attr]


def activity_of(client: PageClient) -> Activity:
    """Return the activity that was started last."""
    found: Activity = next(iter(next(iter(client.app.console.visitors)).activities))
    return found


def ended(client: PageClient) -> Activity:
    """Wait until the last activity has ended, and return it."""
    found = activity_of(client)
    deadline = time.monotonic() + 60
    while not found.finished and time.monotonic() < deadline:
        time.sleep(0.01)
    assert found.finished
    return found


def submit(client: PageClient, file: str, inputs: str = "{}", **form: str) -> Any:
    """Run a plan file with inputs as JSON, and return the response."""
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', client.get(f"/plans/files/{file}"))
    assert found
    sent = {"digest": found[1], "$do": "run", "$edited": "json", "$json": inputs, **form}
    return client.post(f"/plans/files/{file}/run", **sent)


def start(client: PageClient, file: str, inputs: str = "{}", **form: str) -> str:
    """Run a plan file with inputs as JSON, and return the path of the page of the run."""
    response = submit(client, file, inputs, **form)
    assert response.status_code == 303, response.text
    return str(response.headers["location"])
