"""LangChain's tools as a set of ours: their schemas are our contract, and a policy decides about each call.

Source: LangChain reference, ``BaseTool``; issue "MCP and the frameworks", in; contract section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from neuroscript.display import one_line, shown
from neuroscript.errors import SpecError
from neuroscript.extras import missing
from neuroscript.interop.foreigntext import LONGEST
from neuroscript.interop.foreigntools import by_word, unknown_needs
from neuroscript.interop.langchain.calling import function_of
from neuroscript.interop.langchain.schemas import schemas_of
from neuroscript.needs import ToolPolicy
from neuroscript.schema import spec_from_schema
from neuroscript.sources import Resolver, Secret, State, Value, Variable
from neuroscript.tools import ToolImplementation, Toolset
from neuroscript.walk import type_name

try:
    from langchain_core.tools import BaseTool
except ImportError as error:
    raise missing("taking tools of LangChain needs langchain-core", "langchain", error) from None

Source = Value | Resolver | Variable | State | Secret


def from_langchain(
    tools: BaseTool | Iterable[BaseTool],
    *,
    group: str,
    policy: ToolPolicy | None = None,
    trusted: bool = False,
    injected: Mapping[str, Source] | None = None,
) -> Toolset:
    """Return LangChain's tools as a set of ours, called by the words that their names make.

    Args:
        tools: Whatever is a ``BaseTool``, one or several.
        group: The group of the tools.
        policy: What each of them needs, in place of ``langchain:call:GROUP/NAME`` with LangChain's name of it, an
            approval of each call unless *trusted*, and the effects of a tool that may do anything.
        trusted: Whether they are called without an approval of each call.
        injected: By name of an argument that LangChain hides from models where its value comes from.

    Raises:
        SpecError: With everything that is wrong with them.
    """
    group = Toolset(group).name
    sources = dict(injected or {})
    faults: list[str] = []
    if isinstance(tools, BaseTool):  # it can be iterated, and yields its fields
        tools = (tools,)
    given = list(tools)
    strange = [each for each in given if not isinstance(each, BaseTool)]
    faults.extend(f"tools: expected LangChain's tools, got {type_name(each)}" for each in strange)
    found: list[ToolImplementation] = []
    for word, each in by_word(((each.name, each) for each in given if isinstance(each, BaseTool)), faults).items():
        try:
            needs = policy or unknown_needs("langchain", group, each.name, trusted)
            found.append(_taken(each, word, group, needs, sources))
        except SpecError as error:
            faults.extend(f"{shown(each.name)}: {problem}" for problem in error.problems)
    used = {name for each in found for name in each.injected}
    faults.extend(f"injected: no tool hides an argument called {shown(name)}" for name in sources if name not in used)
    if faults:
        raise SpecError(f"from_langchain {group}", faults)
    return Toolset(group, tuple(found))


def _taken(
    tool: BaseTool, word: str, group: str, policy: ToolPolicy, sources: Mapping[str, Source]
) -> ToolImplementation:
    """Return one tool, or raise a `SpecError` with everything about it that can not be taken."""
    schema, hidden = schemas_of(tool)
    mine = {name: each for name, each in sources.items() if name in hidden}
    lacking = [name for name, is_required in hidden.items() if is_required and name not in mine]
    if lacking:
        raise SpecError(word, [f"{each}: a host has to give it; say from where with injected" for each in lacking])
    if mine:
        schema["properties"] = {**schema.get("properties", {}), **{name: {} for name in mine}}
    spec = spec_from_schema(word, schema, group=group, description=one_line(tool.description, LONGEST))
    return ToolImplementation(spec, function_of(tool, spec.args), policy).injecting(**mine)
