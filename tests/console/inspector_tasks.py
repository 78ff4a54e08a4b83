"""The tasks of an operator in MCP Inspector, with the same tools, as far as it can do them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
from playwright.sync_api import Locator, Page, expect
from tests.browsers import PageOpener
from tests.console.operator_counts import Operator
from tests.console.store import TOOLS
from tests.interop import mcp_inspector

ROOT: Final = Path(__file__).parents[2]

IMPOSSIBLE: Final = {
    "approve": "it asks about its own calls only, and the only answers are yes and no",
    "reject": "it asks about its own calls only, and sends no reason",
    "deletion": "it shows only the messages of its own connection",
    "verify": "it has no audit log",
    "resume": "it has no plans",
    "compare": "it has no plans",
    "review": "it shows the current definition, and stores no earlier one",
}
"""Why it cannot do the other tasks; a test reads from its page what this is based on."""

NOTES: Final = {
    "find": "Its search compares names, not descriptions, so the operator searches twice.",
    "nested": "Its form shows no problem: it changes 200 to 100 when the field loses the focus.",
    "refusal": "It shows the error for models, without the rule and without what to grant.",
}
"""What differs in the tasks that it can do."""

REFUSAL: Final = "policy.capability: needs net:read. Only the host can change that; do not repeat this call."
QUESTION: Final = ["Let it run"]
"""The fields of its dialog for a call that needs approval."""


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Run the Inspector for ``neuroscript mcp serve``, and yield its address.

    Args:
        directory: Contains the sandbox of the tools, and becomes the Inspector's home directory.

    Raises:
        OSError: The Inspector cannot be installed.
    """
    tools = [sys.executable, "-m", "neuroscript", "mcp", "serve", *TOOLS, "--sandbox", str(directory / "sandbox")]
    command = [*mcp_inspector.installed(mcp_inspector.LAUNCHER), "--web", "--transport", "stdio", "--", *tools]
    environment = {
        **os.environ,
        "HOME": str(directory),
        "CLIENT_PORT": str(_free_port()),
        "MCP_SANDBOX_PORT": str(_free_port()),
        "MCP_AUTO_OPEN_ENABLED": "false",
        "MCP_INSPECTOR_SECRET_STORE": "memory",
    }
    with subprocess.Popen(
        command, stdout=-1, stderr=subprocess.STDOUT, text=True, env=environment, cwd=ROOT
    ) as running:
        try:
            assert running.stdout is not None
            lines = iter(running.stdout.readline, "")
            yield next(line.strip() for line in lines if "MCP_INSPECTOR_API_TOKEN=" in line)
        finally:
            running.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def connected(directory: Path, open_page: PageOpener) -> Iterator[Inspector]:
    """Yield an Inspector that shows the tools; connecting is not counted, like signing in to the console.

    Args:
        directory: An empty directory.

    Raises:
        OSError: The Inspector cannot be installed.
    """
    (directory / "sandbox").mkdir()
    (directory / "sandbox" / "letter.txt").write_text("Dear Vera\n")
    with served(directory) as url:
        page = open_page(url)
        connect(page)
        yield Inspector(page)
        open_page.close()


def connect(page: Page) -> None:
    """Connect to the tools, and show them."""
    page.get_by_role("switch", name="Connect or disconnect").locator("xpath=..").click()
    page.get_by_text("Tools", exact=True).click()
    expect(page.get_by_role("heading", name="Tools (")).to_be_visible()


def areas(page: Page) -> list[str]:
    """Return the names of its pages, and of the panes beside them."""
    return [label for each in page.get_by_role("radiogroup").all() for label in each.inner_text().splitlines() if label]


@attrs.frozen
class Inspector:
    """The Inspector in a page, connected to the tools."""

    page: Page

    def find(self, operator: Operator) -> None:
        """Find the tool that computes the checksum of a file, and call it. The search compares only names."""
        self._search(operator, "checksum")
        expect(self.tools).to_have_count(0)
        self._search(operator, "hash")
        operator.click(self.tools.filter(has_text="fs.hash"))
        operator.type(self.page.get_by_role("textbox", name="filepath"), "letter.txt")
        self._execute(operator)
        expect(self.page.get_by_text(re.compile(r"^[0-9a-f]{64}$")).first).to_be_visible()

    def nested(self, operator: Operator) -> None:
        """Call a tool with a list of maps. The form changes a number that is too large instead of showing a problem."""
        self._search(operator, "quote")
        operator.click(self.tools.filter(has_text="store.quote"))
        operator.type(self.page.get_by_role("textbox", name="customer"), "Vera")
        operator.click(self.page.get_by_role("button", name="Add item to lines"))
        count = self.page.get_by_role("textbox", name="count")
        operator.type(count, "200")
        operator.type(self.page.get_by_role("textbox", name="item"), "pen")
        expect(count).to_have_value("100")
        expect(self.page.locator("[aria-invalid=true]")).to_have_count(0)
        operator.type(count, "20")
        self._execute(operator)
        expect(self.page.get_by_text('"total": 30').first).to_be_visible()

    def refusal(self, operator: Operator) -> None:
        """Call a tool that is refused, and read the error."""
        self._search(operator, "http.get")
        operator.click(self.tools.filter(has_text="http.get"))
        operator.type(self.page.get_by_role("textbox", name="url"), "https://example.com/")
        self._execute(operator)
        expect(self.page.get_by_role("alert", name="Tool Error")).to_contain_text(REFUSAL)

    def question(self) -> tuple[str, list[str]]:
        """Call a tool that needs approval, and return the text of the dialog and the names of its fields."""
        operator = Operator(self.page)
        self._search(operator, "refund")
        operator.click(self.tools.filter(has_text="store.refund"))
        operator.type(self.page.get_by_label("order_id"), "7")
        operator.type(self.page.get_by_label("amount"), "10")
        self._execute(operator)
        dialog = self.page.get_by_role("dialog")
        fields = dialog.locator("input:not([role=switch]), textarea, select")
        expect(fields).to_have_count(1)
        text = dialog.inner_text()
        names = [each.evaluate("element => element.labels[0].innerText") for each in fields.all()]
        dialog.get_by_role("button", name="Decline").click()
        return text, names

    @property
    def tools(self) -> Locator:
        """The tools that the search has found."""
        return self.page.get_by_role("button", name=re.compile(r"^\w+\.\w+ "))

    def _search(self, operator: Operator, word: str) -> None:
        operator.type(self.page.get_by_role("textbox", name="Search tools..."), word)

    def _execute(self, operator: Operator) -> None:
        operator.click(self.page.get_by_role("button", name="Execute Tool"))
