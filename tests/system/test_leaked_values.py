"""Values from every origin: each appears only in the sinks where the contract allows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.canaries import ENCODINGS, Canary, found, labelled
from tests.canary_worlds import World, approvals
from tests.cli.conftest import ROOT, command
from tests.leaking_tools import CHANNELS, GRANTS, VARIABLE, tools
from tests.system.canary_cases import CASES, ORIGINS, Origin
from tests.terminals import Terminal

from neuroscript import (
    Engine,
)

# Ordinary values


@pytest.mark.parametrize("origin", CASES)
def test_value_appears_only_where_the_contract_lets_it(origin: str, tmp_path: Path) -> None:
    """This is about what the engine reports; hooks and approvers receive values because they decide about them."""
    canary, home, case = Canary(), Canary(), CASES[origin]
    value = case.value(canary)
    world = World(tmp_path / home.word, **case.world(value))

    case.run(world, value)
    world.end()

    assert set(world.found(canary)) == case.seen
    assert world.found(home) == {}


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("origin", CASES)
def test_secret_appears_nowhere(origin: str, watched: bool, tmp_path: Path) -> None:
    """If the value is a secret of the host, even names and sentences that contain it are redacted."""
    canary, home, case = Canary(), Canary(), CASES[origin]
    value = case.value(canary)
    world = World(tmp_path / home.word, secret=value, watched=watched, **case.world(value))

    case.run(world, value)
    world.end()

    assert set(world.found(canary)) == (case.seen & {"host"})
    assert world.found(home) == {}


# Approvals


@pytest.mark.parametrize("index", range(len([*approvals("")])))
def test_no_secret_is_stored_for_an_approval(index: int, tmp_path: Path) -> None:
    """A call with a secret from the host or from its arguments is refused, because it cannot wait."""
    canary = Canary()
    world = World(tmp_path / "world", secret=canary.text)
    name, args = [*approvals(canary.text)][index]

    world.call(name, args, ["call"])

    assert set(world.end()) and world.found(canary) == {}
    assert "it cannot wait for approval" in world.outputs["errors"]


def seen_at_terminal(value: str, is_secret: bool) -> str:
    """Return what a user sees who approves all calls, without the line breaks of the card."""
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}]\nfrom tests.canary_worlds import ask_at_terminal as ask\n"
    terminal = Terminal(f"{code}ask({value!r}, {is_secret})")
    seen = ""
    for _ in approvals(value):
        seen += terminal.see("? [n] ")
        terminal.type("y\n")
    seen += terminal.see("=> that was all\r\n")
    terminal.close()
    return re.sub(r"\r\n {11}: ", "", seen)


def test_no_secret_is_shown_on_a_terminal() -> None:
    """The approval card and the listed needs are redacted."""
    canary = Canary()

    assert found(canary, seen_at_terminal(canary.text, is_secret=True)) == set()


def test_public_value_is_shown_on_a_terminal() -> None:
    """Arguments that the tool declares secret are not shown."""
    canary = Canary()
    seen = seen_at_terminal(canary.text, is_secret=False)

    assert labelled(canary, seen) == set(ENCODINGS)
    assert f"fs:read:data/{ENCODINGS['hex'](canary.text)}" in seen
    assert seen.count("value = [secret]") == seen.count("options = [secret]") == 1


# The command line


@pytest.fixture(autouse=True)
def _user(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Isolate the user directories of the command, so there is no policy and tools have their own files."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("home")))


def commanded(origin: Origin, secret: str, *words: str, how: str) -> str:
    """Return the output of the command for a call: results and messages."""
    name, args, needed = origin(secret)

    def make_engine(**options: Any) -> Engine:
        lent = {"lent": needed["secret"]} if "secret" in needed else {}
        host = attrs.evolve(options["host"], secrets=lent, variables={"value": needed.get("value", "")})
        return Engine(toolsets=[tools()], plugins="none", **{**options, "host": host})

    texts = {key: each if isinstance(each, str) else json.dumps(each) for key, each in args.items()}
    grants = [word for grant in GRANTS for word in ("--grant", grant)]
    given = [f"{key}={text}" for key, text in {"how": how, **texts}.items()]
    stdin = f"{needed.get('answer', 'yes')}\n" * 20
    result = command(*words, *grants, name, *given, stdin=stdin.encode(), make_engine=make_engine)
    return f"{result.out}\n{result.err}"


COMMANDS = {
    "call": ["call"],
    "call --json": ["call", "--json"],
    "call --dry-run": ["call", "--dry-run"],
    "policy explain": ["policy", "explain", "--json"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_command_line_shows_no_secret(origin: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither results nor errors contain it, by any channel."""
    canary = Canary()
    monkeypatch.setenv(VARIABLE, canary.text if "environment" in origin else "nothing")

    for channel in CHANNELS:
        seen = commanded(ORIGINS[origin], canary.text, *words, how=channel)
        assert found(canary, seen) == set(), channel
        assert seen.strip() and not re.search(r"(value|options|how): ", seen), channel


@pytest.mark.parametrize("channel", ["lines", "prompts", "fails", "gives", "gives_wrongly", "refuses"])
@pytest.mark.parametrize("words", [["call"], ["call", "--json"]], ids=" ".join)
def test_command_line_shows_public_values(words: list[str], channel: str) -> None:
    """The same commands, tools and channels do show them."""
    canary = Canary()
    seen = commanded(lambda value: ("c.plain", {}, {"value": value}), canary.text, *words, how=channel)

    assert labelled(canary, seen) == set(ENCODINGS)


@pytest.mark.parametrize("words", [[], ["--report"], ["--dry-run"]], ids=lambda words: " ".join(words) or "plain")
def test_lines_of_calls_show_no_secret(words: list[str], tmp_path: Path) -> None:
    """Results, the report and the static check redact it, whatever is wrong with the calls of a model."""
    canary = Canary()
    calls: list[dict[str, Any]] = [{"name": "c.lent", "arguments": {"how": how}} for how in CHANNELS]
    calls += [{"name": "c.lent", "arguments": {canary.text: canary.text}}, {"name": canary.text, "arguments": {}}]
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, calls)))

    def make_engine(**options: Any) -> Engine:
        host = attrs.evolve(options["host"], secrets={"lent": canary.text})
        return Engine(toolsets=[tools()], plugins="none", **{**options, "host": host})

    grants = [word for grant in GRANTS for word in ("--grant", grant)]
    result = command("execute", *words, *grants, str(path), stdin=b"yes\n" * 99, make_engine=make_engine)

    assert result.out.count("\n") >= len(calls)
    assert found(canary, f"{result.out}\n{result.err}") == set()
