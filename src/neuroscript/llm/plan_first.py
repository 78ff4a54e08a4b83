"""The first step of a conversation that names its tools beforehand, while the model has read nothing from outsiders.

A tool that is not named needs an approval of each call, so what the model reads later cannot add tools unasked.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError
from neuroscript.llm.driver import ConversationDriver
from neuroscript.llm.offered_tools import offered_infos
from neuroscript.llm.steps import AskStep, CallStep, ConversationState
from neuroscript.llm.structured_output import exact_answer, instruction
from neuroscript.names import canonical, from_wire
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, complete_turn
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

TOOL_NAMES: Final = ToolSpec("answer", "model", (ArgSpec("answer", ArgType.SLICE_STRING),))
"""The answer that is asked for."""


def name_tools(state: ConversationState, driver: ConversationDriver) -> Generator[AskStep | CallStep, Any, None]:
    """Ask the model which tools it will need, and give the conversation a session in which all others ask."""
    names = yield from _named_tools(state)
    assert state.session is not None  # converse has one
    session = state.session.narrowed(allow=names, otherwise="ask")
    state.session = driver.session = session
    state.tools = tuple(info.spec for info in offered_infos(session))


def _named_tools(state: ConversationState) -> Generator[AskStep | CallStep, Any, tuple[str, ...]]:
    known = {spec.full_name: spec for spec in state.tools}
    request = Turn("user", _request(state.tools))
    turns, fault = [*state.turns_to_send(), request], ""
    while True:
        state.require_turn(fault)
        reply: Reply = yield AskStep(tuple(turns), ())
        state.replies.append(reply)
        complete_turn(reply)
        try:
            named = exact_answer(TOOL_NAMES, reply.turn.content)
            found = [canonical(from_wire(each)) for each in named]
            unknown = [each for each in found if each not in known]
            if not unknown:
                return tuple(dict.fromkeys(found))
            fault = f"{len(unknown)} of these tools do not exist; use the names of the list"
        except ArgumentError as error:
            fault = str(error)
        turns += [reply.turn, Turn("user", f"{fault}. {instruction(TOOL_NAMES)}")]


def _request(tools: Sequence[ToolSpec]) -> str:
    listed = "\n".join(f"- {spec.full_name}: {spec.description.partition('. ')[0].rstrip('.')}" for spec in tools)
    return (
        "Before you begin, name every tool that you will need for this task, and no other one. "
        f"{instruction(TOOL_NAMES)}. The tools are:\n{listed}"
    )
