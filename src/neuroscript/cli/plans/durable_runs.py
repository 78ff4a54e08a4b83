"""``neuroscript runs``: list, show, resume, cancel and prune the durable runs in a database."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import attrs

from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.plans.run_plan import drive_plan
from neuroscript.cli.terminal.exit_codes import OK, require_extra
from neuroscript.cli.terminal.output import Cell, Output, Rows, Style, cell
from neuroscript.cli.terminal.printing import show
from neuroscript.engine.engine import Engine
from neuroscript.io.text import escape, quote_untrusted
from neuroscript.workflow.runner import Watch
from neuroscript.workflow.trace.trace import Trace


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run an action of ``runs`` and return the exit code.

    Raises:
        UsageError: The extra ``durable`` is not installed.
        SpecError: The database cannot be used, the run is unknown, or its state does not permit the action.
    """
    with require_extra():
        from neuroscript.workflow.durable import inspection

        if options.action == "resume":
            from neuroscript.workflow.durable import resume
    match options.action:
        case "list":
            return _listed(inspection.list_runs(options.url), options, output)
        case "prune":
            _pruned(options, output)
        case "cancel":
            _show(options, output, inspection.cancel(options.url, options.run))
        case "show":
            _show(options, output, *inspection.show_run(options.url, options.run))
        case _:
            drive, plan = partial(_resumed, resume, options), inspection.plan_of(options.url, options.run)
            is_made_here = not options.no_local_calls and inspection.show_run(options.url, options.run)[0].ended is None
            return drive_plan(plan, drive, options, output, make_engine, is_made_here=is_made_here)
    return OK


def _pruned(options: Namespace, output: Output) -> None:
    from neuroscript.workflow.durable.retention import prune

    count = prune(options.url, options.older_than)
    if options.json:
        output.json({"removed": count})
    else:
        output.say("removed 1 run" if count == 1 else f"removed {count} runs")


def _resumed(resume: Callable[..., Trace], options: Namespace, engine: Engine, watch: Watch | None) -> Trace:
    return resume(
        engine,
        options.url,
        options.run,
        watch=watch,
        lease=options.lease,
        local_calls=not options.no_local_calls,
        exact=options.exact,
    )


def _listed(states: Sequence[Any], options: Namespace, output: Output) -> int:
    if options.json:
        output.json([attrs.asdict(state) for state in states])
    elif states:
        show([Rows(tuple(_row(state) for state in states), wrapped=False)], output)
    else:
        output.say("no runs")
    return OK


def _row(state: Any) -> tuple[Cell, ...]:
    words = [cell(state.id, "name"), cell(quote_untrusted(state.plan)), cell(state.status, _style(state.status))]
    return (
        *words,
        cell(_time(state.started) if state.started else "", "dim"),
        cell(_seconds(state), "dim"),
        cell(escape(state.error)),
    )


def _show(options: Namespace, output: Output, state: Any, calls: Sequence[Any] | None = None) -> None:
    if options.json:
        more = {} if calls is None else {"calls": [attrs.asdict(call) for call in calls]}
        output.json(attrs.asdict(state) | more)
        return
    table = [Rows(tuple(_call_row(call) for call in calls), indent=2, wrapped=False)] if calls else []
    show([Rows((_row(state),), wrapped=False), *table], output)


def _call_row(call: Any) -> tuple[Cell, ...]:
    item = "" if call.item is None else f"[{call.item}]"
    words = [cell(f"{call.node}{item}", "name"), cell(call.tool), cell(call.status, _style(call.status))]
    again = f"attempt {call.number}" if call.number > 1 else ""
    lost = "" if call.has_worker else "no living worker has its tool in the version of the run"
    starts = f"started {call.starts} times" if call.starts > 1 else ""
    seconds = "" if call.seconds is None else f"{call.seconds:.3f} s"
    return (*words, cell(seconds, "dim"), cell(", ".join(filter(None, (again, starts, lost)))))


def _style(status: str) -> Style:
    if status in ("succeeded", "ok"):
        return "good"
    return "mended" if status in ("running", "waiting", "interrupted", "cancelled") else "bad"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _seconds(state: Any) -> str:
    return "" if state.ended is None else f"{state.ended - state.started:.3f} s"
