"""Checks of ``pyproject.toml`` against the sources."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.discovery.installed import PLUGINS, TOOLSETS, normalize_name
from neuroscript.io.text import quote_untrusted
from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module

FILE: Final = "pyproject.toml"
TARGET: Final = re.compile(r"(?P<module>[\w.]+)\s*(?::\s*(?P<attribute>[\w.]+)\s*)?(\[.*\])?")
NAME: Final = re.compile(r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)")


@attrs.frozen(eq=False, repr=False)
class Project:
    """A ``pyproject.toml`` file.

    Attributes:
        path: Its path.
        shown: Its path as shown in findings.
        lines: Its lines.
        table: Its table ``project``.
    """

    path: Path
    shown: str
    lines: tuple[str, ...]
    table: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the distribution, normalised as in PEP 503, or ``""``."""
        name = self.table.get("name")
        return normalize_name(name) if isinstance(name, str) else ""

    def finding(self, near: str, code: str, message: str) -> Finding:
        """Return a finding at the first line that contains *near*."""
        line = next((index for index, each in enumerate(self.lines, 1) if near and near in each), 0)
        return Finding(self.shown, line, code, message)


def read(path: Path, shown: str) -> Project | Finding:
    """Return a ``pyproject.toml``, or a finding that says why it cannot be read."""
    try:
        text = path.read_text("utf-8")
        table = tomllib.loads(text).get("project")
    except (OSError, ValueError, RecursionError):
        return Finding(shown, 0, "lint.project", "it is not valid TOML; fix it first")
    if not isinstance(table, dict):
        return Finding(shown, 0, "lint.project", "it has no [project] table; add one with the name of the distribution")
    return Project(path, shown, tuple(text.splitlines()), table)


def check_project(project: Project, modules: Mapping[str, Module]) -> Iterator[Finding]:
    """Yield a finding for everything in the project file that does not match the sources.

    Args:
        modules: The modules of the distribution by name.
    """
    yield from _depends(project)
    entries = project.table.get("entry-points", {})
    entries = entries if isinstance(entries, dict) else {}
    found = 0
    for group in (TOOLSETS, PLUGINS):
        named = entries.get(group, {})
        for name, target in named.items() if isinstance(named, dict) else ():
            found += 1
            for fault in _target_faults(group, target, modules):
                yield project.finding(f"{name} =", "lint.entry-point", f"entry point {quote_untrusted(name)} {fault}")
    if not found and "entry-points" not in project.table.get("dynamic", ()):
        text = f'there is no entry point for a toolset; add [project.entry-points."{TOOLSETS}"]'
        yield project.finding("", "lint.entry-point", text)


def _depends(project: Project) -> Iterator[Finding]:
    dependencies = project.table.get("dependencies", [])
    matches = (
        [NAME.match(each) for each in dependencies if isinstance(each, str)] if isinstance(dependencies, list) else []
    )
    names = {normalize_name(match["name"]) for match in matches if match}
    if "neuroscript" not in names and "dependencies" not in project.table.get("dynamic", ()):
        text = "neuroscript is missing from dependencies; add it"
        yield project.finding("dependencies", "lint.project", text)


def _target_faults(group: str, target: object, modules: Mapping[str, Module]) -> Iterator[str]:
    match = TARGET.fullmatch(target.strip()) if isinstance(target, str) else None
    if match is None:
        yield "has an invalid value; write module:attribute"
        return
    module = modules.get(match["module"])
    if module is None:
        yield f"refers to the module {quote_untrusted(match['module'])}, which is not in the sources"
        return
    first = (match["attribute"] or "").partition(".")[0]
    if group == TOOLSETS and not first:
        yield "refers to a module instead of a Toolset; write module:attribute"
    elif first:
        yield from _attribute_faults(group, module, first, modules)


def _attribute_faults(group: str, module: Module, name: str, modules: Mapping[str, Module]) -> Iterator[str]:
    open_ended = "__getattr__" in module.top or "*" in module.names
    bound = module.top.get(name)
    if bound is None and not open_ended and f"{module.name}.{name}" not in modules:
        yield f"refers to {quote_untrusted(name)}, which {module.name} does not define"
    elif group == TOOLSETS and isinstance(bound, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Constant)):
        yield f"refers to {quote_untrusted(name)}, which is not a Toolset"


def check_py_typed(packages: Sequence[Path], shown_as: Mapping[Path, str]) -> Iterator[Finding]:
    """Yield a finding for each package without a marker file ``py.typed``."""
    for package in packages:
        if not (package / "py.typed").is_file():
            told = "the package has no file py.typed; add an empty one, so that type checkers use its annotations"
            yield Finding(shown_as[package], 0, "lint.py-typed", told)
