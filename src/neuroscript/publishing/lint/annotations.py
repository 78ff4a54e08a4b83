"""Evaluation of annotations in source code, without importing anything but the standard library.

See `neuroscript.spec.annotations` for the annotations that a tool can have.
"""

from __future__ import annotations

import ast
import operator
from importlib import import_module
from typing import Annotated, Any, Final, Literal, Union

import attrs

from neuroscript.publishing.lint.sources import Module

STANDARD: Final = frozenset(
    {"array", "builtins", "collections", "collections.abc", "datetime", "decimal", "enum", "fractions", "ipaddress"}
    | {"pathlib", "re", "typing", "typing_extensions", "uuid"}
)
"""Modules whose contents are the same everywhere."""

RECORDS: Final = ("attr.", "attrs.", "dataclasses.dataclass")
"""Prefixes of decorators for classes whose fields become the keys of a map."""

MAX_ALIAS_DEPTH: Final = 20
"""Maximum depth of annotations that refer to other annotations."""


class UnknownAnnotation(Exception):
    """The meaning cannot be determined without importing something."""


def resolve_annotation(node: ast.AST, module: Module, depth: int = 0) -> Any:
    """Return the type, or the typing construct, that an annotation means.

    Raises:
        Unknown: If it is defined in another distribution, or only at run time.
    """
    if depth > MAX_ALIAS_DEPTH:
        raise UnknownAnnotation
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            return resolve_annotation(_expression(text), module, depth + 1)
        case ast.Name(id=name) if isinstance(module.top.get(name), (ast.expr, ast.ClassDef)):
            return _local(module.top[name], module, depth + 1)
        case ast.Name() | ast.Attribute():
            return _standard(module.dotted(node))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _either(resolve_annotation(left, module, depth + 1), resolve_annotation(right, module, depth + 1))
        case ast.Subscript(value=value, slice=inner):
            return _parametrized(resolve_annotation(value, module, depth + 1), inner, module, depth + 1)
    raise UnknownAnnotation


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        raise UnknownAnnotation from None


def _local(bound: ast.AST, module: Module, depth: int) -> Any:
    """Return the meaning of a name defined in this module: a placeholder class for a class, or another annotation."""
    if not isinstance(bound, ast.ClassDef):
        return resolve_annotation(bound, module, depth)
    if any(module.dotted(each).startswith(RECORDS) for each in bound.decorator_list):
        return attrs.make_class(bound.name, {})
    if bound.bases or bound.keywords:
        raise UnknownAnnotation
    return type(bound.name, (), {})


def _standard(dotted: str) -> Any:
    where, _, name = dotted.rpartition(".")
    where = "typing" if where == "typing_extensions" else where
    if where not in STANDARD:
        raise UnknownAnnotation
    try:
        return getattr(import_module(where), name)
    except AttributeError:
        raise UnknownAnnotation from None


def _either(left: Any, right: Any) -> Any:
    try:
        return operator.or_(left, right)
    except TypeError:
        return Union[left, right]  # noqa: UP007


def _parametrized(generic: Any, inner: ast.expr, module: Module, depth: int) -> Any:
    nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    try:
        if generic is Literal:
            return Literal[tuple(ast.literal_eval(each) for each in nodes)]
        if generic is Annotated:
            return resolve_annotation(nodes[0], module, depth)
        values = tuple(_argument(each, module, depth) for each in nodes)
        return generic[values[0] if len(values) == 1 else values]
    except (TypeError, ValueError, KeyError, IndexError):
        raise UnknownAnnotation from None


def _argument(node: ast.expr, module: Module, depth: int) -> Any:
    """Return a type argument; those of a Callable are a list."""
    if isinstance(node, ast.List):
        return [resolve_annotation(each, module, depth) for each in node.elts]
    return resolve_annotation(node, module, depth)
