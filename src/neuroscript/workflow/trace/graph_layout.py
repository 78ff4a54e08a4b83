"""A graph in rows: each node below all that it needs, and in each row the order in which few edges cross.

An edge that is longer than one row passes those between at spots of its own. Edges that leave one node, or come to one
node, pass together, so that a node which hundreds need takes one spot in a row and not hundreds.

Source: Sugiyama, Tagawa and Toda 1981; issue "Plans", the picture of a trace.

Where the nodes of a graph stand in a picture, and the ways of its edges between them.

An edge bends only between two rows, where no node stands, and goes straight down past the nodes of a row at a spot that
is kept free for it: so no edge runs through a node.

Source: issue "Plans", the picture of a trace.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final

import attrs

Spot = tuple[int, str]
"""A row, from 0, and a node that stands in it or whose edges pass it."""


ROUNDS: Final = 6
"""How often the rows are ordered anew, downwards and upwards."""


MOST: Final = 1_000_000
"""How many spots all edges together may have; of more nobody would see anything."""


@attrs.frozen
class Layers:
    """A graph in rows.

    Attributes:
        nodes: The spot of each node.
        rows: The spots of each row, from left to right.
        routes: The spots of each edge by what is needed and what needs it, from the one to the other.
        above: The spots of the row before that are joined with each.
        below: The spots of the row behind likewise.
    """

    nodes: Mapping[str, Spot]
    rows: tuple[tuple[Spot, ...], ...]
    routes: Mapping[tuple[str, str], tuple[Spot, ...]]
    above: Mapping[Spot, tuple[Spot, ...]]
    below: Mapping[Spot, tuple[Spot, ...]]


def layered(needs: Mapping[str, Sequence[str]], widest: int) -> Layers:
    """Return a graph in rows.

    Args:
        needs: What each node needs; what is no node itself is left out.
        widest: How many nodes stand in one row.

    Raises:
        ValueError: Nodes need each other, or the edges have more than `MOST` spots.
    """
    graph = {name: tuple(dict.fromkeys(each for each in told if each in needs)) for name, told in needs.items()}
    rows = _rows_of(graph, widest)
    nodes = {name: (number, name) for number, row in enumerate(rows) for name in row}
    routes = _routes(graph, nodes)
    spots: list[dict[Spot, None]] = [dict.fromkeys(nodes[name] for name in row) for row in rows]
    above: dict[Spot, dict[Spot, None]] = {}
    below: dict[Spot, dict[Spot, None]] = {}
    for route in routes.values():
        for upper, lower in pairwise(route):
            spots[upper[0]][upper] = spots[lower[0]][lower] = None
            above.setdefault(lower, {})[upper] = None
            below.setdefault(upper, {})[lower] = None
    joined = [{spot: tuple(others) for spot, others in each.items()} for each in (above, below)]
    return Layers(nodes, _ordered([list(row) for row in spots], *joined), routes, *joined)


def _rows_of(graph: Mapping[str, Sequence[str]], widest: int) -> list[list[str]]:
    """Return the nodes by the longest way that leads to each, those of one length in as many rows as they need."""
    depth: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        depth[name] = 1 + max((depth[each] for each in graph[name]), default=-1)
    alike: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in graph:
        alike[depth[name]].append(name)
    return [part for names in alike for part in _even_parts(names, widest)]


def _even_parts(names: list[str], most: int) -> Iterable[list[str]]:
    count = -(-len(names) // most)
    size = -(-len(names) // count)
    return (names[at : at + size] for at in range(0, len(names), size))


def _routes(graph: Mapping[str, Sequence[str]], nodes: Mapping[str, Spot]) -> dict[tuple[str, str], tuple[Spot, ...]]:
    needed_by = dict.fromkeys(graph, 0)
    for told in graph.values():
        for name in told:
            needed_by[name] += 1
    routes = {}
    left = MOST
    for name, told in graph.items():
        left -= sum(nodes[name][0] - nodes[needed][0] for needed in told)
        if left < 0:
            raise ValueError(f"its edges would pass more than {MOST} places")
        for needed in told:
            shared = needed if needed_by[needed] >= len(told) else name
            between = ((row, shared) for row in range(nodes[needed][0] + 1, nodes[name][0]))
            routes[needed, name] = (nodes[needed], *between, nodes[name])
    return routes


# The order within the rows


def _ordered(
    rows: list[list[Spot]], above: Mapping[Spot, Sequence[Spot]], below: Mapping[Spot, Sequence[Spot]]
) -> tuple[tuple[Spot, ...], ...]:
    """Return the rows with each spot near to the middle of those it is joined with: the best order that was found."""
    best, fewest = [*map(tuple, rows)], crossings(rows, below)
    for _ in range(ROUNDS):
        if not fewest:
            break
        for upper, row in pairwise(rows):
            _sort(row, upper, above)
        for row, lower in reversed([*pairwise(rows)]):
            _sort(row, lower, below)
        count = crossings(rows, below)
        if count < fewest:
            best, fewest = [*map(tuple, rows)], count
    return tuple(best)


def _sort(row: list[Spot], fixed: Sequence[Spot], joined: Mapping[Spot, Sequence[Spot]]) -> None:
    places = {spot: place for place, spot in enumerate(fixed)}
    scale = len(fixed) / max(1, len(row))

    def middle(placed: tuple[int, Spot]) -> float:
        others = joined.get(placed[1], ())
        return sum(places[each] for each in others) / len(others) if others else placed[0] * scale

    row[:] = [spot for _, spot in sorted(enumerate(row), key=middle)]


def crossings(rows: Sequence[Sequence[Spot]], below: Mapping[Spot, Sequence[Spot]]) -> int:
    """Return how often two joins between neighbouring rows cross.

    >>> crossings([[(0, "a"), (0, "b")], [(1, "c"), (1, "d")]], {(0, "a"): [(1, "d")], (0, "b"): [(1, "c")]})
    1
    """
    count = 0
    for row, lower in pairwise(rows):
        places = {spot: place for place, spot in enumerate(lower)}
        ends: list[int] = []
        for spot in row:
            ours = sorted(places[each] for each in below.get(spot, ()))
            count += sum(len(ends) - bisect_right(ends, place) for place in ours)
            for place in ours:
                insort(ends, place)
    return count


GAP: Final = 24.0
"""Pixels between two neighbours in a row."""


FALL: Final = 48.0
"""Pixels between two rows."""


PASSAGE: Final = 4.0
"""How wide the spot of an edge is that passes a row."""


PLACING_ROUNDS: Final = 24


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
    for number in range(PLACING_ROUNDS):
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
