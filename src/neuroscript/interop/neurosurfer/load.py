"""Load neurosurfer tools: their specs become our specs, and a policy applies to each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, overload

import attrs

from neuroscript.calls.steps import close, is_iterator
from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.interop.foreign import default_policy, passed_arguments, tools_by_name
from neuroscript.interop.neurosurfer.base_tool import BaseTool
from neuroscript.interop.neurosurfer.results import convert_observation
from neuroscript.interop.neurosurfer.spec_text import Parameters, convert_spec, is_tool, spec_of
from neuroscript.interop.neurosurfer.tool_spec import ToolSpec
from neuroscript.interop.neurosurfer.toolkit import Toolkit
from neuroscript.interop.neurosurfer.variables import (
    ANSWER,
    additional_arguments,
    copy_context,
    policy_with_secrets,
    store_extras,
)
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset


def function_of(tool: Any, args: tuple[ArgSpec, ...], context: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function of a tool.

    Args:
        args: The inputs of the tool, in order.
        context: Additional arguments from the host.
    """
    parameters = Parameters.of(tool)

    def inputs(rt: Runtime, values: tuple[Any, ...]) -> dict[str, Any]:
        declared = {arg.name for arg in args}
        found = {**additional_arguments(rt, parameters, context, declared), **passed_arguments(args, values)}
        lacking = [quote_untrusted(name) for name in sorted(parameters.needed - found.keys())]
        if lacking:
            text = f"{', '.join(lacking)}: required by the tool, but not supplied by its host"
            raise ToolFailed(text, code="inject.missing", retry="host")
        return found

    def call(rt: Runtime, *values: Any) -> Any:
        return _observation(rt, tool(**inputs(rt, values)))

    async def acall(rt: Runtime, *values: Any) -> Any:
        return _observation(rt, await tool(**inputs(rt, values)))

    return acall if is_coroutine(tool) else call


def _observation(rt: Runtime, answer: Any) -> Any:
    """Return the observation of a response; store the rest for later calls."""
    if not hasattr(answer, "observation") or not hasattr(answer, "final_answer"):
        close(answer)
        text = f"result: expected a ToolResponse, got {type_name(answer)}"
        raise ToolFailed(text, code="neurosurfer.answer", retry="host")
    try:
        data = {"final_answer": bool(answer.final_answer), "stream": is_iterator(answer.observation)}
        rt.set_var(ANSWER, {**data, "extras": store_extras(rt, getattr(answer, "extras", None))})
    except BaseException:
        close(answer.observation)
        raise
    return convert_observation(answer.observation)


GROUP: Final = "neurosurfer"
"""The default group."""


@overload
def from_neurosurfer(
    tools: BaseTool,
    *,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    context: Mapping[str, Any] | None = None,
) -> ToolImplementation: ...


@overload
def from_neurosurfer(
    tools: Toolkit | Iterable[BaseTool],
    *,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    context: Mapping[str, Any] | None = None,
) -> Toolset: ...


@overload
def from_neurosurfer(
    tools: Any,
    *,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    context: Mapping[str, Any] | None = None,
) -> Any: ...


def from_neurosurfer(
    tools: Any,
    *,
    group: str = GROUP,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    context: Mapping[str, Any] | None = None,
) -> ToolImplementation | Toolset:
    """Return one neurosurfer tool as a tool, or a toolkit or several tools as a toolset.

    The tools are instances of `BaseTool` of this package, or of neurosurfer itself, which is not imported. Tool names
    are derived from their neurosurfer names. A call returns only the observation; an observation that is a generator
    is a stream.

    Args:
        tools: A tool, a `Toolkit`, or several tools.
        group: The group of the tools.
        policy: The policy of each tool. By default, a tool needs ``neurosurfer:call:GROUP/NAME`` with its neurosurfer
            name and an approval of each call unless *trusted*, and is assumed to have every effect.
        trusted: Call the tools without approval.
        context: Additional arguments for the tools, by name: an object, which is passed unchanged, or a `Variable`,
            `State`, `Secret` or `Resolver`, which is evaluated in each call and omitted if it has no value. They
            override variables of the session, but not the declared inputs of a tool.

    Raises:
        SpecError: With every problem found.
    """
    group = Toolset(group).name
    faults: list[str] = []
    context = copy_context(context, faults)
    found: list[ToolImplementation] = []
    for word, each in tools_by_name(_labelled_tools(tools, faults), faults).items():
        try:
            needs = policy_with_secrets(policy or default_policy("neurosurfer", group, each.name, trusted), context)
            spec = convert_spec(each.tool, each.spec, word, group)
            found.append(ToolImplementation(spec, function_of(each.tool, spec.args, context), needs))
        except SpecError as error:
            faults.extend(f"{quote_untrusted(each.name)}: {problem}" for problem in error.problems)
    if faults:
        raise SpecError(f"from_neurosurfer {group}", faults)
    return found[0] if is_tool(tools) else Toolset(group, tuple(found))


@attrs.frozen
class NamedTool:
    """A tool with a valid spec.

    Attributes:
        name: Its neurosurfer name.
    """

    name: str
    tool: Any
    spec: ToolSpec


def _labelled_tools(tools: Any, faults: list[str]) -> Iterator[tuple[str, NamedTool]]:
    """Yield each tool with the label that makes its name; record the ones that cannot be loaded."""
    registry = getattr(tools, "registry", None)
    if is_tool(tools):
        tools = (tools,)
    elif isinstance(registry, Mapping):
        tools = registry.values()
    several = isinstance(tools, Iterable) and not isinstance(tools, (str, bytes, Mapping))
    for each in tools if several else (tools,):
        try:
            spec = spec_of(each)
            yield spec.name, NamedTool(spec.name, each, spec)
        except SpecError as error:
            faults.append(str(error))
