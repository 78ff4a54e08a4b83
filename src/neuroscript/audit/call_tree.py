"""The calls around one call in an audit log: those that it is nested in, and those that are nested in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

import attrs

MAX_PARENTS: Final = 64
"""Maximum number of enclosing calls that are found."""

MAX_TREE_CALLS: Final = 500
"""Maximum number of calls in a tree."""

MAX_NUMBER: Final = 2**62
"""Numbers from which on a value is shown as 0."""

COLUMNS: Final = "id, call, parent, kind, tool, code, rule, time, seconds"
BY_NUMBER: Final = f"SELECT {COLUMNS} FROM calls WHERE run = ? AND call = ? AND call > 0 LIMIT 1"  # noqa: S608
NESTED: Final = f"""
SELECT {COLUMNS} FROM calls WHERE run = ? AND parent = ? AND depth > 1 AND call > parent ORDER BY +call LIMIT ?
"""  # noqa: S608


@attrs.define
class CallNode:
    """A call and the calls that are nested in it.

    Attributes:
        id: The id of its row.
        seconds: The duration; 0 if the call has no outcome.
        is_truncated: Whether further nested calls were left out.
    """

    id: int
    call: int
    parent: int
    kind: str
    tool: str
    code: str
    rule: str
    time: float
    seconds: float
    nested: list[CallNode] = attrs.field(factory=list)
    is_truncated: bool = False

    def walk(self, depth: int = 0) -> Iterator[tuple[int, CallNode]]:
        """Yield this call and all calls nested in it with their depth, each before those nested in it."""
        waiting = [(depth, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting.extend((depth + 1, each) for each in reversed(node.nested))


def call_tree(connection: sqlite3.Connection, run: str, call: int) -> CallNode | None:
    """Return the outermost call around a call, with all calls nested in it; None if the call is not in the table.

    At most `MAX_TREE_CALLS` calls are returned, those at the lowest depth first.
    """
    root = node = _call(connection, run, call)
    seen = {call}
    while node is not None and len(seen) <= MAX_PARENTS:
        root, number = node, node.parent
        node = None if number <= 0 or number in seen else _call(connection, run, number)
        seen.add(number)
    if root is not None:
        _add_nested(connection, run, root)
    return root


def _call(connection: sqlite3.Connection, run: str, call: int) -> CallNode | None:
    row = connection.execute(BY_NUMBER, (run, call)).fetchone()
    return None if row is None else _node(row)


def _node(row: tuple[object, ...]) -> CallNode:
    """Return a row as a call; in a database that was edited, values can have any type."""
    id, call, parent, time, seconds = (
        each if isinstance(each, (int, float)) and abs(each) < MAX_NUMBER else 0 for each in (*row[:3], *row[7:])
    )
    kind, tool, code, rule = (each if isinstance(each, str) else "" for each in row[3:7])
    return CallNode(int(id), int(call), int(parent), kind, tool, code, rule, float(time), float(seconds))


def _add_nested(connection: sqlite3.Connection, run: str, root: CallNode) -> None:
    count, level = 1, [root]
    while level:
        inner: list[CallNode] = []
        for node in level:
            rest = MAX_TREE_CALLS - count
            found = [_node(row) for row in connection.execute(NESTED, (run, node.call, rest + 1))]
            node.is_truncated = len(found) > rest
            node.nested = found[:rest]
            count += len(node.nested)
            inner += node.nested
        level = inner
