"""What a new distribution is called: itself, its module, its group of tools; and what none may be called.

Source: PEP 503 (names of distributions), PEP 8 (names of modules), contract section 1 (groups).
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from typing import Final

import attrs

from neuroscript.catalog import FIRST_PARTY, owner_of
from neuroscript.display import shown
from neuroscript.installed import normalised
from neuroscript.names import canonical, is_word

NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""Of distributions."""

LONGEST: Final = 50
"""Characters of a group, so that the names of its tools have no more than 64 on the wire."""


@attrs.frozen
class Names:
    """What a distribution and its parts are called.

    Attributes:
        distribution: As PEP 503 spells it.
        module: What is imported.
        group: The group of its tools.
    """

    distribution: str
    module: str
    group: str


def named(name: str, group: str | None = None) -> Names:
    """Return what a distribution of that name and its parts are called; they may be such as can not be.

    >>> named("Acme.Weather")
    Names(distribution='acme-weather', module='acme_weather', group='acme_weather')
    """
    distribution = normalised(name)
    module = distribution.replace("-", "_")
    return Names(distribution, module, module if group is None else canonical(group))


def faults(name: str, names: Names) -> Iterator[str]:
    """Yield a sentence for each reason why nothing can be called so.

    Args:
        name: The name as it was given.
    """
    if NAME.fullmatch(name) is None:
        yield f"{shown(name)} is no name of a distribution; write letters, digits, and - . or _ between them"
        return
    yield from _module_faults(names)
    yield from _group_faults(names)


def _module_faults(names: Names) -> Iterator[str]:
    module = shown(names.module)
    if names.distribution == "neuroscript" or names.distribution in FIRST_PARTY:
        yield f"{names.distribution} is a distribution of this project; take a name of your own"
    elif keyword.iskeyword(names.module):
        yield f"the module would be called {module}, which is a word of Python"
    elif not names.module.isidentifier():
        yield f"the module would be called {module}, which can not be imported; begin the name with a letter"
    elif names.module in sys.stdlib_module_names:
        yield f"the module would be called {module}, as one of Python's own; take a longer name"


def _group_faults(names: Names) -> Iterator[str]:
    words = names.group.split(".")
    owner = owner_of(names.group)
    if not all(map(is_word, words)):
        yield (
            f"{shown(names.group)} is no name of a group; "
            "give one with --group: small letters, digits and single _, a letter first"
        )
    elif owner is not None:
        yield f"the group {shown(words[0])} belongs to {owner}; give another one with --group"
    elif len(names.group) > LONGEST:
        yield f"a group of more than {LONGEST} characters leaves no place for names of tools; give one with --group"
