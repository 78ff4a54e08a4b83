"""Records of calls that hooks, approvers and audit sinks share. A call record contains no argument values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol

import attrs

from neuroscript.coercion.parameters import FLAG, STRING, STRINGS, require_fields
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.binding import Repair

Kind = Literal["intent", "outcome", "refused"]
"""The event that is recorded: a call begins, it has ended, or it was refused before it began."""

CLOSED: Final = "stream.closed"
"""The code of a stream that its reader closed early."""


@attrs.frozen
class PendingCall:
    """A call with valid arguments that no check has refused so far, for hooks that may refuse it.

    Attributes:
        tool: The canonical name of the tool.
        arguments: A copy of the values that the tool's function would receive, by name; for a variadic argument the
            list of its values.
        needs: What the call needs, filled in from these values.
        policy: The policy of the tool.
        session: The id of the session.
        depth: 1 for a call from outside.
        above: The tools of the enclosing calls, innermost first.
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
    """Data that all records of one tool share.

    Attributes:
        tool: The canonical name.
        fingerprint: SHA-256 of its whole spec and policy, in hexadecimal digits; ``""`` if the tool is unknown.
        distribution: The distribution that provides it, such as ``neuroscript-std``, or the host's name for it.
        version: The version of the distribution, or ``""``.
        rule: The pattern that allows it, or what refused it before its arguments were examined.
        secret: Whether one of its arguments is secret.
        effects: Its side effects.
        injected: The names of further arguments, which the host supplies in each call.
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
    """One event of a call: its start, its end, or its refusal.

    It is a plain tuple because one is created in every observed call.

    Attributes:
        kind: The event.
        about: The data that all records of the tool share.
        run: The id of the engine, different at each start.
        session: The id of the session.
        call: The number of the call within the run, from 1.
        parent: The number of the enclosing call, or 0.
        depth: 1 for a call from outside.
        policy: The digest of the host's policy, SHA-256 in hexadecimal digits.
        time: When the call began, in seconds since 1970-01-01 UTC by the host's clock.
        needs: What the call needs, such as ``fs:read:data/a.txt``. Scopes other than paths are omitted.
        types: The exact type of each argument, in order; empty if the arguments are invalid.
        sizes: The length of each string, bytes and container, and 0 for other values.
        digest: A keyed digest of the arguments (BLAKE2b, 16 bytes); empty if the arguments are invalid.
        repairs: For each converted value, where it was, its original type and its new type.
        code: ``""`` while it runs, ``"ok"``, `CLOSED`, or the code of its error.
        rule: What decided: the pattern that allows the tool, or what refused the call.
        spent: What the call has used of the limits, by name; for a stream also its ``items`` and ``result_bytes``.
        seconds: The duration.
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

    @property
    def labels(self) -> tuple[str, ...]:
        """What the arguments of the call carry, or its result once it has ended; empty without flow rules."""
        return ()


class LabelledCallRecord(CallRecord):
    """The record of a call under flow rules."""

    _labels: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What the arguments of the call carry, or its result once it has ended."""
        return self._labels


def labelled_record(record: CallRecord, labels: tuple[str, ...]) -> CallRecord:
    """Return a record with labels; a record without any has one field less to create."""
    if not labels:
        return record
    labelled = LabelledCallRecord(*record)
    labelled._labels = labels
    return labelled


class AuditSink(Protocol):
    """Stores records of calls. An exception from a method counts as a failure of the sink; the engine handles it.

    A sink whose attribute ``intents`` is False receives no records of calls that begin. A sink with an attribute
    ``digest_key``, 32 bytes, determines the key of argument digests. Several threads may write at once.
    """

    def write(self, record: CallRecord, /) -> None:
        """Store a record. When this returns, the record is as durable as this sink makes it."""

    def close(self) -> None:
        """Flush and close the sink; no record follows."""
