"""``neuroscript trace``: traces are shown, drawn and compared, and invalid files are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.cli.conftest import CommandResult, command
from tests.cli.test_never_a_traceback import damaged
from tests.cli.test_terminal import SEQUENCE, seen
from tests.workflow.drawn import Drawn
from tests.workflow.traces import node, trace

from neuroscript.cli.terminal.exit_codes import FAILED, OK, USAGE
from neuroscript.workflow import Attempt, Trace, save_trace, trace_diff, trace_svg, trace_text, trace_to_data

RUN = trace(
    node("fetch", result=[1, 2], arguments={"url": "x"}),
    node(
        "read", "fetch", status="failed", attempts=(Attempt(1, None, 101, 0.5, "x.y"), Attempt(2, None, 102, 1, "x.y"))
    ),
    node("tell", "read", status="skipped", reason="its condition does not hold"),
    name="report",
    status="failed",
    error={"code": "plan.failed", "message": "read failed"},
)

SHOWN = """\
report: failed, 2 s, run r1

node   status     tool  attempts  start    took    outcome
fetch  succeeded  g.t   1         +500 ms  250 ms  [1, 2]
read   failed     g.t   2         +1 s     2 s     tool.failed: g.t: it broke
tell   skipped    g.t                              its condition does not hold

error  plan.failed: read failed
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A trace in a file."""
    return saved(RUN, tmp_path / "run.json")


def saved(made: Trace, path: Path) -> Path:
    """Return the file to which a trace was written."""
    save_trace(made, path)
    return path


def test_trace_is_shown_as_a_table(file: Path) -> None:
    """It contains the status, each node and the output, as in Python."""
    assert CommandResult(OK, SHOWN) == command("trace", "show", str(file), make_engine=None)
    assert trace_text(RUN) == SHOWN.replace("error  ", "error: ").rstrip("\n")


def test_trace_is_read_from_stdin(file: Path) -> None:
    assert CommandResult(OK, SHOWN) == command("trace", "show", "-", stdin=file.read_bytes())


def test_json_prints_the_trace(file: Path) -> None:
    """It is one line, as in the file."""
    result = command("trace", "show", str(file), "--json")

    assert (result.code, json.loads(result.out)) == (OK, trace_to_data(RUN))


def test_picture_is_written(tmp_path: Path, file: Path) -> None:
    """To a file, whose directory is created, or to stdout."""
    result = command("trace", "show", str(file), "--svg", str(tmp_path / "new" / "run.svg"))
    reported = command("trace", "show", str(file), "--svg", str(tmp_path / "run.svg"), "--json")

    assert result == CommandResult(OK, f"{tmp_path / 'new' / 'run.svg'}: 3 nodes\n")
    assert json.loads(reported.out) == {"file": str(tmp_path / "run.svg"), "nodes": 3}
    assert (tmp_path / "new" / "run.svg").read_text("utf-8") == trace_svg(RUN)
    assert command("trace", "show", str(file), "--svg", "-") == CommandResult(OK, trace_svg(RUN))
    assert json.loads(command("trace", "show", str(file), "--svg=-", "--json").out) == {
        "file": "-",
        "text": trace_svg(RUN),
    }
    assert [name for name, _ in Drawn.of(trace_svg(RUN)).boxes] == ["fetch", "read", "tell"]


def test_trace_cannot_control_the_terminal(tmp_path: Path) -> None:
    """No cell contains a control character or a bidirectional mark."""
    odd = "\x1b[2J\u202e\0\x07"
    bad = {"code": odd, "message": f"{odd}\nstatus: succeeded"}
    reported = attrs.evolve(node("a", status="failed", error=bad), tool=odd)
    made = attrs.evolve(trace(reported, name=odd), run=odd, inputs={odd: odd}, output=[odd], answer=odd, error=bad)
    result = command("trace", "show", str(saved(made, tmp_path / "t.json")))

    assert (result.code, result.err) == (OK, "")
    assert result.out.replace("\n", "").isprintable()
    assert len(result.out.splitlines()) == 8
    assert trace_text(made).replace("\n", "").isprintable()


def test_too_large_graph_is_not_drawn(tmp_path: Path) -> None:
    """There is a message at once, and the text output still works."""
    names = [f"n{number}" for number in range(500)]
    knot = trace(*(node(name, *names[:index], status="unstarted") for index, name in enumerate(names)))
    file = saved(knot, tmp_path / "knot.json")

    picture = command("trace", "show", str(file), "--svg", "-")

    message = "neuroscript: cannot draw the picture: its edges would need more than 1000000 positions\n"
    assert CommandResult(USAGE, "", message) == picture
    assert OK == command("trace", "show", str(file)).code


def test_lines_have_a_maximum_length(tmp_path: Path) -> None:
    """Names in a trace may be long."""
    long = "x" * 100_000
    node = attrs.evolve(RUN.nodes[0], tool=long, reason=long, status="skipped")
    file = saved(attrs.evolve(RUN, plan=long, run=long, nodes=(node,)), tmp_path / "long.json")

    shown, picture = command("trace", "show", str(file)), command("trace", "show", str(file), "--svg", "-")

    assert (OK, OK) == (shown.code, picture.code)
    assert max(map(len, shown.out.splitlines())) < 1_000
    assert len(picture.out) < 10_000


def test_table_fits_a_terminal(file: Path) -> None:
    """With colours, it contains the same words."""
    coloured = seen("trace", "show", str(file))

    assert "\x1b[32msucceeded" in coloured
    assert "\x1b[31mfailed" in coloured
    assert max(map(len, SEQUENCE.sub("", coloured).splitlines())) <= 80
    assert SEQUENCE.sub("", coloured).split() == SHOWN.split()


def test_two_traces_are_compared(tmp_path: Path, file: Path) -> None:
    """Each difference has a path and both values; the exit code is 1 if there are any."""
    fetch = RUN["fetch"]
    other = attrs.evolve(
        RUN,
        digest="1" * 64,
        status="succeeded",
        error=None,
        output={"a": 1},
        seconds=4.5,
        nodes=(
            attrs.evolve(fetch, result=[1, 3, "x" * 200], arguments={"url": "y"}),
            node("read", "fetch", attempts=(Attempt(1, None, 101, 0.5),)),
            node("new"),
        ),
    )
    b = saved(other, tmp_path / "b.json")
    result = command("trace", "diff", str(file), str(b))

    assert result == CommandResult(
        FAILED,
        f"""\
plan                       has changed
status                     "succeeded", was "failed"
error                      null, was "plan.failed: read failed"
output                     {{"a": 1}}, was null
seconds                    4.5 s, was 2 s, 2.25 times as long
nodes.fetch.arguments.url  "y", was "x"
nodes.fetch.result[1]      3, was 2
nodes.fetch.result[2]      "{"x" * 78}…, was missing
nodes.read.status          "succeeded", was "failed"
nodes.read.error           null, was "tool.failed: g.t: it broke"
nodes.read.attempts        1, was 2
nodes.read.seconds         500 ms, was 2 s, 4 times as fast
nodes.tell                 was removed
nodes.new                  was added

12 differences
""",
    )


@pytest.mark.parametrize(("was", "now"), [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), (None, False)])
def test_value_of_another_type_is_a_difference(was: Any, now: Any) -> None:
    """Python considers most of these values equal."""
    old, new = (attrs.evolve(RUN, output={"a": [each]}) for each in (was, now))

    (found,) = trace_diff(old, new)

    assert ("output.a[0]", f"{json.dumps(now)}, was {json.dumps(was)}") == (found.path, found.text)
    assert () == trace_diff(old, old)


def test_times_are_not_a_difference(tmp_path: Path, file: Path) -> None:
    """The times of two runs always differ; large differences are listed."""
    slow = saved(attrs.evolve(RUN, run="r2", started=5000.0, seconds=3.0), tmp_path / "b.json")
    result = command("trace", "diff", str(file), str(slow), "--json")

    found = [{"path": "seconds", "text": "3 s, was 2 s, 1.5 times as long", "time": True}]
    assert (result.code, json.loads(result.out)) == (OK, {"ok": True, "differences": found})
    assert command("trace", "diff", str(file), str(file)) == CommandResult(OK, "no differences\n")
    assert command("trace", "diff", str(file), "-", stdin=file.read_bytes()).code == OK


def test_many_differences_of_one_value_are_counted(tmp_path: Path, file: Path) -> None:
    """The first twenty are listed."""
    a = saved(trace(node("a", result=[0] * 30)), tmp_path / "a.json")
    b = saved(trace(node("a", result=[1] * 30)), tmp_path / "b.json")

    lines = command("trace", "diff", str(a), str(b)).out.splitlines()

    assert lines[19:] == [
        "nodes.a.result[19]  1, was 0",
        "nodes.a.result      differs in 10 more places",
        "",
        "21 differences",
    ]


def test_damaged_traces_produce_no_traceback(tmp_path: Path) -> None:
    """Each is shown, or its problem is reported."""
    file, codes = tmp_path / "t.json", set()
    for number, data in enumerate(damaged(f"{json.dumps(trace_to_data(RUN))}\n".encode(), 100)):
        file.write_bytes(data)
        result = command("trace", "show", str(file), *(["--svg", "-"] if number % 2 else []))
        codes.add(result.code)
        assert (result.code == OK) is (result.err == "")
        assert result.code == OK or (
            result.out == "" and result.err.startswith("neuroscript: ") and result.err.count("\n") == 1
        )

    assert codes == {OK, USAGE}


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        (["trace"], ["expected an action: show, diff (see neuroscript trace --help)"]),
        (["trace", "show", "none.json"], ["none.json: cannot be read: no such file or directory"]),
        (
            ["trace", "show", "bad.json"],
            ["bad.json: run: is missing; plan: must be a string, got int; digest: is missing"],
        ),
        (
            ["trace", "diff", "none.json", "good.json"],
            ["none.json: cannot be read: no such file or directory"],
        ),
        (
            ["trace", "diff", "text.json", "none.json"],
            [
                "text.json: invalid JSON: line 1, column 1 is not JSON",
                "none.json: cannot be read: no such file or directory",
            ],
        ),
        (["trace", "diff", "-", "-"], ["only one of the two traces can be read from standard input"]),
        (["trace", "show", "-"], ["standard input: invalid JSON: line 1, column 1 is not JSON"]),
        (["trace", "show", "good.json", "--svg", "good.json/x"], ["cannot write good.json/x: file exists"]),
        (["trace", "show", "good.json", "--svg", "."], ["cannot write .: is a directory"]),
        (["trace", "show", "good.json", "--svg", "x" * 256], [f"cannot write …{'x' * 200}: file name too long"]),
        (["trace", "show", "good.json", "--svg", "/dev/null"], ["cannot write /dev/null: it is not a regular file"]),
    ],
)
def test_every_problem_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentences: list[str]
) -> None:
    """For every file, with exit code 2."""
    monkeypatch.chdir(tmp_path)
    data = trace_to_data(RUN)
    bad = {key: data[key] for key in data if key not in ("run", "digest")} | {"plan": 5}
    for name, text in {"good": json.dumps(data), "bad": json.dumps(bad), "text": "trace"}.items():
        Path(f"{name}.json").write_text(text)

    assert CommandResult(USAGE, "", "".join(f"neuroscript: {each}\n" for each in sentences)) == command(*words)
