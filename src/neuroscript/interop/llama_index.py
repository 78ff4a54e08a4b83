"""Export tools to agents of LlamaIndex, and load its tools; the engine validates the arguments in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.plain_data import to_plain
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.interop import framework_tools as common
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime, ToolResult
from neuroscript.tools.toolset import Toolset

try:
    from llama_index.core.base.llms.types import AudioBlock, ImageBlock, TextBlock
    from llama_index.core.tools import AsyncBaseTool, BaseTool, ToolMetadata, ToolOutput
except ImportError as error:
    raise missing_extra("tools for LlamaIndex need llama-index-core", "llama-index", error) from None

from neuroscript.interop.arguments_model import arguments_model


def to_llama_index(session: Session, *, tools: str | Iterable[str] = "*") -> list[AsyncBaseTool]:
    """Return the tools that a session permits now, for an agent; an error is a ``ToolOutput`` with ``is_error``.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: A pattern is invalid, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return [_ExportedTool(each) for each in offer_tools(session, tools, subject="to_llama_index")]


class _ExportedTool(AsyncBaseTool):
    metadata: Any = None  # an abstract property of the base class

    def __init__(self, offered: OfferedTool) -> None:
        model = arguments_model(offered.name, offered.schema)
        self._offered, self.metadata = offered, ToolMetadata(offered.description, offered.name, fn_schema=model)

    def __call__(self, /, **arguments: Any) -> ToolOutput:
        return self._output(arguments, self._offered.execute(arguments))

    call = __call__  # a positional argument is a TypeError, after which LlamaIndex passes it by name

    async def acall(self, /, **arguments: Any) -> ToolOutput:
        return self._output(arguments, await self._offered.aexecute(arguments))

    def _output(self, arguments: dict[str, Any], result: ToolResult) -> ToolOutput:
        name, text = self._offered.name, self._offered.text(result)
        parts = common.media_parts(result.value, _block) or [text]
        blocks = [TextBlock(text=each) if isinstance(each, str) else each for each in parts]
        value = to_plain(result.value) if result.ok else text
        return ToolOutput(name, blocks=blocks, raw_input=arguments, raw_output=value, is_error=not result.ok)


def _block(data: bytes, mime_type: str) -> ImageBlock | AudioBlock:
    audio = mime_type.startswith("audio/")
    return AudioBlock(audio=data, format=mime_type[6:]) if audio else ImageBlock(image=data, image_mimetype=mime_type)


def from_llama_index(
    tools: BaseTool | Iterable[BaseTool], *, group: str, policy: ToolPolicy | None = None, trusted: bool = False
) -> Toolset:
    """Return tools of LlamaIndex as a toolset; each needs ``llama_index:call:GROUP/NAME`` and an approval by default.

    With *trusted*, none needs an approval; *policy* replaces both. A `SpecError` lists every problem found.
    """
    return common.load_toolset(
        common.Framework("llama_index", "LlamaIndex", BaseTool), tools, _read, group, policy, trusted
    )


def _read(tool: BaseTool) -> common.FrameworkTool:
    name = tool.metadata.get_name()
    if getattr(tool, "requires_context", False):
        raise SpecError(name, ["needs the context of a workflow, which only an agent of LlamaIndex has"])

    async def call(rt: Runtime, args: dict[str, Any]) -> Any:
        output = await (tool.acall(**args) if isinstance(tool, AsyncBaseTool) else asyncio.to_thread(tool, **args))
        if output.is_error:
            raise common.failed_tool(output.content)
        return common.result_of(output.blocks, output.raw_output, _media, lambda _: output.content)

    return common.FrameworkTool(name, tool.metadata.description, tool.metadata.get_parameters_dict(), call)


def _media(block: Any) -> Any:
    """Return media that are in the block itself; paths and addresses are not read."""
    if isinstance(block, ImageBlock) and block.image:
        return common.Media(block.resolve_image().read(), block.image_mimetype)
    if isinstance(block, AudioBlock) and block.audio:
        return common.Media(block.resolve_audio().read(), block.format and f"audio/{block.format}")
    return None
