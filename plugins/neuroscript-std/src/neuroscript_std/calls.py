"""Tools that call another tool: ``list.map``, ``var.change`` and ``meta.call``.

An inner call never has more authority than its caller. These tools need no grants, so they can only call tools that
need none. See docs/reference/contract.md, "Authority".
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

INNER_CALL_POLICY: Final = ToolPolicy(blocking=True, sources=(), sinks=())
"""Effects depend on the tool that is called. Its own labels and sinks apply to the inner call."""

TOOL: Final = ArgSpec("tool", ArgType.STRING, description="The name of the tool to call, such as math.add.")
FURTHER_ARGS: Final = ArgSpec(
    "args", ArgType.SLICE_ANY, default=[], description="Further arguments of the tool, after its first one."
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
            raise ToolFailed("the call was cancelled", code="list.cancelled", retry="later")
        rt.progress(index, len(elements))
        yield _reporting_failures(f"list[{index}]: ", rt.call_tool, tool, [element, *args])


def _reporting_failures(where: str, call: Callable[[str, Any], Any], tool: str, arguments: Any) -> Any:
    """Make an inner call and report its failure to the caller, who wrote the arguments.

    Policy and limit errors pass through unchanged.
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
            ArgSpec("list", ArgType.SLICE_ANY, description="The elements; one call is made for each."),
            TOOL,
            FURTHER_ARGS,
        ),
        return_type=ArgType.SLICE_ANY,
        description=(
            "Call a tool for every element of a list, like a map function, and return the list of results. A tool "
            "that needs a grant is refused."
        ),
        when_to_use="Use it to run the same call for each item; for a single call, use meta.call.",
        return_help="The results, in the order of the elements. The first call that fails ends it without a result.",
        examples=(
            Example((["a", " b "], "str.trimspace"), ["a", "b"]),
            Example(([1, 2], "math.add", [0.5]), [1.5, 2.5]),
            Example(([1, 0], "list.head"), error="call.arguments", note="the message contains the position, list[0]"),
            Example(([1], "math.plus"), error="tool.not_found"),
        ),
        error_conditions=(
            "tool.not_found; call.arguments, if an element or args does not match the tool's arguments; "
            "list.cancelled; "
            "otherwise the code of the call that failed."
        ),
    ),
    _mapped,
    INNER_CALL_POLICY,
)


def _changed(rt: Runtime, name: str, tool: str, args: list[Any]) -> Any:
    return rt.update_var(name, lambda value: _reporting_failures("", rt.call_tool, tool, [value, *args]))


toolset.add(
    ToolSpec(
        "change",
        "var",
        (
            ArgSpec("name", ArgType.STRING, description="Name of the variable; case-sensitive."),
            TOOL,
            FURTHER_ARGS,
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description=(
            "Update a variable atomically: apply a tool to its value, for example to increment a counter, and "
            "store the "
            "result. A tool that needs a grant is refused."
        ),
        when_to_use="Use it if concurrent calls change the variable; to overwrite it with a known value, use var.set.",
        return_help="The new value.",
        examples=(
            Example(("rows", "list.append", [{"id": 1}])),
            Example({"name": "rows", "tool": "list.tail", "args": [0]}, []),
            Example(("rows", "list.add"), error="tool.not_found"),
        ),
        error_conditions=(
            "var.constant; tool.not_found; call.arguments, if they do not match the tool; otherwise the code of "
            "the call "
            "that failed."
        ),
    ),
    _changed,
    attrs.evolve(INNER_CALL_POLICY, effects=("writes",)),
)


def _called(rt: Runtime, tool: str, arguments: dict[str, Any]) -> Any:
    return _reporting_failures("", rt.call_tool_named, tool, arguments)


toolset.add(
    ToolSpec(
        "call",
        "meta",
        (
            TOOL,
            ArgSpec("arguments", ArgType.MAP, default={}, description="The arguments of the call, by name."),
        ),
        return_type=ArgType.ANY,
        return_nullable=True,
        description=(
            "Call another tool by name, with keyword arguments in a map. A tool that needs a grant is refused."
        ),
        when_to_use="Use it if the tool name is only known at run time; for one call per list item, use list.map.",
        return_help="The result of the tool.",
        examples=(
            Example(("math.add", {"num1": 1, "num2": 2}), 3.0),
            Example(
                ("str.join", '{"string_list": ["a", "b"], "separator": ","}'), "a,b", note="a map can be passed as JSON"
            ),
            Example(("math.add", {"num1": 1}), error="call.arguments"),
        ),
        error_conditions=(
            "tool.not_found; call.arguments, if they do not match the tool; otherwise the code of the call that failed."
        ),
    ),
    _called,
    INNER_CALL_POLICY,
)
