"""Values and errors that are encoded as text are restored exactly."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript.coercion.scalars import Handle
from neuroscript.errors import (
    ArgumentError,
    CallError,
    CallTimeout,
    LimitError,
    PolicyError,
    Problem,
    ReturnError,
    ToolFailed,
    ToolNotFound,
)
from neuroscript.tools.serialization import error_to_data
from neuroscript.workflow.durable.encoding import NotStorable, decode_error, encode_error, text_of, value_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-3, minutes=-30))]))
    | st.lists(st.floats(width=32, allow_nan=False)).map(lambda items: array("f", items))
)
KEYS = st.text() | st.integers() | st.sampled_from(["$bytes", "$pairs", "$tuple", "$base64", "$"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.lists(inner).map(tuple),
    max_leaves=20,
)


class Own(ToolFailed):
    """A host's own error."""


ERRORS = (
    CallError("was lost", tool="a.b", code="x.y", retry="later"),
    ToolNotFound("maths.add", ["math.add"]),
    ArgumentError([Problem("a", "arg.missing", "int", "nothing", "say one")], "a.b", 25),
    PolicyError("is denied", tool="a.b", need="fs:read", rule="deny"),
    LimitError("no more", tool="a.b", code="limit.calls"),
    CallTimeout("too late", tool="a.b", state="abandoned", has_ended=lambda: True),
    CallTimeout("too late", tool="a.b", state="killed", seconds=2.5),
    ToolFailed("closed", tool="a.b", code="shop.closed", retry="later"),
    ReturnError("no int", tool="a.b"),
)


def shape(value: Any) -> Any:
    """Return a value with the type of each part, because True equals 1."""
    match value:
        case list() | tuple():
            return type(value), [shape(each) for each in value]
        case dict():
            return dict, [(shape(key), shape(each)) for key, each in value.items()]
        case array():
            return array, value.typecode, value.tolist()
        case datetime():
            return datetime, value, value.tzinfo
        case _:
            return type(value), value


@pytest.mark.slow
@given(VALUES)
def test_value_is_restored(value: Any) -> None:
    """With the same types at every level, for any keys of maps."""
    assert shape(value) == shape(value_of(text_of(value)))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_is_restored(error: CallError) -> None:
    """With all attributes that hosts use."""
    again = decode_error(value_of(text_of(encode_error(error))))

    assert type(error) is type(again)
    assert error_to_data(error) == error_to_data(again)
    assert {**error.__reduce__()[1][1]} == {**again.__reduce__()[1][1]}


def test_error_subtype_is_stored_as_known_type() -> None:
    """Without attributes that are not plain data."""
    error = Own("closed", tool="a.b")
    error.lock = object()  # type: ignore[attr-defined]
    again = decode_error(value_of(text_of(encode_error(error))))

    assert (ToolFailed, "a.b: closed") == (type(again), str(again))


def test_process_bound_values_cannot_be_stored() -> None:
    """At any depth."""
    with pytest.raises(NotStorable) as caught:
        text_of({"a": [Handle("it")]})

    assert "Handle cannot be stored in a database, because it exists only in its own process" == str(caught.value)
