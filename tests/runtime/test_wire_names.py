"""Tool names in the form that model APIs accept, and their resolution."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import Engine, RegistryError, ToolInfo, ToolPolicy, ToolSpec
from neuroscript.runtime.wire_names import MAX_WIRE_NAME_CHARS, WireNames, spec_of, truncate

WORDS = st.from_regex(r"[a-z](_?[a-z0-9]){0,40}_?", fullmatch=True)
PATHS = st.lists(WORDS, min_size=2, max_size=4).map(".".join)
LONG = ToolSpec("x" * 80, "g")


def spec(name: str) -> ToolSpec:
    """Return a spec of a canonical name."""
    group, _, word = name.rpartition(".")
    return ToolSpec(word, group)


@pytest.mark.slow
@given(st.lists(PATHS, unique=True, max_size=5))
def test_each_name_can_be_resolved(names: list[str]) -> None:
    """For short and long names; each tool has its own, which the APIs accept."""
    table = WireNames.of(map(spec, names))

    wires = [table.wire(name) for name in names]

    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire) for wire in wires)
    assert len(set(wires)) == len(names)
    assert [table.tool(wire) for wire in wires] == names


@given(PATHS)
def test_a_name_outside_the_table_follows_the_rule(name: str) -> None:
    """It can be resolved unless it was truncated."""
    wire = WireNames().wire(name)

    assert wire == WireNames.of([spec(name)]).wire(name)
    if len(name.replace(".", "__")) <= MAX_WIRE_NAME_CHARS:
        assert WireNames().tool(wire) == name


def test_long_names_with_the_same_beginning_differ() -> None:
    """Each is truncated to 64 characters, of which the last nine are unique."""
    one, other = truncate("x" * 80), truncate("x" * 81)

    assert one != other
    assert [len(one), len(other), one[:55], one[55]] == [64, 64, "x" * 55, "_"]
    assert truncate("x" * 64) == "x" * 64


def test_two_tools_with_one_name_are_refused() -> None:
    """A name may equal another's truncated name; the error names both in any order."""
    other = ToolSpec(WireNames().wire(LONG.full_name).removeprefix("g__"), "g")

    with pytest.raises(RegistryError) as caught:
        WireNames.of([LONG, other])
    with pytest.raises(RegistryError):
        WireNames.of([other, LONG])
    wire = WireNames().wire(LONG.full_name)
    assert str(caught.value) == f"g.{'x' * 62}… and {other.full_name} would both be named {wire}"


def test_one_tool_twice_is_one_tool() -> None:
    """A repeated entry has no effect."""
    assert WireNames.of([LONG, LONG]) == WireNames.of([LONG])


def test_an_invented_name_is_reported_unchanged() -> None:
    """In the spelling of tools, with or without dots."""
    table = WireNames.of([spec("math.add")])

    assert [table.tool(name) for name in ("math__add", "Math.Add", "tool.math.add", "made__up", "made up")] == [
        "math.add",
        "math.add",
        "math.add",
        "made.up",
        "made up",
    ]


@pytest.mark.parametrize("name", ["look up!", "größe", "a.b/c", "{x}", "é" * 65])
def test_an_invented_name_is_sent_back_in_a_valid_form(name: str) -> None:
    """An invalid one would make the API reject the whole conversation."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", WireNames().wire(name))


def test_names_are_read_from_every_form_of_a_tool() -> None:
    """Implementations, tool information, and specs."""
    with Engine() as engine:
        tool = engine.tools["math.add"]
    info = ToolInfo(tool.spec, ToolPolicy(), "host")

    assert [spec_of(each) for each in (tool, info, tool.spec)] == [tool.spec] * 3
    assert WireNames.of([tool]) == WireNames.of([info]) == WireNames.of([tool.spec])
