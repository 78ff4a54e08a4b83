"""The var toolset, called through an engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from neuroscript import Engine, Host, ToolFailed


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine whose host provides a variable and a constant."""
    host = Host(variables={"rows": [1]}, constants={"limit": 10})
    with Engine(plugins=["neuroscript-std"], host=host) as engine:
        yield engine


VALUES = [1, 2.5, True, "text", b"bytes", None, [1, [None]], {"a": {"b": []}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_persists_between_calls(engine: Engine, value: Any) -> None:
    """With its type, regardless of a default."""
    engine.call("var.set", ["kept", value])

    assert repr(value) == repr(engine.call("var.get", ["kept", "default"]))


def test_stored_value_is_a_copy(engine: Engine) -> None:
    """Changing the original does not change the variable."""
    value = {"a": [1]}
    engine.call("var.set", ["copied", value])

    value["a"].append(2)
    engine.call("var.get", ["copied"])["a"].append(3)

    assert {"a": [1]} == engine.call("var.get", ["copied"])


def test_names_are_sorted(engine: Engine) -> None:
    """Including those of the host."""
    engine.call("var.set", ["b", None])
    engine.call("var.set", ["A", 1])

    assert ["A", "b", "limit", "rows"] == engine.call("var.list")


def test_variables_belong_to_a_session(engine: Engine) -> None:
    """Other callers do not see them."""
    engine.call("var.set", ["rows", "mine"])

    with engine.session() as other:
        assert [1] == other.call("var.get", ["rows"])
        other.call("var.set", ["rows", "theirs"])

    assert "mine" == engine.call("var.get", ["rows"])


def test_constant_cannot_be_set(engine: Engine) -> None:
    """It belongs to the host and does not change."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("var.set", ["limit", 1000])

    assert ("var.set: limit is a constant", "var.constant", "model") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )
    assert 10 == engine.call("var.get", ["limit"])
