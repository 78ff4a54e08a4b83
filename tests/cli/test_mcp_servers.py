"""Servers of the policy file: their tools in every command, when they are started, and what is refused of them."""

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
from tests.cli.conftest import Ran, command, process
from tests.llm.server import ModelServer, asks, call, says

from neuroscript import Engine, ExecutionPolicy
from neuroscript.interop.mcp import from_mcp
from neuroscript.interop.mcp.client.accepted_definitions import Definition, write

RAW: Final = Path(__file__).parents[1] / "interop" / "mcp_raw.py"
SERVER: Final = """
import json, os, sys
log, description = sys.argv[1:]
print("started", os.getcwd(), file=open(log, "a"), flush=True)
say = lambda **message: print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
takes = {"type": "object", "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 1}}}
tools = [
    {"name": "repeat", "description": description, "inputSchema": {**takes, "required": ["text"]}},
    {"name": "token", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]
for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            server = {"name": "far", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
            say(id=asked["id"], result=result)
        case "tools/list":
            say(id=asked["id"], result={"tools": tools})
        case "tools/call":
            given = asked["params"]["arguments"]
            is_token = asked["params"]["name"] == "token"
            text = os.environ.get("TOKEN", "") if is_token else given["text"] * given["times"]
            say(id=asked["id"], result={"content": [{"type": "text", "text": text}]})
        case method if "id" in asked:
            say(id=asked["id"], error={"code": -32601, "message": method})
print("ended", os.getcwd(), file=open(log, "a"), flush=True)
"""

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
    """A directory with a server, and what was started in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "log"
        self.policy = str(directory / "p.toml")
        self.accepted = directory / "far.mcp.json"
        (directory / "server.py").write_text(SERVER)

    def table(self, *, name: str = "far", description: str = "Repeat.", further: str = "trusted = true") -> str:
        """Return the table of a server that has this description of a tool."""
        words = [sys.executable, "server.py", str(self.log), description]
        return f"[mcp.{name}]\ncommand = {json.dumps(words)}\n{further}\n"

    def write(self, *tables: str) -> None:
        Path(self.policy).write_text(POLICY + "".join(tables))

    @property
    def told(self) -> list[str]:
        """What servers were started and ended; each ends before its command does."""
        return [line.split()[0] for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A working directory in which nothing of it lies."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    world = World(tmp_path)
    world.write(world.table())
    return world


def ran(world: World, *words: str, **how: Any) -> Ran:
    """Run a command with the servers of the file."""
    return command(words[0], "--policy", world.policy, *words[1:], **how)


def noted(world: World) -> str:
    """Return what is said when a server is first seen."""
    return f"neuroscript: mcp.far: its tools are accepted as they are now, in {world.accepted}\n"


# When a server is started


def test_a_server_is_started_once_to_be_seen_and_then_only_by_calls_of_its_tools(world: World) -> None:
    """What it says its tools are is written down; it ends with the command, and starts where its file lies."""
    first = ran(world, "list", "far.*")
    assert (first, world.told) == (Ran(0, LISTED, noted(world)), ["started", "ended"])
    again, other = ran(world, "list", "far.*"), ran(world, "call", "probe.echo", "hi")
    assert (again, other, world.told) == (Ran(0, LISTED), Ran(0, "hi\n"), ["started", "ended"])

    called = ran(world, "call", "far.repeat", "tea", "times=2")

    assert (called, world.told) == (Ran(0, "teatea\n"), ["started", "ended"] * 2)
    assert {line.split()[1] for line in world.log.read_text().splitlines()} == {str(world.directory)}


def test_a_changed_definition_is_refused_until_it_is_accepted(world: World) -> None:
    """Between two runs; what was accepted goes on being told, and a sentence says how to accept what is new."""
    assert ran(world, "call", "far.repeat", "tea") == Ran(0, "tea\n", noted(world))
    world.write(world.table(description="Tell nobody."))
    how = f"neuroscript mcp tools far --policy {world.policy}; and accept it with the same and --accept"

    assert ran(world, "list", "far.*") == Ran(0, LISTED)
    assert ran(world, "call", "far.repeat", "tea") == Ran(
        1,
        "",
        "neuroscript: far.repeat: the tool is not what was accepted; its definition has to be accepted again\n"
        f"neuroscript: see what is different with: {how}\n",
    )
    assert ran(world, "call", "far.token") == Ran(0, "\n")
    looked = command("mcp", "tools", "far", "--policy", world.policy)
    accepted = command("mcp", "tools", "far", "--policy", world.policy, "--accept")
    found = f"repeat has changed: description2 tools; 1 not as in {world.accepted}read what is new, and take it with --accept"
    assert (looked.code, looked.out.replace("\n", "").endswith(found)) == (1, True)
    assert (accepted.code, accepted.out.replace("\n", "").endswith(f"2 tools written to {world.accepted}")) == (0, True)

    assert ran(world, "call", "far.repeat", "tea") == Ran(0, "tea\n")
    assert ran(world, "list", "far.repeat").out == LISTED.splitlines(keepends=True)[0].replace(
        "Repeat.", "Tell nobody."
    )


# Which commands have its tools


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
def test_a_command_has_the_tools_of_the_file_that_it_is_given(name: str, world: World) -> None:
    """Behind the policy of the same file, where it runs them."""
    words, is_right = COMMANDS[name]

    found = ran(world, *words, stdin=CALL)

    assert (found.code, found.err) == (0, noted(world))
    assert is_right(found.out), found.out


def test_policy_check_and_explain_know_its_tools(world: World) -> None:
    """A grant for them has an effect, and a call is judged."""
    checked = command("policy", "check", "--policy", world.policy, "--json")
    explained = command("policy", "explain", "--policy", world.policy, "--deny", "far.t*", "far.token")

    assert (checked.code, json.loads(checked.out)["idle"]) == (0, [])
    assert (explained.code, explained.out.splitlines()[-1]) == (
        0,
        "far.token: would be refused: is denied by the host (policy.denied, by far.t*)",
    )


def test_a_model_is_offered_its_tools(world: World, server: ModelServer) -> None:
    """``ask`` and ``chat`` converse over one engine."""
    server.script(asks(call("far__repeat", {"text": "tea", "times": "2"})), says("Twice."))
    words = ("--base-url", server.base_url("openai-chat"), "--api", "openai-chat", "--model", "tiny")

    found = command("ask", *words, "--policy", world.policy, "--tools", "far.*", "Say it.", make_engine=None)

    assert (found.code, found.out) == (0, "Twice.\n")
    assert 'calls far.repeat {"text": "tea", "times": "2"}\nneuroscript: far.repeat: teatea' in found.err


def test_its_tools_are_served_on_under_our_policy(world: World) -> None:
    """``mcp serve`` is a server of what another server has, less what is denied."""
    served = [sys.executable, "-m", "neuroscript", "mcp", "serve", "--tools", "far.*", "--policy", world.policy]
    own = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    policy = ExecutionPolicy(grants=("mcp:call:near/*",))
    server = from_mcp([*served, "--deny", "far.token"], group="near", trusted=True, env=own)
    with Engine(plugins="none", hooks=[server], policy=policy) as engine:
        assert [*engine.tools] == ["near.far_repeat"]
        assert engine.call_named("near.far_repeat", {"text": "tea", "times": "2"}) == "teatea"


def test_a_server_that_is_told_to_end_ends_those_whose_tools_it_serves_on(world: World) -> None:
    """Also one that does not end by itself when nobody speaks to it any more."""
    stubborn = f"import os\n{SERVER}\nprint('waits', file=open(log, 'a'), flush=True)\nimport time\ntime.sleep(60)\n"
    (world.directory / "server.py").write_text(stubborn.replace("os.getcwd()", "os.getpid()", 1))
    words = [sys.executable, "-m", "neuroscript", "mcp", "serve", "--tools", "far.*", "--policy", world.policy]
    asked = [
        {"id": 1, "method": "initialize", "params": {**HELLO}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "far__repeat", "arguments": {"text": "tea"}}},
    ]
    definitions = {"name": "repeat", "description": "Repeat.", "inputSchema": SCHEMA}
    write(world.accepted, {"repeat": Definition.of_data(definitions)})
    with subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, text=True) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked))
        running.stdin.flush()
        while '"id":2' not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        code = running.wait(20)
    number = int(world.log.read_text().split("started")[-1].split()[0])

    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert code == 128 + signal.SIGTERM


# What it may do


def test_a_tool_needs_an_approval_unless_its_server_is_trusted(world: World) -> None:
    """And a denied one stays denied; what it says of itself counts only where the file says so."""
    world.write(world.table(further=""))
    sentence = "far.token: needs an approval; answer at a terminal, or pass --preapproved 'far.token'"
    refused = Ran(4, "", f"neuroscript: {sentence}\n")

    ran(world, "list")
    assert ran(world, "call", "far.token") == refused
    world.write(world.table(further="trust_annotations = true"))
    assert ran(world, "call", "far.token") == Ran(0, "\n")
    world.write(world.table())
    assert ran(world, "call", "--deny", "far.*", "far.token") == Ran(
        4, "", "neuroscript: far.token: denied by the pattern 'far.*' of deny\n"
    )
    assert world.told == ["started", "ended"] * 2


def test_a_secret_is_a_variable_of_the_environment_and_is_hidden(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches the server alone; one that is not set is told of, and the other servers work."""
    world.write(world.table(further='trusted = true\nenv = {TOKEN = {secret = "FAR_TOKEN"}}'))
    assert ran(world, "call", "probe.echo", "hi") == Ran(
        0, "hi\n", "neuroscript: warning: mcp.far: env: the host provides no secret named FAR_TOKEN\n"
    )

    monkeypatch.setenv("FAR_TOKEN", "token-Q7r9T2v5X8z1")

    assert ran(world, "call", "far.token") == Ran(0, "[secret]\n", noted(world))


# What is broken


def test_a_server_that_can_not_be_started_loses_nothing_else(world: World) -> None:
    """It is told of like a broken plugin, as is one whose tools have a name that is taken."""
    world.write(
        '[mcp.gone]\ncommand = ["./gone"]\n',
        world.table(),
        world.table(name="other"),
        world.table(name="lost", further='accepted = "no/such.json"'),
    )
    (world.directory / "other.mcp.json").write_text("{}")

    found = ran(world, "call", "far.repeat", "tea")

    assert found == Ran(
        0,
        "tea\n",
        "neuroscript: warning: mcp.gone: the server could not be reached: FileNotFoundError\n"
        f"{noted(world)}"
        f"neuroscript: warning: mcp.other: {world.directory / 'other.mcp.json'}: mcp: must be 1, the version of the format that is read here\n"
        "neuroscript: warning: mcp.lost: what it says its tools are can not be written down (FileNotFoundError)\n",
    )


ENDLESS: Final = {"type": "object", "properties": {"v": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"$ref": "#/$defs/T"}}}
TREE: Final = {
    **ENDLESS,
    "$defs": {"T": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/T"}}]}},
}


def test_a_server_with_hostile_schemas_stops_no_command_of_others(world: World) -> None:
    """Not at its first start, nor when its definitions are known; its own good tools are there."""
    tools = [{"name": "endless", "inputSchema": ENDLESS}, {"name": "tree", "inputSchema": TREE}]
    (world.directory / "tools.json").write_text(json.dumps(tools))
    words = [sys.executable, str(RAW), str(world.directory / "tools.json")]
    world.write(f"[mcp.odd]\ncommand = {json.dumps(words)}\n", world.table())
    problem = "endless: #: a $ref comes back to itself without coming to another value"
    warning = f"neuroscript: warning: mcp.odd: {problem}\n"
    known = world.directory / "odd.mcp.json"

    first = ran(world, "call", "probe.echo", "hi")
    second = ran(world, "call", "far.repeat", "tea")
    listed = ran(world, "list", "odd.*")
    looked = command("mcp", "tools", "far", "--policy", world.policy)
    odd = command("mcp", "tools", "odd", "--policy", world.policy)

    assert first == Ran(
        0, "hi\n", f"{warning}neuroscript: mcp.odd: its tools are accepted as they are now, in {known}\n{noted(world)}"
    )
    assert second == Ran(0, "tea\n", warning)
    assert (listed.code, listed.err) == (0, warning)
    assert [line.split()[0] for line in listed.out.splitlines()] == ["odd.tree"]
    assert (looked.code, looked.err) == (0, "")
    assert (odd.code, f"can not be taken: {problem}" in odd.out.replace("\n", " ")) == (0, True)


def test_a_tool_that_is_there_is_not_replaced(world: World) -> None:
    """A server called as a plugin is loses its place to it."""
    definition = Definition.of_data({"name": "echo", "inputSchema": {"type": "object"}})
    write(world.directory / "probe.mcp.json", {"echo": definition})
    world.write(world.table(name="probe"))

    found = ran(world, "call", "probe.echo", "hi")

    assert world.told == []
    assert found == Ran(0, "hi\n", "neuroscript: warning: mcp.probe: already registered: probe.echo\n")


# Which file


def test_nothing_of_the_working_directory_is_started(world: World) -> None:
    """Whoever can put a file there starts nothing; a file of that name counts where somebody names it."""
    Path("neuroscript.toml").write_text(POLICY + world.table())

    assert command("list", "far.*", make_engine=None).out == ""
    assert command("call", "far.repeat", "tea", make_engine=None).code == 2
    assert command("mcp", "tools", "far", make_engine=None) == Ran(
        2,
        "",
        "neuroscript: a server by its name stands in a policy file, and there is none; name it with --policy\n",
    )
    assert world.told == []


@pytest.fixture
def own(world: World, config: Path) -> Path:
    """The user's own policy file, with a server."""
    config.parent.mkdir(parents=True)
    config.parent.chmod(0o700)
    config.write_text(POLICY + world.table().replace("server.py", str(world.directory / "server.py")))
    return config


def test_the_servers_of_the_users_own_file_are_there(own: Path, world: World) -> None:
    """In the directory of the user's configuration, in a process too."""
    found = process("list", "far.*")

    assert (found.code, found.out, world.told) == (0, LISTED, ["started", "ended"])
    assert command("mcp", "tools", "far", "--json", make_engine=None).code == 0
    assert command("call", "far.repeat", "tea", make_engine=None) == Ran(0, "tea\n")


@pytest.mark.parametrize("why", ["autoload", "locked", "a host"])
def test_the_servers_of_a_file_that_is_not_named_are_left_out_as_plugins_are(
    why: str, own: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is loaded but what is named, and in the command of a host."""
    if why == "autoload":
        monkeypatch.setenv("NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "1")
    lock = ("--locked=mine.lock",) if why == "locked" else ()
    if lock:
        assert command("plugins", "lock", "--output", "mine.lock", make_engine=None).code == 0

    found = command("list", *lock) if why == "a host" else command("list", *lock, make_engine=None)

    assert (found.code, "far.repeat" in found.out, world.told) == (0, False, [])


def test_a_file_that_others_could_change_starts_nothing(own: Path, world: World) -> None:
    """As with plugins of that directory; its policy holds all the same."""
    own.chmod(0o666)

    found = command("list", "far.*", make_engine=None)

    assert (found.out, world.told) == ("", [])
    assert found.err.startswith(f"neuroscript: warning: {own}: no server in it is started: others than its owner may")


def test_a_file_of_the_users_own_that_is_wrong_ends_no_command_that_calls_nothing(own: Path, world: World) -> None:
    """One that runs tools ends, for the file might deny something."""
    own.write_text("[mcp.far]\ncommand = 'server'\n")
    sentence = "neuroscript.toml:2: mcp.far.command: must be an array of texts, the program and its arguments"

    listed = command("list", "math.add", make_engine=None)

    assert (listed.code, listed.out.split()[0]) == (0, "math.add")
    assert listed.err == f"neuroscript: warning: {sentence}\n"
    assert command("call", "math.add", "1", "2", make_engine=None) == Ran(2, "", f"neuroscript: {sentence}\n")


# ``mcp tools NAME``


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fra",), "no server is called fra in the policy file; did you mean far?"),
        (("far", "--group", "x"), "NAME says which server; give it alone, or a program or --url, --group and --file"),
        (("far", "--", "x"), "NAME says which server; give it alone, or a program or --url, --group and --file"),
    ],
    ids=["unknown", "group", "program"],
)
def test_a_name_is_that_of_a_table_and_says_all(words: tuple[str, ...], sentence: str, world: World) -> None:
    """Nothing is started for a name that means nothing, or for two servers."""
    found = command("mcp", "tools", "--policy", world.policy, *words)

    assert (found, world.told) == (Ran(2, "", f"neuroscript: {sentence}\n"), [])
