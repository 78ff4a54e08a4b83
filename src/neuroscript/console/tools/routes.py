"""Routes of the tools pages: the list, a page for each tool, calls, and the session of the browser."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.activities import Activity, TooManyActivities
from neuroscript.console.console import Console
from neuroscript.console.effects import is_held_back, runnable_session
from neuroscript.console.forms.arguments_form import ACTION, ArgumentsForm
from neuroscript.console.forms.reader import TooManyFields
from neuroscript.console.policy.limits import limit_rows
from neuroscript.console.rendering import fragment, message, not_found, page, redirect, render
from neuroscript.console.routing import console_of, get, is_part, post, visitor_of
from neuroscript.console.tools.listing import Catalog, Query
from neuroscript.console.tools.preview import preview_call
from neuroscript.console.tools.results import ResultView
from neuroscript.console.tools.running import CallWork, RunningCall
from neuroscript.console.tools.tool_page import example_arguments, form_context, tool_context
from neuroscript.console.tools.variables import variables_of
from neuroscript.engine.explanation.remedies import remedy_of
from neuroscript.engine.preflight import decide
from neuroscript.errors import PluginError
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.tools.tool import ToolImplementation

PICTURE_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "content-disposition": "inline; filename=picture",
    "cache-control": "private, no-store",
}
"""Headers that let a browser show a picture, and do nothing else with it."""


def tool_of(request: Request) -> ToolImplementation:
    """Return the tool that the address names, in any spelling or by an old name.

    Raises:
        HTTPException: There is no such tool, or its distribution cannot be loaded.
    """
    engine = console_of(request).engine
    name = from_wire(request.path_params["name"])
    try:
        tool = engine.tools.get(engine.aliases.get(name, name))
    except PluginError as error:
        raise HTTPException(404, f"This tool cannot be loaded: {error}") from error
    if tool is None:
        raise HTTPException(404, "There is no tool with this name.")
    return tool


def _catalog(request: Request) -> Catalog:
    state = request.app.state
    if not hasattr(state, "tools_catalog"):
        state.tools_catalog = Catalog(console_of(request).engine)
    return cast("Catalog", state.tools_catalog)


# The list


async def index(request: Request) -> Response:
    """Show the tools that a search finds."""
    query = Query.of(request)
    session = visitor_of(request).session
    found = await asyncio.to_thread(_catalog(request).page, session, query)
    if is_part(request):
        return fragment(request, "tools/_list.html", query=query, found=found)
    return page(request, "tools/index.html", active="tools", query=query, found=found)


# The page of a tool, and its form


async def show(request: Request) -> Response:
    """Show a tool, with a form for its arguments; an example or an earlier call may fill it."""
    tool = tool_of(request)
    first = _first_arguments(request, tool)
    form = ArgumentsForm.filled(tool.spec.args, first, variadic=tool.spec.variadic)
    return await _tool_page(request, tool, form, is_new=not first)


def _first_arguments(request: Request, tool: ToolImplementation) -> Mapping[str, Any]:
    number, earlier = request.query_params.get("example", ""), request.query_params.get("call", "")
    if number.isascii() and number.isdigit() and len(number) < 4 and 0 < int(number) <= len(tool.spec.examples):
        return example_arguments(tool.spec, tool.spec.examples[int(number) - 1])
    call = _call_of(request, earlier)
    return call.arguments if call is not None and call.tool == tool.name else {}


async def change_form(request: Request, form: FormData) -> Response:
    """Show the page again after a button of the form was pressed that does not run the tool."""
    tool = tool_of(request)
    submitted = await _submitted(request, tool, form)
    return submitted if isinstance(submitted, Response) else await _tool_page(request, tool, submitted)


async def change_fields(request: Request, form: FormData) -> Response:
    """Return the fields of the form after a button was pressed, for JavaScript."""
    tool = tool_of(request)
    submitted = await _submitted(request, tool, form)
    if isinstance(submitted, Response):
        return submitted
    context = await asyncio.to_thread(form_context, console_of(request), visitor_of(request).session, tool, submitted)
    return fragment(request, "tools/_fields.html", **context)


async def check(request: Request, form: FormData) -> Response:
    """Return what would happen if the arguments were sent now, while the user types."""
    tool = tool_of(request)
    submitted = await _submitted(request, tool, form)
    if isinstance(submitted, Response):
        return submitted
    context = await asyncio.to_thread(form_context, console_of(request), visitor_of(request).session, tool, submitted)
    return fragment(request, "tools/_preview.html", is_live=True, is_new=False, **context)


async def _submitted(request: Request, tool: ToolImplementation, form: FormData) -> ArgumentsForm | Response:
    try:
        return await ArgumentsForm.submitted(tool.spec.args, form, variadic=tool.spec.variadic)
    except TooManyFields as error:
        return message(request, 413, "The form is too large", f"{str(error).capitalize()}.")


async def _tool_page(
    request: Request,
    tool: ToolImplementation,
    form: ArgumentsForm,
    *,
    is_new: bool = False,
    status: int = 200,
    notice: str = "",
) -> Response:
    console, session = console_of(request), visitor_of(request).session
    context = await asyncio.to_thread(form_context, console, session, tool, form, is_new=is_new)
    about = await asyncio.to_thread(tool_context, console, session, tool)
    more = {"is_live": False, "is_new": is_new, "notice": notice}
    return page(request, "tools/show.html", status, active="tools", **about, **context, **more)


# Calls


async def run(request: Request, form: FormData) -> Response:
    """Run a tool with the arguments of its form, and show the page of the call."""
    tool = tool_of(request)
    submitted = await _submitted(request, tool, form)
    if isinstance(submitted, Response):
        return submitted
    console, visitor = console_of(request), visitor_of(request)
    if form.get(ACTION) != "run" or submitted.problems:
        return await _tool_page(request, tool, submitted, status=200 if form.get(ACTION) != "run" else 422)
    if is_held_back(console, tool.policy):
        return await _tool_page(request, tool, submitted, status=403)
    preview = await asyncio.to_thread(preview_call, console, visitor.session, tool, submitted)
    if preview.problems:
        return await _tool_page(request, tool, submitted, status=422)
    try:
        activity = _start(request, console, tool, submitted)
    except TooManyActivities as error:
        return await _tool_page(request, tool, submitted, status=429, notice=f"{str(error).capitalize()}.")
    return redirect(request, "tools.activity", id=activity.id)


def _start(request: Request, console: Console, tool: ToolImplementation, form: ArgumentsForm) -> Activity:
    visitor = visitor_of(request)
    session = runnable_session(visitor, console)
    sent = ToolCall(tool.name, form.arguments)
    call = RunningCall(tool.name, form.shown, form.json, needs_approval=decide(session, sent).needs_approval)

    async def work(activity: Activity) -> None:
        def emit(part: str, value: Any) -> None:
            target, mode = PARTS[part]
            html = render(request, f"tools/_{part}.html", value=value, call=call, activity=activity, **_result(call))
            activity.emit(html, target=target, mode=mode)

        await CallWork(session, console.threads, tool.policy, sent, call, emit)(activity)

    return visitor.activities.start("tools", tool.name, work, view=call)


PARTS: Final[Mapping[str, Any]] = {
    "item": ("items", "append"),
    "omitted": ("omitted-items", "replace"),
    "message": ("messages", "append"),
    "progress": ("progress", "replace"),
    "outcome": ("outcome", "replace"),
}
"""The element that each part of the page of a call changes, and how."""


async def activity(request: Request) -> Response:
    """Show a call, while it runs and afterwards."""
    found = visitor_of(request).activities.get(request.path_params["id"])
    if found is None or not isinstance(found.view, RunningCall):
        return not_found(request, "This call is no longer stored, or another browser has made it.")
    call = found.view
    context = _result(call, request.query_params.get("view", ""))
    after = found.events[-1].number if found.events else 0
    return page(request, "tools/call.html", active="tools", activity=found, call=call, after=after, **context)


def _result(call: RunningCall, asked: str = "") -> dict[str, Any]:
    """Return which form of the result is shown: the most suitable one, until the user asks for another one."""
    view: ResultView | None = call.view
    if view is None:
        return {"shown_view": "", "error": call.result.error if call.result else None, "remedy": _remedy(call)}
    return {"shown_view": asked if asked in view.views else view.views[0], "error": None, "remedy": None}


def _remedy(call: RunningCall) -> Any:
    return remedy_of(call.result.error) if call.result is not None and call.result.error is not None else None


async def picture(request: Request) -> Response:
    """Return a picture of a result, as a file that a browser only shows as a picture."""
    call = _call_of(request, request.path_params["id"])
    number = request.path_params["number"]
    pictures = call.view.pictures if call is not None and call.view is not None else ()
    if not 0 <= number < len(pictures):
        return not_found(request, "There is no such picture.")
    found = pictures[number]
    return Response(found.data, media_type=found.media_type, headers=PICTURE_HEADERS)


def _call_of(request: Request, id: str) -> RunningCall | None:
    found = visitor_of(request).activities.get(id) if id else None
    return found.view if found is not None and isinstance(found.view, RunningCall) else None


# The session


async def session(request: Request) -> Response:
    """Show the variables, the limits and the calls of this browser."""
    visitor, console = visitor_of(request), console_of(request)
    calls = [each for each in visitor.activities if isinstance(each.view, RunningCall)]
    rows = limit_rows(console.engine, visitor.session)
    variables = variables_of(visitor.session)
    return page(request, "tools/session.html", active="tools", variables=variables, usage=rows, calls=calls)


ROUTES: Final = (
    get("/tools", index, "tools.index"),
    get("/tools/{name}", show, "tools.show"),
    post("/tools/{name}", change_form, "tools.form", role="viewer"),
    post("/tools/{name}/fields", change_fields, "tools.fields", role="viewer"),
    post("/tools/{name}/check", check, "tools.check", role="viewer"),
    post("/tools/{name}/run", run, "tools.run"),
    get("/calls/{id}", activity, "tools.activity"),
    get("/calls/{id}/pictures/{number:int}", picture, "tools.picture"),
    get("/session", session, "tools.session"),
)
