"""All findings of the static checks for a file, a package, or a distribution with its ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from neuroscript.discovery.catalog import owner_of
from neuroscript.publishing.lint import project
from neuroscript.publishing.lint.contract import arguments, check_function_tool, check_groups, check_spec_tool, groups
from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.labels import contradictions, missing_labels
from neuroscript.publishing.lint.misuse import habits
from neuroscript.publishing.lint.raw_files import declares_raw_files, missing_raw_files
from neuroscript.publishing.lint.side_effects import at_import, needs, outside
from neuroscript.publishing.lint.sources import Module, files_of, parse_module
from neuroscript.publishing.lint.tools import declares, find_tools


@attrs.frozen
class LintResult:
    """The result of checking some sources.

    Attributes:
        files: The number of Python files read.
        tools: The number of tools declared in them.
        findings: The findings, in the order of files and lines.
        suggestions: What could be declared in addition, in the same order.
    """

    files: int
    tools: int
    findings: tuple[Finding, ...]
    suggestions: tuple[Finding, ...] = ()


def lint(path: Path) -> LintResult:
    """Check the sources of a toolset without importing them.

    Args:
        path: A Python file, the directory of a package, or the directory of a distribution with its
            ``pyproject.toml``.

    Raises:
        FileNotFoundError: If the path does not exist, or contains no Python file.
    """
    files = _files(path)
    if not files:
        raise FileNotFoundError
    read = [parse_module(file, str(file), name) for file, name in files.items()]
    modules = {each.name: each for each in read if isinstance(each, Module)}
    found = [each for each in read if isinstance(each, Finding)]
    found += _of_distribution(path, modules)
    chosen = _tool_modules(modules, alone=path.is_file())
    owner = _distribution(path)
    stated = needs(modules.values())
    opens_raw_files = declares_raw_files(modules.values())
    suggestions: list[Finding] = []
    count = 0
    for module in chosen:
        try:
            found += [each for each in _of_module(module, stated, owner) if not module.ignores(each)]
            further = () if opens_raw_files else missing_raw_files(module)
            suggestions += [each for each in (*missing_labels(module), *further) if not module.ignores(each)]
            count += sum(len(tools) for tools in find_tools(module))
        except RecursionError:
            found.append(
                module.finding(None, "lint.syntax", "the file is nested too deeply to be parsed; reduce the nesting")
            )
    return LintResult(len(files), count, tuple(sorted(set(found))), tuple(sorted(set(suggestions))))


def _files(path: Path) -> dict[Path, str]:
    """Return the Python files, and the module name of each."""
    if path.is_file():
        return {path: path.stem}
    root = _root(path)
    return {file: _module_name(file, root) for file in files_of(root if root.name == "src" else path)}


def _root(path: Path) -> Path:
    """Return the directory that the modules of a directory are imported from."""
    if (path / "__init__.py").is_file():
        return path.parent
    return path / "src" if (path / "src").is_dir() else path


def _module_name(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _of_distribution(path: Path, modules: Mapping[str, Module]) -> Iterator[Finding]:
    if not path.is_dir() or not (path / project.FILE).is_file():
        return
    read = project.read(path / project.FILE, str(path / project.FILE))
    if isinstance(read, Finding):
        yield read
        return
    yield from project.check_project(read, modules)
    packages = [each.path.parent for name, each in modules.items() if "." not in name and each.path.stem == "__init__"]
    yield from project.check_py_typed(packages, {each: str(each) for each in packages})


def _distribution(path: Path) -> str:
    """Return the name of the distribution that a path belongs to, or ``""``."""
    for folder in [path, *path.absolute().parents][:5]:
        if (folder / project.FILE).is_file():
            read = project.read(folder / project.FILE, "")
            return "" if isinstance(read, Finding) else read.name
    return ""


def _tool_modules(modules: Mapping[str, Module], *, alone: bool) -> list[Module]:
    """Return the modules that declare tools, and the modules of the same sources that they import."""
    waiting = [name for name, module in modules.items() if alone or declares(module)]
    found: dict[str, Module] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = modules[name]
            waiting += _imports(modules[name], modules)
    return [modules[name] for name in sorted(found)]


def _imports(module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    for origin in module.names.values():
        parts = origin.split(".")
        names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        yield from [name for name in names if name in modules][:1]


def _of_module(module: Module, stated: frozenset[str], owner: str) -> Iterator[Finding]:
    functions, specs = find_tools(module)
    for function in functions:
        yield from check_function_tool(module, function)
    for spec in specs:
        yield from check_spec_tool(module, spec)
    yield from arguments(module)
    yield from check_groups(module)
    yield from _strange_groups(module, owner)
    yield from outside(module, stated)
    yield from at_import(module)
    yield from habits(module)
    yield from contradictions(module)


def _strange_groups(module: Module, distribution: str) -> Iterator[Finding]:
    for node, group in groups(module):
        owner = owner_of(group)
        if owner not in (None, distribution):
            text = f"the group {group} belongs to {owner}; choose another name, such as that of your organization"
            yield module.finding(node, "lint.group", text)
