"""``neuroscript call`` of a streaming tool: items are printed as they arrive, and the tool is always stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, command, environment, start
from tests.terminals import Terminal

PLUGIN = '''
import asyncio, time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

def register(registrar):
    tools = registrar.toolset("s")

    @tools.tool()
    def up(most: int, mark: str = "") -> Iterator[int]:
        """Count up; with a mark, wait before the last item until that file exists."""
        try:
            for number in range(most):
                if mark and number == most - 1:
                    while not Path(mark + ".go").exists():
                        time.sleep(0.005)
                yield number
        finally:
            if mark:
                Path(mark + ".closed").write_text("closed")

    @tools.tool()
    async def aup(most: int, mark: str = "") -> AsyncIterator[int]:
        """Count up on a loop, and wait for ever before the last."""
        try:
            for number in range(most):
                if mark and number == most - 1:
                    await asyncio.sleep(60)
                yield number
        finally:
            if mark:
                Path(mark + ".closed").write_text("closed")

    @tools.tool()
    def lines() -> Iterator[str]:
        """Return lines with control characters."""
        print("said by the tool")
        yield from ("one\\n", "two", "a\\x1b[2Jb", "")

    @tools.tool()
    def maps() -> Iterator[dict[str, Any]]:
        """Return maps, and fail."""
        yield {"a": b"x"}
        yield {"b": None}
        raise ValueError("a private value")
'''


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    """A plugin file with these tools."""
    file = tmp_path / "streams.py"
    file.write_text(PLUGIN)
    return str(file)


def run_tool(plugin: str, *words: str) -> CommandResult:
    return command("call", "-p", plugin, *words, make_engine=None)


def until(path: str) -> None:
    """Wait until a file exists."""
    end = time.monotonic() + 20
    while not Path(path).exists():
        assert time.monotonic() < end, f"no {path}"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["s.up", "3"], CommandResult(0, "0\n1\n2\n"), id="one line each"),
        pytest.param(["s.aup", "2"], CommandResult(0, "0\n1\n"), id="of an async tool"),
        pytest.param(["s.up", "0"], CommandResult(0, ""), id="none"),
        pytest.param(["s.lines"], CommandResult(0, "said by the tool\none\ntwo\na\x1b[2Jb\n\n"), id="texts"),
        pytest.param(
            ["s.maps"],
            CommandResult(
                1,
                '{"a": {"$base64": "eA=="}}\n{"b": null}\n',
                "neuroscript: s.maps: the tool failed (ValueError) (after 2 items); add --traceback to see where\n",
            ),
            id="until one fails",
        ),
        pytest.param(
            ["s.up", "x"],
            CommandResult(
                3,
                "",
                "neuroscript: s.up: most: expected int, got str (a string must be a decimal integer, such as 42)\n",
            ),
            id="wrong arguments",
        ),
        pytest.param(
            ["--deny", "s.*", "s.up", "1"],
            CommandResult(4, "", "neuroscript: s.up: denied by the pattern 's.*' in deny\n"),
            id="a tool that is denied",
        ),
    ],
)
def test_items_are_lines(plugin: str, words: list[str], expected: CommandResult) -> None:
    """A string is printed unchanged, anything else as JSON."""
    assert expected == run_tool(plugin, *words)


def test_json_items_are_lines(plugin: str) -> None:
    """The outcome follows; the tool's own output is not among them."""
    done, failed = run_tool(plugin, "--json", "s.lines"), run_tool(plugin, "--json", "s.maps")

    *items, end = map(json.loads, done.out.splitlines())
    assert (0, "said by the tool\n") == (done.code, done.err)
    assert [{"item": each} for each in ("one\n", "two", "a\x1b[2Jb", "")] == items
    assert {"id": "", "tool": "s.lines", "ok": True, "items": 4, "seconds": end["seconds"]} == end

    *items, end = map(json.loads, failed.out.splitlines())
    assert (1, "") == (failed.code, failed.err)
    assert [{"item": {"a": {"$base64": "eA=="}}}, {"item": {"b": None}}] == items
    assert (False, "tool.failed", 2) == (end["ok"], end["error"]["code"], end["error"]["items"])


def test_repairs_follow_the_items(plugin: str) -> None:
    """They are part of the outcome, as in other calls."""
    done = run_tool(plugin, "--json", "s.up", "1")

    item, end = map(json.loads, done.out.splitlines())
    assert {"item": 0} == item
    assert [{"where": "most", "got": "str", "became": "int"}] == end["repairs"]


def test_item_is_printed_before_the_next_is_produced(plugin: str, tmp_path: Path) -> None:
    """In a separate process, through a pipe."""
    mark = tmp_path / "mark"
    child = start("call", "-p", plugin, "s.up", "3", str(mark))
    assert child.stdout and child.stdin and child.stderr

    first = [child.stdout.readline() for _ in range(2)]
    (tmp_path / "mark.go").touch()
    out, err = child.communicate(timeout=30)

    assert ([b"0\n", b"1\n"], b"2\n", b"", 0) == (first, out, err, child.returncode)


def test_item_is_shown_on_a_terminal_before_the_next_is_produced(plugin: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    words = ["call", "-p", plugin, "s.up", "2", str(mark)]
    terminal = Terminal(f"import sys\nfrom neuroscript.cli import main\nsys.exit(main({words!r}))")

    assert "0\r\n" == terminal.see("0\r\n")
    (tmp_path / "mark.go").touch()
    assert "1\r\n" == terminal.see("1\r\n")
    terminal.close()


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_closed_pipe_stops_the_tool(plugin: str, tmp_path: Path, how: list[str]) -> None:
    """As with ``| head -1``: the generator is closed, without a message."""
    mark = str(tmp_path / "mark")
    shell = f'"{sys.executable}" -m neuroscript call -p "{plugin}" {" ".join(how)} s.up 100000000 "{mark}" | head -1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}"],
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ('{"item": 0}\n' if how else "0\n", "", 5) == (done.stdout, done.stderr, done.returncode)
    assert "closed" == Path(mark + ".closed").read_text()


@pytest.mark.parametrize("name", ["s.up", "s.aup"])
def test_interrupt_stops_the_tool(plugin: str, tmp_path: Path, name: str) -> None:
    """Ctrl-C arrives while it produces an item."""
    mark = str(tmp_path / "mark")
    child = start("call", "-p", plugin, name, "2", mark)
    assert child.stdout and child.stdin and child.stderr
    assert b"0\n" == child.stdout.readline()

    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)

    assert (b"", b"neuroscript: interrupted\n", 130) == (out, err, child.returncode)
    assert "closed" == Path(mark + ".closed").read_text()


def test_stream_is_not_stored(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has more items than a call may collect."""
    monkeypatch.setattr("neuroscript.calls.streams.MAX_COLLECTED_ITEMS", 2)

    assert CommandResult(0, "0\n1\n2\n3\n") == run_tool(plugin, "s.up", "4")
