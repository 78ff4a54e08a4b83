"""The type of an answer as written on the command line: an ArgType, an annotation, or an importable class."""

from __future__ import annotations

import argparse
import ast
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path, PurePath
from types import EllipsisType
from typing import Any, Final, Literal, Optional, Union
from uuid import UUID

from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.llm.structured_output import answer_spec

EXPECTED: Final = "expected a type, such as int, []string, list[int], Literal['a', 'b'] or module:Class"

MAX_TYPE_CHARS: Final = 1000
"""Maximum length of a type."""

NAMES: Final[Mapping[str, Any]] = {
    **{each.__name__: each for each in (str, int, float, bool, bytes, list, dict, tuple, set, frozenset, deque)},
    **{each.__name__: each for each in (date, datetime, time, timedelta, Decimal, UUID, Path, PurePath)},
    **{each.__name__: each for each in (Iterable, Mapping, Sequence)},
    "Any": Any,
    "Literal": Literal,
    "Optional": Optional,
    "Union": Union,
}

REFERENCE: Final = re.compile(r"""'[^']*'|"[^"]*"|([^\W\d][\w.]*):([^\W\d][\w.]*)""")
"""A string, or a class with its module."""


def answer_type(text: str) -> Any:
    """Return the type that *text* describes. Nothing is evaluated; only the module of a ``module:Class`` is imported.

    Raises:
        argparse.ArgumentTypeError: If it describes no supported type, or a class cannot be imported.
    """
    if text in [each.value for each in ArgType]:
        return text
    if len(text) > MAX_TYPE_CHARS:
        raise argparse.ArgumentTypeError(EXPECTED)
    references: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0]
        name = f"reference_{len(references)}"
        references[name] = found[0]
        return name

    try:
        tree = ast.parse(REFERENCE.sub(named, text), mode="eval").body
        annotation = _annotation(tree, references)
        answer_spec(annotation)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise argparse.ArgumentTypeError(EXPECTED) from None
    except SpecError as error:
        raise argparse.ArgumentTypeError("; ".join(error.problems)) from None
    return annotation


def _annotation(node: ast.expr, references: Mapping[str, str]) -> Any:
    """Return the annotation of a node.

    Raises:
        ValueError: If it is not one.
    """
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Name(id=name) if name in references:
            return _imported(references[name])
        case ast.Name(id=name) if name in NAMES:
            return NAMES[name]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return Union[_annotation(left, references), _annotation(right, references)]  # noqa: UP007
        case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
            return Literal[tuple(map(_literal, _items(values)))]
        case ast.Subscript(value=value, slice=items):
            parts = tuple(_argument(each, references) for each in _items(items))
            return _annotation(value, references)[parts if len(parts) > 1 else parts[0]]
    raise ValueError


def _items(node: ast.expr) -> list[ast.expr]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    if not items:
        raise ValueError
    return items


def _argument(node: ast.expr, references: Mapping[str, str]) -> Any:
    """Return a type argument, which may be the ``...`` of a tuple."""
    if isinstance(node, ast.Constant) and isinstance(node.value, EllipsisType):
        return ...
    return _annotation(node, references)


def _literal(node: ast.expr) -> str | int | None:
    match node:
        case ast.Constant(value=str() | int() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if type(value) is int:
            return -value
    raise ValueError


def _imported(reference: str) -> Any:
    """Return the class of a ``module:Class``. What the module prints does not go to the output of the command."""
    import sys

    module, _, path = reference.partition(":")
    try:
        with redirect_stdout(sys.stderr):
            found: Any = import_module(module)
    except (Exception, SystemExit) as error:
        message = f"cannot import {quote_untrusted(module)} ({type(error).__name__})"
        raise argparse.ArgumentTypeError(message) from None
    for name in path.split("."):
        if not hasattr(found, name):
            raise argparse.ArgumentTypeError(f"{quote_untrusted(reference)} does not exist")
        found = getattr(found, name)
    return found
