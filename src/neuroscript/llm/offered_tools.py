"""Tools of a session for the agent loop of another framework, and the calls that come back from it.

Each call goes through the session, so its policy, limits and audit log apply in every loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import attrs

from neuroscript.calls.steps import CallFrame
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError, ToolNotFound
from neuroscript.io.text import quote_untrusted, sendable
from neuroscript.llm.wire.tools import input_schema, tool_description
from neuroscript.names import canonical, from_wire
from neuroscript.policy.scopes import tool_matcher
from neuroscript.runtime.interfaces import ToolCall, ToolInfo, ToolResult
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import NameStyle, WireNames


@attrs.frozen(eq=False)
class OfferedTool:
    """One tool as a model sees it.

    Attributes:
        name: The name that the model uses, ``group__name``.
        info: The tool.
        session: The session that runs its calls.
        names: The names of all offered tools.
    """

    name: str
    info: ToolInfo
    session: Session = attrs.field(repr=False)
    names: WireNames = attrs.field(repr=False)

    @property
    def description(self) -> str:
        """The description that the model reads."""
        return tool_description(self.info.spec)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, without defaults of secrets. Each access returns a new copy."""
        return dict(deepcopy(input_schema(self.info.spec)))

    def execute(self, arguments: Mapping[str, Any] | str, id: str = "") -> ToolResult:
        """Run a call as the model sent it and return the result; a `CallError` is never raised.

        Args:
            arguments: By name, as plain values or as JSON text.
        """
        return self.session.execute(ToolCall(self.info.spec.full_name, arguments, id=id))

    async def aexecute(self, arguments: Mapping[str, Any] | str, id: str = "") -> ToolResult:
        """Return what `execute` returns, without blocking the event loop."""
        return await self.session.aexecute(ToolCall(self.info.spec.full_name, arguments, id=id))

    def text(self, result: ToolResult) -> str:
        """Return the result of a call as the model reads it: the value, or the error and what to do."""
        return sendable(result_text(result, self.names))


def offer_tools(
    session: Session, tools: str | Iterable[str] = "*", *, subject: str, style: NameStyle = "grouped"
) -> tuple[OfferedTool, ...]:
    """Return the tools to offer to a model: those that match *tools* and that the session permits.

    Args:
        session: An engine, or a session of one, that runs all calls.
        tools: Patterns over canonical names, such as ``math.*``. Other tools cannot be called.
        subject: The caller, for the error message.
        style: How the tools are named.

    Raises:
        SpecError: If a pattern is invalid or matches no permitted tool.
        RegistryError: If two tools would have the same name.
    """
    patterns = (tools,) if isinstance(tools, str) else tuple(tools)
    within = narrow_session(session, patterns, subject)
    names = WireNames.of(within.infos.values(), style)
    infos = offered_infos(within)
    return tuple(OfferedTool(names.wires[info.spec.full_name], info, within, names) for info in infos)


def offered_infos(session: Session) -> list[ToolInfo]:
    """Return the permitted tools that models are offered, so not those that are only resources or prompts."""
    return [info for info in session.infos.values() if info.spec.is_offered]


def refuse_unoffered(session: Session, call: ToolCall) -> ToolResult | None:
    """Return the error for a call of a model or client that names a tool it is not offered, or None.

    A tool that is only a resource or a prompt is unknown, as if it did not exist; the refusal is recorded.
    """
    registry = session._shared.registry
    name = from_wire(call.name) if isinstance(call.name, str) else ""
    name = registry.aliases.get(name, name)
    info = session.infos.get(name)
    if info is None or info.spec.is_offered:
        return None
    return ToolResult(call.id, name, error=session._refused(CallFrame(session, name), ToolNotFound(name)))


def narrow_session(session: Session, patterns: tuple[str, ...], subject: str) -> Session:
    """Return a session that permits only the tools that match *patterns*, out of those that *session* permits.

    Args:
        subject: The caller, for the error message.

    Raises:
        SpecError: If a pattern is invalid or matches no permitted tool.
    """
    within = (
        session if patterns == ("*",) else session.narrowed(session.policy.narrowed(allow=patterns, otherwise="refuse"))
    )
    missed = unmatched_patterns(within, (each for each in patterns if each != "*"))
    if missed:
        raise SpecError(
            subject, [f"tools: {quote_untrusted(each)} matches no tool that may be called here" for each in missed]
        )
    return within


def unmatched_patterns(session: Session, patterns: Iterable[str]) -> list[str]:
    """Return the patterns that match no permitted tool."""
    matchers = {each: tool_matcher(canonical(each)) for each in patterns}
    return [each for each, matches in matchers.items() if not any(map(matches, session.infos))]
