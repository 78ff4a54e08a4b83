"""The problems of a TOML file, collected and reported together, each with its line and key."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript.errors import MAX_LISTED_PROBLEMS, SpecError
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted
from neuroscript.io.toml import Place, TomlDocument

BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""


@attrs.frozen(eq=False)
class Faults:
    """The problems of a document.

    Attributes:
        document: The document that is checked.
        found: The line of each problem, and a sentence that starts with its key.
    """

    document: TomlDocument
    found: list[tuple[int, str]] = attrs.field(factory=list)

    def note(self, place: Place, text: str) -> None:
        """Add a problem."""
        self.found.append((self.document.line(place), f"{place_name(place)}: {text}"))

    def unknown(self, place: Place, known: Iterable[str], what: str = "unknown key") -> None:
        """Report an unknown name. The first `MAX_LISTED_PROBLEMS` problems suggest names that are spelled alike."""
        hint = did_you_mean(str(place[-1]), known) if len(self.found) < MAX_LISTED_PROBLEMS else ""
        self.note(place, f"{what}{hint}")

    def only(self, place: Place, table: Iterable[str], known: Collection[str]) -> None:
        """Report each key of a table that is not in *known*."""
        for key in table:
            if key not in known:
                self.unknown((*place, key), known)

    def error(self, source: str, *, has_lines: bool = True) -> SpecError:
        """Return the error for an invalid document, in the order of its lines.

        Args:
            source: The name of the document in the error.
            has_lines: Whether its line numbers mean anything to the user.
        """
        found = sorted(self.found, key=lambda fault: fault[0])
        lines = [line for line, _ in found] if has_lines else []
        return SpecError(quote_untrusted(source), [sentence for _, sentence in found], lines)

    def judge(self, place: Place, kind: Callable[..., object], key: str, value: object, head: str = "") -> bool:
        """Report the problems that *kind* raises for *value* under *key*, and return whether there are none.

        Args:
            head: A prefix of those problems besides *key*. Both are removed because the place already names them.
        """
        found = problems(kind, key, value)
        for problem in found:
            self.note(place, _without(problem, (head, key)))
        return not found

    def table(self, place: Place, value: object) -> Mapping[str, Any]:
        """Return *value* if it is a table; otherwise report a problem and return an empty table."""
        if isinstance(value, dict):
            return value
        self.note(place, f"must be a table, [{place_name(place)}]")
        return {}


def place_name(place: Place) -> str:
    """Return the name of a place in TOML syntax, with indexes in brackets.

    >>> print(place_name(("policy", "limits", "tool_calls", "fs.read")), place_name(("policy", "deny", 2)))
    policy.limits.tool_calls."fs.read" policy.deny[2]
    """
    return "".join(_step(step) for step in place).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    key = str(step)  # data from other sources may have keys that are not strings
    return f".{quote_untrusted(key)}" if BARE.fullmatch(key) else f'."{quote_untrusted(key)}"'


def problems(kind: Callable[..., object], key: str, value: object) -> tuple[str, ...]:
    """Return the problems that *kind* raises for *value* under *key*."""
    try:
        kind(**{key: value})
    except SpecError as error:
        return error.problems
    return ()


def _without(problem: str, said: Iterable[str]) -> str:
    """Return a problem without the name at its start, because its place already names it."""
    for head in filter(None, said):
        if problem.startswith((f"{head}: ", f"{head} ")):
            return problem[len(head) :].removeprefix(":").lstrip()
    return problem
