"""Each change of an argument, and its compatibility for callers and hosts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.diffed_tools import ARGUMENT_ROWS, DEEP, change_lines, evolve, keyed, tool


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in ARGUMENT_ROWS], ids=[row[0] for row in ARGUMENT_ROWS]
)
def test_each_argument_change_is_classified(old: Any, new: Any, expected: list[str]) -> None:
    """The class depends on what happens to calls written for the old definition."""
    assert change_lines(tool(*old), tool(*new)) == expected


def test_nested_key_changes_are_classified() -> None:
    before = evolve(DEEP, keys=(evolve(DEEP, name="inner"),))
    after = evolve(DEEP, keys=(evolve(keyed(minimum=1), name="inner"),))

    assert change_lines(tool(before), tool(after)) == [
        "breaking args.m.keys.inner.keys.depth.minimum: the minimum is tighter"
    ]
