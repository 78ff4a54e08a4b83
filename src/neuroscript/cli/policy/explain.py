"""``neuroscript policy explain``: the outcome of each check for a call, and the rule that decides."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from neuroscript.cli.calls.call import call_from_arguments, file_arguments
from neuroscript.cli.calls.dry_run import decision_to_data
from neuroscript.cli.env.engine import MakeEngine, aliases_of, open_engine, require_tool
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, Style, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.cli.terminal.remedies import action, advice
from neuroscript.engine.explanation.checks import Check, Outcome, explain
from neuroscript.engine.explanation.tool_sources import source_of
from neuroscript.errors import ArgumentError
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.tools.tool import ToolImplementation

STYLES: Final[dict[Outcome, Style]] = {"passes": "good", "refuses": "bad", "asks": "mended", "depends": "dim"}
INDENT: Final = 2


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Print the outcome of each check for a call and the decision about it, and return 0.

    Raises:
        ToolNotFound: The tool is unknown.
    """
    text = file_arguments(options)
    with open_engine(make_engine, output, options) as engine:
        tool = require_tool(engine, options.name, is_own=make_engine is None)
        call = _call(tool, options, text)
        found = explain(engine, tool, source_of(engine, tool.name), call, old=aliases_of(engine, tool))
    decision = found.decision
    if options.json:
        checks = [*map(attrs.asdict, found.checks)]
        output.json({"tool": tool.name, "checks": checks, "decision": decision_to_data(decision)})
    else:
        show(_blocks(tool, found.checks, found.text), output)
        if action(decision):
            output.text(advice(decision))
    return OK


def _call(tool: ToolImplementation, options: Namespace, text: str | None) -> ToolCall | ArgumentError | None:
    """Return the call to explain, or the error in its arguments, or None to explain the tool without arguments."""
    if text is not None:
        return ToolCall(tool.name, text)
    if tool.spec.args and not options.words and not options.values:
        return None
    call = call_from_arguments(tool, options)
    if isinstance(call, ToolResult):
        assert isinstance(call.error, ArgumentError)
        return call.error
    return call


def _blocks(tool: ToolImplementation, checks: Sequence[Check], outcome: str) -> Iterator[Rows]:
    yield line(tool.name, "name")
    yield Rows(tuple(map(_row, checks)), indent=INDENT)
    yield from (EMPTY, line(outcome))


def _row(check: Check) -> tuple[Cell, ...]:
    return cell(check.name), cell(check.outcome, STYLES[check.outcome]), cell(check.rule, "name"), cell(check.text)
