"""One call of a tool of neurosurfer: exact inputs and what its host gives in, and what it answers out.

Source: seed-systems.md rows NSF-29, NSF-31 to NSF-35, NSF-40 to NSF-43; contract sections 3 and 6.

Tools of neurosurfer as ours: what they declare is our contract, and a policy decides about each call.

Source: seed-systems.md rows NSF-28, NSF-41, NSF-53 and parts 3 and 5; contract section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, overload

import attrs

from neuroscript.calls.steps import close, is_iterator
from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.interop.foreign import by_word, given, unknown_needs
from neuroscript.interop.neurosurfer.base_tool import BaseTool
from neuroscript.interop.neurosurfer.results import observed
from neuroscript.interop.neurosurfer.spec_text import Wanted, described, is_tool, spec_of
from neuroscript.interop.neurosurfer.tool_spec import ToolSpec
from neuroscript.interop.neurosurfer.toolkit import Toolkit
from neuroscript.interop.neurosurfer.variables import ANSWER, besides, kept, needed, settled
from neuroscript.io.text import shown
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset


def function_of(tool: Any, args: tuple[ArgSpec, ...], context: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function of a tool.

    Args:
        args: Its inputs, in order.
        context: What its host gives it besides.
    """
    wanted = Wanted.of(tool)

    def inputs(rt: Runtime, values: tuple[Any, ...]) -> dict[str, Any]:
        declared = {arg.name for arg in args}
        found = {**besides(rt, wanted, context, declared), **given(args, values)}
        lacking = [shown(name) for name in sorted(wanted.needed - found.keys())]
        if lacking:
            text = f"{', '.join(lacking)}: the tool asks for it, and its host gives nothing"
            raise ToolFailed(text, code="inject.missing", retry="host")
        return found

    def call(rt: Runtime, *values: Any) -> Any:
        return _answered(rt, tool(**inputs(rt, values)))

    async def acall(rt: Runtime, *values: Any) -> Any:
        return _answered(rt, await tool(**inputs(rt, values)))

    return acall if is_coroutine(tool) else call


def _answered(rt: Runtime, answer: Any) -> Any:
    """Return the observation of an answer; the rest of it is kept for the calls that follow."""
    if not hasattr(answer, "observation") or not hasattr(answer, "final_answer"):
        close(answer)
        text = f"result: expected a ToolResponse, got {type_name(answer)}"
        raise ToolFailed(text, code="neurosurfer.answer", retry="host")
    try:
        told = {"final_answer": bool(answer.final_answer), "stream": is_iterator(answer.observation)}
        rt.set_var(ANSWER, {**told, "extras": kept(rt, getattr(answer, "extras", None))})
    except BaseException:
        close(answer.observation)
        raise
    return observed(answer.observation)


GROUP: Final = "neurosurfer"
"""The group of tools of which nobody says another one."""


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
    """Return a tool of neurosurfer as one of ours, and a toolkit or several tools as a set.

    They are `BaseTool` of this package, or of neurosurfer itself, which is not imported. Each is called by the word
    that its name makes. A call gives the observation alone; of an observation that is a generator the items.

    Args:
        tools: A tool, a `Toolkit`, or several tools.
        group: The group of the tools.
        policy: What each of them needs, in place of ``neurosurfer:call:GROUP/NAME`` with neurosurfer's name of it, an
            approval of each call unless *trusted*, and the effects of a tool that may do anything.
        trusted: Whether they are called without an approval of each call.
        context: What the tools get besides their inputs, by name: any object as it is, or a `Variable`, `State`,
            `Secret` or `Resolver`, which is asked in each call, and gives nothing where nothing is there. It goes
            before variables of the session, and never before an input that a tool declares.

    Raises:
        SpecError: With everything that is wrong with them.
    """
    group = Toolset(group).name
    faults: list[str] = []
    context = settled(context, faults)
    found: list[ToolImplementation] = []
    for word, each in by_word(_named(tools, faults), faults).items():
        try:
            needs = needed(policy or unknown_needs("neurosurfer", group, each.name, trusted), context)
            spec = described(each.tool, each.spec, word, group)
            found.append(ToolImplementation(spec, function_of(each.tool, spec.args, context), needs))
        except SpecError as error:
            faults.extend(f"{shown(each.name)}: {problem}" for problem in error.problems)
    if faults:
        raise SpecError(f"from_neurosurfer {group}", faults)
    return found[0] if is_tool(tools) else Toolset(group, tuple(found))


@attrs.frozen
class Found:
    """A tool whose spec is well formed.

    Attributes:
        name: What neurosurfer calls it.
    """

    name: str
    tool: Any
    spec: ToolSpec


def _named(tools: Any, faults: list[str]) -> Iterator[tuple[str, Found]]:
    """Yield each tool behind the text that makes its word; what can not be taken is noted."""
    registry = getattr(tools, "registry", None)
    if is_tool(tools):
        tools = (tools,)
    elif isinstance(registry, Mapping):
        tools = registry.values()
    several = isinstance(tools, Iterable) and not isinstance(tools, (str, bytes, Mapping))
    for each in tools if several else (tools,):
        try:
            spec = spec_of(each)
            yield spec.name, Found(spec.name, each, spec)
        except SpecError as error:
            faults.append(str(error))
