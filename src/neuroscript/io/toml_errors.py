"""What is wrong with a file of TOML: each fault with its line and its name, all of them at once.

Source: issue "Authority", policy as a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript.errors import LISTED, SpecError
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import shown
from neuroscript.io.toml import Document, Place

BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""


@attrs.frozen(eq=False)
class Faults:
    """What is wrong with a document.

    Attributes:
        document: What is looked at.
        found: The line of each fault, and a sentence that begins with its name.
    """

    document: Document
    found: list[tuple[int, str]] = attrs.field(factory=list)

    def note(self, place: Place, text: str) -> None:
        """Add a fault."""
        self.found.append((self.document.line(place), f"{named(place)}: {text}"))

    def unknown(self, place: Place, known: Iterable[str], what: str = "is not known") -> None:
        """Add the fault that nothing is called so; of the first ones, with names that are spelt alike."""
        hint = did_you_mean(str(place[-1]), known) if len(self.found) < LISTED else ""
        self.note(place, f"{what}{hint}")

    def only(self, place: Place, table: Iterable[str], known: Collection[str]) -> None:
        """Add the fault of each key of a table that is none of those that are known."""
        for key in table:
            if key not in known:
                self.unknown((*place, key), known)

    def error(self, source: str, *, has_lines: bool = True) -> SpecError:
        """Return the error of a document that is wrong, in the order of its lines.

        Args:
            source: What it calls the document.
            has_lines: Whether that has lines which tell anything.
        """
        found = sorted(self.found, key=lambda fault: fault[0])
        lines = [line for line, _ in found] if has_lines else []
        return SpecError(shown(source), [sentence for _, sentence in found], lines)

    def judge(self, place: Place, kind: Callable[..., object], key: str, value: object, head: str = "") -> bool:
        """Add what a policy or its limits have against *value* under *key*, and tell whether it is right.

        Args:
            head: How they begin besides *key*; both are left out, for the place says it.
        """
        found = problems(kind, key, value)
        for problem in found:
            self.note(place, _without(problem, (head, key)))
        return not found

    def table(self, place: Place, value: object) -> Mapping[str, Any]:
        """Return a table; what is none is a fault, and stands for an empty one."""
        if isinstance(value, dict):
            return value
        self.note(place, f"must be a table, [{named(place)}]")
        return {}


def named(place: Place) -> str:
    """Return the name of a place as TOML writes it, and an index in brackets.

    >>> print(named(("policy", "limits", "tool_calls", "fs.read")), named(("policy", "deny", 2)))
    policy.limits.tool_calls."fs.read" policy.deny[2]
    """
    return "".join(_step(step) for step in place).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    key = str(step)  # of data that is no TOML a key may be no text
    return f".{shown(key)}" if BARE.fullmatch(key) else f'."{shown(key)}"'


def problems(kind: Callable[..., object], key: str, value: object) -> tuple[str, ...]:
    """Return what *kind* has against *value* under *key*."""
    try:
        kind(**{key: value})
    except SpecError as error:
        return error.problems
    return ()


def _without(problem: str, said: Iterable[str]) -> str:
    """Return a problem without the name at its head, which stands in its place."""
    for head in filter(None, said):
        if problem.startswith((f"{head}: ", f"{head} ")):
            return problem[len(head) :].removeprefix(":").lstrip()
    return problem
