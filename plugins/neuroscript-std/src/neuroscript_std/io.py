"""The ``io`` tools: print to the host's output, and prompt the user for input."""

from __future__ import annotations

from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec

PRINT_POLICY: Final = ToolPolicy(sources=(), sinks=())
"""No declared effect covers a line of output, which changes nothing, does not block, and goes only to the user."""

INPUT_POLICY: Final = ToolPolicy(effects=("prompts",))

toolset = Toolset("io")


def _printed(rt: Runtime, *values: Any) -> None:
    rt.println(*map(_text, values))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    from neuroscript_std.text.jsontext import compact

    return compact(value)


toolset.add(
    ToolSpec(
        "print",
        "io",
        (ArgSpec("values", ArgType.ANY, required=False, nullable=True, description="The values to print."),),
        variadic=True,
        return_type=ArgType.NIL,
        description="Print values to the standard output (console) as one line, separated by spaces.",
        when_to_use=(
            "Use it to show something to the user; to ask, use io.input, to get a string back, str.tojsonstring."
        ),
        return_help="None. Strings are printed with control characters escaped, other values as JSON.",
        examples=(
            Example(("rows:", 3, ["a", None]), None, note='prints rows: 3 ["a",null]'),
            Example({"values": ["done"]}, None),
            Example({"values": "done"}, error="coercion.type", note="passed by name, they are a list"),
        ),
    ),
    _printed,
    PRINT_POLICY,
)


@toolset.tool(
    name="input",
    policy=INPUT_POLICY,
    when_to_use="Use it for information only the user has; to show a message without asking, use io.print.",
    examples=(
        Example(("What is your name?",)),
        Example(()),
        Example((["What is your name?"],), error="coercion.type"),
    ),
)
def prompt(rt: Runtime, message: str = "") -> str:
    """Prompt the user for input: ask a question and read one line of input from the terminal.

    Args:
        message: The question to show.

    Returns:
        The answer, without the newline.

    Raises:
        ToolFailed: prompt.noninteractive, if no user can answer; prompt.eof, prompt.too_long.
    """
    return rt.prompt_user(message)
