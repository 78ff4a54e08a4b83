"""A law, and what breaks it.

Source: issue "Plugins", the publisher's kit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from neuroscript.coercion.parameters import FLAG, FUNCTION, STRING, STRINGS, require_fields

Check = Callable[[Any, Any], Iterator[str]]
"""Takes a `Bench` and a tool, None for a law of all tools together, and yields a sentence for each fault."""


@attrs.frozen
class Law:
    """What holds for every good tool.

    Attributes:
        name: A few words with hyphens, by which it is called in reports and can be left out.
        sentence: What it asks.
        check: Yields what breaks it.
        presumes: Laws without which it says nothing: where one of them is broken, it is not asked.
        of_all: Whether it is a law of all tools together, not of each.
    """

    name: str
    sentence: str
    check: Check = attrs.field(repr=False)
    presumes: tuple[str, ...] = ()
    of_all: bool = False

    def __attrs_post_init__(self) -> None:
        forms = {"name": STRING, "sentence": STRING, "check": FUNCTION, "presumes": STRINGS, "of_all": FLAG}
        require_fields("law", self, **forms)


@attrs.frozen
class Violation:
    """One law that one tool breaks.

    Attributes:
        law: The name of the law.
        tool: The canonical name of the tool, or that of the toolset.
        faults: What is wrong, a sentence each; none holds a value of a call.
    """

    law: str
    tool: str
    faults: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        require_fields("violation", self, law=STRING, tool=STRING, faults=STRINGS)

    def __str__(self) -> str:
        return f"{self.tool}: {self.law}: {'; '.join(self.faults)}"
