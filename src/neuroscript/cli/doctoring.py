"""``neuroscript doctor``: what there is, what is missing or broken, and the line that mends it.

Source: issue "Plugins", the command line.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from neuroscript.cli.exits import FAILED, OK
from neuroscript.cli.looks import Look, discreet
from neuroscript.cli.opening import MakeEngine
from neuroscript.cli.output import Output
from neuroscript.cli.pages import EMPTY, Rows, cell, line
from neuroscript.cli.printing import show
from neuroscript.cli.written import counted

PARTS: Final = {
    "versions": "looks_installed:versions",
    "extras": "looks_installed:extras",
    "plugins": "looks_installed:plugins",
    "plugins of your own": "looks_files:own_plugins",
    "sandbox": "looks_files:sandbox",
    "directories": "looks_files:directories",
    "policy": "looks_files:policy",
    "programs": "looks_installed:programs",
    "terminal": "looks_around:terminal",
    "environment": "looks_around:environment",
}
"""What is looked at, in order, and who does; each is found for itself, so that one that is broken stops no other."""

STYLES: Final[dict[str, Any]] = {"ok": "good", "optional": "dim", "warning": "mended", "broken": "bad"}
INDENT: Final = 2
WIDTHS: Final = (16, 8)
"""The columns of the subject and the state, so that all parts stand in line."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Look at everything, tell of it, and return 1 if something is broken, else 0."""
    found = {part: [*looks(place, options)] for part, place in PARTS.items()}
    counts = Counter(look.state for looks in found.values() for look in looks)
    if options.json:
        data = [{"part": part, **_data(look)} for part, looks in found.items() for look in looks]
        output.json({"ok": not counts["broken"], "looks": data})
    else:
        show(_blocks(found, counts), output)
    return FAILED if counts["broken"] else OK


def looks(place: str, options: Namespace) -> Iterator[Look]:
    """Yield what one part finds; what fails there is itself something that is broken."""
    module, _, name = place.partition(":")
    try:
        check: Callable[[Namespace], Iterable[Look]] = getattr(import_module(f"neuroscript.cli.{module}"), name)
        yield from map(discreet, check(options))
    except Exception as error:
        text = f"it can not be looked at further ({type(error).__name__})"
        yield Look(name.replace("_", " "), "broken", text)


def _data(look: Look) -> dict[str, str]:
    return {"subject": look.subject, "state": look.state, "text": look.text, "mend": look.mend}


def _blocks(found: dict[str, list[Look]], counts: Counter[Any]) -> Iterator[Rows]:
    for part, looks in found.items():
        if looks:
            rows = [(cell(each.subject, "name"), cell(each.state, STYLES[each.state]), _told(each)) for each in looks]
            yield from (line(part, "title"), Rows(tuple(rows), indent=INDENT, widths=WIDTHS), EMPTY)
    yield line(_summary(counts))


def _summary(counts: Counter[Any]) -> str:
    broken, warnings, optional = counts["broken"], counts["warning"], counts["optional"]
    parts = [f"{broken} broken" if broken else "everything that is chosen works"]
    if warnings:
        parts.append(counted(warnings, "warning"))
    if optional:
        parts.append(f"{counted(optional, 'optional part')} {'is' if optional == 1 else 'are'} not set up")
    return "; ".join(parts)


def _told(look: Look) -> Any:
    return cell(f"{look.text}\n{look.mend}" if look.mend else look.text)
