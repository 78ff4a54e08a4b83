"""Suspended calls of a session: what has changed since, the request that an answer is about, and the resumed call."""

from __future__ import annotations

from collections.abc import Callable

from neuroscript.approval.pending import PendingApproval
from neuroscript.approval.pending_files import PendingFile, claim
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.calls.approvals import pending_request
from neuroscript.engine.preflight import bind_call
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, CallError
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.tools.fingerprints import call_digest, fingerprint, policy_digest


def find_problem(session: Session, pending: PendingApproval) -> str:
    """Return why a suspended call cannot be approved now, or ``""``. Nothing is recorded or run.

    Args:
        session: A session with the id of the suspended call.
    """
    try:
        known, values = bind_call(session, pending.call)
    except CallError as error:
        return str(error)
    definition = fingerprint(known.pipeline.tool)
    digest = call_digest(definition, values)
    changed = pending.agrees(definition, policy_digest(session.policy), session.id, digest)
    if changed:
        return f"needs a new approval because these have changed: {', '.join(changed)}"
    decision = session.check([pending.call])[0]
    return "" if decision.allowed else decision.text or decision.code


def request_of(session: Session, pending: PendingApproval) -> ApprovalRequest:
    """Return the request of a suspended call as it is now.

    Args:
        session: A session with the id of the suspended call.

    Raises:
        CallError: The tool, the policy, the session or the values have changed, or the call would be refused now.
    """
    error = session._stale(pending)
    if error is not None:
        raise error
    return pending_request(session, session._entry(pending.tool).pipeline, pending)


def resume_once(
    session: Session, stored: PendingFile, answer: Approval, on_claim: Callable[[], object] | None = None
) -> ToolResult | None:
    """Run a suspended call with an answer, or return None if another user or process has answered it.

    The file is removed before the call runs. It is written again if the answer turns out to be invalid, so that the
    call can still be answered.

    Args:
        session: A session with the id of the suspended call.
        stored: The file, with a call.
        on_claim: Called when this answer is the first one, before the call runs.
    """
    pending = stored.pending
    if pending is None or not claim(stored.path):
        return None
    if on_claim is not None:
        on_claim()
    result = session.resume(pending, answer)
    is_stale = result.error is not None and result.error.code == "policy.stale"
    if is_stale or (answer.verdict == "modify" and isinstance(result.error, ArgumentError)):
        pending.save(stored.path)
    return result
