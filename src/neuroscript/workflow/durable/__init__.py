"""Durable plans: results are stored in a database, so that runs survive their processes and workers share the calls.

Every public name is exported here; the module that defines it, and SQLAlchemy, are loaded on first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.workflow.durable.execution import arun_durably, resume, run_durably
    from neuroscript.workflow.durable.inspection import CallState, RunState, cancel, list_runs, show_run
    from neuroscript.workflow.durable.retention import prune
    from neuroscript.workflow.durable.worker import Worker

__all__ = [
    "CallState",
    "RunState",
    "Worker",
    "arun_durably",
    "cancel",
    "list_runs",
    "prune",
    "resume",
    "run_durably",
    "show_run",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "execution": "arun_durably resume run_durably",
        "inspection": "CallState RunState cancel list_runs show_run",
        "retention": "prune",
        "worker": "Worker",
    },
)
