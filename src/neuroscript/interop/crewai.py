"""Export tools to agents of CrewAI, and load its tools; the engine validates the arguments in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from inspect import iscoroutinefunction
from typing import Any

import attrs

from neuroscript._imports import missing_extra
from neuroscript.engine.session import Session
from neuroscript.interop import framework_tools as common
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.llm.wire.images import base64_text
from neuroscript.llm.wire.openai.tools import to_tools
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime, ToolResult
from neuroscript.runtime.wire_names import WireNames
from neuroscript.tools.toolset import Toolset

try:
    from crewai.tools import BaseTool
    from crewai.tools.tool_failure import ToolFailure, ToolFailureReason
    from crewai.utilities.string_utils import sanitize_tool_name
    from pydantic import PrivateAttr
except ImportError as error:
    raise missing_extra("tools for CrewAI need it", "crewai", error) from None

from neuroscript.interop.arguments_model import arguments_model


def to_crewai(session: Session, *, tools: str | Iterable[str] = "*") -> list[BaseTool]:
    """Return the tools that a session permits now, with names such as ``math_add``; an error is a ``ToolFailure``.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    offered = offer_tools(session, tools, subject="to_crewai")
    names = WireNames.under({each.info.spec.full_name: sanitize_tool_name(each.name) for each in offered})
    return [_export(attrs.evolve(each, name=names.wire(each.info.spec.full_name), names=names)) for each in offered]


def _export(each: OfferedTool) -> BaseTool:
    (definition,) = to_tools([each.info], api="responses", names=each.names)  # strict, as CrewAI makes all schemas
    model = arguments_model(each.name, definition["parameters"])
    made = _ExportedTool(name=each.name, description=each.description, args_schema=model)
    made._offered, made.cache_function = each, common.is_cached
    return made


class _ExportedTool(BaseTool):
    _offered: OfferedTool = PrivateAttr()

    def run(self, /, **arguments: Any) -> Any:
        return self._claim_usage() or self._run(**arguments)

    async def arun(self, /, **arguments: Any) -> Any:
        return self._claim_usage() or self._answer(await self._offered.aexecute(arguments))

    def _run(self, /, **arguments: Any) -> Any:
        return self._answer(self._offered.execute(arguments))

    def _answer(self, result: ToolResult) -> Any:
        text, error, kind = self._offered.text(result), result.error, media_type(result.value)
        if error is not None:
            return ToolFailure(message=text, retryable=error.retry == "later", details={"code": error.code})
        # CrewAI shows a model this form as an image
        return f"VISION_IMAGE:{kind}:{base64_text(result.value)}" if kind.startswith("image/") else text


def from_crewai(
    tools: BaseTool | Iterable[BaseTool], *, group: str, policy: ToolPolicy | None = None, trusted: bool = False
) -> Toolset:
    """Return tools of CrewAI as a toolset; each needs ``crewai:call:GROUP/NAME`` and an approval by default.

    With *trusted*, none needs an approval; *policy* replaces both. A `SpecError` lists every problem found.
    """
    return common.load_toolset(common.Framework("crewai", "CrewAI", BaseTool), tools, _read, group, policy, trusted)


def _read(tool: BaseTool) -> common.FrameworkTool:
    function = getattr(tool, "func", None)
    is_async = iscoroutinefunction(function) if function else type(tool)._arun is not BaseTool._arun

    async def call(rt: Runtime, arguments: dict[str, Any]) -> Any:
        answer = await (tool.arun(**arguments) if is_async else asyncio.to_thread(tool.run, **arguments))
        if not isinstance(answer, ToolFailure):
            return common.plain_value(answer, tool.format_output_for_agent)
        is_over, text = answer.reason is ToolFailureReason.USAGE_LIMIT, answer.as_agent_message()
        raise common.failed_tool(text, "never" if is_over else "later" if answer.retryable else "model")

    return common.FrameworkTool(tool.name, tool.description, tool.args_schema.model_json_schema(), call)
