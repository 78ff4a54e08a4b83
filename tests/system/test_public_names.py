"""The public names: all there, all documented, and lazily loaded."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuroscript

CONTRACT = (
    "ArgSpec ArgType Capability Engine Example ExecutionPolicy Grant Handle RUNTIME_API Repair Runtime SizeLimits ToolCall ToolImplementation ToolPolicy "
    "ToolResult ToolSpec Toolset UNSET bind bind_named coerce tool NeuroScriptError SpecError RegistryError PluginError "
    "CallError ToolNotFound ArgumentError CoercionError PolicyError LimitError CallTimeout ToolFailed ReturnError Problem"
)


@pytest.mark.parametrize("name", CONTRACT.split())
def test_a_name_of_the_contract_is_at_the_root(name: str) -> None:
    """Under that name, so users do not import from submodules."""
    assert name in neuroscript.__all__
    assert getattr(neuroscript, name) is not None
    assert name in dir(neuroscript)


def test_unknown_name_is_an_attribute_error() -> None:
    """The root loads names lazily, and has no others."""
    with pytest.raises(AttributeError):
        neuroscript.nothing  # noqa: B018


LAZY_PACKAGES = sorted(
    path
    for path in Path(neuroscript.__file__).parent.rglob("__init__.py")
    if "if TYPE_CHECKING:" in path.read_text() and "__all__" in path.read_text()
)


def lists_of_names(source: str) -> tuple[dict[str, set[str]], dict[str, set[str]], list[str]]:
    """Return the public names of a lazy package: of its imports and of its map, by module, and its ``__all__``."""
    imported: dict[str, set[str]] = {}
    loaded: dict[str, set[str]] = {}
    listed: list[str] = []
    for node in ast.parse(source).body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
                for each in body:
                    assert isinstance(each, ast.ImportFrom) and each.module is not None
                    imported[each.module] = {alias.name for alias in each.names}
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                listed = ast.literal_eval(value)
            case ast.Assign(value=ast.Dict() as value) | ast.Assign(value=ast.Call(args=[_, ast.Dict() as value])):
                loaded = {module: set(names.split()) for module, names in ast.literal_eval(value).items()}
    return imported, loaded, listed


@pytest.mark.parametrize("path", LAZY_PACKAGES, ids=lambda path: path.parent.name)
def test_lazy_package_lists_the_same_names_three_times(path: Path) -> None:
    """For type checkers, for ``import *`` and for loading; a name that one of them lacks would be found too late."""
    imported, loaded, listed = lists_of_names(path.read_text())
    package = ".".join(path.parent.relative_to(Path(neuroscript.__file__).parent.parent).parts)

    assert imported == {f"{package}.{module}": names for module, names in loaded.items()}
    assert listed == sorted(set().union(*loaded.values()), key=in_order_of_ruff)


def in_order_of_ruff(name: str) -> tuple[int, str]:
    """Return the key by which ruff sorts ``__all__``: constants, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def public_things() -> list[tuple[str, Any]]:
    """Return the public classes and functions, and the public members of the classes."""
    things: list[tuple[str, Any]] = []
    for name in neuroscript.__all__:
        thing = getattr(neuroscript, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        things.append((name, thing))
        if inspect.isclass(thing):
            members = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
            things += [
                (f"{name}.{key}", value)
                for key, value in members.items()
                if inspect.isfunction(value) or isinstance(value, property)
            ]
    return things


@pytest.mark.parametrize(("name", "thing"), public_things(), ids=[name for name, _ in public_things()])
def test_everything_public_has_a_docstring(name: str, thing: Any) -> None:
    """A sentence at least."""
    assert (inspect.getdoc(thing) or "").strip().endswith((".", ")", "`", "``", ":", "]", "5.0", "}", "'"))


def test_importing_the_root_loads_no_submodule() -> None:
    """Each is loaded when one of its names is first asked for."""
    code = "import sys, neuroscript; print([name for name in sys.modules if name.startswith('neuroscript.')])"

    assert run(code) == "[]\n"


def test_importing_has_no_effect() -> None:
    """No thread, no output, no environment read, no file written: two processes that import are alike."""
    code = (
        "import os, sys, threading; before = dict(os.environ)\n"
        "from neuroscript import *\n"
        "assert threading.active_count() == 1 and dict(os.environ) == before and 'logging' not in sys.modules"
    )

    assert run(code) == ""


def run(code: str) -> str:
    """Run code in a fresh process and return what it prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
