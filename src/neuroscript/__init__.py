"""Tools that a model, a script or a user may call: one line for every call, exact types, authority kept.

Every public name is here; the module that holds it is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuroscript.argtypes import ArgType
    from neuroscript.binding import bind, bind_named
    from neuroscript.capability import Capability, Grant
    from neuroscript.coercion import coerce
    from neuroscript.data import policy_from_data, policy_to_data, result_to_data, spec_from_data, spec_to_data
    from neuroscript.discovery import Registrar
    from neuroscript.engine import Engine
    from neuroscript.errors import (
        UNSET,
        ArgumentError,
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
    from neuroscript.host import Host, Progress
    from neuroscript.policy import ExecutionPolicy, ToolPolicy
    from neuroscript.prompting import ConsolePrompter, Prompter
    from neuroscript.runtime import (
        LLM,
        RUNTIME_API,
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
    from neuroscript.session import Session
    from neuroscript.spec import ArgSpec, Example, ToolSpec
    from neuroscript.tools import ToolImplementation, Toolset, tool
    from neuroscript.walk import SizeLimits

__version__ = "0.1.0"

__all__ = [
    "LLM",
    "RUNTIME_API",
    "UNSET",
    "ArgSpec",
    "ArgType",
    "ArgumentError",
    "CallError",
    "CallTimeout",
    "Capability",
    "CoercionError",
    "ConsolePrompter",
    "Engine",
    "Entry",
    "Example",
    "ExecutionPolicy",
    "Files",
    "Grant",
    "Handle",
    "Handles",
    "Host",
    "LLMError",
    "LentError",
    "LimitError",
    "NeuroScriptError",
    "PluginError",
    "PolicyError",
    "Problem",
    "Progress",
    "PromptError",
    "Prompter",
    "Registrar",
    "RegistryError",
    "Repair",
    "ReturnError",
    "Runtime",
    "SandboxError",
    "Session",
    "SizeLimits",
    "SpecError",
    "ToolCall",
    "ToolFailed",
    "ToolImplementation",
    "ToolInfo",
    "ToolNotFound",
    "ToolPolicy",
    "ToolResult",
    "ToolSpec",
    "Toolset",
    "Turn",
    "bind",
    "bind_named",
    "coerce",
    "policy_from_data",
    "policy_to_data",
    "result_to_data",
    "spec_from_data",
    "spec_to_data",
    "tool",
]

_HOMES = {
    "argtypes": "ArgType",
    "binding": "bind bind_named",
    "capability": "Capability Grant",
    "coercion": "coerce",
    "data": "policy_from_data policy_to_data result_to_data spec_from_data spec_to_data",
    "discovery": "Registrar",
    "engine": "Engine",
    "errors": """
        UNSET ArgumentError CallError CallTimeout CoercionError LLMError LentError LimitError NeuroScriptError
        PluginError PolicyError Problem PromptError RegistryError ReturnError SandboxError SpecError ToolFailed
        ToolNotFound
    """,
    "host": "Host Progress",
    "policy": "ExecutionPolicy ToolPolicy",
    "prompting": "ConsolePrompter Prompter",
    "runtime": "RUNTIME_API Entry Files Handles LLM Repair Runtime ToolCall ToolInfo ToolResult Turn",
    "scalars": "Handle",
    "session": "Session",
    "spec": "ArgSpec Example ToolSpec",
    "tools": "ToolImplementation Toolset tool",
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
