"""Pages of approvals: what waits, its cards, the answers of users, and the calls that resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.approval.pending_files import PendingFile
from neuroscript.approval.request import Approval
from neuroscript.console.activities import Activity, TooManyActivities
from neuroscript.console.approvals.answers import InvalidAnswer, Validation, read_answer, validate
from neuroscript.console.approvals.cards import arguments_text, card_sections
from neuroscript.console.approvals.requests import (
    PAGE_ITEMS,
    Entry,
    age,
    clock_time,
    ended_text,
    entry,
    inbox_of,
    iso_time,
    keys,
    live_entry,
    state,
    stored_entry,
    stored_file,
)
from neuroscript.console.console import Console
from neuroscript.console.inbox import EndedRequest, Inbox
from neuroscript.console.rendering import fragment, message, not_found, page, redirect, render
from neuroscript.console.routing import console_of, get, post, visitor_of
from neuroscript.console.visitor import Visitor
from neuroscript.engine.suspended import resume_once
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.result_text import result_text

try:
    from starlette.datastructures import FormData
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
except ImportError as error:
    raise missing_extra("the web console needs Starlette, uvicorn and Jinja2", "console", error) from None

STATE_SECONDS: Final = 2.0
"""Seconds between two looks at the directory of suspended calls, which other processes change."""

KEEP_ALIVE_LOOKS: Final = 7
"""Number of looks without a change after which a comment is sent, so that a lost connection is noticed."""

SHOWN_ENDED: Final = 20
"""Maximum number of ended requests on the page."""

MAX_RESULT_CHARS: Final = 100_000
"""Maximum number of characters of a result that the page shows."""

BACK: Final = frozenset({"approvals.index", "chat.index"})
"""The pages that an answer may lead back to."""

GONE: Final = "This call does not wait for an approval. It was answered or withdrawn, or the console was started again."


def card_context(found: Entry) -> dict[str, Any]:
    """Return the variables of a card and its forms."""
    request = found.request
    return {
        "entry": found,
        "sections": () if request is None else card_sections(request),
        "arguments": "" if request is None else arguments_text(request),
        "has_secrets": request is not None and bool(request.secrets),
        "age": age,
        "iso_time": iso_time,
        "clock_time": clock_time,
    }


async def index(request: Request) -> Response:
    """Show everything that waits, newest first, and how the last requests ended."""
    console = console_of(request)
    waiting = await asyncio.to_thread(keys, console)
    last = max(1, -(-len(waiting) // PAGE_ITEMS))
    number = min(_number(request.query_params.get("page", "")), last)
    on_page = waiting[(number - 1) * PAGE_ITEMS : number * PAGE_ITEMS]
    found = [each for each in await asyncio.to_thread(_entries, console, on_page) if each is not None]
    inbox = inbox_of(console)
    return page(
        request,
        "approvals/index.html",
        active="approvals",
        cards=[card_context(each) for each in found],
        count=len(waiting),
        number=number,
        last=last,
        known=[key.element for key in waiting],
        ended=() if inbox is None else inbox.ended[:SHOWN_ENDED],
        ended_text=ended_text,
        done=_done(inbox, request.query_params.get("done", "")),
        has_inbox=inbox is not None,
        directory=console.settings.approvals,
    )


def _entries(console: Console, on_page: Any) -> list[Entry | None]:
    return [entry(console, key) for key in on_page]


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 8 else 1


def _done(inbox: Inbox | None, id: str) -> EndedRequest | None:
    found = None if inbox is None else inbox.find(id)
    return found if isinstance(found, EndedRequest) else None


async def count(request: Request) -> Response:
    """Return the number of requests that wait, for the navigation."""
    return fragment(request, "approvals/_count_value.html")


async def events(request: Request) -> Response:
    """Stream what waits, whenever that changes, until the browser is signed out."""
    console, visitor = console_of(request), visitor_of(request)
    return StreamingResponse(_states(console, visitor), media_type="text/event-stream")


async def _states(console: Console, visitor: Visitor) -> AsyncIterator[str]:
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
    ended = _done(inbox_of(console_of(request)), id)
    return not_found(request, GONE) if ended is None else _ended(request, ended, 200)


async def show_stored(request: Request) -> Response:
    """Show one suspended call."""
    found = await asyncio.to_thread(_stored, request)
    if found is None:
        return not_found(request, GONE)
    return page(request, "approvals/show.html", active="approvals", **card_context(found))


def _stored(request: Request) -> Entry | None:
    console = console_of(request)
    stored = stored_file(console, request.path_params["id"])
    return None if stored is None else stored_entry(console.engine, stored)


async def answer_live(request: Request, form: FormData) -> Response:
    """Answer a live request; the first answer counts, and later ones show who has answered."""
    id, inbox = request.path_params["id"], inbox_of(console_of(request))
    found = live_entry(console_of(request), id)
    if inbox is None or found is None or found.request is None:
        ended = _done(inbox, id)
        return not_found(request, GONE) if ended is None else _ended(request, ended, 409)
    try:
        approval = read_answer(form, found.request)
    except InvalidAnswer as error:
        return _invalid(request, found, str(error))
    if approval.arguments is not None:
        checked = await asyncio.to_thread(validate, console_of(request).engine, found.request, str(form["arguments"]))
        if checked.problem:
            return _invalid(request, found, checked.problem)
    receipt = inbox.answer(id, approval, digest=str(form.get("digest", "")), by=visitor_of(request).user.name)
    if receipt.status == "changed":
        return message(request, 409, "Nothing was approved", "The form shows another call than the one that waits.")
    if receipt.status != "counted":
        return not_found(request, GONE) if receipt.ended is None else _ended(request, receipt.ended, 409)
    return _back(request, form, id)


def _back(request: Request, form: FormData, id: str) -> Response:
    name = str(form.get("back", ""))
    return redirect(request, name if name in BACK else "approvals.index", done=id)


def _ended(request: Request, ended: EndedRequest, status: int) -> Response:
    """Return the page of a request that has ended; with status 409 the answer of this user came too late."""
    context = {"ended": ended, "text": ended_text(ended), "is_late": status == 409}
    return page(request, "approvals/ended.html", status, active="approvals", **context)


def _invalid(request: Request, found: Entry, problem: str) -> Response:
    context = {**card_context(found), "problem": problem}
    return page(request, "approvals/show.html", 422, active="approvals", **context)


async def answer_stored(request: Request, form: FormData) -> Response:
    """Answer a suspended call, and resume it; the first answer of all browsers and processes counts."""
    console, visitor = console_of(request), visitor_of(request)
    stored = await asyncio.to_thread(stored_file, console, request.path_params["id"])
    if stored is None:
        return message(request, 409, "Already answered", GONE)
    found = await asyncio.to_thread(stored_entry, console.engine, stored)
    if found.request is None or str(form.get("digest", "")) != found.digest:
        text = found.problem or "The form shows another call than the one that waits."
        return message(request, 409, "Nothing was approved", text)
    try:
        approval = read_answer(form, found.request)
    except InvalidAnswer as error:
        return _invalid(request, found, str(error))
    if approval.verdict == "stop" or approval.for_session:
        return _invalid(request, found, "The session of a stored call has ended, so the answer is for this call alone.")
    if approval.arguments is not None:
        checked = await asyncio.to_thread(_validate_stored, console, found, str(form["arguments"]))
        if checked.problem:
            return _invalid(request, found, checked.problem)
    try:
        activity = visitor.activities.start("approvals", found.key.tool, _resuming(request, stored, approval))
    except TooManyActivities as error:
        return message(request, 429, "Too many activities", str(error))
    await asyncio.wait({asyncio.create_task(activity.wait())}, timeout=1.0)  # most calls end before the page is shown
    return redirect(request, "approvals.activity", id=activity.id)


def _validate_stored(console: Console, found: Entry, text: str) -> Validation:
    request = found.request
    assert request is not None
    with console.engine.session(id=request.session) as session:
        return validate(session, request, text)


def _resuming(request: Request, stored: PendingFile, approval: Approval) -> Any:
    """Return the work that claims and resumes a suspended call."""

    async def work(activity: Activity) -> None:
        pending = stored.pending
        assert pending is not None
        with console_of(request).engine.session(id=pending.session) as session:
            result = await asyncio.to_thread(resume_once, session, stored, approval)
        activity.view = _Outcome(approval, result)
        activity.emit(render(request, "approvals/_result.html", **activity.view.context), mode="replace")

    return work


class _Outcome:
    """The result of a resumed call for the page."""

    def __init__(self, approval: Approval, result: ToolResult | None) -> None:
        self.approval = approval
        self.result = result

    @property
    def context(self) -> dict[str, Any]:
        """The variables of the template."""
        result = self.result
        text = "" if result is None else result_text(result)
        return {
            "was_claimed": result is not None,
            "is_rejected": self.approval.verdict == "reject",
            "error_code": "" if result is None or result.error is None else result.error.code,
            "text": text[:MAX_RESULT_CHARS],
            "omitted": max(0, len(text) - MAX_RESULT_CHARS),
        }


async def activity(request: Request) -> Response:
    """Show a resumed call, and its result when it has ended."""
    found = visitor_of(request).activities.get(request.path_params["id"])
    if found is None:
        return not_found(request, "This call has ended, and its result is no longer stored.")
    view = found.view
    outcome = view.context if isinstance(view, _Outcome) else None
    return page(request, "approvals/activity.html", active="approvals", activity=found, outcome=outcome)


async def check_live(request: Request, form: FormData) -> Response:
    """Return whether the arguments that a user is writing for a live request are valid."""
    found = live_entry(console_of(request), request.path_params["id"])
    if found is None or found.request is None:
        return fragment(request, "approvals/_check.html", checked=Validation(GONE))
    text = str(form.get("arguments", ""))
    checked = await asyncio.to_thread(validate, console_of(request).engine, found.request, text)
    return fragment(request, "approvals/_check.html", checked=checked)


async def check_stored(request: Request, form: FormData) -> Response:
    """Return whether the arguments that a user is writing for a suspended call are valid."""
    found = await asyncio.to_thread(_stored, request)
    if found is None or found.request is None:
        return fragment(request, "approvals/_check.html", checked=Validation(GONE))
    checked = await asyncio.to_thread(_validate_stored, console_of(request), found, str(form.get("arguments", "")))
    return fragment(request, "approvals/_check.html", checked=checked)


ROUTES: Final = (
    get("/approvals", index, "approvals.index"),
    get("/approvals/count", count, "approvals.count"),
    get("/approvals/events", events, "approvals.events"),
    get("/approvals/calls/{id}", activity, "approvals.activity"),
    get("/approvals/live/{id}", show_live, "approvals.live"),
    post("/approvals/live/{id}", answer_live, "approvals.answer_live", role="approver"),
    post("/approvals/live/{id}/check", check_live, "approvals.check_live", role="approver"),
    get("/approvals/stored/{id}", show_stored, "approvals.stored"),
    post("/approvals/stored/{id}", answer_stored, "approvals.answer_stored", role="approver"),
    post("/approvals/stored/{id}/check", check_stored, "approvals.check_stored", role="approver"),
)
