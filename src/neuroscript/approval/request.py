"""Approval requests and answers.

An approver is a callable, sync or async, that takes an `ApprovalRequest` and returns an `Approval`. Anything else that
it does refuses the call. The answer is valid only for the tool definition and the values that were shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, get_args

import attrs

from neuroscript.coercion.parameters import (
    BY_NAME,
    FLAG,
    STRING,
    STRINGS,
    WHOLE,
    one_of,
    optional,
    require,
    require_fields,
)

Verdict = Literal["approve", "modify", "reject", "stop", "suspend"]

VERDICT: Final = one_of(*get_args(Verdict))


@attrs.frozen
class ApprovalRequest:
    """A call that needs an approval. Its arguments are valid, and no other check has refused it.

    Attributes:
        tool: The canonical name of the tool, from the registry.
        description: The description of the tool.
        arguments: A copy of the exact values that the function would receive, by name; a variadic argument is a list.
            Secret arguments are included; do not show those that `secrets` names.
        secrets: The names of the secret arguments.
        needs: What the call needs, such as ``fs:write:data/a.txt``, each path normalized.
        effects: The effects that the tool declares.
        session: The id of the session.
        depth: 1 for a call from outside, plus 1 for each level of nesting.
        above: The tools of the enclosing calls, innermost first.
        fingerprint: SHA-256 of the tool's definition.
        policy: SHA-256 of what the host permits.
        digest: SHA-256 of the tool's definition and of the values. An answer is valid only for these.
        approver: Which approver is asked, if policies are nested: 0 is the approver of the innermost one.
        injected: The names of further arguments that the host provides in each call; their values are not shown.
        flows: What the call would send where, if rules about information flow require the approval, such as ``sends
            untrusted data from web.get (call 3) to outside``. Such an approval is for this call alone.
    """

    tool: str
    description: str
    arguments: Mapping[str, Any] = attrs.field(repr=False)
    secrets: frozenset[str]
    needs: tuple[str, ...]
    effects: tuple[str, ...]
    session: str
    depth: int
    above: tuple[str, ...]
    fingerprint: str
    policy: str
    digest: str
    approver: int = 0
    injected: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        texts = ("tool", "description", "session", "fingerprint", "policy", "digest")
        lists = ("secrets", "needs", "effects", "above", "injected", "flows")
        forms = {**dict.fromkeys(texts, STRING), **dict.fromkeys(lists, STRINGS)}
        require_fields("approval request", self, arguments=BY_NAME, depth=WHOLE, approver=WHOLE, **forms)


@attrs.frozen
class Approval:
    """The answer to an `ApprovalRequest`. Create it with one of the class methods.

    Attributes:
        verdict: The decision.
        reason: Why the call is rejected; the model may read it.
        arguments: The arguments to use instead, by name.
        for_session: Whether the same call of the same session is approved from now on.
    """

    verdict: Verdict
    reason: str = ""
    arguments: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    for_session: bool = False

    def __attrs_post_init__(self) -> None:
        require_fields("approval", self, verdict=VERDICT, reason=STRING, arguments=optional(BY_NAME), for_session=FLAG)

    @classmethod
    def approve(cls, *, for_session: bool = False) -> Approval:
        """Approve the call once, or every time this session makes exactly the same call."""
        return cls("approve", for_session=for_session)

    @classmethod
    def modify(cls, arguments: Mapping[str, Any]) -> Approval:
        """Approve the call with these arguments instead, which are bound again and pass every check."""
        require("approval", arguments=(arguments, BY_NAME))
        return cls("modify", arguments=arguments)

    @classmethod
    def reject(cls, reason: str = "") -> Approval:
        """Refuse the call; the model may continue and try something else."""
        return cls("reject", reason)

    @classmethod
    def stop(cls, reason: str = "") -> Approval:
        """Refuse the call, and every further call of this session."""
        return cls("stop", reason)

    @classmethod
    def suspend(cls, reason: str = "") -> Approval:
        """Suspend the call: the request was stored, and the call can be resumed with an answer later."""
        return cls("suspend", reason)


Approver = Callable[[ApprovalRequest], Approval | Awaitable[Approval]]
