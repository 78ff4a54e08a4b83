"""A contract check and its violations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from neuroscript.coercion.parameters import FLAG, FUNCTION, STRING, STRINGS, require_fields

Check = Callable[[Any, Any], Iterator[str]]
"""Takes a `Bench` and a tool, or None for a check of all tools together, and yields a sentence for each problem."""


@attrs.frozen
class ContractCheck:
    """A rule that every good tool follows, and the function that checks it.

    Attributes:
        name: The name in reports, in lower case with hyphens. Use it to skip the check.
        sentence: The rule.
        check: Yields the violations of the rule.
        presumes: Checks that this one depends on; it does not run if one of them fails.
        of_all: Whether it applies to all tools together instead of each tool.
    """

    name: str
    sentence: str
    check: Check = attrs.field(repr=False)
    presumes: tuple[str, ...] = ()
    of_all: bool = False

    def __attrs_post_init__(self) -> None:
        forms = {"name": STRING, "sentence": STRING, "check": FUNCTION, "presumes": STRINGS, "of_all": FLAG}
        require_fields("contract check", self, **forms)


@attrs.frozen
class Violation:
    """A contract check that one tool fails.

    Attributes:
        check: The name of the check.
        tool: The canonical name of the tool, or the name of the toolset.
        faults: The problems, as sentences without argument values.
    """

    check: str
    tool: str
    faults: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        require_fields("violation", self, check=STRING, tool=STRING, faults=STRINGS)

    def __str__(self) -> str:
        return f"{self.tool}: {self.check}: {'; '.join(self.faults)}"
