"""The decision about a call that is not run: as plain data and as an exit code."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript.cli.terminal.exit_codes import ARGUMENTS, INTERNAL, OK, REFUSED, USAGE
from neuroscript.cli.terminal.remedies import advice
from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.interfaces import ToolCall, ToolResult


def decide(engine: Engine, call: ToolCall | ToolResult) -> Decision:
    """Return the decision about a call; a result with an error is a refusal with that error."""
    if isinstance(call, ToolCall):
        return engine.check((call,))[0]
    assert call.error is not None
    return Decision.of(call.error, call.tool)


def decision_to_data(decision: Decision) -> dict[str, Any]:
    """Return a decision as plain data."""
    return {**attrs.asdict(decision), "remedy": advice(decision)}


def code_of(decision: Decision) -> int:
    """Return the exit code of a decision, 0 if the call may run."""
    if decision.allowed:
        return OK
    match decision.code.partition(".")[0]:
        case "policy":
            return REFUSED
        case "tool":
            return USAGE
        case "engine":
            return INTERNAL
        case _:  # invalid arguments can have limit codes too
            return REFUSED if decision.rule == "limits" else ARGUMENTS
