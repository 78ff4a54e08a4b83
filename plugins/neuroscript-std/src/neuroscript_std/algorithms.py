"""Names of algorithms that a tool supports."""

from __future__ import annotations

from neuroscript import ToolFailed


def require_algorithm(name: str, known: tuple[str, ...]) -> str:
    """Return *name* if it is one of *known*, or raise `ToolFailed` with the code crypto.bad_algorithm."""
    if name in known:
        return name
    text = f"algorithm: expected one of {', '.join(known)}, got another string"
    raise ToolFailed(text, code="crypto.bad_algorithm", retry="model")
