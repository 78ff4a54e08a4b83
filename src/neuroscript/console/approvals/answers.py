"""Answers to requests: what a submitted form says, and whether changed arguments are valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.plain_data import from_plain
from neuroscript.console.forms.reader import parse_shallow_json
from neuroscript.engine.session import Session
from neuroscript.io.text import NotJSON, escape
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.interfaces import ToolCall

MAX_REASON_CHARS: Final = 500
"""Maximum number of characters of a reason."""

VERBS: Final[Mapping[str, str]] = {
    "approved": "approved this call",
    "approved_for_session": "approved this call, for the whole session",
    "modified": "approved this call with other arguments",
    "rejected": "rejected this call",
    "stopped": "rejected this call, and stopped its session",
}
"""What a user did, by outcome."""


class InvalidAnswer(Exception):
    """A form that is not an answer; its text says why."""


@attrs.frozen
class Validation:
    """Whether changed arguments are valid.

    Attributes:
        problem: What is wrong, or ``""``.
        changed: The names of the arguments that differ from those of the request.
    """

    problem: str = ""
    changed: tuple[str, ...] = ()


def read_answer(form: Mapping[str, Any], request: ApprovalRequest) -> Approval:
    """Return the answer in a form.

    Raises:
        InvalidAnswer: The form is not an answer to this request.
    """
    reason = escape(str(form.get("reason", "")).strip())[:MAX_REASON_CHARS]
    match form.get("verdict"):
        case "approve":
            return Approval.approve()
        case "session" if not request.flows:
            return Approval.approve(for_session=True)
        case "modify":
            return Approval.modify(read_arguments(str(form.get("arguments", "")), request))
        case "reject":
            return Approval.reject(reason)
        case "stop":
            return Approval.stop(reason)
    raise InvalidAnswer("The form contains no answer to this call.")


def read_arguments(text: str, request: ApprovalRequest) -> dict[str, Any]:
    """Return the arguments that a user has written; secret ones that are left out stay unchanged.

    Raises:
        InvalidAnswer: The text is not a JSON object.
    """
    try:
        data = parse_shallow_json(text)
    except NotJSON as error:
        raise InvalidAnswer(f"The arguments are not valid: {error.hint}.") from None
    if type(data) is not dict:
        raise InvalidAnswer("The arguments are not valid: expected a JSON object.")
    return {**secret_arguments(request), **from_plain(data)}


def secret_arguments(request: ApprovalRequest) -> dict[str, Any]:
    """Return the arguments of a request that no page shows."""
    return {name: value for name, value in request.arguments.items() if name in request.secrets}


def validate(session: Session, request: ApprovalRequest, text: str) -> Validation:
    """Return whether the arguments that a user has written are valid, and permitted by the policy of a session."""
    try:
        arguments = read_arguments(text, request)
    except InvalidAnswer as error:
        return Validation(str(error))
    return check_arguments(session, request, arguments)


def check_arguments(session: Session, request: ApprovalRequest, arguments: Mapping[str, Any]) -> Validation:
    """Return whether arguments by name are valid, and permitted by the policy of a session."""
    before = request.arguments
    names = (*arguments, *(name for name in before if name not in arguments))
    changed = tuple(
        name
        for name in names
        if name not in arguments or name not in before or not _is_same(arguments[name], before[name])
    )
    decision = session.check([ToolCall(request.tool, dict(arguments))])[0]
    return Validation(_problem(decision), changed)


def _problem(decision: Decision) -> str:
    return "" if decision.allowed else decision.text or decision.code


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
