"""A trace as an SVG picture: its graph from top to bottom, and below it a timeline of the nodes.

Labels are real text. Each is cut to its place and ends in ``…`` if it is too long; the title of its box has the full
text. Widths are those of the widest usual font, because the font that will be used is unknown. Colours are always
repeated in words. Equal traces give equal pictures.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from html import escape
from math import isqrt
from typing import Final, get_args

from neuroscript.io.text import duration, one_line
from neuroscript.workflow.trace.graph_layout import GraphLayout, assign_rows, layout, number
from neuroscript.workflow.trace.text import labels_text
from neuroscript.workflow.trace.timeline import Timeline
from neuroscript.workflow.trace.trace import NodeTrace, Status, Trace

FONT: Final = "Arial, Helvetica, sans-serif"


NARROW: Final = frozenset("!\"'(),-./:;I[\\]`fijlrt| ")


WIDE: Final = frozenset("%@MWmw")


BROAD: Final = frozenset("#&+<=>^~ABCDEFGHJKLNOPQRSTUVXYZ")


BOLD: Final = 1.14
"""How much wider bold letters are."""


MAX_LABEL_CHARS: Final = 400
"""Maximum characters of a string from the trace."""


@cache
def _ems(letter: str) -> float:
    """Return the maximum width of a letter, in units of the font size."""
    if letter in NARROW:
        return 0.46
    if letter.isascii():
        return 1.0 if letter in WIDE else 0.84 if letter in BROAD else 0.64
    is_wide = unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF
    return 1.4 if is_wide else 1.2


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the maximum width of a string in pixels.

    >>> width("fetch", 10), width("fetch", 10, bold=True) > width("fetch", 10)
    (28.4, True)
    """
    return round(sum(map(_ems, text)) * size * (BOLD if bold else 1.0), 2)


def fit_text(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Return a string, or as much of its beginning as fits, followed by ``…``.

    >>> fit_text("a long name", 40, 10)
    'a lo…'
    """
    if width(text, size, bold=bold) <= room:
        return text
    left = room - width("…", size, bold=bold)
    for count, letter in enumerate(text):
        left -= width(letter, size, bold=bold)
        if left < 0:
            return f"{text[:count].rstrip()}…"
    return text


def safe(text: object) -> str:
    """Return a string from the trace as one line of escaped XML, or ``""`` if it is not a string."""
    return escape(one_line(text, MAX_LABEL_CHARS))


MARGIN: Final = 24.0


PAD: Final = 12.0
"""Pixels between the border of a box and its text."""


NARROWEST, WIDEST = 136.0, 228.0
"""The minimum and maximum width of a box in pixels."""


HEIGHT: Final = 80.0


LINES: Final = (("name", 13.0, 21.0), ("tool", 11.0, 37.0), ("status", 11.0, 54.0), ("more", 11.0, 70.0))
"""The lines of a box: the content, the font size, and the distance from the top."""


HEAD: Final = 92.0
"""The height of the title and the legend."""


LANE: Final = 20.0


NAMES: Final = 168.0
"""The width of the names next to the bars."""


MIN_TIMELINE_WIDTH: Final = 560.0
"""The minimum width of the timeline."""


MAX_TIMELINE_WIDTH: Final = 1100.0


MIN_ROW_NODES: Final = 6
"""Minimum number of nodes per row, before a row is split."""


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
    layers = assign_rows({node.name: node.needs for node in trace.nodes}, max(MIN_ROW_NODES, isqrt(len(trace.nodes))))
    wide = min(WIDEST, max([NARROWEST, *(_preferred_width(node) for node in trace.nodes)]))
    graph = layout(layers, wide, HEIGHT)
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
            '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto" '
            'markerUnits="userSpaceOnUse"><path class="tip" d="M0 0.5L8 4L0 7.5z"/></marker></defs>',
            f'<rect class="page" width="{number(whole)}" height="{number(high)}"/>',
            *_head(trace, whole - 2 * MARGIN),
            f'<g class="graph" transform="translate({number((whole - graph.width) / 2)} {number(HEAD)})">',
            *_edges(graph),
            *(line for node in trace.nodes for line in _box(node, *graph.boxes[node.name], wide)),
            "</g>",
            f'<g class="times" transform="translate({number(MARGIN)} {number(below)})">',
            *_times(trace, Timeline.of(trace), room),
            "</g>",
            "</svg>\n",
        ]
    )


def _title(trace: Trace) -> str:
    return one_line(trace.plan, MAX_LABEL_CHARS) or "plan"


def _head(trace: Trace, room: float) -> Iterator[str]:
    """Yield the title, the summary, and the legend."""
    yield _text(MARGIN, 36, 18, "", fit_text(_title(trace), room, 18, bold=True), bold=True)
    nodes = f"{len(trace.nodes)} node{'s' * (len(trace.nodes) != 1)}"
    run = one_line(trace.run, MAX_LABEL_CHARS)
    summary = f"{trace.status}, {nodes}, {duration(trace.seconds)}{f', run {run}' if run else ''}"
    yield _text(MARGIN, 56, 12, "quiet", fit_text(summary, room, 12))
    x = MARGIN
    for word in get_args(Status):
        yield f'<rect class="{word}" x="{number(x)}" y="68" width="10" height="10"/>'
        yield _text(x + 15, 77, 11, "quiet", word)
        x += 15 + width(word, 11) + 16


def _edges(graph: GraphLayout) -> Iterator[str]:
    for (needed, name), route in graph.ways.items():
        ends = f'data-from="{safe(needed)}" data-to="{safe(name)}"'
        yield f'<path class="edge" {ends} d="{route}" marker-end="url(#tip)"/>'


# Boxes


def _lines(node: NodeTrace) -> tuple[str, str, str, str]:
    """Return the lines in the box of a node."""
    took = duration(node.seconds) if node.attempts else ""
    return one_line(node.name, MAX_LABEL_CHARS), one_line(node.tool, MAX_LABEL_CHARS), took, _details(node)


def _details(node: NodeTrace) -> str:
    count = len(node.attempts)
    attempts = f"{count} attempt{'s' * (count != 1)}" if count else ""
    why = one_line(node.error.get("code"), MAX_LABEL_CHARS) if node.error else one_line(node.reason, MAX_LABEL_CHARS)
    return ", ".join(filter(None, (attempts, why, labels_text(node)))) or "no attempt"


def _preferred_width(node: NodeTrace) -> float:
    """Return the width of a box that fits all its text."""
    name, tool, took, more = _lines(node)
    status = width(node.status, 11, bold=True) + PAD + width(took, 11)
    return 2 * PAD + max(width(name, 13, bold=True), width(tool, 11), status, width(more, 11))


def _box(node: NodeTrace, x: float, y: float, wide: float) -> Iterator[str]:
    dashes = ' stroke-dasharray="4 3"' if not node.attempts else ""
    name, tool, took, more = _lines(node)
    room, left, right = wide - 2 * PAD, x + PAD, x + wide - PAD
    texts = {"name": (name, "", True), "tool": (tool, "quiet", False), "status": (node.status, node.status, True)}
    yield f'<g class="node" data-node="{safe(node.name)}"><title>{safe(_full_text(node))}</title>'
    corner, high = f'x="{number(x)}" y="{number(y)}"', f'height="{number(HEIGHT)}"'
    yield f'<rect class="box" {corner} width="{number(wide)}" {high}{dashes}/>'
    yield f'<rect class="{node.status}" {corner} width="4" {high}/>'
    for line, size, down in LINES:
        text, style, bold = texts.get(line, (more, "quiet", False))
        yield _text(left, y + down, size, style, fit_text(text, room, size, bold=bold), bold=bold)
        if line == "status" and took:
            yield _text(right, y + down, size, "quiet", took, anchor="end")
    yield "</g>"


def _full_text(node: NodeTrace) -> str:
    """Return the full text of a box."""
    name, tool, took, more = _lines(node)
    message = one_line(node.error.get("message"), MAX_LABEL_CHARS) if node.error else ""
    return ", ".join(filter(None, (f"{name}: {tool}", node.status, took, more, message)))


# Times


def _times(trace: Trace, times: Timeline, room: float) -> Iterator[str]:
    """Yield a lane for each node, under a time axis."""
    high = (len(trace.nodes) + 1) * LANE
    for tick in times.ticks():
        x = NAMES + tick / times.seconds * room
        yield f'<path class="grid" d="M{number(x)} {number(LANE)}V{number(high)}"/>'
        yield _text(x, 12, 10, "quiet", duration(tick) if tick else "0", anchor="middle")
    for lane, node in enumerate(trace.nodes, 1):
        y = lane * LANE
        yield f'<g class="lane" data-node="{safe(node.name)}"><title>{safe(_full_text(node))}</title>'
        yield _text(0, y + 14, 11, "", fit_text(one_line(node.name, MAX_LABEL_CHARS), NAMES - PAD, 11))
        for bar in sorted(times.bars(node), key=lambda each: not each.is_ok):  # failed bars are drawn on top
            long = max(2.0, bar.share * room)
            left = NAMES + min(bar.start * room, room - long)
            style = 'class="succeeded" fill-opacity="0.75"' if bar.is_ok else 'class="failed"'
            place = f'x="{number(left)}" y="{number(y + 5)}" width="{number(long)}" height="10"'
            yield f"<rect {style} {place}/>"
        if not node.attempts:
            yield _text(NAMES + 4, y + 14, 11, node.status, node.status)
        yield "</g>"


def _text(x: float, y: float, size: float, style: str, text: str, *, bold: bool = False, anchor: str = "") -> str:
    marks = f' class="{style}"' if style else ""
    marks += ' font-weight="bold"' if bold else ""
    marks += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{marks}>{safe(text)}</text>'
