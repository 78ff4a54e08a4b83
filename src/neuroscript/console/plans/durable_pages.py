"""Pages of durable runs: the list of a database, one run with its calls, and cancelling and resuming it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.activities import TooManyActivities
from neuroscript.console.paging import ListPage, page_number
from neuroscript.console.plans.progress import PlanRun
from neuroscript.console.plans.runs import start_resumed, stored_runs
from neuroscript.console.rendering import message, not_found, page, redirect, render
from neuroscript.console.routing import console_of, get, post, visitor_of
from neuroscript.errors import SpecError

PAGE_RUNS: Final = 50
"""Maximum number of runs in a page."""

MAX_CALLS: Final = 1_000
"""Maximum number of calls of a run in a page."""

KINDS: Final = {
    "succeeded": "ok",
    "ok": "ok",
    "failed": "bad",
    "damaged": "bad",
    "cancelled": "warn",
    "interrupted": "warn",
    "running": "info",
    "waiting": "info",
}
"""The kind of the badge of each status of a run or a call; error codes are ``bad``."""


async def runs(request: Request) -> Response:
    """List the durable runs of the database, the newest first."""
    url = console_of(request).settings.runs
    if url is None:
        return _no_database(request)
    try:
        found = await asyncio.to_thread(stored_runs, url)
    except (ImportError, SpecError) as error:
        return _unusable(request, error)
    runs = ListPage.of(found, page_number(request), PAGE_RUNS)
    return page(request, "plans/runs.html", active="plans", found=runs, kinds=KINDS)


async def show(request: Request) -> Response:
    """Show a durable run and its calls."""
    return await _run_page(request)


async def _run_page(request: Request, fault: str = "", status: int = 200) -> Response:
    url, id = console_of(request).settings.runs, request.path_params["id"]
    if url is None:
        return _no_database(request)
    try:
        from neuroscript.workflow.durable.inspection import show_run

        state, calls = await asyncio.to_thread(show_run, url, id)
    except ImportError as error:
        return _unusable(request, error)
    except SpecError as error:
        return message(request, 404, "Not found", str(error))
    return page(
        request,
        "plans/run.html",
        status=status,
        active="plans",
        state=state,
        calls=calls[:MAX_CALLS],
        omitted=max(0, len(calls) - MAX_CALLS),
        kinds=KINDS,
        fault=fault,
    )


async def cancel(request: Request, form: FormData) -> Response:
    """Cancel a durable run, whichever process drives it."""
    url, id = console_of(request).settings.runs, request.path_params["id"]
    if url is None:
        return _no_database(request)
    try:
        from neuroscript.workflow.durable.inspection import cancel as cancel_run

        await asyncio.to_thread(cancel_run, url, id)
    except ImportError as error:
        return _unusable(request, error)
    except SpecError as error:
        return await _run_page(request, str(error), 409)
    return redirect(request, "plans.durable_run", id=id)


async def resume(request: Request, form: FormData) -> Response:
    """Continue a durable run in this process, and show its progress; of one that has ended, show the trace."""
    visitor, console, id = visitor_of(request), console_of(request), request.path_params["id"]
    if console.settings.runs is None:
        return _no_database(request)
    try:
        from neuroscript.workflow.durable.inspection import plan_of

        plan = await asyncio.to_thread(plan_of, console.settings.runs, id)
    except ImportError as error:
        return _unusable(request, error)
    except SpecError as error:
        return await _run_page(request, str(error), 409)
    try:
        activity = start_resumed(visitor, console, PlanRun.of("", plan, id), partial(render, request))
    except TooManyActivities as error:
        return message(request, 429, "Too many runs", f"{error}.")
    return redirect(request, "plans.activity", id=activity.id)


def _no_database(request: Request) -> Response:
    return not_found(request, "This console has no database of durable runs.")


def _unusable(request: Request, error: Any) -> Response:
    return message(request, 422, "The durable runs cannot be shown", str(error))


ROUTES: Final = (
    get("/plans/runs", runs, "plans.runs"),
    get("/plans/runs/{id}", show, "plans.durable_run"),
    post("/plans/runs/{id}/cancel", cancel, "plans.cancel_run"),
    post("/plans/runs/{id}/resume", resume, "plans.resume"),
)
