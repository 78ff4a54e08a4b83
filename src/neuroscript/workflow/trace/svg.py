"""A trace as an SVG picture: its graph from top to bottom, and below it a timeline of the nodes.

Labels are real text. Each is cut to its place and ends in ``…`` if it is too long; the title of its box has the full
text. Colours are always repeated in words. Equal traces give equal pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from neuroscript.io.text import duration, one_line
from neuroscript.workflow.trace.graph_layout import number
from neuroscript.workflow.trace.graph_picture import MARKER, PAD, Box, GraphPicture
from neuroscript.workflow.trace.svg_text import FONT, MAX_LABEL_CHARS, fit_text, safe, text_element, width
from neuroscript.workflow.trace.text import labels_text
from neuroscript.workflow.trace.timeline import Timeline
from neuroscript.workflow.trace.trace import NodeTrace, Status, Trace

MARGIN: Final = 24.0

HEAD: Final = 92.0
"""The height of the title and the legend."""


LANE: Final = 20.0


NAMES: Final = 168.0
"""The width of the names next to the bars."""


MIN_TIMELINE_WIDTH: Final = 560.0
"""The minimum width of the timeline."""


MAX_TIMELINE_WIDTH: Final = 1100.0


STYLE: Final = """\
.page{fill:#ffffff}.box{fill:#f6f8fa;stroke:#6e7781}.edge{fill:none;stroke:#6e7781}.tip{fill:#6e7781}
.grid{stroke:#d1d9e0}text{fill:#1f2328}.quiet{fill:#59636e}
.succeeded{fill:#116329}.failed{fill:#b3121d}.skipped{fill:#7d4e00}.unstarted{fill:#59636e}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.box{fill:#161b22;stroke:#8b949e}.edge{stroke:#8b949e}.tip{fill:#8b949e}
.grid{stroke:#30363d}text{fill:#e6edf3}.quiet{fill:#9da7b3}
.succeeded{fill:#4ac26b}.failed{fill:#ff7b72}.skipped{fill:#e3b341}.unstarted{fill:#9da7b3}}"""


def trace_svg(trace: Trace) -> str:
    """Return a picture of a trace as an SVG document.

    Raises:
        ValueError: If the needs of the nodes have a cycle, which no plan has, or there are too many edges for a
            picture.
    """
    picture = GraphPicture.of(
        [trace_box(node) for node in trace.nodes], {node.name: node.needs for node in trace.nodes}
    )
    graph = picture.graph
    room = max(MIN_TIMELINE_WIDTH, min(graph.width - NAMES, MAX_TIMELINE_WIDTH))
    whole = max(graph.width, NAMES + room + PAD) + 2 * MARGIN
    below = HEAD + graph.height + MARGIN
    high = below + (len(trace.nodes) + 1) * LANE + MARGIN
    size = f'width="{number(whole)}" height="{number(high)}" viewBox="0 0 {number(whole)} {number(high)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img">',
            f"<title>{safe(_title(trace))}, {trace.status}</title>",
            f"<style>\n{STYLE}\n</style>",
            MARKER,
            f'<rect class="page" width="{number(whole)}" height="{number(high)}"/>',
            *_head(trace, whole - 2 * MARGIN),
            f'<g class="graph" transform="translate({number((whole - graph.width) / 2)} {number(HEAD)})">',
            *picture.edges(),
            *(line for box in picture.boxes for line in _node(picture, box)),
            "</g>",
            f'<g class="times" transform="translate({number(MARGIN)} {number(below)})">',
            *timeline_lines(trace, Timeline.of(trace), room),
            "</g>",
            "</svg>\n",
        ]
    )


def _title(trace: Trace) -> str:
    return one_line(trace.plan, MAX_LABEL_CHARS) or "plan"


def _head(trace: Trace, room: float) -> Iterator[str]:
    """Yield the title, the summary, and the legend."""
    yield text_element(MARGIN, 36, 18, "", fit_text(_title(trace), room, 18, bold=True), bold=True)
    nodes = f"{len(trace.nodes)} node{'s' * (len(trace.nodes) != 1)}"
    run = one_line(trace.run, MAX_LABEL_CHARS)
    summary = f"{trace.status}, {nodes}, {duration(trace.seconds)}{f', run {run}' if run else ''}"
    yield text_element(MARGIN, 56, 12, "quiet", fit_text(summary, room, 12))
    x = MARGIN
    for word in get_args(Status):
        yield f'<rect class="{word}" x="{number(x)}" y="68" width="10" height="10"/>'
        yield text_element(x + 15, 77, 11, "quiet", word)
        x += 15 + width(word, 11) + 16


# Boxes


def _node(picture: GraphPicture, box: Box) -> Iterator[str]:
    yield f'<g class="node" data-node="{safe(box.name)}"><title>{safe(box.title)}</title>'
    yield from picture.box(box)
    yield "</g>"


def trace_box(node: NodeTrace) -> Box:
    """Return the text in the box of a node."""
    took = duration(node.seconds) if node.attempts else ""
    name, tool = one_line(node.name, MAX_LABEL_CHARS), one_line(node.tool, MAX_LABEL_CHARS)
    more = _details(node)
    message = one_line(node.error.get("message"), MAX_LABEL_CHARS) if node.error else ""
    title = ", ".join(filter(None, (f"{name}: {tool}", node.status, took, more, message)))
    return Box(node.name, tool, node.status, took, more, title, bool(node.attempts))


def _details(node: NodeTrace) -> str:
    count = len(node.attempts)
    attempts = f"{count} attempt{'s' * (count != 1)}" if count else ""
    why = one_line(node.error.get("code"), MAX_LABEL_CHARS) if node.error else one_line(node.reason, MAX_LABEL_CHARS)
    return ", ".join(filter(None, (attempts, why, labels_text(node)))) or "no attempt"


# Times


def timeline_lines(trace: Trace, times: Timeline, room: float) -> Iterator[str]:
    """Yield a lane for each node, under a time axis."""
    high = (len(trace.nodes) + 1) * LANE
    for tick in times.ticks():
        x = NAMES + tick / times.seconds * room
        yield f'<path class="grid" d="M{number(x)} {number(LANE)}V{number(high)}"/>'
        yield text_element(x, 12, 10, "quiet", duration(tick) if tick else "0", anchor="middle")
    for lane, node in enumerate(trace.nodes, 1):
        y = lane * LANE
        yield f'<g class="lane" data-node="{safe(node.name)}"><title>{safe(trace_box(node).title)}</title>'
        yield text_element(0, y + 14, 11, "", fit_text(one_line(node.name, MAX_LABEL_CHARS), NAMES - PAD, 11))
        for bar in sorted(times.bars(node), key=lambda each: not each.is_ok):  # failed bars are drawn on top
            long = max(2.0, bar.share * room)
            left = NAMES + min(bar.start * room, room - long)
            style = 'class="succeeded" fill-opacity="0.75"' if bar.is_ok else 'class="failed"'
            place = f'x="{number(left)}" y="{number(y + 5)}" width="{number(long)}" height="10"'
            yield f"<rect {style} {place}/>"
        if not node.attempts:
            yield text_element(NAMES + 4, y + 14, 11, node.status, node.status)
        yield "</g>"
