"""Lazy package attributes, so that using one module does not import the others, and errors for missing extras.

The root package contains the same code inline because every program imports it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def lazy_getattr(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` function of a package.

    Args:
        package: The ``__name__`` of the package.
        homes: The public names of each module, separated by spaces, by module name.
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


def install_hint(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f'pip install "neuroscript[{extra}]"'


def missing_extra(what: str, extra: str, error: ImportError) -> ModuleNotFoundError:
    """Return the error for a feature whose extra is not installed.

    Args:
        what: What needs which package, for example ``tracing needs OpenTelemetry``.
        error: The exception that the import raised.

    >>> missing_extra("tracing needs OpenTelemetry", "otel", ImportError())
    ModuleNotFoundError('tracing needs OpenTelemetry; install it with: pip install "neuroscript[otel]"')
    """
    return ModuleNotFoundError(f"{what}; install it with: {install_hint(extra)}", name=error.name)
