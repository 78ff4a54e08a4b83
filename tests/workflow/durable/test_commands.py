"""The commands ``neuroscript worker`` and ``neuroscript runs``."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command, start
from tests.terminals import Terminal
from tests.workflow.durable import steps
from tests.workflow.durable.conftest import Parent
from tests.workflow.durable.databases import outlast, prepared

from neuroscript import Engine, Toolset
from neuroscript._imports import install_hint
from neuroscript.coercion.plain_data import to_plain
from neuroscript.io.text import json_text, quote_path
from neuroscript.workflow import load_trace, plan_from_data, plan_to_data
from neuroscript.workflow.durable import cancel, run_durably

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
def run_command(url: str, marks: steps.Marks) -> Callable[..., CommandResult]:
    """Return a function that runs the command with a database and the tools."""

    def run_command(action: str, *words: str) -> CommandResult:
        made: Any = lambda **settings: steps.engine(marks.file, **{"mode": "lax", **settings})  # noqa: E731
        return command("runs", action, url, *words, make_engine=lambda **settings: made(**_without(settings)))

    return run_command


def _without(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in ("mode", "policy", "host")}


def plugin_of(folder: Path, marks: steps.Marks) -> str:
    """Return a plugin file with the tools."""
    plugin = folder / "steps.py"
    plugin.write_text(PLUGIN.format(marks=str(marks.file)))
    return str(plugin)


@contextmanager
def worker(url: str, folder: Path, marks: steps.Marks) -> Iterator[list[str]]:
    """Run a worker as a separate process; its output is in the list after it has ended."""
    messages = [""]
    child = start("worker", url, "-p", plugin_of(folder, marks), "--parallel", "4")
    assert child.stderr is not None
    messages[0] = child.stderr.readline().decode()
    assert "started" in messages[0], messages[0]
    try:
        yield messages
    finally:
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=30)
        messages += [out.decode(), err.decode(), str(child.returncode)]


@pytest.mark.slow
def test_worker_makes_calls_of_other_processes(url: str, tmp_path: Path, marks: steps.Marks) -> None:
    """Until it is stopped; the process that drives the run makes none."""
    with worker(url, tmp_path, marks) as message, steps.engine(marks.file) as engine:
        trace = run_durably(engine, steps.layered(0.0), url=url, run_id="it", local_calls=False)

    assert steps.expected(steps.layered()) == {node.name: node.result for node in trace.nodes}
    begins = re.fullmatch(r"neuroscript: worker ([0-9a-f]{16}) started\n", message[0])
    assert begins
    ends = f"neuroscript: worker {begins[1]} is stopping; waiting for the calls in progress\n"
    assert ["", ends, "0"] == message[1:]


def test_interrupted_run_is_listed_and_resumed(
    url: str, marks: steps.Marks, run_command: Callable[..., CommandResult], parent: Parent
) -> None:
    """By its id; after that it has ended and cannot be cancelled."""
    child = parent.child("run", url, marks.file, run="it")
    while sum(marks.of("end").values()) < 4:
        pass
    child.kill()
    outlast(url)
    (before,) = json.loads(run_command("list", "--json").out)
    gone_on = json.loads(run_command("resume", "it", "--json").out)
    (after,) = json.loads(run_command("list", "--json").out)

    assert ["interrupted", gone_on["status"]] == [before["status"], after["status"]]
    assert [*steps.expected(steps.layered())] == [node["name"] for node in gone_on["nodes"]]
    assert {"ok", "plan.in_doubt"} >= {each["code"] for node in gone_on["nodes"] for each in node.get("attempts", ())}
    assert CommandResult(2, "", f"neuroscript: run it: has already {after['status']}\n") == run_command("cancel", "it")


def test_show_prints_run_and_calls(url: str, marks: steps.Marks, run_command: Callable[..., CommandResult]) -> None:
    """Each call with its status; an unknown run is an error."""
    assert CommandResult(0, "", "neuroscript: no runs\n") == run_command("list")
    with steps.engine(marks.file) as engine:
        run_durably(engine, steps.wide(2, 0.0), url=url, run_id="it")
    listed, shown = run_command("list"), run_command("show", "it")

    head = r"it  wide  succeeded  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  \d+\.\d{3} s\s*\n"
    assert re.fullmatch(head, listed.out)
    assert re.fullmatch(head + r"(  w[01]  step\.\w+ +ok  \d+\.\d{3} s\s*\n){2}", shown.out)
    assert CommandResult(2, "", "neuroscript: run no: does not exist\n") == run_command("show", "no")


def test_resume_prints_what_run_prints(
    url: str, tmp_path: Path, marks: steps.Marks, run_command: Callable[..., CommandResult]
) -> None:
    """The output, the trace, and the exit code of a failure."""
    trace, plan = tmp_path / "trace.json", steps.wide(2, 0.0)
    fails = plan_from_data(
        {"nodes": {"bad": {"tool": "step.fail"}, "next": {"tool": "step.fail", "depends_on": ["bad"]}}}
    )
    with steps.engine(marks.file) as engine:
        given = run_durably(engine, plan, url=url, run_id="it").output
        run_durably(engine, fails, url=url, run_id="bad")
    again = run_command("resume", "it", "--save", str(trace))

    assert CommandResult(0, f"{json_text(to_plain(given))}\n") == again
    assert ("it", "succeeded") == (load_trace(trace).run, load_trace(trace).status)
    message = "neuroscript: bad: step.fail: the tool failed (ValueError)\nneuroscript: the plan failed: bad failed; 1 not started\n"
    assert CommandResult(1, "", message) == run_command("resume", "bad")


@pytest.mark.parametrize("on_fail", ["continue", "halt"])
def test_cancelled_run_has_exit_code_of_its_own(url: str, tmp_path: Path, on_fail: str) -> None:
    """From ``run``, which saves the trace, and from ``resume``, which runs nothing."""
    stop, file, saved = Toolset("stop"), tmp_path / "plan.json", tmp_path / "trace.json"

    @stop.tool()
    def now() -> None:
        """Cancel the run."""
        cancel(url, "it")

    next_node = {"tool": "stop.now", "depends_on": ["stop"], "on_fail": on_fail}
    file.write_text(json.dumps({"name": "p", "nodes": {"stop": {"tool": "stop.now"}, "next": next_node}}))
    made: Any = lambda **settings: Engine(toolsets=[stop], plugins="none", **_without(settings))  # noqa: E731
    durable = ("--durable", url, "--run-id", "it")
    ended = command("run", *durable, "--save", str(saved), str(file), make_engine=made)
    resumed = command("runs", "resume", url, "it", make_engine=made)
    (listed,) = json.loads(command("runs", "list", url, "--json").out)

    message = "neuroscript: the run was cancelled; 1 not started\n"
    assert CommandResult(6, "", f"neuroscript: run it\n{message}") == ended
    assert CommandResult(6, "", message) == resumed
    assert ("cancelled", "cancelled") == (listed["status"], load_trace(saved).status)
    assert command("trace", "show", str(saved)).out.startswith("p: cancelled, ")


def test_control_characters_in_names_are_escaped(
    url: str, marks: steps.Marks, run_command: Callable[..., CommandResult]
) -> None:
    """Each name is on one line."""
    plan = plan_from_data({"name": "a\n\x1b[31m\u202eb", "nodes": {"bad": {"tool": "step.fail"}}})
    with steps.engine(marks.file) as engine:
        run_durably(engine, plan, url=url, run_id="it")
    listed = run_command("list").out

    assert [["it", r"a\n\x1b[31m\u202eb", "failed"]] == [line.split()[:3] for line in listed.splitlines()]


def at(url: str, folder: Path, marks: steps.Marks, seconds: float) -> Terminal:
    """Return a terminal in which a plan with one slow node runs durably."""
    plan, plugin = folder / "plan.json", plugin_of(folder, marks)
    plan.write_text(json.dumps(plan_to_data(steps.wide(1, seconds))))
    argv = ["neuroscript", "run", "--durable", url, "--run-id", "it", "-p", plugin, str(plan)]
    code = f"import os, sys; os.environ['TERM'] = 'xterm'; sys.argv = {argv}; from neuroscript.cli import main"
    return Terminal(f"{code}; sys.exit(main())")


@pytest.mark.slow
def test_terminal_keeps_run_id(url: str, tmp_path: Path, marks: steps.Marks) -> None:
    """The progress display is below it."""
    terminal = at(url, tmp_path, marks, 0.3)

    seen = terminal.rest()
    terminal.close()

    assert seen.startswith("neuroscript: run it\r\n")
    assert "  w0  0 s\r\n0 of 1 done\r\n" in seen


@pytest.mark.slow
def test_repeated_interrupts_print_no_traceback(url: str, tmp_path: Path, marks: steps.Marks) -> None:
    """The run ends although a call is running, and can be resumed."""
    terminal = at(url, tmp_path, marks, 60)
    while not marks.under_way():
        time.sleep(0.01)
    while terminal.child.poll() is None:
        os.write(terminal.ours, b"\x03")
        time.sleep(0.3)
    rest = terminal.rest()
    terminal.close(130)

    assert "neuroscript: interrupted" == re.split(r"\x1b\[J|\^C|\r\n", rest)[-2]
    assert "Traceback" not in rest


def test_durable_option_stores_run(
    url: str, tmp_path: Path, marks: steps.Marks, run_command: Callable[..., CommandResult]
) -> None:
    """The command prints the id of the run."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan_to_data(steps.wide(3, 0.0))))
    made: Any = lambda **settings: steps.engine(marks.file, **_without(settings))  # noqa: E731
    result = command("run", "--durable", url, "--run-id", "it", "--json", str(file), make_engine=made)
    again = command("run", "--durable", url, "--run-id", "it", str(file), make_engine=made)

    assert (0, "neuroscript: run it\n", "it") == (result.code, result.err, json.loads(result.out)["run"])
    assert CommandResult(2, "", "neuroscript: run it\nneuroscript: run it: already exists\n") == again
    assert ["it"] == [each["id"] for each in json.loads(run_command("list", "--json").out)]
    assert dict.fromkeys(("w0", "w1", "w2"), 1) == dict(marks.of("begin"))


def test_taken_over_run_exits_with_failure(url: str, tmp_path: Path) -> None:
    """The exit code is that of a failure, because the command is correct."""
    thief = Toolset("thief")

    @thief.tool()
    def take() -> None:
        """Take over whatever is run."""
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection, connection:
            connection.execute("UPDATE neuroscript_runs SET leader = 'another'")

    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"nodes": {"it": {"tool": "thief.take"}}}))
    made: Any = lambda **settings: Engine(toolsets=[thief], plugins="none", **_without(settings))  # noqa: E731
    result = command("run", "--durable", url, "--run-id", "it", str(file), make_engine=made)

    message = "this process lost its lease, and another one may continue the run"
    assert CommandResult(1, "", f"neuroscript: run it\nneuroscript: {message}\n") == result


@pytest.mark.parametrize(
    ("words", "place", "why"),
    [
        (("runs", "list"), "text", "file is not a database"),
        (("runs", "show"), "none.sqlite", "no such file or directory"),
        (("runs", "resume"), "none.sqlite", "no such file or directory"),
        (("worker",), "text/below/it.sqlite", "not a directory"),
        (("runs", "list"), "other.sqlite", "no such column: neuroscript_runs.digest"),
        (("worker",), "other.sqlite", "table neuroscript_workers has no column named lease"),
    ],
    ids=["no database", "none to look at", "none to go on in", "no place", "other tables", "other tables to work with"],
)
def test_unusable_database_is_usage_error(
    words: tuple[str, ...], place: str, why: str, url: str, tmp_path: Path
) -> None:
    """Commands that only read create no database."""
    (tmp_path / "text").write_text("this file does not contain an SQLite database, whatever its name says.." * 9)
    shutil.copy(tmp_path / "runs.sqlite", tmp_path / "other.sqlite")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
        for table, column in (("runs", "digest"), ("workers", "lease")):
            connection.execute(f"ALTER TABLE neuroscript_{table} RENAME COLUMN {column} TO of_another_version")
    address = f"sqlite:///{tmp_path}/{place}"
    result = command(*words, address, *(["it"] if words[-1] in ("show", "resume") else []))

    assert CommandResult(2, "", f"neuroscript: {quote_path(address)}: cannot be used as a database: {why}\n") == result
    assert not (tmp_path / "none.sqlite").exists()


def test_passwords_are_not_shown() -> None:
    """Wherever the address contains one; the driver's message is shown."""
    message = command("runs", "list", "postgresql://u:open@127.0.0.1:1/db").err
    also = command("runs", "list", "postgresql://u@127.0.0.1:1/db?password=open").err

    assert "neuroscript: postgresql://u:***@127.0.0.1:1/db" == message.partition(": cannot be used as a database: ")[0]
    assert "neuroscript: postgresql://u@127.0.0.1:1/db" == also.partition(": cannot be used as a database: ")[0]
    assert all("port 1 failed" in each and "open" not in each for each in (message, also))


def test_missing_extra_is_named_by_each_command(url: str, marks: steps.Marks) -> None:
    """Also of those that only read."""
    with steps.engine(marks.file) as engine:
        run_durably(engine, steps.wide(1, 0.0), url=url, run_id="it")
    argv = [["worker", url], ["runs", "resume", url, "it"], ["runs", "list", url, "--json"]]
    code = f"import sys; sys.modules['sqlalchemy'] = None; from neuroscript.cli import main; [main(each) for each in {argv}]"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    message = f"neuroscript: durable runs need SQLAlchemy; install it with: {install_hint('durable')}\n"
    assert (message * 3, "") == (completed.stderr, completed.stdout)


def test_missing_arguments_are_named(url: str) -> None:
    """With the actions and the form of an address."""
    assert CommandResult(
        2, "", "neuroscript: expected an action: list, show, resume, cancel, prune (see neuroscript runs --help)\n"
    ) == (command("runs"))
    for address in ("runs.sqlite", "sqlite://runs.sqlite", "sqlite:///runs.sqlite?mode=ro", "mysql://u@host/db", ""):
        assert CommandResult(
            2, "", "neuroscript: durable: the address must be sqlite:///FILE or postgresql://USER@HOST/NAME\n"
        ) == (command("runs", "list", address))
    assert CommandResult(2, "", "neuroscript: durable: parallel must be an integer from 1 to 1000\n") == (
        command("worker", url, "--parallel", "1001")
    )
    assert CommandResult(2, "", "neuroscript: --run-id needs --durable; add --durable URL\n") == (
        command("run", "--run-id", "it", "plan.toml")
    )
