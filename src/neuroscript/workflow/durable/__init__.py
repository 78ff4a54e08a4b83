"""Plans that outlive their processes: what each call gave stands in a database, and several processes make the calls.

Every public name is here; the room that holds it, and DBOS with it, is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.workflow.durable.lookout import CallState, RunState, cancel, list_runs, show_run
    from neuroscript.workflow.durable.running import arun_durably, resume, run_durably
    from neuroscript.workflow.durable.working import Worker

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
        "lookout": "CallState RunState cancel list_runs show_run",
        "running": "arun_durably resume run_durably",
        "working": "Worker",
    },
)
