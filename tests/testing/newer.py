"""A toolset for a Runtime that there is not yet."""

from __future__ import annotations

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec

RUNTIME_API = (2, 0)


def shout(rt: Runtime, text: str) -> str:
    return text.upper()


toolset = Toolset("acme")
toolset.add(
    ToolSpec(
        "shout",
        "acme",
        (ArgSpec("text", ArgType.STRING, description="What is shouted.", default="a", required=False),),
        return_type=ArgType.STRING,
        description="Say a text in capitals.",
        when_to_use="For a text that has to be heard.",
        return_help="The text in capitals.",
        examples=(Example(("a",), "A"), Example((5,), error="coercion.type")),
    ),
    shout,
    ToolPolicy(effects=("pure",)),
)
