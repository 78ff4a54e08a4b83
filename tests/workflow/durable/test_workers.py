"""Several workers share the calls of a database, and take over from each other."""

from __future__ import annotations

import time
from pathlib import Path

from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Child, Parent
from tests.workflow.durable.databases import MakeDatabase, outlast

COUNT = 200


def name_of(worker: Child) -> str:
    """Return what a worker is called, once it has begun."""
    file = worker.out.with_suffix(".id")
    while not (file.exists() and file.read_text()):
        assert not worker.out.exists(), worker.out.read_text()
        time.sleep(0.01)
    return file.read_text()


def test_two_workers_share_all_nodes_and_one_is_killed(
    make_database: MakeDatabase, parent: Parent, tmp_path: Path
) -> None:
    """All are done, and none is twice that may not be: it is in doubt where it was under way."""
    url, marks = make_database("shared"), steps.Marks(tmp_path / "marks")
    first, second = (parent.child("work", url, marks.file, parallel=8, lease=4.0) for _ in range(2))
    killed = name_of(first)
    run = parent.child("wide", url, marks.file, run="it", count=COUNT)
    while sum(marks.of("begin").values()) < COUNT / 3:
        time.sleep(0.01)
    first.kill()
    outlast(url, worker=killed)
    nodes = run.result()["nodes"]
    second.kill()

    begun, right = marks.of("begin"), steps.expected(steps.wide(COUNT))
    doubtful = {name for name, node in nodes.items() if node["code"] == "plan.in_doubt"}
    assert set(right) == set(begun)
    assert {name: right[name].hex() for name in right if name not in doubtful} == {
        name: node["result"] for name, node in nodes.items() if name not in doubtful
    }
    assert all(int(name[1:]) % 2 == 0 and begun[name] == 1 for name in doubtful)
    assert all(int(name[1:]) % 2 and count == 2 for name, count in begun.items() if count > 1)
    assert doubtful <= marks.under_way() | marks.of("end").keys()
