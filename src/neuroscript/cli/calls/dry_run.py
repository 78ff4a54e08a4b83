"""What would become of a call: as a sentence, as plain data, and as the exit code that it would have had."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript.cli.terminal.exit_codes import ARGUMENTS, INTERNAL, OK, REFUSED, USAGE
from neuroscript.cli.terminal.remedies import advice
from neuroscript.engine.engine import Engine
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.interfaces import ToolCall, ToolResult


def decided(engine: Engine, call: ToolCall | ToolResult) -> Decision:
    """Return whether a call may run; of words or a line that are no call, that they are none."""
    if isinstance(call, ToolCall):
        return engine.check((call,))[0]
    assert call.error is not None
    return Decision.of(call.error, call.tool)


def decision_to_data(decision: Decision) -> dict[str, Any]:
    """Return a decision as plain data."""
    return {**attrs.asdict(decision), "remedy": advice(decision)}


def foreseen(decision: Decision) -> str:
    """Return a decision as a sentence.

    >>> foreseen(Decision("math.add", True, rule="math.*"))
    'math.add: would run (math.* allows it)'
    """
    if decision.asks:
        return f"{decision.tool}: would ask for an approval ({decision.rule} allows it)"
    if decision.allowed:
        return f"{decision.tool}: would run ({decision.rule} allows it)"
    if code_of(decision) == ARGUMENTS:
        return f"{decision.tool}: does not fit: {decision.text}"
    rule = f", by {decision.rule}" if decision.rule else ""
    return f"{decision.tool}: would be refused: {decision.text} ({decision.code}{rule})"


def code_of(decision: Decision) -> int:
    """Return the exit code that the call would have had, as far as that is known before it runs."""
    if decision.allowed:
        return OK
    match decision.code.partition(".")[0]:
        case "policy":
            return REFUSED
        case "tool":
            return USAGE
        case "engine":
            return INTERNAL
        case _:  # arguments have codes of limits too
            return REFUSED if decision.rule == "limits" else ARGUMENTS
