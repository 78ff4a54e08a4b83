"""Pages about the health of an engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.config.lock_file import Lock
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.config.pinned import counts_of
from neuroscript.console.background_jobs import jobs_of
from neuroscript.console.health.plugins import compare_with_lock, loaded_plugins
from neuroscript.console.health.servers import ChangedMeanwhile, accept_review, review_server, server_states
from neuroscript.console.rendering import fragment, message, page, redirect
from neuroscript.console.routing import console_of, get, is_part, post
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_path

STATE_KINDS: Final = {"ok": "ok", "optional": "info", "warning": "warn", "broken": "bad"}
"""The kinds of badges of checks."""

DIFFERENCE_KINDS: Final = {"new": "warn", "changed": "bad", "removed": "warn", "missing": "bad", "unusable": "bad"}
"""The kinds of badges of differences."""

MAX_LISTED: Final = 200
"""Maximum number of entries of one list on a page."""


def _tables(request: Request) -> tuple[ServerTable, ...]:
    return console_of(request).settings.servers


def _table(request: Request) -> ServerTable:
    """Return the server that the path names.

    Raises:
        HTTPException: There is no such server.
    """
    for table in _tables(request):
        if table.name == request.path_params["server"]:
            return table
    raise HTTPException(404, "This console has no such server.")


async def index(request: Request) -> Response:
    """Show the problems of the engine, its checks, plugins, servers and workers."""
    context = await asyncio.to_thread(_overview, request)
    return page(request, "health/index.html", active="health", **context)


def _overview(request: Request) -> dict[str, Any]:
    console = console_of(request)
    engine, settings = console.engine, console.settings
    lock, lock_error = _lock(settings.lock)
    return {
        "lock_file": None if settings.lock is None else quote_path(str(settings.lock)),
        "lock_error": lock_error,
        "plugins": list(loaded_plugins(engine, lock))[:MAX_LISTED],
        "has_lock": lock is not None,
        "problems": engine.plugin_errors[:MAX_LISTED],
        "states": server_states(engine, _tables(request)),
        "reviews": {each.name: jobs_of(request).get(("mcp", each.name)) for each in _tables(request)},
        "workers": engine.workers[:MAX_LISTED],
        "isolates": engine.policy.isolates,
        "has_checks": settings.checks is not None,
        "checks": _checks(request),
        "comparison": jobs_of(request).get("lock"),
        "kinds": STATE_KINDS,
        "difference_kinds": DIFFERENCE_KINDS,
        "counts_of": counts_of,
    }


def _lock(file: Path | None) -> tuple[Lock | None, str]:
    """Return the lock, or None and why it cannot be read."""
    if file is None:
        return None, ""
    try:
        return Lock.read(file), ""
    except SpecError as error:
        return None, "; ".join(error.problems)


def _checks(request: Request) -> dict[str, Any]:
    """Return the latest result of the checks, as the template shows it."""
    job = jobs_of(request).get("checks")
    found: Mapping[str, Any] = job.result if job is not None and job.result is not None else {}
    counts = Counter(each.state for findings in found.values() for each in findings)
    return {"job": job, "parts": found, "counts": counts}


async def run_checks(request: Request, form: FormData) -> Response:
    """Start the checks of the installation."""
    checks = console_of(request).settings.checks
    if checks is None:
        raise HTTPException(404, "This console has no checks; run neuroscript doctor.")
    jobs_of(request).start("checks", checks)
    return redirect(request, "health.index")


async def checks(request: Request) -> Response:
    """Return the results of the checks as a part of the page."""
    return fragment(request, "health/_checks.html", kinds=STATE_KINDS, checks=_checks(request))


async def compare_lock(request: Request, form: FormData) -> Response:
    """Start to compare the installed plugins with the lock file."""
    console = console_of(request)
    file = console.settings.lock
    if file is None:
        raise HTTPException(404, "This console has no lock file.")
    jobs_of(request).start("lock", lambda: compare_with_lock(console.engine, file))
    return redirect(request, "health.index")


async def lock(request: Request) -> Response:
    """Return the comparison with the lock file as a part of the page."""
    comparison = jobs_of(request).get("lock")
    return fragment(
        request,
        "health/_lock.html",
        comparison=comparison,
        difference_kinds=DIFFERENCE_KINDS,
        counts_of=counts_of,
    )


async def server(request: Request) -> Response:
    """Show a server, and how its tools differ from the accepted ones."""
    table = _table(request)
    (state,) = await asyncio.to_thread(server_states, console_of(request).engine, [table])
    context: dict[str, Any] = {
        "state": state,
        "table": table,
        "job": jobs_of(request).get(("mcp", table.name)),
        "kinds": DIFFERENCE_KINDS,
        "max_listed": MAX_LISTED,
        "is_accepted": request.query_params.get("accepted") == "1",
    }
    if is_part(request):
        return fragment(request, "health/_review.html", **context)
    return page(request, "health/server.html", active="health", **context)


async def review(request: Request, form: FormData) -> Response:
    """Start or reach a server, and compare its tools with the accepted ones."""
    table, secrets = _table(request), console_of(request).engine.host.secrets
    jobs_of(request).start(("mcp", table.name), lambda: review_server(table, secrets))
    return redirect(request, "health.server", server=table.name)


async def accept(request: Request, form: FormData) -> Response:
    """Accept exactly the definitions that the user has read."""
    table = _table(request)
    job = jobs_of(request).get(("mcp", table.name))
    try:
        if job is None or job.result is None:
            raise ChangedMeanwhile("The definitions were not compared since the console started; compare them again.")
        await asyncio.to_thread(accept_review, job.result, str(form.get("digest", "")))
    except ChangedMeanwhile as error:
        return message(request, 409, "Not accepted", f"{error}")
    except (SpecError, OSError) as error:
        text = "; ".join(error.problems) if isinstance(error, SpecError) else type(error).__name__
        return message(request, 503, "Not accepted", f"The file with the accepted tools cannot be used: {text}")
    jobs_of(request).forget(("mcp", table.name))
    return redirect(request, "health.server", server=table.name, accepted=1)


ROUTES: Final = (
    get("/health", index, "health.index"),
    get("/health/checks", checks, "health.checks"),
    post("/health/checks", run_checks, "health.run_checks"),
    get("/health/lock", lock, "health.lock"),
    post("/health/lock", compare_lock, "health.compare_lock"),
    get("/health/servers/{server}", server, "health.server"),
    post("/health/servers/{server}/review", review, "health.review"),
    post("/health/servers/{server}/accept", accept, "health.accept", role="approver"),
)
