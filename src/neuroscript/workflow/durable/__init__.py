"""Plans that outlive their processes: what each call gave stands in a database, and several processes make the calls.

Every public name is here; the room that holds it, and DBOS with it, is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

if TYPE_CHECKING:
    from neuroscript.workflow.durable.execution import arun_durably, resume, run_durably
    from neuroscript.workflow.durable.inspection import CallState, RunState, cancel, list_runs, show_run
    from neuroscript.workflow.durable.worker import Worker

__all__ = [
    "CallState",
    "RunState",
    "Worker",
    "arun_durably",
    "cancel",
    "list_runs",
    "resume",
    "run_durably",
    "show_run",
]

__getattr__ = lazy(
    __name__,
    {
        "execution": "arun_durably resume run_durably",
        "inspection": "CallState RunState cancel list_runs show_run",
        "worker": "Worker",
    },
)
