"""Tools that a model, a script or a user may call: one line for every call, exact types, authority kept.

Every public name is here; the module that holds it is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuroscript.approval import Approval, ApprovalRequest, Approver
    from neuroscript.argtypes import ArgType
    from neuroscript.audit.database import SqliteAudit
    from neuroscript.audit.file import FileAudit
    from neuroscript.audit.memory import MemoryAudit
    from neuroscript.binding import bind, bind_named
    from neuroscript.bundles import bundle
    from neuroscript.capability import Capability, Grant
    from neuroscript.clients import aclient, client
    from neuroscript.coercion import coerce
    from neuroscript.data import policy_from_data, policy_to_data, result_to_data, spec_from_data, spec_to_data
    from neuroscript.decision import Decision
    from neuroscript.discovery import Registrar
    from neuroscript.engine import Engine
    from neuroscript.errors import (
        UNSET,
        ArgumentError,
        AuditError,
        CallError,
        CallTimeout,
        CoercionError,
        LentError,
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
    from neuroscript.hookspecs import hookimpl
    from neuroscript.host import Host, Progress
    from neuroscript.interop.functions import to_function
    from neuroscript.limits import Limits
    from neuroscript.lockfile import Lock
    from neuroscript.marks import Arg
    from neuroscript.needs import ToolPolicy
    from neuroscript.pending import PendingApproval, suspending
    from neuroscript.policy import ExecutionPolicy
    from neuroscript.policyfile import load_policy
    from neuroscript.promptform import to_prompt
    from neuroscript.prompting import ConsolePrompter, Prompter
    from neuroscript.record import AuditSink, CallRecord, PendingCall, ToolFacts
    from neuroscript.recording import Recording
    from neuroscript.runtime import (
        LLM,
        Entry,
        Files,
        Handles,
        Repair,
        Runtime,
        ToolCall,
        ToolInfo,
        ToolResult,
        Turn,
    )
    from neuroscript.scalars import Handle
    from neuroscript.schema import result_schema, spec_from_schema, spec_to_schema
    from neuroscript.session import Session
    from neuroscript.snippets import from_code
    from neuroscript.sources import Resolver, Secret, State, Value, Variable
    from neuroscript.spec import ArgSpec, Example, ToolSpec
    from neuroscript.spill import Spill, Spilled
    from neuroscript.terminal import TerminalApprover
    from neuroscript.tools import ToolImplementation, Toolset, from_function, tool
    from neuroscript.versions import RUNTIME_API
    from neuroscript.walk import SizeLimits
    from neuroscript.watcher import Watcher

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
    "AuditError",
    "AuditSink",
    "CallError",
    "CallRecord",
    "CallTimeout",
    "Capability",
    "CoercionError",
    "ConsolePrompter",
    "Decision",
    "Engine",
    "Entry",
    "Example",
    "ExecutionPolicy",
    "FileAudit",
    "Files",
    "Grant",
    "Handle",
    "Handles",
    "Host",
    "LLMError",
    "LentError",
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
    "PromptError",
    "Prompter",
    "Recording",
    "Registrar",
    "RegistryError",
    "Repair",
    "Resolver",
    "ReturnError",
    "Runtime",
    "SandboxError",
    "Secret",
    "Session",
    "SizeLimits",
    "SpecError",
    "Spill",
    "Spilled",
    "SqliteAudit",
    "State",
    "TerminalApprover",
    "ToolCall",
    "ToolFacts",
    "ToolFailed",
    "ToolImplementation",
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
    "aclient",
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
    "suspending",
    "to_function",
    "to_prompt",
    "tool",
]

_HOMES = {
    "approval": "Approval ApprovalRequest Approver",
    "argtypes": "ArgType",
    "audit.database": "SqliteAudit",
    "audit.file": "FileAudit",
    "audit.memory": "MemoryAudit",
    "binding": "bind bind_named",
    "bundles": "bundle",
    "capability": "Capability Grant",
    "watcher": "Watcher",
    "clients": "aclient client",
    "coercion": "coerce",
    "data": "policy_from_data policy_to_data result_to_data spec_from_data spec_to_data",
    "decision": "Decision",
    "discovery": "Registrar",
    "engine": "Engine",
    "errors": """
        UNSET ArgumentError AuditError CallError CallTimeout CoercionError LLMError LentError LimitError
        NeuroScriptError PluginError PolicyError Problem PromptError RegistryError ReturnError SandboxError
        SpecError ToolFailed ToolNotFound
    """,
    "hookspecs": "hookimpl",
    "host": "Host Progress",
    "pending": "PendingApproval suspending",
    "limits": "Limits",
    "lockfile": "Lock",
    "marks": "Arg",
    "needs": "ToolPolicy",
    "policy": "ExecutionPolicy",
    "policyfile": "load_policy",
    "interop.functions": "to_function",
    "promptform": "to_prompt",
    "prompting": "ConsolePrompter Prompter",
    "record": "AuditSink CallRecord PendingCall ToolFacts",
    "recording": "Recording",
    "runtime": "Entry Files Handles LLM Repair Runtime ToolCall ToolInfo ToolResult Turn",
    "scalars": "Handle",
    "schema": "result_schema spec_from_schema spec_to_schema",
    "session": "Session",
    "sources": "Resolver Secret State Value Variable",
    "snippets": "from_code",
    "spec": "ArgSpec Example ToolSpec",
    "spill": "Spill Spilled",
    "terminal": "TerminalApprover",
    "tools": "ToolImplementation Toolset from_function tool",
    "versions": "RUNTIME_API",
    "walk": "SizeLimits",
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
