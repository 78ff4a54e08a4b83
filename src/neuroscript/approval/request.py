"""Asking somebody whether a call may run, and what the answer may be.

An approver is a callable, sync or async: an `ApprovalRequest` in, an `Approval` out. Whatever else it does, the call is
refused. The answer is bound to the digest of the tool's definition and of the very values that were shown.

Source: contract section 5; reliability.md T20; peers.md row 1e.
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
    """A call that fits, that nothing has refused, and that somebody has to approve.

    Attributes:
        tool: The canonical name of the tool, from the registry.
        description: What the tool says it does.
        arguments: A copy of the exact values that the function would get, by name; of a variadic argument the list of
            its values. Of secret arguments too; `secrets` names them, and they are to be shown to nobody.
        secrets: The names of the secret arguments.
        needs: What the call does to the world, such as ``fs:write:data/a.txt``, each path in its one spelling.
        effects: What the tool says of its effects.
        session: The id of the session.
        depth: 1 for a call from outside.
        above: The tools of the calls that it stands in, the innermost first.
        fingerprint: SHA-256 of the tool's definition.
        policy: SHA-256 of what the host permits.
        digest: SHA-256 of the tool's definition and of the values; an answer is good for these alone.
        approver: Which approver is asked, where a policy is within others: 0 is that of the innermost one.
        injected: The names of further arguments, which the host gives in each call; nobody is shown their values.
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

    def __attrs_post_init__(self) -> None:
        texts = ("tool", "description", "session", "fingerprint", "policy", "digest")
        lists = ("secrets", "needs", "effects", "above", "injected")
        forms = {**dict.fromkeys(texts, STRING), **dict.fromkeys(lists, STRINGS)}
        require_fields("approval request", self, arguments=BY_NAME, depth=WHOLE, approver=WHOLE, **forms)


@attrs.frozen
class Approval:
    """The answer to an `ApprovalRequest`; made by its class methods.

    Attributes:
        verdict: What is to become of the call.
        reason: Why it is rejected; a sentence that the model may read.
        arguments: What it is to be called with instead, by name.
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
        """Let it run: this once, or whenever this session makes the very same call."""
        return cls("approve", for_session=for_session)

    @classmethod
    def modify(cls, arguments: Mapping[str, Any]) -> Approval:
        """Let it run with these arguments instead; they are bound again, and every gate sees them."""
        require("approval", arguments=(arguments, BY_NAME))
        return cls("modify", arguments=arguments)

    @classmethod
    def reject(cls, reason: str = "") -> Approval:
        """Refuse it; the model may go on and try something else."""
        return cls("reject", reason)

    @classmethod
    def stop(cls, reason: str = "") -> Approval:
        """Refuse it, and every further call of this session."""
        return cls("stop", reason)

    @classmethod
    def suspend(cls, reason: str = "") -> Approval:
        """Refuse it for now: the request was put aside, and whoever answers it later resumes the call."""
        return cls("suspend", reason)


Approver = Callable[[ApprovalRequest], Approval | Awaitable[Approval]]
