"""Our tools as a toolset of Pydantic AI, whose own check of arguments lets everything through to the line.

Source: issue "MCP and the frameworks", frameworks out; Pydantic AI, "Toolsets" and "Advanced Tool Features".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuroscript._imports import missing
from neuroscript.coercion.plain_data import plain
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError
from neuroscript.interop.media import media_type
from neuroscript.llm.offered_tools import Offered, offered
from neuroscript.spec.binding import arguments_of

try:
    from pydantic_ai import BinaryContent, ModelRetry, RunContext, ToolDefinition, ToolFailed
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    raise missing("a toolset for Pydantic AI needs it", "pydantic-ai", error) from None


def to_pydantic_ai(session: Session, *, tools: str | Iterable[str] = "*") -> OfferedToolset:
    """Return a toolset for agents, of the tools that a session permits now; its policy, limits and trail hold.

    Args:
        session: An engine, or a session of one, by which all calls are carried out.
        tools: Patterns of canonical names, as in ``math.*``; no other tool can be called.

    Raises:
        SpecError: One of *tools* is no pattern, or matches no tool that may be called.
        RegistryError: Two tools would have one name.
    """
    return OfferedToolset(offered(session, tools, subject="to_pydantic_ai"))


class OfferedToolset(AbstractToolset[Any]):
    """The tools that an agent is offered; made by `to_pydantic_ai`. Those that do not only look run one by one."""

    def __init__(self, tools: Iterable[Offered]) -> None:
        self._tools = {each.name: each for each in tools}
        self._definitions = {name: _definition(each) for name, each in self._tools.items()}

    @property
    def id(self) -> None:
        """None: an agent may have several."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools by the names that the model calls them."""
        return {
            name: ToolsetTool(toolset=self, tool_def=each, max_retries=ctx.max_retries, args_validator=AsSent())
            for name, each in self._definitions.items()
        }

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: object) -> Any:
        """Return the result of a call; what the model can mend is a `ModelRetry`, all else a `ToolFailed`."""
        asked = self._tools[name]
        arguments = tool_args["text"] if isinstance(tool_args, Unread) else tool_args
        result = await asked.aexecute(arguments, ctx.tool_call_id or "")
        if result.error is None:
            return _value(result.value)
        raise (ModelRetry if result.error.retry == "model" else ToolFailed)(asked.text(result))


class AsSent:
    """A check of arguments that lets everything through, for the line to say what is wrong with it."""

    def validate_python(self, input: Any, **context: Any) -> Any:
        """Return arguments as they are."""
        return input

    def validate_json(self, input: Any, **context: Any) -> dict[str, Any]:
        """Return the arguments that a text holds by name; of any other text, the text."""
        try:
            given = arguments_of(input, "")
        except ArgumentError:
            return Unread(text=input)
        return given if isinstance(given, dict) else Unread(text=input)


class Unread(dict[str, Any]):
    """What stands for arguments that are no JSON object, as the framework passes on no other: their ``text``."""


def _definition(tool: Offered) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        parameters_json_schema=tool.schema,
        description=tool.description or None,
        sequential=not tool.info.policy.only_looks,
    )


def _value(value: Any) -> Any:
    """Return a result as the framework takes it: a picture as one, and all else as plain data."""
    kind = media_type(value)
    return BinaryContent(value, media_type=kind) if kind.startswith("image/") else plain(value)
