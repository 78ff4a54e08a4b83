"""Tools of neurosurfer as ours: what they declare is our contract, and a policy decides about each call.

Source: seed-systems.md rows NSF-28, NSF-41, NSF-53 and parts 3 and 5; contract section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, overload

import attrs

from neuroscript.display import shown
from neuroscript.errors import SpecError
from neuroscript.interop.foreigntools import by_word, unknown_needs
from neuroscript.interop.neurosurfer.base_tool import BaseTool
from neuroscript.interop.neurosurfer.calling import function_of
from neuroscript.interop.neurosurfer.reading import described, is_tool, spec_of
from neuroscript.interop.neurosurfer.supplying import needed, settled
from neuroscript.interop.neurosurfer.tool_spec import ToolSpec
from neuroscript.interop.neurosurfer.toolkit import Toolkit
from neuroscript.needs import ToolPolicy
from neuroscript.tools import ToolImplementation, Toolset

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
