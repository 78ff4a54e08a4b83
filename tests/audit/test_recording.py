"""Recordings: what is written and what is left out, by whom they can be read, and what a replay says of them."""

from __future__ import annotations

import datetime
import json
import os
import stat
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import (
    ArgSpec,
    ArgType,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Handle,
    LimitError,
    PolicyError,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    bind,
    bind_named,
)
from neuroscript.audit.recording import MAX_LINE_BYTES, Recording, read, written
from neuroscript.testing.replay import Difference, Replayed, replay, replayed
from neuroscript.tools.fingerprints import canonical_text, fingerprint

ROOT = Path(__file__).parents[2]
PURE = ToolPolicy(effects=("pure",))
ran: list[str] = []


def lab(give: Callable[[Any], Any] = lambda value: value, description: str = "") -> Toolset:
    """Return tools for every kind of value.

    Args:
        give: What ``lab.give`` makes of its argument; its definition says nothing of that.
    """
    tools = Toolset("lab")

    def add(name: str, args: tuple[ArgSpec, ...], func: Callable[..., Any], **more: Any) -> None:
        policy = more.pop("policy", PURE)
        tools.add(ToolSpec(name, "lab", args, return_nullable=True, **more), func, policy)

    def wipe(rt: Any) -> str:
        ran.append("wipe")
        return "wiped"

    def odd(rt: Any, number: int) -> int:
        if number % 2:
            return number
        raise ToolFailed("it is even", code="lab.even")

    add(
        "give", (ArgSpec("value", ArgType.ANY, required=False),), lambda rt, value: give(value), description=description
    )
    add("odd", (ArgSpec("number", ArgType.INT),), odd)
    add("wipe", (), wipe, policy=ToolPolicy(effects=("deletes",)))
    add("login", (ArgSpec("name", ArgType.STRING), ArgSpec("password", ArgType.STRING, required=False, secret=True)),
        lambda rt, name, password: name)  # fmt: skip
    add(
        "connect",
        (ArgSpec("to", ArgType.MAP, keys=(ArgSpec("host", ArgType.STRING), ArgSpec("key", ArgType.STRING, required=False, secret=True))),),
        lambda rt, to: to["host"],
    )  # fmt: skip
    add("hold", (ArgSpec("thing", ArgType.HANDLE),), lambda rt, thing: thing)
    add("near", (ArgSpec("vector", ArgType.EMBEDDING), ArgSpec("data", ArgType.BLOB)), lambda rt, vector, data: vector)
    add(
        "joined",
        (ArgSpec("separator", ArgType.STRING), ArgSpec("parts", ArgType.STRING, secret=False)),
        lambda rt, separator, *parts: separator.join(parts),
        variadic=True,
    )
    return tools


def engine(tools: Toolset | None = None, **how: Any) -> Engine:
    """Return an engine with the tools of the lab alone."""
    return Engine(toolsets=(lab() if tools is None else tools,), plugins="none", **how)


def record(recording: Recording, lent: Engine, name: str, args: Any = (), **how: Any) -> bool:
    """Make a call, and write it down as the engine's line does when the call has ended."""
    tool = lent.tools[name]
    values = bind_named(tool.spec, args) if isinstance(args, Mapping) else bind(tool.spec, args)
    done = lent.execute(ToolCall(name, args))
    return recording.write(tool, fingerprint(tool), values, done.value, error=done.error, **how)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def recorded(path: Path, *calls: tuple[str, Any], tools: Toolset | None = None) -> list[dict[str, Any]]:
    """Record calls and return the lines."""
    with engine(tools) as lent, Recording(path) as recording:
        for name, args in calls:
            record(recording, lent, name, args)
    return lines(path)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# What a line holds


def test_a_call_is_a_line_with_all_that_it_takes_to_run_it_again(path: Path) -> None:
    """The tool, its definition and effects, the arguments in order, and the result or the code of the error."""
    with engine() as lent:
        marks = {name: fingerprint(tool) for name, tool in lent.tools.items()}

    def line(name: str, effects: list[str], args: list[Any], **end: Any) -> dict[str, Any]:
        return {"recording": 1, "tool": name, "fingerprint": marks[name], "effects": effects, "args": args, **end}

    assert [
        line("lab.give", ["pure"], [{"a": [1, 2.0]}], result={"a": [1, 2.0]}),
        line("lab.odd", ["pure"], [3], result=3),
        line("lab.odd", ["pure"], [4], code="lab.even"),
        line("lab.wipe", ["deletes"], [], result="wiped"),
        line("lab.joined", ["pure"], ["-", "a", "b"], result="a-b"),
        line("lab.login", ["pure"], ["ada", None], result="ada"),
    ] == recorded(
        path,
        ("lab.give", [{"a": [1, 2.0]}]),
        ("lab.odd", ["3"]),
        ("lab.odd", {"number": 4}),
        ("lab.wipe", []),
        ("lab.joined", ["-", "a", "b"]),
        ("lab.login", ["ada"]),
    )


ZONES = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, seconds=7))])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.datetimes(timezones=ZONES).map(lambda time: time.replace(fold=0)),
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)).map(lambda floats: array("f", floats)),
)
KEYS = st.one_of(st.sampled_from(["$base64", "$map", "$datetime", "$floats", "$"]), st.text(max_size=3))
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3))


@given(VALUES)
def test_a_value_comes_back_as_it_is(value: Any) -> None:
    """Through JSON, with its type at every level, whatever its keys look like."""
    assert canonical_text(value) == canonical_text(read(json.loads(json.dumps(written(value), allow_nan=False))))


@pytest.mark.parametrize(
    "data",
    [
        {"$base64": "x"},
        {"$base64": "é"},
        {"$base64": 5},
        {"$datetime": "today"},
        {"$datetime": 5},
        {"$floats": ["a"]},
        {"$floats": [1e300]},
        {"$floats": 5},
        {"$map": {"a": 1}},
        {"$map": []},
        {"$other": 1},
        {"$": 1},
    ],
    ids=str,
)
def test_what_no_value_is_written_like_can_not_be_read(data: Any) -> None:
    """It would be a value that no call has had."""
    with pytest.raises(ValueError) as caught:
        read(data)

    assert "the value has an unknown format" == str(caught.value)


# What is left out

SECRET = "hunter2-93b1"


@pytest.mark.parametrize(
    ("name", "values", "end", "reason"),
    [
        pytest.param("lab.login", ("ada", SECRET), {}, "secret", id="a secret argument"),
        pytest.param("lab.connect", ({"host": "a", "key": SECRET},), {}, "secret", id="a secret key"),
        pytest.param("lab.give", ({"a": [SECRET]},), {}, "secret", id="a secret of the host's in an argument"),
        pytest.param("lab.give", (1,), {"result": [SECRET]}, "secret", id="a secret of the host's in a result"),
        pytest.param("lab.hold", ("h1",), {}, "handle", id="a handle"),
        pytest.param("lab.give", ([Handle("h1")],), {}, "handle", id="a handle anywhere"),
        pytest.param("lab.give", (1,), {"result": Handle("h1")}, "handle", id="a handle as the result"),
        pytest.param(
            "lab.give",
            (datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), "here")),),
            {},
            "form",
            id="a time of a zone with a name",
        ),
        pytest.param("lab.give", (datetime.datetime(2026, 1, 1, fold=1),), {}, "form", id="a time that comes twice"),
        pytest.param("lab.give", (array("d", [1.0]),), {}, "form", id="another array"),
        pytest.param("lab.give", ({1: 2},), {}, "form", id="a key that is not UTF-8 text"),
        pytest.param("lab.give", (float("inf"),), {}, "form", id="a number without an end"),
        pytest.param("lab.give", ("x" * MAX_LINE_BYTES,), {}, "size", id="more than a line may hold"),
        pytest.param("lab.odd", (2,), {"error": CallTimeout("", state="stopped")}, "host", id="a timeout"),
        pytest.param("lab.odd", (2,), {"error": LimitError("")}, "host", id="a limit"),
        pytest.param("lab.odd", (2,), {"error": PolicyError("")}, "host", id="a refusal"),
    ],
)
def test_what_could_not_be_run_again_or_is_secret_is_left_out(
    path: Path, name: str, values: tuple[Any, ...], end: dict[str, Any], reason: str
) -> None:
    """The line says why; it holds neither arguments nor a result."""
    with engine() as lent, Recording(path) as recording:
        tool = lent.tools[name]
        done = recording.write(tool, fingerprint(tool), values, is_secret=lambda each: SECRET in repr(each), **end)

    assert (False, 0, 1, 0) == (done, recording.written, recording.left_out, recording.lost)
    assert [{"recording": 1, "tool": name, "left_out": reason}] == lines(path)


def test_a_look_for_secrets_that_fails_has_found_one(path: Path) -> None:
    """A gate fails closed."""

    def is_secret(value: Any) -> bool:
        raise RuntimeError

    with engine() as lent, Recording(path) as recording:
        record(recording, lent, "lab.give", ["a"], is_secret=is_secret)

    assert [{"recording": 1, "tool": "lab.give", "left_out": "secret"}] == lines(path)


def test_a_secret_argument_that_is_not_given_keeps_no_call_out(path: Path) -> None:
    """Nor does one among the keys of a map."""
    found = recorded(path, ("lab.login", ["ada"]), ("lab.connect", [{"host": "a"}]))

    assert [["ada", None], [{"host": "a"}]] == [line["args"] for line in found]


# The file


def test_a_recording_is_for_its_user_alone(path: Path) -> None:
    """From the moment when it is made, whatever the process lets others do with new files."""
    before = os.umask(0)
    try:
        Recording(path).close()
    finally:
        os.umask(before)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def make_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def make_link(path: Path) -> None:
    (path.parent / "target").touch(0o600)
    path.symlink_to("target")


def make_open(path: Path) -> None:
    path.touch()
    path.chmod(0o640)


def make_notes(path: Path) -> None:
    path.touch(0o600)
    path.write_text('{"notes": "of mine"}')


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "is a directory"),
        (make_pipe, "it is not a regular file"),
        (make_link, "it is a symbolic link; use the path of the file itself"),
        (make_open, "other users can open it; choose another file or run chmod 600"),
        (make_notes, "it is not a recording"),
    ],
    ids=["a directory", "a pipe", "a link", "a file for others", "a file of something else"],
)
def test_what_is_no_recording_is_left_as_it_is(path: Path, make: Callable[[Path], None], reason: str) -> None:
    """Neither overwritten nor added to."""
    make(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(SpecError) as caught:
        Recording(path)

    assert [reason] == list(caught.value.problems)
    assert before == (path.read_bytes() if path.is_file() else None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nowhere/calls.jsonl", "^recording .*no such file or directory$"),
        ("a\0b", "^Recording: path must be a path without "),
    ],
    ids=["no directory", "no name"],
)
def test_a_file_that_can_not_be_made_is_said(tmp_path: Path, name: str, text: str) -> None:
    """When the recording is made, and not when a call ends."""
    with pytest.raises(SpecError, match=text):
        Recording(f"{tmp_path}/{name}")


def test_a_recording_is_gone_on_with(path: Path) -> None:
    """Behind what it holds."""
    recorded(path, ("lab.odd", [1]))
    recorded(path, ("lab.odd", [3]))

    assert [[1], [3]] == [line["args"] for line in lines(path)]


def test_a_line_that_was_cut_off_costs_no_other(path: Path) -> None:
    """A process that was killed while it wrote left half of one."""
    recorded(path, ("lab.odd", [1]), ("lab.odd", [3]))
    path.write_bytes(path.read_bytes()[:-20])

    with engine() as lent, Recording(path) as recording:
        record(recording, lent, "lab.odd", [5])
        assert Replayed(run=2, unreadable=1, fault="line 2 is not JSON") == replay(path, lent)


def test_threads_and_processes_may_write_into_one_recording(path: Path) -> None:
    """A call is one write at the end of the file, so lines do not run into each other."""
    code = (
        "import sys; from pathlib import Path; from tests.audit.test_recording import *\n"
        "with engine() as lent, Recording(sys.argv[1]) as recording:\n"
        "    for _ in range(50): record(recording, lent, 'lab.give', ['x' * 20_000])"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT) for _ in range(2)]
    with engine() as lent, Recording(path) as recording:

        def run() -> None:
            for _ in range(50):
                record(recording, lent, "lab.give", ["x" * 20_000])

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [0, 0] == [other.wait(60) for other in others]
        assert 200 == recording.written

    assert [["x" * 20_000]] * 300 == [line["args"] for line in lines(path)]


FULL = """
import resource, signal, sys
from tests.audit.test_recording import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with engine() as lent, Recording(sys.argv[1]) as recording:
    for most in (-1, 400, 400, -1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, -1))
        print(record(recording, lent, "lab.odd", [1]))
    print(recording.written, recording.lost)
"""


def test_a_full_disk_fails_no_call(path: Path) -> None:
    """What could not be written is counted, half a line too, and when there is room again it goes on."""
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "True\nTrue\nFalse\nTrue\n3 1\n" == done.stdout
    with engine() as lent:
        assert Replayed(run=3, unreadable=1, fault="line 3 is not JSON") == replay(path, lent)


def test_what_is_written_into_a_closed_recording_is_lost(path: Path) -> None:
    """And nowhere else, for its descriptor may be another file by then; it may be closed twice."""
    with engine() as lent, Recording(path) as recording:
        recording.close()

        assert not record(recording, lent, "lab.odd", [1])
    assert (0, 0, 1, b"") == (recording.written, recording.left_out, recording.lost, path.read_bytes())


# Replays


def test_calls_of_pure_tools_are_run_again(path: Path) -> None:
    """All others are counted, and so are those that were left out."""
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

    with engine() as lent:
        done = replay(path, lent)

    assert Replayed(run=6, skipped=1, left_out=1) == done
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
            id="a text of another length",
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
def test_the_first_difference_is_told(
    path: Path, give: Callable[[Any], Any], difference: tuple[Any, ...], text: str
) -> None:
    """With its line, its tool and its place; types and sizes of values, and none of them."""
    recorded(path, ("lab.odd", [1]), ("lab.give", [GIVEN]), ("lab.give", [GIVEN]), ("lab.odd", [1]))
    what, where, was, now = difference

    with engine(lab(give)) as lent:
        done = replay(path, lent)

    assert Replayed(run=2, difference=Difference(2, "lab.give", what, where, was, now)) == done
    assert (f"line 2: lab.give: {text}", False) == (str(done.difference), done.ok)


def test_the_order_of_keys_is_no_difference(path: Path) -> None:
    """Two maps are one where they hold the same."""
    recorded(path, ("lab.give", [GIVEN]))

    with engine(lab(lambda value: dict(reversed(value.items())))) as lent:
        assert Replayed(run=1) == replay(path, lent)


def test_an_error_that_has_gone_is_a_difference(path: Path) -> None:
    """And so is one of another code."""
    with engine() as lent, Recording(path) as recording:
        tool = lent.tools["lab.give"]
        recording.write(tool, fingerprint(tool), (1,), error=ToolFailed("", code="lab.\x1b[2J" + "x" * 99))
        done = replay(path, lent)

    assert f"line 1: lab.give: was lab.\\x1b[2J{'x' * 56}…, is ok" == str(done.difference)


def test_another_definition_is_a_difference(path: Path) -> None:
    """Nothing is run then: what was recorded was another tool."""
    recorded(path, ("lab.wipe", []), ("lab.give", [1]))

    with engine(lab(description="Give it back.")) as lent:
        done = replay(path, lent)

    assert Replayed(skipped=1, difference=Difference(2, "lab.give", "definition")) == done
    assert "line 2: lab.give: its definition differs from the recorded one" == str(done.difference)


def test_a_tool_that_has_gone_is_a_difference(path: Path) -> None:
    """Of a tool that is not pure nothing is asked."""
    recorded(path, ("lab.wipe", []), ("lab.odd", [1]))

    with engine(Toolset("none")) as lent:
        done = replay(path, lent)

    assert Replayed(skipped=1, difference=Difference(2, "lab.odd", "tool")) == done
    assert "line 2: lab.odd: unknown tool" == str(done.difference)


def test_a_replay_has_no_more_authority_than_its_engine(path: Path) -> None:
    """It is a call like any other."""
    recorded(path, ("lab.odd", [1]))

    with engine(policy=ExecutionPolicy(deny=("lab.*",))) as lent:
        done = replay(path, lent)

    assert "line 1: lab.odd: was ok, is policy.denied" == str(done.difference)


def test_nothing_but_a_pure_tool_runs_whatever_a_recording_says(path: Path) -> None:
    """Its tools are asked what they do, and not the file."""
    ran.clear()
    with engine() as lent:
        line = {
            "recording": 1,
            "tool": "lab.wipe",
            "fingerprint": fingerprint(lent.tools["lab.wipe"]),
            "effects": ["pure"],
            "args": [],
            "result": "wiped",
        }
        path.write_text(json.dumps(line))

        done = replay(path, lent)

    assert (Replayed(unreadable=1, fault="line 1 declares lab.wipe as pure, which it is not"), []) == (done, ran)


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
        pytest.param({**GOOD, "recording": "1"}, "is not a recorded call", id="a form that is a text"),
        pytest.param({**GOOD, "more": 1}, "is not a recorded call", id="a key more"),
        pytest.param({**GOOD, "code": "x"}, "is not a recorded call", id="a result and a code"),
        pytest.param({**GOOD, "tool": 5}, "is not a recorded call", id="a tool that is a number"),
        pytest.param({**GOOD, "args": {"number": 1}}, "is not a recorded call", id="arguments by name"),
        pytest.param({**GOOD, "effects": "pure"}, "is not a recorded call", id="effects as a text"),
        pytest.param({**GOOD, "fingerprint": None}, "is not a recorded call", id="no fingerprint"),
        pytest.param(
            {"recording": 1, "tool": "a", "left_out": "secret", "args": []}, "is not a recorded call", id="both"
        ),
        pytest.param({**PURELY, "args": [{"$base64": "?"}]}, "contains a value that cannot be read", id="not base64"),
        pytest.param({**PURELY, "result": {"$floats": [1e99]}}, "contains a value that cannot be read", id="no floats"),
        pytest.param(b"x" * (MAX_LINE_BYTES + 5), f"has more than {MAX_LINE_BYTES} bytes", id="a line without an end"),
    ],
)
def test_a_line_that_is_no_recorded_call_is_counted(path: Path, line: Any, fault: str) -> None:
    """The first is told of; what stands before and behind it is run."""
    recorded(path, ("lab.odd", [1]))
    good = path.read_bytes()
    bad = line if isinstance(line, bytes) else json.dumps(line).encode()
    path.write_bytes(good + b"\n \r\n" + bad + b"\n" + bad + b"\n" + good)

    with engine() as lent:
        assert Replayed(run=2, unreadable=2, fault=f"line 4 {fault}") == replay(path, lent)


def test_a_last_line_that_is_cut_off_is_said(path: Path) -> None:
    """What stands before it was run."""
    recorded(path, ("lab.odd", [1]), ("lab.odd", [3]))
    path.write_bytes(path.read_bytes()[:-9])

    with engine() as lent:
        assert Replayed(run=1, unreadable=1, fault="line 2 is truncated") == replay(path, lent)


def test_a_last_line_without_its_end_is_a_line(path: Path) -> None:
    """An editor may have left that out."""
    recorded(path, ("lab.odd", [1]))
    path.write_bytes(path.read_bytes().rstrip())

    with engine() as lent:
        assert Replayed(run=1) == replay(path, lent)


@pytest.mark.parametrize("depth", [60, 300, 900, 990, 5_000])
def test_values_that_nest_are_read_or_refused(path: Path, depth: int) -> None:
    """However deep, and wherever the stack ends."""
    recorded(path, ("lab.give", [1]))
    line = lines(path)[0]
    nested = "[" * depth + "]" * depth
    path.write_text(json.dumps({**line, "args": "ARGS"}).replace('"ARGS"', f"[{nested}]"))

    with engine() as lent:
        done = replay(path, lent)

    assert (1, 0) == (done.run, done.unreadable) or (0, 1) == (done.run, done.unreadable)
    assert not done.ok


@given(st.data())
def test_a_damaged_recording_ends_in_no_error(data: st.DataObject) -> None:
    """Whatever bytes are changed, cut out or put in."""
    with engine() as lent:
        tool = lent.tools["lab.odd"]
        line = json.dumps({**PURELY, "fingerprint": fingerprint(tool)}).encode() + b"\n"
        text = bytearray(line * 3)
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(text)))
            text[start : start + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        file = iter(bytes(text).splitlines(keepends=True))
        done = replayed(lambda most: next(file, b""), lent)

    assert done.run + done.skipped + done.unreadable + (done.difference is not None) > 0


def test_a_file_that_is_not_there_is_an_os_error(path: Path) -> None:
    """The caller knows which one it asked for."""
    with engine() as lent, pytest.raises(FileNotFoundError):
        replay(path, lent)


def test_every_example_of_an_installed_pure_tool_gives_what_it_gave(path: Path) -> None:
    """Which says as much of the tools as of recordings: what is called pure is pure."""
    calls = 0
    with Engine() as lent, Recording(path) as recording:
        for name, tool in lent.tools.items():
            for example in tool.spec.examples if "pure" in tool.policy.effects else ():
                done = lent.execute(ToolCall(name, example.args))
                if done.error is None or not done.error.code.startswith(("arg.", "coercion.")):
                    calls += 1
                    record(recording, lent, name, example.args)

    with Engine() as lent:
        done_again = replay(path, lent)

    assert Replayed(run=recording.written, left_out=recording.left_out) == done_again
    assert calls == recording.written + recording.left_out
    assert recording.written > 100


def test_the_rules_of_arguments_reach_further_values(path: Path) -> None:
    """The last one of a variadic tool is that of each further value."""
    key = ArgSpec("key", ArgType.STRING, required=False, secret=True)
    rule = ArgSpec("doors", ArgType.MAP, keys=(ArgSpec("host", ArgType.STRING), key))
    tools = Toolset("lab")
    tools.add(ToolSpec("doors", "lab", (rule,), variadic=True), lambda rt, *doors: len(doors), PURE)

    found = recorded(path, ("lab.doors", [{"host": "a"}, {"host": "b", "key": SECRET}]), tools=tools)

    assert [{"recording": 1, "tool": "lab.doors", "left_out": "secret"}] == found


def test_sequences_of_any_kind_are_written(path: Path) -> None:
    """The line hands on a tuple; a stored call has a list."""
    given: Sequence[Any] = [3]
    with engine() as lent, Recording(path) as recording:
        tool = lent.tools["lab.odd"]

        assert recording.write(tool, fingerprint(tool), given, 3)
        assert Replayed(run=1) == replay(path, lent)
