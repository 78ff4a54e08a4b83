"""The var toolset, through an engine as a caller would use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from neuroscript import Engine, Host, ToolFailed


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine whose host lends a variable and a constant."""
    host = Host(variables={"rows": [1]}, constants={"limit": 10})
    with Engine(plugins=["neuroscript-std"], host=host) as engine:
        yield engine


VALUES = [1, 2.5, True, "text", b"bytes", None, [1, [None]], {"a": {"b": []}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_kept_until_the_next_call(engine: Engine, value: Any) -> None:
    """Of its own type, and without a default in its way."""
    engine.call("var.set", ["kept", value])

    assert repr(value) == repr(engine.call("var.get", ["kept", "default"]))


def test_what_is_kept_is_a_copy(engine: Engine) -> None:
    """Nobody who holds a value can change the variable."""
    value = {"a": [1]}
    engine.call("var.set", ["copied", value])

    value["a"].append(2)
    engine.call("var.get", ["copied"])["a"].append(3)

    assert {"a": [1]} == engine.call("var.get", ["copied"])


def test_the_names_are_listed_in_order(engine: Engine) -> None:
    """Those of the host are among them."""
    engine.call("var.set", ["b", None])
    engine.call("var.set", ["A", 1])

    assert ["A", "b", "limit", "rows"] == engine.call("var.list")


def test_a_session_has_variables_of_its_own(engine: Engine) -> None:
    """What one caller sets, no other one sees."""
    engine.call("var.set", ["rows", "mine"])

    with engine.session() as other:
        assert [1] == other.call("var.get", ["rows"])
        other.call("var.set", ["rows", "theirs"])

    assert "mine" == engine.call("var.get", ["rows"])


def test_a_constant_can_not_be_set(engine: Engine) -> None:
    """It is the host's, and stays as it is."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("var.set", ["limit", 1000])

    assert ("var.set: limit is a constant", "var.constant", "model") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )
    assert 10 == engine.call("var.get", ["limit"])
