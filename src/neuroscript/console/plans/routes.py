"""Pages of plans: the files of the directory, a plan with its graph and its form, and a run with its progress."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.activities import Activity, TooManyActivities
from neuroscript.console.paging import ListPage, page_number
from neuroscript.console.plans.directory import (
    MAX_LISTED_BYTES,
    PlanDirectory,
    PlanSource,
    StoredFile,
    directory_of,
)
from neuroscript.console.plans.durable_pages import ROUTES as DURABLE
from neuroscript.console.plans.progress import STATUS_KINDS, PlanRun
from neuroscript.console.plans.runs import KIND, check_plan, new_run_id, start_run
from neuroscript.console.plans.trace_pages import ROUTES as TRACES
from neuroscript.console.rendering import message, not_found, page, redirect, render
from neuroscript.console.routing import console_of, get, post, visitor_of
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.spec.binding import bind_arguments
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.trace.inline_svg import inline_graph, node_details, plan_picture

PAGE_FILES: Final = 50
"""Maximum number of files in a page."""

MAX_SOURCE_LINES: Final = 2_000
"""Maximum number of lines of a plan file in a page."""

MAX_NODES_SHOWN: Final = 500
"""Maximum number of nodes in a table of a page, and of a plan whose graph is drawn."""


async def index(request: Request) -> Response:
    """List the plan files, and what this browser runs."""
    directory = directory_of(request)
    files = [] if directory is None else await asyncio.to_thread(directory.files, "plan")
    found = ListPage.of(files, page_number(request), PAGE_FILES)
    sources = [] if directory is None else await asyncio.to_thread(_sources, directory, found.items)
    return page(
        request,
        "plans/index.html",
        active="plans",
        directory=directory,
        sources=sources,
        found=found,
        runs=[each for each in visitor_of(request).activities if each.kind == KIND],
        has_runs=console_of(request).settings.runs is not None,
    )


def _sources(directory: PlanDirectory, files: Sequence[StoredFile]) -> list[PlanSource]:
    """Return the content of plan files; large ones are not read."""
    found = (
        directory.plan(file.name) if file.size <= MAX_LISTED_BYTES else PlanSource(file.name, "", None)
        for file in files
    )
    return [each for each in found if each is not None]


async def show(request: Request) -> Response:
    """Show a plan: its graph, its nodes, its problems, and the form for its inputs."""
    source = await _source(request)
    if source is None:
        return not_found(request, "There is no plan file with this name.")
    return await _plan_page(request, source)


async def _source(request: Request) -> PlanSource | None:
    directory = directory_of(request)
    return None if directory is None else await asyncio.to_thread(directory.plan, request.path_params["file"])


async def _plan_page(
    request: Request,
    source: PlanSource,
    *,
    inputs: str = "",
    faults: tuple[str, ...] = (),
    status: int = 200,
) -> Response:
    """Return the page of a plan.

    Args:
        inputs: The text of the inputs that were entered, without secrets.
        faults: The problems of these inputs.
    """
    plan, console = source.plan, console_of(request)
    problems = source.problems
    if plan is not None:
        found = await asyncio.to_thread(check_plan, visitor_of(request), console, plan)
        problems = source.located(found)
    lines = source.text.splitlines()
    return page(
        request,
        "plans/show.html",
        status=status,
        active="plans",
        source=source,
        plan=plan,
        graph=None if plan is None else _graph(plan),
        details={} if plan is None else {node.name: [*node_details(node)] for node in plan.nodes},
        problems=problems,
        by_line=_by_line(problems),
        lines=lines[:MAX_SOURCE_LINES],
        omitted=max(0, len(lines) - MAX_SOURCE_LINES),
        most=MAX_NODES_SHOWN,
        inputs=inputs or _example_inputs(plan),
        faults=faults,
        has_runs=console.settings.runs is not None,
    )


def _graph(plan: Plan) -> Markup | None:
    """Return the graph as an SVG element whose text is escaped, or None if it is too large."""
    if len(plan.nodes) > MAX_NODES_SHOWN:
        return None
    try:
        label = f"Graph of the plan {plan.name}, with {len(plan.nodes)} nodes"
        return Markup(inline_graph(plan_picture(plan), label))  # noqa: S704
    except ValueError:
        return None


def _by_line(problems: tuple[tuple[int, str], ...]) -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = {}
    for line, text in problems:
        found.setdefault(line, []).append(text)
    return found


def _example_inputs(plan: Plan | None) -> str:
    """Return the names of the inputs that have to be filled in, as JSON."""
    required = {} if plan is None else {arg.name: None for arg in plan.inputs if arg.required}
    return json.dumps(required, indent=2) if required else ""


async def run(request: Request, form: FormData) -> Response:
    """Run a plan with the inputs of the form, and show its progress."""
    source = await _source(request)
    if source is None:
        return not_found(request, "There is no plan file with this name.")
    plan, visitor, console = source.plan, visitor_of(request), console_of(request)
    if plan is None:
        return await _plan_page(request, source, status=422)
    if form.get("digest") != plan.digest:
        return await _plan_page(
            request, source, faults=("The plan has changed since the page was loaded.",), status=409
        )
    text = str(form.get("inputs", ""))
    shown = "" if plan.signature.secret_names else text
    inputs, faults = read_inputs(visitor.session, plan, text)
    if faults:
        return await _plan_page(request, source, inputs=shown, faults=faults, status=422)
    if await asyncio.to_thread(check_plan, visitor, console, plan):
        return await _plan_page(request, source, inputs=shown, status=422)
    run_id = new_run_id() if form.get("durable") and console.settings.runs is not None else ""
    started = PlanRun.of(source.name, plan, run_id)
    try:
        activity = start_run(visitor, console, started, inputs, partial(render, request))
    except TooManyActivities as error:
        return message(request, 429, "Too many runs", f"{error}.")
    return redirect(request, "plans.activity", id=activity.id)


def read_inputs(session: Session, plan: Plan, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the inputs of a plan from JSON text, and every problem with them; no problem contains a value."""
    try:
        inputs = parse_json(text) if text.strip() else {}
    except NotJSON as error:
        return {}, (f"The inputs are not JSON: {error.hint}",)
    if not isinstance(inputs, dict):
        return {}, ("The inputs must be a JSON object by name.",)
    try:
        bind_arguments(plan.signature, session._shared.coercion, inputs, by_name=True)
    except ArgumentError as error:
        return {}, tuple(map(str, error.problems))
    return inputs, ()


async def activity(request: Request) -> Response:
    """Show a run of this browser: its graph and the state of its nodes, which change while it runs."""
    found: Activity | None = visitor_of(request).activities.get(request.path_params["id"])
    if found is None or not isinstance(found.view, PlanRun):
        return not_found(request, "This run is not known to this browser.")
    plan_run: PlanRun = found.view
    return page(
        request,
        "plans/activity.html",
        active="plans",
        activity=found,
        run=plan_run,
        graph=_run_graph(plan_run),
        kinds=STATUS_KINDS,
        most=MAX_NODES_SHOWN,
        waiting=_waiting(request),
    )


def _run_graph(run: PlanRun) -> Markup | None:
    """Return the graph with the present state of each node."""
    if run.picture is None or len(run.plan.nodes) > MAX_NODES_SHOWN:
        return None
    label = f"Graph of the run, with {len(run.plan.nodes)} nodes"
    boxes = {box.name: run.box(box.name) for box in run.picture.boxes}
    return Markup(inline_graph(run.picture, label, boxes))  # noqa: S704


async def approvals(request: Request) -> Response:
    """Return the calls of this browser that wait for an approval, for a page that loads them again."""
    return page(request, "plans/_approvals.html", waiting=_waiting(request))


def _waiting(request: Request) -> list[Any]:
    """Return the requests of the sessions of this browser that wait in the inbox."""
    inbox = console_of(request).settings.inbox
    session = visitor_of(request).id
    return [each for each in inbox.waiting if each.request.session == session] if inbox is not None else []


ROUTES: Final = (
    get("/plans", index, "plans.index"),
    get("/plans/files/{file}", show, "plans.show"),
    post("/plans/files/{file}/run", run, "plans.run"),
    get("/plans/running/{id}", activity, "plans.activity"),
    get("/plans/approvals", approvals, "plans.approvals"),
    *TRACES,
    *DURABLE,
)
