"""Work in threads whose latest result all browsers see."""

from __future__ import annotations

import asyncio
from threading import Event

from neuroscript.console.background_jobs import BackgroundJobs
from neuroscript.console.work_threads import WorkThreads


def test_job_that_a_page_shows_does_not_change() -> None:
    """It ends while the page is rendered; the page shows it as running, and the next one shows its result."""

    async def run() -> None:
        jobs, go = BackgroundJobs(WorkThreads()), Event()
        jobs.start("checks", lambda: go.wait(30) and "done")
        shown = jobs.get("checks")
        go.set()
        while (job := jobs.get("checks")) is not None and job.is_running:
            await asyncio.sleep(0.001)

        assert shown is not None
        assert (shown.is_running, shown.result) == (True, None)
        assert job is not None
        assert (job.is_running, job.result) == (False, "done")

    asyncio.run(run())
