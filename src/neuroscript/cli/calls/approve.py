"""``neuroscript approve``: approve or reject a suspended call, and run it once if it is approved."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable
from pathlib import Path

from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.request import Approval, ApprovalRequest, Approver
from neuroscript.cli.calls.call import print_result
from neuroscript.cli.env.approvers import approver, ask_at_terminal
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.inputs import readable
from neuroscript.cli.terminal.output import Output
from neuroscript.runtime.interfaces import ToolResult


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Approve or reject a suspended call, run it if it is approved, and return its exit code.

    Raises:
        UsageError: The file cannot be read.
        SpecError: It is not a pending approval, or other users can access it.
    """
    with readable(options.file):
        pending = PendingApproval.load(options.file)
    answering = _answering(pending, Path(options.file), options, approver(vars(options), output))
    with (
        open_engine(make_engine, output, options, answering) as engine,
        engine.session(id=pending.session) as session,
        output.tools_aside(options.json),
    ):
        error = session._stale(pending)
        if error is None:
            result = session.execute(pending.call)
        else:
            result = ToolResult(pending.call.id, pending.tool, error=error)
    return print_result(result, options, output)


def _answering(pending: PendingApproval, file: Path, options: Namespace, others: Approver | None) -> Approver:
    """Return an approver that answers the suspended call and deletes its file before the call runs.

    Args:
        others: The approver of nested calls, which the answer to this call does not cover.
    """

    def answer(request: ApprovalRequest) -> Approval | Awaitable[Approval]:
        if request.digest != pending.digest:
            return Approval.reject("no approver is available here") if others is None else others(request)
        approval = _answer_from_options(options) or ask_at_terminal(request)
        if approval.verdict in ("approve", "modify") or options.reject is not None:
            try:
                file.unlink()
            except FileNotFoundError:
                return Approval.reject("it has already been answered")
        return approval

    return answer


def _answer_from_options(options: Namespace) -> Approval | None:
    """Return the answer in the options, or None if the user must be asked."""
    if options.reject is not None:
        return Approval.reject(options.reject)
    return Approval.approve() if options.yes else None
