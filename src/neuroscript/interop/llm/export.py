"""Export the tools of a session to ``llm``, which does not validate arguments; the engine validates them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MethodType
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.scalars import AnyContent
from neuroscript.engine.session import Session
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.runtime.interfaces import ToolResult

try:
    import llm
except ImportError as error:
    raise missing_extra("exporting tools to llm needs that package", "llm", error) from None


class CallFailed(Exception):
    """A failed call. The message is for the model, which receives it after ``Error:``."""


def to_llm(session: Session, *, tools: str | Iterable[str] = "*", is_async: bool = False) -> list[Any]:
    """Return each tool as an `llm.Tool`, for ``model.prompt(…, tools=…)`` and ``model.chain(…, tools=…)`` of ``llm``.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.
        is_async: Return tools for an ``llm.AsyncModel``, which awaits all calls of a turn at once.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return [tool_of(each, is_async=is_async) for each in offer_tools(session, tools, subject="to_llm")]


def tool_of(tool: OfferedTool, box: llm.Toolbox | None = None, *, is_async: bool = False) -> llm.Tool:
    """Return an ``llm`` tool; a tool of a toolbox is bound to it, because ``llm`` logs the toolbox with the call."""

    def called(_: object, /, llm_tool_call: llm.ToolCall | None = None, **arguments: Any) -> llm.ToolOutput:
        return _output(tool, tool.execute(*_call_arguments(llm_tool_call, arguments)))

    async def awaited(_: object, /, llm_tool_call: llm.ToolCall | None = None, **arguments: Any) -> llm.ToolOutput:
        return _output(tool, await tool.aexecute(*_call_arguments(llm_tool_call, arguments)))

    function: Callable[..., Any] = awaited if is_async else called
    implementation = partial(function, None) if box is None else MethodType(function, box)
    plugin: str | None = getattr(box, "plugin", None)
    return llm.Tool(tool.name, tool.description or None, tool.schema, implementation, plugin)


def _call_arguments(call: llm.ToolCall | None, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the arguments that the model wrote, and the id of the call; a direct call has only arguments."""
    return (arguments, "") if call is None else (call.arguments, call.tool_call_id or "")


def _output(tool: OfferedTool, result: ToolResult) -> llm.ToolOutput:
    """Return the output of a call; images and audio become attachments.

    Raises:
        CallFailed: The call failed.
    """
    if not result.ok:
        raise CallFailed(tool.text(result))
    if isinstance(result.value, AnyContent):
        media = [each for each in result.value.blocks if each.kind in ("image", "audio")]
        files = [llm.Attachment(type=each.media_type, content=each.data) for each in media]
        return llm.ToolOutput(tool.text(result), files)
    kind = media_type(result.value)
    if kind.startswith(("image/", "audio/")):
        return llm.ToolOutput(f"attached: {kind}", [llm.Attachment(type=kind, content=result.value)])
    return llm.ToolOutput(tool.text(result))
