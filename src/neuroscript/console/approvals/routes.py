"""Pages of approvals: what waits, single requests, and calls that were resumed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.approvals import answering, changing
from neuroscript.console.approvals.answering import ResumedCall
from neuroscript.console.approvals.requests import (
    PAGE_ITEMS,
    Entry,
    Key,
    ended_requests,
    ended_text,
    find_entry,
    inbox_of,
    keys,
    live_entry,
    state,
)
from neuroscript.console.approvals.views import absent_page, card_context, ended_request
from neuroscript.console.console import Console
from neuroscript.console.paging import ListPage, page_number
from neuroscript.console.rendering import event_stream, fragment, not_found, page
from neuroscript.console.routing import console_of, get, visitor_of
from neuroscript.console.visitor import Visitor

STATE_SECONDS: Final = 2.0
"""Seconds between two looks at the directory of suspended calls, which other processes change."""

KEEP_ALIVE_LOOKS: Final = 7
"""Number of looks without a change after which a comment is sent, so that a lost connection is noticed."""

SHOWN_ENDED: Final = 20
"""Maximum number of ended requests on the page."""


async def index(request: Request) -> Response:
    """Show everything that waits, newest first, and how the last requests ended."""
    console = console_of(request)
    waiting = await asyncio.to_thread(keys, console)
    on_page = ListPage.of(waiting, page_number(request), PAGE_ITEMS)
    found = [each for each in await asyncio.to_thread(_entries, console, on_page.items) if each is not None]
    inbox = inbox_of(console)
    return page(
        request,
        "approvals/index.html",
        active="approvals",
        cards=[card_context(each) for each in found],
        on_page=on_page,
        known=[key.element for key in waiting],
        ended=[each for _, each in ended_requests(console)[:SHOWN_ENDED]],
        ended_text=ended_text,
        done=ended_request(console, request.query_params.get("done", "")),
        has_inbox=inbox is not None,
        directory=console.settings.approvals,
    )


def _entries(console: Console, on_page: Sequence[Key]) -> list[Entry | None]:
    return [find_entry(console, key.kind, key.id) for key in on_page]


async def count(request: Request) -> Response:
    """Return the number of requests that wait, for the navigation."""
    return fragment(request, "approvals/_count_value.html")


async def events(request: Request) -> Response:
    """Stream what waits, whenever that changes, until the browser is signed out."""
    return event_stream(request, _states(console_of(request), visitor_of(request)))


async def _states(console: Console, visitor: Visitor) -> AsyncGenerator[str, None]:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    inbox = inbox_of(console)
    unsubscribe = None if inbox is None else inbox.subscribe(lambda _: loop.call_soon_threadsafe(changed.set))
    sent, idle = "", 0
    try:
        while visitor in console.visitors:
            changed.clear()
            data = json.dumps(await asyncio.to_thread(state, console))
            if data != sent:
                yield f"data: {data}\n\n"
                sent, idle = data, 0
            elif idle >= KEEP_ALIVE_LOOKS:
                yield ": keep-alive\n\n"
                idle = 0
            idle += 1
            try:
                await asyncio.wait_for(changed.wait(), STATE_SECONDS)
            except TimeoutError:
                continue
    finally:
        if unsubscribe is not None:
            unsubscribe()


async def show_live(request: Request) -> Response:
    """Show one live request, or how it ended."""
    id = request.path_params["id"]
    found = live_entry(console_of(request), id)
    if found is not None:
        return page(request, "approvals/show.html", active="approvals", **card_context(found))
    return absent_page(request, id)


async def show_stored(request: Request) -> Response:
    """Show one suspended call."""
    found = await asyncio.to_thread(find_entry, console_of(request), "stored", request.path_params["id"])
    if found is None:
        return absent_page(request, request.path_params["id"])
    return page(request, "approvals/show.html", active="approvals", **card_context(found))


async def activity(request: Request) -> Response:
    """Show a resumed call, and its result when it has ended."""
    found = visitor_of(request).activities.get(request.path_params["id"])
    if found is None:
        return not_found(request, "This call has ended, and its result is no longer stored.")
    view = found.view
    outcome = view.context if isinstance(view, ResumedCall) else None
    return page(request, "approvals/activity.html", active="approvals", activity=found, outcome=outcome)


ROUTES: Final = (
    get("/approvals", index, "approvals.index"),
    get("/approvals/count", count, "approvals.count"),
    get("/approvals/events", events, "approvals.events"),
    get("/approvals/calls/{id}", activity, "approvals.activity"),
    get("/approvals/live/{id}", show_live, "approvals.live"),
    get("/approvals/stored/{id}", show_stored, "approvals.stored"),
    *answering.ROUTES,
    *changing.ROUTES,
)
