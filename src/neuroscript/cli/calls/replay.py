"""``neuroscript replay``: a recording run again, and the first call that does not give what it gave."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import attrs

from neuroscript.cli.env.engine import MakeEngine, opened
from neuroscript.cli.terminal.exit_codes import FAILED, OK, USAGE
from neuroscript.cli.terminal.inputs import reading
from neuroscript.cli.terminal.output import Output
from neuroscript.testing.replay import Replayed, replayed


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run the calls of a recording again, say what differs, and return the exit code.

    Raises:
        UsageError: The file can not be read.
    """
    with (
        reading(options.file) as source,
        opened(make_engine, output, options) as engine,
        output.tools_aside(),
    ):
        found = replayed(source.line, engine)
    if options.json:
        output.json({"ok": found.ok, **attrs.asdict(found)})
    else:
        output.text("\n".join(_told(found)))
    if found.unreadable:
        output.say(f"{source.title}: {_lines(found.unreadable)} no recorded call: {found.fault}")
    if found.difference is not None:
        return FAILED
    return USAGE if found.unreadable else OK


def _told(found: Replayed) -> Iterator[str]:
    if found.difference is not None:
        yield str(found.difference)
    verdict = "all as recorded" if found.difference is None else "up to the first that differs"
    yield f"{found.run} {'call' if found.run == 1 else 'calls'} run again, {verdict}"
    if found.skipped:
        yield f"{found.skipped} skipped, of tools that are not pure"
    if found.left_out:
        yield f"{found.left_out} left out when it was recorded"


def _lines(count: int) -> str:
    return "1 line is" if count == 1 else f"{count} lines are"
