"""``neuroscript execute``: run a file of tool calls as models send them, with one result for each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from neuroscript.cli.calls.dry_run import code_of, decide, decision_to_data
from neuroscript.cli.calls.results import Outcome, ParsedLine, calls, outcomes
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import OK, UsageError, exit_code
from neuroscript.cli.terminal.inputs import open_input
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.engine import Engine
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.tools.serialization import result_to_data


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run each call of a file, print its result at once, and return the exit code of the first that failed.

    Raises:
        UsageError: The file cannot be read, or ``--report`` is combined with ``--json`` or ``--dry-run``.
    """
    if options.report and options.json:
        raise UsageError("--report and --json cannot be used together; omit one of them")
    if options.report and options.dry_run:
        raise UsageError("--report and --dry-run cannot be used together; omit one of them")
    with (
        open_input(options.file, waits=True) as source,
        open_engine(make_engine, output, options) as engine,
        output.tools_aside(),
    ):
        if options.dry_run:
            return _foreseen(engine, calls(source), output)
        if options.report:
            from neuroscript.cli.calls.report import report

            return report(source.title, outcomes(engine, source, options.timeout), output)
        return _print_outcomes(outcomes(engine, source, options.timeout), output)


def _foreseen(engine: Engine, all_calls: Iterable[ParsedLine], output: Output) -> int:
    code = OK
    for parsed in all_calls:
        decision = decide(engine, parsed.call)
        number = {} if isinstance(parsed.call, ToolCall) else {"line": parsed.line}
        output.json({"id": parsed.call.id, **decision_to_data(decision), **number})
        code = code or code_of(decision)
    return code


def _print_outcomes(all_outcomes: Iterable[Outcome], output: Output) -> int:
    code = OK
    for outcome in all_outcomes:
        output.json(_data(outcome))
        if code == OK and outcome.result.error is not None:
            code = exit_code(outcome.result.error)
    return code


def _data(outcome: Outcome) -> dict[str, Any]:
    data = result_to_data(outcome.result)
    return data if outcome.is_call else {**data, "line": outcome.line}
