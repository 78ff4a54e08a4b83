"""Replays of recorded calls, and the differences that they report."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.recorded_calls import PURE, SECRET, engine, lab, lines, ran, record, recorded

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    ToolCall,
    ToolFailed,
    Toolset,
    ToolSpec,
)
from neuroscript.audit.recording import MAX_LINE_BYTES, Recording
from neuroscript.testing.replay import Difference, Replayed, replay, replay_lines
from neuroscript.tools.fingerprints import fingerprint


def test_calls_of_pure_tools_are_replayed(path: Path) -> None:
    """Other calls are counted, and so are those without content."""
    ran.clear()
    recorded(
        path,
        ("lab.give", [{"a": b"x", "b": [None, True, 1.5], "$map": datetime.datetime(2026, 1, 1)}]),
        ("lab.wipe", []),
        ("lab.odd", [3]),
        ("lab.odd", [4]),
        ("lab.login", ["ada", SECRET]),
        ("lab.near", [[0.1, 2], "blob"]),
        ("lab.joined", ["-", "a", "b"]),
        ("lab.connect", [{"host": "a"}]),
    )

    with engine() as lab_engine:
        done = replay(path, lab_engine)

    assert Replayed(run=6, skipped=1, not_recorded=1) == done
    assert (True, ["wipe"]) == (done.ok, ran)


GIVEN = {"names": ["ada", "bob"], "count": 2, "zero": 0.0, "when": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}


def changed(**more: Any) -> Callable[[Any], Any]:
    return lambda value: {**value, **more}


@pytest.mark.parametrize(
    ("give", "difference", "text"),
    [
        pytest.param(
            changed(names=["ada", "eve"]),
            ("value", "result['names'][1]", "str of 3", "str of 3"),
            "result['names'][1]: was str of 3, is a different value",
            id="a value",
        ),
        pytest.param(
            changed(names=["ada", "barbara"]),
            ("size", "result['names'][1]", "str of 3", "str of 7"),
            "result['names'][1]: was str of 3, is str of 7",
            id="a string of another length",
        ),
        pytest.param(
            changed(names=["ada"]),
            ("size", "result['names']", "list of 2", "list of 1"),
            "result['names']: was list of 2, is list of 1",
            id="a list of another length",
        ),
        pytest.param(
            changed(count=2.0),
            ("type", "result['count']", "int", "float"),
            "result['count']: was int, is float",
            id="an int that is a float",
        ),
        pytest.param(
            changed(count=True),
            ("type", "result['count']", "int", "bool"),
            "result['count']: was int, is bool",
            id="an int that is a bool",
        ),
        pytest.param(
            changed(zero=-0.0),
            ("value", "result['zero']", "float", "float"),
            "result['zero']: was float, is a different value",
            id="another zero",
        ),
        pytest.param(
            changed(when=datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))),
            ("value", "result['when']", "datetime", "datetime"),
            "result['when']: was datetime, is a different value",
            id="the same time in another zone",
        ),
        pytest.param(
            changed(more=[1]),
            ("key", "result['more']", "nothing", "list of 1"),
            "result['more']: was nothing, is list of 1",
            id="a key more",
        ),
        pytest.param(
            lambda value: {key: each for key, each in value.items() if key != "count"},
            ("key", "result['count']", "int", "nothing"),
            "result['count']: was int, is nothing",
            id="a key less",
        ),
        pytest.param(
            lambda value: None, ("type", "result", "dict of 4", "None"), "result: was dict of 4, is None", id="nothing"
        ),
        pytest.param(
            lambda value: 1 / 0, ("code", "", "ok", "tool.failed"), "was ok, is tool.failed", id="an error"
        ),
    ],
)  # fmt: skip
def test_the_first_difference_is_reported(
    path: Path, give: Callable[[Any], Any], difference: tuple[Any, ...], text: str
) -> None:
    """With its line, tool and path; types and sizes are included, values are not."""
    recorded(path, ("lab.odd", [1]), ("lab.give", [GIVEN]), ("lab.give", [GIVEN]), ("lab.odd", [1]))
    what, where, was, now = difference

    with engine(lab(give)) as lab_engine:
        done = replay(path, lab_engine)

    assert Replayed(run=2, difference=Difference(2, "lab.give", what, where, was, now)) == done
    assert (f"line 2: lab.give: {text}", False) == (str(done.difference), done.ok)


def test_the_order_of_keys_is_no_difference(path: Path) -> None:
    """Two maps are one where they hold the same."""
    recorded(path, ("lab.give", [GIVEN]))

    with engine(lab(lambda value: dict(reversed(value.items())))) as lab_engine:
        assert Replayed(run=1) == replay(path, lab_engine)


def test_a_missing_error_is_a_difference(path: Path) -> None:
    """So is an error with another code."""
    with engine() as lab_engine, Recording(path) as recording:
        tool = lab_engine.tools["lab.give"]
        recording.write(tool, fingerprint(tool), (1,), error=ToolFailed("", code="lab.\x1b[2J" + "x" * 99))
        done = replay(path, lab_engine)

    assert f"line 1: lab.give: was lab.\\x1b[2J{'x' * 56}…, is ok" == str(done.difference)


def test_another_definition_is_a_difference(path: Path) -> None:
    """The call is not made, because the recorded tool was a different one."""
    recorded(path, ("lab.wipe", []), ("lab.give", [1]))

    with engine(lab(description="Give it back.")) as lab_engine:
        done = replay(path, lab_engine)

    assert Replayed(skipped=1, difference=Difference(2, "lab.give", "definition")) == done
    assert "line 2: lab.give: its definition differs from the recorded one" == str(done.difference)


def test_a_missing_tool_is_a_difference(path: Path) -> None:
    """A tool that is not pure is not looked up."""
    recorded(path, ("lab.wipe", []), ("lab.odd", [1]))

    with engine(Toolset("none")) as lab_engine:
        done = replay(path, lab_engine)

    assert Replayed(skipped=1, difference=Difference(2, "lab.odd", "tool")) == done
    assert "line 2: lab.odd: unknown tool" == str(done.difference)


def test_a_replay_has_no_more_authority_than_its_engine(path: Path) -> None:
    """It is a call like any other."""
    recorded(path, ("lab.odd", [1]))

    with engine(policy=ExecutionPolicy(deny=("lab.*",))) as lab_engine:
        done = replay(path, lab_engine)

    assert "line 1: lab.odd: was ok, is policy.denied" == str(done.difference)


def test_only_pure_tools_run_for_any_recording(path: Path) -> None:
    """The installed tools decide that, not the file."""
    ran.clear()
    with engine() as lab_engine:
        line = {
            "recording": 1,
            "tool": "lab.wipe",
            "fingerprint": fingerprint(lab_engine.tools["lab.wipe"]),
            "effects": ["pure"],
            "args": [],
            "result": "wiped",
        }
        path.write_text(json.dumps(line))

        done = replay(path, lab_engine)

    assert (Replayed(unreadable=1, error="line 1 declares lab.wipe as pure, which it is not"), []) == (done, ran)


GOOD = {"recording": 1, "tool": "lab.odd", "fingerprint": "f", "effects": [], "args": [1], "result": 1}
PURELY = {**GOOD, "effects": ["pure"]}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param(b"\x89PNG\r", "is not UTF-8 text", id="a picture"),
        pytest.param(b"\0" * 50, "is not JSON", id="zeros"),
        pytest.param(b"nonsense", "is not JSON", id="words"),
        pytest.param(b"[" * 100_000, "cannot be read: the JSON text nests too deeply", id="brackets without an end"),
        pytest.param(b"9" * 5_000, "cannot be read: a number in the JSON text is too long", id="digits without an end"),
        pytest.param(b'{"a": 1, "a": 2}', "cannot be read: the JSON text contains a duplicate key", id="a key twice"),
        pytest.param(b'{"a": NaN}', "cannot be read: NaN is not a JSON number", id="no number"),
        pytest.param(b"[]", "is not a recorded call", id="a list"),
        pytest.param({"a": 1}, "is not a recorded call", id="another object"),
        pytest.param({**GOOD, "recording": 2}, "has format version 2, but only 1 is supported", id="a later form"),
        pytest.param({**GOOD, "recording": "1"}, "is not a recorded call", id="a form that is a string"),
        pytest.param({**GOOD, "more": 1}, "is not a recorded call", id="a key more"),
        pytest.param({**GOOD, "code": "x"}, "is not a recorded call", id="a result and a code"),
        pytest.param({**GOOD, "tool": 5}, "is not a recorded call", id="a tool that is a number"),
        pytest.param({**GOOD, "args": {"number": 1}}, "is not a recorded call", id="arguments by name"),
        pytest.param({**GOOD, "effects": "pure"}, "is not a recorded call", id="effects as a string"),
        pytest.param({**GOOD, "fingerprint": None}, "is not a recorded call", id="no fingerprint"),
        pytest.param(
            {"recording": 1, "tool": "a", "not_recorded": "secret", "args": []}, "is not a recorded call", id="both"
        ),
        pytest.param({**PURELY, "args": [{"$base64": "?"}]}, "contains a value that cannot be read", id="not base64"),
        pytest.param({**PURELY, "result": {"$floats": [1e99]}}, "contains a value that cannot be read", id="no floats"),
        pytest.param(b"x" * (MAX_LINE_BYTES + 5), f"has more than {MAX_LINE_BYTES} bytes", id="a line without an end"),
    ],
)
def test_a_line_that_is_no_recorded_call_is_counted(path: Path, line: Any, fault: str) -> None:
    """The first is reported; calls before and after it run."""
    recorded(path, ("lab.odd", [1]))
    good = path.read_bytes()
    bad = line if isinstance(line, bytes) else json.dumps(line).encode()
    path.write_bytes(good + b"\n \r\n" + bad + b"\n" + bad + b"\n" + good)

    with engine() as lab_engine:
        assert Replayed(run=2, unreadable=2, error=f"line 4 {fault}") == replay(path, lab_engine)


def test_a_truncated_last_line_is_reported(path: Path) -> None:
    """The calls before it have run."""
    recorded(path, ("lab.odd", [1]), ("lab.odd", [3]))
    path.write_bytes(path.read_bytes()[:-9])

    with engine() as lab_engine:
        assert Replayed(run=1, unreadable=1, error="line 2 is truncated") == replay(path, lab_engine)


def test_a_last_line_without_a_line_end_is_valid(path: Path) -> None:
    """An editor may have removed it."""
    recorded(path, ("lab.odd", [1]))
    path.write_bytes(path.read_bytes().rstrip())

    with engine() as lab_engine:
        assert Replayed(run=1) == replay(path, lab_engine)


@pytest.mark.parametrize("depth", [60, 300, 900, 990, 5_000])
def test_values_that_nest_are_read_or_refused(path: Path, depth: int) -> None:
    """However deep, and wherever the stack ends."""
    recorded(path, ("lab.give", [1]))
    line = lines(path)[0]
    nested = "[" * depth + "]" * depth
    path.write_text(json.dumps({**line, "args": "ARGS"}).replace('"ARGS"', f"[{nested}]"))

    with engine() as lab_engine:
        done = replay(path, lab_engine)

    assert (1, 0) == (done.run, done.unreadable) or (0, 1) == (done.run, done.unreadable)
    assert not done.ok


@given(st.data())
def test_a_damaged_recording_raises_no_error(data: st.DataObject) -> None:
    """For any changed, removed or inserted bytes."""
    with engine() as lab_engine:
        tool = lab_engine.tools["lab.odd"]
        line = json.dumps({**PURELY, "fingerprint": fingerprint(tool)}).encode() + b"\n"
        text = bytearray(line * 3)
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(text)))
            text[start : start + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        file = iter(bytes(text).splitlines(keepends=True))
        done = replay_lines(lambda most: next(file, b""), lab_engine)

    assert done.run + done.skipped + done.unreadable + (done.difference is not None) > 0


def test_a_missing_file_is_an_os_error(path: Path) -> None:
    """The caller knows which file it requested."""
    with engine() as lab_engine, pytest.raises(FileNotFoundError):
        replay(path, lab_engine)


def test_examples_of_installed_pure_tools_give_the_same_results(path: Path) -> None:
    """So tools that are declared pure are pure."""
    calls = 0
    with Engine() as lab_engine, Recording(path) as recording:
        for name, tool in lab_engine.tools.items():
            for example in tool.spec.examples if "pure" in tool.policy.effects else ():
                done = lab_engine.execute(ToolCall(name, example.args))
                if done.error is None or not done.error.code.startswith(("arg.", "coercion.")):
                    calls += 1
                    record(recording, lab_engine, name, example.args)

    with Engine() as lab_engine:
        done_again = replay(path, lab_engine)

    assert Replayed(run=recording.written, not_recorded=recording.not_recorded) == done_again
    assert calls == recording.written + recording.not_recorded
    assert recording.written > 100


def test_the_rules_of_arguments_reach_further_values(path: Path) -> None:
    """The last one of a variadic tool is that of each further value."""
    key = ArgSpec("key", ArgType.STRING, required=False, secret=True)
    rule = ArgSpec("doors", ArgType.MAP, keys=(ArgSpec("host", ArgType.STRING), key))
    tools = Toolset("lab")
    tools.add(ToolSpec("doors", "lab", (rule,), variadic=True), lambda rt, *doors: len(doors), PURE)

    found = recorded(path, ("lab.doors", [{"host": "a"}, {"host": "b", "key": SECRET}]), tools=tools)

    assert [{"recording": 1, "tool": "lab.doors", "not_recorded": "secret"}] == found


def test_sequences_of_any_kind_are_written(path: Path) -> None:
    """The call pipeline passes a tuple; a recorded call has a list."""
    given: Sequence[Any] = [3]
    with engine() as lab_engine, Recording(path) as recording:
        tool = lab_engine.tools["lab.odd"]

        assert recording.write(tool, fingerprint(tool), given, 3)
        assert Replayed(run=1) == replay(path, lab_engine)
