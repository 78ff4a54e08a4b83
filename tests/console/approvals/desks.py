"""An engine whose calls wait in an inbox, and what runs such calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep
from typing import Any

import attrs

from neuroscript import (
    Approval,
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Runtime,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.console import Inbox
from neuroscript.console.inbox import WaitingRequest

ASKS = ToolPolicy(requires_approval=True, effects=("deletes",))


def desk_tools(ran: list[Any]) -> Toolset:
    """Return tools that need an approval, and that note their values in *ran*."""
    tools = Toolset("desk")

    @tools.tool(policy=ASKS)
    def delete(path: str, force: bool = False) -> str:
        """Delete a file."""
        ran.append((path, force))
        return f"deleted {path}"

    @tools.tool(policy=ASKS)
    async def wipe(count: int) -> int:
        """Delete some files."""
        ran.append(count)
        return count

    def send(rt: Runtime, to: str, key: str) -> str:
        ran.append((to, key))
        return f"sent to {to}"

    args = (ArgSpec("to", ArgType.STRING), ArgSpec("key", ArgType.STRING, secret=True))
    tools.add(ToolSpec("send", "desk", args, description="Send a message."), send, policy=ASKS)

    @tools.tool(policy=ASKS)
    def archive(paths: list[str], days: int = 1) -> int:
        """Archive files for some days."""
        ran.append((paths, days))
        return len(paths)

    @tools.tool(policy=ToolPolicy(timeout=1.0))
    def within(rt: Runtime) -> Any:
        """Delete a file in limited time."""
        return rt.call_tool("desk.delete", ("inner",))

    return tools


@attrs.frozen
class Desk:
    """An engine with an inbox.

    Attributes:
        ran: The values of the calls that have run.
    """

    engine: Engine
    inbox: Inbox
    ran: list[Any]

    def waiting(self, count: int = 1) -> tuple[WaitingRequest, ...]:
        """Wait until a number of requests wait, and return them, newest first."""
        until(lambda: len(self.inbox) == count)
        return self.inbox.waiting

    def answer(self, waiting: WaitingRequest, approval: Approval, by: str = "ada") -> Any:
        """Answer a request as the page does."""
        return self.inbox.answer(waiting.id, approval, digest=waiting.request.digest, by=by)


@contextmanager
def opened_desk(**options: Any) -> Iterator[Desk]:
    """Open an engine whose approver is an inbox with some options."""
    inbox, ran = Inbox(**options), list[Any]()
    with Engine(plugins=(), toolsets=[desk_tools(ran)], policy=ExecutionPolicy(approver=inbox)) as engine:
        yield Desk(engine, inbox, ran)


@attrs.define
class Running:
    """A call in a thread of its own."""

    thread: Thread
    outcome: list[Any]

    def result(self) -> Any:
        """Wait for the call, and return its result."""
        self.thread.join(60)
        return self.outcome[0]


def in_thread(work: Callable[[], Any]) -> Running:
    """Run a function in a thread."""
    outcome: list[Any] = []
    thread = Thread(target=lambda: outcome.append(work()), daemon=True)
    thread.start()
    return Running(thread, outcome)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "the condition did not become true in time"
        sleep(0.005)
