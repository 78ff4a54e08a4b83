"""Nothing in the database is ever unpickled, whatever table it is in and whatever its row says."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOSClient
from dbos._serialization import DefaultSerializer, deserialize_args, deserialize_exception, deserialize_value
from tests.cli.conftest import command
from tests.workflow.durable import steps
from tests.workflow.durable.databases import MakeDatabase
from tests.workflow.durable.planted import OLD, given_out, pickled, queued, reopen, sql, status_of

from neuroscript import Engine, ExecutionPolicy, Toolset
from neuroscript.errors import SpecError
from neuroscript.workflow import plan_from_data
from neuroscript.workflow.durable import Worker, resume, run_durably
from neuroscript.workflow.durable import serializer as durable_serializer
from neuroscript.workflow.durable.database import Database
from neuroscript.workflow.durable.queue import NAME, Queue
from neuroscript.workflow.durable.serializer import EXACT, FORMAT, InvalidRow

NOW = 1_790_000_000_000
READERS: list[Callable[[str], Any]] = [
    lambda text: deserialize_value(text, OLD, EXACT),
    lambda text: deserialize_args(text, OLD, EXACT),
    lambda text: deserialize_exception(text, OLD, EXACT),
    lambda text: DefaultSerializer().deserialize(text),
]


def wait_for(url: str, id: str, status: str) -> None:
    """Wait until a workflow has a status; the time limit of the test ends a hang."""
    while status_of(url, id) != status:
        time.sleep(0.02)


@pytest.mark.parametrize("kind", [OLD, None], ids=["py_pickle", "no format"])
def test_worker_that_permits_nothing_unpickles_no_workflow(
    make_database: MakeDatabase, tmp_path: Path, kind: str | None
) -> None:
    """The worker ends the planted workflow with an error and makes the calls of others."""
    url, file = make_database(f"denied-{kind}"), tmp_path / "file"
    queued(url, "planted", pickled(file), kind)
    policy = ExecutionPolicy(deny=("*",))
    with steps.engine(tmp_path / "marks", policy=policy) as engine, Worker(engine, url) as worker:
        wait_for(url, "planted", "ERROR")
        assert not worker.is_lost

    assert not file.exists()
    with steps.engine(tmp_path / "marks") as engine:
        assert run_durably(engine, steps.wide(1, 0.0), url=url).status == "succeeded"


def test_resume_of_another_run_unpickles_no_workflow(make_database: MakeDatabase, tmp_path: Path) -> None:
    """The resumed run ends as it would without the planted row."""
    url, file, slow = make_database("resumed"), tmp_path / "file", Toolset("slow")

    @slow.tool
    def wait() -> int:
        """Wait until the planted workflow has ended."""
        if status_of(url, "planted") is not None:
            wait_for(url, "planted", "ERROR")
        return 1

    plan = plan_from_data({"nodes": {"wait": {"tool": "slow.wait"}}})
    with Engine(toolsets=[slow], plugins="none") as engine:
        run_durably(engine, plan, url=url, run_id="it")
        reopen(url)
        queued(url, "planted", pickled(file), OLD)
        trace = resume(engine, url, "it")

    assert ("succeeded", 1) == (trace.status, trace.output)
    assert not file.exists()


def test_worker_rejects_row_with_another_call_id(make_database: MakeDatabase, tmp_path: Path) -> None:
    """A row that names another call, or passes anything else, ends with an error."""
    url = make_database("others")
    texts = [EXACT.serialize({"args": args, "kwargs": {}}) for args in (("it.w0",), (), (1,), ([],))]
    texts += ["", "[" * 100_000, "{}", '{"$bytes": 1}', "null"]
    for index, text in enumerate(texts):
        queued(url, f"planted{index}", text, FORMAT)
    with steps.engine(tmp_path / "marks") as engine:
        with Worker(engine, url) as worker:
            trace = run_durably(engine, steps.wide(1, 0.0), url=url, local_calls=False)
            assert not worker.is_lost
        states = {status_of(url, f"planted{index}") for index in range(len(texts))}

    assert "succeeded" == trace.status
    assert "SUCCESS" not in states
    assert 1 == sum(steps.Marks(tmp_path / "marks").of("begin").values())


@pytest.mark.parametrize("action", ["list", "show", "cancel", "resume"])
def test_commands_unpickle_no_workflow(make_database: MakeDatabase, tmp_path: Path, action: str) -> None:
    """Even if every value of the run in the tables of DBOS was replaced by a pickle."""
    url, file = make_database(f"command-{action}"), tmp_path / "file"
    with steps.engine(tmp_path / "marks") as engine:
        run_durably(engine, steps.wide(1, 0.0), url=url, run_id="it")
    text = pickled(file)
    sql(
        url,
        "UPDATE {dbos}workflow_status SET serialization = :kind, inputs = :text, output = :text",
        kind=OLD,
        text=text,
    )
    sql(url, "UPDATE {dbos}workflow_output SET output = :text", text=text)
    queued(url, "planted", text, OLD)

    def make_engine(**settings: Any) -> Engine:
        return steps.engine(tmp_path / "marks", mode="lax", policy=settings["policy"], host=settings["host"])

    words = [] if action == "list" else ["it"]
    result = command("runs", action, url, *words, make_engine=make_engine)

    assert (2 if action == "cancel" else 0) == result.code
    assert not file.exists()


def test_call_whose_workflow_was_replaced_by_a_pickle_fails_by_name(
    make_database: MakeDatabase, tmp_path: Path
) -> None:
    """The driver does not wait for a call that every worker rejects."""
    url, file = make_database("replaced"), tmp_path / "file"
    with steps.engine(tmp_path / "marks") as engine:
        run_durably(engine, steps.wide(1, 0.0), url=url, run_id="it")
        reopen(url)
        queued(url, "it.w0", pickled(file), OLD)
        given_out(url)
        trace = resume(engine, url, "it")

    error = trace.nodes[0].error
    assert error is not None
    assert ("plan.invalid_row", "never") == (error["code"], error["retry"])
    assert error["message"] == (
        "has not begun, because its data cannot be used: the row of DBOS's workflow_status with its id is missing,"
        " has ended, or was not written by this version of neuroscript"
    )
    assert not file.exists()


@pytest.mark.parametrize("read", READERS, ids=["value", "arguments", "exception", "serializer"])
def test_no_reader_of_dbos_unpickles(make_database: MakeDatabase, tmp_path: Path, read: Callable[[str], Any]) -> None:
    """Each raises one of our errors before it reads the pickle."""
    database = Database(make_database(f"reader{READERS.index(read)}"))
    Queue(database).close()
    database.close()
    with pytest.raises(InvalidRow) as caught:
        read(pickled(tmp_path / "file"))

    assert str(caught.value) == "the row holds a pickle, which is never read"
    assert not (tmp_path / "file").exists()


def test_no_table_of_dbos_is_unpickled(make_database: MakeDatabase, tmp_path: Path) -> None:
    """Inputs, outputs, errors, steps, events, streams and schedules, read by DBOS itself in both ways."""
    url, file = make_database("tables"), tmp_path / "file"
    text = pickled(file)
    queued(url, "it", text, OLD)
    sql(url, "UPDATE {dbos}workflow_status SET status = 'ERROR', error = :text, output = :text", text=text)
    row = "'it', 'key', :text"
    sql(
        url,
        f"INSERT INTO {{dbos}}workflow_events (workflow_uuid, key, value, serialization) VALUES ({row}, :kind)",
        text=text,
        kind=OLD,
    )
    sql(
        url,
        f'INSERT INTO {{dbos}}streams (workflow_uuid, key, value, "offset", function_id, serialization)'
        f" VALUES ({row}, 0, 1, :kind)",
        text=text,
        kind=OLD,
    )
    sql(
        url,
        "INSERT INTO {dbos}operation_outputs"
        " (workflow_uuid, function_id, function_name, output, error, serialization, retention_timestamp)"
        " VALUES ('it', 1, 'step', :text, :text, :kind, :now)",
        text=text,
        kind=OLD,
        now=NOW,
    )
    sql(
        url,
        "INSERT INTO {dbos}workflow_schedules (schedule_id, schedule_name, workflow_name, schedule, context, status)"
        " VALUES ('a', 'a', 'neuroscript.call', '* * * * * *', :text, 'ACTIVE')",
        text=text,
    )
    database = Database(url)
    Queue(database).close()
    for client in (
        DBOSClient(system_database_url=url, system_database_engine=database.engine, serializer=EXACT),
        DBOSClient(system_database_url=url, system_database_engine=database.engine, application_name=NAME),
    ):
        for read in (
            lambda client=client: client.list_workflows(),
            lambda client=client: client.retrieve_workflow("it").get_result(),
            lambda client=client: client.list_workflow_steps("it"),
            lambda client=client: client.get_event("it", "key", timeout_seconds=0),
            lambda client=client: [*client.read_stream("it", "key")],
            lambda client=client: client.list_schedules(),
            lambda client=client: client.get_schedule("a"),
        ):
            try:
                read()
            except Exception as error:
                assert not isinstance(error, (TypeError, AttributeError)), error
        client.destroy()
    database.close()

    assert not file.exists()


def test_version_of_dbos_that_reads_pickles_in_another_way_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any database is opened."""
    monkeypatch.setattr(durable_serializer.formats, "deserialize_value", lambda *_: None)
    with pytest.raises(SpecError) as caught:
        durable_serializer.refuse_pickles()

    assert str(caught.value) == "durable: this version of DBOS reads pickles in another way; install dbos 3.4"


def test_unreadable_dbos_row_does_not_stop_heartbeat(make_database: MakeDatabase) -> None:
    """After repeated failures of its heartbeat, a worker would be considered dead."""
    url = make_database("heartbeat")
    queued(url, "planted", "", FORMAT)
    sql(
        url,
        "UPDATE {dbos}workflow_status SET status = 'PENDING', executor_id = 'it', authenticated_roles = :text",
        text="{",
    )
    database = Database(url)
    queue = Queue(database)
    alive = []
    queue.put_back(lambda: alive.append("it") or {"it"})  # type: ignore[func-returns-value]
    queue.close()
    database.close()

    assert ["it"] == alive
