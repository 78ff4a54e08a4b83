"""Specs of neurosurfer tools, in the terms of its documentation, and their conversion to our specs.

Tools that the package ships deviate from its documentation: they use the types ``str``, ``list``, ``dict`` and
``float``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, ismethod, signature
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.neurosurfer.base_tool import BaseTool, validate_tool
from neuroscript.interop.neurosurfer.tool_spec import ToolParam, ToolReturn, ToolSpec
from neuroscript.io.text import one_line, quote_untrusted
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
"""Additional type names that the package's own tools use."""

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
class Parameters:
    """The parameters of a callable.

    Attributes:
        names: The named parameters.
        needed: The parameters without a default.
        is_open: Whether it accepts any other name too.
        closed: Names that cannot be passed by keyword: the tool itself, and positional-only parameters.
    """

    names: frozenset[str]
    needed: frozenset[str]
    is_open: bool
    closed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tool: Callable[..., Any]) -> Parameters:
        """Return the parameters of a tool; a tool without a readable signature accepts every name."""
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
        """Return whether an argument can be passed under a name."""
        return name not in self.closed and (self.is_open or name in self.names)


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty


def _own_name(tool: Callable[..., Any]) -> set[str]:
    """Return the name of the ``self`` parameter of ``__call__``, if it could also be passed by keyword."""
    method = getattr(tool, "__call__", None)  # noqa: B004
    function = method.__func__ if ismethod(method) else None
    first = next(iter(signature(function).parameters.values()), None) if function else None
    return {first.name} if first is not None and first.kind is first.POSITIONAL_OR_KEYWORD else set()


def is_tool(value: Any) -> bool:
    """Return whether an object is a tool: our `BaseTool`, or a callable instance whose spec has inputs."""
    is_theirs = callable(value) and hasattr(getattr(value, "spec", None), "inputs")
    return isinstance(value, BaseTool) or (is_theirs and not isinstance(value, type))


def spec_of(tool: Any) -> ToolSpec:
    """Return the spec of a tool in the terms of neurosurfer's documentation.

    Raises:
        SpecError: It is not a tool, or its spec is invalid. Our `BaseTool` must follow the documentation; a tool of the
            package may also use the Python names of types.
    """
    if not is_tool(tool):
        expected = "expected a neurosurfer tool, which is an instance with a spec"
        raise SpecError("tools", [f"{expected}, got {quote_untrusted(type_name(tool))}"])
    try:
        return validate_tool(tool) if isinstance(tool, BaseTool) else _adopted(tool.spec)
    except (TypeError, ValueError) as error:
        raise SpecError(type(tool).__name__, [one_line(str(error), MAX_DESCRIPTION_CHARS)]) from None
    except AttributeError:
        raise SpecError(type(tool).__name__, ["its spec lacks attributes of a neurosurfer ToolSpec"]) from None


def _adopted(spec: Any) -> ToolSpec:
    inputs = [
        ToolParam(each.name, _canonical_type(each.type), each.description, bool(each.required)) for each in spec.inputs
    ]
    returns = ToolReturn(_canonical_type(spec.returns.type), spec.returns.description)
    made = ToolSpec(spec.name, spec.description, spec.when_to_use, inputs, returns)
    made.validate()
    return made


def _canonical_type(kind: Any) -> Any:
    return ALIASES.get(kind, kind) if isinstance(kind, str) else kind


def convert_spec(tool: Any, spec: ToolSpec, word: str, group: str) -> Spec:
    """Return our spec for a tool.

    An input without a default in the function is required, even if the spec says otherwise. The type of the result is
    not checked, because an observation may be a string instead of the declared type, to say that something is missing.

    Raises:
        SpecError: With every problem found.
    """
    parameters = Parameters.of(tool)
    lost = [quote_untrusted(each.name) for each in spec.inputs if not parameters.takes(each.name)]
    if lost:
        raise SpecError(word, [f"{each}: not a parameter of its function" for each in lost])
    args = tuple(
        ArgSpec(
            each.name,
            TYPES[each.type],
            required=each.required or each.name in parameters.needed,
            description=one_line(each.description, MAX_DESCRIPTION_CHARS),
        )
        for each in spec.inputs
    )
    return Spec(
        word,
        group,
        args,
        description=one_line(spec.description, MAX_DESCRIPTION_CHARS),
        when_to_use=f"When to use: {one_line(spec.when_to_use, MAX_DESCRIPTION_CHARS)}",
        return_help=one_line(f"{spec.returns.type}: {spec.returns.description}", MAX_DESCRIPTION_CHARS),
        stream="maybe",
    )
