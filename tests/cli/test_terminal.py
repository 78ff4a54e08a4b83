"""Output on a real terminal, with and without colours."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, environment

COLOUR = re.compile(r"\x1b\[[\d;]*3\dm")
SEQUENCE = re.compile(r"\x1b\[[\d;]*m")

BEGIN = "import sys; from tests.cli.probe import engine, main; "
RUN = "sys.exit(main(make_engine=engine))"
WITHOUT_RICH = f"{BEGIN} sys.modules['rich'] = None; {RUN}"


def seen(*words: str, code: str = "", **settings: str) -> str:
    """Return the output of the command on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    start = ["-c", code] if code else ["-m", "tests.cli.probe"]
    env = environment(TERM="xterm-256color", **{"COLUMNS": "80", **settings})
    child = subprocess.Popen([sys.executable, *start, *words], cwd=ROOT, env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # Linux raises EIO when the other side has closed
        pass
    os.close(ours)
    assert child.wait(30) == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "words", [["list"], ["show", "probe.danger"], ["execute", "sandbox/inbox/calls.jsonl", "--report"]]
)
def test_terminal_has_colours_if_rich_is_installed(words: list[str]) -> None:
    """Without rich the text is the same."""
    colours = seen(*words)
    plain = seen(*words, code=WITHOUT_RICH)

    assert COLOUR.search(colours)
    assert "\x1b" not in plain
    assert _words(colours) == _words(plain)
    assert max(map(len, plain.splitlines())) <= 80


def test_no_color_removes_only_the_colours() -> None:
    no_colour = seen("show", "probe.danger", NO_COLOR="1")

    assert not COLOUR.search(no_colour)
    assert _words(no_colour) == _words(seen("show", "probe.danger"))


@pytest.mark.parametrize("code", ["", WITHOUT_RICH], ids=["rich", "plain"])
def test_prose_is_at_most_100_columns_wide(code: str) -> None:
    """A table of tools uses the whole width."""
    page = SEQUENCE.sub("", seen("show", "probe.waits", code=code, COLUMNS="150"))
    table = SEQUENCE.sub("", seen("list", "probe.tags", code=code, COLUMNS="150"))

    assert 80 < max(map(len, page.splitlines())) <= 100
    assert 100 < max(map(len, table.splitlines())) <= 150


def _words(text: str) -> list[str]:
    return SEQUENCE.sub("", text).split()


def test_tool_output_cannot_control_the_terminal() -> None:
    """Descriptions, results, errors and names are escaped, except newlines and tabs."""
    shown = seen("show", "probe.danger")
    result = seen("call", "probe.echo", "a\tb\nc\x1b[2J\u202e\x07")
    calls = [{"name": "probe.fails", "arguments": ["x"]}, {"name": "probe.echo", "arguments": ["a\x1b[2Jb"]}]
    report = seen("execute", "-", "--report", code=_fed("\n".join(map(json.dumps, calls))))

    assert "cannot be said\\u202e." in shown
    assert "a\tb\nc\\x1b[2J\\u202e\\x07\n" == result
    assert "with \\x1b[31mx" in report
    assert "a\\x1b[2Jb" in report


def _fed(lines: str) -> str:
    return f"{BEGIN} import io; sys.stdin = io.TextIOWrapper(io.BytesIO({lines.encode()!r})); {RUN}"


def test_json_has_no_colours_and_imports_no_rich() -> None:
    code = f"{BEGIN} main(['list', '--json'], engine); print('rich' in sys.modules)"

    lines = seen(code=code).splitlines()

    assert (2, "False") == (len(lines), lines[1])
    assert "\x1b" not in lines[0]


def test_only_a_terminal_imports_rich() -> None:
    """The import takes half as long as the start of the command."""
    code = f"{BEGIN} main(['list'], engine); print('rich' in sys.modules, 'argcomplete' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], cwd=Path(ROOT), capture_output=True, text=True)

    assert "False False" == done.stdout.splitlines()[-1]
