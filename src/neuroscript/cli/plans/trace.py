"""``neuroscript trace``: show the trace of a plan as text or as a picture, and compare two traces."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.terminal.argument_parser import add_subparser
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.inputs import STDIN, GeneratedFile, count_of, text_of, write
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, Style, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_path
from neuroscript.workflow.trace.diff import TraceDifference, trace_diff
from neuroscript.workflow.trace.file import load_trace, trace_of_json, trace_to_data
from neuroscript.workflow.trace.svg import trace_svg
from neuroscript.workflow.trace.text import endings, headline, table
from neuroscript.workflow.trace.trace import Trace

ACTIONS: Final = ("show", "diff")


TRACE: Final = """\
A trace is a JSON file that records the run of a plan: the status, inputs, output, attempts and times of
each node."""


SHOW: Final = """\
Shows how the plan ended, one row for each node, and the output of the plan. --svg draws its graph and
times instead; - is stdout."""


DIFF: Final = """\
Compares the plans, and the status, inputs, output and attempts of each node. Times that are far apart
are listed but do not count as a difference. Exits 0 if the runs are the same, 1 if they differ, 2 if a
file cannot be read or is invalid."""


def add_trace(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "trace", "show or compare traces of plans", description=TRACE)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    show = add_subparser(
        actions,
        layout,
        "show",
        "show the nodes and the output of a run",
        json_help="print the trace as one line of JSON",
        description=SHOW,
    )
    show.add_argument("--svg", metavar="OUT", help="draw the graph and its times to this SVG file")
    show.add_argument("file", metavar="FILE", help="the trace; - is stdin")
    diff = add_subparser(
        actions,
        layout,
        "diff",
        "show the differences between two runs",
        json_help="print the differences as JSON",
        description=DIFF,
    )
    diff.add_argument("a", metavar="A", help="the trace of the first run; - is stdin")
    diff.add_argument("b", metavar="B", help="the trace of the second run; - is stdin")


STDOUT: Final = "-"


STYLES: Final[Mapping[str, Style]] = {"succeeded": "good", "failed": "bad", "skipped": "mended", "unstarted": "dim"}


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Show a trace or compare two, and return the exit code.

    Raises:
        UsageError: There is no action, standard input cannot be read, or a file cannot be written.
        SpecError: A file cannot be read or is not a trace; the error lists every problem.
    """
    match options.action:
        case "show":
            return _show(_loaded(options.file), options, output)
        case "diff":
            return _diff(options, output)
        case _:
            raise UsageError(f"expected an action: {', '.join(ACTIONS)} (see neuroscript trace --help)")


def _loaded(file: str) -> Trace:
    return trace_of_json(text_of(STDIN), source="standard input") if file == STDIN else load_trace(file)


def _show(trace: Trace, options: Namespace, output: Output) -> int:
    if options.svg is not None:
        _draw(trace, options, output)
    elif options.json:
        output.json(trace_to_data(trace))
    else:
        show(_blocks(trace), output)
    return OK


def _draw(trace: Trace, options: Namespace, output: Output) -> None:
    try:
        text = trace_svg(trace)
    except ValueError as error:
        raise UsageError(f"cannot draw the picture: {error}") from None
    if options.svg == STDOUT:
        output.json({"file": STDOUT, "text": text}) if options.json else output.write(text)
        return
    write([GeneratedFile(Path(options.svg), text)])
    if options.json:
        output.json({"file": options.svg, "nodes": len(trace.nodes)})
    else:
        output.text(f"{quote_path(options.svg)}: {count_of(len(trace.nodes), 'node')}")


def _blocks(trace: Trace) -> Iterator[Rows]:
    yield line(headline(trace), "title")
    yield EMPTY
    head, *nodes = table(trace)
    yield Rows((tuple(Cell(text, "dim") for text in head), *map(_cells, nodes)), wrapped=False)
    yield EMPTY
    yield Rows(tuple((Cell(name, "dim"), cell(text)) for name, text in endings(trace)), wrapped=False)


def _cells(row: tuple[str, ...]) -> tuple[Cell, ...]:
    name, status, *facts, what = row
    style = STYLES[status]
    outcome = cell(what, "" if status == "succeeded" else style)
    return cell(name, "name"), cell(status, style), *map(cell, facts), outcome


# Differences


def _diff(options: Namespace, output: Output) -> int:
    if options.a == options.b == STDIN:
        raise UsageError("only one of the two traces can be read from standard input")
    found = trace_diff(*_both(options, output))
    differing = [each for each in found if not each.is_time]
    if options.json:
        output.json({"ok": not differing, "differences": [_data(each) for each in found]})
    else:
        show(_difference_blocks(found, len(differing)), output)
    return FAILED if differing else OK


def _both(options: Namespace, output: Output) -> list[Trace]:
    """Return the two traces; if both files are invalid, report the problems of both."""
    traces, errors = [], []
    for file in (options.a, options.b):
        try:
            traces.append(_loaded(file))
        except SpecError as error:
            errors.append(error)
    if len(errors) > 1:
        output.say(str(errors[0]))
    if errors:
        raise errors[-1]
    return traces


def _data(each: TraceDifference) -> dict[str, Any]:
    return {"path": each.path, "text": each.text, "time": each.is_time}


def _difference_blocks(found: tuple[TraceDifference, ...], count: int) -> Iterator[Rows]:
    if found:
        styles: dict[bool, Style] = {True: "dim", False: ""}
        yield Rows(
            tuple((cell(each.path, "name"), cell(each.text, styles[each.is_time])) for each in found), wrapped=False
        )
        yield EMPTY
    yield line(count_of(count, "difference") if count else "no differences")
