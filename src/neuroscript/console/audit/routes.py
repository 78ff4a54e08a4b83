"""Pages of audit logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from neuroscript.audit.entries import entry_of
from neuroscript.audit.filters import OUTCOMES
from neuroscript.audit.log_reader import LoggedCall, LogPage, LogReader
from neuroscript.console.audit.charts import (
    HEIGHT,
    PERCENTS,
    ROW_HEIGHT,
    WIDTH,
    time_chart,
    tool_chart,
    tool_rows,
)
from neuroscript.console.audit.charts import OUTCOMES as PARTS
from neuroscript.console.audit.export import FORMATS, file_name, parts
from neuroscript.console.audit.logs import ShownLog, UnreadableLog, logs_of
from neuroscript.console.audit.selection import PERIODS, Selection, selection_of
from neuroscript.console.audit.shortening import record_text, shorten_entry, shorten_node
from neuroscript.console.background_jobs import jobs_of
from neuroscript.console.rendering import fragment, message, page, redirect
from neuroscript.console.routing import Get, console_of, get, is_part, post
from neuroscript.io.text import shorten
from neuroscript.policy.tool_policy import EFFECTS

CALLS_PER_PAGE: Final = 50

MAX_SUGGESTED_TOOLS: Final = 500
"""Maximum number of names of tools that the form suggests."""

MAX_HEAD_CHARS: Final = 100
LINES_AFTER: Final = 5
"""Number of lines from a line with a problem on that are shown."""

MAX_ID: Final = 2**62

OUTCOME_KINDS: Final = {"ok": "ok", "failed": "bad", "refused": "warn", "unfinished": "info", "": "info"}
"""The kinds of badges of outcomes."""


def _handled(handler: Get) -> Get:
    """Return a handler that shows a message when a log cannot be read."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except UnreadableLog as error:
            return message(request, 503, "The audit log cannot be read", f"{error}")

    return handle


def _log_of(values: Mapping[str, Any], request: Request) -> ShownLog:
    """Return the log that a request names, by default the first one.

    Raises:
        HTTPException: There is no such log.
    """
    logs, number = logs_of(request), str(values.get("log") or "1")
    for log in logs:
        if number == str(log.number):
            return log
    raise HTTPException(404, "This console has no such audit log.")


def _shared(log: ShownLog, request: Request, section: str, selection: Selection | None = None) -> dict[str, Any]:
    """Return what the templates of all pages need."""
    logs = logs_of(request)
    number = log.number if log.number > 1 else None
    fields = {} if selection is None else dict(selection.fields)
    return {
        "active": "audit",
        "section": section,
        "log": log,
        "logs": logs,
        "log_number": number,
        "fields": fields,
        "selected": {**{name: each for name, each in fields.items() if each}, "log": number},
        "badge_kind": OUTCOME_KINDS,
        "shorten": shorten,
    }


async def index(request: Request) -> Response:
    """Show a page of a log, newest first, or the latest refusals if there is no log."""
    if not logs_of(request):
        return _refusals(request)
    log, query = _log_of(request.query_params, request), request.query_params
    selection = selection_of(query)
    before, after = _id_of(query, "before"), _id_of(query, "after")

    def read(reader: LogReader) -> tuple[LogPage, list[str], float, int]:
        found = reader.page(selection.filter, size=CALLS_PER_PAGE, before=before, after=after)
        return found, reader.tools(MAX_SUGGESTED_TOOLS), reader.progress, reader.unread

    found, tools, progress, unread = await log.read(read)
    is_newest = before is None and after is None
    context = {
        **_shared(log, request, "calls", selection),
        "found": found,
        "rows": [(each.id, shorten_entry(each.entry)) for each in found.calls],
        "progress": progress,
        "unread": unread,
        "selection": selection,
        "is_newest": is_newest,
        "is_live": is_newest and query.get("live") == "1",
        "newer": None if not found.has_newer else found.calls[0].id if found.calls else None,
        "older": None if not (found.has_older and found.calls) else found.calls[-1].id,
    }
    if query.get("part") == "rows":
        return fragment(request, "audit/_rows.html", **context)
    if is_part(request):
        return fragment(request, "audit/_calls.html", **context)
    context |= {"outcomes": OUTCOMES, "effects": sorted(EFFECTS), "periods": PERIODS}
    return page(request, "audit/index.html", tools=[each for each in tools if each == shorten(each)], **context)


def _id_of(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _refusals(request: Request) -> Response:
    """Show the latest refusals, which an engine stores without an audit log."""
    records = reversed(console_of(request).engine.refusals[-CALLS_PER_PAGE:])
    entries = [
        entry_of(
            {
                **{name: getattr(each, name) for name in ("kind", "tool", "code", "rule", "time", "session", "call")},
                "needs": list(each.needs),
                "labels": list(each.labels),
                "effects": list(each.about.effects),
            }
        )
        for each in records
    ]
    return page(request, "audit/refusals.html", active="audit", entries=entries)


async def call(request: Request) -> Response:
    """Show one call with the calls around it."""
    log, id = _log_of(request.query_params, request), request.path_params["id"]

    def read(reader: LogReader) -> tuple[LoggedCall | None, Any]:
        found = reader.call(id) if id < MAX_ID else None
        return found, None if found is None else reader.tree(found.entry)

    found, tree = await log.read(read)
    if found is None:
        text = "The log has no such call. If the call has ended meanwhile, its outcome is newer in the log."
        return message(request, 404, "Not found", text)
    rows = [] if tree is None else [(depth, shorten_node(node)) for depth, node in tree.walk()]
    return page(
        request,
        "audit/call.html",
        **_shared(log, request, "calls"),
        entry=shorten_entry(found.entry),
        needs_count=len(found.entry.needs),
        text=record_text(found.record),
        tree=rows if len(rows) > 1 else [],
    )


async def line(request: Request) -> Response:
    """Show the calls around a line of a log, of which a verification has reported a problem."""
    log, number = _log_of(request.query_params, request), request.path_params["line"]
    place = await log.read(lambda reader: reader.id_of_line(min(number, MAX_ID) + LINES_AFTER))
    return redirect(request, "audit.index", before=place, log=log.number if log.number > 1 else None)


async def statistics(request: Request) -> Response:
    """Show the numbers of the selected calls."""
    log, selection = _log_of(request.query_params, request), selection_of(request.query_params)
    numbers = await log.statistics(selection.filter)
    progress = await log.read(lambda reader: 1.0 if reader.is_complete else reader.progress)
    return page(
        request,
        "audit/statistics.html",
        **_shared(log, request, "statistics", selection),
        numbers=numbers,
        progress=progress,
        rows=tool_rows(numbers),
        over_time=None if numbers.timeline is None else time_chart(numbers.timeline),
        by_tool=tool_chart(numbers),
        refusals=numbers.refusals.most_common(50),
        totals={each: sum(one[each] for one in numbers.timeline.calls) for each in PARTS} if numbers.timeline else {},
        parts=PARTS,
        percents=PERCENTS,
        width=WIDTH,
        height=HEIGHT,
        row_height=ROW_HEIGHT,
    )


async def verification(request: Request) -> Response:
    """Show the latest verification of a log."""
    log = _log_of(request.query_params, request)
    is_database = await log.read(lambda reader: reader.is_database)
    context = {
        **_shared(log, request, "verification"),
        "job": jobs_of(request).get(("verify", log.number)),
        "is_database": is_database,
    }
    if is_part(request):
        return fragment(request, "audit/_verification.html", **context)
    return page(request, "audit/verification.html", **context)


async def verify(request: Request, form: FormData) -> Response:
    """Start to verify a log, and show the page about it."""
    log = _log_of({"log": str(form.get("log", ""))}, request)
    head = str(form.get("head", "")).strip()[:MAX_HEAD_CHARS] or None
    jobs_of(request).start(("verify", log.number), lambda: log.verified(head))
    return redirect(request, "audit.verification", log=log.number if log.number > 1 else None)


async def export(request: Request) -> Response:
    """Send the selected records as a file, oldest first."""
    log, selection = _log_of(request.query_params, request), selection_of(request.query_params)
    suffix = request.query_params.get("format", "")
    if suffix not in FORMATS:
        raise HTTPException(404, "This format is unknown; use jsonl or csv.")
    if not selection.is_valid:
        raise HTTPException(400, "A field of the form is invalid.")
    await log.read(lambda reader: reader.last_id)  # a log that cannot be read becomes a page, not a broken file
    format = FORMATS[suffix]
    headers = {"content-disposition": f'attachment; filename="{file_name(log.path, suffix)}"'}
    return StreamingResponse(
        parts(log.iter_calls(selection.filter), format), media_type=format.media_type, headers=headers
    )


ROUTES: Final = (
    get("/audit", _handled(index), "audit.index"),
    get("/audit/calls/{id:int}", _handled(call), "audit.call"),
    get("/audit/lines/{line:int}", _handled(line), "audit.line"),
    get("/audit/statistics", _handled(statistics), "audit.statistics"),
    get("/audit/verification", _handled(verification), "audit.verification"),
    post("/audit/verification", verify, "audit.verify", role="viewer"),
    get("/audit/export", _handled(export), "audit.export"),
)
