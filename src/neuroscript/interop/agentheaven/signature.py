"""Functions in the style of AgentHeaven's documentation: bare ``list`` and ``dict``, and no result annotation."""

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
"""The default group of a tool."""

BARE: Final[dict[Any, Any]] = {list: list[Any], dict: dict[str, Any]}
"""The full types of bare containers."""

TYPED: Final = re.compile(
    r"(?:str|int|float|bool|bytes|None|Any|(?:[Ll]ist|[Dd]ict|[Tt]uple|Optional)(?:\[.*?\])?)(?: \| None)?: "
)
"""A type at the beginning of the result description in Google style."""


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
    """Return the tool for a function, with the options of `ToolSpec.from_function`.

    Raises:
        SpecError: It cannot be a tool, or has a parameter ``*values``; the message says what to change.
    """
    found = tool(
        complete_annotations(func, parse_docstring=parse_docstring),
        group=group,
        name=name,
        description=description or ("" if parse_docstring else inspect.getdoc(func) or ""),
        policy=policy,
        examples=tuple(each for each in examples if isinstance(each, Example)),
    )
    if found.spec.variadic:
        raise SpecError(found.name, ["*values cannot be passed by name, as handles do; use a list parameter"])
    return attrs.evolve(found, spec=attrs.evolve(found.spec, return_help=without_type(found.spec.return_help)))


def complete_annotations(func: Callable[..., Any], *, parse_docstring: bool = True) -> Callable[..., Any]:
    """Return a copy of a function or method with complete annotations; return other callables unchanged.

    Args:
        parse_docstring: Keep the docstring, so that it is parsed; otherwise remove it.
    """
    if isinstance(func, MethodType) and isinstance(func.__func__, FunctionType):
        return MethodType(_readable(func.__func__, parse_docstring), func.__self__)
    return _readable(func, parse_docstring) if isinstance(func, FunctionType) else func


def _readable(func: FunctionType, parse_docstring: bool) -> FunctionType:
    try:
        hints = get_type_hints(func, include_extras=True)
    except Exception:  # the code that reads the annotations reports the reason
        return func
    made = FunctionType(func.__code__, func.__globals__, func.__name__, func.__defaults__, func.__closure__)
    made.__kwdefaults__, made.__qualname__, made.__module__ = func.__kwdefaults__, func.__qualname__, func.__module__
    made.__dict__.update(func.__dict__)
    made.__annotations__ = {"return": Any, **{name: full_annotation(each) for name, each in hints.items()}}
    made.__doc__ = func.__doc__ if parse_docstring else None
    return made


def full_annotation(annotation: Any) -> Any:
    """Return an annotation without bare containers.

    >>> full_annotation(list[dict])
    list[dict[str, typing.Any]]
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in (list, dict):
        return BARE[annotation]
    if origin in BARE and not args:  # List and Dict of typing
        return BARE[origin]
    if origin in BARE:
        return origin[tuple(map(full_annotation, args))]
    if origin in (Union, UnionType):
        return Union[tuple(map(full_annotation, args))]  # noqa: UP007
    return annotation


def without_type(text: str) -> str:
    """Return the result description of a docstring without its type.

    >>> without_type("int: The sum of a and b")
    'The sum of a and b'
    """
    return TYPED.sub("", text, count=1) if TYPED.match(text) else text
