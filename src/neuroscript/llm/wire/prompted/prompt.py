"""The prompts that describe tools, calls and results to a model without tool calling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from neuroscript.coercion.plain_data import to_plain
from neuroscript.formats.prompt import to_prompt
from neuroscript.io.text import json_text
from neuroscript.llm.wire.tools import decode_arguments
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames, spec_of

FENCE: Final = "tool_call"
"""The label of a code block that contains a call."""

INSTRUCTIONS: Final = """\
You can call tools. To call one, write a block like this, with nothing else in it:

```tool_call
{"name": "NAME", "arguments": {"ARGUMENT": VALUE}}
```

The block is JSON; pass "arguments" by name. To make several calls, write several blocks. Then end your answer:
the next message contains the results. Call only the tools below, and only when you need them.

"""


def instructions(tools: Iterable[Any], names: WireNames | None = None) -> str:
    """Return the instructions for calling tools and the descriptions of *tools*; ``""`` without tools.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        names: The names that the model uses; by default `WireNames.of` the tools.

    Raises:
        RegistryError: If *names* is None and two tools would have the same name.

    >>> from neuroscript import ToolSpec
    >>> instructions([ToolSpec("now", "time")]).splitlines()[-1]
    'time__now() -> any'
    """
    specs = [spec_of(tool) for tool in tools]
    names = names or WireNames.of(specs)
    return INSTRUCTIONS + to_prompt(specs, spelt=names.wire) if specs else ""


def calls_text(calls: Iterable[ToolCall], names: WireNames) -> str:
    """Return calls in the form that the instructions describe."""
    return "\n".join(f"```{FENCE}\n{_call(each, names)}\n```" for each in calls)


def results_text(calls: Sequence[ToolCall], results: Sequence[ToolResult], names: WireNames) -> str:
    """Return the results of the calls of one turn, each with its number in the turn and the name of its tool."""
    told = enumerate(zip(calls, results, strict=True), 1)
    return "\n\n".join(
        f"Call {number}, {names.wire(call.name) or 'without a name'}, returned:\n{result_text(result, names)}"
        for number, (call, result) in told
    )


def _call(call: ToolCall, names: WireNames) -> str:
    arguments = decode_arguments(call.arguments)
    return json_text(
        {"name": names.wire(call.name), "arguments": arguments if isinstance(arguments, str) else to_plain(arguments)}
    )
