"""Export the tools of a session to Pydantic AI; arguments are validated by the engine, not by the framework."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.scalars import AnyContent
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.spec.binding import parse_arguments

try:
    from pydantic_ai import BinaryContent, ModelRetry, RunContext, ToolDefinition, ToolFailed
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    raise missing_extra("a toolset for Pydantic AI needs it", "pydantic-ai", error) from None


def to_pydantic_ai(session: Session, *, tools: str | Iterable[str] = "*") -> OfferedToolset:
    """Return the tools that a session permits now as a toolset; its policy, limits and audit log apply.

    Args:
        session: An engine or a session; all calls go through it.
        tools: Patterns of canonical names, such as ``math.*``; other tools cannot be called.

    Raises:
        SpecError: One of *tools* is not a pattern, or matches no permitted tool.
        RegistryError: Two tools would have the same name.
    """
    return OfferedToolset(offer_tools(session, tools, subject="to_pydantic_ai"))


class OfferedToolset(AbstractToolset[Any]):
    """The toolset that `to_pydantic_ai` returns; tools that are not read-only run sequentially."""

    def __init__(self, tools: Iterable[OfferedTool]) -> None:
        self._tools = {each.name: each for each in tools}
        self._definitions = {name: _definition(each) for name, each in self._tools.items()}

    @property
    def id(self) -> None:
        """None, because an agent may have several of these toolsets."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools by the names that the model uses."""
        return {
            name: ToolsetTool(
                toolset=self, tool_def=each, max_retries=ctx.max_retries, args_validator=PassthroughValidator()
            )
            for name, each in self._definitions.items()
        }

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: object) -> Any:
        """Return the result of a call.

        Raises:
            ModelRetry: The model can correct the call.
            ToolFailed: The call failed for another reason.
        """
        offered = self._tools[name]
        arguments = tool_args["text"] if isinstance(tool_args, UnparsedArguments) else tool_args
        result = await offered.aexecute(arguments, ctx.tool_call_id or "")
        if result.error is None:
            return _value(result.value)
        raise (ModelRetry if result.error.retry == "model" else ToolFailed)(offered.text(result))


class PassthroughValidator:
    """An arguments validator that accepts everything, so that the engine reports what is wrong."""

    def validate_python(self, input: Any, **context: Any) -> Any:
        """Return the arguments unchanged."""
        return input

    def validate_json(self, input: Any, **context: Any) -> dict[str, Any]:
        """Return the arguments in a JSON object, or `UnparsedArguments` with the original string."""
        try:
            arguments = parse_arguments(input, "")
        except ArgumentError:
            return UnparsedArguments(text=input)
        return arguments if isinstance(arguments, dict) else UnparsedArguments(text=input)


class UnparsedArguments(dict[str, Any]):
    """Arguments that are not a JSON object, as ``text``; the framework only passes mappings on."""


def _definition(tool: OfferedTool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        parameters_json_schema=tool.schema,
        description=tool.description or None,
        sequential=not tool.info.policy.is_read_only,
    )


def _value(value: Any) -> Any:
    """Return a result in the framework's form: an image as binary content, others as plain data."""
    if isinstance(value, AnyContent):
        return [_part(each) for each in value.parts]
    kind = media_type(value)
    return BinaryContent(value, media_type=kind) if kind.startswith("image/") else to_plain(value)


def _part(block: Any) -> Any:
    """Return a block of content: an image or audio as binary content, any other block as text."""
    return BinaryContent(block.data, media_type=block.media_type) if block.kind in ("image", "audio") else block.note
