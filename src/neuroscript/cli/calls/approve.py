"""``neuroscript approve``: approve or reject a suspended call, and run it once if it is approved."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable

from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.pending_files import claim
from neuroscript.approval.request import Approval, ApprovalRequest, Approver
from neuroscript.cli.calls.call import print_result
from neuroscript.cli.env.approvers import approver, ask_at_terminal
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.terminal.inputs import readable
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.session import Session
from neuroscript.engine.suspended import request_of
from neuroscript.errors import CallError
from neuroscript.runtime.interfaces import ToolResult


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Approve or reject a suspended call, run it if it is approved, and return its exit code.

    Raises:
        UsageError: The file cannot be read.
        SpecError: It is not a pending approval, or other users can access it.
    """
    with readable(options.file):
        pending = PendingApproval.load(options.file)
    answering = _answering(pending, options, approver(vars(options), output))
    with (
        open_engine(make_engine, output, options, answering) as engine,
        engine.session(id=pending.session) as session,
        output.tools_aside(options.json),
    ):
        error = session._stale(pending)
        if error is not None:
            result = ToolResult(pending.call.id, pending.tool, error=error)
        elif pending.flows:
            result = _resumed(session, pending, options)
        else:
            result = session.execute(pending.call)
    return print_result(result, options, output)


def _resumed(session: Session, pending: PendingApproval, options: Namespace) -> ToolResult:
    """Ask about a call that flow rules suspended, and run it; this session has no labels, so it would not ask."""
    try:
        request = request_of(session, pending)
    except CallError as error:
        return ToolResult(pending.call.id, pending.tool, error=error)
    return session.resume(pending, _answer(request, options))


def _answering(pending: PendingApproval, options: Namespace, others: Approver | None) -> Approver:
    """Return an approver that answers the suspended call, and deletes its file before the call runs.

    Args:
        others: The approver of nested calls, which the answer to this call does not cover.
    """

    def answer(request: ApprovalRequest) -> Approval | Awaitable[Approval]:
        if request.digest != pending.digest:
            return Approval.reject("no approver is available here") if others is None else others(request)
        return _answer(request, options)

    return answer


def _answer(request: ApprovalRequest, options: Namespace) -> Approval:
    approval = _answer_from_options(options) or ask_at_terminal(request)
    is_final = approval.verdict in ("approve", "modify") or options.reject is not None
    if is_final and not claim(options.file):
        return Approval.reject("it has already been answered")
    return approval


def _answer_from_options(options: Namespace) -> Approval | None:
    """Return the answer in the options, or None if the user must be asked."""
    if options.reject is not None:
        return Approval.reject(options.reject)
    return Approval.approve() if options.yes else None
