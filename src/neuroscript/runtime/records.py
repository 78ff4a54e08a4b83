"""The facts of calls that hooks, approvers and audits share; no value of a call is among those of a record.

Source: contract section 5; reliability.md part 4.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol

import attrs

from neuroscript.coercion.parameters import FLAG, STRING, STRINGS, require_fields
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.binding import Repair

Kind = Literal["intent", "outcome", "refused"]
"""What a record tells: a call begins, it has ended, or it never began."""

CLOSED: Final = "stream.closed"
"""The code of a stream that its reader closed before its end."""


@attrs.frozen
class PendingCall:
    """A call that fits and that nothing has refused so far, for hooks that may refuse it.

    Attributes:
        tool: The canonical name of the tool.
        arguments: A copy of the very values that the tool's function would get, by name; of a variadic argument the
            list of its values.
        needs: What the call needs, filled from these values.
        policy: What the tool asks for.
        session: The id of the session.
        depth: 1 for a call from outside.
        above: The tools of the calls that it stands in, the innermost first.
    """

    tool: str
    arguments: Mapping[str, Any]
    needs: tuple[Capability, ...]
    policy: ToolPolicy
    session: str
    depth: int
    above: tuple[str, ...] = ()


@attrs.frozen
class ToolFacts:
    """What all records of one tool share.

    Attributes:
        tool: The canonical name.
        fingerprint: SHA-256 of its whole spec and policy, in hexadecimal digits; ``""`` where there is no such tool.
        distribution: Who brings it, such as ``neuroscript-std``, or what its host calls it.
        version: Of the distribution, or ``""``.
        rule: The pattern that allows it, or what refused it before its arguments were looked at.
        secret: Whether one of its arguments is secret.
        effects: What it does beyond giving its result.
        injected: The names of further arguments, which the host gives in each call.
    """

    tool: str
    fingerprint: str = ""
    distribution: str = ""
    version: str = ""
    rule: str = ""
    secret: bool = False
    effects: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        texts = dict.fromkeys(("tool", "fingerprint", "distribution", "version", "rule"), STRING)
        require_fields("tool facts", self, secret=FLAG, effects=STRINGS, injected=STRINGS, **texts)


class CallRecord(NamedTuple):
    """What is told of one call, when it begins, when it has ended, or when it was refused.

    A plain tuple, for one is made in every call that somebody watches.

    Attributes:
        kind: What it tells.
        about: What all records of the tool share.
        run: The id of the engine, another one at each start.
        session: The id of the session.
        call: The number of the call within the run, from 1.
        parent: The number of the call that it stands in, or 0.
        depth: 1 for a call from outside.
        policy: The digest of what the host permits, SHA-256 in hexadecimal digits.
        time: When the call began, in seconds since 1970-01-01 UTC by the host's clock.
        needs: What the call needs, such as ``fs:read:data/a.txt``; of any scope but a path only the resource and verb.
        types: The exact type of each argument, in order; none where they did not fit.
        sizes: The length of each text, of bytes and of each container, and 0 for anything else.
        digest: A keyed digest of the arguments (BLAKE2b, 16 bytes), none where they did not fit.
        repairs: Where a value was converted, from which type and to which.
        code: ``""`` while it runs, ``"ok"``, `CLOSED`, or the code of its error.
        rule: What decided: the pattern that allows the tool, or what refused the call.
        spent: What the call has used of the limits, by name; of a stream also its own ``items`` and ``result_bytes``.
        seconds: How long it took.
    """

    kind: Kind
    about: ToolFacts
    run: str
    session: str
    call: int
    parent: int
    depth: int
    policy: str
    time: float
    needs: tuple[str, ...]
    types: tuple[type, ...]
    sizes: tuple[int, ...]
    digest: bytes
    repairs: tuple[Repair, ...]
    code: str
    rule: str
    spent: Mapping[str, Any]
    seconds: float

    @property
    def tool(self) -> str:
        """The canonical name of the tool."""
        return self.about.tool


class AuditSink(Protocol):
    """Where records of calls are kept. What a method raises is its failure, and what follows is the engine's affair.

    A sink with an attribute ``intents`` that is False is not told when a call begins. One with an attribute
    ``digest_key``, 32 bytes, has the digests of arguments made under it. Threads may write at once.
    """

    def write(self, record: CallRecord, /) -> None:
        """Keep a record; when this returns, the record is as safe as this sink makes it."""

    def close(self) -> None:
        """Write out whatever is left; no record comes after."""
