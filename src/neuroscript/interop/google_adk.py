"""Export tools to agents of Google's Agent Development Kit, and load its tools; the engine validates all arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.interop import framework_tools as common
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.tools.toolset import Toolset

try:
    from google.adk import agents, sessions
    from google.adk.tools import BaseTool, ToolContext
    from google.genai.types import FunctionDeclaration, Part
    from pydantic import BaseModel
except ImportError as error:
    raise missing_extra("tools for Google ADK need it", "google-adk", error) from None


def to_google_adk(session: Session, *, tools: str | Iterable[str] = "*") -> list[BaseTool]:
    """Return the tools that a session permits now, for an agent: ``{"result": value}`` or ``{"error": message}``.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return [_ExportedTool(each) for each in offer_tools(session, tools, subject="to_google_adk")]


class _ExportedTool(BaseTool):
    def __init__(self, offered: OfferedTool) -> None:
        super().__init__(name=offered.name, description=offered.description)
        self._offered = offered

    def _get_declaration(self) -> FunctionDeclaration:
        facts = {"name": self.name, "description": self.description}
        return FunctionDeclaration(**facts, parameters_json_schema=self._offered.schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        result = await self._offered.aexecute(args, tool_context.function_call_id or "")
        if not result.ok:
            return {"error": self._offered.text(result)}
        return {"result": common.parts_or_data(result.value, Part.from_bytes)}


def from_google_adk(
    tools: BaseTool | Iterable[BaseTool],
    *,
    group: str,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    context: Callable[[Runtime], ToolContext] | None = None,
) -> Toolset:
    """Return tools of the kit as a toolset; each needs ``google_adk:call:GROUP/NAME`` and an approval by default.

    With *trusted*, none needs an approval; *policy* replaces both. A `SpecError` lists every problem found. *context*
    returns the ``ToolContext`` of a call; by default, each call has an empty session of its own.
    """
    kit, make = common.Framework("google_adk", "Google ADK", BaseTool), context or _empty_context
    return common.load_toolset(kit, tools, lambda each: _read(each, make), group, policy, trusted)


def _read(tool: BaseTool, context: Callable[[Runtime], ToolContext]) -> common.FrameworkTool:
    declared = tool._get_declaration()
    if declared is None:
        raise SpecError(tool.name, ["runs on the server of the model provider, not here"])
    old = declared.parameters and declared.parameters.json_schema.model_dump(mode="json", exclude_none=True)

    async def call(rt: Runtime, arguments: dict[str, Any]) -> Any:
        made = context(rt)
        is_confirmed = made.tool_confirmation is not None and made.tool_confirmation.confirmed
        if not is_confirmed and await tool.check_require_confirmation(arguments, made):
            raise common.failed_tool("requires a confirmation, which context can supply", "host")
        return _result(await tool.run_async(args=arguments, tool_context=made))

    return common.FrameworkTool(tool.name, declared.description or "", declared.parameters_json_schema or old, call)


def _result(answer: Any) -> Any:
    if isinstance(answer, dict) and answer.keys() == {"error"} and isinstance(answer["error"], str):
        raise common.failed_tool(answer["error"])
    plain = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer
    return common.result_of(answer, plain, lambda part: getattr(part, "inline_data", None))


def _empty_context(rt: Runtime) -> ToolContext:
    session = sessions.Session(id="call", app_name="neuroscript", user_id="neuroscript")
    services = {"session_service": sessions.InMemorySessionService(), "session": session}
    return ToolContext(agents.InvocationContext(invocation_id="call", **services), function_call_id="call")
