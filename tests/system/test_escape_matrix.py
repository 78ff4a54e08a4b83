"""Every way to run a tool, combined with every refusal: from outside, from a tool, and one level deeper."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest
from sphinx.ext.autodoc.mock import mock
from tests.system.refusals import REFUSALS, Refusal

import neuroscript
from neuroscript import (
    ArgType,
    CallError,
    Engine,
    ExecutionPolicy,
    Runtime,
    Session,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    aclient,
    client,
    to_function,
)
from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.calls.steps import CallFrame
from neuroscript.cli.dispatch import MODULES
from neuroscript.cli.parser import COMMANDS
from neuroscript.engine.call_runtime import CallRuntime
from neuroscript.policy.limits import Limits
from neuroscript.tools.fingerprints import call_digest, fingerprint, policy_digest

# Ways to call

Way = Callable[[Any, str], object]
"""Takes a session or a Runtime and the name of a tool without arguments; raises the error of the refusal."""


def raising(result: Any) -> None:
    """Raise the error of a result."""
    if result.error is not None:
        raise result.error


async def _drained(items: Any) -> list[Any]:
    return [item async for item in items]


async def _awaited(tool: Callable[[], Any]) -> object:
    found = tool()
    return await (_drained(found) if hasattr(found, "__aiter__") else found)


def resumed(session: Any, name: str) -> None:
    """Resume a call that was never stored, with every bound field correct."""
    tool = session._shared.registry.tools[name]
    definition = fingerprint(tool)
    bound = (definition, policy_digest(session.policy), session.id, call_digest(definition, ()))
    is_rejected = any(layer.approver is not None for layer in session.policy.layers)
    answer = Approval.reject() if is_rejected else Approval.approve(for_session=True)
    raising(session.resume(PendingApproval(ToolCall(name, {}), *bound), answer))


def within(session: Any, name: str) -> object:
    """Call it as the engine does for an unrestricted tool."""
    above = CallFrame(session, "g.outer")
    return session._call_within(above, name, {}, True)


SESSION_WAYS: dict[str, Way] = {
    "call": lambda session, name: session.call(name),
    "call_named": lambda session, name: session.call_named(name, {}),
    "acall": lambda session, name: asyncio.run(session.acall(name)),
    "acall_named": lambda session, name: asyncio.run(session.acall_named(name, {})),
    "execute": lambda session, name: raising(session.execute(ToolCall(name.replace(".", "__"), "{}"))),
    "aexecute": lambda session, name: raising(asyncio.run(session.aexecute(ToolCall(name.replace(".", "__"), "{}")))),
    "stream": lambda session, name: list(session.stream(name)),
    "astream": lambda session, name: asyncio.run(_drained(session.astream(name))),
    "resume": resumed,
}
SESSION_QUIET = {
    "aclose", "add_hooks", "add_labelled", "add_plugin_errors", "aliases", "check", "close", "host", "id", "unused_rules",
    "infos", "is_closed", "labels", "ledger", "load_plugin", "load_plugins", "memory", "narrowed", "plugin_errors", "policy", "preload", "refusals", "workers",
    "register", "reload_plugin", "sandbox", "secrets", "session", "spills", "tools", "unload_plugin", "user_said",
}  # fmt: skip
"""Names that describe, add or end tools, and run none. ``tools`` gives a host its own functions."""

CLIENT_WAYS: dict[str, Way] = {
    "client": lambda session, name: list(reduce(getattr, name.split("."), client(session))() or ()),
    "aclient": lambda session, name: asyncio.run(_awaited(reduce(getattr, name.split("."), aclient(session)))),
    "to_function": lambda session, name: to_function(session, name)(),
    "to_async_function": lambda session, name: asyncio.run(to_function(session, name, is_async=True)()),
}
"""The tools of a session as attributes and as functions."""

WAYS = {**SESSION_WAYS, **CLIENT_WAYS, "call_within": within}
"""All ways from outside, each through a session, and the pipeline itself."""

RUNTIME_WAYS: dict[str, Way] = {
    "call_tool": lambda rt, name: rt.call_tool(name),
    "call_tool_named": lambda rt, name: rt.call_tool_named(name, {}),
}
RUNTIME_QUIET = {
    "cancelled", "confine", "deadline", "fs", "get_var", "handles", "labels", "llm", "logger", "meter", "now", "println", "progress",
    "prompt_user", "random", "require", "sandbox_dir", "secret", "set_var", "sleep", "spend", "tools", "update_var",
    "variables",
}  # fmt: skip
"""Names that run no tool; ``tools`` returns no functions, and ``update_var`` calls a function of the tool itself."""

COMMAND_WAYS = {
    "call",
    "execute",
    "run",
    "approve",
    "ask",
    "chat",
    "mcp",
    "mcp serve",
    "gateway",
    "openapi",
    "openapi serve",
    "web",
    "worker",
    "runs",
    "runs resume",
}
COMMAND_QUIET = {
    *(
        "list",
        "show",
        "completion",
        "help",
        "audit",
        "policy",
        "policy check",
        "policy explain",
        "plugins",
        "replay",
        "trace",
    ),
    *("new", "lint", "index", "doctor", "export", "stubs", "docs", "plan", "models", "mcp config", "mcp tools"),
    *("mcp login", "mcp logout"),
    *("isolation", "isolation check", "runs list", "runs show", "runs cancel", "runs prune"),
}
"""Names that run no tool. ``replay`` uses ``execute`` of an engine and only tools without effects."""

PACKAGE_WAYS = {
    "neuroscript.testing.checks.trials.acall": "acall_named",
    "neuroscript.testing.checks.trials.call": "call_named",
    "neuroscript.testing.checks.trials.execute": "execute",
    "neuroscript.console.application.app": "aexecute",
    "neuroscript.console.console.Console.__init__": "aexecute",
    "neuroscript.console.tools.running.CallWork.__init__": "aexecute",
    "neuroscript.console.visitor.Visitor.__init__": "aexecute",
    "neuroscript.llm.loop.converse": "execute",
    "neuroscript.llm.loop.aconverse": "aexecute",
    "neuroscript.llm.driver.ConversationDriver.__init__": "execute",
    "neuroscript.interop.llm.export.to_llm": "aexecute",
    "neuroscript.interop.crewai.to_crewai": "aexecute",
    "neuroscript.interop.google_adk.to_google_adk": "aexecute",
    "neuroscript.interop.inspect_ai.to_inspect_ai": "aexecute",
    "neuroscript.interop.llama_index.to_llama_index": "aexecute",
    "neuroscript.interop.langchain.export.to_langchain": "aexecute",
    "neuroscript.interop.http_server.principal_store.PrincipalStore.share_flow": "aexecute",
    "neuroscript.interop.http_server.request_session.request_session": "aexecute",
    "neuroscript.interop.mcp.server.serve.serve": "aexecute",
    "neuroscript.interop.mcp.server.serve.Service.__init__": "aexecute",
    "neuroscript.interop.mcp.server.files.ServedFiles.found": "aexecute",
    "neuroscript.interop.mcp.server.resources.Watch.__init__": "aexecute",
    "neuroscript.interop.mcp.server.client_session.Access.__init__": "aexecute",
    "neuroscript.interop.mcp.server.client_session.Access.of": "aexecute",
    "neuroscript.interop.mcp.server.client_session.Client.__init__": "aexecute",
    "neuroscript.interop.openapi.serve.app": "aexecute",
    "neuroscript.interop.openapi.clients.Catalog.__init__": "aexecute",
    "neuroscript.interop.openapi.clients.Client.__init__": "aexecute",
    "neuroscript.interop.openapi.clients.Clients.__init__": "aexecute",
    "neuroscript.interop.fastmcp.export.to_fastmcp": "aexecute",
    "neuroscript.interop.agentheaven.mcp.fastmcp_tool": "aexecute",
    "neuroscript.interop.neurosurfer.invoke.Invoker.__init__": "stream",
    "neuroscript.llm.offered_tools.offer_tools": "aexecute",
    "neuroscript.llm.offered_tools.OfferedTool.__init__": "aexecute",
    "neuroscript.interop.openai_agents.to_openai_agents": "aexecute",
    "neuroscript.interop.pydantic_ai.to_pydantic_ai": "aexecute",
    "neuroscript.workflow.runner.run": "acall_named",
    "neuroscript.workflow.runner.arun": "acall_named",
    "neuroscript.workflow.durable.execution.run_durably": "call_named",
    "neuroscript.workflow.durable.execution.arun_durably": "call_named",
    "neuroscript.workflow.durable.execution.aresume": "acall_named",
    "neuroscript.workflow.durable.execution.resume": "call_named",
    "neuroscript.workflow.durable.leader.Driver.__init__": "call_named",
    "neuroscript.workflow.durable.worker.Worker.__init__": "call_named",
    "neuroscript.testing.replay.replay": "execute",
    "neuroscript.testing.replay.replay_lines": "execute",
    **{
        name: name.rpartition(".")[2]
        for name in ("client", "aclient", "neuroscript.engine.client.client", "neuroscript.engine.client.aclient")
    },
    "to_function": "to_function",
    "neuroscript.interop.functions.to_function": "to_function",
    "neuroscript.engine.suspended.resume_once": "resume",
    "neuroscript.console.chat.turns.ChatTurn.__init__": "aexecute",
}
"""Functions that take an engine or a session and call tools, with the way that each uses."""

PACKAGE_QUIET = {
    "bind", "bind_named", "bundle", "coerce", "policy_from_data", "policy_to_data", "result_to_data", "spec_from_data",
    "spec_to_data", "spec_to_schema", "spec_from_schema", "result_schema", "from_function", "from_code",
    "to_prompt", "to_openapi", "neuroscript.interop.openapi.export.to_openapi", "tool", "hookimpl", "ask", "aask", "hookspec", "FileApprover", "load_policy",
    "neuroscript.interop.mcp.client.answers.Answers.announce_root",
    "neuroscript.calls.approvals.check_not_stale", "neuroscript.calls.approvals.pending_request",
    "neuroscript.calls.approvals.settle_flows", "neuroscript.workflow.labels.RunLabels.__init__",
    "neuroscript.workflow.labels.declared_labels", "neuroscript.calls.flow_pipeline.flow_of_session",
    "neuroscript.workflow.labels.with_session_labels",
    "neuroscript.workflow.plan.flows.PlanLabels.__init__", "neuroscript.workflow.plan.flows.flow_problems", "neuroscript.engine.preflight.bind_call", "neuroscript.engine.preflight.decide",
    "neuroscript.llm.steps.ConversationState.__init__",
    "neuroscript.testing.isolated.IsolatedTests.register",
    "neuroscript.testing.plugin.Distribution.__init__", "neuroscript.testing.plugin.pytest_collection_modifyitems",
    "neuroscript.testing.checks.setup.World.__init__", "neuroscript.calls.steps.CallFrame.__init__",
    "neuroscript.interop.mcp.server.files.ServedFiles.add_tools", "neuroscript.interop.mcp.server.files.ServedFiles.entries",
    "neuroscript.interop.mcp.server.resources.Resources.call", "neuroscript.interop.mcp.server.resources.Resources.found_files", "neuroscript.interop.mcp.server.resources.Resources.subscribable", "neuroscript.interop.mcp.server.resources.prompt_infos",
    "neuroscript.interop.mcp.server.resources.resource_infos", "neuroscript.llm.offered_tools.offered_infos", "neuroscript.llm.offered_tools.refuse_unoffered",
    "neuroscript.llm.offered_tools.narrow_session", "neuroscript.llm.offered_tools.unmatched_patterns", "neuroscript.engine.shared.Shared.join",
    "neuroscript.engine.client.Client.__init__", "neuroscript.workflow.plan.validation.check",
    "neuroscript.workflow.plan.planner.make_plan", "neuroscript.workflow.plan.planner.amake_plan",
    "neuroscript.workflow.synthesis.add_answer", "neuroscript.workflow.durable.validation.check_durable",
    "neuroscript.workflow.durable.schema.prepare", "neuroscript.workflow.durable.pool.Pool.__init__",
    "neuroscript.workflow.durable.tool_digests.ToolDigests.__init__",
    "neuroscript.gateway.servers.Servers.__init__", "neuroscript.interop.mcp.client.servers.try_server",
    "neuroscript.interop.mcp.client.servers.add_server", "neuroscript.interop.mcp.client.servers.add_servers",
    "neuroscript.engine.suspended.find_problem", "neuroscript.engine.suspended.request_of",
    "neuroscript.llm.turn_record.TurnRecord.__init__", "neuroscript.console.chat.exchanges.discreet",
    "neuroscript.console.chat.exchanges.started_call", "neuroscript.console.approvals.answers.validate",
    "neuroscript.console.approvals.answers.check_arguments",
    "neuroscript.console.approvals.requests.stored_entry",
    "neuroscript.calls.spill_writer.ResultFile.__init__", "neuroscript.calls.spill_writer.SpillingCollector.__init__", "neuroscript.calls.spill_writer.spill_result",
    "neuroscript.console.effects.harmless_tools",
    "neuroscript.console.health.plugins.compare_with_lock",
    "neuroscript.console.health.plugins.loaded_plugins",
    "neuroscript.console.health.servers.server_states",
    "neuroscript.console.policy.explained.explain_asked",
    "neuroscript.console.policy.limits.limit_rows",
    "neuroscript.console.tools.listing.Catalog.__init__",
    "neuroscript.console.tools.listing.Catalog.page",
    "neuroscript.console.tools.listing.list_tool",
    "neuroscript.console.tools.preview.preview_call",
    "neuroscript.console.tools.sandbox_files.path_suggestions",
    "neuroscript.console.tools.tool_page.form_context",
    "neuroscript.console.tools.tool_page.tool_context",
    "neuroscript.console.tools.variables.variables_of",
    "neuroscript.engine.explanation.checks.explain",
    "neuroscript.engine.explanation.findings.check_engine",
    "neuroscript.engine.explanation.tool_sources.idle_patterns",
    "neuroscript.engine.explanation.tool_sources.source_of",
    "neuroscript.console.plans.inputs.empty_inputs",
    "neuroscript.console.plans.inputs.submitted_inputs",
}  # fmt: skip
"""Functions of the root package, and functions that take an engine or a session, that run no tool."""


def public(thing: Any) -> set[str]:
    """Return the public names of an object or a class."""
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_way_of_an_engine_and_of_a_session_is_listed() -> None:
    """Every public name of their instances is in a list, and every listed way exists."""
    with engine_of() as engine:
        found = public(engine) | public(Engine) | public(Session)
        with engine.session() as session:
            found |= public(session)

    assert found - SESSION_QUIET - set(SESSION_WAYS) == set(), "is it a way to run a tool? add it to a list"
    assert set(SESSION_WAYS) - found == set()
    assert set(SESSION_WAYS) & SESSION_QUIET == set()


def test_every_way_of_a_runtime_is_listed() -> None:
    """This covers the Protocol and the class that tools receive."""
    found = public(Runtime) | public(CallRuntime)

    assert found - RUNTIME_QUIET - set(RUNTIME_WAYS) == set(), "is it a way to run a tool? add it to a list"
    assert set(RUNTIME_WAYS) - found == set()


def test_every_command_is_listed() -> None:
    """This covers registered and implemented commands."""
    found = {*COMMANDS, *MODULES}

    assert found - COMMAND_QUIET - COMMAND_WAYS == set(), "does it run tools? add it to a list"
    assert COMMAND_WAYS <= found


def functions(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public functions of a module and the methods of its public classes, by name."""
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(thing):
            yield f"{module.__name__}.{name}", thing
        elif inspect.isclass(thing) and not issubclass(thing, Session):
            members = inspect.getmembers(thing, inspect.isfunction)
            yield from (
                (f"{module.__name__}.{name}.{member}", function)
                for member, function in members
                if member in ("__init__", "__call__") or not member.startswith("_")
            )


def takes_an_engine(function: Any) -> bool:
    """Return whether an argument is an engine or a session."""
    parameters = inspect.signature(function).parameters.values()
    return any(
        (each.name in ("engine", "session") and each.annotation != "str")
        or re.search(r"\b(Engine|Session)\b", str(each.annotation))
        for each in parameters
    )


def test_everything_that_takes_an_engine_is_listed() -> None:
    """This covers every module except those of the command line, and every function of the root package."""
    names = [each.name for each in pkgutil.walk_packages(neuroscript.__path__, "neuroscript.")]
    with mock(["crewai", "google.adk"]):  # they need environments of their own
        modules = [
            importlib.import_module(name) for name in names if not re.match(r"neuroscript\.(cli\b|__main__)", name)
        ]
    found = {name for module in modules for name, function in functions(module) if takes_an_engine(function)}
    found |= {name for name in neuroscript.__all__ if inspect.isfunction(getattr(neuroscript, name))}

    assert len(modules) > 40
    assert found - PACKAGE_QUIET - set(PACKAGE_WAYS) == set(), "does it run tools? add it to a list"
    assert set(PACKAGE_WAYS.values()) <= set(WAYS)


# Tools

RAN: list[str] = []
"""The tools that ran; ``g.t`` must never be in it."""


def engine_of(kind: str = "", runtime_way: str = "call_tool", **options: Any) -> Engine:
    """Return an engine with ``g.t``, the subject of a refusal, and tools that call it in one way.

    ``g.outer`` is a function, ``g.ocoro`` a coroutine function, ``g.ostream`` yields items; ``g.odeep`` calls
    ``g.outer``. All of them may write everywhere, so they are never the reason for a refusal.
    """
    refusal = REFUSALS.get(kind, Refusal(""))
    way = RUNTIME_WAYS[runtime_way]

    def outer(rt: Runtime) -> None:
        RAN.append("g.outer")
        way(rt, "g.t")

    async def ocoro(rt: Runtime) -> None:
        RAN.append("g.ocoro")
        way(rt, "g.t")

    def ostream(rt: Runtime) -> Iterator[Any]:
        RAN.append("g.ostream")
        yield way(rt, "g.t")

    def odeep(rt: Runtime) -> None:
        RAN.append("g.odeep")
        way(rt, "g.outer")

    toolset = Toolset("g")
    toolset.add(ToolSpec("t", "g", return_type=ArgType.NIL), lambda rt: RAN.append("g.t"), ToolPolicy(**refusal.needs))
    holding = ToolPolicy(capabilities=refusal.needs.get("capabilities", ()) and ("fs:write:out/**",))
    for func in (outer, ocoro, ostream, odeep):
        spec = ToolSpec(func.__name__, "g", return_type=ArgType.ANY, return_nullable=True, stream=func is ostream)
        toolset.add(spec, func, holding)
    permits = dict(refusal.permits)
    if holding.capabilities:
        permits["grants"] = (*permits["grants"], "fs:write:out/**")
    return Engine(toolsets=[toolset], plugins="none", policy=ExecutionPolicy(**permits), **options)


OUTERS = ("g.outer", "g.ocoro", "g.ostream", "g.odeep")
DEPTHS = {"g.t": 1, "g.odeep": 3}


RETRIES = {"policy.rejected": "never", "tool.not_found": "model"}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def refused(session: Any, way: Way, name: str) -> str:
    """Return the code with which a call is refused."""
    RAN.clear()
    with pytest.raises(CallError) as caught:
        way(session, name)
    assert caught.value.retry == RETRIES.get(caught.value.code, "host")
    return caught.value.code


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("way", WAYS)
def test_no_way_from_outside_runs_a_refused_tool(way: str, kind: str) -> None:
    """Each refusal of an engine or a session leaves one record with its code, with or without observers."""
    depth = 2 if way == "call_within" else 1
    with engine_of(kind) as engine:
        sessions: list[Any] = [engine, engine.session(), engine.session(policy=ExecutionPolicy(**lenient(kind)))]
        for count, session in enumerate(sessions, 1):
            assert REFUSALS[kind].code == refused(session, WAYS[way], "g.t")
            assert RAN == []
            records = [(each.kind, each.tool, each.code, each.depth, each.session) for each in engine.refusals]
            assert records[count - 1 :] == [("refused", "g.t", REFUSALS[kind].code, depth, session.id)]


def lenient(kind: str) -> dict[str, Any]:
    """Return the options of a session that requests every permission."""
    grants = ("*:*:*",)
    return {"grants": grants, "trusted": True, "preapproved": ("g.t",), "limits": Limits()} if kind else {}


@pytest.mark.parametrize("kind", REFUSALS)
@pytest.mark.parametrize("runtime_way", RUNTIME_WAYS)
@pytest.mark.parametrize("way", WAYS)
def test_no_way_from_within_runs_a_refused_tool(way: str, runtime_way: str, kind: str) -> None:
    """The callers are permitted tools of every kind, one and two levels deep; the refusal propagates unchanged."""
    if way == "call_within" and REFUSALS[kind].code == "policy.capability":
        return  # the outer tool declares no needs, so it cannot pass any on
    with engine_of(kind, runtime_way) as engine:
        for count, outer in enumerate(OUTERS, 1):
            depth = DEPTHS.get(outer, 2) + (way == "call_within")
            for session in (engine, engine.session()):
                assert REFUSALS[kind].code == refused(session, WAYS[way], outer), outer
                assert "g.t" not in RAN, outer
                assert outer in RAN, outer
                record = engine.refusals[-1]
                assert (record.tool, record.code, record.depth) == ("g.t", REFUSALS[kind].code, depth), outer
            assert len(engine.refusals) == 2 * count, outer


@pytest.mark.parametrize("spelling", ["g.t", "G.T", "tool.g.t", "Tool.TOOL.G.t", "g__t", "TOOL.g.T"])
@pytest.mark.parametrize("way", WAYS)
def test_no_spelling_of_its_name_runs_a_refused_tool(way: str, spelling: str) -> None:
    """Patterns match every spelling that finds the tool."""
    if way == "resume":
        return  # its names come from the registry
    with engine_of("denied") as engine:
        code = refused(engine, WAYS[way], spelling)

        assert code == "policy.denied" or (spelling == "g__t" and way != "execute" and code == "tool.not_found")
        assert RAN == []


@pytest.mark.parametrize("way", WAYS)
def test_permitted_tool_runs_by_every_way(way: str) -> None:
    """The ways do call the tool; otherwise the refusals above would prove nothing."""
    with engine_of() as engine:
        for session in (engine, engine.session()):
            for name in ("g.t", *OUTERS):
                RAN.clear()
                WAYS[way](session, name)
                assert RAN[-1] == "g.t"
        assert engine.refusals == ()


def test_earlier_permitted_tool_is_refused_by_a_narrower_session() -> None:
    """Code that the engine compiled for one caller has no effect on another."""
    with engine_of() as engine:
        for way in WAYS.values():
            way(engine, "g.odeep")
        narrow = engine.session(policy=ExecutionPolicy(deny=("g.t",)))
        for way in WAYS.values():
            for name in ("g.t", *OUTERS):
                assert "policy.denied" == refused(narrow, way, name)
                assert "g.t" not in RAN
        WAYS["call"](engine, "g.t")
        assert RAN == ["g.outer", "g.t"] or RAN[-1] == "g.t"


def test_later_answer_counts_for_one_approver_only() -> None:
    """The second of two approvers defers the call; the answer does not approve it for the first."""
    requests: list[str] = []
    pending: list[PendingApproval] = []
    rejects = [False]

    def first(request: ApprovalRequest) -> Approval:
        requests.append("first")
        return Approval.reject() if rejects[0] else Approval.approve()

    def second(request: ApprovalRequest) -> Approval:
        requests.append("second")
        pending.append(PendingApproval.of(request))
        return Approval.suspend()

    toolset = Toolset("g")
    policy = ToolPolicy(requires_approval=True)
    toolset.add(ToolSpec("t", "g", return_type=ArgType.NIL), lambda rt: RAN.append("g.t"), policy)
    permits = ExecutionPolicy(approver=second).narrowed(approver=first)
    RAN.clear()
    with Engine(toolsets=[toolset], plugins="none", policy=permits) as engine:
        result = engine.execute(ToolCall("g.t", ()))
        assert result.error is not None
        assert (result.error.code, result.error.retry, requests) == ("policy.pending", "later", ["first", "second"])

        rejects[0] = True
        requests.clear()
        result = engine.resume(pending[0], Approval.approve())

        assert result.error is not None
        assert (result.error.code, result.error.retry, requests, RAN) == ("policy.rejected", "never", ["first"], [])

        rejects[0] = False
        result = engine.resume(pending[0], Approval.approve())

        assert (result.error, RAN) == (None, ["g.t"])


def test_runtime_exposes_no_tool_function() -> None:
    """A tool sees only the specs and needs of other tools."""
    seen: list[Any] = []
    toolset = Toolset("g")
    toolset.add(ToolSpec("looks", "g", return_type=ArgType.NIL), lambda rt: seen.extend(rt.tools.values()))
    with Engine(toolsets=[toolset], plugins="none") as engine:
        engine.call("g.looks")

        assert len(seen) == 1
        assert {name for name in public(seen[0]) if callable(getattr(seen[0], name))} == set()
