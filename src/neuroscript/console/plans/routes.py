"""Pages of plans: the files of the directory, a plan with its graph and its form, and a run with its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.activities import Activity, TooManyActivities
from neuroscript.console.console import Console
from neuroscript.console.forms.arguments_form import ACTION
from neuroscript.console.forms.reader import TooManyFields
from neuroscript.console.paging import ListPage, page_number
from neuroscript.console.plans.directory import (
    MAX_LISTED_BYTES,
    PlanDirectory,
    PlanSource,
    StoredFile,
    directory_of,
)
from neuroscript.console.plans.durable_pages import ROUTES as DURABLE
from neuroscript.console.plans.inputs import PlanInputs, empty_inputs, submitted_inputs
from neuroscript.console.plans.progress import PlanRun
from neuroscript.console.plans.runs import KIND, check_plan, new_run_id, start_run
from neuroscript.console.plans.trace_pages import ROUTES as TRACES
from neuroscript.console.rendering import fragment, message, not_found, page, redirect, render
from neuroscript.console.routing import console_of, get, post, visitor_of
from neuroscript.console.visitor import Visitor
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.trace.inline_svg import inline_graph, node_details, plan_picture

PAGE_FILES: Final = 50
"""Maximum number of files in a page."""

MAX_SOURCE_LINES: Final = 2_000
"""Maximum number of lines of a plan file in a page."""

MAX_NODES_SHOWN: Final = 500
"""Maximum number of nodes in a table of a page, and of a plan whose graph is drawn."""


@attrs.frozen
class ListedPlan:
    """A plan file in the list.

    Attributes:
        source: Its content.
        problems: Why a valid plan cannot run here.
    """

    source: PlanSource
    problems: tuple[str, ...]


async def index(request: Request) -> Response:
    """List the plan files, and what this browser runs."""
    directory = directory_of(request)
    files = [] if directory is None else await asyncio.to_thread(directory.files, "plan")
    found = ListPage.of(files, page_number(request), PAGE_FILES)
    plans: list[ListedPlan] = []
    if directory is not None:
        plans = await asyncio.to_thread(_listed, visitor_of(request), console_of(request), directory, found.items)
    return page(
        request,
        "plans/index.html",
        active="plans",
        directory=directory,
        plans=plans,
        found=found,
        runs=[each for each in visitor_of(request).activities if each.kind == KIND],
    )


def _listed(
    visitor: Visitor, console: Console, directory: PlanDirectory, files: Sequence[StoredFile]
) -> list[ListedPlan]:
    """Return plan files with their first problem; large ones are not read."""
    found = (
        directory.plan(file.name) if file.size <= MAX_LISTED_BYTES else PlanSource(file.name, "", None)
        for file in files
    )
    return [
        ListedPlan(each, () if each.plan is None else check_plan(visitor, console, each.plan))
        for each in found
        if each is not None
    ]


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
    request: Request, source: PlanSource, inputs: PlanInputs | None = None, *, notice: str = "", status: int = 200
) -> Response:
    """Return the page of a plan.

    Args:
        inputs: What was entered; None if nothing was.
        notice: Why the plan was not run.
    """
    plan, console, visitor = source.plan, console_of(request), visitor_of(request)
    problems = source.problems
    if plan is not None:
        problems = source.located(await asyncio.to_thread(check_plan, visitor, console, plan))
        inputs = inputs or empty_inputs(visitor.session, plan)
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
        inputs=inputs,
        notice=notice,
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


async def change_form(request: Request, form: FormData) -> Response:
    """Show the page again after a button of the form was pressed that does not run the plan."""
    found = await _submitted(request, form)
    return found if isinstance(found, Response) else await _plan_page(request, found[0], found[1])


async def change_fields(request: Request, form: FormData) -> Response:
    """Return the fields of the form after a button was pressed, for JavaScript."""
    found = await _submitted(request, form)
    return found if isinstance(found, Response) else fragment(request, "plans/_fields.html", inputs=found[1])


async def check_inputs(request: Request, form: FormData) -> Response:
    """Return the problems with the inputs, while the user types."""
    found = await _submitted(request, form)
    return found if isinstance(found, Response) else fragment(request, "plans/_inputs.html", inputs=found[1])


async def _submitted(request: Request, form: FormData) -> tuple[PlanSource, PlanInputs] | Response:
    """Return the plan and the inputs in a form, or the page that says why there are none."""
    source = await _source(request)
    if source is None:
        return not_found(request, "There is no plan file with this name.")
    if source.plan is None:
        return await _plan_page(request, source, status=422)
    try:
        return source, await submitted_inputs(visitor_of(request).session, source.plan, form)
    except TooManyFields as error:
        return message(request, 413, "The form is too large", f"{str(error).capitalize()}.")


async def run(request: Request, form: FormData) -> Response:
    """Run a plan with the inputs of the form, and show its progress."""
    found = await _submitted(request, form)
    if isinstance(found, Response):
        return found
    source, inputs = found
    plan, visitor, console = source.plan, visitor_of(request), console_of(request)
    assert plan is not None
    if form.get("digest") != plan.digest:
        text = "The plan has changed since the page was loaded. Look at it again before you run it."
        return await _plan_page(request, source, inputs, notice=text, status=409)
    if form.get(ACTION) != "run":
        return await _plan_page(request, source, inputs)
    problems = await asyncio.to_thread(check_plan, visitor, console, plan)
    if problems or inputs.problems:
        return await _plan_page(request, source, inputs, status=422)
    run_id = new_run_id() if form.get("durable") and console.settings.runs is not None else ""
    started = PlanRun.of(source.name, plan, run_id)
    try:
        activity = start_run(visitor, console, started, inputs.values, partial(render, request))
    except TooManyActivities as error:
        return await _plan_page(request, source, inputs, notice=f"{str(error).capitalize()}.", status=429)
    return redirect(request, "plans.activity", id=activity.id)


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
    post("/plans/files/{file}/form", change_form, "plans.form"),
    post("/plans/files/{file}/fields", change_fields, "plans.fields"),
    post("/plans/files/{file}/check", check_inputs, "plans.check"),
    post("/plans/files/{file}/run", run, "plans.run"),
    get("/plans/running/{id}", activity, "plans.activity"),
    get("/plans/approvals", approvals, "plans.approvals"),
    *TRACES,
    *DURABLE,
)
