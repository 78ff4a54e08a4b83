"""A durable run whose tools use ``ask``: stored answers are not requested again after its process was killed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.llm.fixtures import no_keys as no_keys
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.server import ModelServer, hangs, says
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Parent
from tests.workflow.durable.databases import MakeDatabase, outlast


@pytest.mark.parametrize("rerun", [True, False], ids=["rerun", "once"])
def test_stored_answer_is_not_requested_again(
    rerun: bool, make_database: MakeDatabase, parent: Parent, server: ModelServer, tmp_path: Path
) -> None:
    """The request during which the process was killed is repeated only if the plan permits it."""
    url, marks = make_database(f"questions{rerun}"), steps.Marks(tmp_path / "marks")
    server.script(says('["1", 2]'), hangs(60))
    child = parent.child("questions", url, marks.file, run="it", model=server.base_url(), rerun=rerun)
    while len(server.requests) < 2:
        assert not child.out.exists(), child.out.read_text()
        time.sleep(0.005)
    child.kill()
    outlast(url)

    server.script(says("[3]"))
    nodes = parent.child("resume", url, marks.file, run="it", model=server.base_url()).result()["nodes"]

    results = {name: (node["result"], node["code"]) for name, node in nodes.items()}
    assert results == {"first": ("0102", ""), "second": ("03", "") if rerun else (None, "plan.in_doubt")}
    assert [count for _, count in sorted(marks.of("begin").items())] == [1, 2 if rerun else 1]
    assert len(server.requests) == (3 if rerun else 2)


def test_invalid_answer_fails_its_node(
    make_database: MakeDatabase, parent: Parent, server: ModelServer, tmp_path: Path
) -> None:
    """A resumed run has the stored error, and does not ask again."""
    url, marks = make_database("invalid"), tmp_path / "marks"
    server.script(says("[1]"), *[says("none")] * 3)
    options = {"run": "it", "model": server.base_url(), "rerun": False}
    ended = parent.child("questions", url, marks, **options).result()
    again = parent.child("resume", url, marks, **options).result()

    assert ended["nodes"]["second"]["code"] == "llm.answer"
    assert again == ended
    assert len(server.requests) == 4
