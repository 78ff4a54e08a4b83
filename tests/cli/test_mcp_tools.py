"""``neuroscript mcp tools``: the tools of a real server, and their acceptance."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cli.conftest import command

from neuroscript import Engine, ExecutionPolicy
from neuroscript.cli.mcp.tools import run
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.interop.mcp import from_mcp

SERVER: Final = [sys.executable, str(Path(__file__).parents[1] / "interop" / "mcp_server.py")]


def run_tools(*words: str, **options: Any) -> tuple[int, str]:
    """Return the exit code and the output."""
    given = {"name": None, "server": [*SERVER, *words], "url": "", "group": "far", "file": None, "accept": False}
    results = io.StringIO()
    code = run(Namespace(**{**given, "timeout": 30.0, "json": False, **options}), Output(results, io.StringIO()))
    return code, results.getvalue()


def test_tools_are_shown_and_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later changes are listed, and set the exit code."""
    monkeypatch.chdir(tmp_path)
    file = "far.json"

    code, text = run_tools(file=file)
    assert (code, "add is new" in text, Path(file).exists()) == (FAILED, True, False)

    code, text = run_tools(file=file, accept=True)
    assert (code, text.splitlines()[-1]) == (OK, f"{count(file)} tools written to {file}")

    code, text = run_tools("changed", file=file)
    assert code == FAILED
    assert "add has changed: description, inputSchema, outputSchema, annotations" in text
    assert text.splitlines()[-2:] == [
        f"{count(file)} tools; 1 changed from {file}",
        "review the changes, then accept them with --accept",
    ]


def count(file: str) -> int:
    """Return the number of tools in a file."""
    return len(json.loads(Path(file).read_text())["tools"])


def test_server_output_is_escaped() -> None:
    """In the table and in JSON."""
    code, text = run_tools("poison")
    _, data = run_tools("poison", json=True)
    evil = next(each for each in json.loads(data)["tools"] if each["name"] == "evil")

    assert (code, "\x1b" in text + data) == (OK, False)
    assert "far.add" in text and "reads only" in text
    assert (evil["tool"], evil["state"], evil["annotations"], len(evil["description"])) == (
        "far.evil",
        "unchanged",
        [],
        1000,
    )


def test_accept_needs_a_file() -> None:
    """The server is not started."""
    with pytest.raises(UsageError) as caught:
        run_tools(accept=True)

    assert str(caught.value) == "--accept needs a file to write; add --file FILE"


def test_own_server_can_be_inspected(tmp_path: Path) -> None:
    """The server and the client share only the protocol."""
    command = [sys.executable, "-m", "neuroscript", "mcp"]
    requests = [*command, "tools", "--json", "--file", str(tmp_path / "far.json"), "--accept", "--group", "far"]
    served = [*command, "serve", "--tools", "math.add"]
    completed = subprocess.run([*requests, "--", *served], capture_output=True, text=True, timeout=60)
    (tool,) = json.loads(completed.stdout)["tools"]
    with from_mcp(served, group="far", trusted=True, accepted=tmp_path / "far.json") as server:
        policy = ExecutionPolicy(grants=("mcp:call:far/*",))
        with Engine(plugins="none", toolsets=[server.toolset], policy=policy) as engine:
            value = engine.call_named(tool["tool"], {"num1": "2", "num2": 3})

    assert (completed.returncode, completed.stderr) == (0, "")
    assert (tool["tool"], tool["state"], value) == ("far.math_add", "new", 5.0)


def test_missing_parts_are_reported(tmp_path: Path) -> None:
    """In a separate process and in this one."""
    file = str(tmp_path / "far.json")
    listed = command("mcp", "tools", "--file", file, "--accept", "--json", "--", *SERVER)
    changed = command("mcp", "tools", "--file", file, "--", *SERVER, "changed")
    nothing = command("mcp", "tools")
    nowhere = command("mcp", "tools", "--", str(tmp_path / "nowhere"))

    assert (listed.code, json.loads(listed.out)["ok"]) == (OK, True)
    assert (changed.code, "changed" in changed.out) == (FAILED, True)
    assert (nothing.code, nothing.out) == (2, "")
    assert nothing.err == "neuroscript: mcp: pass either a command or a url\n"
    assert (nowhere.code, nowhere.err) == (
        nowhere.code, "neuroscript: mcp mcp: the server could not be reached: FileNotFoundError\n",
    )  # fmt: skip
    assert nowhere.code != OK
