"""The ``llm`` tools: ask the host's language model for an answer, a choice of tools or an embedding.

The log contains the role and length of each message, never its content.
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
    when_to_use="Use it to get an answer as text; for tool calls, use llm.choose, for an embedding, llm.embed.",
    examples=(
        Example(("Name a prime number.",)),
        Example({"prompt": "Name a prime number.", "system": "You answer in French."}),
        Example((["Name a prime number."],), error="coercion.type"),
    ),
)
def ask(rt: Runtime, prompt: str, system: str = "") -> str:
    """Ask a language model (LLM) a question and return its answer.

    Args:
        prompt: The user prompt.
        system: A system prompt, such as the language of the answer; none by default.

    Returns:
        The answer of the model.

    Raises:
        ToolFailed: llm.no_model, if the host provides no model; other codes that start with llm.
    """
    instructions = [Turn("system", system)] if system else []
    turns = [*instructions, Turn("user", prompt)]
    answer = rt.llm.ask(turns)
    _log(rt, *turns, answer)
    return answer.content


@toolset.tool(
    policy=USING,
    when_to_use=(
        "Use it to plan tool calls without running them; to run one, use meta.call, to get an answer as text, llm.ask."
    ),
    examples=(
        Example(("What is 1 + 2?", ["math.add", "math.subtract"])),
        Example({"prompt": "What is 1 + 2?", "tools": '["math.add"]'}),
        Example(("What is 1 + 2?", ["math.plus"]), error="llm.unknown_tool"),
    ),
)
def choose(rt: Runtime, prompt: str, tools: list[str]) -> list[dict[str, Any]]:
    """Let a language model choose which tools to call for a prompt; return the tool calls without running them.

    Args:
        prompt: The user prompt.
        tools: The canonical names of available tools, such as math.add.

    Returns:
        One map for each call that the model requests: id, name, and arguments (a list, a map, or JSON of either, as the
        model wrote it). An empty list if it requests none.

    Raises:
        ToolFailed: llm.unknown_tool; llm.no_model, if the host provides no model; other codes that start with llm.
    """
    specs = [_spec(rt, index, name) for index, name in enumerate(tools)]
    turn = Turn("user", prompt)
    answer = rt.llm.ask_with_tools([turn], specs)
    _log(rt, turn, answer)
    return [_as_map(call) for call in answer.tool_calls]


def _spec(rt: Runtime, index: int, name: str) -> ToolSpec:
    if name not in rt.tools:
        text = f"tools[{index}]: expected the canonical name of an available tool, got another string"
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
        (ArgSpec("text", ArgType.STRING, description="The text to embed."),),
        return_type=ArgType.EMBEDDING,
        description="Compute the embedding vector of text with a model, for semantic similarity.",
        when_to_use="Use it to compare text by meaning; to get an answer as text, use llm.ask.",
        return_help="A vector of floats, always of the same length; text with a similar meaning has a similar vector.",
        examples=(
            Example(("a red apple",)),
            Example({"text": "a green pear"}),
            Example((7,), error="coercion.type"),
        ),
        error_conditions="llm.no_model, if the host provides no model; other codes that start with llm.",
    ),
    _embedded,
    USING,
)


def _log(rt: Runtime, *turns: Turn) -> None:
    for turn in turns:
        rt.logger.info("%s: %d characters, %d calls", turn.role, len(turn.content), len(turn.tool_calls))
