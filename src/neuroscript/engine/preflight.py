"""Decisions about calls before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from neuroscript.calls.steps import CallFrame
from neuroscript.errors import CallError, LimitError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import from_wire
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.runtime.redacting_proxies import redacted_decision
from neuroscript.spec.binding import bind_arguments, parse_arguments
from neuroscript.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from neuroscript.calls.pipeline import CallPipeline
    from neuroscript.engine.entries import SessionTool
    from neuroscript.engine.session import Session
    from neuroscript.runtime.redaction import Redactor


def decide(session: Session, call: ToolCall) -> Decision:
    """Return whether a session would let a call run, and what decides that; all checks but the approvers are made."""
    decision = _decided(session, call)
    return decision if session.secrets is None else redacted_decision(session.secrets, decision)


def bind_call(session: Session, call: ToolCall) -> tuple[SessionTool, tuple[Any, ...]]:
    """Return the tool of a call as a session knows it, and the exact values that it would receive.

    Raises:
        CallError: No such tool may be called, or the arguments are invalid.
    """
    name = from_wire(call.name) if isinstance(call.name, str) else call.name
    known = session._resolved(name if isinstance(name, str) else None, name)
    spec = known.pipeline.tool.spec
    coercion = known.pipeline.coercion
    given = parse_arguments(call.arguments, spec.full_name, coercion.sizes)
    return known, bind_arguments(spec, coercion, given, by_name=isinstance(given, dict))


def _decided(session: Session, call: ToolCall) -> Decision:
    try:
        known, values = bind_call(session, call)
    except CallError as error:
        return Decision.of(error, quote_untrusted(str(call.name)))
    line = known.pipeline
    line.register_secrets(known.frame, values)
    hidden = {*line.tool.spec.secret_names, *_with_secrets(session.secrets, line.tool.spec, values)}
    decision = session.policy.check(line.tool, values, hidden=hidden)
    if decision.allowed:
        refusal = _refused_by_hooks(session, line, values)
        if refusal is not None:
            return Decision.of(refusal, line.tool.name)
        spent = _spent(session, line.tool.name)
        if spent is not None:
            return attrs.evolve(Decision.of(spent, line.tool.name), rule="limits")
        if line.tracks_flow:
            return _with_flows(session, line, values, decision)
    return decision


def _with_flows(session: Session, line: CallPipeline, values: tuple[Any, ...], decision: Decision) -> Decision:
    """Return a decision with what the rules about information flow say."""
    frame = CallFrame(session, line.tool.name, needs=_needs(line, values))
    refusal, flows = line.flows(frame, values)
    if refusal is not None:
        return Decision.of(refusal, line.tool.name)
    return attrs.evolve(decision, needs_approval=decision.needs_approval or bool(flows), flows=flows)


def _needs(line: CallPipeline, values: tuple[Any, ...]) -> tuple[Capability, ...]:
    return tuple(need for template in line.tool.templates for need in template.fill(values))


def _with_secrets(secrets: Redactor | None, spec: ToolSpec, values: tuple[Any, ...]) -> Iterator[str]:
    """Yield the names of arguments that contain a secret of the session."""
    if secrets is not None:
        yield from (name for name, value in spec.by_name(values).items() if secrets.plain(value) is not value)


def _refused_by_hooks(session: Session, line: CallPipeline, values: tuple[Any, ...]) -> CallError | None:
    if line.gate is None or not line.gate.decides:
        return None
    return line.gate.refusal(CallFrame(session, line.tool.name, needs=_needs(line, values)), values)


def _spent(session: Session, tool: str) -> LimitError | None:
    """Return the limit that permits no further call of a tool, or None."""
    return None if session.ledger is None else session.ledger.peek(tool)
