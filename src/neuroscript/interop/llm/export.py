"""Tools of ours as ``llm`` hands them to its models; that package checks no argument, and here all of them are.

Source: docs of ``llm``, "Python API", tools; issue "MCP and the frameworks".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MethodType
from typing import Any

from neuroscript._imports import missing
from neuroscript.engine.session import Session
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import Offered, offered
from neuroscript.runtime.interfaces import ToolResult

try:
    import llm
except ImportError as error:
    raise missing("giving tools to models of llm needs that package", "llm", error) from None


class CallFailed(Exception):
    """A call came to no result; the text says why, as the model is to read it, which gets it behind ``Error: ``."""


def to_llm(session: Session, *, tools: str | Iterable[str] = "*", is_async: bool = False) -> list[llm.Tool]:
    """Return tools for ``model.prompt(…, tools=…)`` and ``model.chain(…, tools=…)`` of ``llm``.

    Args:
        session: An engine, or a session of one, by which all calls are carried out.
        tools: Patterns of canonical names, as in ``math.*``; no other tool can be called.
        is_async: Whether they are for an ``llm.AsyncModel``, which then awaits all calls of a turn at once.

    Raises:
        SpecError: A pattern is none, or matches no tool that may be called.
        RegistryError: Two tools would have one name.
    """
    return [tool_of(each, is_async=is_async) for each in offered(session, tools, subject="to_llm")]


def tool_of(tool: Offered, box: llm.Toolbox | None = None, *, is_async: bool = False) -> llm.Tool:
    """Return a tool of ``llm``; one of a toolbox, which ``llm`` keeps with what was called, is a method of it."""

    def called(_: object, /, llm_tool_call: llm.ToolCall | None = None, **arguments: Any) -> llm.ToolOutput:
        return _output(tool, tool.execute(*_asked(llm_tool_call, arguments)))

    async def awaited(_: object, /, llm_tool_call: llm.ToolCall | None = None, **arguments: Any) -> llm.ToolOutput:
        return _output(tool, await tool.aexecute(*_asked(llm_tool_call, arguments)))

    function: Callable[..., Any] = awaited if is_async else called
    implementation = partial(function, None) if box is None else MethodType(function, box)
    plugin: str | None = getattr(box, "plugin", None)
    return llm.Tool(tool.name, tool.description or None, tool.schema, implementation, plugin)


def _asked(call: llm.ToolCall | None, arguments: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return what a model wrote, and the id of the call; who calls a tool by hand gives the arguments alone."""
    return (arguments, "") if call is None else (call.arguments, call.tool_call_id or "")


def _output(tool: Offered, result: ToolResult) -> llm.ToolOutput:
    """Return what came of a call; images and sounds are attachments.

    Raises:
        CallFailed: There is no result.
    """
    if not result.ok:
        raise CallFailed(tool.text(result))
    kind = media_type(result.value)
    if kind.startswith(("image/", "audio/")):
        return llm.ToolOutput(f"attached: {kind}", [llm.Attachment(type=kind, content=result.value)])
    return llm.ToolOutput(tool.text(result))
