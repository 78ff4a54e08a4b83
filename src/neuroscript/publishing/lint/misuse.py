"""Checks for misuse of the host: hidden refusals, imports of internal modules, and tools that use an engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module, origin_of

ENGINES: Final = frozenset({"neuroscript.Engine", "neuroscript.Session"})
ALL: Final = frozenset({"builtins.BaseException", "neuroscript.NeuroScriptError"})
"""Exceptions whose handlers also catch refusals."""


def habits(module: Module) -> Iterator[Finding]:
    """Yield the findings of these checks for a module."""
    for node in ast.walk(module.tree):
        match node:
            case ast.ExceptHandler():
                yield from _swallowed(module, node)
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield from _imported(module, node, alias.name)
            case ast.ImportFrom(names=aliases) if not node.level:
                origin = origin_of(node, "")
                yield from _imported(module, node, origin)
                for alias in aliases:
                    if f"{origin}.{alias.name}" in ENGINES:
                        text = f"a tool must not use {alias.name}; call other tools with rt.call_tool"
                        yield module.finding(node, "lint.engine", text)
            case ast.Attribute() if module.dotted(node) in ENGINES:
                text = f"a tool must not use {node.attr}; call other tools with rt.call_tool"
                yield module.finding(node, "lint.engine", text)


def _imported(module: Module, node: ast.AST, origin: str) -> Iterator[Finding]:
    if origin.startswith("neuroscript."):
        text = f"{origin} is internal and may change; import from neuroscript"
        yield module.finding(node, "lint.submodule", text)


def _swallowed(module: Module, handler: ast.ExceptHandler) -> Iterator[Finding]:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"" if each is None else module.dotted(each) for each in caught}
    if any(isinstance(node, ast.Raise) for each in handler.body for node in ast.walk(each)):
        return
    if handler.type is None:
        yield module.finding(handler, "lint.swallow", "a bare except hides refusals; catch specific exceptions")
    elif names & ALL:
        yield module.finding(handler, "lint.swallow", "this handler hides refusals; catch specific exceptions")
    elif "builtins.Exception" in names and all(_does_nothing(each) for each in handler.body):
        yield module.finding(
            handler, "lint.swallow", "this handler ignores every error, including refusals; catch specific exceptions"
        )


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()):
            return True
    return False
