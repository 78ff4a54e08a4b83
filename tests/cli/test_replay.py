"""``neuroscript replay``: run a recording again and compare the results."""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command, process
from tests.cli.test_never_a_traceback import damaged

from neuroscript import Engine, Runtime, ToolCall, ToolPolicy, Toolset, bind
from neuroscript.audit.recording import Recording
from neuroscript.tools.fingerprints import fingerprint

PURE = ToolPolicy(effects=("pure",))


def lab(word: str = "ada") -> Toolset:
    """Return tools, one of which returns a word that its definition does not contain."""
    tools = Toolset("lab")

    @tools.tool(policy=PURE)
    def named(count: int) -> list[str]:
        """Return names."""
        return [word] * count

    @tools.tool(policy=PURE)
    def says(rt: Runtime, text: str) -> str:
        """Print a string."""
        rt.println(text)
        return text

    @tools.tool(policy=ToolPolicy(effects=("deletes",)))
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    return tools


engine = functools.partial(Engine, toolsets=(lab(),), plugins="none")
other = functools.partial(Engine, toolsets=(lab("bob and eve"),), plugins="none")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a recording of three calls, two of which can be run again."""
    return recorded(tmp_path / "calls.jsonl", ("lab.named", (1,)), ("lab.wipe", ()), ("lab.named", (2,)))


def recorded(path: Path, *calls: tuple[str, tuple[Any, ...]]) -> Path:
    with engine() as lent, Recording(path) as recording:
        for name, args in calls:
            tool = lent.tools[name]
            done = lent.execute(ToolCall(name, args))
            recording.write(tool, fingerprint(tool), bind(tool.spec, args), done.value, error=done.error)
    return path


def replay(path: Path | str, *words: str, make_engine: Any = engine, stdin: bytes = b"") -> CommandResult:
    return command("replay", str(path), *words, make_engine=make_engine, stdin=stdin)


def test_same_results_exit_with_0(path: Path) -> None:
    """It prints how many calls were run."""
    reported = "2 calls run again, same results\n1 skipped, because their tools are not pure\n"

    assert CommandResult(0, reported) == replay(path)


def test_first_difference_exits_with_1(path: Path) -> None:
    """It prints line, tool and place, but no value."""
    reported = (
        "line 1: lab.named: result[0]: was str of 3, is str of 11\n1 call run again, up to the first difference\n"
    )

    assert CommandResult(1, reported) == replay(path, make_engine=other)


def test_json_contains_counts_and_difference(path: Path) -> None:
    good, bad = replay(path, "--json"), replay(path, "--json", make_engine=other)

    counts = {"run": 2, "skipped": 1, "not_recorded": 0, "unreadable": 0, "error": ""}
    difference = {
        "line": 1,
        "tool": "lab.named",
        "kind": "size",
        "where": "result[0]",
        "was": "str of 3",
        "now": "str of 11",
    }
    assert (0, {"ok": True, **counts, "difference": None}) == (good.code, json.loads(good.out))
    assert (1, {"ok": False, **counts, "run": 1, "skipped": 0, "difference": difference}) == (
        bad.code,
        json.loads(bad.out),
    )


def test_calls_that_were_not_recorded_in_full_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with engine() as lent, Recording(path) as recording:
        tool = lent.tools["lab.named"]
        recording.write(tool, fingerprint(tool), (1,), ["ada"], is_secret=lambda value: True)

    assert CommandResult(0, "0 calls run again, same results\n1 not recorded in full\n") == replay(path)


def test_unreadable_lines_exit_with_2(path: Path) -> None:
    """The others are run; the first unreadable line is named."""
    path.write_bytes(b"nonsense\n" + path.read_bytes() + b'{"recording":1,')
    reported = "2 calls run again, same results\n1 skipped, because their tools are not pure\n"
    message = f"neuroscript: {path}: 2 lines are unreadable: line 1 is not JSON\n".replace(str(path), _cut(str(path)))

    assert CommandResult(2, reported, message) == replay(path)


def _cut(name: str) -> str:
    return name if len(name) <= 64 else f"{name[:64]}…"


def test_difference_takes_precedence_over_unreadable_lines(path: Path) -> None:
    path.write_bytes(b"nonsense\n" + path.read_bytes())

    assert 1 == replay(path, make_engine=other).code


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "cannot read nowhere: no such file or directory"),
        ("/", "cannot read /: is a directory"),
        ("/proc/self/mem", "cannot read /proc/self/mem: input/output error"),
    ],
    ids=["no file", "a directory", "a file that fails"],
)
def test_unreadable_file_exits_with_2(name: str, reason: str) -> None:
    """There is one line."""
    assert CommandResult(2, "", f"neuroscript: {reason}\n") == replay(name)


def test_recording_is_read_from_stdin(path: Path) -> None:
    assert CommandResult(0, replay(path).out) == replay("-", stdin=path.read_bytes())


def test_tool_output_goes_to_stderr(tmp_path: Path) -> None:
    path = recorded(tmp_path / "calls.jsonl", ("lab.says", ("hello",)))

    assert CommandResult(0, "1 call run again, same results\n", "hello\n") == replay(path)


PLUGIN = """
from neuroscript import ToolPolicy

def register(registrar):
    @registrar.toolset("mine").tool(policy=ToolPolicy(effects=("pure",)))
    def twice(number: int) -> int:
        return number * {factor}
"""


def test_tools_of_a_plugin_file_are_replayed(tmp_path: Path) -> None:
    """Without the file they are missing, and with a bug in it they differ."""
    file, path = tmp_path / "mine.py", tmp_path / "calls.jsonl"
    file.write_text(PLUGIN.format(factor=2))
    with engine() as lent, Recording(path) as recording:
        lent.load_plugin(file)
        tool = lent.tools["mine.twice"]
        recording.write(tool, fingerprint(tool), (4,), lent.call("mine.twice", (4,)))

    assert CommandResult(0, "1 call run again, same results\n") == replay(path, "-p", str(file))
    assert "line 1: mine.twice: unknown tool" == replay(path).out.splitlines()[0]
    file.write_text(PLUGIN.format(factor=3))
    assert (
        "line 1: mine.twice: result: was int, is a different value" == replay(path, "-p", str(file)).out.splitlines()[0]
    )


def test_200_damaged_recordings(path: Path) -> None:
    """Each exits with its own code and one line that says why, and never with a traceback."""
    whole, seen = path.read_bytes(), set()
    for index, data in enumerate([*damaged(whole, 150), *_cut_short(whole, 50)]):
        result = replay("-", stdin=data)
        seen.add(result.code)

        assert (index, True) == (index, result.code in (0, 1, 2) and "run again" in result.out), result
        assert "Traceback" not in result.out + result.err
        assert (result.code == 0) <= (result.err == "")
    assert {0, 1, 2} == seen


def _cut_short(data: bytes, count: int) -> list[bytes]:
    rng = random.Random(4)
    return [data[: rng.randrange(len(data))] for _ in range(count)]


def test_replay_in_a_separate_process(tmp_path: Path) -> None:
    """With the installed tools and a real shell."""
    path = tmp_path / "calls.jsonl"
    with Engine() as lent, Recording(path) as recording:
        tool = lent.tools["math.add"]
        recording.write(tool, fingerprint(tool), (1.0, 2.0), 3.0)
        recording.write(tool, fingerprint(tool), (1.0, 2.0), 4.0)

    reported = (
        "line 2: math.add: result: was float, is a different value\n2 calls run again, up to the first difference\n"
    )
    assert CommandResult(1, reported) == process("replay", str(path))
