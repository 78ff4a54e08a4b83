"""Where the nodes of a graph stand in a picture, and the ways of its edges between them.

An edge bends only between two rows, where no node stands, and goes straight down past the nodes of a row at a spot that
is kept free for it: so no edge runs through a node.

Source: issue "Plans", the picture of a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import attrs

from neuroscript.workflow.layers import Layers, Spot

GAP: Final = 24.0
"""Pixels between two neighbours in a row."""

FALL: Final = 48.0
"""Pixels between two rows."""

PASSAGE: Final = 4.0
"""How wide the spot of an edge is that passes a row."""

ROUNDS: Final = 24
STRAIGHT: Final = 50.0
"""How much more it counts that an edge which passes is straight."""


@attrs.frozen
class Placed:
    """A graph in pixels.

    Attributes:
        boxes: The left and the upper border of each node.
        ways: The drawing commands of each edge.
        width: Of the whole.
        height: Likewise.
    """

    boxes: Mapping[str, tuple[float, float]]
    ways: Mapping[tuple[str, str], str]
    width: float
    height: float


def placed(layers: Layers, width: float, height: float) -> Placed:
    """Return where everything stands, from the corner at 0, 0.

    Args:
        width: Of the box of each node.
        height: Likewise.
    """
    sizes = {spot: width if layers.nodes.get(spot[1]) == spot else PASSAGE for row in layers.rows for spot in row}
    middles = _middles(layers, sizes)
    least = min((middles[spot] - sizes[spot] / 2 for spot in sizes), default=0.0)
    middles = {spot: float(round(middle - least)) for spot, middle in middles.items()}
    draw = _Ways(layers, middles, width, height)
    return Placed(
        {name: (middles[spot] - width / 2, draw.top(spot)) for name, spot in layers.nodes.items()},
        {edge: draw.way(route) for edge, route in layers.routes.items()},
        max((middles[spot] + sizes[spot] / 2 for spot in sizes), default=0.0),
        max(0.0, len(layers.rows) * (height + FALL) - FALL),
    )


# Where the spots stand in their rows


def _middles(layers: Layers, sizes: Mapping[Spot, float]) -> dict[Spot, float]:
    """Return the middle of each spot, as near to those it is joined with as its neighbours let it."""
    middles: dict[Spot, float] = {}
    steps = {row: _steps(row, sizes) for row in layers.rows}
    for row in layers.rows:
        middles.update(zip(row, (step - steps[row][-1] / 2 for step in steps[row]), strict=True))
    joined = {spot: (*layers.above.get(spot, ()), *layers.below.get(spot, ())) for spot in sizes}
    passing = {spot: _passing(spot, joined[spot], sizes) for spot in sizes}
    for number in range(ROUNDS):
        for row in layers.rows[:: -1 if number % 2 else 1]:
            wanted = [_mean(passing[spot] or joined[spot], middles, middles[spot]) for spot in row]
            weights = [STRAIGHT if passing[spot] else 1.0 for spot in row]
            middles.update(zip(row, apart(wanted, weights, steps[row]), strict=True))
    return middles


def _passing(spot: Spot, others: Sequence[Spot], sizes: Mapping[Spot, float]) -> tuple[Spot, ...]:
    """Return the spots above and below at which the edges pass that pass here: with these it is in line."""
    if sizes[spot] > PASSAGE:
        return ()
    return tuple(each for each in others if each[1] == spot[1] and sizes[each] == PASSAGE)


def _mean(others: Sequence[Spot], middles: Mapping[Spot, float], usual: float) -> float:
    return sum(middles[each] for each in others) / len(others) if others else usual


def _steps(row: Sequence[Spot], sizes: Mapping[Spot, float]) -> list[float]:
    """Return how far right of the first spot each one has to be at least."""
    steps = [0.0]
    for left, right in pairwise(row):
        steps.append(steps[-1] + (sizes[left] + sizes[right]) / 2 + GAP)
    return steps


def apart(wanted: Sequence[float], weights: Sequence[float], steps: Sequence[float]) -> list[float]:
    """Return the places nearest to the wanted ones that keep their order and their distances: of least squares.

    >>> apart([0.0, 0.0, 100.0], [1.0, 1.0, 1.0], [0.0, 10.0, 20.0])
    [-5.0, 5.0, 100.0]
    """
    blocks: list[tuple[float, float, int]] = []  # the place of the first, the weight, how many
    for want, weight, step in zip(wanted, weights, steps, strict=True):
        place, count = want - step, 1
        while blocks and blocks[-1][0] > place:
            before, heavy, many = blocks.pop()
            place = (before * heavy + place * weight) / (heavy + weight)
            weight, count = heavy + weight, many + count
        blocks.append((place, weight, count))
    starts = [place for place, _, count in blocks for _ in range(count)]
    return [start + step for start, step in zip(starts, steps, strict=True)]


# The ways of the edges


class _Ways:
    """Draws edges between spots that have their places."""

    def __init__(self, layers: Layers, middles: Mapping[Spot, float], width: float, height: float) -> None:
        self._middles = middles
        self._width = width
        self._height = height
        self._leaving = self._ports(layers.below)
        self._coming = self._ports(layers.above)

    def top(self, spot: Spot) -> float:
        """Return the upper border of the row of a spot."""
        return spot[0] * (self._height + FALL)

    def way(self, route: Sequence[Spot]) -> str:
        """Return the drawing commands of one edge, from border to border."""
        x = self._leaving[route[0], route[1]]
        parts = [f"M{number(x)} {number(self.top(route[0]) + self._height)}"]
        for upper, lower in pairwise(route):
            is_last = lower == route[-1]
            begin, end = self.top(upper) + self._height, self.top(lower)
            to = self._coming[lower, upper] if is_last else self._middles[lower]
            is_bent = to != x
            if is_bent:
                half = number((begin + end) / 2)
                parts.append(f"C{number(x)} {half} {number(to)} {half} {number(to)} {number(end)}")
            if not is_last or not is_bent:
                down = f"V{number(end if is_last else end + self._height)}"
                parts[-1:] = [down] if parts[-1].startswith("V") else [parts[-1], down]
            x = to
        return "".join(parts)

    def _ports(self, joined: Mapping[Spot, Sequence[Spot]]) -> dict[tuple[Spot, Spot], float]:
        """Return where on the border of a node the edge from or to another spot is: side by side in their order."""
        ports = {}
        for spot, others in joined.items():
            for place, other in enumerate(sorted(others, key=lambda each: (self._middles[each], each)), 1):
                part = place / (len(others) + 1) - 0.5
                ports[spot, other] = round(self._middles[spot] + part * self._width, 1)
        return ports


def number(value: float) -> str:
    """Return a number of pixels as SVG writes it.

    >>> number(12.0), number(0.25)
    ('12', '0.25')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
