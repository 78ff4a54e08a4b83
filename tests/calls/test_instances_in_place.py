"""Instances of formats within nested arguments: a compiled pipeline makes them in its own copies of maps and lists."""

from __future__ import annotations

import copy
import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NotRequired, TypedDict

import pytest

from neuroscript import (
    ArgumentError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    MemoryAudit,
    PolicyError,
    ToolCall,
    ToolPolicy,
    Toolset,
    hookimpl,
)
from neuroscript.calls.instance_codegen import is_made_in_place


class Room(TypedDict):
    """A map within a list within a map."""

    name: str
    until: datetime.time | None
    left: NotRequired[list[datetime.timedelta | None]]


class Stay(TypedDict):
    """A map with formats, lists and optional keys."""

    id: uuid.UUID
    nights: list[datetime.date]
    price: NotRequired[Decimal]
    rooms: list[Room]


@dataclass
class Visit:
    """A class that rejects some values, so it is never made in place."""

    at: datetime.datetime

    def __post_init__(self) -> None:
        if self.at.year < 2000:
            raise ValueError("too early")


SENT: Final[dict[str, Any]] = {
    "stays": [
        {
            "id": "00000000-0000-0000-0000-000000000001",
            "nights": ["2026-01-02", "2026-01-03"],
            "rooms": [{"name": "a", "until": None, "left": ["PT5S", None]}, {"name": "b", "until": "09:30:00"}],
        },
        {"id": "00000000-0000-0000-0000-000000000002", "nights": [], "price": "1.50", "rooms": []},
    ],
    "room": {"name": "c", "until": "10:00:00"},
    "visit": {"at": "2026-01-02T03:04:05"},
    "days": ["2026-01-02", None],
}

RECEIVED: Final = [
    [
        {
            "id": uuid.UUID(int=1),
            "nights": [datetime.date(2026, 1, 2), datetime.date(2026, 1, 3)],
            "rooms": [
                {"name": "a", "until": None, "left": [datetime.timedelta(seconds=5), None]},
                {"name": "b", "until": datetime.time(9, 30)},
            ],
        },
        {"id": uuid.UUID(int=2), "nights": [], "price": Decimal("1.50"), "rooms": []},
    ],
    {"name": "c", "until": datetime.time(10)},
    Visit(datetime.datetime(2026, 1, 2, 3, 4, 5)),
    [datetime.date(2026, 1, 2), None],
    None,
]


class Observer:
    """A hook that is notified of each call."""

    @hookimpl
    def neuroscript_call_finished(self, record: CallRecord) -> None:
        """Do nothing."""


def keeping(seen: list[Any], policy: ToolPolicy) -> Toolset:
    """Return a toolset with a tool that stores what it receives."""
    tools = Toolset("g")

    @tools.tool(policy=policy)
    def keep(
        stays: list[Stay],
        room: Room,
        visit: Visit,
        days: list[datetime.date | None],
        first: datetime.date | None = None,
    ) -> int:
        """Store the arguments."""
        seen.append([stays, room, visit, days, first])
        return len(stays)

    return tools


PLAIN: Final = ToolPolicy()
WAYS: Final[dict[str, tuple[ToolPolicy, dict[str, Any]]]] = {
    "compiled": (PLAIN, {}),
    "observed": (PLAIN, {"hooks": [Observer()]}),
    "audited": (PLAIN, {"audit": MemoryAudit()}),
    "on a thread": (ToolPolicy(timeout=30), {}),
}
"""The policy of the tool and the options of the engine."""


@pytest.mark.parametrize("way", WAYS)
def test_every_way_makes_the_same_instances(way: str) -> None:
    """At every depth, twice, and the arguments of the caller stay as they were."""
    policy, options = WAYS[way]
    seen: list[Any] = []
    sent = copy.deepcopy(SENT)

    with Engine(toolsets=[keeping(seen, policy)], plugins="none", **options) as engine:
        assert engine.call_named("g.keep", sent) == 2
        assert engine.call("g.keep", tuple(sent.values())) == 2
        assert [engine.execute(ToolCall("g.keep", sent)).value for _ in range(3)] == [2] * 3

    assert seen == [RECEIVED] * 5
    assert sent == SENT


def test_specs_say_which_instances_are_made_in_place() -> None:
    """Those of formats that accept every canonical text; a class of the author may reject a value."""
    (tool,) = keeping([], PLAIN).tools

    assert {arg.name: is_made_in_place(arg) for arg in tool.spec.args} == {
        "stays": True,
        "room": True,
        "visit": False,
        "days": True,
        "first": True,
    }


def test_a_rejection_beside_them_is_one_error() -> None:
    """The message names the argument of the class, and the function is not called."""
    seen: list[Any] = []
    wrong = {**SENT, "visit": {"at": "1999-01-02T03:04:05"}}

    with Engine(toolsets=[keeping(seen, PLAIN)], plugins="none") as engine:
        for _ in range(2):
            with pytest.raises(ArgumentError) as caught:
                engine.call_named("g.keep", wrong)
            assert str(caught.value) == "g.keep: visit: expected a value that Visit accepts, got dict"

    assert seen == []


def test_values_that_a_capability_names_are_not_changed() -> None:
    """The policy sees the exact text; then the function receives the instance."""
    seen: list[Any] = []
    tools = Toolset("g")

    @tools.tool(policy=ToolPolicy(capabilities=("calendar:read:{day}",)))
    def look(day: datetime.date, room: Room) -> None:
        """Store the arguments."""
        seen.append((day, room))

    policy = ExecutionPolicy(grants=("calendar:read:2026-01-02",))
    with Engine(toolsets=[tools], plugins="none", policy=policy) as engine:
        engine.call("g.look", ("2026-01-02", SENT["room"]))
        with pytest.raises(PolicyError):
            engine.call("g.look", ("2026-01-03", SENT["room"]))

    assert seen == [(datetime.date(2026, 1, 2), RECEIVED[1])]
