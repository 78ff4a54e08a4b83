"""A console that shows everything it can show, with the strings that a test chooses in every place."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final

import attrs
from tests.audit_records import RECORD
from tests.console.conftest import ServedConsole, serving
from tests.console.hostile_text import as_json
from tests.llm.server import ModelServer, asks, call, says

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    Example,
    ExecutionPolicy,
    FileApprover,
    FileAudit,
    Host,
    Runtime,
    ToolFacts,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.cli.doctor.check import Finding
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.console import Inbox, app
from neuroscript.llm import model
from neuroscript.workflow import Attempt, NodeTrace, Trace, load_plan, save_trace
from neuroscript.workflow.durable import run_durably

Text = Callable[[str], str]
"""Returns the text for a place, such as ``tool-description``."""

PURE: Final = ToolPolicy(effects=("pure",))
ASKS: Final = ToolPolicy(effects=("deletes",), requires_approval=True)

WAIT_SECONDS: Final = 30.0


@attrs.frozen
class World:
    """A console that is served, with what it shows.

    Attributes:
        served: The console.
        directory: Its files.
    """

    served: ServedConsole
    directory: Path


def tools_with(text: Text) -> Toolset:
    """Return tools whose descriptions, values and results contain strings."""
    tools = Toolset("world", origin=text("origin"))

    def say(rt: Runtime, *values: Any) -> dict[str, Any]:
        return {"text": text("result-text"), text("result-key"): [text("result-item")]}

    tools.add(described_spec("say", text), say, policy=PURE)

    def fail(rt: Runtime) -> str:
        raise ValueError(text("error-message"))

    tools.add(ToolSpec("fail", "world", description=text("failing-description")), fail, policy=PURE)

    def pieces(rt: Runtime) -> Iterator[str]:
        rt.progress(1, 2, text("progress-message"))
        rt.logger.warning(text("log-message"))
        yield text("stream-item")

    spec = ToolSpec("pieces", "world", return_type=ArgType.STRING, description=text("stream-description"), stream=True)
    tools.add(spec, pieces, policy=PURE)

    def remove(rt: Runtime, path: str, options: dict[str, Any]) -> str:
        return text("approved-result")

    tools.add(
        ToolSpec(
            "echo",
            "world",
            (ArgSpec("text", ArgType.STRING),),
            return_type=ArgType.STRING,
            description="Return a string.",
        ),
        lambda rt, text: text,
        policy=PURE,
    )
    args = (ArgSpec("path", ArgType.STRING, description=text("path-description")), ArgSpec("options", ArgType.MAP))
    tools.add(ToolSpec("remove", "world", args, description=text("removing-description")), remove, policy=ASKS)
    return tools


def described_spec(name: str, text: Text) -> ToolSpec:
    """Return a spec with a string in each of its fields."""
    choices = (text("choice"), "other")
    keys = (ArgSpec("inner", ArgType.STRING, description=text("key-description"), default=text("key-default")),)
    args = (
        ArgSpec("plain", ArgType.STRING, description=text("argument-description"), default=text("default")),
        ArgSpec("chosen", ArgType.STRING, choices=choices, default=choices[0]),
        ArgSpec("nested", ArgType.MAP, keys=keys, description=text("nested-description"), default={}),
        ArgSpec("number", ArgType.INT, default=1),
        ArgSpec("flag", ArgType.BOOL, default=False),
        ArgSpec("items", ArgType.SLICE_STRING, default=[text("default-item")]),
        ArgSpec("anything", ArgType.ANY, default={"key": text("default-value")}),
        ArgSpec("key", ArgType.STRING, secret=True, default="", description=text("secret-description")),
    )
    return ToolSpec(
        name,
        "world",
        args,
        return_type=ArgType.ANY,
        description=text("tool-description"),
        when_to_use=text("when-to-use"),
        return_help=text("return-help"),
        category=text("category"),
        error_conditions=text("error-conditions"),
        deprecated=text("deprecation"),
        examples=(Example((text("example-argument"),), text("example-result")),),
    )


def write_audit_log(path: Path, text: Text) -> None:
    """Write a log with chosen strings in its records."""
    facts = ToolFacts(
        text("audit-tool"),
        "a" * 64,
        text("audit-distribution"),
        text("audit-version"),
        text("audit-rule"),
        effects=("deletes",),
    )
    with closing(FileAudit(path)) as sink:
        for number, (kind, code) in enumerate(
            [("outcome", "ok"), ("outcome", text("audit-code")), ("refused", "policy")], 1
        ):
            sink.write(
                RECORD._replace(
                    kind=kind,
                    about=facts,
                    call=number,
                    parent=number - 1,
                    code=code,
                    rule=text("audit-decision"),
                    session=text("audit-session"),
                    needs=(f"fs:read:{text('audit-need')}",),
                )
            )


def suspend(directory: Path, text: Text) -> None:
    """Suspend calls as another process does, and damage a copy of one."""
    policy = ExecutionPolicy(approver=FileApprover(directory))
    with Engine(plugins=(), toolsets=[tools_with(text)], policy=policy) as engine:
        arguments = [text("stored-argument"), {text("stored-key"): text("stored-value")}]
        result = engine.execute({"name": "world.remove", "arguments": arguments})
    assert result.error is not None
    (path,) = directory.glob("*.json")
    stored = json.loads(path.read_text())
    stored |= {name: text(f"stored-{name}") for name in ("tool", "reason", "session", "policy", "fingerprint")}
    path.with_name(f"{path.stem}2.json").write_text(json.dumps(stored))


PLAN: Final = """\
name = "greeting"
description = {description}

[inputs]
who = {{ type = "string", required = false, default = {default}, description = {input} }}

[nodes.first]
tool = "world.echo"
inputs = {{ text = {value} }}

[nodes.second]
tool = "world.echo"
inputs = {{ text = "${{first}} and ${{input.who}}" }}
"""


def write_plans(directory: Path, text: Text) -> None:
    """Write a plan that can run, one with problems, and a trace; their names and contents are chosen strings."""
    directory.mkdir()
    texts = {name: as_json(text(f"plan-{name}")) for name in ("description", "default", "input", "value")}
    texts["value"] = texts["value"].replace("${", "$${")  # otherwise a reference to another node
    (directory / "greeting.toml").write_text(PLAN.format(**texts))
    node = as_json(text("node-name"))
    broken = f"name = {as_json(text('plan-name'))}\n[nodes.{node}]\ntool = {as_json(text('node-tool'))}\ninputs = {{ a = 1 }}\n"
    (directory / "broken.toml").write_text(broken)
    unreadable = directory / f"{file_name(text('plan-file'))}.toml"
    unreadable.write_text(f"{as_json(text('plan-key'))} = \n")
    trace = Trace(
        run=text("trace-run"),
        plan=text("trace-plan"),
        digest="0" * 64,
        inputs={text("trace-input"): text("trace-input-value")},
        status="failed",
        nodes=(
            NodeTrace(
                "first", text("trace-tool"), "failed", (), {text("trace-key"): text("trace-value")}, None,
                {"code": text("trace-code"), "message": text("trace-message"), "retry": "never"}, "",
                (Attempt(1, None, 5.0, 0.5, text("attempt-code")),),
            ),
            NodeTrace("done", "world.echo", "succeeded", (), {}, text("trace-output"), None, "", (Attempt(1, None, 5.0, 0.5),)),
        ),
        error={"code": "plan.failed", "message": text("trace-error"), "retry": "never"},
        started=5.0,
        seconds=4.0,
    )  # fmt: skip
    named = f"{file_name(text('trace-file'))}.json"
    for name in ("one.json", "two.json", named):
        save_trace(attrs.evolve(trace, output=text(f"output-{name[:3]}")), directory / name)


SERVER: Final = """
from neuroscript import ArgSpec, ArgType, ToolPolicy, ToolSpec, Toolset

def register(registrar):
    tools = registrar.toolset("far")
    spec = ToolSpec("look", "far", (ArgSpec("path", ArgType.STRING, description={argument}),), description={description})
    tools.add(spec, lambda rt, path: path, policy=ToolPolicy(effects=("pure",)))
"""


def server_table(directory: Path, text: Text) -> ServerTable:
    """Return the settings of an MCP server whose tools were never accepted."""
    plugin = directory / "far.py"
    plugin.write_text(
        SERVER.format(argument=repr(text("server-argument")), description=repr(text("server-description")))
    )
    command = (sys.executable, "-m", "neuroscript", "mcp", "serve", "-p", str(plugin), "--tools", "far.*")
    return ServerTable("far", "far", command, accepted=str(directory / "accepted.json"), timeout=60.0)


def findings(text: Text) -> dict[str, list[Finding]]:
    """Return results of checks."""
    return {
        text("check-part"): [
            Finding(text("check-subject"), "broken", text("check-text"), text("check-fix")),
            Finding("other", "ok", "works"),
        ]
    }


@contextmanager
def world_with(directory: Path, text: Text) -> Iterator[World]:
    """Serve a console with strings in each place; a call waits in its inbox."""
    approvals, log = directory / "approvals", directory / "audit.jsonl"
    (directory / "sandbox").mkdir()
    write_audit_log(log, text)
    suspend(approvals, text)
    write_plans(directory / "plans", text)
    runs = f"sqlite:///{directory}/runs.db"
    with Engine(plugins=(), toolsets=[tools_with(text)]) as other:
        run_durably(
            other,
            load_plan(directory / "plans" / "greeting.toml"),
            {"who": text("durable-value")},
            runs,
            run_id="first",
        )
    (directory / "neuroscript.lock").write_text(f"version = 1\n{as_json(text('lock-key'))} = 1\n")
    inbox = Inbox()
    engine = Engine(
        plugins=(),
        toolsets=[tools_with(text)],
        policy=ExecutionPolicy(approver=inbox),
        host=Host(sandbox_dir=directory / "sandbox"),
    )
    with ExitStack() as stack:
        models = stack.enter_context(ModelServer())
        asked = call("world__say", {"plain": text("model-argument"), text("model-key"): 1})
        models.script(asks(asked, text=text("model-text")), says(text("model-answer")), forever=says("again"))
        application = app(
            engine,
            inbox=inbox,
            approvals=approvals,
            audit=[log],
            run_effects=True,
            plans=directory / "plans",
            runs=runs,
            model=stack.enter_context(model("tiny", base_url=models.base_url(), api="openai-chat")),
            checks=lambda: findings(text),
            servers=[server_table(directory, text)],
            lock=directory / "neuroscript.lock",
        )
        served = stack.enter_context(serving(application))
        arguments = [text("live-argument"), {text("live-key"): text("live-value")}]
        sent = {"name": "world.remove", "arguments": arguments}
        session = engine.session()
        waiting = Thread(target=session.execute, args=(sent,))
        waiting.start()
        wait_until(lambda: len(inbox) == 1)
        yield World(served, directory)
        session.close()
        waiting.join()


def wait_until(is_true: Callable[[], object]) -> None:
    """Wait until something is true."""
    end = monotonic() + WAIT_SECONDS
    while not is_true():
        assert monotonic() < end
        sleep(0.005)


def file_name(text: str) -> str:
    """Return a string without what separates the parts of a path, and as long as a name of a file may be."""
    return text.replace("/", "").replace("\\", "")[:120]
