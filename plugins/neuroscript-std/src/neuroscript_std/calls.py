"""Tools that call another one: for each element of a list, on a variable, or with arguments that are data.

A call within loses authority and never wins any. These tools need nothing, so what they call can need nothing either.

Source: contract sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Example,
    LimitError,
    PolicyError,
    Runtime,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    Toolset,
    ToolSpec,
)

CALLING: Final = ToolPolicy(blocking=True)
"""What it does to the world, and whether that is waited for, depends on what is called."""

TOOL: Final = ArgSpec("tool", ArgType.STRING, description="The name of the tool to call, such as math.add.")
FURTHER: Final = ArgSpec(
    "args", ArgType.SLICE_ANY, default=[], description="What is handed to the tool behind its first argument."
)

toolset = Toolset("calls")


def _mapped(rt: Runtime, list: list[Any], tool: str, args: list[Any]) -> list[Any]:
    results = [*_results(rt, list, tool, args)]
    rt.progress(len(results), len(list))
    rt.logger.debug("made %d calls", len(results))
    return results


def _results(rt: Runtime, elements: list[Any], tool: str, args: list[Any]) -> Iterator[Any]:
    for index, element in enumerate(elements):
        if rt.cancelled:
            raise ToolFailed("nobody waits for the result any more", code="list.cancelled", retry="later")
        rt.progress(index, len(elements))
        yield _told(f"list[{index}]: ", rt.call_tool, tool, [element, *args])


def _told(where: str, call: Callable[[str, Any], Any], tool: str, arguments: Any) -> Any:
    """Make a call whose arguments the caller wrote, who is therefore told what is wrong with them.

    A refusal passes as it is.
    """
    try:
        return call(tool, arguments)
    except (PolicyError, LimitError):
        raise
    except ToolNotFound as error:
        raise ToolFailed(f"tool: {error.text}", code=error.code, retry=error.retry) from error
    except CallError as error:
        code = "call.arguments" if isinstance(error, ArgumentError) else error.code
        raise ToolFailed(f"{where}{error}", code=code, retry=error.retry) from error


toolset.add(
    ToolSpec(
        "map",
        "list",
        (
            ArgSpec("list", ArgType.SLICE_ANY, description="The elements, one for each call."),
            TOOL,
            FURTHER,
        ),
        return_type=ArgType.SLICE_ANY,
        description=(
            "Call a tool for each element of a list. It can do no more than it may itself: a tool that needs a grant "
            "is refused."
        ),
        when_to_use="For the same call with many values; meta.call makes a single one.",
        return_help="The results, in the order of the elements. At the first call that fails there is none.",
        examples=(
            Example((["a", " b "], "str.trimspace"), ["a", "b"]),
            Example(([1, 2], "math.add", [0.5]), [1.5, 2.5]),
            Example(([1, 0], "list.head"), error="call.arguments", note="the text names the place, list[0]"),
            Example(([1], "math.plus"), error="tool.not_found"),
        ),
        error_conditions=(
            "tool.not_found; call.arguments, where an element or what is in args does not fit; list.cancelled; of a "
            "call that fails its own code."
        ),
    ),
    _mapped,
    CALLING,
)


def _changed(rt: Runtime, name: str, tool: str, args: list[Any]) -> Any:
    return rt.update_var(name, lambda value: _told("", rt.call_tool, tool, [value, *args]))


toolset.add(
    ToolSpec(
        "change",
        "var",
        (
            ArgSpec("name", ArgType.STRING, description="What the variable is called; case matters."),
            TOOL,
            FURTHER,
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description=(
            "Set a variable to what a tool makes of its value, which is the tool's first argument; nobody comes in "
            "between. It can do no more than it may itself: a tool that needs a grant is refused."
        ),
        when_to_use="For a value that others may be changing too; var.set replaces it, whatever it is by then.",
        return_help="The new value.",
        examples=(
            Example(("rows", "list.append", [{"id": 1}])),
            Example({"name": "rows", "tool": "list.tail", "args": [0]}, []),
            Example(("rows", "list.add"), error="tool.not_found"),
        ),
        error_conditions=(
            "var.constant; tool.not_found; call.arguments, where they do not fit; of a call that fails its own code."
        ),
    ),
    _changed,
    attrs.evolve(CALLING, effects=("writes",)),
)


def _called(rt: Runtime, tool: str, arguments: dict[str, Any]) -> Any:
    return _told("", rt.call_tool_named, tool, arguments)


toolset.add(
    ToolSpec(
        "call",
        "meta",
        (
            TOOL,
            ArgSpec("arguments", ArgType.MAP, default={}, description="The arguments of the call, by their names."),
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description=(
            "Call a tool that is named by a text, with arguments in a map. It can do no more than it may itself: a "
            "tool that needs a grant is refused."
        ),
        when_to_use="For a call that was written down as data; list.map makes one for each element of a list.",
        return_help="What the tool gives.",
        examples=(
            Example(("math.add", {"num1": 1, "num2": 2}), 3.0),
            Example(("str.join", '{"string_list": ["a", "b"], "separator": ","}'), "a,b", note="a map as JSON text"),
            Example(("math.add", {"num1": 1}), error="call.arguments"),
        ),
        error_conditions=("tool.not_found; call.arguments, where they do not fit; of a call that fails its own code."),
    ),
    _called,
    CALLING,
)
