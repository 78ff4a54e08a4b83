"""The annotations that authors write, each as an argument and as a result."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from tests.spec.annotation_rows import REFUSED, ROWS, SAME, Refused, Row, take_of

from neuroscript import Engine, SpecError, Toolset, bind


def spelled(value: Any) -> Any:
    """Return a form that is equal only for values with the same types at every level; the order of keys is ignored."""
    match value:
        case list() | tuple() | deque():
            return type(value), [spelled(each) for each in value]
        case dict():
            return type(value), sorted((repr(key), spelled(key), spelled(each)) for key, each in value.items())
    return type(value), repr(value)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("mode", ["lax", "strict"])
def test_annotation(row: Row, mode: Any) -> None:
    """A lax call accepts what a model sends and a strict call the exact value; the result is exact plain data."""
    seen: list[Any] = []
    take = take_of(row.annotation, seen)
    exact = bind(take.spec, [row.sent])
    with Engine(toolsets=[Toolset("table", (take,))], plugins="none", mode=mode) as engine:
        result = engine.call("table.take", [row.sent if mode == "lax" else row.exact])

    assert spelled(row.exact) == spelled(exact[0])
    assert spelled(row.exact if row.received is SAME else row.received) == spelled(seen[0])
    assert spelled(row.exact if row.result is SAME else row.result) == spelled(result)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_refused_annotation(row: Refused) -> None:
    """The error says what to write instead, for the argument and for the result."""
    with pytest.raises(SpecError) as caught:
        take_of(row.annotation, [])

    assert [f"value: {row.problem}", f"the result: {row.problem}"] == [*caught.value.problems]


def test_table_covers_enough() -> None:
    assert len(ROWS) >= 60
    assert len(REFUSED) <= 4
    assert len({row.name for row in ROWS}) == len(ROWS)
