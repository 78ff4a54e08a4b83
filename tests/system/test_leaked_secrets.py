"""Secrets that tools leak through each channel: none appears in a sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.canaries import ENCODINGS, Canary, found, labelled, written
from tests.canary_worlds import SINKS, World
from tests.leaking_tools import CHANNELS, VARIABLE
from tests.system.canary_cases import CASES, ERRORS, LENT, ORIGINS, RECORDS, Origin

# Sinks and the search in them


def test_each_encoding_of_a_canary_is_found() -> None:
    """Surrounding text does not matter, including base64 that starts earlier; no other canary is found there."""
    canary, other = Canary(), Canary()

    for name, text in zip(ENCODINGS, written(canary.text), strict=True):
        assert name in found(canary, f"<{text}>")
        assert name in labelled(canary, f"<{text}>")
        assert not found(other, text)
    for name in ("hex", "base64", "base64url"):
        for before in ("", "x", "xy"):
            around = before + canary.text + before
            assert found(canary, ENCODINGS[name](around)) >= {name}
    assert len(set(written(canary.text))) == len(ENCODINGS) == 8


# Secrets


def given_away(place: Path, channel: str, origin: Origin, secret: str, **world: Any) -> World:
    """Return a closed world in which a tool leaked a value by one channel, through every entry point."""
    name, args, needed = origin(secret)
    ended = World(place, **needed, **world)
    ended.call(name, {"how": channel, **args})
    ended.end()
    return ended


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(("origin", "watched"), [*((origin, True) for origin in ORIGINS), (LENT, False)])
def test_no_channel_leaks_a_secret(
    origin: str, channel: str, watched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one exception is the host that called the tool itself and receives the result unchanged."""
    canary, home = Canary(), Canary()
    monkeypatch.setenv(VARIABLE, canary.text if "environment" in origin else "nothing")

    world = given_away(tmp_path / home.word, channel, ORIGINS[origin], canary.text, watched=watched)

    assert set(world.found(canary)) == ({"host"} if channel == "gives" else set())
    assert world.found(home) == {}


SEEN: dict[str, set[str]] = {
    "lines": {"lines"},
    "prompts": {"prompts"},
    "progress": {"progress"},
    "logs": {"log"},
    "model": {"model"},
    "fails": ERRORS,
    "fails_oddly": ERRORS | RECORDS | {"recording"},
    "fails_as_another": ERRORS,
    "refuses": ERRORS | RECORDS,
    "limits": ERRORS | RECORDS,
    "times_out": ERRORS,
    "lent_fails": ERRORS | RECORDS | {"recording"},
    "returns_wrong": ERRORS,
    "gives": {"host", "results", "recording"},
    "gives_wrongly": ERRORS,
}
"""The sinks in which a non-secret value appears in all eight encodings."""

SEEN_ONCE: dict[str, set[str]] = {
    "breaks": {"log"},
    "exits": {"log"},
    "opens": set(),
    "opens_nowhere": set(),
    "spends": set(),
    "looks_up": set(),
    "keeps_wrongly": set(),
    "calls_wrongly": set(),
    "requires": ERRORS | {"log"},
    "reads_wrongly": ERRORS | RECORDS | {"refusals", "log"},
    "calls_nothing": RECORDS,
    "calls_with_keys": RECORDS - {"spans"} | {"recording"},
}
"""The same for channels that carry a name, a path or nothing: the value appears there in some encoding."""


@pytest.mark.parametrize("channel", CHANNELS)
def test_public_value_appears_where_the_channel_leads(channel: str, tmp_path: Path) -> None:
    """The same tools, channels, entry points and sinks do carry a value that is not secret, so the search works."""
    canary = Canary()

    world = given_away(tmp_path / "world", channel, lambda value: ("c.plain", {}, {"value": value}), canary.text)

    traces = world.found(canary)
    assert set(traces) == {**SEEN, **SEEN_ONCE}[channel]
    for sink in SEEN.get(channel, ()):
        assert labelled(canary, world.outputs[sink]) == set(ENCODINGS), sink


def test_every_sink_is_shown_to_carry_public_values() -> None:
    """A channel, a case, or the separate tests of the terminal and the command show it for each sink."""
    shown = set().union(*SEEN.values(), *SEEN_ONCE.values(), *(case.seen for case in CASES.values()))

    assert shown == SINKS
    assert set(CHANNELS) == {*SEEN, *SEEN_ONCE}
