"""What a host would say in code, said in words: plugins of one file, grants, trust, the sandbox; and prompts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, Ran, command, process

ASK_TWICE = "docs/examples/ask_twice.py"
NOBODY = "neuroscript: demo.ask_twice: {}\n"

PLUGIN = '''
"""Tools that need something."""

from neuroscript import Runtime, ToolPolicy


def register(registrar):
    tools = registrar.toolset("p")

    @tools.tool(policy=ToolPolicy(capabilities=("fs:write:{path}", "fs:read:{path}")))
    def put(rt: Runtime, path: str, text: str) -> str:
        """Write a file and read it again."""
        rt.fs.write_text(path, text)
        return rt.fs.read_text(path)

    @tools.tool(policy=ToolPolicy(requires_trust=True))
    def trusted() -> bool:
        """Tell whether it runs."""
        return True
'''


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN)
    return str(path)


# Prompts


def test_piped_answers_are_used_one_by_one() -> None:
    """Also a last line without its end; the questions do not stand among the results."""
    ran = process("call", "-p", ASK_TWICE, "demo.ask_twice", stdin=b"Ada\n42")

    assert (ran.code, ran.out) == (0, "Ada is 42\n")
    assert "Name?" in ran.err and "Age?" in ran.err


@pytest.mark.parametrize(
    ("shell", "text"),
    [
        ("</dev/null", "no terminal, pipe or file is there to answer"),
        ("<&-", "no terminal, pipe or file is there to answer"),
        ("< <(printf 'Ada')", "the input ended before an answer came"),
    ],
)
def test_where_nobody_answers_the_tool_fails_at_once(shell: str, text: str) -> None:
    """With exit code 1 and a sentence."""
    ran = process("call", "-p", ASK_TWICE, "demo.ask_twice", shell=shell)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(NOBODY.format(text))


def test_lines_of_calls_are_no_answers() -> None:
    """Where the command reads the input itself, there is nobody to answer."""
    calls = b'{"name": "demo.ask_twice"}\n{"name": "math.add", "arguments": [1, 2]}\n'
    ran = process("execute", "-p", ASK_TWICE, "-", stdin=calls)

    first, second = map(json.loads, ran.out.splitlines())
    assert first["error"]["code"] == "prompt.noninteractive"
    assert second["value"] == 3.0
    ran = process("call", "-p", ASK_TWICE, "--input-json", "-", "demo.ask_twice", stdin=b"{}")
    assert ran == Ran(1, "", NOBODY.format("no terminal, pipe or file is there to answer"))


# Grants


def test_a_grant_confines_a_tool_to_a_part_of_the_sandbox(plugin: str, tmp_path: Path) -> None:
    """Without one it does nothing; what it is refused for is named, and the exit code is 4."""
    here = tmp_path / "box"
    words = ("call", f"--plugin={plugin}", "--sandbox", str(here))

    assert command(*words, "p.put", "data/a", "hi") == Ran(4, "", "neuroscript: p.put: needs fs:write:data/a\n")
    granted = (*words, "--grant", "fs:read,write:data/**")
    assert command(*granted, "p.put", "data/a", "hi") == Ran(0, "hi\n")
    assert (here / "data" / "a").read_text() == "hi"
    assert command(*granted, "p.put", "data/../b", "hi").code == 4
    everything = (*words, "--grant=fs:*:*")
    assert command(*everything, "p.put", "../b", "hi").code == 4
    assert not (tmp_path / "b").exists()


def test_trust_allow_and_deny_are_words(plugin: str) -> None:
    """What is denied is refused, whatever is allowed."""
    words = ("call", "-p", plugin)

    assert command(*words, "p.trusted").code == 4
    assert command(*words, "--trusted", "p.trusted") == Ran(0, "true\n")
    assert command(*words, "--trusted", "--allow", "p.*", "p.trusted") == Ran(0, "true\n")
    assert command(*words, "--trusted", "--allow", "q.*", "p.trusted").code == 4
    assert command(*words, "--trusted", "--deny", "p.trust*", "p.trusted").code == 4


def test_calls_of_a_file_take_the_same_words(plugin: str, tmp_path: Path) -> None:
    """And the list of tools shows what a plugin brings."""
    call = json.dumps({"name": "p__put", "arguments": {"path": "a", "text": "hi"}}).encode()
    words = ("-p", plugin, "--grant", "fs:*:*", "--sandbox", str(tmp_path / "box"))

    assert json.loads(command("execute", *words, "-", stdin=call).out)["value"] == "hi"
    assert command("list", "-p", plugin, "p.*").out.count("p.") == 2
    assert command("show", "-p", plugin, "p.put").code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--grant", "fs:read"], "execution policy: a grant has a scope; write fs:read:* for the whole resource"),
        (["--grant", "what"], "execution policy: what is not a capability; "),
        (["--deny", ""], "execution policy: deny:  matches no tool"),
        (["-p", "no/such/file.py"], "no/such/file.py: there is no such file of Python"),
        (["-p", "README.md"], "README.md: there is no such file of Python"),
        (["-p", "dev.py"], "dev.py: it has no function register(registrar)"),
        (["--sandbox", "README.md"], "sandbox: is not a directory"),
        (["--grant"], "argument --grant: expected one argument"),
    ],
)
def test_what_is_wrong_with_them_is_said_in_a_line(words: list[str], text: str) -> None:
    """With exit code 2, before anything runs."""
    ran = command("call", "probe.said", "a", *words)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"neuroscript: {text}"), ran.err
    assert ran.err.count("\n") == 1


def test_the_plugin_of_the_documents_is_there() -> None:
    """The commands above run it from the root of the project."""
    assert (ROOT / ASK_TWICE).exists()


def test_a_host_is_a_short_program() -> None:
    """At most thirty lines lend a logger, variables, a sandbox, a prompter and a model, and say what happened."""
    program = ROOT / "docs" / "examples" / "host_app.py"
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)

    assert len(program.read_text().splitlines()) <= 30
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "desk.app.report: numbers.txt adds up to 42.0\nDEAR ADA, 42.0\n"
