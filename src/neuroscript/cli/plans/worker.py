"""``neuroscript worker``: run the calls of durable runs until the process is stopped."""

from __future__ import annotations

import signal
from argparse import Namespace
from threading import Event, current_thread, main_thread
from typing import Final

from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import FAILED, OK, require_extra
from neuroscript.cli.terminal.output import Output

POLL_SECONDS: Final = 0.2
"""Seconds between two checks whether the worker should stop."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run calls until the process receives SIGTERM, and return the exit code.

    Raises:
        UsageError: The extra ``durable`` is not installed.
        SpecError: The database cannot be used.
    """
    with require_extra():
        from neuroscript.workflow.durable.worker import Worker
    output.serve()
    stop = _stop_event()
    with open_engine(make_engine, output, options) as engine, output.tools_aside():
        with Worker(
            engine, options.url, parallel=options.parallel, lease=options.lease, connections=options.connections
        ) as worker:
            output.say(f"worker {worker.id} started")
            try:
                while not stop.is_set() and not worker.wait(POLL_SECONDS):
                    pass
            finally:
                if not worker.is_lost:
                    output.say(f"worker {worker.id} is stopping; waiting for the calls in progress")
        if worker.is_lost:
            output.say(f"worker {worker.id} lost its lease: no heartbeat for {options.lease:g} s")
            return FAILED
    return OK


def _stop_event() -> Event:
    """Return an event that SIGTERM sets; Ctrl-C raises `KeyboardInterrupt` as usual."""
    stop = Event()
    if current_thread() is main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop
