"""Isolation on the command line: options, policy files, and what commands say about tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command, run_installed

PLUGIN = '''
"""Tools for a task."""

from neuroscript import Toolset

acme = Toolset("acme")


@acme.tool
def find(text: str) -> str:
    """Return it."""
    return text


@acme.tool
def fetch(text: str) -> str:
    """Return it."""
    return text


acme.alias("acme.get", "acme.fetch")
'''

BUILD = '''
"""A tool that starts a program."""

from neuroscript import ToolPolicy, Toolset

make = Toolset("make")


@make.tool(policy=ToolPolicy(capabilities=("shell:exec:make",), effects=("exec",)))
def build(text: str) -> str:
    """Return it."""
    return text
'''

FUNCTION = "runs in a worker process without the network, but the host imports its code too"
HOST = "runs in the host's process"
IMPORT = "runs in a worker process without the network, which alone imports its code"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a plugin."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme.py").write_text(PLUGIN)
    return tmp_path


def with_file(world: Path, isolation: str) -> tuple[str, str, str, str]:
    """Return the options of a policy file and of the plugin."""
    (world / "policy.toml").write_text(f"[policy.isolation]\n{isolation}\n")
    return "--policy", "policy.toml", "-p", "acme.py"


def explained(*words: str) -> tuple[str, str] | None:
    """Return the patterns that isolate a tool, and what is said about it."""
    result = command("policy", "explain", "--json", *words)
    assert (result.code, result.err) == (0, ""), result
    rows = [(each["rule"], each["text"]) for each in json.loads(result.out)["checks"] if each["name"] == "isolation"]
    return rows[0] if rows else None


def checked(*words: str) -> tuple[int, list[dict[str, str]], dict[str, Any]]:
    """Return the exit code of ``policy check``, the rules without effect, and what each isolated tool isolates."""
    result = command("policy", "check", "--json", *words)
    data = json.loads(result.out)
    isolated = {each["tool"]: (each["origin"], each["isolated"]) for each in data["isolated_tools"]}
    return result.code, data["unused_rules"], isolated


# Options


def test_option_isolates_tools_by_name(world: Path) -> None:
    """It can be repeated; without isolation, nothing is said about it."""
    plugin = ("-p", "acme.py", "acme.find", "x")

    assert explained(*plugin) is None
    assert explained("--isolate", "acme.*", "--isolate", "*.find", *plugin) == ("acme.*, *.find", FUNCTION)
    assert explained("--isolate", "acme.fetch", *plugin) == ("", HOST)


def test_option_adds_to_the_policy_file(world: Path) -> None:
    """The other settings of the file apply too."""
    options = with_file(world, "tools = ['acme.find']\nnetwork = ['*']\n")
    text = FUNCTION.replace("without", "with")

    assert explained(*options, "--isolate", "acme.fetch", "acme.find", "x") == ("acme.find", text)
    assert explained(*options, "--isolate", "acme.fetch", "acme.fetch", "x") == ("acme.fetch", text)
    assert explained(*options, "--isolate", "acme.*", "--allow", "acme.*", "acme.fetch", "x") == ("acme.*", text)


def test_invalid_option_is_a_usage_error(world: Path) -> None:
    result = command("call", "-p", "acme.py", "--isolate", "a b", "acme.find", "x")

    text = "isolate: a b is not a valid pattern; use a name, or a pattern such as acme.*"
    assert result == CommandResult(2, "", f"neuroscript: execution policy: {text}\n")


def test_option_without_effect_produces_a_warning(world: Path) -> None:
    result = command("call", "--dry-run", "-p", "acme.py", "--isolate", "acne.*", "acme.find", "x")

    assert (result.code, result.err) == (0, "neuroscript: warning: no available tool matches --isolate acne.*\n")


def test_profile_isolates_more(world: Path) -> None:
    options = with_file(world, "[policy.profiles.careful.isolation]\nplugins = ['acme.py']")

    assert explained(*options, "acme.find", "x") is None
    assert explained(*options, "--profile", "careful", "acme.find", "x") == ("acme.py", IMPORT)


def test_explain_names_the_pattern_that_excludes_a_tool(world: Path) -> None:
    """It has no effect on a tool that no pattern isolates, or whose import is isolated."""
    options = with_file(world, "tools = ['acme.fi*']\nexclude = ['acme.*']\n")

    assert explained(*options, "acme.find", "x") == ("acme.*", f"is excluded, so it {HOST}")
    assert explained(*options, "acme.fetch", "x") == ("", HOST)
    assert explained(*options, "--isolate", "acme.fetch", "acme.fetch", "x") == ("acme.*", f"is excluded, so it {HOST}")
    assert explained(*options, "--isolate-plugins", "acme.py", "acme.find", "x") == ("acme.py", IMPORT)


def test_explain_says_whether_programs_are_confined(world: Path) -> None:
    """Only of a tool that declares that it starts programs."""
    (world / "make.py").write_text(BUILD)
    options = (*with_file(world, "programs = true\nnetwork = ['make.build']\n"), "-p", "make.py")
    confined = "runs in the host's process, and the programs that it starts are confined"

    assert explained(*options, "--grant", "shell:exec:make", "make.build", "x") == ("", confined)
    assert explained(*options, "acme.find", "x") == ("", "runs in the host's process")
    assert checked(*options)[1] == []


# policy check


def test_check_counts_isolated_tools_and_finds_patterns_without_effect(world: Path) -> None:
    """An old name of a tool has an effect, because the tool stays isolated."""
    settings = (
        "tools = ['acme.get', 'acme.fnd', 'acne.*']\n"
        "plugins = ['probe-tools', 'probe']\n"
        "network = ['acme.find', 'acme.fetch', 'x.*']\n"
    )
    code, unused, isolated = checked(*with_file(world, settings))

    assert code == 1
    assert [(each["where"], each["rule"], each["text"]) for each in unused] == [
        ("isolation.tools", "acme.fnd", "matches no tool; did you mean acme.find?"),
        ("isolation.tools", "acne.*", "matches no tool"),
        ("isolation.plugins", "probe-tools", "matches no plugin"),
        ("isolation.plugins", "probe", "matches no plugin"),
        ("isolation.network", "acme.find", "matches no isolated tool"),
        ("isolation.network", "x.*", "matches no tool"),
    ]
    assert isolated == {"acme.fetch": ("acme.py", "function")}


def test_check_finds_exclusions_without_effect(world: Path) -> None:
    """And patterns of tools without effect because of them."""
    settings = "tools = ['acme.f*', 'acme.fetch']\nexclude = ['acme.get', 'acme.fetch', 'acme.fnd', 'acne.*']\n"
    code, unused, isolated = checked(*with_file(world, settings))

    assert code == 1
    assert [(each["where"], each["rule"], each["text"]) for each in unused] == [
        ("isolation.tools", "acme.fetch", "matches only tools that exclude excludes"),
        ("isolation.exclude", "acme.get", "matches no tool that tools isolates"),
        ("isolation.exclude", "acme.fnd", "matches no tool; did you mean acme.find?"),
        ("isolation.exclude", "acne.*", "matches no tool"),
    ]
    assert isolated == {"acme.find": ("acme.py", "function")}


def test_check_passes_if_every_pattern_has_an_effect(world: Path) -> None:
    code, unused, isolated = checked(*with_file(world, "plugins = ['acme.py']\nnetwork = ['acme.find']"))

    assert (code, unused) == (0, [])
    assert isolated == dict.fromkeys(("acme.fetch", "acme.find"), ("acme.py", "import"))


def test_check_prints_a_readable_page(world: Path) -> None:
    result = command("policy", "check", *with_file(world, "tools = ['acme.find']"))

    assert (result.code, result.err) == (0, "")
    assert "\nisolated tools\n  acme.py  1 tool; the host imports their code too\n\n" in result.out


# list and show


def test_list_marks_isolated_tools(world: Path) -> None:
    """It says whether the import is isolated too."""
    options = with_file(world, "tools = ['acme.find']")
    rows = [
        "acme.fetch  (text: string) -> string  (alias: acme.get) Return it.\n",
        "acme.find   (text: string) -> string  (isolated: function) Return it.\n",
    ]

    assert command("list", *options, "acme.*") == CommandResult(0, "".join(rows))
    data = json.loads(command("list", "--json", *options, "acme.*").out)
    assert [each.get("isolated") for each in data] == [None, "function"]


def test_list_of_installed_tools_marks_isolated_ones(world: Path) -> None:
    """It reads their indexes and makes no engine."""
    (world / "policy.toml").write_text("[policy.isolation]\ntools = ['math.add']\nplugins = ['neuroscript_fs']\n")
    result = run_installed("list", "--json", "--policy", "policy.toml")
    isolated = {each["name"]: each.get("isolated") for each in json.loads(result.out)}

    assert [isolated[name] for name in ("math.add", "math.subtract", "fs.read")] == ["function", None, "import"]


def test_show_says_which_process_runs_a_tool(world: Path) -> None:
    options = with_file(world, "tools = ['acme.find']")

    assert f"\n  isolation  {FUNCTION[:40]}" in command("show", *options, "acme.find").out
    assert "isolation" not in command("show", *options, "acme.fetch").out
    assert json.loads(command("show", "--json", *options, "acme.find").out)["isolated"] == "function"
    assert "isolated" not in json.loads(command("show", "--json", *options, "acme.fetch").out)


@pytest.mark.parametrize("words", [("list",), ("show", "acme.find"), ("export", "prompt")])
def test_invalid_isolation_is_refused_by_commands_that_describe_tools(words: tuple[str, ...], world: Path) -> None:
    """They could otherwise import what the file isolates."""
    options = with_file(world, "plugin = ['acme.py']")

    assert command(words[0], *options, *words[1:]) == CommandResult(
        2, "", "neuroscript: policy.toml:2: policy.isolation.plugin: unknown key; did you mean plugins?\n"
    )
