"""Options of ``neuroscript worker`` and ``neuroscript runs``, the commands for durable runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
ended, prints its output."""

CANCEL: Final = """\
No further call of the run starts. Calls in progress are not stopped."""


def add_worker(commands: Any, layout: Any) -> None:
    """Add ``worker`` to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "worker", "run the calls of durable runs", description=WORKER)
    parser.add_argument("url", metavar="URL", help=URL)
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=count,
        help="concurrent calls in each worker of the database, which stores the number; default 16",
    )
    _add_lease(parser)
    parser.add_argument("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_environment(parser, None)
    add_recording(parser)


def add_runs(commands: Any, layout: Any) -> None:
    """Add ``runs`` with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "runs", "list, show, resume or cancel durable runs", description=RUNS)
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
}
"""The actions of ``runs``."""
