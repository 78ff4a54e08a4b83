"""Models with scripted replies, and engines for their conversations."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.llm import (
    Conversation,
    aconverse,
    converse,
)
from neuroscript.runtime.replies import Reply, RetriedRequest, Usage


@attrs.define
class Script:
    """A model that returns fixed turns, one for each request."""

    turns: list[Turn | Exception]
    received: list[tuple[Turn, ...]] = attrs.Factory(list)
    offered: list[list[str]] = attrs.Factory(list)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        return self.ask_with_tools(turns, ())

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        self.received.append(tuple(turns))
        self.offered.append([spec.full_name for spec in tools])
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn

    def embed(self, text: str) -> Sequence[float]:
        return [0.0]


@attrs.define
class Streaming(Script):
    """The same model with streaming, usage and retries."""

    def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Reply:
        retried = RetriedRequest("llm.rate", 0.5)
        on_retry(retried)
        turn = self.ask_with_tools(turns, tools)
        for letter in turn.content:
            on_text(letter)
        return Reply(turn, "tools" if turn.tool_calls else "end", Usage(10, 2), (retried,), 0.1)


def says(text: str) -> Turn:
    return Turn("assistant", text)


def asks(*calls: tuple[str, Any]) -> Turn:
    return Turn("assistant", tool_calls=tuple(ToolCall(n, a, id=f"c{i}") for i, (n, a) in enumerate(calls, start=1)))


class EntryPoints:
    """``converse`` and ``aconverse`` behind one interface, so that each test runs with both."""

    @staticmethod
    def sync(*args: Any, **options: Any) -> Conversation:
        return converse(*args, **options)

    @staticmethod
    def awaited(*args: Any, **options: Any) -> Conversation:
        return asyncio.run(aconverse(*args, **options))


@pytest.fixture(params=["sync", "awaited"])
def talk(request: pytest.FixtureRequest) -> Any:
    """``converse`` or ``aconverse``."""
    return getattr(EntryPoints, request.param)


def made(**options: Any) -> Engine:
    """Return an engine with the toolset of these tests."""
    toolset = Toolset("t")
    log: list[str] = options.pop("log", [])
    barrier: threading.Barrier = options.pop("barrier", None)

    def note(rt: Runtime, text: str) -> str:
        log.append(text)
        return text

    def look(rt: Runtime, text: str) -> str:
        if barrier is not None:
            barrier.wait(10)
        return text

    def fail(rt: Runtime) -> str:
        raise ToolFailed("the disk is full", retry="later")

    def total(rt: Runtime, numbers: list[int]) -> int:
        return sum(numbers)

    text = (ArgSpec("text", ArgType.STRING),)
    toolset.add(ToolSpec("note", "t", text, return_type=ArgType.STRING), note, policy=ToolPolicy(effects=("writes",)))
    toolset.add(ToolSpec("look", "t", text, return_type=ArgType.STRING), look, policy=ToolPolicy(effects=("reads",)))
    toolset.add(ToolSpec("fail", "t", return_type=ArgType.STRING), fail)
    numbers = (ArgSpec("numbers", ArgType.SLICE_INT),)
    toolset.add(ToolSpec("total", "t", numbers, return_type=ArgType.INT), total, policy=ToolPolicy(effects=("pure",)))
    return Engine(toolsets=[toolset], plugins="none", **options)


def approving(approver: Any) -> Engine:
    """Return an engine with one tool that needs approval and one that does not."""
    toolset = Toolset("a")
    toolset.add(ToolSpec("act", "a", return_type=ArgType.INT), lambda rt: 2, policy=ToolPolicy(requires_approval=True))
    toolset.add(ToolSpec("free", "a", return_type=ArgType.INT), lambda rt: 1)
    return Engine(toolsets=[toolset], plugins="none", policy=ExecutionPolicy(approver=approver))
