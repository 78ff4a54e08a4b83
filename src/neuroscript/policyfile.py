"""What a host permits, as a file of TOML: the table ``policy``, and under it profiles that replace parts of it.

Whatever is wrong is said at once, each with its line and its name. `ExecutionPolicy` and `Limits` judge the values;
what is asked here is the shape alone. A file that is wrong in part permits nothing: there is no policy then.

Source: contract section 5; issue "Authority", policy as a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript.display import shown
from neuroscript.errors import LISTED, SpecError
from neuroscript.limits import Limits
from neuroscript.names import near
from neuroscript.policy import ExecutionPolicy
from neuroscript.textfile import text_of
from neuroscript.tomltext import Document, NotTOML, Place, parsed

LONGEST: Final = 1024 * 1024
"""How many bytes a file may have."""

LISTS: Final = ("allow", "deny", "grants", "preapproved")
KEYS: Final = (*LISTS, "trusted", "limits")
"""What a profile may state; the table ``policy`` may hold profiles too."""

OTHERS: Final = ("mcp",)
"""Outermost tables that others read."""

COUNTS: Final = tuple(field.name for field in attrs.fields(Limits))
BY_NAME: Final = frozenset(field.name for field in attrs.fields(Limits) if isinstance(field.default, attrs.Factory))  # type: ignore[arg-type]
"""Limits that are values by name: of a tool, a pattern, a currency."""

BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""


def load_policy(path: str | os.PathLike[str], *, profile: str | None = None) -> ExecutionPolicy:
    """Return what the file *path* permits.

    Args:
        path: A file of TOML in UTF-8, at most `LONGEST` bytes.
        profile: Which of its profiles replaces parts of it; None is none.

    Raises:
        SpecError: The file can not be read, or something in it is wrong; its ``lines`` say where.

    Source: issue "Authority", policy as a file.
    """
    name = Path(path).name or str(path)
    return policy_of_toml(text_of(path, shown(name), LONGEST), source=name, profile=profile)


def policy_of_toml(text: str, *, source: str = "policy", profile: str | None = None) -> ExecutionPolicy:
    """Return what a text of TOML permits.

    Args:
        source: What errors call it.
        profile: Which of its profiles replaces parts of it; None is none.

    Raises:
        SpecError: With everything that is wrong with it.

    >>> policy_of_toml('policy.deny = ["*.delete"]').deny
    ('*.delete',)
    """
    try:
        document = parsed(text)
    except NotTOML as error:
        raise SpecError(shown(source), [error.hint], [error.line]) from None
    faults = Faults(document)
    stated = _stated(faults, profile)
    if faults.found:
        found = sorted(faults.found, key=lambda fault: fault[0])
        raise SpecError(shown(source), [sentence for _, sentence in found], [line for line, _ in found])
    limits = stated.pop("limits", None)
    return ExecutionPolicy(**stated, limits=Limits(**limits) if limits else None)


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
        alike = near(str(place[-1]), known) if len(self.found) < LISTED else ()
        hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
        self.note(place, f"{what}{hint}")

    def judge(self, place: Place, kind: Callable[..., object], key: str, value: object, head: str = "") -> bool:
        """Add what a policy or its limits have against *value* under *key*, and tell whether it is right.

        Args:
            head: How they begin besides *key*; both are left out, for the place says it.
        """
        problems = _problems(kind, key, value)
        for problem in problems:
            self.note(place, _without(problem, (head, key)))
        return not problems

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
    return f".{shown(step)}" if BARE.fullmatch(step) else f'."{shown(step)}"'


def _problems(kind: Callable[..., object], key: str, value: object) -> tuple[str, ...]:
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


def _stated(faults: Faults, profile: str | None) -> dict[str, Any]:
    """Return what the document states, as the profile replaces it."""
    values = faults.document.values
    for key in values:
        if key not in ("policy", *OTHERS):
            faults.unknown((key,), ("policy", *OTHERS))
    place = ("policy",)
    table = faults.table(place, values.get("policy", {}))
    base = _section(faults, place, table, (*KEYS, "profiles"))
    profiles = _profiles(faults, (*place, "profiles"), table.get("profiles", {}))
    if profile is None:
        return base
    if profile not in profiles:
        faults.unknown((*place, "profiles", profile), profiles, "there is no such profile")
        return base
    chosen = profiles[profile]
    limits = {**base.get("limits", {}), **chosen.get("limits", {})}
    return {**base, **chosen, "limits": limits}


def _profiles(faults: Faults, place: Place, value: object) -> dict[str, dict[str, Any]]:
    table = faults.table(place, value)
    return {
        name: _section(faults, (*place, name), faults.table((*place, name), each), KEYS) for name, each in table.items()
    }


def _section(faults: Faults, place: Place, table: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """Return what a table states, as keywords of a policy and of its limits."""
    stated: dict[str, Any] = {}
    for key, value in table.items():
        here = (*place, key)
        if key in LISTS:
            stated[key] = tuple(_texts(faults, here, value))
        elif key == "trusted":
            stated[key] = value
            if not isinstance(value, bool):
                faults.note(here, "must be true or false")
        elif key == "limits":
            stated[key] = _limits(faults, here, faults.table(here, value))
        elif key not in known and key in COUNTS:
            faults.note(here, f"is a limit; write it under [{named((*place, 'limits'))}]")
        elif key not in known:
            faults.unknown(here, known)
    return stated


def _texts(faults: Faults, place: Place, value: object) -> Iterator[str]:
    """Yield the texts of an array; what the policy has against one of them is told on its line."""
    key = str(place[-1])
    if not isinstance(value, list):
        faults.note(place, "must be an array of texts, in brackets")
        return
    texts = [each for each in value if isinstance(each, str)]
    is_right = not _problems(ExecutionPolicy, key, texts)  # as nearly all are, and then none is looked at alone
    for index, each in enumerate(value):
        here = (*place, index)
        if not isinstance(each, str):
            faults.note(here, "must be a text, in quotes")
        elif is_right or faults.judge(here, ExecutionPolicy, key, (each,)):
            yield each


def _limits(faults: Faults, place: Place, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits, each of which `Limits` has looked at."""
    for key, value in table.items():
        here = (*place, key)
        if key not in COUNTS:
            faults.unknown(here, COUNTS)
        elif key in BY_NAME:
            _by_name(faults, here, faults.table(here, value))
        else:
            faults.judge(here, Limits, key, value)
    return dict(table)


def _by_name(faults: Faults, place: Place, table: Mapping[str, Any]) -> None:
    key = str(place[-1])
    for name, value in table.items():
        here = (*place, name)
        if isinstance(value, dict):
            faults.note(
                here, f'holds names itself; a name with a dot stands in quotes, "{shown(_dotted(name, value))}"'
            )
        else:
            faults.judge(here, Limits, key, {name: value}, f"{key}[{shown(name)!r}]")


def _dotted(name: str, value: object) -> str:
    """Return the name that somebody wrote without quotes, as far as it leads to one value."""
    while isinstance(value, dict) and value:
        further, value = next(iter(value.items()))
        name = f"{name}.{further}"
    return name
