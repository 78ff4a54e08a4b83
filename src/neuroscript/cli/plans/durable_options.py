"""Options of ``neuroscript worker`` and ``neuroscript runs``, the commands for durable runs."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from neuroscript.cli.chat.options import count
from neuroscript.cli.env.options import add_environment, add_recording
from neuroscript.cli.plans.options import add_model
from neuroscript.cli.terminal.argument_parser import add_subparser, seconds
from neuroscript.state.heartbeat import DEFAULT_LEASE_SECONDS

URL: Final = "sqlite:///FILE or postgresql://USER@HOST/NAME"

WORKER: Final = """\
Takes calls from the queue in a database and runs them, with the authority of its options, until it is
stopped; it then finishes the calls in progress. Any number of workers can share a database. When a worker
dies, the others take over its calls after its lease expires: a call is run again if its tool is idempotent
or pure, or if the plan permits it; otherwise it is marked as in doubt."""

RUNS: Final = """\
A run that has not ended and has no live process is shown as interrupted; continue it with resume. The
database stores the inputs and outputs of a run unencrypted."""

RESUME: Final = """\
Continues a run; calls that have ended are not run again. The tools of the plan must be available, so pass
the options that the run was started with. Prints the output and exits as run does. If the run has already
ended, prints its output. A warning names the tools that have changed since the run was checked with them."""

CANCEL: Final = """\
No further call of the run starts. Calls in progress are not stopped."""


PRUNE: Final = """\
Removes the runs that ended longer ago than a given time, and their calls. Runs that are running or can be
resumed are kept."""

UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""The units of an age, in seconds."""

MAX_AGE_DIGITS: Final = 4


def age(text: str) -> timedelta:
    """Return a string such as ``30d`` as a time.

    Raises:
        argparse.ArgumentTypeError: It is not an integer with a unit.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not (number.isascii() and number.isdecimal()) or len(number) > MAX_AGE_DIGITS:
        raise ArgumentTypeError("expected at most four digits and a unit, s, m, h, d or w, such as 30d")
    return timedelta(seconds=int(number) * UNITS[unit])


def add_worker(commands: Any, layout: Any) -> None:
    """Add ``worker`` to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "worker", "run the calls of durable runs", description=WORKER)
    parser.add_argument("url", metavar="URL", help=URL)
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=count,
        help="concurrent calls; default 16",
    )
    parser.add_argument("--connections", metavar="N", type=count, help="connections to the database; default 10")
    _add_lease(parser)
    parser.add_argument("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_environment(parser, None)
    add_recording(parser)


def add_runs(commands: Any, layout: Any) -> None:
    """Add ``runs`` with its actions to the *commands* of the parser."""
    parser = add_subparser(
        commands, layout, "runs", "list, show, resume, cancel or prune durable runs", description=RUNS
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in ACTIONS.values():
        add(actions, layout)


def _add_list(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "list", "list the runs in a database", json_help="print a JSON array")
    parser.add_argument("url", metavar="URL", help=URL)


def _add_show(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "show", "show a run and its calls", json_help="print them as JSON")
    _add_run(parser)


def _add_resume(actions: Any, layout: Any) -> None:
    parser = add_subparser(
        actions, layout, "resume", "continue a run", json_help="print the trace as one line of JSON", description=RESUME
    )
    _add_run(parser)
    parser.add_argument("--save", metavar="FILE", help="write the trace to a file as JSON, even if the plan fails")
    parser.add_argument("--no-local-calls", action="store_true", help="run no calls in this process; wait for workers")
    parser.add_argument(
        "--exact", action="store_true", help="refuse the run if a tool has changed since the run was checked with it"
    )
    _add_lease(parser)
    parser.add_argument("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_model(parser)
    add_environment(parser, None)
    add_recording(parser)


def _add_cancel(actions: Any, layout: Any) -> None:
    parser = add_subparser(
        actions, layout, "cancel", "cancel a run", json_help="print the run as JSON", description=CANCEL
    )
    _add_run(parser)


def _add_prune(actions: Any, layout: Any) -> None:
    parser = add_subparser(
        actions, layout, "prune", "remove old runs", json_help="print the number as JSON", description=PRUNE
    )
    parser.add_argument("url", metavar="URL", help=URL)
    parser.add_argument(
        "--older-than", metavar="AGE", type=age, required=True, help="such as 30d; units are s, m, h, d and w"
    )


def _add_run(parser: Any) -> None:
    parser.add_argument("url", metavar="URL", help=URL)
    parser.add_argument("run", metavar="RUN", help="the id of the run")


def _add_lease(parser: Any) -> None:
    parser.add_argument(
        "--lease",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_LEASE_SECONDS,
        help="seconds without a heartbeat after which others consider this process dead; "
        f"default {DEFAULT_LEASE_SECONDS:g}",
    )


ACTIONS: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "list": _add_list,
    "show": _add_show,
    "resume": _add_resume,
    "cancel": _add_cancel,
    "prune": _add_prune,
}
"""The actions of ``runs``."""
