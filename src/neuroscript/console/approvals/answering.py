"""Answers of users: an answer settles a live request, or claims a suspended call and resumes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.approval.pending_files import PendingFile
from neuroscript.approval.request import Approval
from neuroscript.console.activities import Activity, TooManyActivities
from neuroscript.console.approvals.answers import InvalidAnswer, Validation, check_arguments, read_answer, validate
from neuroscript.console.approvals.requests import (
    Entry,
    ended_text,
    find_entry,
    inbox_of,
    live_entry,
    record_answer,
    stored_entry,
    stored_file,
)
from neuroscript.console.approvals.views import GONE, OTHER_CALL, absent_page, invalid_page
from neuroscript.console.console import Console
from neuroscript.console.rendering import fragment, message, not_found, redirect, render
from neuroscript.console.routing import console_of, post, visitor_of
from neuroscript.engine.suspended import resume_once
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.runtime.result_text import result_text

MAX_RESULT_CHARS: Final = 100_000
"""Maximum number of characters of a result that the page shows."""

SHORT_SECONDS: Final = 1.0
"""Seconds that a page waits for a resumed call; most calls end within them."""

BACK: Final = frozenset({"approvals.index", "chat.index"})
"""The pages that an answer may lead back to."""


async def answer_live(request: Request, form: FormData) -> Response:
    """Answer a live request; the first answer counts, and later ones show who has answered."""
    found = live_entry(console_of(request), request.path_params["id"])
    if found is None or found.request is None:
        return absent_page(request, request.path_params["id"], 409)
    try:
        approval = read_answer(form, found.request)
    except InvalidAnswer as error:
        return invalid_page(request, found, str(error), str(form.get("arguments", "")))
    return await settle_live(request, form, found, approval)


async def settle_live(request: Request, form: FormData, found: Entry, approval: Approval) -> Response:
    """Answer a live request that was found; changed arguments are checked first."""
    inbox, digest = inbox_of(console_of(request)), str(form.get("digest", ""))
    if inbox is None:
        return not_found(request, GONE)
    if approval.arguments is not None:
        checked = await asyncio.to_thread(check_entry, console_of(request), found, approval.arguments)
        if checked.problem:
            return invalid_page(request, found, checked.problem, str(form.get("arguments", "")))
    receipt = inbox.answer(found.key.id, approval, digest=digest, by=visitor_of(request).user.name)
    if receipt.status == "changed":
        return message(request, 409, "Nothing was approved", OTHER_CALL)
    if receipt.status != "counted":
        return absent_page(request, found.key.id, 409)
    back = str(form.get("back", ""))
    return redirect(request, back if back in BACK else "approvals.index", done=found.key.id)


async def answer_stored(request: Request, form: FormData) -> Response:
    """Answer a suspended call, and resume it; the first answer of all browsers and processes counts."""
    console = console_of(request)
    stored = await asyncio.to_thread(stored_file, console, request.path_params["id"])
    if stored is None:
        return absent_page(request, request.path_params["id"], 409)
    found = await asyncio.to_thread(stored_entry, console.engine, stored)
    if found.request is None:
        return message(request, 409, "Nothing was approved", found.problem)
    try:
        approval = read_answer(form, found.request)
    except InvalidAnswer as error:
        return invalid_page(request, found, str(error), str(form.get("arguments", "")))
    return await settle_stored(request, form, stored, found, approval)


async def settle_stored(
    request: Request, form: FormData, stored: PendingFile, found: Entry, approval: Approval
) -> Response:
    """Answer a suspended call that was found; changed arguments are checked first."""
    if str(form.get("digest", "")) != found.digest:
        return message(request, 409, "Nothing was approved", OTHER_CALL)
    if approval.verdict == "stop" or approval.for_session:
        text = "The session of a stored call has ended, so the answer is for this call alone."
        return invalid_page(request, found, text)
    if approval.arguments is not None:
        checked = await asyncio.to_thread(check_entry, console_of(request), found, approval.arguments)
        if checked.problem:
            return invalid_page(request, found, checked.problem, str(form.get("arguments", "")))
    try:
        work = _resuming(request, stored, found, approval)
        activity = visitor_of(request).activities.start("approvals", found.key.tool, work)
    except TooManyActivities as error:
        return message(request, 429, "Too many activities", str(error))
    await asyncio.wait({asyncio.create_task(activity.wait())}, timeout=SHORT_SECONDS)
    return redirect(request, "approvals.activity", id=activity.id)


def check_entry(console: Console, found: Entry, arguments: Mapping[str, Any] | str) -> Validation:
    """Return whether changed arguments, or their JSON text, are valid for a request."""
    request = found.request
    if request is None:
        return Validation(found.problem)
    check: Any = validate if isinstance(arguments, str) else check_arguments
    checked: Validation
    if found.key.kind == "live":
        checked = check(console.engine, request, arguments)
    else:
        with console.engine.session(id=request.session) as session:
            checked = check(session, request, arguments)
    return checked


def _resuming(request: Request, stored: PendingFile, found: Entry, approval: Approval) -> Any:
    """Return the work that claims and resumes a suspended call."""

    def claimed() -> None:
        record_answer(console_of(request), found, approval, visitor_of(request).user.name)

    async def work(activity: Activity) -> None:
        pending = stored.pending
        assert pending is not None
        console = console_of(request)
        with console.engine.session(id=pending.session) as session:
            result = await console.threads.run(resume_once, session, stored, approval, claimed)
        if await asyncio.to_thread(stored.path.exists):  # the answer was invalid, so the call still waits
            console.answered.pop(stored.name, None)
        ended = console.answered.get(stored.name) if result is None else None
        activity.view = ResumedCall(approval, result, "" if ended is None else ended_text(ended))
        activity.emit(render(request, "approvals/_result.html", **activity.view.context), mode="replace")

    return work


class ResumedCall:
    """A call that was resumed, or that another user or process has answered.

    Args:
        result: Its result, or None if it was answered before.
        answered_text: Who has answered it before, if this is known.
    """

    def __init__(self, approval: Approval, result: ToolResult | None, answered_text: str = "") -> None:
        text = "" if result is None else result_text(result)
        self.context: Final[dict[str, Any]] = {
            "was_claimed": result is not None,
            "answered_text": answered_text,
            "is_rejected": approval.verdict == "reject",
            "error_code": "" if result is None or result.error is None else result.error.code,
            "text": text[:MAX_RESULT_CHARS],
            "omitted": max(0, len(text) - MAX_RESULT_CHARS),
        }
        """The variables of the template. The result itself can be large, and is not stored."""


async def check(request: Request, form: FormData) -> Response:
    """Return whether the arguments that a user is writing are valid."""
    console, kind, id = console_of(request), request.path_params["kind"], request.path_params["id"]
    found = await asyncio.to_thread(find_entry, console, kind, id)
    checked = Validation(GONE)
    if found is not None and found.request is not None:
        checked = await asyncio.to_thread(check_entry, console, found, str(form.get("arguments", "")))
    return fragment(request, "approvals/_check.html", checked=checked)


ROUTES: Final = (
    post("/approvals/live/{id}", answer_live, "approvals.answer_live", role="approver"),
    post("/approvals/stored/{id}", answer_stored, "approvals.answer_stored", role="approver"),
    post("/approvals/{kind}/{id}/check", check, "approvals.check", role="approver"),
)
