"""A graph in rows: each node below all that it needs, and in each row the order in which few edges cross.

An edge that is longer than one row passes those between at spots of its own. Edges that leave one node, or come to one
node, pass together, so that a node which hundreds need takes one spot in a row and not hundreds.

Source: Sugiyama, Tagawa and Toda 1981; issue "Plans", the picture of a trace.
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
