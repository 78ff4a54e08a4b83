"""``neuroscript audit``: show, follow, verify and summarize an audit log."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from typing import Final

from neuroscript.cli.audit.options import ACTIONS
from neuroscript.cli.env.engine import MakeEngine
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.inputs import readable
from neuroscript.cli.terminal.output import Output

MODULES: Final = {"show": "audit.show", "tail": "audit.show", "verify": "audit.verify", "stats": "audit.stats"}


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run an action on an audit log and return the exit code.

    Raises:
        UsageError: There is no action, or the audit log or the key file cannot be read.
    """
    if options.action is None:
        raise UsageError(f"expected an action: {', '.join(ACTIONS)} (see neuroscript audit --help)")
    action = getattr(import_module(f"neuroscript.cli.{MODULES[options.action]}"), options.action)
    with readable(options.file):
        code: int = action(options, output)
    return code
