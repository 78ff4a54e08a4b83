"""``neuroscript lint``: check the source code of a toolset."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import attrs

from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import Output, Rows, cell, reason_of
from neuroscript.cli.terminal.printing import show
from neuroscript.io.text import quote_path
from neuroscript.publishing.lint.check import LintResult, lint


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Print the findings and the suggestions, and return the exit code.

    Raises:
        UsageError: The path does not exist, or contains no Python file.
    """
    try:
        found = lint(Path(options.path))
    except FileNotFoundError:
        raise UsageError(f"{quote_path(options.path)}: no Python file found") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {quote_path(options.path)}: {reason_of(error)}") from None
    if options.json:
        output.json({"ok": not found.findings, **attrs.asdict(found)})
    else:
        rows = tuple((cell(str(each)),) for each in (*found.findings, *found.suggestions))
        show([*([Rows(rows, wrapped=False)] if rows else []), Rows(((cell(_summary(found)),),))], output)
    return FAILED if found.findings else OK


def _summary(found: LintResult) -> str:
    counts = [(found.files, "file"), (found.tools, "tool"), (len(found.findings), "finding")]
    if found.suggestions:
        counts.append((len(found.suggestions), "suggestion"))
    return ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts)
