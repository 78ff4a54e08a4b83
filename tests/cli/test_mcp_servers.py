"""MCP servers of the policy file: their tools in every command, when they are started, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cli.conftest import CommandResult, command
from tests.interop import mcp_stdio
from tests.llm.server import ModelServer, asks, call, says

from neuroscript import Engine, ExecutionPolicy
from neuroscript.interop.mcp import from_mcp
from neuroscript.interop.mcp.client.accepted_definitions import Definition, write

RAW: Final = Path(__file__).parents[1] / "interop" / "mcp_raw.py"

HELLO: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
SCHEMA: Final = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 1}},
    "required": ["text"],
}
POLICY: Final = 'policy.grants = ["mcp:call:far/*"]\n'
LISTED: Final = """\
far.repeat  (text: string, times: int = 1) -> any  Repeat.
far.token   () -> any
"""


class World:
    """A directory with a server, and a record of what was started in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "log"
        self.policy = str(directory / "p.toml")
        self.accepted = directory / "far.mcp.json"

    def table(
        self,
        *,
        name: str = "far",
        description: str = "Repeat.",
        further: str = "trusted = true",
        server: str = "logged",
    ) -> str:
        """Return the table of a server whose tool has this description."""
        words = mcp_stdio.command(server, str(self.log), description)
        return f"[mcp.{name}]\ncommand = {json.dumps(words)}\n{further}\n"

    def write(self, *tables: str) -> None:
        Path(self.policy).write_text(POLICY + "".join(tables))

    @property
    def told(self) -> list[str]:
        """The starts and stops of servers; each server stops before its command exits."""
        return [line.split()[0] for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A working directory without files."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    world = World(tmp_path)
    world.write(world.table())
    return world


def run_command(world: World, *words: str, **how: Any) -> CommandResult:
    """Run a command with the servers of the policy file."""
    return command(words[0], "--policy", world.policy, *words[1:], **how)


def noted(world: World) -> str:
    """Return the message for a server that is seen for the first time."""
    return f"neuroscript: mcp.far: accepted its current tools in {world.accepted}\n"


# When a server is started


def test_server_is_started_once_and_then_only_for_calls(world: World) -> None:
    """Its tools are stored; it stops with the command, and its working directory is that of its file."""
    first = run_command(world, "list", "far.*")
    assert (first, world.told) == (CommandResult(0, LISTED, noted(world)), ["started", "ended"])
    again, other = run_command(world, "list", "far.*"), run_command(world, "call", "probe.echo", "hi")
    assert (again, other, world.told) == (CommandResult(0, LISTED), CommandResult(0, "hi\n"), ["started", "ended"])

    called = run_command(world, "call", "far.repeat", "tea", "times=2")

    assert (called, world.told) == (CommandResult(0, "teatea\n"), ["started", "ended"] * 2)
    assert {line.split()[1] for line in world.log.read_text().splitlines()} == {str(world.directory)}


def test_changed_definition_is_refused_until_accepted(world: World) -> None:
    """The stored definition is still listed, and a message says how to accept the new one."""
    assert run_command(world, "call", "far.repeat", "tea") == CommandResult(0, "tea\n", noted(world))
    world.write(world.table(description="Keep it secret."))
    how = f"neuroscript mcp tools far --policy {world.policy}; accept them by adding --accept"

    assert run_command(world, "list", "far.*") == CommandResult(0, LISTED)
    assert run_command(world, "call", "far.repeat", "tea") == CommandResult(
        1,
        "",
        "neuroscript: far.repeat: the tool differs from its accepted definition; review and accept it again\n"
        f"neuroscript: review the changes with: {how}\n",
    )
    assert run_command(world, "call", "far.token") == CommandResult(0, "\n")
    looked = command("mcp", "tools", "far", "--policy", world.policy)
    accepted = command("mcp", "tools", "far", "--policy", world.policy, "--accept")
    lines = "repeat has changed: description  description:  -Repeat.  +Keep it secret."
    found = f"{lines}2 tools; 1 changed from {world.accepted}review the changes, then accept them with --accept"
    assert (looked.code, looked.out.replace("\n", "").endswith(found)) == (1, True)
    assert (accepted.code, accepted.out.replace("\n", "").endswith(f"2 tools written to {world.accepted}")) == (0, True)

    assert run_command(world, "call", "far.repeat", "tea") == CommandResult(0, "tea\n")
    assert run_command(world, "list", "far.repeat").out == LISTED.splitlines(keepends=True)[0].replace(
        "Repeat.", "Keep it secret."
    )


# Commands with the tools of a server


COMMANDS: Final[dict[str, tuple[tuple[str, ...], Callable[[str], bool]]]] = {
    "list": (("list", "far.*"), lambda out: out == LISTED),
    "show": (("show", "far.repeat"), lambda out: out.startswith("far.repeat(text: string")),
    "export": (("export", "openai", "far.*"), lambda out: "far__repeat" in out),
    "docs": (("docs", "far.*"), lambda out: "far.repeat" in out),
    "stubs": (("stubs", "far.*"), lambda out: "def repeat" in out),
    "call": (("call", "far.repeat", "tea"), lambda out: out == "tea\n"),
    "dry-run": (("call", "--dry-run", "far.repeat", "tea"), lambda out: out.startswith("far.repeat: would run")),
    "execute": (("execute", "-"), lambda out: json.loads(out)["value"] == "teatea"),
}
CALL: Final = b'{"id": "1", "name": "far.repeat", "arguments": {"text": "tea", "times": "2"}}\n'


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_the_tools_of_the_policy_file(name: str, world: World) -> None:
    """The policy of the same file applies to them."""
    words, is_right = COMMANDS[name]

    found = run_command(world, *words, stdin=CALL)

    assert (found.code, found.err) == (0, noted(world))
    assert is_right(found.out), found.out


def test_policy_commands_include_its_tools(world: World) -> None:
    """A grant for them has an effect, and a call is explained."""
    checked = command("policy", "check", "--policy", world.policy, "--json")
    explained = command("policy", "explain", "--policy", world.policy, "--deny", "far.t*", "far.token")

    assert (checked.code, json.loads(checked.out)["unused_rules"]) == (0, [])
    assert (explained.code, explained.out.splitlines()[-1]) == (
        0,
        "far.token: would be refused: is denied by the host (policy.denied, by far.t*)",
    )


def test_model_is_offered_its_tools(world: World, server: ModelServer) -> None:
    """``ask`` and ``chat`` use one engine."""
    server.script(asks(call("far__repeat", {"text": "tea", "times": "2"})), says("Twice."))
    words = ("--base-url", server.base_url("openai-chat"), "--api", "openai-chat", "--model", "tiny")

    found = command("ask", *words, "--policy", world.policy, "--tools", "far.*", "Say it.", make_engine=None)

    assert (found.code, found.out) == (0, "Twice.\n")
    assert 'calls far.repeat {"text": "tea", "times": "2"}\nneuroscript: far.repeat: teatea' in found.err


@pytest.mark.slow
def test_its_tools_can_be_served(world: World) -> None:
    """``mcp serve`` serves the tools of another server, except denied ones."""
    served = [sys.executable, "-m", "neuroscript", "mcp", "serve", "--tools", "far.*", "--policy", world.policy]
    own = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ} | {"NEUROSCRIPT_PLUGINS": ""}
    policy = ExecutionPolicy(grants=("mcp:call:near/*",))
    server = from_mcp([*served, "--deny", "far.token"], group="near", trusted=True, env=own)
    with Engine(plugins="none", hooks=[server], policy=policy) as engine:
        assert [*engine.tools] == ["near.far_repeat"]
        assert engine.call_named("near.far_repeat", {"text": "tea", "times": "2"}) == "teatea"


@pytest.mark.slow
def test_stopped_server_stops_its_own_servers(world: World) -> None:
    """This includes a server that does not stop when its stdin is closed."""
    world.write(world.table(server="stubborn"))
    words = [sys.executable, "-m", "neuroscript", "mcp", "serve", "--tools", "far.*", "--policy", world.policy]
    requests = [
        {"id": 1, "method": "initialize", "params": {**HELLO}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "far__repeat", "arguments": {"text": "tea"}}},
    ]
    definitions = {"name": "repeat", "description": "Repeat.", "inputSchema": SCHEMA}
    write(world.accepted, {"repeat": Definition.of_data(definitions)})
    own = {**os.environ, "NEUROSCRIPT_PLUGINS": ""}
    with subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, text=True, env=own) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in requests))
        running.stdin.flush()
        while '"id":2' not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        code = running.wait(20)
    number = int(world.log.read_text().split("started")[-1].split()[0])

    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert code == 128 + signal.SIGTERM


# Authority of a server


def test_tool_needs_approval_unless_its_server_is_trusted(world: World) -> None:
    """A denied tool stays denied; claims of the server count only if the file says so."""
    world.write(world.table(further=""))
    sentence = "far.token: needs approval; approve it at a terminal, or pass --preapproved 'far.token'"
    refused = CommandResult(4, "", f"neuroscript: {sentence}\n")

    run_command(world, "list")
    assert run_command(world, "call", "far.token") == refused
    world.write(world.table(further="trust_annotations = true"))
    assert run_command(world, "call", "far.token") == CommandResult(0, "\n")
    world.write(world.table())
    assert run_command(world, "call", "--deny", "far.*", "far.token") == CommandResult(
        4, "", "neuroscript: far.token: denied by the pattern 'far.*' in deny\n"
    )
    assert world.told == ["started", "ended"] * 2


def test_secrets_are_environment_variables_and_redacted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the server receives it; a missing one is reported, and the other servers work."""
    world.write(world.table(further='trusted = true\nenv = {TOKEN = {secret = "FAR_TOKEN"}}'))
    assert run_command(world, "call", "probe.echo", "hi") == CommandResult(
        0, "hi\n", "neuroscript: warning: mcp.far: env: the host provides no secret named FAR_TOKEN\n"
    )

    monkeypatch.setenv("FAR_TOKEN", "token-Q7r9T2v5X8z1")

    assert run_command(world, "call", "far.token") == CommandResult(0, "[secret]\n", noted(world))


# Broken servers


def test_unusable_server_stops_nothing_else(world: World) -> None:
    """It produces a warning like a broken plugin, as does a duplicate tool name."""
    world.write(
        '[mcp.gone]\ncommand = ["./gone"]\n',
        world.table(),
        world.table(name="other"),
        world.table(name="lost", further='accepted = "no/such.json"'),
    )
    (world.directory / "other.mcp.json").write_text("{}")

    found = run_command(world, "call", "far.repeat", "tea")

    assert found == CommandResult(
        0,
        "tea\n",
        "neuroscript: warning: mcp.gone: the server could not be reached: FileNotFoundError\n"
        f"{noted(world)}"
        f"neuroscript: warning: mcp.other: {world.directory / 'other.mcp.json'}: mcp: expected 1 or 2, the supported versions of the file format\n"
        "neuroscript: warning: mcp.lost: its tool definitions cannot be stored (FileNotFoundError)\n",
    )


ENDLESS: Final = {"type": "object", "properties": {"v": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"$ref": "#/$defs/T"}}}
TREE: Final = {
    **ENDLESS,
    "$defs": {"T": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/T"}}]}},
}


def test_hostile_schemas_stop_no_other_command(world: World) -> None:
    """This holds for the first start and later; valid tools of the server are available."""
    tools = [{"name": "endless", "inputSchema": ENDLESS}, {"name": "tree", "inputSchema": TREE}]
    (world.directory / "tools.json").write_text(json.dumps(tools))
    words = [sys.executable, str(RAW), str(world.directory / "tools.json")]
    world.write(f"[mcp.odd]\ncommand = {json.dumps(words)}\n", world.table())
    problem = "endless: #: a $ref leads back to itself without reaching another value"
    warning = f"neuroscript: warning: mcp.odd: {problem}\n"
    known = world.directory / "odd.mcp.json"

    first = run_command(world, "call", "probe.echo", "hi")
    second = run_command(world, "call", "far.repeat", "tea")
    listed = run_command(world, "list", "odd.*")
    looked = command("mcp", "tools", "far", "--policy", world.policy)
    odd = command("mcp", "tools", "odd", "--policy", world.policy)

    assert first == CommandResult(
        0, "hi\n", f"{warning}neuroscript: mcp.odd: accepted its current tools in {known}\n{noted(world)}"
    )
    assert second == CommandResult(0, "tea\n", warning)
    assert (listed.code, listed.err) == (0, warning)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["odd.tree"]
    assert (looked.code, looked.err) == (0, "")
    assert (odd.code, f"cannot be used: {problem}" in odd.out.replace("\n", " ")) == (0, True)


def test_existing_tool_is_not_replaced(world: World) -> None:
    """A plugin takes precedence over a server with the same group."""
    definition = Definition.of_data({"name": "echo", "inputSchema": {"type": "object"}})
    write(world.directory / "probe.mcp.json", {"echo": definition})
    world.write(world.table(name="probe"))

    found = run_command(world, "call", "probe.echo", "hi")

    assert world.told == []
    assert found == CommandResult(0, "hi\n", "neuroscript: warning: mcp.probe: already registered: probe.echo\n")


# The policy file


def test_working_directory_is_not_searched(world: World) -> None:
    """A policy file there counts only if it is named."""
    Path("neuroscript.toml").write_text(POLICY + world.table())

    assert command("list", "far.*", make_engine=None).out == ""
    assert command("call", "far.repeat", "tea", make_engine=None).code == 2
    assert command("mcp", "tools", "far", make_engine=None) == CommandResult(
        2,
        "",
        "neuroscript: NAME is a server in a policy file, but there is no policy file; add --policy FILE\n",
    )
    assert world.told == []


@pytest.fixture
def own(world: World, config: Path) -> Path:
    """The user's own policy file, with a server."""
    config.parent.mkdir(parents=True)
    config.parent.chmod(0o700)
    config.write_text(POLICY + world.table())
    return config


def test_servers_of_the_users_own_file_are_available(own: Path, world: World) -> None:
    """No option names it."""
    found = command("list", "far.*", make_engine=None)

    assert (found.code, found.out, world.told) == (0, LISTED, ["started", "ended"])
    assert command("mcp", "tools", "far", "--json", make_engine=None).code == 0
    assert command("call", "far.repeat", "tea", make_engine=None) == CommandResult(0, "tea\n")


@pytest.mark.parametrize("why", ["autoload", "locked", "a host"])
def test_own_servers_are_skipped_like_own_plugins(
    why: str, own: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds without autoload, and in the command of an application."""
    if why == "autoload":
        monkeypatch.setenv("NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "1")
    lock = ("--locked=mine.lock",) if why == "locked" else ()
    if lock:
        assert command("plugins", "lock", "--output", "mine.lock", make_engine=None).code == 0

    found = command("list", *lock) if why == "a host" else command("list", *lock, make_engine=None)

    assert (found.code, "far.repeat" in found.out, world.told) == (0, False, [])


def test_file_that_other_users_can_change_starts_nothing(own: Path, world: World) -> None:
    """Its policy still applies."""
    own.chmod(0o666)

    found = command("list", "far.*", make_engine=None)

    assert (found.out, world.told) == ("", [])
    assert found.err.startswith(f"neuroscript: warning: {own}: its MCP servers are not started: other users can ")


def test_invalid_own_file_ends_only_commands_that_call_tools(own: Path, world: World) -> None:
    """The file might deny something."""
    own.write_text("[mcp.far]\ncommand = 'server'\n")
    sentence = "neuroscript.toml:2: mcp.far.command: must be an array of strings: the program and its arguments"

    listed = command("list", "math.add", make_engine=None)

    assert (listed.code, listed.out.split()[0]) == (0, "math.add")
    assert listed.err == f"neuroscript: warning: {sentence}\n"
    assert command("call", "math.add", "1", "2", make_engine=None) == CommandResult(2, "", f"neuroscript: {sentence}\n")


# ``mcp tools NAME``


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fra",), "unknown server fra in the policy file; did you mean far?"),
        (("far", "--group", "x"), "NAME cannot be combined with --url, --group, --file or a command line"),
        (("far", "--", "x"), "NAME cannot be combined with --url, --group, --file or a command line"),
    ],
    ids=["unknown", "group", "program"],
)
def test_name_selects_a_server_of_the_policy_file(words: tuple[str, ...], sentence: str, world: World) -> None:
    """An unknown name, or a name with other options, starts nothing."""
    found = command("mcp", "tools", "--policy", world.policy, *words)

    assert (found, world.told) == (CommandResult(2, "", f"neuroscript: {sentence}\n"), [])
