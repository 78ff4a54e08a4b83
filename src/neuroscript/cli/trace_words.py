"""The words of ``neuroscript trace``: what is asked about what a run of a plan has done."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.subparsers import add_subparser

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
