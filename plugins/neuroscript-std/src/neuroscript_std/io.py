"""A line to the host's output, and a line from whoever is there to answer.

Source: upstream ``pkg/tool/io``, which takes the streams of the process in place of the host's.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec

TELLING: Final = ToolPolicy()
"""No word of the closed set is meant for a line of output, which changes nothing and is not waited for."""

ASKING: Final = ToolPolicy(effects=("prompts",))

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
        (ArgSpec("values", ArgType.ANY, required=False, nullable=True, description="What to print, one by one."),),
        variadic=True,
        return_type=ArgType.NIL,
        description="Print values in one line, with blanks between them.",
        when_to_use="To tell a person something; io.input asks, and str.tojsonstring gives the text to the caller.",
        return_help="Nothing. Texts are printed as they are, control characters escaped, all else as JSON.",
        examples=(
            Example(("rows:", 3, ["a", None]), None, note='prints rows: 3 ["a",null]'),
            Example({"values": ["done"]}, None),
            Example({"values": "done"}, error="coercion.type", note="by name they are a list"),
        ),
    ),
    _printed,
    TELLING,
)


@toolset.tool(
    name="input",
    policy=ASKING,
    when_to_use="For what only a person knows; io.print tells without asking.",
    examples=(
        Example(("What is your name?",)),
        Example(()),
        Example((["What is your name?"],), error="coercion.type"),
    ),
)
def asked(rt: Runtime, message: str = "") -> str:
    """Ask the user for one line.

    Args:
        message: The question, which is shown before the answer.

    Returns:
        The answer, without the end of its line.

    Raises:
        ToolFailed: prompt.noninteractive, where nobody can answer; prompt.eof, prompt.toolong.
    """
    return rt.prompt_user(message)
