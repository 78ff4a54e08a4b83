"""Imports a module in a fresh process under an audit hook, and prints its side effects and its tools as JSON.

Run as ``python -m neuroscript.testing.checks.child_process MODULE FILE NAME``; it prints one line.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, Final

import neuroscript.engine.engine  # noqa: F401 - preloaded, so that its own side effects are not attributed to the module
from neuroscript.testing.checks.audit_events import need_of_event
from neuroscript.tools.fingerprints import fingerprint

HOOK: Final = "neuroscript_toolsets"
"""The hook that provides toolsets; ``HOOK:NAME`` names one of them."""


def inspect_module(module: str, file: str, name: str) -> dict[str, Any]:
    """Return the events of importing *module*, and the fingerprints of the tools in its toolset *name*."""
    events: list[str] = []
    is_watching = [True]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if is_watching and need_of_event(event, args) and event not in events:
            events.append(event)

    sys.addaudithook(hook)
    imported = _imported(module, file)
    is_watching.clear()
    toolset = _lookup(imported, name)
    return {"events": events, "tools": {tool.name: fingerprint(tool) for tool in toolset}}


def _lookup(module: ModuleType, name: str) -> Any:
    attribute, _, wanted = name.partition(":")
    found = getattr(module, attribute)
    return next(each for each in found() if each.name == wanted) if wanted else found


def _imported(module: str, file: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        spec = spec_from_file_location(module, file)
        if spec is None or spec.loader is None:
            raise
        made = sys.modules[module] = module_from_spec(spec)
        spec.loader.exec_module(made)
        return made


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(inspect_module(*sys.argv[1:4]))}\n")
