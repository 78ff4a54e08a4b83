"""The words of ``neuroscript worker`` and ``neuroscript runs``: plans that outlive their processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.cli.chat.options import count
from neuroscript.cli.env.options import add_keeping, add_world
from neuroscript.cli.plans.options import add_model
from neuroscript.cli.terminal.arguments import add_subparser, seconds
from neuroscript.workflow.durable.heartbeat import LEASE

URL: Final = "sqlite:///FILE or postgresql://USER@HOST/NAME"

WORKER: Final = """\
Takes calls out of the queue of a database and makes them, under the authority that the options give, until
it is ended; then those that it is making are waited for. Any number of workers may share a database. What
one has not ended that dies is taken over by the others once its lease is over: run again where the tool is
idempotent or pure, or the plan says so, else given up as in doubt."""

RUNS: Final = """\
A run that nobody drives any more, and that has not ended, is shown as interrupted: resume goes on with it.
What a run was given and gives stands in the database as it is."""

RESUME: Final = """\
Goes on with a run where it was: what has ended is not run again. The tools of its plan have to be there,
so give the options that it was begun with. Writes what the plan gives, and exits, as run does; of a run
that has ended it writes what that gave."""

CANCEL: Final = """\
Nothing further of the run begins; calls that are being made end as they do."""


def add_worker(commands: Any, layout: Any) -> None:
    """Add the command of workers to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "worker", "make the calls of durable runs", description=WORKER)
    parser.add_argument("url", metavar="URL", help=URL)
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=count,
        help="how many calls each worker of the database makes at once; kept there",
    )
    _add_lease(parser)
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    add_world(parser, None)
    add_keeping(parser)


def add_runs(commands: Any, layout: Any) -> None:
    """Add the command of runs with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "runs", "look at durable runs, and go on with them", description=RUNS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in ACTIONS.values():
        add(actions, layout)


def _add_list(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "list", "list the runs of a database", json_help="an array of the runs")
    parser.add_argument("url", metavar="URL", help=URL)


def _add_show(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "show", "show the calls of a run", json_help="the run and its calls")
    _add_run(parser)


def _add_resume(actions: Any, layout: Any) -> None:
    parser = add_subparser(
        actions, layout, "resume", "go on with a run", json_help="the trace in one line", description=RESUME
    )
    _add_run(parser)
    parser.add_argument("--save", metavar="FILE", help="write the trace down, as JSON, also where the plan fails")
    parser.add_argument("--no-work", action="store_true", help="make no calls here; wait for workers to make them")
    _add_lease(parser)
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    add_model(parser)
    add_world(parser, None)
    add_keeping(parser)


def _add_cancel(actions: Any, layout: Any) -> None:
    parser = add_subparser(
        actions, layout, "cancel", "have nothing further of a run begin", json_help="the run", description=CANCEL
    )
    _add_run(parser)


def _add_run(parser: Any) -> None:
    parser.add_argument("url", metavar="URL", help=URL)
    parser.add_argument("run", metavar="RUN", help="the id of the run")


def _add_lease(parser: Any) -> None:
    parser.add_argument(
        "--lease",
        metavar="SECONDS",
        type=seconds,
        default=LEASE,
        help=f"be taken for dead after so long a silence; {LEASE:g} if not given",
    )


ACTIONS: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "list": _add_list,
    "show": _add_show,
    "resume": _add_resume,
    "cancel": _add_cancel,
}
"""What can be done with runs."""
