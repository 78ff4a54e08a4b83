"""What commands report about an installed plugin: what it provides, and which part of it is isolated."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from neuroscript.discovery.catalog import ConfinedImports
from neuroscript.discovery.installed import Distribution
from neuroscript.discovery.lazy_tools import TOOLSETS

Imports = ConfinedImports | None


def isolated_entries(each: Distribution, imports: Imports) -> tuple[str, ...]:
    """Return the names of the entry points of a distribution whose code is isolated."""
    return () if imports is None else imports.isolated(each)


def contents(report: Any, isolated: Collection[str]) -> str:
    """Return what a usable distribution provides.

    Args:
        isolated: The names of its isolated entry points.
    """
    counts = ((len(report.tools), "tool"), (len(report.hooks), "hook"))
    text = ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count) or "no tools"
    if not isolated:
        return text
    unused = any(set(entry.hooks) - {TOOLSETS} for entry in report.entries if entry.name in isolated)
    return f"{text}; isolated{', so its hooks are not used' if unused else ''}"
