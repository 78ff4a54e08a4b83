"""Commands and model clients, combined with every refusal: no refused tool runs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.client.client import Client as MCPClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from tests.cli.conftest import CommandResult, process
from tests.cli.conftest import command as commanded
from tests.llm.server import ModelServer, asks, says
from tests.llm.server import call as model_call
from tests.system.refusals import REFUSALS, Refusal

from neuroscript import (
    Engine,
    ToolCall,
)
from neuroscript.approval.pending import PendingApproval
from neuroscript.cli.env.policy import policy_of
from neuroscript.cli.parser import parse_arguments
from neuroscript.tools.fingerprints import call_digest, fingerprint, policy_digest

PLUGIN = '''
"""Tools that leave a file behind when they run."""

import pathlib

from neuroscript import ArgType, ToolImplementation, ToolPolicy, ToolSpec

MARK = pathlib.Path({mark!r})


def register(registrar):
    def t(rt):
        MARK.write_text("ran")

    def outer(rt):
        (MARK.parent / "outer").write_text("ran")
        rt.call_tool("g.t")

    def odeep(rt):
        rt.call_tool("g.outer")

    for func, policy in ((t, ToolPolicy({needs})), (outer, ToolPolicy({above})), (odeep, ToolPolicy({above}))):
        registrar.register(ToolImplementation(ToolSpec(func.__name__, "g", return_type=ArgType.NIL), func, policy))
'''


def plugin(directory: Path, kind: str) -> Path:
    """Write the tools of one refusal as a plugin, and return its file."""
    needs = ", ".join(f"{name}={value!r}" for name, value in REFUSALS[kind].needs.items())
    file = directory / "tools.py"
    file.write_text(PLUGIN.format(mark=str(directory / "mark"), needs=needs, above=""))
    return file


def commanded_as(kind: str, *argv: str, stdin: bytes = b"") -> CommandResult:
    """Run a command without a terminal: in a separate process for an approval, which is asked for at a terminal.

    The others only need the options, so they run in this process.
    """
    if "requires_approval" in REFUSALS[kind].needs:
        return process(*argv, stdin=stdin)
    return commanded(*argv, stdin=stdin, make_engine=None)


COMMANDED = [kind for kind, each in REFUSALS.items() if each.words or each.lenient or each.code == "policy.approval"]


@pytest.mark.parametrize("name", ["g.t", "g.outer", "g.odeep"])
@pytest.mark.parametrize("kind", COMMANDED)
def test_command_line_calls_no_refused_tool(tmp_path: Path, kind: str, name: str) -> None:
    """A command without a terminal exits with 4, and the tool leaves no trace."""
    result = commanded_as(
        kind,
        "call",
        "--json",
        "--plugin",
        str(plugin(tmp_path, kind)),
        "--sandbox",
        str(tmp_path),
        *REFUSALS[kind].words,
        name,
    )

    assert (4, REFUSALS[kind].code) == (result.code, json.loads(result.out)["error"]["code"])
    assert not (tmp_path / "mark").exists()
    assert (tmp_path / "outer").exists() is (name != "g.t")


@pytest.mark.parametrize("kind", COMMANDED)
def test_command_line_executes_no_refused_tool(tmp_path: Path, kind: str) -> None:
    """This covers files of calls in every format that models send."""
    calls = [
        {"id": "1", "name": "g__t", "arguments": {}},
        {"id": "2", "type": "function", "function": {"name": "g__t", "arguments": "{}"}},
        {"id": "3", "type": "tool_use", "name": "g__outer", "input": {}},
        {"functionCall": {"name": "g__odeep", "args": {}}},
        {"type": "function_call", "call_id": "5", "name": "tool.G.T", "arguments": "{}"},
    ]
    result = commanded_as(
        kind, "execute", "--plugin", str(plugin(tmp_path, kind)), "--sandbox", str(tmp_path), *REFUSALS[kind].words, "-",
        stdin="\n".join(map(json.dumps, calls)).encode(),
    )  # fmt: skip

    assert result.code == 4
    assert [json.loads(line)["error"]["code"] for line in result.out.splitlines()] == [REFUSALS[kind].code] * len(calls)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("name", ["g.t", "g.outer", "g.odeep"])
@pytest.mark.parametrize("kind", COMMANDED)
def test_plan_of_the_command_line_runs_no_refused_tool(tmp_path: Path, kind: str, name: str) -> None:
    """Unconditional refusals are problems of the plan; a nested refusal is an error of its node."""
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[nodes.a]\ntool = "{name}"\n')
    words = ("--plugin", str(plugin(tmp_path, kind)), "--sandbox", str(tmp_path), *REFUSALS[kind].words)
    result = commanded_as(kind, "run", "--json", *words, str(plan))

    if name == "g.t":
        assert (2, False) == (result.code, json.loads(result.out)["ok"])
    else:
        assert (4, REFUSALS[kind].code) == (result.code, json.loads(result.out)["nodes"][0]["error"]["code"])
    assert not (tmp_path / "mark").exists()
    assert (tmp_path / "outer").exists() is (name != "g.t")


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    """A model server, as the commands that use a model reach it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with ModelServer() as server:
        yield server


@pytest.mark.parametrize("kind", COMMANDED)
@pytest.mark.parametrize("command", ["ask", "chat"])
def test_model_of_a_command_runs_no_refused_tool(tmp_path: Path, command: str, kind: str, models: ModelServer) -> None:
    """The tools it is offered and the spelling of names do not matter."""
    names = ("g__t", "g__outer", "g__odeep", "tool.G.T")
    models.reset()
    models.script(asks(*(model_call(name) for name in names)), says("done"))
    outcome = commanded(
        command, "--json", "--base-url", models.base_url(), "--model", "tiny", "--tools", "*",
        "--plugin", str(plugin(tmp_path, kind)), "--sandbox", str(tmp_path), *REFUSALS[kind].words, stdin=b"go", make_engine=None,
    )  # fmt: skip

    results = [result for turn in json.loads(outcome.out)["turns"] for result in turn.get("tool_results", ())]
    assert (outcome.code, [each["error"]["code"] for each in results]) == (0, [REFUSALS[kind].code] * len(names))
    assert not (tmp_path / "mark").exists()
    assert (tmp_path / "outer").exists()


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_permitted_tool_is_run_by_a_model(tmp_path: Path, command: str, models: ModelServer) -> None:
    """Otherwise the test above would prove nothing."""
    models.reset()
    models.script(asks(model_call("g__t")), says("done"))
    result = commanded(
        command, "--base-url", models.base_url(), "--model", "tiny", "--tools", "g.*",
        "--plugin", str(plugin(tmp_path, "denied")), "--sandbox", str(tmp_path), stdin=b"go", make_engine=None,
    )  # fmt: skip

    assert (result.code, result.out) == (0, "done\n")
    assert (tmp_path / "mark").read_text() == "ran"


@pytest.mark.parametrize("patterns", [(), ("math.*",)], ids=["none", "others"])
@pytest.mark.parametrize("command", ["ask", "chat"])
def test_model_runs_no_tool_that_it_is_not_offered(
    tmp_path: Path, command: str, patterns: tuple[str, ...], models: ModelServer
) -> None:
    """An offered tool cannot run it for the model either."""
    models.reset()
    models.script(asks(model_call("g__t"), model_call("g__outer")), says("done"))
    outcome = commanded(
        command, "--json", "--base-url", models.base_url(), "--model", "tiny",
        *(word for pattern in patterns for word in ("--tools", pattern)),
        "--plugin", str(plugin(tmp_path, "denied")), "--sandbox", str(tmp_path), stdin=b"go", make_engine=None,
    )  # fmt: skip

    results = [result for turn in json.loads(outcome.out)["turns"] for result in turn.get("tool_results", ())]
    assert (outcome.code, [each["ok"] for each in results]) == (0, [False, False])
    assert not (tmp_path / "mark").exists()
    assert not (tmp_path / "outer").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*COMMANDED, "permitted"])
def test_mcp_client_runs_no_refused_tool(tmp_path: Path, kind: str) -> None:
    """Neither by its name, however it is spelled, nor through ``call_tool``; a permitted tool does run."""
    refusal = REFUSALS.get(kind, Refusal("", words=()))
    file = plugin(tmp_path, kind if kind in REFUSALS else "denied")
    words = ("mcp", "serve", "--search-above", "0", "-p", str(file), "--sandbox", str(tmp_path), *refusal.words)
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "neuroscript", *words], env={**os.environ})

    async def talk() -> list[str]:
        async with MCPClient(stdio_client(parameters)) as served:
            names = ("g__t", "g__outer", "g__odeep", "tool.G.T")
            calls = [*((name, {}) for name in names), *(("call_tool", {"name": name}) for name in names)]
            return [await _error(served, *call) for call in calls]

    code = "policy.rejected" if kind == "unapproved" else refusal.code
    assert asyncio.run(talk()) == [f"error {code}" if code else ""] * 8
    assert (tmp_path / "mark").exists() is (kind == "permitted")
    assert (tmp_path / "outer").exists()


async def _error(served: MCPClient, name: str, arguments: dict[str, str]) -> str:
    """Return the code of the error of a call, or an empty string."""
    try:
        answer = await served.call_tool(name, arguments)
    except MCPError as error:  # the client would need a capability to be asked
        return error.message.split(":")[0]
    return str(answer.content[0].text.split(":")[0]) if answer.is_error else ""


@pytest.mark.parametrize("command", ["list", "show", "completion", "export", "stubs", "docs"])
def test_command_that_shows_tools_runs_none(tmp_path: Path, command: str) -> None:
    """It only loads them."""
    words = {
        "list": ("--plugin", str(plugin(tmp_path, "denied"))),
        "show": ("--plugin", str(plugin(tmp_path, "denied")), "g.t"),
        "completion": ("bash",),
        "export": ("prompt", "--plugin", str(plugin(tmp_path, "denied"))),
        "stubs": ("--plugin", str(plugin(tmp_path, "denied"))),
        "docs": ("--plugin", str(plugin(tmp_path, "denied"))),
    }
    result = commanded(command, *words[command], make_engine=None)

    assert result.code == 0
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("kind", ["denied", "not trusted", "without a grant"])
def test_permitted_tool_is_run_by_the_command_line(tmp_path: Path, kind: str) -> None:
    """Otherwise the tests above would prove nothing."""
    result = commanded_as(
        kind,
        "call",
        "--plugin",
        str(plugin(tmp_path, kind)),
        "--sandbox",
        str(tmp_path),
        *REFUSALS[kind].lenient,
        "g.t",
    )

    assert result.code == 0, result.err
    assert (tmp_path / "mark").read_text() == "ran"


@pytest.mark.parametrize("kind", [kind for kind in COMMANDED if "requires_approval" not in REFUSALS[kind].needs])
def test_command_line_approves_no_refused_tool(tmp_path: Path, kind: str) -> None:
    """The file of a stored call has no effect, even with every bound field correct."""
    file = str(plugin(tmp_path, kind))
    words = ("--plugin", file, "--sandbox", str(tmp_path), *REFUSALS[kind].words)
    with Engine(policy=policy_of(vars(parse_arguments(["call", *words, "g.t"])))) as engine:
        engine.load_plugin(file)
        definition = fingerprint(engine.tools["g.t"])
        bound = (definition, policy_digest(engine.policy), "alice", call_digest(definition, ()))
    waiting = PendingApproval(ToolCall("g.t", {}), *bound).save(tmp_path / "waiting.json")
    result = commanded_as(kind, "approve", "--json", "--yes", *words, str(waiting))

    assert (4, REFUSALS[kind].code) == (result.code, json.loads(result.out)["error"]["code"])
    assert not (tmp_path / "mark").exists()
