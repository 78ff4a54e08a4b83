"""Load tools, functions and toolboxes of ``llm`` as a toolset; each call is checked first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from inspect import isclass, signature
from threading import Thread
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import (
    MAX_DESCRIPTION_CHARS,
    bounded_schema,
    default_policy,
    passed_arguments,
    tools_by_name,
)
from neuroscript.io.text import one_line, quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

try:
    import llm
except ImportError as error:
    raise missing_extra("loading tools of llm needs that package", "llm", error) from None

LlmTool = llm.Tool | llm.Toolbox | type[llm.Toolbox] | Callable[..., Any]
"""The forms in which ``llm`` accepts one or more tools."""


def from_llm(
    tools: LlmTool | Iterable[LlmTool], *, group: str, policy: ToolPolicy | None = None, trusted: bool = False
) -> Toolset:
    """Return the tools that ``llm`` would offer to a model as a toolset, named ``group.name``.

    Args:
        tools: An ``llm.Tool``, a function, a ``Toolbox`` or its class, or several of them. A toolbox is prepared here,
            once, and retains its state; the names of its tools do not include the name of its class.
        group: The group of the tools.
        policy: The policy of each tool. By default, a tool needs ``llm:call:GROUP/NAME`` with its name in ``llm`` and
            an approval of each call unless *trusted*, and is assumed to have every effect.
        trusted: Call the tools without approval.

    Raises:
        SpecError: With every problem found.
    """
    group = Toolset(group).name
    faults: list[str] = []
    found: list[ToolImplementation] = []
    for word, each in tools_by_name(_labelled_tools(tools, faults), faults, "load each into a separate group").items():
        try:
            found.append(_tool(word, each, group, policy or default_policy("llm", group, each.name, trusted)))
        except SpecError as error:
            faults.extend(f"{quote_untrusted(each.name)}: {problem}" for problem in error.problems)
    if faults:
        raise SpecError(f"from_llm {group}", faults)
    return Toolset(group, tuple(found))


def _labelled_tools(tools: Any, faults: list[str]) -> Iterator[tuple[str, llm.Tool]]:
    """Yield each tool with the label that makes its name; record the ones that cannot be loaded."""
    for each in tools if isinstance(tools, Iterable) else (tools,):
        if isinstance(each, llm.ServerSideTool):
            faults.append(f"{quote_untrusted(type(each).__name__)}: runs on the server of the model provider, not here")
            continue
        try:
            if isclass(each) and issubclass(each, llm.Toolbox):
                each = each()
            if isinstance(each, llm.Toolbox):
                _prepare(each)
                prefix = f"{type(each).__name__}_"
                yield from ((tool.name.removeprefix(prefix), tool) for tool in each.tools())
            else:
                tool = each if isinstance(each, llm.Tool) else llm.Tool.function(each)
                yield tool.name, tool
        except Exception as error:  # raised by the toolbox, or by llm for annotations that it cannot read
            name = getattr(each, "__name__", type(each).__name__)
            faults.append(f"{quote_untrusted(name)}: cannot be loaded ({type(error).__name__})")


def _prepare(box: llm.Toolbox) -> None:
    """Prepare a toolbox once; a coroutine that does so runs in its own event loop."""
    if not box._prepared:
        box.prepare()
        box._prepared = True
    has_own = type(box).prepare is not llm.Toolbox.prepare
    if has_own or box._async_prepared or type(box).prepare_async is llm.Toolbox.prepare_async:
        return
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(box.prepare_async())
        except BaseException as error:  # re-raised in the caller's thread, including SystemExit
            failed.append(error)

    thread = Thread(target=run, name="neuroscript-llm", daemon=True)  # the caller's thread may be running an event loop
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    box._async_prepared = True


def _tool(word: str, tool: llm.Tool, group: str, needs: ToolPolicy) -> ToolImplementation:
    if tool.implementation is None:
        raise SpecError(word, ["has no implementation in this process"])
    schema = bounded_schema(tool.input_schema, word) or {}
    schema.setdefault("type", "object")
    spec = spec_from_schema(word, schema, group=group, description=one_line(tool.description, MAX_DESCRIPTION_CHARS))
    return ToolImplementation(spec, _function(tool, spec.args), needs)


def _function(tool: llm.Tool, args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return the function that receives the exact values of a call."""
    function: Callable[..., Any] = tool.implementation  # type: ignore[assignment]
    wants_call = _wants_call(function)

    def named(values: tuple[Any, ...]) -> dict[str, Any]:
        found = to_plain(passed_arguments(args, values))
        return {**found, "llm_tool_call": llm.ToolCall(tool.name, found)} if wants_call else found

    def called(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(function(**named(values)))
        except (llm.CancelToolCall, llm.PauseChain) as error:
            raise _pause_error(error) from error

    async def awaited(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(await function(**named(values)))
        except (llm.CancelToolCall, llm.PauseChain) as error:
            raise _pause_error(error) from error

    return awaited if is_coroutine(function) else called


def _wants_call(function: Callable[..., Any]) -> bool:
    try:
        return "llm_tool_call" in signature(function).parameters
    except (TypeError, ValueError):  # a built-in without a readable signature
        return False


def _pause_error(error: Exception) -> ToolFailed:
    """Return the error for a tool that cancels its call, or pauses the loop of ``llm`` around it."""
    if isinstance(error, llm.PauseChain):
        return ToolFailed("the tool requested a pause, which is not supported here", code="llm.paused", retry="host")
    reason = one_line(str(error), MAX_DESCRIPTION_CHARS)
    return ToolFailed(f"the tool cancelled the call{': ' * bool(reason)}{reason}", code="llm.cancelled", retry="never")


def _value(result: Any) -> Any:
    """Return a result as ``llm`` would write it; attachments are described, but not read or fetched."""
    if not isinstance(result, llm.ToolOutput):
        return _plain(result)
    if not result.attachments:
        return _plain(result.output)
    return {"output": _plain(result.output), "attachments": [*map(_attached, result.attachments)]}


def _plain(value: Any) -> Any:
    return (
        value
        if value is None or isinstance(value, (str, bytes, int, float))
        else json.loads(json.dumps(value, default=repr))
    )


def _attached(attachment: llm.Attachment) -> dict[str, Any]:
    where = {"data": attachment.content, "url": attachment.url, "path": attachment.path}
    return {"media_type": attachment.type, **{key: each for key, each in where.items() if each}}
