"""Recordings of calls: what a line contains, what is left out, and the file."""

from __future__ import annotations

import datetime
import json
import os
import stat
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.recorded_calls import SECRET, engine, lines, record, recorded
from tests.conftest import ALL

from neuroscript import (
    ArgSpec,
    CallTimeout,
    Handle,
    LimitError,
    PolicyError,
    SpecError,
    ToolImplementation,
    ToolSpec,
)
from neuroscript.audit.recording import MAX_LINE_BYTES, Recording, decode, encode
from neuroscript.testing.replay import Replayed, replay
from neuroscript.tools.fingerprints import canonical_text, fingerprint

ROOT = Path(__file__).parents[2]


# The content of a line


def test_a_call_is_a_line_with_everything_for_a_replay(path: Path) -> None:
    """The tool, its definition and effects, the arguments in order, and the result or the code of the error."""
    with engine() as lab_engine:
        marks = {name: fingerprint(tool) for name, tool in lab_engine.tools.items()}

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


@settings(max_examples=5_000 if ALL else 40)
@given(VALUES)
def test_a_value_survives_a_round_trip(value: Any) -> None:
    """Through JSON, with its type at every level, for any keys."""
    assert canonical_text(value) == canonical_text(decode(json.loads(json.dumps(encode(value), allow_nan=False))))


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
def test_an_invalid_encoding_cannot_be_read(data: Any) -> None:
    """It would be a value that no call has had."""
    with pytest.raises(ValueError) as caught:
        decode(data)

    assert "the value has an unknown format" == str(caught.value)


# Omitted content

KEY = ArgSpec("key", "string", secret=True)


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
            "unsupported",
            id="a time of a zone with a name",
        ),
        pytest.param(
            "lab.give", (datetime.datetime(2026, 1, 1, fold=1),), {}, "unsupported", id="a time that comes twice"
        ),
        pytest.param("lab.give", (array("d", [1.0]),), {}, "unsupported", id="another array"),
        pytest.param("lab.give", ({1: 2},), {}, "unsupported", id="a key that is not UTF-8 text"),
        pytest.param("lab.give", (float("inf"),), {}, "unsupported", id="a number without an end"),
        pytest.param("lab.give", ("x" * MAX_LINE_BYTES,), {}, "size", id="more than a line may hold"),
        pytest.param("lab.odd", (2,), {"error": CallTimeout("", state="stopped")}, "host", id="a timeout"),
        pytest.param("lab.odd", (2,), {"error": LimitError("")}, "host", id="a limit"),
        pytest.param("lab.odd", (2,), {"error": PolicyError("")}, "host", id="a refusal"),
    ],
)
def test_content_that_is_secret_or_cannot_be_replayed_is_omitted(
    path: Path, name: str, values: tuple[Any, ...], end: dict[str, Any], reason: str
) -> None:
    """The line gives the reason, and contains neither arguments nor a result."""
    with engine() as lab_engine, Recording(path) as recording:
        tool = lab_engine.tools[name]
        done = recording.write(tool, fingerprint(tool), values, is_secret=lambda each: SECRET in repr(each), **end)

    assert (False, 0, 1, 0) == (done, recording.written, recording.not_recorded, recording.lost)
    assert [{"recording": 1, "tool": name, "not_recorded": reason}] == lines(path)


@pytest.mark.parametrize(
    ("arg", "value", "reason"),
    [
        (ArgSpec("x", "slice", items=ArgSpec("i", "slice_map", keys=(KEY,))), [[{"key": "k"}]], "secret"),
        (ArgSpec("x", "map", value_spec=ArgSpec("v", "map", keys=(KEY,))), {"a": {"key": "k"}}, "secret"),
        (ArgSpec("x", "any", any_of=("int", ArgSpec("m", "map", keys=(KEY,)))), {"key": "k"}, "secret"),
        (ArgSpec("x", "any", any_of=("int", "handle")), "h1", "handle"),
        (ArgSpec("x", "slice", prefix_items=("int", "handle")), [1, "h1"], "handle"),
    ],
)
def test_secret_and_handle_at_any_depth_omit_the_content(path: Path, arg: ArgSpec, value: Any, reason: str) -> None:
    made = ToolImplementation(ToolSpec("t", "g", (arg,)), lambda rt, x: None)

    with Recording(path) as recording:
        recording.write(made, fingerprint(made), (value,), result=None)

    assert [{"recording": 1, "tool": "g.t", "not_recorded": reason}] == lines(path)


def test_a_failed_search_for_secrets_omits_the_content(path: Path) -> None:
    """As if it had found one."""

    def is_secret(value: Any) -> bool:
        raise RuntimeError

    with engine() as lab_engine, Recording(path) as recording:
        record(recording, lab_engine, "lab.give", ["a"], is_secret=is_secret)

    assert [{"recording": 1, "tool": "lab.give", "not_recorded": "secret"}] == lines(path)


def test_an_omitted_secret_argument_omits_no_content(path: Path) -> None:
    """Nor does one among the keys of a map."""
    found = recorded(path, ("lab.login", ["ada"]), ("lab.connect", [{"host": "a"}]))

    assert [["ada", None], [{"host": "a"}]] == [line["args"] for line in found]


# The file


def test_a_recording_is_private_to_its_user(path: Path) -> None:
    """From its creation, for any umask."""
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
def test_a_file_that_is_not_a_recording_is_unchanged(path: Path, make: Callable[[Path], None], reason: str) -> None:
    """It is neither overwritten nor appended to."""
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
def test_a_file_that_cannot_be_created_is_reported(tmp_path: Path, name: str, text: str) -> None:
    """When the recording is created, not when a call ends."""
    with pytest.raises(SpecError, match=text):
        Recording(f"{tmp_path}/{name}")


def test_an_existing_recording_is_continued(path: Path) -> None:
    """After its last line."""
    recorded(path, ("lab.odd", [1]))
    recorded(path, ("lab.odd", [3]))

    assert [[1], [3]] == [line["args"] for line in lines(path)]


def test_a_truncated_line_affects_no_other_line(path: Path) -> None:
    """A killed process can leave half a line."""
    recorded(path, ("lab.odd", [1]), ("lab.odd", [3]))
    path.write_bytes(path.read_bytes()[:-20])

    with engine() as lab_engine, Recording(path) as recording:
        record(recording, lab_engine, "lab.odd", [5])
        assert Replayed(run=2, unreadable=1, error="line 2 is not JSON") == replay(path, lab_engine)


def test_threads_and_processes_may_write_into_one_recording(path: Path) -> None:
    """A call is one write at the end of the file, so lines do not run into each other."""
    code = (
        "import sys; from tests.audit.recorded_calls import *\n"
        "with engine() as lab_engine, Recording(sys.argv[1]) as recording:\n"
        "    for _ in range(50): record(recording, lab_engine, 'lab.give', ['x' * 20_000])"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=ROOT) for _ in range(2)]
    with engine() as lab_engine, Recording(path) as recording:

        def run() -> None:
            for _ in range(50):
                record(recording, lab_engine, "lab.give", ["x" * 20_000])

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
from tests.audit.recorded_calls import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with engine() as lab_engine, Recording(sys.argv[1]) as recording:
    for most in (-1, 400, 400, -1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, -1))
        print(record(recording, lab_engine, "lab.odd", [1]))
    print(recording.written, recording.lost)
"""


def test_a_full_disk_fails_no_call(path: Path) -> None:
    """Unwritten lines are counted, half a line too, and recording continues when there is space."""
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "True\nTrue\nFalse\nTrue\n3 1\n" == done.stdout
    with engine() as lab_engine:
        assert Replayed(run=3, unreadable=1, error="line 3 is not JSON") == replay(path, lab_engine)


def test_writing_to_a_closed_recording_is_ignored(path: Path) -> None:
    """Its descriptor may belong to another file by then; it can be closed twice."""
    with engine() as lab_engine, Recording(path) as recording:
        recording.close()

        assert not record(recording, lab_engine, "lab.odd", [1])
    assert (0, 0, 1, b"") == (recording.written, recording.not_recorded, recording.lost, path.read_bytes())
