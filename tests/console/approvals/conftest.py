"""A served console with an inbox and a directory of suspended calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.console.approvals.desks import Desk, Running, desk_tools, in_thread
from tests.console.conftest import ServedConsole, serving

from neuroscript import Engine, ExecutionPolicy, FileApprover
from neuroscript.console import Inbox, app


@attrs.frozen
class ServedDesk(Desk):
    """An engine with an inbox, and its console.

    Attributes:
        served: The console.
        directory: Its suspended calls.
    """

    served: ServedConsole
    directory: Path

    def call(self, name: str, *values: Any) -> Running:
        """Run a call in a thread and in a session of its own."""
        return in_thread(lambda: self.engine.session().execute({"name": name, "arguments": list(values)}))

    def suspend(self, name: str, *values: Any) -> Path:
        """Suspend a call in another engine, as another process does, and return its file."""
        before = set(self.directory.glob("*.json"))
        policy = ExecutionPolicy(approver=FileApprover(self.directory))
        with Engine(plugins=(), toolsets=[desk_tools([])], policy=policy) as other:
            result = other.session().execute({"name": name, "arguments": list(values)})
        assert result.error is not None
        assert (result.error.code, result.error.retry) == ("policy.pending", "later")
        (path,) = set(self.directory.glob("*.json")) - before
        return path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[ServedDesk]:
    """Return an engine whose calls wait in the inbox of a console."""
    inbox, ran, directory = Inbox(), list[Any](), tmp_path / "approvals"
    engine = Engine(plugins=(), toolsets=[desk_tools(ran)], policy=ExecutionPolicy(approver=inbox))
    with serving(app(engine, inbox=inbox, approvals=directory)) as served:
        yield ServedDesk(engine, inbox, ran, served, directory)
