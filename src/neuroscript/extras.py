"""What is said where an extra of the core is not installed.

Source: issue "MCP and the frameworks", extras are isolated.
"""

from __future__ import annotations


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
