"""Work in threads that any browser can start, and whose latest result all browsers see."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from time import time
from typing import Any, Final

import attrs
from starlette.requests import Request

from neuroscript.coercion.context import type_name
from neuroscript.console.routing import console_of
from neuroscript.console.work_threads import WorkThreads
from neuroscript.errors import NeuroScriptError

LOGGER: Final = logging.getLogger("neuroscript.console")


@attrs.define(eq=False)
class BackgroundJob:
    """One piece of work.

    Attributes:
        started: When it was started, in seconds since 1970.
        ended: When it ended, or None while it runs.
        result: What it returned, or None.
        error: Why there is no result, or ``""``.
    """

    started: float = attrs.field(factory=time)
    ended: float | None = None
    result: Any = attrs.field(default=None, repr=False)
    error: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None

    async def run(self, threads: WorkThreads, work: Callable[[], Any]) -> None:
        """Run the work in a thread."""
        try:
            self.result = await threads.run(work)
        except NeuroScriptError as error:
            self.error = str(error)
        except OSError as error:
            self.error = (error.strerror or type(error).__name__).lower()
        except Exception as error:  # its text may contain a value
            LOGGER.error("a job failed (%s)", type_name(error), exc_info=False)
            self.error = f"internal error ({type_name(error)})"
        finally:
            self.ended = time()


class BackgroundJobs:
    """The latest job for each key."""

    def __init__(self, threads: WorkThreads) -> None:
        self._threads = threads
        self._known: dict[Hashable, BackgroundJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, key: Hashable) -> BackgroundJob | None:
        """Return the latest job for a key as it is now, or None.

        The job itself may end while a page is rendered, which would then show neither that it runs nor its result.
        """
        job = self._known.get(key)
        return None if job is None else attrs.evolve(job)  # reads `ended` before `result`

    def start(self, key: Hashable, work: Callable[[], Any]) -> BackgroundJob:
        """Start a job, unless one for the same key runs, and return it or the one that runs."""
        running = self._known.get(key)
        if running is not None and running.is_running:
            return running
        job = self._known[key] = BackgroundJob()
        task = asyncio.create_task(job.run(self._threads, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def forget(self, key: Hashable) -> None:
        """Remove the job for a key."""
        self._known.pop(key, None)


def jobs_of(request: Request) -> BackgroundJobs:
    """Return the jobs of the console."""
    state = request.app.state
    if not hasattr(state, "background_jobs"):
        state.background_jobs = BackgroundJobs(console_of(request).threads)
    found: BackgroundJobs = state.background_jobs
    return found
