"""``neuroscript audit``: a trail of calls shown, followed, verified and counted.

Source: issue "Authority", audit.
"""

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
    """Do what is asked with a trail and return the exit code.

    Raises:
        UsageError: Nothing is asked, or the trail, or the file of the key, can not be read.
    """
    if options.action is None:
        raise UsageError(f"what to do is missing: {', '.join(ACTIONS)} (see neuroscript audit --help)")
    action = getattr(import_module(f"neuroscript.cli.{MODULES[options.action]}"), options.action)
    with readable(options.file):
        code: int = action(options, output)
    return code
