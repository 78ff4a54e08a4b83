"""Parts of pages: the graph of a plan or a trace, and the timeline of a trace, as SVG without styles of its own.

The page provides the colours by class, so a strict content security policy permits the pictures. Each node is a link to
the element ``node-NAME`` of the page, which repeats its text, and its group ``box-NAME`` can be replaced during a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from neuroscript.io.text import duration, one_line
from neuroscript.workflow.plan.model import Node, Plan
from neuroscript.workflow.trace.graph_layout import number
from neuroscript.workflow.trace.graph_picture import MARKER, PAD, Box, GraphPicture
from neuroscript.workflow.trace.svg import LANE, NAMES, timeline_lines, trace_box
from neuroscript.workflow.trace.svg_text import MAX_LABEL_CHARS, safe
from neuroscript.workflow.trace.timeline import Timeline
from neuroscript.workflow.trace.trace import Trace

EDGE: Final = 2.0
"""Pixels around a graph, so that borders are not cut."""

NOT_RUN: Final = ("", "waiting", "skipped", "unstarted")
"""The states in which the border of a node is dashed."""

TIMELINE_WIDTH: Final = 640.0
"""Pixels of the time axis."""


LONGEST_STATE: Final = ("succeeded", "999.9 ms")
"""The longest status and time of a node during a run."""


def plan_picture(plan: Plan, *, has_states: bool = False) -> GraphPicture:
    """Return the graph of a plan before it runs.

    Args:
        has_states: Whether the boxes are wide enough for the states of a run.

    Raises:
        ValueError: If there are too many edges for a picture.
    """
    boxes = [plan_box(node) for node in plan.nodes]
    needs = {node.name: node.needs for node in plan.nodes}
    if not has_states:
        return GraphPicture.of(boxes, needs)
    widest = [plan_box(node, *LONGEST_STATE) for node in plan.nodes]
    return attrs.evolve(GraphPicture.of(widest, needs), boxes=tuple(boxes))


def trace_picture(trace: Trace) -> GraphPicture:
    """Return the graph of a run.

    Raises:
        ValueError: If the needs of the nodes have a cycle, or there are too many edges for a picture.
    """
    return GraphPicture.of([trace_box(node) for node in trace.nodes], {node.name: node.needs for node in trace.nodes})


def plan_box(node: Node, status: str = "", took: str = "", more: str = "") -> Box:
    """Return the text in the box of a node of a plan.

    Args:
        status: Its status during a run.
        took: How long it took, or ``""``.
        more: Details of the run in place of those of the plan.
    """
    tool = one_line(node.tool, MAX_LABEL_CHARS)
    details = more or ", ".join(node_details(node))
    title = ", ".join(filter(None, (f"{node.name}: {tool}", status, took, details)))
    return Box(node.name, tool, status, took, one_line(details, MAX_LABEL_CHARS), title, status not in NOT_RUN)


def node_details(node: Node) -> Iterator[str]:
    """Yield what a plan says about a node besides its tool and its inputs."""
    if node.when is not None:
        yield "conditional"
    if node.map is not None:
        yield "once for each item"
    if node.retry.count:
        yield f"up to {node.retry.count} {'retries' if node.retry.count > 1 else 'retry'}"
    if node.timeout is not None:
        yield f"at most {duration(float(node.timeout))}"
    if node.on_fail == "continue":
        yield "may fail"


def inline_graph(picture: GraphPicture, label: str, boxes: Mapping[str, Box] | None = None) -> str:
    """Return a graph as an SVG element.

    Args:
        label: Its name for screen readers.
        boxes: The present text of some nodes by name, in place of the text in the picture.
    """
    shown = [(boxes or {}).get(box.name, box) for box in picture.boxes]
    wide, high = picture.graph.width + 2 * EDGE, picture.graph.height + 2 * EDGE
    size = f'width="{number(wide)}" height="{number(high)}" viewBox="0 0 {number(wide)} {number(high)}"'
    nodes = (
        f'<a class="node" href="#node-{safe(box.name)}"><g id="box-{safe(box.name)}">{inline_box(picture, box)}</g></a>'
        for box in shown
    )
    return "\n".join(
        [
            f'<svg class="graph-picture" {size} role="group" aria-label="{safe(label)}">',
            MARKER,
            f'<g transform="translate({number(EDGE)} {number(EDGE)})">',
            *picture.edges(),
            *nodes,
            "</g></svg>",
        ]
    )


def inline_box(picture: GraphPicture, box: Box) -> str:
    """Return the content of the group of one node; *box* may have another status than in the picture."""
    return f"<title>{safe(box.title)}</title>{''.join(picture.box(box))}"


def inline_timeline(trace: Trace, label: str) -> str:
    """Return the times of a trace as an SVG element."""
    wide, high = NAMES + TIMELINE_WIDTH + 2 * PAD, (len(trace.nodes) + 1) * LANE
    size = f'width="{number(wide)}" height="{number(high)}" viewBox="0 0 {number(wide)} {number(high)}"'
    return "\n".join(
        [
            f'<svg class="timeline-picture" {size} role="img" aria-label="{safe(label)}">',
            *timeline_lines(trace, Timeline.of(trace), TIMELINE_WIDTH),
            "</svg>",
        ]
    )
