"""``neuroscript worker``: makes the calls of durable runs until somebody ends it.

Source: issue "Beyond one machine".
"""

from __future__ import annotations

import signal
from argparse import Namespace
from threading import Event, current_thread, main_thread
from typing import Final

from neuroscript.cli.env.engine import MakeEngine, opened
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import Output

LOOK: Final = 0.2
"""Seconds between two looks whether somebody has ended the worker."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Make calls until the process is told to end, and return the exit code.

    Raises:
        UsageError: DBOS is not installed.
        SpecError: The database can not be used.
    """
    try:
        from neuroscript.workflow.durable.worker import Worker
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    output.serve()
    told = _told_to_end()
    with opened(make_engine, output, options) as engine, output.tools_aside():
        with Worker(engine, options.url, parallel=options.parallel, lease=options.lease) as worker:
            output.say(f"worker {worker.id} makes calls")
            try:
                while not told.is_set() and not worker.wait(LOOK):
                    pass
            finally:
                if not worker.is_lost:
                    output.say(f"worker {worker.id} takes no further calls, and ends with those that it makes")
        if worker.is_lost:
            output.say(f"worker {worker.id} was taken for dead, for it was not heard of for {options.lease:g} s")
            return FAILED
    return OK


def _told_to_end() -> Event:
    """Return what is set once the process is asked to end as a service is; an interrupt is one as everywhere."""
    told = Event()
    if current_thread() is main_thread():
        signal.signal(signal.SIGTERM, lambda *_: told.set())
    return told
