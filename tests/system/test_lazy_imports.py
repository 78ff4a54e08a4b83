"""Imports inside functions: a list of those that are intended, because each one is a decision."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import neuroscript

ROOT: Final = Path(neuroscript.__file__).parent

LAZY_IMPORTS: Final = {
    "audit.location": "audit.log_file audit.sqlite",
    "calls.codegen": "coercion.schema_inspection coercion.string_formats",
    "calls.compiler": "calls.gate_codegen calls.instance_codegen",
    "calls.drivers": "calls.streams",
    "calls.pipeline": (
        "calls.approvals calls.streams coercion.problems policy.refusals policy.templates runtime.masking "
        "tools.instance_makers"
    ),
    "cli": "cli.dispatch",
    "cli.calls.call": "cli.calls.hints cli.env.reload",
    "cli.calls.execute": "cli.calls.report",
    "cli.calls.hints": "cli.parser",
    "cli.chat.llm_toolbox": (
        "cli.env.engine cli.parser cli.terminal.exit_codes cli.terminal.output errors interop.llm.export "
        "llm.offered_tools runtime.wire_names"
    ),
    "cli.chat.models": "llm llm.models",
    "cli.chat.options": "cli.chat.answer_types",
    "cli.dispatch": "cli.completion",
    "cli.doctor.files": "cli.terminal.subprocess config.policy_file",
    "cli.doctor.installed": "cli.terminal.subprocess discovery.probe",
    "cli.env.approvers": "approval.pending approval.terminal",
    "cli.env.audit": "audit.log_file audit.recording audit.sqlite",
    "cli.env.choices": (
        "config.policy_file discovery.bundles discovery.installed isolation.imports isolation.pool "
        "policy.execution_policy policy.isolation"
    ),
    "cli.env.authorization": "config.policy_file interop.http_server.access_tokens",
    "cli.env.engine": "calls.spill cli.env.approvers cli.env.audit cli.terminal.tool_hints config.lock_file",
    "cli.env.http_service": "interop.http_server.listener interop.http_server.principals",
    "cli.env.mcp_servers": "config.policy_file interop.mcp.client.servers io.private_files runtime.secret_forms",
    "cli.env.policy": "config.policy_file engine.explanation.tool_sources",
    "cli.env.tools": (
        "cli.env.engine cli.terminal.tool_hints discovery.catalog policy.tool_policy runtime.interfaces "
        "tools.serialization"
    ),
    "cli.gateway.command": (
        "cli.mcp.tools gateway.gateway gateway.http interop.mcp.server.client_config interop.mcp.server.http"
    ),
    "cli.isolation.command": "cli.isolation.probe isolation.check",
    "cli.mcp.login": "interop.mcp interop.mcp.client.location interop.mcp.client.login",
    "cli.mcp.serve": ("interop.mcp interop.mcp.server.http interop.mcp.server.serve io.private_files"),
    "cli.openapi.serve": "interop.openapi.serve",
    "cli.parser": "cli.error_help",
    "console.plans.durable_pages": "workflow.durable.inspection",
    "console.plans.runs": "workflow.durable.execution workflow.durable.inspection",
    "cli.plans.durable_runs": "workflow.durable workflow.durable.inspection workflow.durable.retention",
    "cli.plans.run_plan": "cli.chat.conversation cli.env.approvers workflow.durable workflow.trace.file",
    "cli.plans.worker": "workflow.durable.worker",
    "cli.plugins.command": "cli.plugins.lock config.lock_diff discovery.probe",
    "cli.policy.check": "engine.explanation.isolation",
    "cli.terminal.argument_parser": "io.near_names",
    "cli.terminal.inputs": "audit.keys",
    "cli.terminal.logger": "cli.terminal.server_log",
    "cli.terminal.output": "cli.error_help io.tracebacks",
    "cli.terminal.printing": "cli.terminal.rich_pages",
    "cli.tools.export": "formats.json_schema formats.prompt",
    "cli.tools.list": (
        "cli.env.engine engine.explanation.tool_sources formats.one_line policy.isolation tools.search tools.serialization"
    ),
    "cli.web.command": "console.application console.inbox console.users",
    "coercion.constraints": "coercion.problems coercion.refinements coercion.rule_text",
    "coercion.plain_data": "coercion.content",
    "coercion.refinements": "coercion.rule_text coercion.unions",
    "coercion.rule_text": "coercion.string_formats",
    "coercion.schema_inspection": "coercion.schema_coverage",
    "coercion.values": "coercion.content",
    "config.policy_file": "config.gateway_file policy.isolation",
    "discovery.catalog": "discovery.bundles discovery.probe",
    "discovery.entry_points": "tools.hookspecs",
    "discovery.index_builder": "tools.hookspecs",
    "discovery.lazy_tools": (
        "discovery.entry_points spec.instances tools.fingerprints tools.hookspecs tools.instance_makers tools.serialization"
    ),
    "discovery.probe": "discovery.index_builder",
    "engine.call_runtime": "isolation.confined_programs policy.refusals runtime.redacting_proxies",
    "engine.engine": (
        "audit.location audit.recording calls.hooks calls.spill discovery.catalog discovery.entry_points "
        "discovery.lazy_tools discovery.local_plugins engine.inflight isolation.imports isolation.tool_source "
        "policy.ledger state.shared_state"
    ),
    "engine.entries": ("calls.flow_pipeline calls.gate engine.flow_runtime isolation.pipeline isolation.tool_source"),
    "engine.explanation.checks": "engine.explanation.isolation",
    "engine.explanation.findings": "engine.explanation.isolation",
    "engine.explanation.tool_sources": "policy.isolation",
    "engine.session": (
        "approval.pending approval.request calls.approvals calls.spill_writer calls.streams engine.preflight flow.state "
        "io.tracebacks policy.labels policy.ledger policy.refusals runtime.redacting_proxies runtime.redaction"
    ),
    "engine.shared": (
        "calls.hooks calls.observers calls.threads flow.state isolation.pool runtime.engine_secrets sandbox "
        "state.shared_state"
    ),
    "gateway.gateway": "gateway.metrics interop.http_server.access_tokens",
    "gateway.http": "gateway.metrics",
    "interop.agentheaven.handle": "llm.wire.sdk_data",
    "interop.agentheaven.mcp": "interop.fastmcp interop.fastmcp.export",
    "interop.mcp.client.host_services": "interop.mcp.client.sdk",
    "interop.mcp.client.location": "interop.mcp.client.sdk",
    "interop.mcp.client.sdk": "interop.mcp.client.oauth",
    "interop.mcp.client.transports": "interop.mcp.client.confined_server",
    "interop.openapi.document": "interop.openapi.swagger",
    "isolation.program": "isolation.confinement isolation.namespaces isolation.system_calls",
    "isolation.spawned": "isolation.frames isolation.zygote",
    "isolation.tool_source": "discovery.entry_points discovery.installed discovery.local_plugins tools.fingerprints",
    "isolation.zygote": (
        "io.tracebacks isolation.confinement isolation.description isolation.frames isolation.namespaces "
        "isolation.tool_source isolation.worker"
    ),
    "policy.execution_policy": "policy.flow_rules policy.isolation policy.limits policy.refusals policy.templates",
    "policy.scopes": "policy.paths",
    "policy.tool_policy": "policy.labels policy.templates",
    "runtime.host": "io.user_cache runtime.prompter runtime.secret_forms",
    "runtime.masking": "runtime.redaction",
    "runtime.state": "coercion.problems",
    "sandbox.root": "sandbox.by_path sandbox.open_beneath",
    "spec.annotations": "coercion.string_formats",
    "spec.binding": "coercion.plain_data coercion.problems coercion.schema_validation",
    "spec.callables": "spec.annotations",
    "spec.instances": "coercion.string_formats coercion.unions spec.nested_values spec.refinements",
    "spec.refinements": "spec.fields",
    "spec.signature": "_imports",
    "spec.tool_spec": (
        "coercion.problems coercion.schema_validation coercion.string_formats spec.annotations spec.fields "
        "spec.instances spec.refinements spec.served"
    ),
    "state.database": "state.postgresql state.sqlite",
    "testing.checks.shipping": "discovery.index_builder",
    "testing.plugin": (
        "engine.engine errors policy.execution_policy runtime.host testing.checks.check testing.fake "
        "testing.installed testing.isolated"
    ),
    "tools.injection": "coercion.schema_inspection",
    "tools.serialization": "coercion.plain_data",
    "tools.tool": "coercion.content coercion.problems policy.templates runtime.masking spec.instances spec.signature tools.injection",
    "tools.toolset": "io.near_names spec.served tools.derived tools.injection_sources",
    "workflow.plan.validation": "policy.templates",
    "workflow.runner": "workflow.labels workflow.synthesis",
}
"""The project modules that functions of each module import, all below `neuroscript`.

A lazy import keeps a module out of a common start (see `test_startup`), keeps an optional dependency optional, or
breaks a cycle of modules. Every other import belongs at the top of its module.
"""


def test_every_lazy_import_is_listed() -> None:
    """A new import inside a function has one of the reasons above, or it moves to the top of the module."""
    found = {(name, each) for name, path in modules().items() for each in lazy_imports(path)}
    listed = {(name, each) for name, imported in LAZY_IMPORTS.items() for each in imported.split()}

    problems = [
        *(f"{name} imports {each} in a function; import it at the top, or list it" for name, each in found - listed),
        *(f"{name} no longer imports {each} in a function; remove it from the list" for name, each in listed - found),
    ]
    assert not problems, "\n".join(["LAZY_IMPORTS differs from the source code:", *sorted(problems)])


def modules() -> dict[str, Path]:
    """Return the file of each module of the project, by its name below `neuroscript`."""
    paths = {path.relative_to(ROOT).with_suffix("").parts: path for path in ROOT.rglob("*.py")}
    return {".".join(part for part in parts if part != "__init__"): path for parts, path in paths.items()}


def lazy_imports(path: Path) -> set[str]:
    """Return the project modules that the functions of a module import, by their names below `neuroscript`."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"^[ \t]+(import|from)\s", text, re.MULTILINE):
        return set()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    names = {name for function in functions for node in ast.walk(function) for name in imported_modules(node)}
    return {name.removeprefix("neuroscript").lstrip(".") for name in names if name.partition(".")[0] == "neuroscript"}


def imported_modules(node: ast.AST) -> Iterator[str]:
    """Yield the modules that an import statement names; imports of this project are absolute."""
    match node:
        case ast.Import(names):
            yield from (each.name for each in names)
        case ast.ImportFrom(module=str(module), names=names):
            for each in names:
                place = ROOT.parent.joinpath(*module.split("."), each.name)
                is_module = place.is_dir() or place.with_suffix(".py").is_file()
                yield f"{module}.{each.name}" if is_module else module
        case _:
            pass
