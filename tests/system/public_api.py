"""The public functions, constructors and methods, and the values that their annotations accept."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import neuroscript

MODULES = (
    "neuroscript",
    "neuroscript.llm",
    "neuroscript.llm.wire.detect",
    "neuroscript.testing",
    "neuroscript.audit",
    "neuroscript.sandbox",
)
"""The modules whose public names are listed."""

POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


@cache
def callables() -> dict[str, Callable[..., Any]]:
    """Return each public function, constructor and method with parameters, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for thing in dict.fromkeys(public_things()):
        if inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
            found.update(_of_class(thing))
        elif inspect.isfunction(thing):
            found[_name(thing)] = thing
    return {name: each for name, each in found.items() if parameters(each)}


def public_things() -> Iterator[Any]:
    """Yield the callable objects behind the public names of all modules."""
    for name in MODULES:
        module = import_module(name)
        for each in module.__all__:
            thing = getattr(module, each)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield thing


def _of_class(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    own = cls.__dict__.get("__init__", cls.__dict__.get("__new__"))
    if own is not None:
        yield _name(cls), getattr(own, "__func__", own)
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            yield f"{_name(cls)}.{name}", function


def _name(thing: Any) -> str:
    home = thing.__module__.split(".")[1]
    return f"{home}.{thing.__name__}" if thing.__name__ not in neuroscript.__all__ else str(thing.__name__)


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function except ``self`` and ``cls``."""
    return [
        each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls", "_cls")
    ]


def called(function: Callable[..., Any], call: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a bound method, a class or a function with values for the parameters of *function*."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    is_gapless = True
    for each in parameters(function):
        if each.name not in values:
            is_gapless = is_gapless and each.kind is each.VAR_POSITIONAL
        elif each.kind is each.VAR_KEYWORD:
            named.update(values[each.name])
        elif each.kind is each.VAR_POSITIONAL:
            positional += values[each.name]
        elif each.kind in POSITIONAL and is_gapless:
            positional.append(values[each.name])
        else:
            named[each.name] = values[each.name]
    return call(*positional, **named)


# Annotations


def admitted(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the type that a parameter's annotation denotes."""
    text = parameter.annotation
    if not isinstance(text, str):
        text = getattr(text, "__forward_arg__", text)
    if not isinstance(text, str):
        return text
    names = namespace(_module(function))
    return eval(text, names)


def _module(function: Callable[..., Any]) -> str:
    """Return the module in which a function's annotations are evaluated, also for attrs and NamedTuple."""
    home = getattr(function, "__module__", None) or function.__globals__["__name__"]
    return str(home).removeprefix("namedtuple_")


@cache
def namespace(module: str) -> dict[str, Any]:
    """Return the names of a module, including its imports for type checkers."""
    found = import_module(module)
    names = {**vars(import_module("typing")), **vars(import_module("builtins")), **vars(found)}
    for node in ast.walk(ast.parse(Path(str(found.__file__)).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("neuroscript"):
            home = import_module(node.module)
            names.update({each.asname or each.name: getattr(home, each.name, None) for each in node.names})
    return names


def fits(kind: Any, value: object) -> bool:
    """Return whether an annotation accepts a value."""
    origin, items = get_origin(kind), get_args(kind)
    if kind in (Any, object) or isinstance(kind, TypeVar):
        return True
    if kind is None:
        return value is None
    if origin in (Union, UnionType):
        return any(fits(each, value) for each in items)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return isinstance(value, str)
    if origin is Literal:
        return any(value is each or (type(value) is str and value == each) for each in items)
    if getattr(kind, "__name__", "") == "Callable" or (origin or kind) is Callable:
        return callable(value)
    if kind is float:
        return type(value) in (int, float)
    if kind is int:
        return type(value) is int
    if getattr(kind, "_is_protocol", False):
        return False
    if isinstance(value, (str, bytes)) and origin is not None:
        return False
    return _contains(origin or kind, items, value)


def _contains(kind: Any, items: tuple[Any, ...], value: Any) -> bool:
    if kind in (tuple, list, set, frozenset):
        kind = (list, tuple, set, frozenset)
    if not isinstance(value, kind):
        return False
    items = tuple(each for each in items if each is not ...)
    if isinstance(value, Mapping):
        return all(fits(kind, each) for pair in value.items() for kind, each in zip(items, pair, strict=False))
    if isinstance(value, (list, tuple)) and items:
        return all(fits(items[0], each) for each in value)
    return True
