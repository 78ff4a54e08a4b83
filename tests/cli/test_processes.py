"""The command in separate processes: pipes, closed streams, signals, encodings, shells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, environment, process, start

from neuroscript import __version__

PROBE = "tests.cli.probe"
COMMAND = str(Path(sys.executable).with_name("neuroscript"))


def test_module_and_installed_command_are_the_same() -> None:
    """``python -m neuroscript`` and ``neuroscript``."""
    as_module = process("--version")
    installed = subprocess.run([COMMAND, "--version"], capture_output=True, text=True)

    assert CommandResult(0, f"neuroscript {__version__}\n") == as_module
    assert as_module == CommandResult(installed.returncode, installed.stdout, installed.stderr)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["call", "math.add", "2", " 3 "], CommandResult(0, "5.0\n"), id="a call"),
        pytest.param(["call", "math.add", "-1.5e3", "--", "-2"], CommandResult(0, "-1502.0\n"), id="numbers below 0"),
        pytest.param(
            ["call", "math.divide", "1", "0"],
            CommandResult(1, err="neuroscript: math.divide: division by zero\n"),
            id="a failure",
        ),
    ],
)
def test_call_runs(words: list[str], expected: CommandResult) -> None:
    """Results and errors go to the usual streams."""
    result = process(*words)

    assert expected == result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "shell", "expected"),
    [
        pytest.param(["list"], ">&-", CommandResult(5), id="results lost"),
        pytest.param(["--version"], ">&-", CommandResult(5), id="the version lost"),
        pytest.param(["--help"], ">&-", CommandResult(5), id="the help lost"),
        pytest.param(
            ["call", "probe.said", "a"], ">&-", CommandResult(5, err="a\n"), id="what a tool prints goes to stderr"
        ),
        pytest.param(
            ["call", "probe.fails", "bug"],
            ">&-",
            CommandResult(
                1, err="neuroscript: probe.fails: the tool failed (ValueError); add --traceback to see where\n"
            ),
            id="nothing to lose",
        ),
        pytest.param(["call", "probe.fails", "bug"], "2>&-", CommandResult(1), id="errors lost"),
        pytest.param(["call", "probe.said", "a"], ">&- 2>&-", CommandResult(5), id="both lost"),
        pytest.param(["call", "probe.fails", "bug"], "2>/dev/full", CommandResult(1), id="no place for errors"),
        pytest.param(
            ["call", "probe.echo", "a"],
            ">/dev/full",
            CommandResult(5, err="neuroscript: cannot write the results: no space left on device\n"),
            id="no place for results",
        ),
        pytest.param(
            ["execute", "-"],
            "<&-",
            CommandResult(2, err="neuroscript: standard input is closed\n"),
            id="no standard input",
        ),
        pytest.param(
            ["call", "probe.echo", "--input-json", "-"],
            "<&-",
            CommandResult(2, err="neuroscript: standard input is closed\n"),
            id="no standard input for arguments",
        ),
    ],
)
def test_closed_stream_ends_the_command_silently(words: list[str], shell: str, expected: CommandResult) -> None:
    """The exit code is 5 if results are lost, otherwise that of the call; there is never a traceback."""
    result = process(*words, module=PROBE, shell=shell)

    assert expected == result


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["list"], (5, ""), id="list"),
        pytest.param(["show", "probe.tags"], (5, ""), id="show"),
        pytest.param(["call", "probe.echo", "x" * 100_000], (5, ""), id="a long result"),
        pytest.param(["--help"], (5, ""), id="help"),
        pytest.param(
            ["call", "probe.mutters", "x"], (1, "neuroscript: probe.mutters: it muttered\n"), id="text left unwritten"
        ),
    ],
)
def test_closed_pipe_ends_the_command_silently(words: list[str], expected: tuple[int, str]) -> None:
    """As in ``neuroscript list | head -1``, if head exits first."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nowhere:
        done = subprocess.run(
            [sys.executable, "-m", PROBE, *words],
            cwd=ROOT,
            env=environment(),
            stdout=nowhere,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert expected == (done.returncode, done.stderr)


def test_execute_stops_when_the_pipe_is_closed() -> None:
    """The calls after the last result that was read are not made."""
    call = b'{"name": "probe.said", "arguments": ["x"]}\n'
    child = start("execute", "-", module=PROBE)
    assert child.stdin and child.stdout and child.stderr

    child.stdin.write(call)
    child.stdin.flush()
    first = json.loads(child.stdout.readline())
    child.stdout.close()
    child.stdin.write(call * 5)
    child.stdin.close()

    assert (True, 5, b"x\nx\n") == (first["ok"], child.wait(30), child.stderr.read())
    child.stderr.close()


def test_execute_streams() -> None:
    """A result is available before the next call is sent."""
    child = start("execute", "-", module=PROBE)
    assert child.stdin and child.stdout
    values = []

    for text in ("one", "two", "three"):
        child.stdin.write(json.dumps({"name": "probe.echo", "arguments": [text]}).encode() + b"\n")
        child.stdin.flush()
        values.append(json.loads(child.stdout.readline())["value"])
    child.communicate(timeout=30)

    assert (["one", "two", "three"], 0) == (values, child.returncode)


@pytest.mark.parametrize("words", [["call", "probe.waits", "60"], ["execute", "-"]])
def test_interrupt_ends_a_running_call(words: list[str]) -> None:
    """The exit code is 130, with one line and no traceback; ``execute`` has printed earlier results."""
    calls = b'{"name": "probe.echo", "arguments": ["done"]}\n{"name": "probe.waits", "arguments": [60]}\n'
    child = start(*words, module=PROBE)
    assert child.stdin and child.stdout and child.stderr
    child.stdin.write(calls)
    child.stdin.close()
    begun = child.stderr if words[0] == "execute" else child.stdout
    reported = begun.readline()

    child.send_signal(signal.SIGINT)
    code, out, err = child.wait(30), child.stdout.read(), child.stderr.read()
    child.stdout.close()
    child.stderr.close()

    assert (b"waiting\n", 130, b"neuroscript: interrupted\n") == (reported, code, err)
    assert [json.loads(line)["value"] for line in out.splitlines()] == (["done"] if words[0] == "execute" else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "written"),
    [
        pytest.param({"PYTHONIOENCODING": "ascii"}, "\\xe9\\u65e5", id="ascii"),
        pytest.param({"PYTHONIOENCODING": "ascii:strict"}, "\\xe9\\u65e5", id="ascii, strictly"),
        pytest.param({"PYTHONIOENCODING": "latin-1"}, "\udce9\\u65e5", id="latin-1"),
        pytest.param({"LC_ALL": "C"}, "é日", id="the locale C, which Python takes for UTF-8"),
    ],
)
def test_limited_encoding_loses_nothing(settings: dict[str, str], written: str) -> None:
    """JSON and strings contain escapes, and a tool that prints does not fail."""
    call = '{"name": "probe.echo", "arguments": ["é日"]}'.encode()

    text = process("call", "probe.said", "é日", module=PROBE, **settings)
    data = process("execute", "-", module=PROBE, stdin=call, **settings)
    error = process("call", "é日", module=PROBE, **settings)

    assert CommandResult(0, f"{written}\n" * 2) == text
    assert (0, "é日") == (data.code, json.loads(data.out)["value"])
    assert CommandResult(2, "", f"neuroscript: unknown tool {written}\n") == error


def test_invalid_unicode_arguments_are_refused() -> None:
    """Bytes that are not UTF-8 become lone surrogates, which strings may not contain."""
    done = subprocess.run(
        [sys.executable.encode(), b"-m", PROBE.encode(), b"call", b"probe.echo", b"\xff"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
    )

    text = "neuroscript: probe.echo: text: expected string, got str (a string must be valid Unicode, without lone surrogates)\n"
    assert (3, b"", text) == (done.returncode, done.stdout, done.stderr.decode())


COMPLETE = """
import json, os, sys
import argcomplete
from neuroscript.cli import completion, main
from tests.cli.probe import engine

for index, line in enumerate(json.load(sys.stdin)):
    if os.fork() == 0:
        answer = os.path.join(sys.argv[1], str(index))
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
        os.environ |= {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": answer}
        sys.exit(main([], engine))
    assert os.wait()[1] == 0
"""

LINES = {
    "a command": ("neuroscript sh", {"show "}),
    "a tool to call": ("neuroscript call probe.s", {"probe.said", "probe.slow"}),
    "a tool to show": ("neuroscript show probe.da", {"probe.data", "probe.danger"}),
    "a tool to approve": ("neuroscript call --preapproved probe.da", {"probe.data", "probe.danger"}),
    "an option": ("neuroscript approve --re", {"--record", "--reject"}),
    "an argument": ("neuroscript call probe.tags l", {"limit="}),
    "no argument of no tool": ("neuroscript call nothing l", {""}),
    "a shell": ("neuroscript completion f", {"fish "}),
    "a kind of what is new": ("neuroscript new t", {"toolset "}),
    "an option of it": ("neuroscript new toolset --d", {"--directory "}),
    "a command of publishers": ("neuroscript lin", {"lint "}),
    "a path": ("neuroscript lint docs/reference/lin", {"docs/reference/lint.md "}),
}


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Return the completions of each line. A process forks for each of them, because completion ends its process."""
    folder, lines = tmp_path_factory.mktemp("answers"), [line for line, _ in LINES.values()]

    subprocess.run(
        [sys.executable, "-c", COMPLETE, str(folder)],
        cwd=ROOT,
        env=environment(),
        input=json.dumps(lines).encode(),
        check=True,
    )

    return {line: set((folder / str(index)).read_text().split("\013")) for index, line in enumerate(lines)}


@pytest.mark.slow
@pytest.mark.parametrize(("line", "expected"), LINES.values(), ids=LINES)
def test_arguments_are_completed(line: str, expected: set[str], completions: dict[str, set[str]]) -> None:
    """Commands, tool names and arguments, with the protocol of argcomplete."""
    assert expected == completions[line]


def test_bash_completes_a_tool(tmp_path: Path) -> None:
    """It uses the script of ``completion bash``."""
    script = (
        'eval "$(neuroscript completion bash)"; COMP_WORDS=(neuroscript call math.mo); COMP_CWORD=2;'
        'COMP_LINE="neuroscript call math.mo"; COMP_POINT=${#COMP_LINE};'
        '_python_argcomplete neuroscript math.mo call; echo "${COMPREPLY[@]}"'
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    env = environment(PATH=path, NEUROSCRIPT_PLUGINS="neuroscript-std")
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)

    assert ("math.modulo", "") == (done.stdout.strip(), done.stderr)
