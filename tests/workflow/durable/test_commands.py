"""``neuroscript worker`` and ``neuroscript runs``, as somebody types them."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Ran, command, start
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Parent
from tests.workflow.durable.databases import outlast, prepared

from neuroscript.workflow import plan_to_data
from neuroscript.workflow.durable import run_durably

PLUGIN = """
from pathlib import Path
from tests.workflow.durable.steps import toolset

def register(registrar):
    registrar.register(toolset(Path({marks!r})))
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the address of a database."""
    prepared(f"sqlite:///{tmp_path}/runs.sqlite")
    return f"sqlite:///{tmp_path}/runs.sqlite"


@pytest.fixture
def marks(tmp_path: Path) -> steps.Marks:
    """Return the file of marks."""
    return steps.Marks(tmp_path / "marks")


@pytest.fixture
def asked(url: str, marks: steps.Marks) -> Callable[..., Ran]:
    """Return what runs the command for a database, with the tools."""

    def asked(action: str, *words: str) -> Ran:
        made: Any = lambda **settings: steps.engine(marks.file, **{"mode": "lax", **settings})  # noqa: E731
        return command("runs", action, url, *words, make_engine=lambda **settings: made(**_without(settings)))

    return asked


def _without(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in ("mode", "policy", "host")}


@contextmanager
def worker(url: str, folder: Path, marks: steps.Marks) -> Iterator[list[str]]:
    """Have a worker run as a process of its own; what it has said stands in the list when it has ended."""
    plugin, said = folder / "steps.py", [""]
    plugin.write_text(PLUGIN.format(marks=str(marks.file)))
    child = start("worker", url, "-p", str(plugin), "--parallel", "4")
    assert child.stderr is not None
    said[0] = child.stderr.readline().decode()
    assert "makes calls" in said[0], said[0]
    try:
        yield said
    finally:
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=30)
        said += [out.decode(), err.decode(), str(child.returncode)]


def test_a_worker_makes_the_calls_of_others(url: str, tmp_path: Path, marks: steps.Marks) -> None:
    """Until it is told to end: the process that drives the run makes none."""
    with worker(url, tmp_path, marks) as said, steps.engine(marks.file) as engine:
        trace = run_durably(engine, steps.layered(0.0), url=url, run_id="it", works=False)

    assert steps.expected(steps.layered()) == {node.name: node.result for node in trace.nodes}
    assert re.fullmatch(r"neuroscript: worker [0-9a-f]{16} makes calls\n", said[0])
    assert ["", "", "0"] == said[1:]


def test_an_interrupted_run_is_listed_and_gone_on_with(
    url: str, marks: steps.Marks, asked: Callable[..., Ran], parent: Parent
) -> None:
    """By its id; then it has ended, and can not be cancelled."""
    child = parent.child("run", url, marks.file, run="it")
    while sum(marks.of("end").values()) < 4:
        pass
    child.kill()
    outlast(url)
    (before,) = json.loads(asked("list", "--json").out)
    gone_on = json.loads(asked("resume", "it", "--json").out)
    (after,) = json.loads(asked("list", "--json").out)

    assert ["interrupted", gone_on["status"]] == [before["status"], after["status"]]
    assert set(steps.expected(steps.layered())) >= {call["node"] for call in gone_on["calls"]}
    assert {"ok", "plan.in_doubt"} >= {call["status"] for call in gone_on["calls"]}
    assert Ran(2, "", f"neuroscript: run it: has {after['status']} already\n") == asked("cancel", "it")


def test_a_run_is_shown_with_its_calls(url: str, marks: steps.Marks, asked: Callable[..., Ran]) -> None:
    """Each with what became of it; and a run that is not there is not."""
    assert Ran(0, "", "neuroscript: no runs\n") == asked("list")
    with steps.engine(marks.file) as engine:
        run_durably(engine, steps.wide(2, 0.0), url=url, run_id="it")
    listed, shown = asked("list"), asked("show", "it")

    head = r"it  wide  succeeded  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  \d+\.\d{3} s\s*\n"
    assert re.fullmatch(head, listed.out)
    assert re.fullmatch(head + r"(  w[01]  step\.\w+ +ok  \d+\.\d{3} s\s*\n){2}", shown.out)
    assert Ran(2, "", "neuroscript: run no: there is none of that id\n") == asked("show", "no")
    assert Ran(0, shown.out, "") == asked("resume", "it")


def test_a_plan_is_run_durably(url: str, tmp_path: Path, marks: steps.Marks, asked: Callable[..., Ran]) -> None:
    """Its id is told, by which it is found again."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan_to_data(steps.wide(3, 0.0))))
    made: Any = lambda **settings: steps.engine(marks.file, **_without(settings))  # noqa: E731
    ran = command("run", "--durable", url, "--run-id", "it", "--json", str(file), make_engine=made)
    again = command("run", "--durable", url, "--run-id", "it", str(file), make_engine=made)

    assert (0, "neuroscript: run it\n", "it") == (ran.code, ran.err, json.loads(ran.out)["run"])
    assert 2 == again.code
    assert ["it"] == [each["id"] for each in json.loads(asked("list", "--json").out)]
    assert dict.fromkeys(("w0", "w1", "w2"), 1) == dict(marks.of("begin"))


def test_words_that_are_missing_are_named(url: str) -> None:
    """Which actions there are, and what an address is."""
    assert Ran(
        2, "", "neuroscript: an action is missing: list, show, resume, cancel (see neuroscript runs --help)\n"
    ) == (command("runs"))
    assert Ran(2, "", "neuroscript: durable: an address is sqlite:///FILE or postgresql://USER@HOST/NAME\n") == (
        command("runs", "list", "runs.sqlite")
    )
    assert Ran(2, "", "neuroscript: durable: parallel must be a whole number from 1 to 1000\n") == (
        command("worker", url, "--parallel", "0")
    )
    assert Ran(2, "", "neuroscript: --run-id is for durable runs; give --durable too\n") == (
        command("run", "--run-id", "it", "plan.toml")
    )
