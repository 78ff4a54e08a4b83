"""Trace files: round trips, and complete error reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from tests.workflow.traces import SHAPES, node, trace, traces

from neuroscript import Engine, SpecError, Toolset
from neuroscript.workflow import (
    Attempt,
    Node,
    Plan,
    Trace,
    load_trace,
    run,
    save_trace,
    trace_from_data,
    trace_of_json,
    trace_to_data,
)


@given(traces())
def test_trace_survives_round_trip(made: Trace) -> None:
    """As JSON, for every exact value: also bytes, times, embeddings, and maps that look like their encodings."""
    data = trace_to_data(made)
    text = json.dumps(data)

    assert made == trace_from_data(data)
    assert made == trace_of_json(text)
    assert json.dumps(data) == text  # opened for reading only


def test_run_is_saved_and_loaded(tmp_path: Path) -> None:
    """The trace of an engine with secrets masked, in an ASCII file."""
    tools = Toolset("g")

    @tools.tool()
    def double(number: int) -> dict[str, Any]:
        """Double it."""
        return {"é": number * 2, "raw": b"\0"}

    plan = Plan(name="p", nodes=(Node(name="a", tool="g.double", inputs={"number": "4"}),))
    with Engine(toolsets=[tools], plugins="none") as engine:
        done = run(engine, plan)
    save_trace(done, tmp_path / "t.json")

    assert done == load_trace(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_bytes().isascii()
    assert done.output == {"é": 8, "raw": b"\0"}


def test_files_of_cancelled_runs_are_read_as_written() -> None:
    """Earlier versions called them succeeded or failed, with a failed node for each call that had not begun."""
    error = {"code": "plan.cancelled", "message": "step.once: has not begun, because the run was cancelled"}
    failed = node("b", "a", status="failed", attempts=(Attempt(1, None, 100.0, 0.0, "plan.cancelled"),), error=error)
    earlier = trace(node("a"), failed, status="succeeded")

    assert earlier == trace_from_data(trace_to_data(earlier))
    assert ("cancelled", 1) == (trace_to_data(SHAPES["cancelled"])["status"], trace_to_data(earlier)["trace"])


class Odd:
    """A value that no file can hold."""


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param((1, 2), [1, 2], id="a tuple"),
        pytest.param({1: "a"}, {"1": "a"}, id="a key that is not a string"),
        pytest.param(float("nan"), "<float>", id="no number"),
        pytest.param([1 << 20_000], ["<int>"], id="a number without end"),
        pytest.param(Odd(), "<Odd>", id="an object"),
    ],
)
def test_unsupported_values_are_stored_as_type_names(tmp_path: Path, value: Any, kept: Any) -> None:
    """A finished run is not lost because of one value."""
    save_trace(trace(node("a", result=value)), tmp_path / "t.json")

    assert kept == load_trace(tmp_path / "t.json")["a"].result


def test_file_is_written_atomically(tmp_path: Path) -> None:
    """After a failure, the old file is unchanged and no other file is left."""
    (tmp_path / "t.json").mkdir()

    with pytest.raises(OSError):
        save_trace(SHAPES["one"], tmp_path / "t.json")

    assert [tmp_path / "t.json"] == [*tmp_path.iterdir()]


def wrong(change: Callable[[dict[str, Any]], object]) -> tuple[str, ...]:
    """Return the error for the data of a valid trace after a change."""
    data = trace_to_data(trace(node("a"), node("b", "a", status="failed")))
    change(data)
    with pytest.raises(SpecError) as caught:
        trace_from_data(data)
    return caught.value.problems


def test_error_lists_every_problem() -> None:
    """Each with its path."""

    def change(data: dict[str, Any]) -> None:
        data |= {"run": 1, "status": "skipped", "digest": "x", "seconds": 1e300, "colour": 1}
        del data["answer"]
        data["nodes"][0] |= {"name": "a b", "tol": 1, "result": {"$base64": "?"}, "needs": ["z", 1]}
        data["nodes"][1] |= {"error": {"code": 5}, "status": ["failed"]}
        data["nodes"][1]["attempts"] = [{"number": True, "item": -1, "started": "now", "seconds": 0}, 7]

    assert wrong(change) == (
        "colour: unknown key",
        "run: must be a string, got int",
        "digest: must be 64 hexadecimal digits, got str",
        "status: must be one of succeeded, failed, cancelled, got str",
        "answer: is missing",
        "seconds: must be a number of seconds within 1e+12, got float",
        "nodes[0].tol: unknown key; did you mean tool?",
        "nodes[0].name: must be a letter or _, then letters, digits, _ and -, at most 64, got str",
        "nodes[0].result: the value has an unknown format",
        "nodes[0].needs: must be a list of strings",
        "nodes[1].status: must be one of succeeded, failed, skipped, unstarted, got list",
        "nodes[1].error: must be null or an object with code and message, got dict",
        "nodes[1].attempts[0].number: must be an integer from 1, got bool",
        "nodes[1].attempts[0].item: must be null or an integer from 0, got int",
        "nodes[1].attempts[0].started: must be a number of seconds within 1e+12, got str",
        "nodes[1].attempts[0].code: is missing",
        "nodes[1].attempts[1]: must be a JSON object, got int",
    )


def test_many_problems_are_counted() -> None:
    """The first twenty are listed, and the others are counted."""
    problems = wrong(lambda data: data.update({f"key{number}": 1 for number in range(25)}))

    assert (len(problems), problems[-2:]) == (21, ("key19: unknown key", "and 5 more"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data.update(trace=2), "trace: must be 1, the supported version of the format"),
        (lambda data: data.update(nodes=None), "nodes: must be a list, got None"),
        (lambda data: data["nodes"][0].update(needs=["z"]), "nodes[0].needs: unknown node z"),
        (lambda data: data["nodes"][0].update(needs=["b"]), "nodes: the nodes depend on each other: a < b < a"),
        (lambda data: data["nodes"][1].update(name="a"), "nodes[1].name: the name is used twice"),
    ],
)
def test_invalid_graph_is_rejected(change: Callable[[dict[str, Any]], object], problem: str) -> None:
    """Duplicate names, unknown needs, and cycles."""
    assert problem in wrong(change)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "invalid JSON: line 1, column 1 is not JSON"),
        ("[]", "expected a JSON object, got list"),
        ('{"trace": 1, "trace": 1}', "invalid JSON: the JSON text contains a duplicate key"),
        ("[" * 100_000, "invalid JSON: the JSON text nests too deeply"),
        ('{"trace": NaN}', "invalid JSON: NaN is not a JSON number"),
        ('{"trace": true}', "trace: must be 1, the supported version of the format"),
        ('{"trace": 1.0}', "trace: must be 1, the supported version of the format"),
        ('{"trace": 2}', "trace: must be 1, the supported version of the format"),
    ],
)
def test_other_data_is_rejected(tmp_path: Path, text: str, problem: str) -> None:
    """With the name of the file, and none of its content."""
    file = tmp_path / "t.json"
    file.write_text(text)

    with pytest.raises(SpecError) as caught:
        load_trace(file)

    assert caught.value.sentences == (f"{file}: {problem}",)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    """In the words of the operating system."""
    with pytest.raises(SpecError) as caught:
        load_trace(tmp_path / "t.json")

    assert str(caught.value) == f"{tmp_path / 't.json'}: cannot be read: no such file or directory"


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - {"long names"}))
def test_traces_of_all_shapes_survive_round_trip(tmp_path: Path, name: str) -> None:
    """Except those with invalid node names."""
    made = attrs.evolve(SHAPES[name], answer=name)
    save_trace(made, tmp_path / "t.json")

    assert made == load_trace(tmp_path / "t.json")


def test_save_replaces_only_regular_files(tmp_path: Path) -> None:
    """A device or a pipe would be lost; a directory is reported as one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kept = trace(node("a"))
    reasons = []
    for path in (pipe, tmp_path, "."):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory") as caught:
            save_trace(kept, path)
        reasons.append(caught.value.strerror)

    assert reasons == ["it is not a regular file", "Is a directory", "Is a directory"]
    assert (pipe.is_fifo(), [each.name for each in tmp_path.iterdir()]) == (True, ["pipe"])
