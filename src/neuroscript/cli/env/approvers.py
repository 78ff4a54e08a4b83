"""Approvers for a command: a prompt at its terminal, or a directory that stores calls until they are approved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from neuroscript.approval.request import Approval, ApprovalRequest, Approver
from neuroscript.cli.terminal.output import Output

TERMINAL: Final = Path("/dev/tty")
"""The controlling terminal of the process, even if its streams are redirected."""


def approver(settings: Mapping[str, Any], output: Output) -> Approver | None:
    """Return the approver of a command, or None if there is no terminal to ask at.

    The ``policy`` command always has an approver, because its output must not depend on where it runs.

    Args:
        settings: The options of a command by name.
    """
    if settings.get("suspend") is not None:
        from neuroscript.approval.pending import FileApprover

        return FileApprover(settings["suspend"])
    return ask_at_terminal if settings["command"] == "policy" or output.is_attended else None


def ask_at_terminal(request: ApprovalRequest) -> Approval:
    """Ask at the controlling terminal of the command.

    Standard input may hold calls and the output may go to a file, so the prompt uses the terminal device itself, as
    ssh and sudo do. The standard streams are used only if there is no such device.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    from neuroscript.approval.terminal import TerminalApprover

    with _terminal() as (stdin, output):
        return TerminalApprover(stdin, output)(request)


@contextmanager
def _terminal() -> Iterator[tuple[TextIO | None, TextIO | None]]:
    """Open the terminal for reading and for writing; None stands for a standard stream."""
    try:
        stdin = TERMINAL.open()
    except OSError:  # the process has no terminal, or the system has no such device
        yield None, None
        return
    with stdin, TERMINAL.open("w") as output:
        yield stdin, output
