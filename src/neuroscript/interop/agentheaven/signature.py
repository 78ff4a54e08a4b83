"""A function as AgentHeaven's documents write it: ``list`` and ``dict`` alone, and no word of the result.

Source: seed-systems.md rows AH-3 to AH-6, AH-8, AH-52; the document's sections 3 and 8.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import attrs

from neuroscript.errors import SpecError
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import Example
from neuroscript.tools.tool import ToolImplementation, tool

GROUP: Final = "agentheaven"
"""The group of a tool of which nobody says another one."""

BARE: Final[dict[Any, Any]] = {list: list[Any], dict: dict[str, Any]}
"""What is meant by a container of which nothing else is said."""

TYPED: Final = re.compile(
    r"(?:str|int|float|bool|bytes|None|Any|(?:[Ll]ist|[Dd]ict|[Tt]uple|Optional)(?:\[.*?\])?)(?: \| None)?: "
)
"""How the text of a result begins in Google's style: with its type."""


def tool_of(
    func: Callable[..., Any],
    *,
    parse_docstring: bool,
    name: str | None,
    description: str,
    group: str,
    policy: ToolPolicy,
    examples: Iterable[Any],
) -> ToolImplementation:
    """Return the tool that a function is, with what `ToolSpec.from_function` is told.

    Raises:
        SpecError: It can not be a tool, or takes ``*values``; it says what to write.
    """
    found = tool(
        readable(func, parse_docstring=parse_docstring),
        group=group,
        name=name,
        description=description or ("" if parse_docstring else inspect.getdoc(func) or ""),
        policy=policy,
        examples=tuple(each for each in examples if isinstance(each, Example)),
    )
    if found.spec.variadic:
        raise SpecError(found.name, ["*values can not be given by name, as a handle gives all; write a list"])
    return attrs.evolve(found, spec=attrs.evolve(found.spec, return_help=untyped(found.spec.return_help)))


def readable(func: Callable[..., Any], *, parse_docstring: bool = True) -> Callable[..., Any]:
    """Return a function whose annotations say what is meant; anything but a function or a method is left as it is.

    Args:
        parse_docstring: Whether its docstring is to be read; without, it has none.
    """
    if isinstance(func, MethodType) and isinstance(func.__func__, FunctionType):
        return MethodType(_readable(func.__func__, parse_docstring), func.__self__)
    return _readable(func, parse_docstring) if isinstance(func, FunctionType) else func


def _readable(func: FunctionType, parse_docstring: bool) -> FunctionType:
    try:
        hints = get_type_hints(func, include_extras=True)
    except Exception:  # whoever reads it says why
        return func
    made = FunctionType(func.__code__, func.__globals__, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__, made.__qualname__, made.__module__ = func.__kwdefaults__, func.__qualname__, func.__module__
    made.__dict__.update(func.__dict__)
    made.__annotations__ = {"return": Any, **{name: meant(each) for name, each in hints.items()}}
    made.__doc__ = func.__doc__ if parse_docstring else None
    return made


def meant(annotation: Any) -> Any:
    """Return an annotation in which no container is bare.

    >>> meant(list[dict])
    list[dict[str, typing.Any]]
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in (list, dict):
        return BARE[annotation]
    if origin in BARE and not args:  # List and Dict of typing
        return BARE[origin]
    if origin in BARE:
        return origin[tuple(map(meant, args))]
    if origin in (Union, UnionType):
        return Union[tuple(map(meant, args))]  # noqa: UP007
    return annotation


def untyped(text: str) -> str:
    """Return what a docstring says of a result without its type.

    >>> untyped("int: The sum of a and b")
    'The sum of a and b'
    """
    return TYPED.sub("", text, count=1) if TYPED.match(text) else text
