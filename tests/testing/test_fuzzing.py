"""Fuzzing of tools with generated values."""

from __future__ import annotations

import pytest
from tests.testing import defects

from neuroscript.testing import fuzz_toolset


def test_good_tool_passes() -> None:
    """Nothing is raised."""
    fuzz_toolset(defects.good, examples=20)


def test_crash_is_reported_without_values() -> None:
    """The message names the tool and the exception."""
    with pytest.raises(AssertionError) as caught:
        fuzz_toolset(defects.values_taken, examples=100)

    assert "acme.shout: fuzz: valid arguments raise IndexError" == str(caught.value)


def test_argument_of_type_any_accepts_plain_values() -> None:
    """Values that are invalid for other types are valid here, except objects."""
    fuzz_toolset(defects.types_agree, examples=20)
