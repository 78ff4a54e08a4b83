"""What operations and their arguments are called: words that a tool may have, made of names from outside."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import attrs

from neuroscript.interop.openapi.document import Notes
from neuroscript.io.text import first, shown, type_name
from neuroscript.names import LONGEST, word_of
from neuroscript.spec.tool_spec import ARGUMENT_NAME

BRACKETED: Final = re.compile(r"[\s{}\[\]()'\"`]+")

MOST_NAMED: Final = 5
"""How many operations of one name an error lists."""


@attrs.frozen(eq=False)
class Operation:
    """One operation of a description.

    Attributes:
        path: Where it stands in the document.
        route: The path of its requests, with ``{names}``.
        method: In capitals.
        item: The path item that it stands in.
        data: Itself.
        name: The word for it as a tool.
    """

    path: str
    route: str
    method: str
    item: dict[str, Any]
    data: dict[str, Any]
    name: str = ""


def named(operations: list[Operation], notes: Notes) -> list[Operation]:
    """Return the operations with their names: by operationId, or by method and path where that is no name of one alone.

    What has no name that fits is noted, and left out.
    """
    ids = [each.data.get("operationId") for each in operations]
    counted = Counter(id for id in ids if isinstance(id, str))
    found = []
    for each, id in zip(operations, ids, strict=True):
        own = word_of(id) if isinstance(id, str) and counted[id] == 1 else ""
        name = own or word_of(f"{each.method.lower()} {each.route}")
        if not name:
            notes.add(each.path, f"its name is longer than {LONGEST} characters; give it a shorter operationId")
            continue
        found.append(attrs.evolve(each, name=name))
    return found


def told_apart(operations: list[Operation], notes: Notes) -> list[Operation]:
    """Return the operations that have a name for themselves; those of one name are noted, and left out."""
    found: dict[str, list[Operation]] = {}
    for each in operations:
        found.setdefault(each.name, []).append(each)
    for name, several in found.items():
        if len(several) > 1:
            others = first([each.path for each in several[1:]], MOST_NAMED)
            notes.add(several[0].path, f"would be called {name}, and so would {' and '.join(others)}")
    return [several[0] for several in found.values() if len(several) == 1]


def argument_name(name: str) -> str:
    """Return the name of the argument for a parameter, or ``""``: brackets and blanks can not stand in one.

    >>> argument_name("filter[name]"), argument_name("ids[]"), argument_name("X-Request-Id")
    ('filter_name', 'ids', 'X-Request-Id')
    """
    plain = BRACKETED.sub("_", name).strip("_") if BRACKETED.search(name) else name
    return plain if plain.isprintable() and ARGUMENT_NAME.fullmatch(plain) else ""


def required_word(word: object, what: str) -> str:
    """Return what is told where a name from outside makes no word."""
    if not isinstance(word, str):
        return f"{what}: expected a string, got {type_name(word)}"
    return f"{what}: {shown(word)} makes no name" if word else f"{what}: there is none"
