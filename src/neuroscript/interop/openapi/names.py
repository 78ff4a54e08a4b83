"""Names of operations and arguments: valid tool and argument names derived from untrusted ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from typing import Any, Final

import attrs

from neuroscript.interop.openapi.document import Problems
from neuroscript.io.text import first, quote_untrusted, type_name
from neuroscript.names import MAX_WORD_CHARS, to_snake_case, wire_name
from neuroscript.runtime.wire_names import DIGEST_DIGITS
from neuroscript.spec.tool_spec import ARGUMENT_NAME

BRACKETED: Final = re.compile(r"[\s{}\[\]()'\"`]+")

MAX_LISTED_OPERATIONS: Final = 5
"""Maximum number of operations with the same name that an error lists."""


@attrs.frozen(eq=False)
class Operation:
    """One operation of a description.

    path: Its path in the document.
    route: The path template of its requests, with ``{names}``.
    method: The HTTP method, in capitals.
    item: The path item that contains it.
    data: The operation object.
    name: Its name as a tool.
    """

    path: str
    route: str
    method: str
    item: dict[str, Any]
    data: dict[str, Any]
    name: str = ""


def name_operations(operations: list[Operation], notes: Problems) -> list[Operation]:
    """Return the operations with their names.

    The name comes from the operationId if it is valid and unique, otherwise from the method and the path. An operation
    without a valid name is recorded in *notes* and left out.
    """
    ids = [each.data.get("operationId") for each in operations]
    counted = Counter(id for id in ids if isinstance(id, str))
    found = []
    for each, id in zip(operations, ids, strict=True):
        own = to_snake_case(id) if isinstance(id, str) and counted[id] == 1 else ""
        name = own or to_snake_case(f"{each.method.lower()} {each.route}")
        if not name:
            notes.add(each.path, f"its name is longer than {MAX_WORD_CHARS} characters; give it a shorter operationId")
            continue
        found.append(attrs.evolve(each, name=name))
    return found


def unique_operations(operations: list[Operation], notes: Problems) -> list[Operation]:
    """Return the operations with a unique name; record the others in *notes* and leave them out."""
    found: dict[str, list[Operation]] = {}
    for each in operations:
        found.setdefault(each.name, []).append(each)
    for name, several in found.items():
        if len(several) > 1:
            others = first([each.path for each in several[1:]], MAX_LISTED_OPERATIONS)
            notes.add(several[0].path, f"has the same name, {name}, as {' and '.join(others)}")
    return [several[0] for several in found.values() if len(several) == 1]


def operation_ids(names: Sequence[str]) -> dict[str, str]:
    """Return the operationId of each tool, by its canonical name; `name_operations` makes a different name of each one.

    Most are the wire name of the tool. Ids that are too long or would make equal names end in a digest, also that of
    the first of them, so that no other tool takes over a name when it is added.

    >>> operation_ids(["math.add", "a.b.c", "a.b_c"])
    {'math.add': 'math__add', 'a.b.c': 'a__b__c_845e3044', 'a.b_c': 'a__b_c_5b8f934a'}
    """
    plain = {name: to_snake_case(wire_name(name)) for name in names}
    counted = Counter(plain.values())
    taken = set(plain.values())
    ids: dict[str, str] = {}
    for name, word in plain.items():
        ids[name] = wire_name(name)
        if not word or counted[word] > 1:
            free = (each for each in _with_digests(name) if to_snake_case(each) not in taken)
            ids[name] = next(free)
            taken.add(to_snake_case(ids[name]))
    return ids


def _with_digests(name: str) -> Iterator[str]:
    """Yield ids of a tool; the first is almost always free."""
    beginning = wire_name(name)[: MAX_WORD_CHARS - DIGEST_DIGITS - 1].rstrip("_")
    for number in count():
        text = f"{name} {number}" if number else name
        yield f"{beginning}_{sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]}"


def argument_name(name: str) -> str:
    """Return the argument name for a parameter, or ``""``; brackets and whitespace become underscores.

    >>> argument_name("filter[name]"), argument_name("ids[]"), argument_name("X-Request-Id")
    ('filter_name', 'ids', 'X-Request-Id')
    """
    plain = BRACKETED.sub("_", name).strip("_") if BRACKETED.search(name) else name
    return plain if plain.isprintable() and ARGUMENT_NAME.fullmatch(plain) else ""


def name_problem(word: object, what: str) -> str:
    """Return the message for an external name that makes no valid group name."""
    if not isinstance(word, str):
        return f"{what}: expected a string, got {type_name(word)}"
    return f"{what}: {quote_untrusted(word)} cannot be used as a name" if word else f"{what}: missing"
