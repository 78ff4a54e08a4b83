"""A call and its record, as hooks receive them."""

from __future__ import annotations

from typing import Any

from neuroscript import Capability, ToolPolicy, hookimpl
from neuroscript.runtime.records import CallRecord, PendingCall, ToolFacts


def call(**arguments: Any) -> PendingCall:
    """Return a call that waits for its gates."""
    return PendingCall("shop.refund", arguments, (Capability.parse("shop:pay"),), ToolPolicy(), "s1", 1)


def record(code: str = "ok") -> CallRecord:
    """Return the record of a call that has ended."""
    about = ToolFacts("shop.refund")
    return CallRecord("outcome", about, "r1", "s1", 1, 0, 1, "", 0.0, (), (), (), b"", (), code, "*", {}, 0.1)


class Answering:
    """A gate with a fixed answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @hookimpl
    def neuroscript_decide(self, call: PendingCall) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Telling:
    """A plugin with every hook except the gate."""

    def __init__(self, told: list[Any]) -> None:
        self.told = told

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> None:
        self.told.append(("started", record.tool))

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        self.told.append(("finished", record.code))

    @hookimpl
    def neuroscript_tool_registered(self, tool: Any, origin: str) -> None:
        self.told.append(("registered", tool, origin))

    @hookimpl
    def neuroscript_engine_closed(self, left: tuple[str, ...]) -> None:
        self.told.append(("closed", left))
