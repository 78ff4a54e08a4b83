"""Tools under drawn values."""

from __future__ import annotations

import pytest
from tests.testing import defects

from neuroscript.testing import fuzz_toolset


def test_a_good_tool_stands_drawn_values() -> None:
    """Nothing is raised."""
    fuzz_toolset(defects.good, examples=20)


def test_a_tool_that_crashes_is_found_without_a_value_in_the_text() -> None:
    """The text says which tool, and in what it ended."""
    with pytest.raises(AssertionError) as caught:
        fuzz_toolset(defects.values_taken, examples=100)

    assert "acme.shout: fuzz: valid arguments raise IndexError" == str(caught.value)


def test_a_tool_that_takes_whatever_comes_is_left_as_it_is() -> None:
    """An argument of type any takes what is wrong elsewhere, but no objects."""
    fuzz_toolset(defects.types_agree, examples=20)
