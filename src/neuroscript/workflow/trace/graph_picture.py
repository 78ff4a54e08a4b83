"""Pictures of graphs: a box with four lines of text for each node, and an arrow for each need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from typing import Final

import attrs

from neuroscript.io.text import one_line
from neuroscript.workflow.trace.graph_layout import GraphLayout, assign_rows, layout, number
from neuroscript.workflow.trace.svg_text import MAX_LABEL_CHARS, fit_text, safe, text_element, width

PAD: Final = 12.0
"""Pixels between the border of a box and its text."""

NARROWEST, WIDEST = 136.0, 228.0
"""The minimum and maximum width of a box in pixels."""

HEIGHT: Final = 80.0

LINES: Final = (("name", 13.0, 21.0), ("tool", 11.0, 37.0), ("status", 11.0, 54.0), ("more", 11.0, 70.0))
"""The lines of a box: the content, the font size, and the distance from the top."""

MIN_ROW_NODES: Final = 6
"""Minimum number of nodes per row, before a row is split."""


@attrs.frozen
class Box:
    """The text of a node.

    Attributes:
        name: The name of the node, as *needs* has it.
        tool: The name of its tool.
        status: Its status, which is also the class of its colour; ``""`` before a run.
        took: How long it took, or ``""``.
        more: Details.
        title: The full text, for a tooltip and for screen readers.
        has_run: Whether its border is solid.
    """

    name: str
    tool: str
    status: str
    took: str
    more: str
    title: str
    has_run: bool = True

    @property
    def preferred_width(self) -> float:
        """The width of a box that fits all its text."""
        status = width(self.status, 11, bold=True) + PAD + width(self.took, 11)
        texts = (
            width(one_line(self.name, MAX_LABEL_CHARS), 13, bold=True),
            width(self.tool, 11),
            status,
            width(self.more, 11),
        )
        return 2 * PAD + max(texts)


@attrs.frozen
class GraphPicture:
    """A graph whose nodes have places.

    Attributes:
        boxes: The text of each node.
        graph: The places.
        box_width: The width of each box in pixels.
    """

    boxes: tuple[Box, ...]
    graph: GraphLayout
    box_width: float

    @classmethod
    def of(cls, boxes: Sequence[Box], needs: Mapping[str, Sequence[str]]) -> GraphPicture:
        """Return the picture of a graph.

        Args:
            needs: The nodes that each node needs.

        Raises:
            ValueError: If the needs have a cycle, or there are too many edges for a picture.
        """
        layers = assign_rows(needs, max(MIN_ROW_NODES, isqrt(len(boxes))))
        wide = min(WIDEST, max([NARROWEST, *(box.preferred_width for box in boxes)]))
        return cls(tuple(boxes), layout(layers, wide, HEIGHT), wide)

    def edges(self) -> Iterator[str]:
        """Yield an arrow for each need."""
        for (needed, name), route in self.graph.ways.items():
            ends = f'data-from="{safe(needed)}" data-to="{safe(name)}"'
            yield f'<path class="edge" {ends} d="{route}" marker-end="url(#tip)"/>'

    def box(self, box: Box) -> Iterator[str]:
        """Yield the border and the lines of a node."""
        (x, y), wide = self.graph.boxes[box.name], self.box_width
        dashes = "" if box.has_run else ' stroke-dasharray="4 3"'
        room, left, right = wide - 2 * PAD, x + PAD, x + wide - PAD
        texts = {
            "name": (one_line(box.name, MAX_LABEL_CHARS), "", True),
            "tool": (box.tool, "quiet", False),
            "status": (box.status,) * 2 + (True,),
        }
        corner, high = f'x="{number(x)}" y="{number(y)}"', f'height="{number(HEIGHT)}"'
        yield f'<rect class="box" {corner} width="{number(wide)}" {high}{dashes}/>'
        yield f'<rect class="{box.status}" {corner} width="4" {high}/>'
        for line, size, down in LINES:
            text, style, bold = texts.get(line, (box.more, "quiet", False))
            yield text_element(left, y + down, size, style, fit_text(text, room, size, bold=bold), bold=bold)
            if line == "status" and box.took:
                yield text_element(right, y + down, size, "quiet", box.took, anchor="end")


MARKER: Final = (
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto" '
    'markerUnits="userSpaceOnUse"><path class="tip" d="M0 0.5L8 4L0 7.5z"/></marker></defs>'
)
"""The tip of an arrow."""
