"""A Sphinx extension that draws the flowcharts of the documents: ``mermaid`` blocks, as Git hosts draw them.

It draws nodes and arrows from top to bottom, without a script in the reader's browser. It refuses any other statement,
so that no part of a diagram is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise
from typing import Final

import attrs
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from neuroscript.workflow.trace.graph_layout import assign_rows

NODE: Final = re.compile(r"(?P<name>\w+)\s*(?:\[\"(?P<label>[^\"]*)\"\])?")
ARROW: Final = re.compile(r"\s*-->\s*(?:\|\"?(?P<label>[^|\"]*)\"?\|\s*)?")

CHAR_WIDTH: Final = 7.4
LINE_HEIGHT: Final = 18
PADDING: Final = 12
ROW_GAP: Final = 34
COLUMN_GAP: Final = 24
MAX_COLUMNS: Final = 6


@attrs.frozen
class Flowchart:
    """A flowchart.

    Attributes:
        labels: The text of each node, with newlines.
        arrows: The text of each arrow, by its ends.
    """

    labels: Mapping[str, str]
    arrows: Mapping[tuple[str, str], str]


class Mermaid(Directive):
    """A ``mermaid`` block."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        try:
            chart = parse(list(self.content))
        except ValueError as error:
            raise self.error(str(error)) from None
        return [nodes.raw("", draw(chart), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def parse(lines: list[str]) -> Flowchart:
    """Parse a flowchart.

    Raises:
        ValueError: A line is something other than nodes with arrows between them.
    """
    if not lines or lines[0].strip() not in ("flowchart TB", "flowchart TD"):
        raise ValueError("a diagram must begin with flowchart TB")
    labels: dict[str, str] = {}
    arrows: dict[tuple[str, str], str] = {}
    for line in filter(None, map(str.strip, lines[1:])):
        names, texts = _chain(line, labels)
        arrows |= dict(zip(pairwise(names), texts, strict=True))
    return Flowchart(labels, arrows)


def _chain(line: str, labels: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the nodes of a line and the text of the arrows between them."""
    names: list[str] = []
    texts: list[str] = []
    at = 0
    while True:
        node = NODE.match(line, at)
        if node is None:
            raise ValueError(f'expected NAME or NAME["TEXT"] in {line}')
        names.append(node["name"])
        labels[node["name"]] = node["label"] or labels.get(node["name"], node["name"])
        if node.end() == len(line):
            return names, texts
        arrow = ARROW.match(line, node.end())
        if arrow is None:
            raise ValueError(f"expected --> in {line}")
        texts.append(arrow["label"] or "")
        at = arrow.end()


def draw(chart: Flowchart) -> str:
    """Return a flowchart as SVG in the colours of the page.

    Raises:
        ValueError: The arrows form a cycle.
    """
    needs = {name: [upper for upper, lower in chart.arrows if lower == name] for name in chart.labels}
    rows = [[name for _, name in row if name in needs] for row in assign_rows(needs, MAX_COLUMNS).rows]
    texts: dict[str, list[str]] = {name: re.split(r"<br */?>|\n", label) for name, label in chart.labels.items()}
    sizes = {
        name: (max(map(len, text)) * CHAR_WIDTH + 2 * PADDING, len(text) * LINE_HEIGHT + 2 * PADDING)
        for name, text in texts.items()
    }
    width = max(sum(sizes[name][0] + COLUMN_GAP for name in row) for row in rows)
    boxes: dict[str, tuple[float, float, float, float]] = {}
    y = 2.0
    for row in rows:
        x = (width - sum(sizes[name][0] + COLUMN_GAP for name in row)) / 2 + COLUMN_GAP / 2
        for name in row:
            boxes[name] = (x, y, *sizes[name])
            x += sizes[name][0] + COLUMN_GAP
        y += max(sizes[name][1] for name in row) + ROW_GAP
    parts = [*_boxes(texts, boxes), *_arrows(chart, boxes)]
    return (
        f'<svg class="flowchart" role="img" viewBox="0 0 {width:.0f} {y - ROW_GAP + 2:.0f}"'
        f' style="max-width: {width:.0f}px">'
        f"<title>{escape(' → '.join(chart.labels.values()))}</title>{''.join(parts)}</svg>"
    )


def _boxes(texts: Mapping[str, list[str]], boxes: Mapping[str, tuple[float, float, float, float]]) -> Iterator[str]:
    for name, (x, y, width, height) in boxes.items():
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="5"/>'
        for number, text in enumerate(texts[name]):
            middle = y + PADDING + (number + 0.5) * LINE_HEIGHT
            yield f'<text x="{x + width / 2:.1f}" y="{middle:.1f}">{escape(text)}</text>'


def _arrows(chart: Flowchart, boxes: Mapping[str, tuple[float, float, float, float]]) -> Iterator[str]:
    for (upper, lower), label in chart.arrows.items():
        x, y, width, height = boxes[upper]
        to_x, to_y, to_width, _ = boxes[lower]
        start, end = (x + width / 2, y + height), (to_x + to_width / 2, to_y)
        yield f'<path d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}m-4 -7l4 7l4 -7"/>'
        if label:
            middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
            yield f'<text x="{middle[0] + 8:.1f}" y="{middle[1]:.1f}" class="label">{escape(label)}</text>'
