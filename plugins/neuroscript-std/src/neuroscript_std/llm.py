"""The model that the host lends: an answer, a choice of tools, an embedding.

What is logged of a conversation is who spoke and how much, never what was said.

Source: contract section 4, ``llm``.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

from neuroscript import (
    ArgSpec,
    ArgType,
    Example,
    Runtime,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
)

USING: Final = ToolPolicy(capabilities=("model:use",), effects=("model",))

toolset = Toolset("llm")


@toolset.tool(
    policy=USING,
    when_to_use="For an answer in words; llm.choose asks which tools to call, llm.embed compares texts by meaning.",
    examples=(
        Example(("Name a prime number.",)),
        Example({"prompt": "Name a prime number.", "system": "You answer in French."}),
        Example((["Name a prime number."],), error="coercion.type"),
    ),
)
def ask(rt: Runtime, prompt: str, system: str = "") -> str:
    """Ask the model that the host lends.

    Args:
        prompt: What the model is asked.
        system: How it is to answer; nothing is said of it unless this is given.

    Returns:
        Its answer.

    Raises:
        ToolFailed: llm.none, where the host lends no model; other codes that begin with llm.
    """
    instructions = [Turn("system", system)] if system else []
    turns = [*instructions, Turn("user", prompt)]
    answer = rt.llm.ask(turns)
    _log(rt, *turns, answer)
    return answer.content


@toolset.tool(
    policy=USING,
    when_to_use="For the calls that a model would make; llm.ask gives its words, meta.call makes a call.",
    examples=(
        Example(("What is 1 + 2?", ["math.add", "math.subtract"])),
        Example({"prompt": "What is 1 + 2?", "tools": '["math.add"]'}),
        Example(("What is 1 + 2?", ["math.plus"]), error="llm.unknown_tool"),
    ),
)
def choose(rt: Runtime, prompt: str, tools: list[str]) -> list[dict[str, Any]]:
    """Ask the model which of some tools to call; none is called.

    Args:
        prompt: What the model is asked.
        tools: The canonical names of tools that may be called here, such as math.add.

    Returns:
        One map for each call that it asks for, as it wrote it: id, name, and arguments (in order, by name, or the JSON
        text of either). An empty list where it asks for none.

    Raises:
        ToolFailed: llm.unknown_tool; llm.none, where the host lends no model; other codes that begin with llm.
    """
    specs = [_spec(rt, index, name) for index, name in enumerate(tools)]
    turn = Turn("user", prompt)
    answer = rt.llm.ask_with_tools([turn], specs)
    _log(rt, turn, answer)
    return [_as_map(call) for call in answer.tool_calls]


def _spec(rt: Runtime, index: int, name: str) -> ToolSpec:
    if name not in rt.tools:
        text = f"tools[{index}]: expected the canonical name of a tool that may be called here, got another text"
        raise ToolFailed(text, code="llm.unknown_tool", retry="model")
    return rt.tools[name].spec


def _as_map(call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = dict(arguments) if isinstance(arguments, Mapping) else list(arguments)
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _embedded(rt: Runtime, text: str) -> array[float]:
    numbers = array("f", rt.llm.embed(text))
    _log(rt, Turn("user", text))
    return numbers


toolset.add(
    ToolSpec(
        "embed",
        "llm",
        (ArgSpec("text", ArgType.STRING, description="The text."),),
        return_type=ArgType.EMBEDDING,
        description="Give the embedding of a text, by the model that the host lends.",
        when_to_use="To compare texts by their meaning; llm.ask gives an answer in words.",
        return_help="Numbers, as many for every text of one model; near ones for texts that mean nearly the same.",
        examples=(
            Example(("a text",)),
            Example({"text": "another text"}),
            Example((7,), error="coercion.type"),
        ),
        error_conditions="llm.none, where the host lends no model; other codes that begin with llm.",
    ),
    _embedded,
    USING,
)


def _log(rt: Runtime, *turns: Turn) -> None:
    for turn in turns:
        rt.logger.info("%s: %d characters, %d calls", turn.role, len(turn.content), len(turn.tool_calls))
