"""``neuroscript runs``: the runs that a database keeps, what became of their calls, and going on with one.

Source: issue "Beyond one machine".
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from neuroscript.cli.exits import FAILED, OK, UsageError
from neuroscript.cli.opening import MakeEngine, opened
from neuroscript.cli.output import Output
from neuroscript.cli.pages import Cell, Rows, Style, cell
from neuroscript.cli.printing import show


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Do what is asked about runs, and return the exit code.

    Raises:
        UsageError: DBOS is not installed.
        SpecError: The database can not be used, there is no such run, or nothing can be done with it.
    """
    try:
        from neuroscript.workflow.durable import lookout
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    if options.action == "list":
        return _listed(lookout.list_runs(options.url), options, output)
    if options.action == "cancel":
        state = lookout.cancel(options.url, options.run)
        _show(options, output, state)
        return OK
    code = _resumed(options, output, make_engine) if options.action == "resume" else OK
    state, calls = lookout.show_run(options.url, options.run)
    _show(options, output, state, calls)
    return code


def _resumed(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    from neuroscript.workflow.durable.beating import LEASE
    from neuroscript.workflow.durable.running import resume

    lease = LEASE if options.lease is None else options.lease
    with opened(make_engine, output, options) as engine, output.tools_aside():
        trace = resume(engine, options.url, options.run, lease=lease, works=not options.no_work)
    return OK if trace.status == "succeeded" else FAILED


def _listed(states: Sequence[Any], options: Namespace, output: Output) -> int:
    if options.json:
        output.json([attrs.asdict(state) for state in states])
    elif states:
        show([Rows(tuple(_row(state) for state in states), wrapped=False)], output)
    else:
        output.say("no runs")
    return OK


def _row(state: Any) -> tuple[Cell, ...]:
    words = [cell(state.id, "name"), cell(state.plan), cell(state.status, _style(state.status))]
    return (*words, cell(_time(state.started), "dim"), cell(_seconds(state), "dim"), cell(state.error))


def _show(options: Namespace, output: Output, state: Any, calls: Sequence[Any] = ()) -> None:
    if options.json:
        data = attrs.asdict(state)
        if options.action != "cancel":
            data["calls"] = [attrs.asdict(call) for call in calls]
        output.json(data)
        return
    show([Rows((_row(state),), wrapped=False), *_table(calls)], output)


def _table(calls: Sequence[Any]) -> Iterator[Rows]:
    if calls:
        yield Rows(tuple(_call_row(call) for call in calls), indent=2, wrapped=False)


def _call_row(call: Any) -> tuple[Cell, ...]:
    item = "" if call.item is None else f"[{call.item}]"
    words = [cell(f"{call.node}{item}", "name"), cell(call.tool), cell(call.status, _style(call.status))]
    again = f"attempt {call.number}" if call.number > 1 else ""
    taken = f"begun {call.begun} times" if call.begun > 1 else ""
    seconds = "" if call.seconds is None else f"{call.seconds:.3f} s"
    return (*words, cell(seconds, "dim"), cell(", ".join(filter(None, (again, taken)))))


def _style(status: str) -> Style:
    if status in ("succeeded", "ok"):
        return "good"
    return "mended" if status in ("running", "waiting", "interrupted") else "bad"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _seconds(state: Any) -> str:
    return "" if state.ended is None else f"{state.ended - state.started:.3f} s"
