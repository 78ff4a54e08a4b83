"""Layout of a graph in rows, and the routes of its edges.

Each node is below all nodes that it needs, and the order within the rows minimizes crossings (Sugiyama, Tagawa and
Toda,
1981). A long edge passes the rows between its ends at reserved spots and bends only between rows, so no edge runs
through a node. Edges that leave or reach one node share spots, so that a node with hundreds of edges takes one spot in
a
row.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Final

import attrs

Spot = tuple[int, str]
"""A row, from 0, and a node that is in it or whose edges pass through it."""


ROUNDS: Final = 6
"""Number of times that the rows are reordered, downwards and upwards."""


MAX_EDGE_SPOTS: Final = 1_000_000
"""Maximum spots of all edges together; a picture with more would be unreadable."""


@attrs.frozen
class Layers:
    """A graph in rows.

    Attributes:
        nodes: The spot of each node.
        rows: The spots of each row, from left to right.
        routes: The spots of each edge from the needed node to the node that needs it, by that pair of names.
        above: The spots in the previous row that each spot is joined with.
        below: The spots in the next row that each spot is joined with.
    """

    nodes: Mapping[str, Spot]
    rows: tuple[tuple[Spot, ...], ...]
    routes: Mapping[tuple[str, str], tuple[Spot, ...]]
    above: Mapping[Spot, tuple[Spot, ...]]
    below: Mapping[Spot, tuple[Spot, ...]]


def assign_rows(needs: Mapping[str, Sequence[str]], widest: int) -> Layers:
    """Return a graph in rows.

    Args:
        needs: The nodes that each node needs; unknown names are ignored.
        widest: Maximum nodes in a row.

    Raises:
        ValueError: If the graph has a cycle, or the edges have more than `MAX_EDGE_SPOTS` positions.
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
    """Return the nodes by the length of the longest path to them; nodes of one length may take several rows."""
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
    left = MAX_EDGE_SPOTS
    for name, told in graph.items():
        left -= sum(nodes[name][0] - nodes[needed][0] for needed in told)
        if left < 0:
            raise ValueError(f"its edges would need more than {MAX_EDGE_SPOTS} positions")
        for needed in told:
            shared = needed if needed_by[needed] >= len(told) else name
            between = ((row, shared) for row in range(nodes[needed][0] + 1, nodes[name][0]))
            routes[needed, name] = (nodes[needed], *between, nodes[name])
    return routes


# The order within the rows


def _ordered(
    rows: list[list[Spot]], above: Mapping[Spot, Sequence[Spot]], below: Mapping[Spot, Sequence[Spot]]
) -> tuple[tuple[Spot, ...], ...]:
    """Return the best order found, with each spot near the middle of the spots that it is joined with."""
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
    """Return the number of crossings between neighbouring rows.

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


COLUMN_GAP: Final = 24.0
"""Pixels between neighbours in a row."""


ROW_GAP: Final = 48.0
"""Pixels between rows."""


PASSAGE_WIDTH: Final = 4.0
"""The width in pixels of a spot that an edge passes through."""


PLACING_ROUNDS: Final = 24


STRAIGHT: Final = 50.0
"""The weight of keeping a passing edge straight, relative to other edges."""


@attrs.frozen
class GraphLayout:
    """A graph in pixels.

    Attributes:
        boxes: The left and the top edge of each node.
        ways: The drawing commands of each edge.
        width: The total width.
        height: The total height.
    """

    boxes: Mapping[str, tuple[float, float]]
    ways: Mapping[tuple[str, str], str]
    width: float
    height: float


def layout(layers: Layers, width: float, height: float) -> GraphLayout:
    """Return the positions of everything, starting at 0, 0.

    Args:
        width: The width of each node's box.
        height: The height of each node's box.
    """
    sizes = {spot: width if layers.nodes.get(spot[1]) == spot else PASSAGE_WIDTH for row in layers.rows for spot in row}
    middles = _middles(layers, sizes)
    least = min((middles[spot] - sizes[spot] / 2 for spot in sizes), default=0.0)
    middles = {spot: float(round(middle - least)) for spot, middle in middles.items()}
    draw = _Ways(layers, middles, width, height)
    return GraphLayout(
        {name: (middles[spot] - width / 2, draw.top(spot)) for name, spot in layers.nodes.items()},
        {edge: draw.way(route) for edge, route in layers.routes.items()},
        max((middles[spot] + sizes[spot] / 2 for spot in sizes), default=0.0),
        max(0.0, len(layers.rows) * (height + ROW_GAP) - ROW_GAP),
    )


# The positions of the spots within their rows


def _middles(layers: Layers, sizes: Mapping[Spot, float]) -> dict[Spot, float]:
    """Return the middle of each spot, as near to its joined spots as its neighbours allow."""
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
    """Return the neighbouring spots of the same passing edge, which the spot should be in line with."""
    if sizes[spot] > PASSAGE_WIDTH:
        return ()
    return tuple(each for each in others if each[1] == spot[1] and sizes[each] == PASSAGE_WIDTH)


def _mean(others: Sequence[Spot], middles: Mapping[Spot, float], usual: float) -> float:
    return sum(middles[each] for each in others) / len(others) if others else usual


def _steps(row: Sequence[Spot], sizes: Mapping[Spot, float]) -> list[float]:
    """Return the minimum distance of each spot from the first one."""
    steps = [0.0]
    for left, right in pairwise(row):
        steps.append(steps[-1] + (sizes[left] + sizes[right]) / 2 + COLUMN_GAP)
    return steps


def apart(targets: Sequence[float], weights: Sequence[float], steps: Sequence[float]) -> list[float]:
    """Return the positions closest to the wanted ones, by least squares, that keep the order and the distances.

    >>> apart([0.0, 0.0, 100.0], [1.0, 1.0, 1.0], [0.0, 10.0, 20.0])
    [-5.0, 5.0, 100.0]
    """
    blocks: list[tuple[float, float, int]] = []  # the position of the first spot, the weight, the number of spots
    for want, weight, step in zip(targets, weights, steps, strict=True):
        place, count = want - step, 1
        while blocks and blocks[-1][0] > place:
            before, heavy, many = blocks.pop()
            place = (before * heavy + place * weight) / (heavy + weight)
            weight, count = heavy + weight, many + count
        blocks.append((place, weight, count))
    starts = [place for place, _, count in blocks for _ in range(count)]
    return [start + step for start, step in zip(starts, steps, strict=True)]


# The paths of the edges


class _Ways:
    """Draws the edges between placed spots."""

    def __init__(self, layers: Layers, middles: Mapping[Spot, float], width: float, height: float) -> None:
        self._middles = middles
        self._width = width
        self._height = height
        self._leaving = self._ports(layers.below)
        self._coming = self._ports(layers.above)

    def top(self, spot: Spot) -> float:
        """Return the top of the row of a spot."""
        return spot[0] * (self._height + ROW_GAP)

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
        """Return where each edge meets the border of its node: side by side, in the order of the other ends."""
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
