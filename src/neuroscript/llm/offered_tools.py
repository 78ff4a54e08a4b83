"""The tools of a session that somebody else's loop offers to its model, and the calls that come back from there.

Each call goes through the session, so that its policy, its limits and its trail hold whoever's loop it is.

Source: contract section 2; issue "MCP and the frameworks", all through the one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import attrs

from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.io.text import sendable, shown
from neuroscript.llm.wire.tools import description, schema_of
from neuroscript.names import canonical
from neuroscript.policy.scopes import tool_matcher
from neuroscript.runtime.interfaces import ToolCall, ToolInfo, ToolResult
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames


@attrs.frozen(eq=False)
class Offered:
    """One tool as a model is told of it.

    Attributes:
        name: What the model calls it, ``group__name``.
        info: The tool.
        session: Which carries its calls out.
        names: What the model calls all tools that it is offered.
    """

    name: str
    info: ToolInfo
    session: Session = attrs.field(repr=False)
    names: WireNames = attrs.field(repr=False)

    @property
    def description(self) -> str:
        """What the model is told that it does."""
        return description(self.info.spec)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, a copy of your own, without the defaults of secrets."""
        return dict(deepcopy(schema_of(self.info.spec)))

    def execute(self, arguments: Mapping[str, Any] | str, id: str = "") -> ToolResult:
        """Make a call as the model sent it and return what came of it; a `CallError` is never raised.

        Args:
            arguments: By name, as plain values or as JSON text.
        """
        return self.session.execute(ToolCall(self.info.spec.full_name, arguments, id=id))

    async def aexecute(self, arguments: Mapping[str, Any] | str, id: str = "") -> ToolResult:
        """Return what `execute` returns, without holding up the loop that awaits it."""
        return await self.session.aexecute(ToolCall(self.info.spec.full_name, arguments, id=id))

    def text(self, result: ToolResult) -> str:
        """Return what came of a call as the model reads it, fit to be sent: the result, or the error and what to do."""
        return sendable(result_text(result, self.names))


def offered(session: Session, tools: str | Iterable[str] = "*", *, subject: str) -> tuple[Offered, ...]:
    """Return the tools that a model may be offered: those that the session permits, and of them those of *tools*.

    Args:
        session: An engine, or a session of one, by which all calls are carried out.
        tools: Patterns of canonical names, as in ``math.*``; no other tool can be called.
        subject: Who asks, for the error.

    Raises:
        SpecError: A pattern is none, or matches no tool that may be called.
        RegistryError: Two tools would have one name.
    """
    patterns = (tools,) if isinstance(tools, str) else tuple(tools)
    within = narrowed(session, patterns, subject)
    names = WireNames.of(within.infos.values())
    return tuple(Offered(names.wires[name], info, within, names) for name, info in within.infos.items())


def narrowed(session: Session, patterns: tuple[str, ...], subject: str) -> Session:
    """Return a session that permits the tools of some patterns alone, of those that *session* permits.

    Args:
        subject: Who asks, for the error.

    Raises:
        SpecError: A pattern is none, or matches no tool that may be called.
    """
    within = session if patterns == ("*",) else session.narrowed(session.policy.narrowed(allow=patterns))
    missed = unmatched(within, (each for each in patterns if each != "*"))
    if missed:
        raise SpecError(subject, [f"tools: {shown(each)} matches no tool that may be called here" for each in missed])
    return within


def unmatched(session: Session, patterns: Iterable[str]) -> list[str]:
    """Return the patterns that match no tool that may be called."""
    matchers = {each: tool_matcher(canonical(each)) for each in patterns}
    return [each for each, matches in matchers.items() if not any(map(matches, session.infos))]
