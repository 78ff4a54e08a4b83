"""Hints for an unknown tool name: a group of tools, or a distribution to install."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from neuroscript._imports import install_hint
from neuroscript.discovery.bundles import EXTRAS
from neuroscript.discovery.catalog import owner_of
from neuroscript.discovery.installed import installed_distributions
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted
from neuroscript.names import from_wire

STANDARD: Final = "std"
"""The extra with the first tools, which need no grants."""


def tool_hints(name: str, known: Collection[str], words: Sequence[str] = (), *, is_own: bool) -> list[str]:
    """Return at most one hint for an unknown tool name.

    Args:
        name: The name, in any spelling.
        known: The canonical names of all tools.
        words: The arguments after the name.
        is_own: Whether this is the ``neuroscript`` command, not an application's own.
    """
    name = from_wire(name)
    if is_own and _is_absent(name, known):
        return [_provider_hint(name)]
    if is_own and not known:
        return [_no_tools()]
    if any(each.startswith(f"{name}.") for each in known):
        tool = f"{name}.{words[0].lower()}" if words else ""
        if tool in known:
            return [f"write the group and the name as one word: neuroscript call {tool}"]
        return [f"{name} is a group of tools: neuroscript list '{name}.*'"]
    return []


def no_match(pattern: str | None, known: Collection[str]) -> str:
    """Return the message for a pattern that matches none of the known tools."""
    if pattern is None:
        return _no_tools()
    name = pattern.lower().rstrip(".")
    if _is_absent(name, known):
        hint = f"; {_provider_hint(name)}"
    elif not known:
        hint = f"; {_no_tools()}"
    elif any(each.startswith(f"{name}.") for each in known):
        hint = f"; did you mean '{name}.*'?"
    elif name.endswith(".*"):
        hint = _near_group(name[:-2], known)
    else:
        hint = did_you_mean(name, _standard_first(known)) or _near_group(name, known)
    return f"no tool matches {quote_untrusted(pattern)}{hint}"


def _is_absent(name: str, known: Iterable[str]) -> bool:
    """Return whether a name is in a group of this project's distributions that has no known tool."""
    return owner_of(name) is not None and not any(_group(each) == _group(name) for each in known)


def _near_group(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, sorted({_group(each) for each in known}), lambda group: f"'{group}.*'")


def _group(name: str) -> str:
    return name.partition(".")[0]


def _standard_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda each: owner_of(each) != EXTRAS[STANDARD])


def _no_tools() -> str:
    return f"no tools are available; install {EXTRAS[STANDARD]} to get started: {install_hint(STANDARD)}"


def _provider_hint(name: str) -> str:
    owner = owner_of(name)
    extra = next(extra for extra, distribution in EXTRAS.items() if distribution == owner)
    provides = f"{owner} provides the {_group(name)} tools and is"
    if any(each.key == owner for each in installed_distributions()):
        return f"{provides} installed but not loaded: neuroscript plugins list"
    return f"{provides} not installed: {install_hint(extra)}"
