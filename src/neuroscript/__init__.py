"""A runtime for tools that models, scripts and users can call, with exact types, permissions and an audit log.

All public names are available here. Each is imported from its module on first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuroscript._version import RUNTIME_API
    from neuroscript.approval.pending import FileApprover, PendingApproval
    from neuroscript.approval.request import Approval, ApprovalRequest, Approver
    from neuroscript.approval.terminal import TerminalApprover
    from neuroscript.audit.log_file import FileAudit
    from neuroscript.audit.memory import MemoryAudit
    from neuroscript.audit.recording import Recording
    from neuroscript.audit.sqlite import SqliteAudit
    from neuroscript.calls.spill import Spill, SpilledResult
    from neuroscript.coercion.constraints import coerce
    from neuroscript.coercion.content import Audio, Content, EmbeddedResource, Image, ResourceLink, Text
    from neuroscript.coercion.context import SizeLimits
    from neuroscript.coercion.scalars import Handle
    from neuroscript.coercion.types import ArgType
    from neuroscript.config.lock_file import Lock
    from neuroscript.config.policy_file import load_policy
    from neuroscript.discovery.bundles import bundle
    from neuroscript.discovery.local_plugins import Registrar, Watcher
    from neuroscript.engine.client import aclient, client
    from neuroscript.engine.engine import Engine
    from neuroscript.engine.session import Session
    from neuroscript.errors import (
        UNSET,
        ArgumentError,
        AuditError,
        CallError,
        CallTimeout,
        CoercionError,
        HostError,
        LimitError,
        LLMError,
        NeuroScriptError,
        PluginError,
        PolicyError,
        Problem,
        PromptError,
        RegistryError,
        ReturnError,
        SandboxError,
        SpecError,
        ToolFailed,
        ToolNotFound,
    )
    from neuroscript.formats.json_schema import result_schema, spec_from_schema, spec_to_schema
    from neuroscript.formats.prompt import to_prompt
    from neuroscript.interop.functions import to_function
    from neuroscript.interop.openapi.export import to_openapi
    from neuroscript.isolation.pool import WorkerInfo
    from neuroscript.llm.typed_answers import aask, ask
    from neuroscript.policy.capabilities import Capability, Grant
    from neuroscript.policy.execution_policy import Decision, ExecutionPolicy
    from neuroscript.policy.flow_rules import FlowLabels, FlowRule
    from neuroscript.policy.isolation import Isolation
    from neuroscript.policy.limits import Limits
    from neuroscript.policy.tool_policy import ToolPolicy
    from neuroscript.runtime.host import Host, Progress
    from neuroscript.runtime.interfaces import (
        LLM,
        DirEntry,
        Files,
        Handles,
        Runtime,
        ToolCall,
        ToolInfo,
        ToolResult,
        Turn,
    )
    from neuroscript.runtime.prompter import ConsolePrompter, Prompter
    from neuroscript.runtime.records import AuditSink, CallRecord, PendingCall, ToolFacts
    from neuroscript.spec.annotations import Arg
    from neuroscript.spec.binding import Repair, bind, bind_named
    from neuroscript.spec.served import Prompt, Resource
    from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
    from neuroscript.state.shared_state import SharedState
    from neuroscript.tools.from_code import from_code
    from neuroscript.tools.hookspecs import hookimpl
    from neuroscript.tools.injection_sources import Resolver, Secret, State, Value, Variable
    from neuroscript.tools.search import ToolIndex
    from neuroscript.tools.serialization import (
        policy_from_data,
        policy_to_data,
        result_to_data,
        spec_from_data,
        spec_to_data,
    )
    from neuroscript.tools.tool import ToolImplementation, from_function, tool
    from neuroscript.tools.toolset import Toolset

__version__ = "0.1.0"

__all__ = [
    "LLM",
    "RUNTIME_API",
    "UNSET",
    "Approval",
    "ApprovalRequest",
    "Approver",
    "Arg",
    "ArgSpec",
    "ArgType",
    "ArgumentError",
    "Audio",
    "AuditError",
    "AuditSink",
    "CallError",
    "CallRecord",
    "CallTimeout",
    "Capability",
    "CoercionError",
    "ConsolePrompter",
    "Content",
    "Decision",
    "DirEntry",
    "EmbeddedResource",
    "Engine",
    "Example",
    "ExecutionPolicy",
    "FileApprover",
    "FileAudit",
    "Files",
    "FlowLabels",
    "FlowRule",
    "Grant",
    "Handle",
    "Handles",
    "Host",
    "HostError",
    "Image",
    "Isolation",
    "LLMError",
    "LimitError",
    "Limits",
    "Lock",
    "MemoryAudit",
    "NeuroScriptError",
    "PendingApproval",
    "PendingCall",
    "PluginError",
    "PolicyError",
    "Problem",
    "Progress",
    "Prompt",
    "PromptError",
    "Prompter",
    "Recording",
    "Registrar",
    "RegistryError",
    "Repair",
    "Resolver",
    "Resource",
    "ResourceLink",
    "ReturnError",
    "Runtime",
    "SandboxError",
    "Secret",
    "Session",
    "SharedState",
    "SizeLimits",
    "SpecError",
    "Spill",
    "SpilledResult",
    "SqliteAudit",
    "State",
    "TerminalApprover",
    "Text",
    "ToolCall",
    "ToolFacts",
    "ToolFailed",
    "ToolImplementation",
    "ToolIndex",
    "ToolInfo",
    "ToolNotFound",
    "ToolPolicy",
    "ToolResult",
    "ToolSpec",
    "Toolset",
    "Turn",
    "Value",
    "Variable",
    "Watcher",
    "WorkerInfo",
    "aask",
    "aclient",
    "ask",
    "bind",
    "bind_named",
    "bundle",
    "client",
    "coerce",
    "from_code",
    "from_function",
    "hookimpl",
    "load_policy",
    "policy_from_data",
    "policy_to_data",
    "result_schema",
    "result_to_data",
    "spec_from_data",
    "spec_from_schema",
    "spec_to_data",
    "spec_to_schema",
    "to_function",
    "to_openapi",
    "to_prompt",
    "tool",
]

_HOMES = {
    "_version": "RUNTIME_API",
    "approval.pending": "FileApprover PendingApproval",
    "approval.request": "Approval ApprovalRequest Approver",
    "approval.terminal": "TerminalApprover",
    "audit.log_file": "FileAudit",
    "audit.memory": "MemoryAudit",
    "audit.recording": "Recording",
    "audit.sqlite": "SqliteAudit",
    "calls.spill": "Spill SpilledResult",
    "state.shared_state": "SharedState",
    "coercion.constraints": "coerce",
    "coercion.content": "Audio Content EmbeddedResource Image ResourceLink Text",
    "coercion.context": "SizeLimits",
    "coercion.scalars": "Handle",
    "coercion.types": "ArgType",
    "config.lock_file": "Lock",
    "config.policy_file": "load_policy",
    "discovery.bundles": "bundle",
    "discovery.local_plugins": "Registrar Watcher",
    "engine.client": "aclient client",
    "engine.engine": "Engine",
    "engine.session": "Session",
    "errors": """
        ArgumentError AuditError CallError CallTimeout CoercionError LLMError HostError LimitError
        NeuroScriptError PluginError PolicyError Problem PromptError RegistryError ReturnError SandboxError
        SpecError ToolFailed ToolNotFound UNSET
    """,
    "formats.json_schema": "result_schema spec_from_schema spec_to_schema",
    "formats.prompt": "to_prompt",
    "interop.functions": "to_function",
    "interop.openapi.export": "to_openapi",
    "isolation.pool": "WorkerInfo",
    "llm.typed_answers": "aask ask",
    "policy.capabilities": "Capability Grant",
    "policy.execution_policy": "Decision ExecutionPolicy",
    "policy.flow_rules": "FlowLabels FlowRule",
    "policy.isolation": "Isolation",
    "policy.limits": "Limits",
    "policy.tool_policy": "ToolPolicy",
    "runtime.host": "Host Progress",
    "runtime.interfaces": "DirEntry Files Handles LLM Runtime ToolCall ToolInfo ToolResult Turn",
    "runtime.prompter": "ConsolePrompter Prompter",
    "runtime.records": "AuditSink CallRecord PendingCall ToolFacts",
    "spec.annotations": "Arg",
    "spec.binding": "Repair bind bind_named",
    "spec.served": "Prompt Resource",
    "spec.tool_spec": "ArgSpec Example ToolSpec",
    "tools.from_code": "from_code",
    "tools.hookspecs": "hookimpl",
    "tools.injection_sources": "Resolver Secret State Value Variable",
    "tools.search": "ToolIndex",
    "tools.serialization": "policy_from_data policy_to_data result_to_data spec_from_data spec_to_data",
    "tools.tool": "ToolImplementation from_function tool",
    "tools.toolset": "Toolset",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    thing = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
