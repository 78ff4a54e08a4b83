"""Parsed sources of a distribution, a package or a file, and the resolution of names in them."""

from __future__ import annotations

import ast
import builtins
import os
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Final

import attrs

from neuroscript.io.text_files import open_at_once
from neuroscript.publishing.lint.finding import Finding

BUILTINS: Final = frozenset(dir(builtins))

IGNORED: Final = re.compile(r"#\s*neuroscript:\s*ignore\[([^\]]*)\]")
"""A comment at the end of a line that lists findings to ignore."""

LEFT_OUT: Final = frozenset({"__pycache__", "build", "dist", "docs", "node_modules", "site-packages", "tests", "venv"})
"""Directories without sources of a toolset; hidden directories are skipped too."""


@attrs.frozen(eq=False, repr=False)
class Module:
    """A Python file.

    Attributes:
        path: Its path.
        shown: Its path as shown in findings.
        name: Its module name; for a single file, its stem.
        tree: Its syntax tree.
        lines: Its lines.
        names: Imported local names and what they refer to, as in ``{"p": "os.path"}``.
        top: The nodes that bind the names at its top level.
        bound: All names bound anywhere in it.
    """

    path: Path
    shown: str
    name: str
    tree: ast.Module
    lines: tuple[str, ...]
    names: Mapping[str, str]
    top: Mapping[str, ast.AST]
    bound: frozenset[str]

    def dotted(self, node: ast.AST | None) -> str:
        """Return the full name that a dotted expression refers to, such as ``os.environ.get``, or ``""``.

        Calls are marked with parentheses: ``pathlib.Path().read_text``.
        """
        match node:
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Name(id=name) if name in BUILTINS and name not in self.bound:
                return f"builtins.{name}"
            case ast.Attribute(value=value, attr=attr):
                before = self.dotted(value)
                return f"{before}.{attr}" if before else ""
            case ast.Call(func=func):
                before = self.dotted(func)
                return f"{before}()" if before else ""
        return ""

    def finding(self, node: ast.AST | None, code: str, message: str) -> Finding:
        """Return a finding at the line of *node*, or for the file as a whole."""
        return Finding(self.shown, getattr(node, "lineno", 0), code, message)

    def ignores(self, finding: Finding) -> bool:
        """Return whether a comment on the line of a finding says to ignore it."""
        if not 0 < finding.line <= len(self.lines):
            return False
        match = IGNORED.search(self.lines[finding.line - 1])
        codes = {code.strip() for code in match[1].split(",")} if match else set()
        return finding.code in codes


def files_of(path: Path) -> Iterator[Path]:
    """Yield the Python files below a directory, sorted by path."""
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))


def _text(path: Path) -> str:
    with open(path, "rb", opener=open_at_once) as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
        file.seek(0)
        with TextIOWrapper(file, encoding) as text:
            return text.read()


def parse_module(path: Path, shown: str, name: str) -> Module | Finding:
    """Parse a file, or return a finding that says why it cannot be parsed."""
    try:
        text = _text(path)
        tree = ast.parse(text)
    except SyntaxError as error:
        return Finding(shown, error.lineno or 0, "lint.syntax", "the file cannot be parsed as Python; fix it first")
    except (OSError, ValueError, RecursionError, MemoryError):
        return Finding(shown, 0, "lint.syntax", "the file cannot be read as Python source; fix it first")
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    nodes = list(ast.walk(tree))
    return Module(
        path,
        shown,
        name,
        tree,
        tuple(text.splitlines()),
        dict(_imported(nodes, package)),
        dict(_bound(top_level(tree.body))),
        frozenset(name for name, _ in _bound(nodes)) | {each.arg for each in nodes if isinstance(each, ast.arg)},
    )


def _imported(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[str, str]]:
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    first = alias.name.partition(".")[0]
                    yield (alias.asname, alias.name) if alias.asname else (first, first)
            case ast.ImportFrom(names=aliases):
                origin = origin_of(node, package)
                yield from ((alias.asname or alias.name, f"{origin}.{alias.name}") for alias in aliases)


def origin_of(node: ast.ImportFrom, package: str) -> str:
    """Return the name of the module that is imported from; relative names are resolved against *package*."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, including nested blocks but not bodies of functions."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from top_level(getattr(node, name, []))
        for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            yield from top_level(part.body)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((alias.asname or alias.name.partition(".")[0], node) for alias in aliases)
            case ast.Assign(targets=targets, value=value):
                yield from ((each.id, value) for target in targets for each in _names(target))
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                yield name, value or node
            case ast.For(target=target) | ast.AsyncFor(target=target):
                yield from ((each.id, node) for each in _names(target))


def _names(target: ast.AST) -> Iterator[ast.Name]:
    return (each for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
