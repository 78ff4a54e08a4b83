"""The words of ``neuroscript trace``: what is asked about what a run of a plan has done.

``neuroscript trace``: what a run of a plan has done, as text and as a picture, and what differs between two runs.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.terminal.arguments import add_subparser
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.inputs import STDIN, Written, counted, text_of, write
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, Style, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.errors import SpecError
from neuroscript.io.text import shown_path
from neuroscript.workflow.trace.diff import TraceDifference, trace_diff
from neuroscript.workflow.trace.file import load_trace, trace_of_json, trace_to_data
from neuroscript.workflow.trace.svg import trace_svg
from neuroscript.workflow.trace.text import HEAD, Row, endings, headline, rows
from neuroscript.workflow.trace.trace import Trace

ACTIONS: Final = ("show", "diff")


TRACE: Final = """\
A trace is the file of JSON in which a run of a plan is kept: how each node has ended, what it was given
and gave, in which attempts, and when."""


SHOW: Final = """\
Shows how the plan ended, a row for each node, and what the plan gave. --svg draws its graph and its
times instead; - is stdout."""


DIFF: Final = """\
Tells what is not as it was: the plan, and of each node how it ended, what it was given, what it gave and
in how many attempts. Times are told where they are far apart, and are no difference. Exits 0 where the
two runs did the same, 1 where they did not, 2 where a file can not be read or is wrong."""


def add_trace(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "trace", "look at what a run of a plan has done", description=TRACE)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    show = add_subparser(
        actions, layout, "show", "show what each node has done", json_help="all of it", description=SHOW
    )
    show.add_argument("--svg", metavar="OUT", help="write a picture of the graph with its times to this file")
    show.add_argument("file", metavar="FILE", help="a trace; - is stdin")
    diff = add_subparser(
        actions, layout, "diff", "tell what differs between two runs", json_help="each difference", description=DIFF
    )
    diff.add_argument("a", metavar="A", help="the trace of the one run")
    diff.add_argument("b", metavar="B", help="the trace of the other, later one; either may be -, stdin")


STDOUT: Final = "-"


STYLES: Final[Mapping[str, Style]] = {"succeeded": "good", "failed": "bad", "skipped": "mended", "unstarted": "dim"}


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Do what is asked with one trace or with two, and return the exit code.

    Raises:
        UsageError: Nothing is asked, the standard input can not be read, or a file can not be written.
        SpecError: A file can not be read, or is no trace, with everything that is wrong with it.
    """
    match options.action:
        case "show":
            return _show(_loaded(options.file), options, output)
        case "diff":
            return _diff(options, output)
        case _:
            raise UsageError(f"an action is missing: {', '.join(ACTIONS)} (see neuroscript trace --help)")


def _loaded(file: str) -> Trace:
    return trace_of_json(text_of(STDIN), source="the standard input") if file == STDIN else load_trace(file)


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
        raise UsageError(f"the picture can not be drawn: {error}") from None
    if options.svg == STDOUT:
        output.json({"file": STDOUT, "text": text}) if options.json else output.write(text)
        return
    file = Path(options.svg)
    if _is_other(file):  # whoever may would put a file in the place of a device
        raise UsageError(f"can not write {shown_path(options.svg)}: it is no file")
    write([Written(file, text)])
    if options.json:
        output.json({"file": options.svg, "nodes": len(trace.nodes)})
    else:
        output.text(f"{shown_path(options.svg)}: {counted(len(trace.nodes), 'node')}")


def _is_other(file: Path) -> bool:
    """Tell whether there is something else than a file; where nothing can be, writing says why."""
    with suppress(OSError):
        return file.exists() and not file.is_file()
    return False


def _blocks(trace: Trace) -> Iterator[Rows]:
    yield line(headline(trace), "title")
    yield EMPTY
    head = tuple(Cell(text, "dim") for text in HEAD)
    yield Rows((head, *map(_cells, rows(trace))), wrapped=False)
    yield EMPTY
    yield Rows(tuple((Cell(name, "dim"), cell(text)) for name, text in endings(trace)), wrapped=False)


def _cells(row: Row) -> tuple[Cell, ...]:
    style = STYLES[row.status]
    what = cell(row.what, "" if row.status == "succeeded" else style)
    facts = (cell(text) for text in row[2:-1])
    return cell(row.name, "name"), cell(row.status, style), *facts, what


# What differs


def _diff(options: Namespace, output: Output) -> int:
    if options.a == options.b == STDIN:
        raise UsageError("only one of the two traces can be read from the standard input")
    found = trace_diff(*_both(options, output))
    differing = [each for each in found if not each.is_time]
    if options.json:
        output.json({"ok": not differing, "differences": [_data(each) for each in found]})
    else:
        show(_difference_blocks(found, len(differing)), output)
    return FAILED if differing else OK


def _both(options: Namespace, output: Output) -> list[Trace]:
    """Return the two traces; of two files that are wrong, the faults of both are told."""
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
    yield line(counted(count, "difference") if count else "the two runs did the same")
