"""``neuroscript replay``: run the calls of a recording again, up to the first whose result differs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import attrs

from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.exit_codes import FAILED, OK, USAGE
from neuroscript.cli.terminal.inputs import open_input
from neuroscript.cli.terminal.output import Output
from neuroscript.testing.replay import Replayed, replay_lines


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run the calls of a recording again, print the first difference, and return the exit code.

    Raises:
        UsageError: The file cannot be read.
    """
    with (
        open_input(options.file) as source,
        open_engine(make_engine, output, options) as engine,
        output.tools_aside(),
    ):
        found = replay_lines(source.line, engine)
    if options.json:
        output.json({"ok": found.ok, **attrs.asdict(found)})
    else:
        output.text("\n".join(_summary_lines(found)))
    if found.unreadable:
        output.say(f"{source.title}: {_lines(found.unreadable)} unreadable: {found.error}")
    if found.difference is not None:
        return FAILED
    return USAGE if found.unreadable else OK


def _summary_lines(found: Replayed) -> Iterator[str]:
    if found.difference is not None:
        yield str(found.difference)
    verdict = "same results" if found.difference is None else "up to the first difference"
    yield f"{found.run} {'call' if found.run == 1 else 'calls'} run again, {verdict}"
    if found.skipped:
        yield f"{found.skipped} skipped, because their tools are not pure"
    if found.not_recorded:
        yield f"{found.not_recorded} not recorded in full"


def _lines(count: int) -> str:
    return "1 line is" if count == 1 else f"{count} lines are"
