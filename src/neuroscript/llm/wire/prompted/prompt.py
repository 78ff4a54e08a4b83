"""How a model without tool calling is told of tools, of its own calls, and of what came of them.

Source: issue "Models", ``to_prompt`` for models without tool calling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from neuroscript.coercion.plain_data import plain
from neuroscript.formats.prompt import to_prompt
from neuroscript.io.text import json_text
from neuroscript.llm.wire.tools import read
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames, spec_of

FENCE: Final = "tool_call"
"""What a block of code is marked with that is a call."""

HOW: Final = """\
You can call tools. To call one, write a block like this one, with nothing else in it:

```tool_call
{"name": "NAME", "arguments": {"ARGUMENT": VALUE}}
```

The block is JSON; "arguments" are by name. Write several blocks to make several calls, then end your answer:
what came of the calls is told to you in the next message. Call only these tools, and none where you need none.

"""


def instructions(tools: Iterable[Any], names: WireNames | None = None) -> str:
    """Return how to ask for a call, and all that a model has to know of the tools; ``""`` without tools.

    Args:
        tools: Each a `ToolImplementation`, a `ToolInfo` or a `ToolSpec`.
        names: What the model calls them; by default `WireNames.of` them.

    Raises:
        RegistryError: Two of them would have one name, where no *names* are given.

    >>> from neuroscript import ToolSpec
    >>> instructions([ToolSpec("now", "time")]).splitlines()[-1]
    'time__now() -> any'
    """
    specs = [spec_of(tool) for tool in tools]
    names = names or WireNames.of(specs)
    return HOW + to_prompt(specs, spelt=names.wire) if specs else ""


def calls_text(calls: Iterable[ToolCall], names: WireNames) -> str:
    """Return calls as a model that was instructed writes them."""
    return "\n".join(f"```{FENCE}\n{_call(each, names)}\n```" for each in calls)


def results_text(calls: Sequence[ToolCall], results: Sequence[ToolResult], names: WireNames) -> str:
    """Return what came of the calls of one turn, each with its number in that turn and the name of its tool."""
    told = enumerate(zip(calls, results, strict=True), 1)
    return "\n\n".join(
        f"Call {number}, {names.wire(call.name) or 'without a name'}, gave:\n{result_text(result, names)}"
        for number, (call, result) in told
    )


def _call(call: ToolCall, names: WireNames) -> str:
    given = read(call.arguments)
    return json_text({"name": names.wire(call.name), "arguments": given if isinstance(given, str) else plain(given)})
