"""Callables as tools: the function behind a partial, method or object, and its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter
from typing import Any

BY_NAME = Parameter.KEYWORD_ONLY


def inner(func: Any) -> Any:
    """Return the function that has the name, annotations and docstring of a callable.

    Raises:
        Unreadable: It is a class or not callable.
    """
    from neuroscript.spec.annotations import UnsupportedAnnotation

    while isinstance(func, functools.partial):
        func = func.func
    if isinstance(func, type):
        raise UnsupportedAnnotation("is a class; use a function that creates an instance")
    if not callable(func):
        raise UnsupportedAnnotation(f"is of type {type(func).__name__} and cannot be called; use a function")
    if inspect.isroutine(func) or hasattr(func, "__wrapped__"):
        return func
    return type(func).__call__


def name_of(func: Any) -> str:
    """Return the name of a callable's function, or the class name of a callable object."""
    while isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__name__", type(func).__name__))


def docstring_of(func: Any) -> str:
    """Return the docstring of a callable; the class docstring if an object's ``__call__`` has none."""
    while isinstance(func, functools.partial):
        func = func.func
    below = inner(func)
    if below is func:
        return inspect.getdoc(func) or ""
    own = below.__doc__  # getdoc would return the docstring of type.__call__
    return inspect.cleandoc(own) if own else inspect.getdoc(type(func)) or ""


def annotations_below(func: Any) -> dict[str, Any]:
    """Return the evaluated annotations of a callable.

    Raises:
        Unreadable: They cannot be evaluated.
    """
    from neuroscript.spec.annotations import annotations_of

    return annotations_of(inner(func))


def parameters_of(func: Any) -> list[Parameter]:
    """Return the remaining parameters of a callable, without those that a partial has set.

    Raises:
        ValueError: The signature cannot be determined.
    """
    fixed: set[str] = set()
    parameters = list(inspect.signature(func).parameters.values())
    while isinstance(func, functools.partial):
        fixed.update(func.keywords)
        func = func.func
    return [each for each in parameters if each.name not in fixed or each.kind is each.VAR_KEYWORD]


def all_names(func: Any) -> set[str]:
    """Return the names of all parameters that a docstring may describe, including those that a partial has set."""
    return set(inspect.signature(inner(func)).parameters)


def is_coroutine(func: Any) -> bool:
    """Return whether the result of a callable must be awaited."""
    while isinstance(func, functools.partial):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)


def is_generator(func: Any) -> bool:
    """Return whether a callable yields; its result is then a stream, whatever the annotation says."""
    below = inner(func)
    return inspect.isgeneratorfunction(below) or inspect.isasyncgenfunction(below)


def in_order(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Return parameters in call order: keyword-only parameters before a ``*values`` parameter."""
    return sorted(parameters, key=lambda each: each.kind is each.VAR_POSITIONAL)


def by_position(
    func: Callable[..., Any], parameters: Sequence[Parameter], *, takes_runtime: bool
) -> Callable[..., Any]:
    """Return a function ``(rt, *values)`` that calls *func* and passes keyword-only values by name.

    Args:
        parameters: The parameters for the values, sorted by `in_order`.
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


def positional_signature(names: Sequence[str], variadic: bool = False) -> inspect.Signature:
    """Return the signature of a function with these parameters.

    Args:
        variadic: Whether the last one takes any number of values.
    """
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    if variadic:
        parameters[-1] = parameters[-1].replace(kind=Parameter.VAR_POSITIONAL)
    return inspect.Signature(parameters)


def _like(made: Callable[..., Any], func: Any) -> Callable[..., Any]:
    """Return *made* with the metadata of *func* but its own signature."""
    functools.update_wrapper(made, func, updated=())
    del made.__wrapped__  # type: ignore[attr-defined]
    made.__annotations__ = {}
    return made
