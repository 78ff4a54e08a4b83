"""Tools of others as ours: the word of each, what it needs until a host says more, and what a call gives to it.

Source: contract sections 1, 3 and 5; issue "MCP and the frameworks", in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from neuroscript.display import shown
from neuroscript.errors import UNSET
from neuroscript.foreignnames import word_of
from neuroscript.needs import ToolPolicy
from neuroscript.scopes import literal
from neuroscript.spec import ArgSpec


class Named(Protocol):
    """What others have given a name."""

    @property
    def name(self) -> str:
        """Its name there."""


Thing = TypeVar("Thing", bound=Named)


def by_word(
    things: Iterable[tuple[str, Thing]], faults: list[str], mending: str = "leave out all but one"
) -> dict[str, Thing]:
    """Return things by the words that their texts make; those without a word, or with that of another, are noted.

    Args:
        things: Each behind the text that it is to be called by here.
        mending: What to do about those that come to one word.
    """
    found: dict[str, list[Thing]] = {}
    for text, each in things:
        word = word_of(text)
        if word:
            found.setdefault(word, []).append(each)
        else:
            faults.append(f"{shown(each.name)}: makes no name of letters and digits of ASCII")
    for word, several in found.items():
        if len(several) > 1:
            names = " and ".join(shown(each.name) for each in several)
            faults.append(f"{names} would all be called {word}; {mending}")
    return {word: several[0] for word, several in found.items() if len(several) == 1}


def unknown_needs(system: str, group: str, name: str, trusted: bool) -> ToolPolicy:
    """Return what a tool needs of which nobody says what it does: ``SYSTEM:call:GROUP/NAME``, and it may do anything.

    Args:
        name: What it is called there.
        trusted: Whether it is called without an approval of each call.
    """
    return ToolPolicy(
        capabilities=(call_need(system, group, name),),
        effects=("net", "reads", "writes", "deletes"),
        requires_approval=not trusted,
    )


def call_need(system: str, group: str, name: str) -> str:
    """Return the need to call the tool that has a name there, ``SYSTEM:call:GROUP/NAME``."""
    return f"{system}:call:{literal(f'{group}/{name}')}"


def given(args: Iterable[ArgSpec], values: tuple[Any, ...]) -> dict[str, Any]:
    """Return exact values by name, without those that were not given and have no default here: those are left to it."""
    pairs = zip(args, values, strict=True)
    return {arg.name: value for arg, value in pairs if value is not None or not _may_stay_away(arg)}


def _may_stay_away(arg: ArgSpec) -> bool:
    return not arg.required and (arg.default is UNSET or not arg.nullable)
