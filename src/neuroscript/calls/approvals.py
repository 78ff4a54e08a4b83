"""Approvals within the pipeline: which approvers are asked, with which request, and what each answer does.

The steps of a call include these: the driver runs each approver. Only an explicit approval lets a call run; anything
else that an approver does refuses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, NoReturn

import attrs

from neuroscript.approval.request import Approval, ApprovalRequest, Approver
from neuroscript.calls.steps import GRACE_SECONDS, Caller, CallerGone, CallFrame, Invocation, RunMode
from neuroscript.coercion.values import copy_exact
from neuroscript.errors import ArgumentError, CallError, PolicyError, Retry, is_interrupt
from neuroscript.policy.capabilities import normal
from neuroscript.policy.execution_policy import ExecutionPolicy, approver_key
from neuroscript.policy.refusals import check_failed_error
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.runtime.masking import mask_secrets
from neuroscript.spec.binding import bind_arguments
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.fingerprints import call_digest, fingerprint, policy_digest
from neuroscript.tools.tool import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.approval.pending import PendingApproval
    from neuroscript.calls.pipeline import CallPipeline

MAX_MODIFICATIONS: Final = 16
"""Maximum number of times that approvers may modify the arguments of one call before it is refused."""

POLL_SECONDS: Final = 0.25
"""Seconds between two checks whether the call of an async approver can still run."""

GONE: Final = object()
"""Stands for the answer of an approver whose call can no longer run."""

ApprovedCall = tuple[tuple[Any, ...], CallFrame]
"""The exact values of a call, and the frame in which the tool may do what it needs for them."""

ApprovalLoop = Generator[Invocation, Any, Any]


def ask_approvers(
    pipeline: CallPipeline, values: tuple[Any, ...], frame: CallFrame
) -> Generator[Invocation, Any, ApprovedCall]:
    """Ask each approver of a tool, and return the values and the frame with which the call may run.

    Yields:
        Each approver, to be run.

    Raises:
        PolicyError: An approver does not approve.
        ArgumentError: An approver changed the arguments to invalid ones.
    """
    content: Approver | None = None  # the approver that wrote the current arguments
    for _ in range(MAX_MODIFICATIONS):
        approvers, flows = pipeline.asked(values, frame)
        for index, approver in enumerate(approvers):
            if approver is content:
                continue
            request = _request(pipeline.tool, pipeline.policy, values, frame, index, flows)
            approval = approver_key(approver), request.digest
            if not flows and approval in frame.session._approved:
                continue
            stored = frame.session._answers.pop((index, request.digest), None)
            if stored is not None and set(stored[1]).issuperset(flows):
                answer = stored[0]
            else:
                answer = yield from _answer(pipeline, approver, request, values, frame)
            if frame.session.is_closed:  # while the approver was asked
                raise pipeline.refused(frame, _closed_error(pipeline, frame), values)
            if answer.verdict == "modify":
                values, frame = pipeline.rebind(answer.arguments, frame, values)
                content = approver
                break
            if answer.verdict != "approve":
                _refuse(pipeline, answer, values, frame)
            if answer.for_session and not flows:  # a flow is approved for one call alone
                frame.session._approved[approval] = approver
        else:
            return values, frame
    raise pipeline.refused(frame, check_failed_error(pipeline.tool.name, "approver", RecursionError()), values)


def check_not_stale(session: Caller, pipeline: CallPipeline, pending: PendingApproval) -> CallError | None:
    """Return why the answer to a suspended call is no longer valid, or None.

    Args:
        pipeline: The pipeline of its tool, as it is now.
    """
    tool = pipeline.tool
    definition = fingerprint(tool)
    try:
        values = bind_arguments(tool.spec, pipeline.coercion, pending.call.arguments, by_name=True)
    except ArgumentError as error:
        return error
    changed = pending.agrees(definition, policy_digest(session.policy), session.id, call_digest(definition, values))
    if not changed:
        return None
    text = f"needs a new approval because these have changed: {', '.join(changed)}"
    frame = CallFrame(session, tool.name)
    refusal = PolicyError(text, tool=tool.name, code="policy.stale", need="approval", rule="approver")
    return session._refused(frame, refusal, values)


def pending_request(session: Caller, pipeline: CallPipeline, pending: PendingApproval) -> ApprovalRequest:
    """Return the request of a suspended call, with what it would send where when it was suspended.

    Args:
        pipeline: The pipeline of its tool, as it is now.

    Raises:
        CallError: The call would be refused now.
    """
    frame = CallFrame(session, pipeline.tool.name)
    values = pipeline.bind(frame, pending.call.arguments, by_name=True)
    frame = pipeline._fit(values, frame)
    return _request(pipeline.tool, pipeline.policy, values, frame, pending.approver, pending.flows)


def settle_flows(
    session: Caller, pipeline: CallPipeline, pending: PendingApproval, answer: Approval
) -> tuple[ToolCall, str]:
    """Return the call that an answer permits, which rules about information flow had suspended, and its digest.

    The session may have lost the labels since, and would then ask nobody. So a refusal takes effect here, and changed
    arguments are those of the call.

    Raises:
        PolicyError: The answer refuses the call.
        ArgumentError: The changed arguments are invalid.
    """
    arguments = pending.call.arguments if answer.arguments is None else answer.arguments
    frame = CallFrame(session, pipeline.tool.name)
    values = pipeline.bind(frame, arguments, by_name=True)
    if answer.verdict not in ("approve", "modify"):
        _refuse(pipeline, answer, values, frame)
    return ToolCall(pending.tool, arguments, id=pending.call.id), call_digest(fingerprint(pipeline.tool), values)


def _answer(
    pipeline: CallPipeline, approver: Approver, request: ApprovalRequest, values: tuple[Any, ...], frame: CallFrame
) -> ApprovalLoop:
    """Run an approver, and return its answer."""
    asking, run_mode = _guarded(approver, frame)
    try:
        answer = yield Invocation(pipeline.tool.name, asking, (request,), run_mode)
        if inspect.isawaitable(answer):
            answer = yield Invocation(pipeline.tool.name, _awaited, (answer, frame), "coroutine")
    except CallerGone as end:
        raise end.error from None
    except GeneratorExit:  # the driver is gone, so nothing more can run
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        answer = _Failed(error)
    if answer is GONE:
        raise pipeline.refused(frame, _closed_error(pipeline, frame), values)
    if type(answer) is Approval and answer.verdict in ("approve", "modify", *REFUSALS):
        return answer
    why = answer.error if type(answer) is _Failed else TypeError()
    raise pipeline.refused(frame, check_failed_error(pipeline.tool.name, "approver", why), values) from why


@attrs.frozen(eq=False, repr=False)
class _Failed:
    """An exception of an approver, returned as a value so that it does not end anything else."""

    error: BaseException


def _closed_error(pipeline: CallPipeline, frame: CallFrame) -> CallError:
    """Return the error of a call whose session was closed or stopped, or that was abandoned, before its approval."""
    if frame.session._is_stopped:
        text = "the session was stopped by an approver"
        return PolicyError(text, tool=pipeline.tool.name, code="policy.stopped", rule="approver", retry="never")
    if frame.session.is_closed:
        text = "was not approved before its session was closed"
        return CallError(text, tool=pipeline.tool.name, code="engine.closed")
    return CallError("was not approved before its call ended", tool=pipeline.tool.name, code="runtime.closed")


def _guarded(approver: Approver, frame: CallFrame) -> tuple[Callable[..., Any], RunMode]:
    """Return an approver that raises nothing but an interrupt, and how it is run."""
    if inspect.iscoroutinefunction(approver) or inspect.iscoroutinefunction(type(approver).__call__):
        return (lambda request: _awaited(approver(request), frame)), "coroutine"

    def asking(request: ApprovalRequest) -> Any:
        try:
            return approver(request)
        except BaseException as error:
            if is_interrupt(error):
                raise
            return _Failed(error)

    return asking, "waits"


async def _awaited(answer: Any, frame: CallFrame) -> Any:
    """Return the answer of an approver, or `GONE` if the call can no longer run; the approver is cancelled then.

    Nothing notifies an approver when a session closes or an enclosing call ends, so this looks regularly.
    """
    import asyncio

    asking = asyncio.ensure_future(_settled(answer))
    try:
        while not (await asyncio.wait({asking}, timeout=POLL_SECONDS))[0]:
            if frame.session.is_closed or frame.is_abandoned:
                return GONE
        return asking.result()
    finally:
        if not asking.done():
            asking.cancel()
            await asyncio.wait({asking}, timeout=GRACE_SECONDS)


async def _settled(answer: Any) -> Any:
    from asyncio import CancelledError

    try:
        return await answer
    except CancelledError:  # the driver finds out who cancelled
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        return _Failed(error)


def _request(
    tool: ToolImplementation,
    policy: ExecutionPolicy,
    values: tuple[Any, ...],
    frame: CallFrame,
    approver: int,
    flows: tuple[str, ...],
) -> ApprovalRequest:
    definition = fingerprint(tool)
    return ApprovalRequest(
        tool.name,
        tool.spec.description,
        copy_exact(tool.spec.by_name(values)),
        _secrets(tool.spec, values, frame),
        _needs(frame),
        tool.policy.effects,
        frame.session.id,
        frame.depth,
        tuple(above.tool for above in frame.chain())[1:],
        definition,
        policy_digest(policy),
        call_digest(definition, values),
        approver,
        tuple(tool.injected),
        flows,
    )


def _needs(frame: CallFrame) -> tuple[str, ...]:
    """Return what a call needs, each path normalized, with secrets replaced."""
    secrets = frame.session.secrets
    texts = (str(normal(need)) for need in frame.needs)
    return tuple(texts if secrets is None else map(secrets.text, texts))


def _secrets(spec: ToolSpec, values: tuple[Any, ...], frame: CallFrame) -> frozenset[str]:
    """Return the names of the arguments that must not be shown: they are secret, or contain a secret."""
    secrets = frame.session.secrets
    if secrets is None:
        return frozenset()
    named, shown = spec.by_name(values), mask_secrets(spec, values)
    return frozenset(name for name in named if secrets.plain(shown[name]) != named[name])


REFUSALS: Final[dict[str, tuple[str, str, Retry]]] = {
    "reject": ("was not approved", "policy.rejected", "never"),
    "stop": ("was not approved, and the session was stopped", "policy.stopped", "never"),
    "suspend": ("is waiting for approval", "policy.pending", "later"),
}
"""For each answer that refuses a call: the sentence, the code and the retry of its error."""


def _refuse(pipeline: CallPipeline, answer: Approval, values: tuple[Any, ...], frame: CallFrame) -> NoReturn:
    text, code, retry = REFUSALS[answer.verdict]
    if answer.verdict == "stop":
        frame.session._stop()
    said = f"{text}: {answer.reason}" if answer.reason else text
    raise pipeline.refused(
        frame,
        PolicyError(said, tool=pipeline.tool.name, code=code, need="approval", rule="approver", retry=retry),
        values,
    )
