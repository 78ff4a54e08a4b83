"""``neuroscript approve``: a call that waits in a file for its approval, answered and then run, once.

Source: contract section 5; issue "Authority", approval.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable
from pathlib import Path

from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.request import Approval, ApprovalRequest, Approver
from neuroscript.cli.calls.call import written
from neuroscript.cli.env.approvers import approver, at_terminal
from neuroscript.cli.env.engine import MakeEngine, opened
from neuroscript.cli.terminal.inputs import readable
from neuroscript.cli.terminal.output import Output
from neuroscript.runtime.interfaces import ToolResult


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Answer a call that was put aside, run it if it is approved, and return the exit code of the call.

    Raises:
        UsageError: The file can not be read.
        SpecError: It is no pending approval, or others may read or change it.
    """
    with readable(options.file):
        pending = PendingApproval.load(options.file)
    answering = _answering(pending, Path(options.file), options, approver(vars(options), output))
    with (
        opened(make_engine, output, options, answering) as engine,
        engine.session(id=pending.session) as session,
        output.tools_aside(options.json),
    ):
        error = session._stale(pending)
        if error is None:
            result = session.execute(pending.call)
        else:
            result = ToolResult(pending.call.id, pending.tool, error=error)
    return written(result, options, output)


def _answering(pending: PendingApproval, file: Path, options: Namespace, others: Approver | None) -> Approver:
    """Return what answers the call that waits, and has its file removed before the call runs.

    Args:
        others: Who is asked about calls that this one makes: the answer to it is none to them.
    """

    def answer(request: ApprovalRequest) -> Approval | Awaitable[Approval]:
        if request.digest != pending.digest:
            return Approval.reject("nobody here can approve it") if others is None else others(request)
        given = _given(options) or at_terminal(request)
        if given.verdict in ("approve", "modify") or options.reject is not None:
            try:
                file.unlink()
            except FileNotFoundError:
                return Approval.reject("somebody else has answered it meanwhile")
        return given

    return answer


def _given(options: Namespace) -> Approval | None:
    """Return the answer that the words give, or None where somebody is to be asked."""
    if options.reject is not None:
        return Approval.reject(options.reject)
    return Approval.approve() if options.yes else None
