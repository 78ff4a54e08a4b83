"""``neuroscript doctor``: check the installation, and show how to fix problems."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final

from neuroscript.cli.doctor.check import Finding, with_variable_names
from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.env.options import add_plugins
from neuroscript.cli.terminal.argument_parser import add_subparser
from neuroscript.cli.terminal.exit_codes import FAILED, OK
from neuroscript.cli.terminal.inputs import count_of
from neuroscript.cli.terminal.output import EMPTY, GAP_COLUMNS, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show

PARTS: Final = {
    "versions": "doctor.installed:versions",
    "extras": "doctor.installed:extras",
    "plugins": "doctor.installed:plugins",
    "plugins of your own": "doctor.files:own_plugins",
    "sandbox": "doctor.files:sandbox",
    "directories": "doctor.files:directories",
    "policy": "doctor.files:policy",
    "programs": "doctor.installed:programs",
    "isolation": "doctor.environment:isolation",
    "terminal": "doctor.environment:terminal",
    "environment": "doctor.environment:environment",
}
"""The checks in order; each is imported separately, so that a broken one does not stop the others."""


STYLES: Final[dict[str, Any]] = {"ok": "good", "optional": "dim", "warning": "mended", "broken": "bad"}


INDENT: Final = 2


WIDTHS: Final = (16, 8)
"""The widths of the subject and state columns, which align all parts."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run all checks, print the findings, and return 1 if something is broken, otherwise 0."""
    found = run_checks(options)
    counts = Counter(finding.state for findings in found.values() for finding in findings)
    if options.json:
        data = [{"part": part, **_data(finding)} for part, findings in found.items() for finding in findings]
        output.json({"ok": not counts["broken"], "checks": data})
    else:
        show(_blocks(found, counts), output)
    return FAILED if counts["broken"] else OK


def run_checks(options: Namespace) -> dict[str, list[Finding]]:
    """Return the findings of all checks by part, in order.

    Args:
        options: The options of ``doctor``; those of other commands may be missing.
    """
    defaults = dict.fromkeys(("plugin", "isolate_plugins", "policy", "profile", "sandbox", "timeout"))
    known = Namespace(**{**defaults, **vars(options)})
    return {part: [*run_check(place, known)] for part, place in PARTS.items()}


def run_check(place: str, options: Namespace) -> Iterator[Finding]:
    """Yield the findings of one check; an exception in it becomes a finding too."""
    module, _, name = place.partition(":")
    try:
        check: Callable[[Namespace], Iterable[Finding]] = getattr(import_module(f"neuroscript.cli.{module}"), name)
        yield from map(with_variable_names, check(options))
    except Exception as error:
        text = f"the check failed ({type(error).__name__})"
        yield Finding(name.replace("_", " "), "broken", text)


def _data(finding: Finding) -> dict[str, str]:
    return {"subject": finding.subject, "state": finding.state, "text": finding.text, "fix": finding.fix}


def _blocks(found: dict[str, list[Finding]], counts: Counter[Any]) -> Iterator[Rows]:
    for part, findings in found.items():
        if findings:
            yield line(part, "title")
            yield from _rows(findings)
            yield EMPTY
    yield line(_summary(counts))


def _rows(findings: Sequence[Finding]) -> Iterator[Rows]:
    """Yield the findings of a part, each with its command below it."""
    widths = (max(WIDTHS[0], *(len(cell(each.subject).text) for each in findings)), WIDTHS[1])
    for each in findings:
        cells = (cell(each.subject, "name"), cell(each.state, STYLES[each.state]), cell(each.text))
        yield Rows((cells,), indent=INDENT, widths=widths)
        if each.fix:
            yield Rows(((cell(each.fix),),), indent=INDENT + sum(widths) + 2 * GAP_COLUMNS, wrapped=False)


def _summary(counts: Counter[Any]) -> str:
    broken, warnings, optional = counts["broken"], counts["warning"], counts["optional"]
    parts = [f"{broken} broken" if broken else "everything in use works"]
    if warnings:
        parts.append(count_of(warnings, "warning"))
    if optional:
        parts.append(f"{count_of(optional, 'optional part')} {'is' if optional == 1 else 'are'} not set up")
    return "; ".join(parts)


DOCTOR: Final = """\
Checks versions, extras, plugins, the sandbox, your directories, the policy, programs, isolation, the
terminal and the environment, and prints a command that fixes each problem. Optional parts that are not
set up are not problems. Plugins are loaded in separate processes. Values of environment variables are
not shown. Exits 1 if something in use does not work, otherwise 0."""


MAX_TIMEOUT_SECONDS: Final = 3600
"""Maximum value of ``--timeout``."""


def add_doctor(commands: Any, layout: Any) -> None:
    """Add ``doctor`` to the *commands* of the parser."""
    help = "find problems of the installation, and how to fix them"
    parser = add_subparser(commands, layout, "doctor", help, json_help="print the findings as JSON", description=DOCTOR)
    add_plugins(parser)
    parser.add_argument("--policy", metavar="FILE", help="check this policy file; default: your own file")
    parser.add_argument("--profile", metavar="NAME", help="check this profile of the policy file")
    parser.add_argument("--sandbox", metavar="DIR", help="check this directory; default: your own sandbox")
    parser.add_argument("--timeout", metavar="N", type=_seconds, help="time limit of each plugin; default 10")


def _seconds(word: str) -> float:
    if not word.isascii() or not word.isdigit() or not 0 < int(word[:5]) <= MAX_TIMEOUT_SECONDS:
        raise argparse.ArgumentTypeError(f"expected an integer from 1 to {MAX_TIMEOUT_SECONDS}")
    return float(word)
