"""Checks of files that tools open by path, which a worker of an isolated tool can do only if its policy says so."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module

OPENERS: Final = re.compile(r"(builtins|io|codecs|gzip|bz2|lzma)\.open|sqlite3\.connect|pathlib\.Path|pandas\.\w+")
"""Functions that open the path that is passed to them."""


def declares_raw_files(modules: Iterable[Module]) -> bool:
    """Return whether a policy in some modules has the field ``raw_files``."""
    return any(
        isinstance(node, ast.keyword) and node.arg == "raw_files"
        for module in modules
        for node in ast.walk(module.tree)
    )


def missing_raw_files(module: Module) -> Iterator[Finding]:
    """Yield a suggestion for each path of a file that a module gets from its Runtime in order to open it."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr="fs"), attr="pinned" | "resolve"):
                yield _suggestion(module, node)
            case ast.Call(func=func, args=args, keywords=keywords) if OPENERS.fullmatch(module.dotted(func)):
                inner = (each for part in (*args, *keywords) for each in ast.walk(part))
                if any(isinstance(each, ast.Attribute) and each.attr == "sandbox_dir" for each in inner):
                    yield _suggestion(module, node)


def _suggestion(module: Module, node: ast.AST) -> Finding:
    text = "opens files by path; declare raw_files=True in the ToolPolicy, so that the tool can run isolated"
    return module.finding(node, "lint.raw-files", text)
