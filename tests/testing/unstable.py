"""A toolset whose tools are others in every process."""

from __future__ import annotations

import os

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec

DEFAULT = f"process {os.getpid()}"


def shout(rt: Runtime, text: str) -> str:
    return text.upper()


toolset = Toolset("acme")
toolset.add(
    ToolSpec(
        "shout",
        "acme",
        (ArgSpec("text", ArgType.STRING, description="What is shouted.", default=DEFAULT, required=False),),
        return_type=ArgType.STRING,
        description="Say a text in capitals.",
        when_to_use="For a text that has to be heard.",
        return_help="The text in capitals.",
        examples=(Example(("a",), "A"), Example((5,), error="coercion.type")),
    ),
    shout,
    ToolPolicy(effects=("pure",)),
)
