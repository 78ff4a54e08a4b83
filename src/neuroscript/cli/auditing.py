"""``neuroscript audit``: a trail of calls shown, followed, verified and counted.

Source: issue "Authority", audit.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from neuroscript.cli.audit_words import ACTIONS
from neuroscript.cli.exits import UsageError
from neuroscript.cli.inputs import check_path, unreadable
from neuroscript.cli.opening import MakeEngine
from neuroscript.cli.output import Output
from neuroscript.display import shown
from neuroscript.errors import AuditError, SpecError

MODULES: Final = {"show": "trail", "tail": "trail", "verify": "verified", "stats": "trail_numbers"}


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


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Tell what is wrong with a file as a usage error; what is wrong with the output stays what it is."""
    check_path(name)
    try:
        yield
    except AuditError as error:
        raise UsageError(f"{shown(name)}: {error}") from None
    except SpecError:  # which is a ValueError, and not about the file
        raise
    except (OSError, ValueError) as error:
        raise unreadable(shown(name), error) from None
