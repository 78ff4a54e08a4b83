"""Every way in which a host can refuse a tool."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs

from neuroscript.approval.request import Approval
from neuroscript.policy.limits import Limits


@attrs.frozen
class Refusal:
    """A reason to refuse a tool: what the tool needs, what the host permits, and the error code.

    Attributes:
        words: The same for the command line.
        lenient: The options that would let it run.
    """

    code: str
    permits: dict[str, Any] = attrs.field(factory=dict)
    needs: dict[str, Any] = attrs.field(factory=dict)
    words: tuple[str, ...] = ()
    lenient: tuple[str, ...] = ()


def rejecting(request: object) -> Approval:
    """Approve nothing."""
    return Approval.reject()


async def rejecting_later(request: object) -> Approval:
    """Approve nothing, after a delay."""
    await asyncio.sleep(0)
    return Approval.reject()


REFUSALS = {
    "denied": Refusal("policy.denied", {"deny": ("g.t",)}, words=("--deny", "g.t")),
    "not allowed": Refusal("policy.not_allowed", {"allow": ("g.o*",)}, words=("--allow", "g.o*")),
    "not trusted": Refusal("policy.trust", {}, {"requires_trust": True}, lenient=("--trusted",)),
    "without a grant": Refusal(
        "policy.capability", {"grants": ("fs:read:*",)}, {"capabilities": ("fs:write:data/**",)},
        ("--grant", "fs:read:*"), ("--grant", "fs:write:data/**"),
    ),
    "unapproved": Refusal("policy.approval", {"preapproved": ("g.other",)}, {"requires_approval": True}),
    "rejected": Refusal("policy.rejected", {"approver": rejecting}, {"requires_approval": True}),
    "rejected later": Refusal("policy.rejected", {"approver": rejecting_later}, {"requires_approval": True}),
    "used up": Refusal("limit.tool_calls", {"limits": Limits(tool_calls={"g.t": 0})}),
}  # fmt: skip
"""Each refuses the tool ``g.t`` and no other."""
