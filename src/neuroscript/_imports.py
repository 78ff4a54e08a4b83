"""Packages whose names are loaded when they are first asked for, so that one of them costs nothing of the others.

The root has the same written out, for it is what every program loads first.

What is said where an extra of the core is not installed.

Source: issue "MCP and the frameworks", extras are isolated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: Its ``__name__``.
        homes: The names that each of its rooms has, separated by blanks, by the name of the room.
    """
    rooms = {name: room for room, names in homes.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in rooms:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        thing = getattr(import_module(f"{package}.{rooms[name]}"), name)
        setattr(sys.modules[package], name, thing)
        return thing

    return found


def mending(extra: str) -> str:
    """Return the line that installs an extra of the core."""
    return f'pip install "neuroscript[{extra}]"'


def missing(what: str, extra: str, error: ImportError) -> ModuleNotFoundError:
    """Return the error of who needs an extra that is not there.

    Args:
        what: Who needs what, for example ``tracing needs OpenTelemetry``.
        error: What the import of it raised.

    >>> missing("tracing needs OpenTelemetry", "otel", ImportError())
    ModuleNotFoundError('tracing needs OpenTelemetry; install it with: pip install "neuroscript[otel]"')
    """
    return ModuleNotFoundError(f"{what}; install it with: {mending(extra)}", name=error.name)
