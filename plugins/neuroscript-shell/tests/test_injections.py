"""Attacks by a caller: no argument is a command, and nothing in the sandbox chooses what runs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from neuroscript import Engine, PolicyError, ToolFailed

Program = Callable[[str, str], Path]

CANARY: Final = "canary"
"""A file that exists in the working directory where anything got through."""

ARGUMENTS: Final = {
    "a semicolon": "; touch canary",
    "an ampersand": "& touch canary",
    "two ampersands": "&& touch canary",
    "two bars": "|| touch canary",
    "a pipe": "| touch canary",
    "a substitution": "$(touch canary)",
    "back quotes": "`touch canary`",
    "a process substitution": "<(touch canary)",
    "a redirection": "> canary",
    "a line feed": "\ntouch canary\n",
    "a carriage return": "\r\ntouch canary\r\n",
    "a quote that ends": "'; touch canary; '",
    "a double quote that ends": '"; touch canary; "',
    "a variable": "${HOME}$PATH$IFS",
    "a field separator": "touch${IFS}canary",
    "a glob": "*",
    "braces": "{a,b}",
    "a tilde": "~root",
    "a backslash at the end": "x\\",
    "a comment": "# x",
    "history": "!!",
    "a code option": "-c",
    "an end of options": "--",
    "a long option": "--output=canary",
    "an option file": "@canary",
    "a percent sign": "%s%n%x",
    "an escape sequence": "\x1b]0;x\x07\x1b[2J",
    "a bell, a tab, a delete": "\a\t\x7f",
    "nothing": "",
    "blanks": "  ",
    "other scripts": "日本語 ελληνικά \u202e\u200b",
    "a wide semicolon": "\uff1b touch canary",
    "outside the basic plane": "🜁",
    "a path that leaves": "../../../etc/passwd",
    "a function": "() { :; }; touch canary",
    "an assignment": "LD_PRELOAD=./evil.so",
    "a long text": "x" * 100_000,
}


@pytest.mark.parametrize("argument", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_passed_unchanged(engine: Engine, program: Program, root: Path, argument: str) -> None:
    """Alone and between others; nothing else happens."""
    args = [argument, "between", argument]

    result = engine.call("shell.execute", ["show", args])

    assert json.loads(result["stdout"]) == args
    assert not (root / CANARY).exists()


COMMANDS: Final = {
    "a semicolon": "show; touch canary",
    "an ampersand": "show&touch canary",
    "a pipe": "show|touch",
    "a substitution": "$(touch canary)",
    "back quotes": "`touch canary`",
    "a redirection": "show>canary",
    "a line feed": "show\ntouch canary",
    "a line feed behind": "show\n",
    "a blank behind": "show ",
    "arguments": "touch canary",
    "a zero byte": "show\0",
    "a zero byte within": "touch\0show",
    "nothing": "",
    "a dot": ".",
    "two dots": "..",
    "an option": "-c",
    "an end of options": "--",
    "an absolute path": "/bin/touch",
    "a path that leaves": "../bin/show",
    "a path from here": "./planted",
    "a path below": "data/planted",
    "a path from outside and back": "/tmp/../bin/touch",
    "a home": "~/planted",
    "a variable": "$SHELL",
    "an assignment": "LD_PRELOAD=x show",
    "a glob": "sho?",
    "all": "*",
    "a backslash": "bin\\show",
    "a quote": "'show'",
    "other scripts": "ｓｈｏｗ",
    "a look-alike": "shоw",
    "a reversal": "\u202ewohs",
    "a soft hyphen": "sh\u00adow",
    "a long name": "x" * 100_000,
    "a name too long for a file": "x" * 300,
    "a hidden name": ".show",
    "a scheme": "ssh://host/touch",
    "a magic link": "/proc/self/exe",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_command_must_be_a_bare_name(
    engine: Engine, engine_with: Callable[..., Engine], program: Program, root: Path, command: str
) -> None:
    """Everything else is refused, even if all programs are granted."""
    script(root / "planted", "open('canary', 'w')")
    script(root / "data" / "planted", "open('canary', 'w')")

    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", [command, ["canary"]])
    with pytest.raises(PolicyError) as refused:
        engine_with("shell:exec:show", "fs:read:**").call("shell.execute", [command, ["canary"]])

    text = "shell.execute: command: expected the name of a program without a path, such as ls, got another string"
    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, "shell.bad_program", "model")
    assert (refused.value.code, refused.value.retry) == ("policy.capability", "host")
    assert not (root / CANARY).exists()


def script(path: Path, text: str, interpreter: str = sys.executable) -> Path:
    path.write_text(f"#!{interpreter}\n{text}\n")
    path.chmod(0o755)
    return path


RETRIES = {"shell.is_shell": "model", "shell.not_found": "model"}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def code_of(engine: Engine, command: str) -> str:
    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", [command])
    assert caught.value.retry == RETRIES.get(caught.value.code, "host")
    return caught.value.code


@pytest.mark.parametrize("name", ["sh", "bash", "BASH", "dash", "busybox"])
def test_shells_are_refused_even_if_granted(engine: Engine, bin: Path, root: Path, name: str) -> None:
    """By name, whatever the arguments are."""
    if not shutil.which(name):
        shutil.copy("/bin/true", bin / name)

    assert code_of(engine, name) == "shell.is_shell"


def test_links_to_shells_are_refused(engine: Engine, bin: Path) -> None:
    """The target of the link counts."""
    (bin / "tidy").symlink_to("/bin/sh")

    assert code_of(engine, "tidy") == "shell.is_shell"


def into_the_sandbox(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    (bin / "tool").symlink_to(root / "evil")


def into_the_sandbox_by_a_relative_link(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    (bin / "tool").symlink_to("../bin/./../sandbox/data/../evil")


def through_the_sandbox_and_out(bin: Path, root: Path) -> None:
    (root / "hop").symlink_to("/bin/touch")
    (bin / "tool").symlink_to(root / "hop")


def through_a_directory_of_the_sandbox(bin: Path, root: Path) -> None:
    (root / "hop").symlink_to("/bin")
    (bin / "tool").symlink_to(root / "hop" / "touch")


def by_a_chain_of_links(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    (bin / "one").symlink_to("two")
    (bin / "two").symlink_to(root.parent / "sandbox" / "evil")
    (bin / "tool").symlink_to("one")


def another_name_of_a_file_in_the_sandbox(bin: Path, root: Path) -> None:
    os.link(script(root / "data" / "evil", "open('canary', 'w')"), bin / "tool")


def interpreted_by_the_sandbox(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    script(bin / "tool", "x", str(root / "evil"))


def interpreted_through_the_sandbox(bin: Path, root: Path) -> None:
    (root / "hop").symlink_to(sys.executable)
    script(bin / "tool", "open('canary', 'w')", f"  {root}/data/../hop -x")


def interpreted_from_the_working_directory(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    script(bin / "tool", "x", "./evil")


def interpreted_by_a_bare_name(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    script(bin / "tool", "x", "evil")


def interpreted_by_a_script_of_the_sandbox(bin: Path, root: Path) -> None:
    script(root / "evil", "open('canary', 'w')")
    script(bin / "between", "x", str(root / "evil"))
    script(bin / "tool", "x", str(bin / "between"))


def interpreted_by_another_name_of_a_file_in_the_sandbox(bin: Path, root: Path) -> None:
    os.link(script(root / "evil", "open('canary', 'w')"), bin / "between")
    script(bin / "tool", "x", str(bin / "between"))


PLANTED: Final[Mapping[str, Callable[[Path, Path], None]]] = {
    each.__name__.replace("_", " "): each
    for each in (
        into_the_sandbox,
        into_the_sandbox_by_a_relative_link,
        through_the_sandbox_and_out,
        through_a_directory_of_the_sandbox,
        by_a_chain_of_links,
        another_name_of_a_file_in_the_sandbox,
        interpreted_by_the_sandbox,
        interpreted_through_the_sandbox,
        interpreted_from_the_working_directory,
        interpreted_by_a_bare_name,
        interpreted_by_a_script_of_the_sandbox,
        interpreted_by_another_name_of_a_file_in_the_sandbox,
    )
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_program_with_parts_in_the_sandbox_is_refused(
    engine: Engine, bin: Path, root: Path, plant: Callable[[Path, Path], None]
) -> None:
    """A name on the PATH that leads to a file, a link or an interpreter in the sandbox is refused."""
    plant(bin, root)

    assert code_of(engine, "tool") == "shell.in_sandbox"
    assert not (root / CANARY).exists()


@pytest.mark.parametrize(
    "entry",
    [
        "",
        ".",
        "data",
        "./data",
        "../sandbox/data",
        "{root}",
        "{root}/data",
        "{root}/data/",
        "{bin}/../sandbox/data",
        "{bin}/link",
    ],
)
@pytest.mark.parametrize("name", ["planted", "show"])
def test_path_entries_in_the_sandbox_are_skipped(
    engine: Engine, program: Program, bin: Path, root: Path, monkeypatch: pytest.MonkeyPatch, entry: str, name: str
) -> None:
    """A planted program is not found, and the real one still is."""
    for folder in (root, root / "data"):
        script(folder / name, "open('canary', 'w')")
    (bin / "link").symlink_to(root / "data")
    monkeypatch.setenv("PATH", f"{entry.format(root=root, bin=bin)}:{os.environ['PATH']}")
    monkeypatch.chdir(root)

    if name == "planted":
        assert code_of(engine, name) == "shell.not_found"
    else:
        assert engine.call("shell.execute", [name, ["x"]])["stdout"] == '["x"]\n'
    assert not (root / CANARY).exists()


def test_path_of_the_program_excludes_the_sandbox(
    engine: Engine, program: Program, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So ``#!/usr/bin/env tool`` is safe too."""
    script(root / "planted", "open('canary', 'w')")
    program("starts", "import subprocess; subprocess.run(['planted'])")
    monkeypatch.setenv("PATH", f"{root}::.:{os.environ['PATH']}")

    result = engine.call("shell.execute", ["starts"])

    assert "FileNotFoundError" in result["stderr"]
    assert not (root / CANARY).exists()


@pytest.mark.parametrize(
    "head", ["", "\n", "text\n", "#\n", "#! \n"], ids=["empty", "a line", "text", "a comment", "no interpreter"]
)
def test_file_without_interpreter_is_not_run_by_a_shell(
    engine: Engine, bin: Path, root: Path, head: str, confined: bool
) -> None:
    """As a shell and execvp(3) would do. The launcher of a confined program reports that with an exit code."""
    (bin / "tool").write_text(f"{head}touch canary\n")
    (bin / "tool").chmod(0o755)

    if confined and head != "#! \n":
        result = engine.call("shell.execute", ["tool"])
        text = "neuroscript: the program was not started: the program cannot be executed: Exec format error\n"
        assert (result["exit_code"], result["stderr"]) == (126, text)
    else:
        assert code_of(engine, "tool") in {"shell.not_runnable", "shell.in_sandbox"}
    assert not (root / CANARY).exists()


def test_interpreter_cycle_is_refused(engine: Engine, bin: Path) -> None:
    """Scripts that name each other as interpreters are not a program."""
    script(bin / "tool", "x", str(bin / "other"))
    script(bin / "other", "x", str(bin / "tool"))

    assert code_of(engine, "tool") == "shell.not_runnable"


def test_link_cycle_is_not_a_program(engine: Engine, bin: Path) -> None:
    """Nor are a directory, a file without execute permission, and a pipe."""
    (bin / "one").symlink_to("two")
    (bin / "two").symlink_to("one")
    (bin / "folder").mkdir()
    (bin / "text").write_text("x")
    os.mkfifo(bin / "pipe", 0o755)

    assert {code_of(engine, name) for name in ("one", "folder", "text", "pipe")} == {"shell.not_found"}


STEERING: Final = {
    "LD_PRELOAD": "./evil.so",
    "LD_LIBRARY_PATH": ".",
    "LD_AUDIT": "./evil.so",
    "IFS": "x",
    "ENV": "./evil",
    "BASH_ENV": "./evil",
    "BASH_FUNC_ls%%": "() { touch canary; }",
    "SHELLOPTS": "xtrace",
    "PYTHONPATH": ".",
    "PYTHONSTARTUP": "./evil.py",
    "PERL5OPT": "-Mevil",
    "NODE_OPTIONS": "--require ./evil.js",
    "RUBYOPT": "-revil",
    "GIT_SSH_COMMAND": "touch canary",
    "GCONV_PATH": ".",
}


def test_environment_has_three_variables(
    engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch, confined: bool
) -> None:
    """No other variable of the host is passed, least of all one that chooses code.

    A confined program also has a temporary directory of its own.
    """
    for name, value in {**STEERING, "SECRET_TOKEN": "never seen"}.items():
        if not name.startswith("LD_"):  # this very process begins others with them
            monkeypatch.setenv(name, value)

    result = engine.call("shell.execute", ["env"])

    reported = dict(line.split("=", 1) for line in result["stdout"].splitlines())
    assert bool(reported.pop("TMPDIR", "")) == confined
    assert (reported.keys(), reported["LANG"], reported["HOME"]) == ({"PATH", "LANG", "HOME"}, "C.UTF-8", str(root))
    assert all(part.startswith("/") for part in reported["PATH"].split(":"))


@pytest.mark.parametrize("name", [*STEERING, "PATH", "HOME", "LANG", "path", "ld_preload", "Ifs"])
def test_variables_that_choose_code_are_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Even if all variables are granted."""
    with pytest.raises(ToolFailed) as caught:
        engine.call_named("shell.execute", {"command": "env", "env_names": ["TZ", name]})

    text = "env_names[1]: expected a variable that does not affect which code runs, got another name"
    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        f"shell.execute: {text}",
        "shell.bad_env",
        "model",
    )


def test_variable_needs_its_own_grant(
    engine_with: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, confined: bool
) -> None:
    """An unset variable is not passed, and a name is never a pattern or an assignment."""
    monkeypatch.setenv("SHOP", "tea")
    monkeypatch.setenv("SECRET_TOKEN", "never seen")
    engine = engine_with("shell:exec:env", "fs:read:**", "env:read:SHOP", "env:read:NOBODY_SETS_THIS", "env:read:A=B")

    result = engine.call_named("shell.execute", {"command": "env", "env_names": ["SHOP", "NOBODY_SETS_THIS", "A=B"]})
    names = [line.partition("=")[0] for line in result["stdout"].splitlines()]
    assert sorted(names) == ["HOME", "LANG", "PATH", "SHOP", *["TMPDIR"] * confined]
    for wrong in ("SECRET_TOKEN", "*", "SHOP,SECRET_TOKEN", "SHOP\0"):
        with pytest.raises(PolicyError):
            engine.call_named("shell.execute", {"command": "env", "env_names": ["SHOP", wrong]})


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["a\0b"], "shell.bad_argument"),
        (["x"] * 5 + ["\0"], "shell.bad_argument"),
        (["x" * 200_000], "shell.too_long"),
        (["x" * 100_000] * 40, "shell.too_long"),
    ],
    ids=["a zero byte", "a zero byte further on", "one too long", "too many"],
)
def test_arguments_beyond_system_limits_are_refused(
    engine: Engine, program: Program, args: list[str], code: str
) -> None:
    """Before anything runs; nothing is truncated."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", ["show", args])

    assert (caught.value.code, caught.value.retry) == (code, "model")
