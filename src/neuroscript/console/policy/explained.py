"""The question of a page what would be decided about a call, and its answer."""

from __future__ import annotations

import attrs
from starlette.datastructures import FormData

from neuroscript.console.console import Console
from neuroscript.console.effects import is_held_back
from neuroscript.engine.explanation.checks import Explanation, explain
from neuroscript.engine.explanation.remedies import Remedy, remedy_of
from neuroscript.engine.explanation.tool_sources import source_of
from neuroscript.engine.session import Session
from neuroscript.io.near_names import near
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall


@attrs.frozen
class Asked:
    """What a page asks.

    Attributes:
        tool: The name of a tool, in any spelling.
        arguments: JSON text; ``""`` asks about the tool with any arguments. It may contain secrets.
    """

    tool: str
    arguments: str = attrs.field(repr=False)

    @classmethod
    def of(cls, form: FormData) -> Asked:
        """Return the question in a form."""
        found = [form.get(name, "") for name in ("tool", "arguments")]
        tool, arguments = (each if isinstance(each, str) else "" for each in found)
        return cls(tool.strip(), arguments.strip())


@attrs.frozen
class Answer:
    """What would be decided.

    Attributes:
        tool: The canonical name of the tool; ``""`` if no tool has this name.
        similar: Names that are similar to an unknown one.
        explanation: The decision and the outcome of each check, or None for an unknown tool.
        remedy: What permits the call, or None.
        arguments: The JSON text that a page may show again: none for a tool with secret arguments.
        is_held_back: Whether this console runs no such tool, whatever the policy says.
    """

    tool: str = ""
    similar: tuple[str, ...] = ()
    explanation: Explanation | None = None
    remedy: Remedy | None = None
    arguments: str = ""
    is_held_back: bool = False


def explain_asked(console: Console, session: Session, asked: Asked) -> Answer:
    """Return what would be decided about a call in a session; nothing runs."""
    engine, name = console.engine, from_wire(asked.tool)
    tool = engine.tools.get(engine.aliases.get(name, name))
    if tool is None:
        return Answer(similar=near(name, engine.tools) if asked.tool else ())
    call = ToolCall(tool.name, asked.arguments) if asked.arguments else None
    if call is None and not tool.spec.args:
        call = ToolCall(tool.name, {})
    old = sorted(alias for alias, current in engine.aliases.items() if current == tool.name)
    found = explain(session, tool, source_of(engine, tool.name), call, old=old)
    return Answer(
        tool.name,
        explanation=found,
        remedy=None if found.decision.allowed else remedy_of(found.decision),
        arguments="" if tool.spec.secret_names else asked.arguments,
        is_held_back=is_held_back(console, tool.policy),
    )
