"""``neuroscript list``, ``show`` and ``completion``, and what every command has."""

from __future__ import annotations

import functools
import gc
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command, run_installed
from tests.cli.probe import probe

from neuroscript import Engine, __version__, policy_to_data, spec_to_data
from neuroscript._imports import install_hint

NOTES = Path(__file__).parents[1] / "interop" / "mcp_notes.py"

DANGER = """\
probe.danger(options: map = {"size": 1}) -> any | None
Say what \\x1b[2J cannot be said\\u202e.

arguments
  options       map, default {"size": 1}    What \\x1b[31mto do\\u202e.
  options.size  int from 1 to 9, default 1  How large\\x1b[2J.

returns
  any | None: What it was given.

when to use
  Never; probe.echo is better.

errors
  probe.danger.

policy
  needs    fs:read:data/**, approval of each call
  effects  reads
  reads    private (assumed)
  timeout  2.5 s

examples
  [{"size": "2"}]  returns {"size": 2}  (a number as text)
  [[]]             fails: coercion.type
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["probe.s*"],
            CommandResult(
                0,
                "probe.said  (text: string) -> string  Print a string, and return it.\n"
                "probe.slow  () -> string              Take longer than the timeout.\n",
            ),
            id="a pattern",
        ),
        pytest.param(
            ["PROBE.T?g*"],
            CommandResult(
                0,
                'probe.tags  (names: list of string, sep: string = "-", limit: int | None = null) -> map  Return the arguments unchanged.\n',
            ),
            id="in another case",
        ),
        pytest.param(
            ["*danger"],
            CommandResult(
                0,
                'probe.danger  (options: map = {"size": 1}) -> any | None  Say what \\x1b[2J cannot be said\\u202e.\n',
            ),
            id="nothing steers the terminal, and nothing is wrapped for a pipe",
        ),
        pytest.param(
            ["probe"],
            CommandResult(0, err="neuroscript: no tool matches probe; did you mean 'probe.*'?\n"),
            id="a group",
        ),
        pytest.param(["x\x1b"], CommandResult(0, err="neuroscript: no tool matches x\\x1b\n"), id="none"),
    ],
)
def test_list_shows_matching_tools(words: list[str], expected: CommandResult) -> None:
    """It prints name, signature and description in columns, one tool per line."""
    result = command("list", *words)

    assert expected == result


def test_list_without_a_pattern_shows_every_tool() -> None:
    """The tools are sorted by name."""
    result = command("list")

    assert sorted(tool.name for tool in probe) == [line.split()[0] for line in result.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["probe.s*", "--search", "print a string"], ["probe.said"]),
        (["probe.s*", "--search", "probe.slow"], ["probe.slow"]),
    ],
    ids=["words", "name"],
)
def test_search_lists_the_best_tools_first(words: list[str], names: list[str]) -> None:
    """At most 10; a pattern narrows them before."""
    found = [tool["name"] for tool in json.loads(command("list", *words, "--json").out)]

    assert len(found) <= 10
    assert found[: len(names)] == names


def test_search_reads_the_indexes_of_installed_toolsets() -> None:
    """Without importing them."""
    result = run_installed("list", "--search", "add two numbers", "--json")

    assert json.loads(result.out)[0]["name"] == "math.add"


def test_search_without_results_says_so() -> None:
    assert command("list", "--search", "zebra") == CommandResult(
        0, "", "neuroscript: no tool contains any of these words\n"
    )


def test_empty_list_says_what_to_install() -> None:
    result = command("list", make_engine=functools.partial(Engine, plugins="none"))

    text = f"neuroscript: no tools are available; install neuroscript-std to get started: {install_hint('std')}\n"
    assert CommandResult(0, "", text) == result


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        pytest.param(
            "probe.data",
            [{"name": "probe.data", "signature": "() -> blob", "description": "Return bytes."}],
            id="one",
        ),
        pytest.param("x", [], id="none"),
    ],
)
def test_list_prints_json(pattern: str, expected: list[Any]) -> None:
    """The array is empty if nothing matches."""
    result = command("list", pattern, "--json")

    assert (0, expected) == (result.code, json.loads(result.out))


@pytest.mark.parametrize("name", ["probe.danger", "tool.Probe.Danger", "probe__danger"])
def test_show_prints_the_details_of_a_tool(name: str) -> None:
    """This includes tools that may not be called; strings of the author cannot control a terminal."""
    result = command("show", name)

    assert CommandResult(0, DANGER) == result


def test_show_json_prints_the_spec_and_the_policy() -> None:
    """``spec`` can be read back as the same spec."""
    tool = next(tool for tool in probe if tool.name == "probe.danger")

    result = command("show", "probe.danger", "--json")

    assert {"spec": spec_to_data(tool.spec), **policy_to_data(tool.policy)} == json.loads(result.out)


@pytest.mark.parametrize(
    ("name", "served"), [("notes.note", "resource: notes://note/{name}"), ("notes.sum_up", "prompt")]
)
def test_show_prints_how_a_tool_is_served(name: str, served: str) -> None:
    """The line follows the description."""
    result = run_installed("show", "-p", str(NOTES), name)

    assert (0, served) == (result.code, result.out.splitlines()[2])


def test_show_of_an_unknown_tool_suggests_similar_ones() -> None:
    """The suggestions include every tool."""
    result = command("show", "danger")

    assert (
        CommandResult(
            2,
            "",
            "neuroscript: unknown tool danger; did you mean probe.danger?\n",
        )
        == result
    )


def test_version_is_printed_without_an_engine() -> None:
    """Nothing else is imported."""

    def never(**_: Any) -> Any:
        raise AssertionError("no engine is needed")

    result = command("--version", make_engine=never)

    assert CommandResult(0, f"neuroscript {__version__}\n") == result


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["list", "-h"],
        ["show", "-h"],
        ["call", "x", "-h"],
        ["execute", "-h"],
        ["audit", "-h"],
        ["trace", "-h"],
        ["trace", "show", "-h"],
        ["trace", "diff", "-h"],
        ["completion", "-h"],
    ],
)
def test_every_command_has_help(words: list[str]) -> None:
    """It goes to stdout with exit code 0, and its lines fit a terminal."""
    result = command(*words)

    assert (0, "") == (result.code, result.err)
    assert result.out.startswith("usage: neuroscript ")
    assert max(map(len, result.out.splitlines())) <= 110


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    """It works for each shell, as text or as JSON."""
    plain = command("completion", shell)
    in_json = command("completion", shell, "--json")

    assert (0, "") == (plain.code, plain.err)
    assert "neuroscript" in plain.out
    assert {"shell": shell, "script": plain.out.rstrip()} == {
        **json.loads(in_json.out),
        "script": json.loads(in_json.out)["script"].rstrip(),
    }


def test_completion_without_argcomplete_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one line; the core works without the extra."""
    for name in ("argcomplete", "argcomplete.shell_integration"):
        monkeypatch.setitem(sys.modules, name, None)

    result = command("completion", "bash")

    sentence = f"completion needs argcomplete; install it with: {install_hint('cli')}"
    assert CommandResult(2, "", f"neuroscript: {sentence}\n") == result


def test_main_with_arguments_changes_no_process_settings() -> None:
    """Streams stay open, and the garbage collector is unchanged."""
    before = (gc.get_threshold(), gc.get_freeze_count(), sys.stdout, sys.stderr)

    command("list")

    assert (gc.get_threshold(), gc.get_freeze_count(), sys.stdout, sys.stderr) == before
    assert not sys.stdout.closed
