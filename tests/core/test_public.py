"""The public names: all there, all documented, and lazily loaded."""

from __future__ import annotations

import inspect
import subprocess
import sys
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
    """Under that name, so that nobody needs to know a submodule."""
    assert name in neuroscript.__all__
    assert getattr(neuroscript, name) is not None
    assert name in dir(neuroscript)


def test_the_list_of_public_names_is_true() -> None:
    """What ``import *`` brings is what there is."""
    assert set(neuroscript.__all__) == set(neuroscript._HOME)
    with pytest.raises(AttributeError):
        neuroscript.nothing  # noqa: B018


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
