"""Pages of traces: those in the directory and those of runs of this browser, and the differences between two."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final

import attrs
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.activities import Activity
from neuroscript.console.paging import ListPage, page_number
from neuroscript.console.plans.directory import directory_of, trace_file_name
from neuroscript.console.plans.progress import STATUS_KINDS, PlanRun
from neuroscript.console.plans.runs import KIND
from neuroscript.console.plans.values import value_text
from neuroscript.console.rendering import message, not_found, page, redirect
from neuroscript.console.routing import get, post, visitor_of
from neuroscript.errors import SpecError
from neuroscript.io.text import duration
from neuroscript.workflow.trace.diff import trace_diff
from neuroscript.workflow.trace.file import trace_to_data
from neuroscript.workflow.trace.inline_svg import inline_graph, inline_timeline, trace_picture
from neuroscript.workflow.trace.text import HEAD, endings, headline, table
from neuroscript.workflow.trace.trace import NodeTrace, Trace

PAGE_FILES: Final = 50
"""Maximum number of traces in a page."""

MAX_NODES_SHOWN: Final = 500
"""Maximum number of nodes in a page."""

RUN: Final = "run:"
FILE: Final = "file:"


@attrs.frozen
class NodeValues:
    """The values of a node, as text.

    Attributes:
        name: The name of the node.
        arguments: Its arguments, or ``""``.
        result: Its result, or ``""``.
        error: Its error, or ``""``.
    """

    name: str
    arguments: str
    result: str
    error: str


async def traces(request: Request) -> Response:
    """List the traces of the directory and of this browser."""
    directory = directory_of(request)
    files = [] if directory is None else await asyncio.to_thread(directory.files, "trace")
    return page(
        request,
        "plans/traces.html",
        active="plans",
        found=ListPage.of(files, page_number(request), PAGE_FILES),
        runs=traces_of_browser(request),
    )


def traces_of_browser(request: Request) -> list[tuple[Activity, Trace]]:
    """Return the runs of this browser that have a trace, the newest first."""
    found = [each for each in visitor_of(request).activities if each.kind == KIND and isinstance(each.view, PlanRun)]
    return [(each, each.view.trace) for each in found if each.view.trace is not None]


async def show_file(request: Request) -> Response:
    """Show a trace of the directory."""
    return await _shown(request, f"{FILE}{request.path_params['file']}")


async def show_run(request: Request) -> Response:
    """Show the trace of a run of this browser."""
    return await _shown(request, f"{RUN}{request.path_params['id']}")


async def _shown(request: Request, key: str) -> Response:
    try:
        trace = await _trace(request, key)
    except SpecError as error:
        return message(request, 422, "Not a valid trace", str(error))
    if trace is None:
        return not_found(request, "There is no such trace.")
    shown = attrs.evolve(trace, nodes=trace.nodes[:MAX_NODES_SHOWN])
    head, *rows = table(shown)
    return page(
        request,
        "plans/trace.html",
        active="plans",
        key=key,
        trace=trace,
        head=head,
        rows=rows,
        status_column=HEAD.index("status"),
        kinds=STATUS_KINDS,
        values=[*map(_values, shown.nodes)],
        endings=[*endings(trace)],
        graph=_graph(trace),
        times=_times(shown),
        omitted=len(trace.nodes) - len(shown.nodes),
        can_save=key.startswith(RUN) and directory_of(request) is not None,
    )


async def _trace(request: Request, key: str) -> Trace | None:
    """Return a trace, or None if it is unknown.

    Raises:
        SpecError: The file is not a valid trace.
    """
    if key.startswith(RUN):
        found = visitor_of(request).activities.get(key.removeprefix(RUN))
        return found.view.trace if found is not None and isinstance(found.view, PlanRun) else None
    directory = directory_of(request)
    if directory is None or not key.startswith(FILE):
        return None
    return await asyncio.to_thread(directory.trace, key.removeprefix(FILE))


def _graph(trace: Trace) -> Markup | None:
    """Return the graph as an SVG element whose text is escaped, or None if it is too large."""
    if len(trace.nodes) > MAX_NODES_SHOWN:
        return None
    try:
        return Markup(inline_graph(trace_picture(trace), f"Graph of the run, with {len(trace.nodes)} nodes"))  # noqa: S704
    except ValueError:
        return None


def _times(trace: Trace) -> Markup:
    label = f"Timeline of the run, which took {duration(trace.seconds)}; the table has the same times"
    return Markup(inline_timeline(trace, label))  # noqa: S704


def _values(node: NodeTrace) -> NodeValues:
    error = node.error or {}
    text = ": ".join(filter(None, (str(error.get("code", "")), str(error.get("message", "")))))
    return NodeValues(node.name, value_text(node.arguments), value_text(node.result), text)


async def download(request: Request) -> Response:
    """Send the trace of a run of this browser as a file."""
    trace = await _trace(request, f"{RUN}{request.path_params['id']}")
    if trace is None:
        return not_found(request, "There is no such trace.")
    text = f"{json.dumps(trace_to_data(trace), indent=1)}\n"
    headers = {"content-disposition": f'attachment; filename="{trace_file_name(trace)}"'}
    return Response(text, media_type="application/json", headers=headers)


async def save(request: Request, form: FormData) -> Response:
    """Write the trace of a run of this browser to the directory."""
    trace, directory = await _trace(request, f"{RUN}{request.path_params['id']}"), directory_of(request)
    if trace is None or directory is None:
        return not_found(request, "There is no such trace.")
    try:
        name = await asyncio.to_thread(directory.save, trace)
    except OSError:
        return message(request, 422, "Not saved", "The trace cannot be written to the directory of plans.")
    return redirect(request, "plans.trace", file=name)


async def comparison(request: Request) -> Response:
    """Show the differences between two traces, or the form that chooses them."""
    keys = [request.query_params.get(name, "") for name in ("a", "b")]
    found: list[Trace] = []
    problems: list[str] = []
    for key in keys:
        try:
            trace = await _trace(request, key) if key else None
        except SpecError as error:
            problems.append(str(error))
            continue
        if trace is not None:
            found.append(trace)
        elif key:
            problems.append("There is no such trace.")
    differences = await asyncio.to_thread(trace_diff, *found) if len(found) == len(keys) else None
    return page(
        request,
        "plans/compare.html",
        status=422 if problems else 200,
        active="plans",
        keys=keys,
        choices=[*_choices(request)],
        found=found,
        differences=differences,
        problems=problems,
    )


def _choices(request: Request) -> Iterator[tuple[str, str]]:
    """Yield the key and the title of each trace that can be chosen."""
    for activity, trace in traces_of_browser(request):
        yield f"{RUN}{activity.id}", f"{headline(trace)} (this browser)"
    directory = directory_of(request)
    for file in [] if directory is None else directory.files("trace")[:MAX_NODES_SHOWN]:
        yield f"{FILE}{file.name}", file.name


ROUTES: Final = (
    get("/plans/traces", traces, "plans.traces"),
    get("/plans/traces/{file}", show_file, "plans.trace"),
    get("/plans/running/{id}/trace", show_run, "plans.run_trace"),
    get("/plans/running/{id}/trace.json", download, "plans.download"),
    post("/plans/running/{id}/trace", save, "plans.save"),
    get("/plans/compare", comparison, "plans.compare"),
)
