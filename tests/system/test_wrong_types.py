"""Wrong types for every parameter of the public API: each is refused at once with the name of the parameter."""

from __future__ import annotations

import asyncio
import inspect
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.system.public_api import admitted, callables, called, fits, parameters

import neuroscript as ns
from neuroscript import audit, llm, sandbox, testing
from neuroscript.discovery.installed import Distribution
from neuroscript.llm.wire import detect as interop
from neuroscript.runtime.replies import Reply, RetriedRequest


class Sample:
    """An instance of an unrelated class."""

    def __init__(self, *args: Any, **named: Any) -> None:
        pass


def sample(*args: Any, **named: Any) -> Any:
    """A function in place of something else."""


SAMPLES: dict[str, Any] = {
    "None": None,
    "object": object(),
    "zero": 0,
    "number": 5,
    "fraction": 2.5,
    "empty string": "",
    "string": "text",
    "empty list": [],
    "list": [object()],
    "empty dict": {},
    "dict": {5: object()},
    "class": Sample,
    "function": sample,
}

DOCUMENTED = (ns.NeuroScriptError, OSError, sqlite3.Error, testing.ScriptError, testing.ChecksFailed)
"""Errors that are allowed for a value of the right type."""

MADE_BY_THE_ENGINE = {
    "audit.ChainProblem": "it reports the content of an untrusted file",
    "audit.OpenCall": "it reports the content of an untrusted file",
    "audit.VerificationReport": "it reports the content of an untrusted file",
    "ArgumentError": "one is made for each call whose arguments do not fit",
    "CallRecord": "a plain tuple: one is made for each call that is watched",
    "DirEntry": "one is made for each file of a directory",
    "Handle": "Handles.new makes one, and every call checks the id of the handles that it receives",
    "PendingCall": "one is made for each call that a hook may refuse",
    "Problem": "a plain tuple: one is made for each argument that does not fit",
    "WorkerInfo": "only an engine makes one",
    "Progress": "one is made whenever a tool reports its progress",
    "Repair": "one is made for each value that is converted",
    "ToolResult": "one is made in each call of execute",
}
"""Classes for data that the engine creates on the hot path or reads from foreign files; they check nothing."""

LEFT_TO_THE_CALL = {
    "bind": "args",
    "bind_named": "mapping",
    "llm.call_id": "data",
    "llm.read_call": "data",
    "llm.shape_of": "data",
    "Session.acall": "name args timeout",
    "Session.acall_named": "name mapping timeout",
    "Session.astream": "name args timeout",
    "Session.call": "name args timeout",
    "Session.call_named": "name mapping timeout",
    "Session.stream": "name args timeout",
    "ToolCall": "name arguments id",
    "policy_from_data": "data",
    "spec_from_data": "data",
    "spec_from_schema": "schema",
    "testing.FakeRuntime.call_tool": "args",
    "testing.FakeRuntime.call_tool_named": "mapping",
}
"""Parameters for data that others sent or wrote: a documented error gives the path in it, or the call fails."""

INTERNAL = {
    "ArgType": "an Enum, which Python checks",
    "ExecutionPolicy.approvers_of": "the pipeline asks it",
    "ExecutionPolicy.asks": "the pipeline asks it",
    "FlowRule.matched": "the pipeline asks it",
    "ExecutionPolicy.uncovered_need": "asked in each call of a tool that needs something",
    "Grant.admits": "asked in each call of a tool that needs something",
    "sandbox.Sandbox.open_root": "each operation on a file holds the root",
    "Session": "Engine.session makes sessions",
    "Resolver.found": "a call passes its Runtime",
    "Secret.found": "a call passes its Runtime",
    "State.found": "a call passes its Runtime",
    "Variable.found": "a call passes its Runtime",
    "llm.Model": "model makes models",
    "testing.CheckCase": "checks_for makes cases",
}
"""Names without an underscore that only the engine calls."""

OTHER_SUBJECTS = {
    "ArgSpec": r"argument (a|\?)",
    "Grant.parse": "capability",
    "Session.aexecute": "a?execute",
    "ToolImplementation": r"tool|demo\.add",
    "ToolImplementation.with_exposed": r"demo\.add",
    "ToolPolicy": "policy",
    "ToolSpec": r"demo\..*|.*\.add",
    "ToolSpec.by_name": r"demo\.add",
    "Resource.expand": "resource",
    "Resource.match": "resource",
    "Toolset.add": r"tool|demo\.add",
    "Toolset.prompt": "toolset demo|prompt",
    "Toolset.resource": "toolset demo|resource.*",
    "Toolset.with_exposed": r"toolset demo|demo\.add",
    "aask": "ask",
    "tool": r"tool|demo\.added",
    "llm.Model.ask": "reply",
    "llm.Model.ask_with_tools": "reply",
    "llm.aconverse": "converse",
    "testing.check_toolset": "checks",
    "testing.checks_for": "checks",
    "testing.fuzz_toolset": "fuzz",
    "testing.installed_toolsets": "toolsets",
    **dict.fromkeys(
        [f"Toolset.{each}" for each in ("alias", "filtered", "prefixed", "renamed", "tool")]
        + [f"Toolset.with_{each}" for each in ("docs", "fixed", "injected", "policy")],
        "toolset demo",
    ),
}
"""Patterns of what an error begins with, where that is not the name of the function or its class."""


@attrs.define(eq=False)
class Scene:
    """Valid parts, from which each row takes what it needs."""

    root: Path
    opened: ExitStack = attrs.field(factory=ExitStack)

    @property
    def spec(self) -> ns.ToolSpec:
        return ns.ToolSpec("add", "demo", (ns.ArgSpec("a", "int"),), return_type="int")  # type: ignore[arg-type]

    @property
    def tool(self) -> ns.ToolImplementation:
        return ns.ToolImplementation(self.spec, added)

    @property
    def toolset(self) -> ns.Toolset:
        return ns.Toolset("demo", (self.tool,))

    @property
    def engine(self) -> ns.Engine:
        host = ns.Host(sandbox_dir=self.root)
        return self.closed(ns.Engine(plugins="none", toolsets=[self.toolset], host=host))

    @property
    def call(self) -> ns.ToolCall:
        return ns.ToolCall("demo.add", {"a": 1})

    @property
    def request(self) -> ns.ApprovalRequest:
        return ns.ApprovalRequest("demo.add", "", {}, frozenset(), (), (), "s", 1, (), "f", "p", "d")

    @property
    def pending(self) -> ns.PendingApproval:
        return ns.PendingApproval(self.call, "0" * 64, "0" * 64, "s", "0" * 64)

    @property
    def record(self) -> ns.CallRecord:
        about = ns.ToolFacts("demo.add")
        return ns.CallRecord("outcome", about, "r", "s", 1, 0, 1, "", 0.0, (), (), (), b"", (), "ok", "", {}, 0.0)

    @property
    def report(self) -> testing.Report:
        return testing.Report("demo", 1, ())

    @property
    def policy(self) -> ns.ExecutionPolicy:
        return ns.ExecutionPolicy()

    @property
    def conversation(self) -> llm.Conversation:
        return llm.Conversation((self.turn,))

    @property
    def turn(self) -> ns.Turn:
        return ns.Turn("user", "Hello?")

    @property
    def rt(self) -> testing.FakeRuntime:
        world: dict[str, Any] = {"variables": {"v": 1}, "secrets": {"pin": "123456"}, "calls": {"a.b": 1}}
        return self.closed(testing.FakeRuntime(answers=["yes"], **world))

    def closed(self, thing: Any) -> Any:
        """Return an object, and close it with the scene if it can be closed."""
        if callable(getattr(thing, "close", None)) and not isinstance(thing, type):
            self.opened.callback(thing.close)
        return thing

    def path(self, name: str) -> Path:
        """Return a path at which nothing exists."""
        path = self.root / name
        path.unlink(missing_ok=True)
        return path

    def file(self, name: str, text: str) -> Path:
        """Return the path of a file."""
        path = self.root / name
        path.write_text(text)
        return path


def added(rt: ns.Runtime, a: int) -> int:
    return a


def last_turn(turns: Any) -> ns.Turn:
    return ns.Turn("assistant", "Hello.")


class Parrot:
    """A model."""

    def ask(self, turns: Any) -> ns.Turn:
        return last_turn(turns)

    def ask_with_tools(self, turns: Any, tools: Any) -> ns.Turn:
        return last_turn(turns)

    def embed(self, text: str) -> list[float]:
        return [1.0]


Row = Callable[[Scene], tuple[Callable[..., Any], dict[str, Any]]]

SPECS = {
    "aask": lambda s: (ns.aask, {"llm": Parrot(), "prompt": "Hello?"}),
    "ask": lambda s: (ns.ask, {"llm": Parrot(), "prompt": "Hello?"}),
    "bind": lambda s: (ns.bind, {"spec": s.spec, "args": [1]}),
    "bind_named": lambda s: (ns.bind_named, {"spec": s.spec, "mapping": {"a": 1}}),
    "coerce": lambda s: (ns.coerce, {"value": 1, "type": "int"}),
    "policy_from_data": lambda s: (ns.policy_from_data, {"data": {}}),
    "policy_to_data": lambda s: (ns.policy_to_data, {"policy": ns.ToolPolicy()}),
    "result_schema": lambda s: (ns.result_schema, {"spec": s.spec}),
    "result_to_data": lambda s: (ns.result_to_data, {"result": ns.ToolResult("1", "demo.add", 1)}),
    "spec_from_data": lambda s: (ns.spec_from_data, {"data": ns.spec_to_data(s.spec)}),
    "spec_from_schema": lambda s: (ns.spec_from_schema, {"name": "demo.add", "schema": {"type": "object"}}),
    "spec_to_data": lambda s: (ns.spec_to_data, {"spec": s.spec}),
    "spec_to_schema": lambda s: (ns.spec_to_schema, {"spec": s.spec}),
    "to_openapi": lambda s: (ns.to_openapi, {"tools": s.engine}),
    "to_prompt": lambda s: (ns.to_prompt, {"specs": s.spec}),
    "Arg": lambda s: (ns.Arg, {}),
    "ArgSpec": lambda s: (ns.ArgSpec, {"name": "a", "type": "slice_int"}),
    "Example": lambda s: (ns.Example, {}),
    "Audio": lambda s: (ns.Audio, {"data": b"RIFF", "media_type": "audio/wav"}),
    "Content": lambda s: (ns.Content, {"blocks": ["a"]}),
    "Content.mapped": lambda s: (ns.Content("a").mapped, {"change": lambda value: value}),
    "Content.of_data": lambda s: (ns.Content.of_data, {"data": {"content": []}}),
    "EmbeddedResource": lambda s: (ns.EmbeddedResource, {"uri": "a:b", "content": "c"}),
    "Image": lambda s: (ns.Image, {"data": b"GIF89a", "media_type": "image/gif"}),
    "ResourceLink": lambda s: (ns.ResourceLink, {"uri": "a:b", "name": "c"}),
    "SizeLimits": lambda s: (ns.SizeLimits, {}),
    "Prompt": lambda s: (ns.Prompt, {}),
    "Resource": lambda s: (ns.Resource, {"uri": "notes://{name}"}),
    "Resource.expand": lambda s: (ns.Resource("notes://{name}").expand, {"values": {"name": "a"}}),
    "Resource.match": lambda s: (ns.Resource("notes://{name}").match, {"uri": "notes://a"}),
    "Text": lambda s: (ns.Text, {"text": "a"}),
    "ToolSpec": lambda s: (ns.ToolSpec, {"name": "add", "group": "demo"}),
    "ToolSpec.by_name": lambda s: (s.spec.by_name, {"values": [1]}),
}
TOOLS = {
    "from_code": lambda s: (ns.from_code, {"text": "def two() -> int: return 2", "group": "demo"}),
    "to_function": lambda s: (ns.to_function, {"session": s.engine, "tool": "demo.add"}),
    "tool": lambda s: (ns.tool, {"func": added, "group": "demo"}),
    "Resolver": lambda s: (ns.Resolver, {"resolve": sample}),
    "Secret": lambda s: (ns.Secret, {"name": "pin"}),
    "State": lambda s: (ns.State, {"mapping": {}, "key": "a"}),
    "Value": lambda s: (ns.Value, {"value": 1}),
    "Variable": lambda s: (ns.Variable, {"name": "v"}),
    "ToolImplementation": lambda s: (ns.ToolImplementation, {"spec": s.spec, "func": added}),
    "ToolImplementation.with_injected": lambda s: (s.tool.with_injected, {"sources": {"a": ns.Value(1)}}),
    "ToolImplementation.with_exposed": lambda s: (s.tool.with_injected(a=ns.Value(1)).with_exposed, {"names": ["a"]}),
    "ToolIndex": lambda s: (ns.ToolIndex, {"tools": [s.spec]}),
    "ToolIndex.search": lambda s: (ns.ToolIndex([s.spec]).search, {"query": "add"}),
    "ToolInfo": lambda s: (ns.ToolInfo, {"spec": s.spec, "policy": ns.ToolPolicy(), "origin": "host"}),
    "ToolPolicy": lambda s: (ns.ToolPolicy, {}),
    "Toolset": lambda s: (ns.Toolset, {"name": "demo"}),
    "Toolset.add": lambda s: (ns.Toolset("demo").add, {"spec": s.spec, "func": added}),
    "Toolset.alias": lambda s: (s.toolset.alias, {"old": "demo.plus", "new": "demo.add"}),
    "Toolset.with_docs": lambda s: (s.toolset.with_docs, {"pattern": "*", "docs": {"description": "Add."}}),
    "Toolset.filtered": lambda s: (s.toolset.filtered, {"chosen": "*"}),
    "Toolset.with_fixed": lambda s: (s.toolset.with_fixed, {"tool": "demo.add", "values": {"a": 1}}),
    "Toolset.with_injected": lambda s: (s.toolset.with_injected, {"tool": "demo.add", "sources": {"a": ns.Value(1)}}),
    "Toolset.prefixed": lambda s: (s.toolset.prefixed, {"prefix": "more"}),
    "Toolset.renamed": lambda s: (s.toolset.renamed, {"names": {"demo.add": "plus"}}),
    "Toolset.with_exposed": lambda s: (
        s.toolset.with_fixed("demo.add", a=1).with_exposed,
        {"tool": "demo.add", "names": ["a"]},
    ),
    "Toolset.prompt": lambda s: (ns.Toolset("demo").prompt, {}),
    "Toolset.resource": lambda s: (ns.Toolset("demo").resource, {"uri": "notes://all"}),
    "Toolset.tool": lambda s: (ns.Toolset("demo").tool, {}),
    "Toolset.with_policy": lambda s: (s.toolset.with_policy, {"pattern": "*", "changes": {"timeout": 1}}),
}
AUTHORITY = {
    "load_policy": lambda s: (ns.load_policy, {"path": s.file("policy.toml", 'grants = ["fs:read:*"]\n')}),
    "FileApprover": lambda s: (ns.FileApprover, {"directory": s.root / "pending"}),
    "Approval": lambda s: (ns.Approval, {"verdict": "approve"}),
    "Approval.approve": lambda s: (ns.Approval.approve, {}),
    "Approval.modify": lambda s: (ns.Approval.modify, {"arguments": {}}),
    "Approval.reject": lambda s: (ns.Approval.reject, {}),
    "Approval.stop": lambda s: (ns.Approval.stop, {}),
    "Approval.suspend": lambda s: (ns.Approval.suspend, {}),
    "ApprovalRequest": lambda s: (ns.ApprovalRequest, attrs.asdict(s.request, recurse=False)),
    "Capability": lambda s: (ns.Capability, {"resource": "fs", "verbs": ("read",)}),
    "Capability.literal": lambda s: (ns.Capability.literal, {"resource": "fs", "verb": "read", "scope": "a"}),
    "Capability.parse": lambda s: (ns.Capability.parse, {"text": "fs:read:a"}),
    "Decision": lambda s: (ns.Decision, {"tool": "demo.add", "allowed": True}),
    "Decision.of": lambda s: (ns.Decision.of, {"error": ns.CallError("text")}),
    "ExecutionPolicy": lambda s: (ns.ExecutionPolicy, {}),
    "ExecutionPolicy.allowing": lambda s: (s.policy.allowing, {"name": "demo.add"}),
    "ExecutionPolicy.approvers": lambda s: (s.policy.approvers, {"name": "demo.add"}),
    "FlowLabels": lambda s: (ns.FlowLabels, {"tools": "demo.*"}),
    "FlowRule": lambda s: (ns.FlowRule, {"labels": ["untrusted"], "to": ["outside"]}),
    "Isolation": lambda s: (ns.Isolation, {}),
    "Isolation.isolates": lambda s: (ns.Isolation().isolates, {"tool": "demo.add", "origin": "host"}),
    "Isolation.isolates_import": lambda s: (ns.Isolation().isolates_import, {"origin": "host"}),
    "Isolation.keeps_network": lambda s: (ns.Isolation().keeps_network, {"tool": "demo.add"}),
    "ExecutionPolicy.check": lambda s: (s.policy.check, {"tool": s.tool, "values": (1,)}),
    "ExecutionPolicy.denial": lambda s: (s.policy.denial, {"old": "demo.plus", "tool": "demo.add"}),
    "ExecutionPolicy.inside": lambda s: (s.policy.inside, {"ceiling": s.policy}),
    "ExecutionPolicy.isolation_of": lambda s: (s.policy.isolation_of, {"tool": "demo.add", "origin": "host"}),
    "ExecutionPolicy.program_isolation": lambda s: (s.policy.program_isolation, {"tool": "demo.add"}),
    "ExecutionPolicy.least": lambda s: (s.policy.least, {"limit": "seconds"}),
    "ExecutionPolicy.narrowed": lambda s: (s.policy.narrowed, {"changes": {"trusted": False}}),
    "ExecutionPolicy.unmatched": lambda s: (s.policy.unmatched, {"names": ["demo.add"]}),
    "ExecutionPolicy.unused": lambda s: (s.policy.unused, {"needs": ["fs:read"]}),
    "ExecutionPolicy.precheck": lambda s: (s.policy.precheck, {"name": "demo.add", "needs": ns.ToolPolicy()}),
    "Grant": lambda s: (ns.Grant, {"resource": "fs", "verbs": ("read",), "scopes": ("*",)}),
    "Grant.covers": lambda s: (ns.Grant.parse("fs:read:*").covers, {"need": ns.Capability.parse("fs:read:a")}),
    "Grant.of": lambda s: (ns.Grant.of, {"need": ns.Capability.parse("fs:read:a")}),
    "Grant.parse": lambda s: (ns.Grant.parse, {"text": "fs:read:*"}),
    "Limits": lambda s: (ns.Limits, {}),
    "Limits.rates_of": lambda s: (ns.Limits(rates={"demo.*": "1/second"}).rates_of, {"tool": "demo.add"}),
    "PendingApproval": lambda s: (ns.PendingApproval, attrs.asdict(s.pending, recurse=False)),
    "PendingApproval.agrees": lambda s: (
        s.pending.agrees,
        {"fingerprint": "f", "policy": "p", "session": "s", "digest": "d"},
    ),
    "PendingApproval.load": lambda s: (ns.PendingApproval.load, {"path": s.pending.save(s.path("pending.json"))}),
    "PendingApproval.of": lambda s: (ns.PendingApproval.of, {"request": s.request}),
    "PendingApproval.save": lambda s: (s.pending.save, {"place": s.path("pending.json")}),
}
ENGINE = {
    "aclient": lambda s: (ns.aclient, {"session": s.engine}),
    "bundle": lambda s: (ns.bundle, {"name": "files"}),
    "client": lambda s: (ns.client, {"session": s.engine}),
    "ConsolePrompter": lambda s: (ns.ConsolePrompter, {}),
    "ConsolePrompter.ask": lambda s: (ns.ConsolePrompter(StringIO("yes\n"), StringIO()).ask, {"prompt": "?"}),
    "Engine": lambda s: (ns.Engine, {"plugins": "none"}),
    "Engine.aclose": lambda s: (s.engine.aclose, {}),
    "Engine.add_hooks": lambda s: (s.engine.add_hooks, {}),
    "Engine.add_plugin_errors": lambda s: (s.engine.add_plugin_errors, {"errors": [ns.PluginError("acme", "why")]}),
    "Engine.close": lambda s: (s.engine.close, {}),
    "Engine.load_plugin": lambda s: (s.engine.load_plugin, {"plugin": s.file("plug.py", PLUGIN)}),
    "Engine.load_plugins": lambda s: (s.engine.load_plugins, {"directory": s.root}),
    "Engine.preload": lambda s: (s.engine.preload, {}),
    "Engine.register": lambda s: (s.engine.register, {"tools": ns.Toolset("more")}),
    "Engine.reload_plugin": lambda s: (s.engine.reload_plugin, {"plugin": "nothing"}),
    "Engine.session": lambda s: (s.engine.session, {}),
    "Engine.unload_plugin": lambda s: (s.engine.unload_plugin, {"plugin": "nothing"}),
    "Host": lambda s: (ns.Host, {}),
    "Host.logger_of": lambda s: (ns.Host().logger_of, {"tool": "demo.add"}),
    "Registrar.register": lambda s: (ns.Registrar().register, {"tools": s.tool}),
    "Registrar.toolset": lambda s: (ns.Registrar().toolset, {"name": "demo"}),
    "Session.acall": lambda s: (s.engine.acall, {"name": "demo.add", "args": [1]}),
    "Session.acall_named": lambda s: (s.engine.acall_named, {"name": "demo.add", "mapping": {"a": 1}}),
    "Session.aexecute": lambda s: (s.engine.aexecute, {"call": s.call}),
    "Session.astream": lambda s: (s.engine.astream, {"name": "demo.add", "args": [1]}),
    "Session.call": lambda s: (s.engine.call, {"name": "demo.add", "args": [1]}),
    "Session.call_named": lambda s: (s.engine.call_named, {"name": "demo.add", "mapping": {"a": 1}}),
    "Session.check": lambda s: (s.engine.check, {"calls": [s.call]}),
    "Session.execute": lambda s: (s.engine.execute, {"call": s.call}),
    "Session.add_labelled": lambda s: (s.engine.add_labelled, {"value": "x", "labels": ["untrusted"]}),
    "Session.user_said": lambda s: (s.engine.user_said, {"text": "x"}),
    "Session.narrowed": lambda s: (s.engine.narrowed, {"policy": s.policy}),
    "Session.resume": lambda s: (s.engine.resume, {"pending": s.pending, "answer": ns.Approval.approve()}),
    "Session.stream": lambda s: (s.engine.stream, {"name": "demo.add", "args": [1]}),
    "SharedState": lambda s: (ns.SharedState, {"url": f"sqlite:///{s.root}/state.sqlite"}),
    "Spill": lambda s: (ns.Spill, {}),
    "SpilledResult": lambda s: (ns.SpilledResult, {"path": "results/a", "size": 1}),
    "TerminalApprover": lambda s: (ns.TerminalApprover, {}),
    "ToolCall": lambda s: (ns.ToolCall, {"name": "demo.add"}),
    "Turn": lambda s: (ns.Turn, {"role": "user"}),
    "Watcher": lambda s: (ns.Watcher, {}),
}
RECORDS = {
    "audit.KeyFile": lambda s: (audit.KeyFile, {"key": bytes(32)}),
    "audit.read": lambda s: (audit.read, {"path": s.file("trail.jsonl", "")}),
    "audit.read_key": lambda s: (audit.read_key, {"path": s.file("key", "0" * 64)}),
    "audit.verify": lambda s: (audit.verify, {"path": s.file("trail.jsonl", "")}),
    "FileAudit": lambda s: (ns.FileAudit, {"path": s.path("audit.jsonl")}),
    "FileAudit.write": lambda s: (s.closed(ns.FileAudit(s.path("audit.jsonl"))).write, {"record": s.record}),
    "Lock": lambda s: (ns.Lock, {"distributions": ()}),
    "Lock.admit": lambda s: (
        ns.Lock(()).admit,
        {"distribution": Distribution("acme", "acme", "1.0", "", ()), "is_isolated": False},
    ),
    "Lock.check": lambda s: (ns.Lock(()).check, {}),
    "Lock.missing": lambda s: (ns.Lock(()).missing, {}),
    "Lock.of": lambda s: (ns.Lock(()).of, {"name": "acme"}),
    "Lock.of_text": lambda s: (ns.Lock.of_text, {"text": ns.Lock(()).text}),
    "Lock.read": lambda s: (ns.Lock.read, {"path": s.file("a.lock", ns.Lock(()).text)}),
    "Lock.refusal": lambda s: (ns.Lock(()).refusal, {}),
    "Lock.write": lambda s: (ns.Lock(()).write, {"path": s.path("b.lock")}),
    "MemoryAudit": lambda s: (ns.MemoryAudit, {}),
    "Recording": lambda s: (ns.Recording, {"path": s.path("calls.jsonl")}),
    "Recording.omit": lambda s: (
        s.closed(ns.Recording(s.path("calls.jsonl"))).omit,
        {"tool": s.tool, "reason": "size"},
    ),
    "Recording.write": lambda s: (
        s.closed(ns.Recording(s.path("calls.jsonl"))).write,
        {"tool": s.tool, "fingerprint": "f", "values": (1,)},
    ),
    "SqliteAudit": lambda s: (ns.SqliteAudit, {"path": s.path("audit.db")}),
    "SqliteAudit.write": lambda s: (s.closed(ns.SqliteAudit(s.path("audit.db"))).write, {"record": s.record}),
    "ToolFacts": lambda s: (ns.ToolFacts, {"tool": "demo.add"}),
}
ERRORS = {
    "CallError": lambda s: (ns.CallError, {"text": "why"}),
    "CallTimeout": lambda s: (ns.CallTimeout, {"text": "why", "state": "stopped"}),
    "HostError": lambda s: (ns.HostError, {"text": "why"}),
    "PluginError": lambda s: (ns.PluginError, {"distribution": "acme", "reason": "why"}),
    "RegistryError": lambda s: (ns.RegistryError, {"text": "why"}),
    "AuditError": lambda s: (ns.AuditError, {"text": "why"}),
    "PolicyError": lambda s: (ns.PolicyError, {"text": "why"}),
    "SpecError": lambda s: (ns.SpecError, {"subject": "demo", "problems": ["why"]}),
    "ToolNotFound": lambda s: (ns.ToolNotFound, {"name": "demo.add"}),
}
OTHERS = {
    "llm.Shape": lambda s: (interop.Shape, {"title": "mine", "read": sample}),
    "llm.call_id": lambda s: (interop.call_id, {"data": {}}),
    "llm.read_call": lambda s: (interop.read_call, {"data": {"name": "demo.add"}}),
    "llm.shape_of": lambda s: (interop.shape_of, {"data": {}}),
    "llm.CallEnded": lambda s: (llm.CallEnded, {"call": s.call, "result": ns.ToolResult("1", "demo.add", 1)}),
    "llm.CallStarted": lambda s: (llm.CallStarted, {"call": s.call}),
    "llm.Conversation": lambda s: (llm.Conversation, {"turns": (s.turn,)}),
    "llm.ConversationError": lambda s: (
        llm.ConversationError,
        {"text": "why", "code": "llm.no_model", "retry": "host", "conversation": s.conversation},
    ),
    "llm.ItemProduced": lambda s: (llm.ItemProduced, {"call": s.call, "item": 1}),
    "llm.Model.ask": lambda s: (nowhere().ask, {"turns": [s.turn]}),
    "llm.Model.ask_with_tools": lambda s: (nowhere().ask_with_tools, {"turns": [s.turn], "tools": [s.spec]}),
    "llm.Model.embed": lambda s: (nowhere().embed, {"text": "Hello?"}),
    "llm.Model.reply": lambda s: (nowhere().reply, {"turns": [s.turn]}),
    "llm.ReplyReceived": lambda s: (llm.ReplyReceived, {"reply": Reply(s.turn)}),
    "llm.RetryScheduled": lambda s: (llm.RetryScheduled, {"retried": RetriedRequest("llm.rate", 1.0)}),
    "llm.TextReceived": lambda s: (llm.TextReceived, {"text": "Hello."}),
    "llm.aconverse": lambda s: (llm.aconverse, {"engine": s.engine, "prompt": "Hello?", "model": Parrot()}),
    "llm.converse": lambda s: (llm.converse, {"engine": s.engine, "prompt": "Hello?", "model": Parrot()}),
    "llm.model": lambda s: (llm.model, {"name": "tiny", "base_url": "http://127.0.0.1:9/v1"}),
    "llm.transcript": lambda s: (llm.transcript, {"conversation": s.conversation}),
    "sandbox.Sandbox": lambda s: (sandbox.Sandbox, {"directory": str(s.root)}),
    "sandbox.Sandbox.files": lambda s: (s.closed(sandbox.Sandbox(str(s.root))).files, {"may": sample, "spend": sample}),
    "sandbox.Sandbox.resolve": lambda s: (s.closed(sandbox.Sandbox(str(s.root))).resolve, {"path": "a"}),
    "testing.FakeRuntime": lambda s: (testing.FakeRuntime, {}),
    "testing.FakeRuntime.call_tool": lambda s: (s.rt.call_tool, {"name": "a.b"}),
    "testing.FakeRuntime.call_tool_named": lambda s: (s.rt.call_tool_named, {"name": "a.b", "mapping": {}}),
    "testing.FakeRuntime.confine": lambda s: (s.rt.confine, {"program": "/bin/true"}),
    "testing.FakeRuntime.get_var": lambda s: (s.rt.get_var, {"name": "v"}),
    "testing.FakeRuntime.misused": lambda s: (s.rt.misused, {"text": "why"}),
    "testing.FakeRuntime.println": lambda s: (s.rt.println, {"values": [1]}),
    "testing.FakeRuntime.progress": lambda s: (s.rt.progress, {"done": 1}),
    "testing.FakeRuntime.prompt_user": lambda s: (s.rt.prompt_user, {"prompt": "?"}),
    "testing.FakeRuntime.require": lambda s: (s.rt.require, {"capability": "fs:read"}),
    "testing.FakeRuntime.secret": lambda s: (s.rt.secret, {"name": "pin"}),
    "testing.FakeRuntime.set_var": lambda s: (s.rt.set_var, {"name": "v", "value": 1}),
    "testing.FakeRuntime.spend": lambda s: (s.rt.spend, {"what": "sleep", "amount": 1}),
    "testing.FakeRuntime.update_var": lambda s: (s.rt.update_var, {"name": "v", "change": lambda value: 1}),
    "testing.ContractCheck": lambda s: (
        testing.ContractCheck,
        {"name": "check", "sentence": "It holds.", "check": sample},
    ),
    "testing.ChecksFailed": lambda s: (testing.ChecksFailed, {"report": s.report}),
    "testing.Report": lambda s: (testing.Report, {"toolset": "demo", "check_count": 1, "violations": ()}),
    "testing.Setup": lambda s: (testing.Setup, {}),
    "testing.Setup.world": lambda s: (entered(testing.Setup().world), {"tools": [s.tool]}),
    "testing.Violation": lambda s: (testing.Violation, {"check": "check", "tool": "demo.add", "faults": ("why",)}),
    "testing.check_toolset": lambda s: (testing.check_toolset, {"toolsets": ns.Toolset("empty"), "raises": False}),
    "testing.fuzz_toolset": lambda s: (testing.fuzz_toolset, {"toolsets": ns.Toolset("empty")}),
    "testing.installed_toolsets": lambda s: (testing.installed_toolsets, {"distribution": "neuroscript-std"}),
    "testing.checks_for": lambda s: (testing.checks_for, {"toolsets": ns.Toolset("empty")}),
}
ROWS: dict[str, Row] = {**SPECS, **TOOLS, **AUTHORITY, **ENGINE, **RECORDS, **ERRORS, **OTHERS}
"""A valid call of each public function, constructor and method."""

PLUGIN = "def register(registrar): registrar.toolset('plug')\n"


def nowhere() -> llm.Model:
    """Return a model at an address without a listener."""
    return llm.model("tiny", base_url="http://127.0.0.1:9/v1", attempts=1, key="k")


def entered(make: Callable[..., Any]) -> Callable[..., None]:
    """Return a function that enters and leaves the context that *make* returns."""

    def enter(*args: Any, **named: Any) -> None:
        with make(*args, **named):
            pass

    return enter


def faults(name: str, scene: Scene) -> Iterator[str]:
    """Yield a message for each value that is not treated as the annotation of its parameter promises."""
    function = callables()[name]
    for parameter in parameters(function):
        kind = admitted(function, parameter)
        for label, value in SAMPLES.items():
            outcome = outcome_of(name, scene, parameter, value)
            fault = fault_of(outcome, fits(kind, value), name, parameter, value)
            if fault:
                yield f"{parameter.name}={label}: {fault}"


def outcome_of(name: str, scene: Scene, parameter: inspect.Parameter, value: object) -> BaseException | None:
    """Return the error of a call in which at most one value is invalid, or None."""
    call, given = ROWS[name](scene)
    if parameter.kind is parameter.VAR_POSITIONAL:
        value = [value]
    elif parameter.kind is parameter.VAR_KEYWORD:
        value = dict.fromkeys(given[parameter.name], value)
    try:
        made = called(callables()[name], call, {**given, parameter.name: value})
        scene.closed(asyncio.run(made) if inspect.iscoroutine(made) else made)
    except Exception as error:
        return error
    return None


def fault_of(
    outcome: BaseException | None, is_fitting: bool, name: str, parameter: inspect.Parameter, value: object
) -> str:
    """Return the fault in the outcome of a call, or an empty string."""
    if outcome is not None and not isinstance(outcome, DOCUMENTED):
        return f"{type(outcome).__name__}: {outcome}"
    if is_fitting or parameter.name in LEFT_TO_THE_CALL.get(name, "").split():
        return ""
    if outcome is None:
        return "it is accepted"
    if not isinstance(outcome, (ns.NeuroScriptError, testing.ScriptError)):
        return f"{type(outcome).__name__} is not our error: {outcome}"
    text = str(outcome)
    if parameter.name not in text or not any(each in text for each in types_in(value)):
        return f"the parameter or the type is missing in: {text}"
    if not re.match(rf"(?:{subjects(name)}): {parameter.name}\b", text, re.DOTALL):
        return f"the subject is not {subjects(name)} in: {text}"
    return ""


def subjects(name: str) -> str:
    """Return a pattern of what an error of a function begins with: its name or that of its class, also as words."""
    parts = name.split(".")
    words = (re.sub(r"(?<=[a-z])(?=[A-Z])", " ", part).lower() for part in parts)
    return OTHER_SUBJECTS.get(name) or "|".join((*parts, *words))


def types_in(value: object) -> set[str]:
    """Return the allowed names for the type of a value or item; for a string, the error may give the expected form."""
    items = value if isinstance(value, (list, dict)) else ()
    names = {type(each).__name__ for each in (value, *items)}
    if type(value) in (int, float):
        names.add(str(value))  # limits show it this way
    return {"None" if each == "NoneType" else each for each in names} | ({"must be"} if type(value) is str else set())


CHECKED = sorted(set(callables()) - set(MADE_BY_THE_ENGINE) - set(INTERNAL))


def test_every_public_callable_has_a_row() -> None:
    """Add a new public name to the rows, or to a list of names that check nothing, with the reason."""
    assert set(CHECKED) == set(ROWS)
    assert set(callables()) >= {*MADE_BY_THE_ENGINE, *INTERNAL, *LEFT_TO_THE_CALL}


@pytest.mark.parametrize("name", CHECKED)
def test_wrong_type_is_refused_at_once_with_the_parameter_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error begins with what was called and the parameter, and gives the expected value and the received type."""
    monkeypatch.chdir(tmp_path)
    scene = Scene(tmp_path)

    with scene.opened:
        found = [*faults(name, scene)]

    assert [] == found
