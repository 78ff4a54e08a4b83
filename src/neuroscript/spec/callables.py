"""What is called when a tool is: the function below a partial, a method or an object, and how it takes its values.

Source: issue "Authoring from Python": methods, callables, partials, keyword-only parameters.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter
from typing import Any

BY_NAME = Parameter.KEYWORD_ONLY


def inner(func: Any) -> Any:
    """Return the function that has the name, the annotations and the docstring of a callable.

    Raises:
        Unreadable: It is a class, or can not be called.
    """
    from neuroscript.spec.annotations import Unreadable

    while isinstance(func, functools.partial):
        func = func.func
    if isinstance(func, type):
        raise Unreadable("is a class; write a function that makes it")
    if not callable(func):
        raise Unreadable(f"can not be called, for it is of type {type(func).__name__}; write a function")
    if inspect.isroutine(func) or hasattr(func, "__wrapped__"):
        return func
    return type(func).__call__


def name_of(func: Any) -> str:
    """Return the name of a callable: that of its function, or of the class of an object."""
    while isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__name__", type(func).__name__))


def docstring_of(func: Any) -> str:
    """Return the docstring of a callable; an object whose ``__call__`` has none has that of its class."""
    while isinstance(func, functools.partial):
        func = func.func
    below = inner(func)
    if below is func:
        return inspect.getdoc(func) or ""
    own = below.__doc__  # getdoc would find that of all classes, which says how classes are called
    return inspect.cleandoc(own) if own else inspect.getdoc(type(func)) or ""


def annotations_below(func: Any) -> dict[str, Any]:
    """Return the evaluated annotations of a callable, or raise `Unreadable`."""
    from neuroscript.spec.annotations import annotations_of

    return annotations_of(inner(func))


def parameters_of(func: Any) -> list[Parameter]:
    """Return what is left to be given to a callable: what a partial has fixed, by place or by name, is not.

    Raises:
        ValueError: They can not be read.
    """
    fixed: set[str] = set()
    parameters = list(inspect.signature(func).parameters.values())
    while isinstance(func, functools.partial):
        fixed.update(func.keywords)
        func = func.func
    return [each for each in parameters if each.name not in fixed or each.kind is each.VAR_KEYWORD]


def all_names(func: Any) -> set[str]:
    """Return the names of all parameters that a docstring may describe, given or fixed."""
    return set(inspect.signature(inner(func)).parameters)


def is_coroutine(func: Any) -> bool:
    """Tell whether what a callable returns is to be awaited."""
    while isinstance(func, functools.partial):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)


def is_generator(func: Any) -> bool:
    """Tell whether a callable yields, so that what it returns is a stream whatever its annotation says."""
    below = inner(func)
    return inspect.isgeneratorfunction(below) or inspect.isasyncgenfunction(below)


def in_order(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters in the order in which a call gives them: those by name before the rest of a ``*values``."""
    return sorted(parameters, key=lambda each: each.kind is each.VAR_POSITIONAL)


def by_position(
    func: Callable[..., Any], parameters: Sequence[Parameter], *, takes_runtime: bool
) -> Callable[..., Any]:
    """Return what is called as ``(rt, *values)`` and gives *func* its keyword-only values by name.

    Args:
        parameters: Those of the values, `in_order`.
    """
    names = [each.name for each in parameters if each.kind is BY_NAME]
    start = next(index for index, each in enumerate(parameters) if each.kind is BY_NAME)
    end = start + len(names)

    def given(rt: Any, values: tuple[Any, ...]) -> Any:
        first = (rt, *values[:start]) if takes_runtime else values[:start]
        return func(*first, *values[end:], **dict(zip(names, values[start:end], strict=True)))

    def called(rt: Any, *values: Any) -> Any:
        return given(rt, values)

    async def awaited(rt: Any, *values: Any) -> Any:
        return await given(rt, values)

    return _like(awaited if is_coroutine(func) else called, inner(func))


def _like(made: Callable[..., Any], func: Any) -> Callable[..., Any]:
    """Return *made* under the name of *func*; its parameters stay its own."""
    functools.update_wrapper(made, func, updated=())
    del made.__wrapped__  # type: ignore[attr-defined]
    made.__annotations__ = {}
    return made
