"""The spec of a tool of neurosurfer, ours or the package's own, as the words of its document have it.

Tools that the package ships are no strict readers of that document: they say ``str``, ``list``, ``dict`` and ``float``.

Source: seed-systems.md rows NSF-2, NSF-3, NSF-28; part 5, "Neurosurfer facade".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, ismethod, signature
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError
from neuroscript.interop.foreign import LONGEST
from neuroscript.interop.neurosurfer.base_tool import BaseTool, validated
from neuroscript.interop.neurosurfer.tool_spec import ToolParam, ToolReturn, ToolSpec
from neuroscript.io.text import one_line, shown
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.spec.tool_spec import ToolSpec as Spec

ALIASES: Final[Mapping[str, str]] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
"""What the package's own tools call types besides."""

TYPES: Final[Mapping[str, ArgType]] = {
    "string": ArgType.STRING,
    "str": ArgType.STRING,
    "integer": ArgType.INT,
    "number": ArgType.FLOAT,
    "boolean": ArgType.BOOL,
    "array": ArgType.SLICE_ANY,
    "object": ArgType.MAP,
}

NAMED: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@attrs.frozen
class Wanted:
    """The parameters of what is called.

    Attributes:
        names: Those that have a name.
        needed: Those that have no default.
        is_open: Whether it takes any other name too.
        closed: Names that can not be given: that of the tool itself, and of what is taken by position alone.
    """

    names: frozenset[str]
    needed: frozenset[str]
    is_open: bool
    closed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tool: Callable[..., Any]) -> Wanted:
        """Return the parameters of a tool; one that does not tell them may be given anything."""
        try:
            found = signature(tool).parameters.values()
        except (TypeError, ValueError):
            return cls(frozenset(), frozenset(), True)
        named = [each for each in found if each.kind in NAMED]
        names, needed = (frozenset(each.name for each in those) for those in (named, filter(_is_needed, named)))
        placed = {each.name for each in named if each.kind is each.POSITIONAL_ONLY}
        is_open = any(each.kind is each.VAR_KEYWORD for each in found)
        return cls(names, needed, is_open, frozenset(placed | _own_name(tool)))

    def takes(self, name: str) -> bool:
        """Tell whether something can be given under a name."""
        return name not in self.closed and (self.is_open or name in self.names)


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty


def _own_name(tool: Callable[..., Any]) -> set[str]:
    """Return under which name a tool is itself given to its ``__call__``, where that could be given twice."""
    method = getattr(tool, "__call__", None)  # noqa: B004
    function = method.__func__ if ismethod(method) else None
    first = next(iter(signature(function).parameters.values()), None) if function else None
    return {first.name} if first is not None and first.kind is first.POSITIONAL_OR_KEYWORD else set()


def is_tool(thing: Any) -> bool:
    """Tell whether something is a tool: an instance of ours, or of what is called, and has a spec with inputs."""
    is_theirs = callable(thing) and hasattr(getattr(thing, "spec", None), "inputs")
    return isinstance(thing, BaseTool) or (is_theirs and not isinstance(thing, type))


def spec_of(tool: Any) -> ToolSpec:
    """Return the spec of a tool in the words of the document.

    Raises:
        SpecError: It is no tool, or its spec is not well formed; one of our `BaseTool` has to keep to the document, one
            of the package may use the names that Python has for the types.
    """
    if not is_tool(tool):
        expected = "expected a tool of neurosurfer, which is an instance with a spec"
        raise SpecError("tools", [f"{expected}, got {shown(type_name(tool))}"])
    try:
        return validated(tool) if isinstance(tool, BaseTool) else _adopted(tool.spec)
    except (TypeError, ValueError) as error:
        raise SpecError(type(tool).__name__, [one_line(str(error), LONGEST)]) from None
    except AttributeError:
        raise SpecError(type(tool).__name__, ["its spec is not shaped like a ToolSpec of neurosurfer"]) from None


def _adopted(spec: Any) -> ToolSpec:
    inputs = [ToolParam(each.name, _meant(each.type), each.description, bool(each.required)) for each in spec.inputs]
    returns = ToolReturn(_meant(spec.returns.type), spec.returns.description)
    made = ToolSpec(spec.name, spec.description, spec.when_to_use, inputs, returns)
    made.validate()
    return made


def _meant(kind: Any) -> Any:
    return ALIASES.get(kind, kind) if isinstance(kind, str) else kind


def described(tool: Any, spec: ToolSpec, word: str, group: str) -> Spec:
    """Return what a tool promises as a spec of ours.

    An input that its function has no default for is required, whatever the spec says. Of the result nothing is held to
    a type: an observation may be a text where an object was promised, for a tool that lacks something says so.

    Raises:
        SpecError: With everything about it that can not be taken.
    """
    wanted = Wanted.of(tool)
    lost = [shown(each.name) for each in spec.inputs if not wanted.takes(each.name)]
    if lost:
        raise SpecError(word, [f"{each}: its function takes no argument of that name" for each in lost])
    args = tuple(
        ArgSpec(
            each.name,
            TYPES[each.type],
            required=each.required or each.name in wanted.needed,
            description=one_line(each.description, LONGEST),
        )
        for each in spec.inputs
    )
    return Spec(
        word,
        group,
        args,
        description=one_line(spec.description, LONGEST),
        when_to_use=f"When to use: {one_line(spec.when_to_use, LONGEST)}",
        return_help=one_line(f"{spec.returns.type}: {spec.returns.description}", LONGEST),
        stream="maybe",
    )
