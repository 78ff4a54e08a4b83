"""The meta toolset, called through an engine: what it lists and describes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Runtime,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    policy_from_data,
    spec_from_data,
)

POLICY = ToolPolicy(
    capabilities=("fs:read:{path}",), effects=("reads",), requires_trust=True, sources=("private",), sinks=("storage",)
)


def scanned(rt: Runtime, path: str, depth: int, mode: str | None, *words: str) -> list[str]:
    return list(words)


SCAN = ToolSpec(
    "scan",
    "acme",
    (
        ArgSpec("path", ArgType.STRING, description="Where to look."),
        ArgSpec("depth", ArgType.INT, default=3, description="How many levels."),
        ArgSpec("mode", ArgType.STRING, required=False, nullable=True, description="How."),
        ArgSpec("words", ArgType.STRING, required=False, description="What to look for."),
    ),
    variadic=True,
    return_type=ArgType.SLICE_STRING,
    description="Scan a file.",
    when_to_use="For words in a file.",
    return_help="The words.",
    error_conditions="acme.none.",
)
SIGNATURE = "acme.scan(path: string, depth: int = 3, mode?: string | null, *words: string) -> slice_string"


@pytest.fixture
def acme() -> Toolset:
    """A toolset with a tool that requires everything."""
    toolset = Toolset("acme")
    toolset.add(SCAN, scanned, POLICY)
    return toolset


@pytest.fixture
def engine(acme: Toolset) -> Iterator[Engine]:
    """An engine that permits that tool."""
    policy = ExecutionPolicy(trusted=True, grants=["fs:read:data/**"])
    with Engine(toolsets=[acme], plugins=["neuroscript-std"], policy=policy) as engine:
        yield engine


def test_listtoolnames_returns_signatures(engine: Engine) -> None:
    """One per line, sorted by name."""
    lines = engine.call("meta.listtoolnames").splitlines()

    assert sorted(engine.tools) == [line.partition("(")[0] for line in lines]
    assert SIGNATURE in lines


def test_filter_matches_parts_of_names(engine: Engine) -> None:
    """Case-insensitively, and the same for every meta tool."""
    expected = [name for name in sorted(engine.tools) if "jwt" in name]

    assert expected == [line.partition("(")[0] for line in engine.call("meta.listtoolnames", ["JWT"]).splitlines()]
    assert expected == [each["fullname"] for each in engine.call("meta.listtools", ["JWT"])]
    assert expected == [each["fullname"] for each in json.loads(engine.call("meta.gettoolspecificationsjson", ["Jwt"]))]
    assert expected == [line[3:] for line in engine.call("meta.toolshelp", ["jwt"]).splitlines() if line[:3] == "## "]


def test_show_returns_spec_policy_and_origin(engine: Engine) -> None:
    """As data that specs and policies can be created from."""
    shown = engine.call("meta.show", ["acme.scan"])

    assert "host" == shown.pop("origin")
    policy = {key: shown.pop(key) for key in ("requiresTrust", "requiredCaps", "effects", "sources", "sinks")}
    assert (SCAN, POLICY) == (spec_from_data(shown), policy_from_data(policy))


def test_json_equals_data(engine: Engine) -> None:
    """For each tool, what meta.show returns."""
    data = engine.call("meta.listtools")

    assert data == json.loads(engine.call("meta.gettoolspecificationsjson"))
    assert data == [engine.call("meta.show", [name]) for name in sorted(engine.tools)]


@pytest.mark.parametrize("spelling", ["acme.scan", "ACME.Scan", "tool.acme.scan", "acme__scan"])
def test_show_accepts_every_spelling_of_a_name(engine: Engine, spelling: str) -> None:
    """As calls do."""
    assert "acme.scan" == engine.call("meta.show", [spelling])["fullname"]


def test_help_has_a_section_for_each_tool(engine: Engine) -> None:
    """Including its requirements, which decide whether a call is permitted."""
    expected = f"""\
## acme.scan

`{SIGNATURE}`

Scan a file.

For words in a file.

- `path`: Where to look.
- `depth`: How many levels.
- `mode`: How.
- `words`: What to look for.

- Returns: The words.
- Fails: acme.none.
- Needs: `fs:read:{{path}}`
- Trust: requires a trusted host
- Effects: reads
- Reads: private
- Sends to: storage"""

    assert expected == engine.call("meta.toolshelp", ["acme"])
    assert len(engine.tools) == f"\n{engine.call('meta.toolshelp')}".count("\n## ")


def test_refused_tools_are_hidden(acme: Toolset) -> None:
    """They are neither listed nor described."""
    with Engine(toolsets=[acme], plugins=["neuroscript-std"], policy=ExecutionPolicy(deny=["math.*"])) as engine:
        texts = [engine.call(f"meta.{tool}") for tool in ("listtoolnames", "gettoolspecificationsjson", "toolshelp")]
        names = [each["fullname"] for each in engine.call("meta.listtools")]
        with pytest.raises(ToolFailed) as caught:
            engine.call("meta.show", ["acme.scan"])

    assert not any("acme.scan(" in text or "math.add(" in text for text in texts)
    assert {"acme.scan", "math.add", "crypto.signjwt"}.isdisjoint(names)
    assert ("meta.unknown", "model") == (caught.value.code, caught.value.retry)


def test_signature_of_a_stream() -> None:
    """Its result type is that of the items."""
    tools = Toolset("beat")
    tools.add(ToolSpec("ticks", "beat", return_type=ArgType.INT, stream=True), lambda rt: iter((1, 2)))
    with Engine(toolsets=[tools], plugins=["neuroscript-std"]) as engine:
        assert engine.call("meta.listtoolnames", ["beat"]) == "beat.ticks() -> stream of int"
        assert engine.call("meta.show", ["beat.ticks"])["stream"] is True


def test_signature_of_a_possible_stream() -> None:
    """Each call decides."""
    tools = Toolset("beat")
    tools.add(ToolSpec("ticks", "beat", return_type=ArgType.INT, stream="maybe"), lambda rt: 1)
    with Engine(toolsets=[tools], plugins=["neuroscript-std"]) as engine:
        assert engine.call("meta.listtoolnames", ["beat"]) == "beat.ticks() -> int or stream of int"
        assert engine.call("meta.show", ["beat.ticks"])["stream"] == "maybe"
