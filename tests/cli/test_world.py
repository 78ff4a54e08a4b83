"""Options for plugins, grants, trust and the sandbox, and prompts of tools."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, command, process

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


def test_piped_answers_are_used_in_order() -> None:
    """The last line may lack a newline; questions are not among the results."""
    result = process("call", "-p", ASK_TWICE, "demo.ask_twice", stdin=b"Ada\n42")

    assert (result.code, result.out) == (0, "Ada is 42\n")
    assert "Name?" in result.err and "Age?" in result.err


@pytest.mark.parametrize(
    ("shell", "text"),
    [
        ("</dev/null", "there is no terminal, pipe or file to read an answer from"),
        ("<&-", "there is no terminal, pipe or file to read an answer from"),
        ("< <(printf 'Ada')", "the input ended before an answer was received"),
    ],
)
def test_tool_fails_at_once_without_an_answer(shell: str, text: str) -> None:
    """With exit code 1 and a message."""
    result = process("call", "-p", ASK_TWICE, "demo.ask_twice", shell=shell)

    assert (result.code, result.out) == (1, "")
    assert result.err.endswith(NOBODY.format(text))


def test_lines_of_calls_are_not_answers() -> None:
    """If the command itself reads stdin, the tool cannot ask."""
    calls = b'{"name": "demo.ask_twice"}\n{"name": "math.add", "arguments": [1, 2]}\n'
    result = process("execute", "-p", ASK_TWICE, "-", stdin=calls)

    first, second = map(json.loads, result.out.splitlines())
    assert first["error"]["code"] == "prompt.noninteractive"
    assert second["value"] == 3.0
    result = process("call", "-p", ASK_TWICE, "--input-json", "-", "demo.ask_twice", stdin=b"{}")
    assert result == CommandResult(1, "", NOBODY.format("there is no terminal, pipe or file to read an answer from"))


# Grants


def test_grant_limits_a_tool_to_a_part_of_the_sandbox(plugin: str, tmp_path: Path) -> None:
    """Without it the tool is refused; the message names the need, and the exit code is 4."""
    here = tmp_path / "box"
    words = ("call", f"--plugin={plugin}", "--sandbox", str(here), "--create-sandbox")

    options = "--grant 'fs:write:data/a' --grant 'fs:read:data/a'"
    refused = f"neuroscript: p.put: needs fs:write:data/a, fs:read:data/a; grant it with {options}\n"
    assert command(*words, "p.put", "data/a", "hi") == CommandResult(4, "", refused)
    assert command(*words, *shlex.split(options), "p.put", "data/a", "hi") == CommandResult(0, "hi\n")
    granted = (*words, "--grant", "fs:read,write:data/**")
    assert command(*granted, "p.put", "data/a", "hi") == CommandResult(0, "hi\n")
    assert (here / "data" / "a").read_text() == "hi"
    assert command(*granted, "p.put", "data/../b", "hi").code == 4
    everything = (*words, "--grant=fs:*:*")
    assert command(*everything, "p.put", "../b", "hi").code == 4
    assert not (tmp_path / "b").exists()


def test_trust_allow_and_deny_are_options(plugin: str) -> None:
    """A denied tool is refused even if it is allowed."""
    words = ("call", "-p", plugin)

    assert command(*words, "p.trusted").code == 4
    assert command(*words, "--trusted", "p.trusted") == CommandResult(0, "true\n")
    assert command(*words, "--trusted", "--allow", "p.*", "p.trusted") == CommandResult(0, "true\n")
    assert command(*words, "--trusted", "--allow", "q.*", "p.trusted").code == 4
    assert command(*words, "--trusted", "--deny", "p.trust*", "p.trusted").code == 4


def test_execute_has_the_same_options(plugin: str, tmp_path: Path) -> None:
    """``list`` shows the tools of a plugin."""
    call = json.dumps({"name": "p__put", "arguments": {"path": "a", "text": "hi"}}).encode()
    words = ("-p", plugin, "--grant", "fs:*:*", "--sandbox", str(tmp_path / "box"), "--create-sandbox")

    assert json.loads(command("execute", *words, "-", stdin=call).out)["value"] == "hi"
    assert command("list", "-p", plugin, "p.*").out.count("p.") == 2
    assert command("show", "-p", plugin, "p.put").code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--grant", "fs:read"], "execution policy: a grant needs a scope; write fs:read:* for the whole resource"),
        (["--grant", "what"], "execution policy: what is not a capability; "),
        (["--deny", ""], "execution policy: deny:  is not a valid pattern"),
        (["-p", "no/such/file.py"], "no/such/file.py: no such Python file or package"),
        (["-p", "README.md"], "README.md: no such Python file or package"),
        (
            ["-p", "dev.py"],
            "dev.py: it has neither a Toolset at its top level, such as shop = Toolset('shop'), nor a function register(registrar)",
        ),
        (["--sandbox", "README.md"], "sandbox: is not a directory"),
        (["--grant"], "argument --grant: expected one argument"),
    ],
)
def test_invalid_options_are_reported(words: list[str], text: str) -> None:
    """With one line and exit code 2, before anything runs."""
    result = command("call", "probe.said", "a", *words)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"neuroscript: {text}"), result.err
    assert result.err.count("\n") == 1


def test_plugin_of_the_docs_exists() -> None:
    """The commands above run it from the root of the project."""
    assert (ROOT / ASK_TWICE).exists()


@pytest.mark.slow
def test_host_is_a_short_program() -> None:
    """At most thirty lines provide a logger, variables, a sandbox, a prompter and a model, and print the outcome."""
    program = ROOT / "docs" / "examples" / "host_app.py"
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)

    assert len(program.read_text().splitlines()) <= 30
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "desk.app.report: numbers.txt adds up to 42.0\nDEAR ADA, 42.0\n"


# Directories of plugins


def directory(path: Path) -> Path:
    """Create a directory with a valid plugin and a broken one."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "good.py").write_text(PLUGIN)
    (path / "broken.py").write_text("1 +")
    return path


def test_broken_plugin_of_a_directory_stops_nothing(tmp_path: Path) -> None:
    """It is reported with its reason, and the exit code is that of the call."""
    plugins = directory(tmp_path / "plugins")
    result = command("call", "--plugins-dir", str(plugins), "--trusted", "p.trusted")

    warning = f"neuroscript: warning: {plugins / 'broken.py'}: cannot be loaded: SyntaxError: invalid syntax (broken.py, line 1)\n"
    assert result == CommandResult(0, "true\n", warning)
    assert command("list", f"--plugins-dir={plugins}", "p.*").out.count("p.") == 2
    missing = command("list", "--plugins-dir", str(tmp_path / "nowhere"), "p.*")
    assert "nowhere: it cannot be read (FileNotFoundError)" in missing.err


def test_own_plugins_are_loaded(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the user disables them; the command of an application decides itself."""
    plugins = directory(config.parent / "plugins")

    result = command("list", "p.*", make_engine=None)
    assert result.out.count("p.") == 2
    assert result.err.startswith(f"neuroscript: warning: {plugins / 'broken.py'}: ")
    assert "p.put" not in command("list", "p.*").out
    monkeypatch.setenv("NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert "p.put" not in command("list", "p.*", make_engine=None).out


# Aliases and deprecated tools

GOING = """
from neuroscript import ToolSpec, ArgSpec

def register(registrar):
    tools = registrar.toolset("g")
    tools.add(ToolSpec("new", "g", (ArgSpec("x", "int"),), description="It does."), lambda rt, x: x)
    tools.add(ToolSpec("gone", "g", deprecated="use g.new"), lambda rt: 1)
    tools.alias("g.former", "g.new")
"""


def test_aliases_and_deprecations_are_shown(tmp_path: Path) -> None:
    """In lists, pages and JSON; key=value works with an alias."""
    path = tmp_path / "going.py"
    path.write_text(GOING)
    words = ("-p", str(path))

    listed = command("list", *words, "g.*").out
    assert "(alias: g.former) It does." in listed and "(deprecated: use g.new)" in listed
    data = json.loads(command("list", *words, "g.*", "--json").out)
    assert [(each.get("deprecated"), each.get("aliases")) for each in data] == [
        ("use g.new", None),
        (None, ["g.former"]),
    ]
    assert "alias: g.former\n" in command("show", *words, "g.former").out
    assert json.loads(command("show", *words, "g.former", "--json").out)["aliases"] == ["g.former"]
    assert "deprecated: use g.new\n" in command("show", *words, "g.gone").out
    assert command("call", *words, "g.former", "x=5").out == "5\n"


def test_deny_rule_for_an_alias_has_an_effect(tmp_path: Path) -> None:
    """An allow rule has none, and is reported."""
    path = tmp_path / "going.py"
    path.write_text(GOING)
    words = ("-p", str(path))

    result = command("call", *words, "--deny", "g.former", "g.new", "5")
    assert result == CommandResult(4, "", "neuroscript: g.new: denied by the pattern 'g.former' in deny\n")
    assert "g.former" in command("policy", "check", *words, "--allow", "g.former").out
    checked = json.loads(command("policy", "check", *words, "--deny", "g.former", "--json").out)
    assert checked["unused_rules"] == []
    assert "g.new" in [each["tool"] for each in checked["unusable_tools"]]
    assert "g.former" in command("policy", "explain", *words, "--deny", "g.former", "g.new", "5").out
