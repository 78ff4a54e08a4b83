"""Tools, functions and toolboxes of ``llm`` as a set of ours: exact arguments, policy and limits come before them.

Source: docs of ``llm``, "Tools", toolboxes; issue "MCP and the frameworks", in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from inspect import isclass, signature
from threading import Thread
from typing import Any

from neuroscript._imports import missing
from neuroscript.coercion.plain_data import plain
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import LONGEST, bounded_schema, by_word, given, unknown_needs
from neuroscript.io.text import one_line, shown
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

try:
    import llm
except ImportError as error:
    raise missing("taking tools of llm needs that package", "llm", error) from None

Given = llm.Tool | llm.Toolbox | type[llm.Toolbox] | Callable[..., Any]
"""What ``llm`` takes as a tool, or as several."""


def from_llm(
    tools: Given | Iterable[Given], *, group: str, policy: ToolPolicy | None = None, trusted: bool = False
) -> Toolset:
    """Return what ``llm`` would hand to a model as a set of tools, each called ``group.name``.

    Args:
        tools: An ``llm.Tool``, a function, a ``Toolbox`` or its class, or several of them. A toolbox is prepared here,
            once, and keeps its state; its tools are called without the name of its class.
        group: The group of the tools.
        policy: What each of them needs, in place of ``llm:call:GROUP/NAME`` with the name that it has in ``llm``, an
            approval of each call unless *trusted*, and the effects of a tool that may do anything.
        trusted: Whether they are called without an approval of each call.

    Raises:
        SpecError: With everything that can not be taken.
    """
    group = Toolset(group).name
    faults: list[str] = []
    found: list[ToolImplementation] = []
    for word, each in by_word(_named(tools, faults), faults, "take each in a group of its own").items():
        try:
            found.append(_tool(word, each, group, policy or unknown_needs("llm", group, each.name, trusted)))
        except SpecError as error:
            faults.extend(f"{shown(each.name)}: {problem}" for problem in error.problems)
    if faults:
        raise SpecError(f"from_llm {group}", faults)
    return Toolset(group, tuple(found))


def _named(tools: Any, faults: list[str]) -> Iterator[tuple[str, llm.Tool]]:
    """Yield each tool behind the text that makes its word; what can not be taken is noted."""
    for each in tools if isinstance(tools, Iterable) else (tools,):
        if isinstance(each, llm.ServerSideTool):
            faults.append(f"{shown(type(each).__name__)}: is run by the provider of a model, not here")
            continue
        try:
            if isclass(each) and issubclass(each, llm.Toolbox):
                each = each()
            if isinstance(each, llm.Toolbox):
                _prepare(each)
                prefix = f"{type(each).__name__}_"
                yield from ((tool.name.removeprefix(prefix), tool) for tool in each.tools())
            else:
                tool = each if isinstance(each, llm.Tool) else llm.Tool.function(each)  # type: ignore[no-untyped-call]
                yield tool.name, tool
        except Exception as error:  # of the toolbox, or of annotations that llm can not read
            name = getattr(each, "__name__", type(each).__name__)
            faults.append(f"{shown(name)}: can not be taken ({type(error).__name__})")


def _prepare(box: llm.Toolbox) -> None:
    """Let a toolbox make itself ready, once; where only a coroutine does that, in an event loop of its own."""
    if not box._prepared:
        box.prepare()  # type: ignore[no-untyped-call]
        box._prepared = True
    has_own = type(box).prepare is not llm.Toolbox.prepare
    if has_own or box._async_prepared or type(box).prepare_async is llm.Toolbox.prepare_async:
        return
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(box.prepare_async())  # type: ignore[no-untyped-call]
        except BaseException as error:  # it is the caller's, a SystemExit too
            failed.append(error)

    thread = Thread(target=run, name="neuroscript-llm", daemon=True)  # the caller's may be running a loop
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    box._async_prepared = True


def _tool(word: str, tool: llm.Tool, group: str, needs: ToolPolicy) -> ToolImplementation:
    if tool.implementation is None:
        raise SpecError(word, ["has no implementation here"])
    schema = bounded_schema(tool.input_schema, word) or {}
    schema.setdefault("type", "object")
    spec = spec_from_schema(word, schema, group=group, description=one_line(tool.description, LONGEST))
    return ToolImplementation(spec, _function(tool, spec.args), needs)


def _function(tool: llm.Tool, args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    """Return what is called with the exact values of a call."""
    function: Callable[..., Any] = tool.implementation  # type: ignore[assignment]
    wants_call = _wants_call(function)

    def named(values: tuple[Any, ...]) -> dict[str, Any]:
        found = plain(given(args, values))
        return {**found, "llm_tool_call": llm.ToolCall(tool.name, found)} if wants_call else found

    def called(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(function(**named(values)))
        except (llm.CancelToolCall, llm.PauseChain) as error:
            raise _stopped(error) from error

    async def awaited(rt: Runtime, *values: Any) -> Any:
        try:
            return _value(await function(**named(values)))
        except (llm.CancelToolCall, llm.PauseChain) as error:
            raise _stopped(error) from error

    return awaited if is_coroutine(function) else called


def _wants_call(function: Callable[..., Any]) -> bool:
    try:
        return "llm_tool_call" in signature(function).parameters
    except (TypeError, ValueError):  # of something that is built in, whose parameters nobody knows
        return False


def _stopped(error: Exception) -> ToolFailed:
    """Return the error of a tool that wants its call, or the loop of ``llm`` around it, to end here."""
    if isinstance(error, llm.PauseChain):
        return ToolFailed("the tool asks for a pause, which nobody here can make", code="llm.paused", retry="host")
    reason = one_line(str(error), LONGEST)
    return ToolFailed(
        f"the tool has cancelled the call{': ' * bool(reason)}{reason}", code="llm.cancelled", retry="never"
    )


def _value(result: Any) -> Any:
    """Return a result as ``llm`` would write it, and attachments as what they are; none of them is read or fetched."""
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
