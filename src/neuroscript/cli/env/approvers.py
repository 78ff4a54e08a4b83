"""Who is asked for an approval by a command: whoever sits at its terminal, or a directory where calls wait for it.

Source: contract section 5; issue "Authority", approval; reliability.md T20.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from neuroscript.approval.request import Approval, ApprovalRequest, Approver
from neuroscript.cli.terminal.output import Output

TERMINAL: Final = Path("/dev/tty")
"""The terminal that a process belongs to, wherever its streams lead."""


def approver(settings: Mapping[str, Any], output: Output) -> Approver | None:
    """Return who is asked, or None where nobody can be.

    What ``policy`` says of a call does not depend on where it is said, so there somebody can be.

    Args:
        settings: The options of a command by name.
    """
    if settings.get("suspend") is not None:
        from neuroscript.approval.pending import suspending

        return suspending(settings["suspend"])
    return at_terminal if settings["command"] == "policy" or output.is_attended else None


def at_terminal(request: ApprovalRequest) -> Approval:
    """Ask at the terminal that the command belongs to.

    The standard input may hold calls, and what else is written may go to a file, so neither is asked on: the terminal
    itself is, as ssh and sudo do, or both of them where the system has no such name for it.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    from neuroscript.approval.terminal import TerminalApprover

    with _terminal() as (stdin, output):
        return TerminalApprover(stdin, output)(request)


@contextmanager
def _terminal() -> Iterator[tuple[TextIO | None, TextIO | None]]:
    """Lend the two ways of the terminal; None is a standard stream."""
    try:
        stdin = TERMINAL.open()
    except OSError:  # of a process that has none of its own, or a system without that name
        yield None, None
        return
    with stdin, TERMINAL.open("w") as output:
        yield stdin, output
