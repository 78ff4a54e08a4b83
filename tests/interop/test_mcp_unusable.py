"""Unusable tools of a server: each is listed with its reason, and does not affect other tools or servers."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.coercion.test_schema_inspection import JSON_VALUE, SELF, hostile, named, tool

from neuroscript import Engine, ExecutionPolicy, PluginError, SpecError, load_policy
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.interop.mcp import McpServer, add_servers, from_mcp
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.servers import add_server

RAW: Final = [sys.executable, str(Path(__file__).with_name("mcp_raw.py"))]
GRANTS: Final = ExecutionPolicy(grants=("mcp:call:far/*",))
LINE: Final = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"hi"}]}}'


def defined(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema, **more}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"anyOf": [schema]}
    return tool(schema)


GOOD: Final = [
    defined("raw", tool({"type": "string"}) | {"properties": {"line": {"type": "string"}}, "required": ["line"]}),
    defined("recursive", tool(SELF, T=JSON_VALUE), outputSchema=tool(SELF, T=JSON_VALUE)),
]
BAD: Final = [
    defined("endless", tool(SELF, T=SELF)),
    defined("gives-endless", {"type": "object"}, outputSchema=tool(SELF, T={"anyOf": [SELF]})),
    defined("deep", nested(80)),
    defined("wide", {"type": "object", "properties": {f"p{index}": {} for index in range(3_000)}}),
    defined("far-away", tool({"$ref": "http://127.0.0.1:9/a.json"})),
    defined("blank", {"type": "object", "properties": {"a b": {"type": "string"}}}),
    defined("x" * 129, {"type": "object"}),
]
ENDLESS: Final = "#: a $ref leads back to itself without reaching another value"
SKIPPED: Final = (
    "deep: inputSchema: nests deeper than 64 levels",
    f"{'x' * 64}…: name: expected a string of 1 to 128 characters",
    f"endless: {ENDLESS}",
    f"gives-endless: {ENDLESS}",
    "wide: #/properties: more than 2000 properties",
    "far-away: #/properties/v/$ref: only references within the schema are supported, such as #/$defs/name",
    "blank: #/properties/a b: name must be 1 to 128 printable characters without whitespace, braces, brackets and quotes",
)


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    """A file of the tools that a server lists."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([*BAD[:3], *GOOD, *BAD[3:]]))
    return file


def opened(listing: Path, **options: Any) -> McpServer:
    return from_mcp([*RAW, str(listing)], group="far", trusted=True, **options)


def test_skipping_omits_only_the_invalid_tools(listing: Path) -> None:
    """The others can be called, including one with a recursive schema."""
    with opened(listing, skip=True) as server:
        with Engine(plugins="none", toolsets=[server.toolset], policy=GRANTS) as engine:
            assert [*engine.tools] == ["far.raw", "far.recursive"]
            assert engine.call("far.raw", [LINE]) == "hi"

    assert server.skipped == SKIPPED


def test_all_unusable_tools_are_one_error(listing: Path) -> None:
    """If none may be skipped; tools that no pattern selects do not count."""
    with pytest.raises(SpecError) as caught:
        opened(listing)
    with opened(listing, select=["far.r*"]) as server:
        names = [each.spec.name for each in server.toolset]

    assert caught.value.problems == SKIPPED
    assert (server.skipped, names) == ((), ["raw", "recursive"])


def test_server_of_a_file_is_used_without_its_invalid_tools(listing: Path) -> None:
    """They are listed, unless the file says that they may be skipped; also after they were accepted."""
    file = listing.with_name("policy.toml")
    table = f"[policy]\ngrants = ['mcp:call:far/*']\n[mcp.far]\ncommand = {json.dumps([*RAW, str(listing)])}\ntrusted = true\n"
    for further, expected in (("", [SKIPPED]), ("", [sorted(SKIPPED[2:])]), ("skip = true\n", [])):
        file.write_text(table + further)
        with Engine(plugins="none", policy=load_policy(file)) as engine:
            errors = add_servers(engine, file)

            assert engine.call("far.raw", [LINE]) == "hi"
            assert engine.plugin_errors == errors
        assert [(each.distribution, each.code, each.reason) for each in errors] == [
            ("mcp.far", "plugin.spec", "; ".join(each)) for each in expected
        ]


def test_invalid_definition_of_a_host_does_not_affect_others() -> None:
    """For any exception while it is read."""
    accepted = {
        "good": Definition("good", {"name": "good", "inputSchema": {"type": "object"}}),
        "bad": Definition("bad", {}),
    }

    with from_mcp(["gone"], group="far", accepted=accepted, skip=True) as server:
        (good,) = server.toolset
        assert (good.spec.name, server.skipped) == ("good", ("bad: cannot be read (KeyError)",))


def test_server_that_fails_unexpectedly_does_not_affect_others() -> None:
    """It is listed with the type of the exception, without its message."""
    with Engine(plugins="none") as engine:
        error = add_server(engine, ServerTable("far", "far", ("gone",), accepted=None))  # type: ignore[arg-type]

        assert engine.plugin_errors == (error,)
    assert (str(error), error.code if error else "") == ("mcp.far: cannot be used (TypeError)", "plugin.broken")


@pytest.mark.slow
def test_reading_tools_ends_with_the_time_of_the_connection(tmp_path: Path) -> None:
    """A server that lists more than can be read in time is reported as unreachable."""

    def patterns(number: int) -> dict[str, Any]:
        rules = {
            f"p{each}": {"type": "string", "pattern": rf"^(\w{{50}}){{20}}{number}x{each}$"} for each in range(100)
        }
        return {"type": "object", "properties": rules}

    slow = [defined(f"t{number}", patterns(number)) for number in range(250)]
    (tmp_path / "tools.json").write_text(json.dumps(slow))

    with pytest.raises(PluginError) as caught:
        opened(tmp_path / "tools.json", timeout=3)

    assert (caught.value.code, caught.value.reason) == ("mcp.start", "its tools could not be read within 3 s")


@pytest.mark.parametrize("seed", range(4))
def test_hostile_definitions_only_raise_spec_errors(seed: int, full_counts: bool) -> None:
    """For anything that a server may list; each skipped tool has a reason."""
    source = random.Random(seed)
    for _ in range(500 if full_counts else 20):
        listed = {f"t{index}": _definition(source, f"t{index}") for index in range(5)}
        known = {name: each for name, each in listed.items() if each is not None}
        with from_mcp(["gone"], group="far", accepted=known, skip=True) as server:
            assert len(server.toolset) + len({each.partition(":")[0] for each in server.skipped}) == len(known)
        try:
            from_mcp(["gone"], group="far", accepted=known).close()
        except SpecError as error:
            assert error.problems == server.skipped


def _definition(source: random.Random, name: str) -> Definition | None:
    schema = tool(hostile(source, 4), **named(source, 3))
    output = tool(hostile(source, 3), **named(source, 2)) | source.choice([{}, {"type": "array"}])
    try:
        return Definition.of_data({"name": name, "inputSchema": schema, "outputSchema": source.choice([None, output])})
    except SpecError:
        return None
