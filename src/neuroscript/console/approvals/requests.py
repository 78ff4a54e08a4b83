"""What waits for an approval in a console: live requests of its inbox, and suspended calls in its directory."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Any, Final, Literal

import attrs

from neuroscript.approval.pending_files import PendingFile, file_names, read_file
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.console.approvals.answers import VERBS
from neuroscript.console.console import Console
from neuroscript.console.inbox import MAX_ENDED, EndedRequest, Inbox, WaitingRequest, outcome_of
from neuroscript.engine.engine import Engine
from neuroscript.engine.suspended import find_problem, request_of
from neuroscript.errors import CallError
from neuroscript.io.text import utc_time

PAGE_ITEMS: Final = 20
"""Number of requests on one page."""

MAX_STATE_ITEMS: Final = 200
"""Maximum number of requests whose state is sent to a page."""

Kind = Literal["live", "stored"]


@attrs.frozen
class Key:
    """Which request it is.

    Attributes:
        kind: Whether it waits in the inbox or in a file.
        id: The id in the inbox, or the name of the file.
        created: When it was made, in seconds since 1970-01-01 UTC.
        tool: The tool, as far as it is known without reading the file.
    """

    kind: Kind
    id: str
    created: float
    tool: str

    @property
    def element(self) -> str:
        """The id of its element in a page."""
        return f"{self.kind}-{self.id}"


@attrs.frozen
class Entry:
    """A request that waits, as a page shows it.

    Attributes:
        key: Which one it is.
        request: The request, or None if a file cannot be used.
        digest: What an answer must state.
        problem: Why it cannot be approved, or ``""``.
        expires: When it expires, or None.
        reason: Why it was suspended, or ``""``.
    """

    key: Key
    request: ApprovalRequest | None
    digest: str = ""
    problem: str = ""
    expires: float | None = None
    reason: str = ""


def inbox_of(console: Console) -> Inbox | None:
    """Return the inbox of a console, or None."""
    return console.settings.inbox


def keys(console: Console) -> tuple[Key, ...]:
    """Return everything that waits, newest first, without reading files."""
    inbox, directory = inbox_of(console), console.settings.approvals
    live = [] if inbox is None else [live_key(each) for each in inbox.waiting]
    return tuple(sorted([*live, *_stored_keys(directory)], key=lambda key: -key.created))


def live_key(waiting: WaitingRequest) -> Key:
    """Return the key of a live request."""
    return Key("live", waiting.id, waiting.created, waiting.request.tool)


def _stored_keys(directory: Path | None) -> list[Key]:
    if directory is None:
        return []
    return [Key("stored", name, written, _tool_in(name)) for name, written in file_names(directory)]


def _tool_in(name: str) -> str:
    """Return the name of the tool in the name of a file, as ``FileApprover`` writes it."""
    return name.removesuffix(".json").rpartition("-")[0] or name


def waiting_count(console: Console) -> int:
    """Return how many requests wait."""
    inbox, directory = inbox_of(console), console.settings.approvals
    return (0 if inbox is None else len(inbox)) + (0 if directory is None else len(file_names(directory)))


def find_entry(console: Console, kind: str, id: str) -> Entry | None:
    """Return a request as a page shows it, or None if it does not wait."""
    if kind == "live":
        return live_entry(console, id)
    stored = stored_file(console, id) if kind == "stored" else None
    return None if stored is None else stored_entry(console.engine, stored)


def live_entry(console: Console, id: str) -> Entry | None:
    """Return a live request, or None if it does not wait."""
    inbox = inbox_of(console)
    found = None if inbox is None else inbox.find(id)
    if not isinstance(found, WaitingRequest):
        return None
    return Entry(live_key(found), found.request, found.request.digest, expires=found.expires)


def stored_file(console: Console, name: str) -> PendingFile | None:
    """Return the file of a suspended call, or None if it does not exist."""
    directory = console.settings.approvals
    return None if directory is None else read_file(directory, name)


def stored_entry(engine: Engine, stored: PendingFile) -> Entry:
    """Return a suspended call as it is now; its tool, the policy or the file may have changed."""
    key = Key("stored", stored.name, stored.written, _tool_in(stored.name))
    pending = stored.pending
    if pending is None:
        return Entry(key, None, problem=f"the file cannot be used: {stored.problem}")
    key = attrs.evolve(key, created=pending.created, tool=pending.tool)
    with engine.session(id=pending.session) as session:
        problem = find_problem(session, pending)
        request = None
        if not problem:
            try:
                request = request_of(session, pending)
            except CallError as error:
                problem = str(error)
    return Entry(key, request, pending.digest, problem, reason=pending.reason)


def record_answer(console: Console, found: Entry, approval: Approval, by: str) -> None:
    """Remember how a suspended call was answered, for the other users of this console."""
    request, key = found.request, found.key
    if request is None:
        return
    answered = console.answered
    answered[key.id] = EndedRequest(
        key.id,
        key.tool,
        request.session,
        found.digest,
        key.created,
        time(),
        outcome_of(approval),
        by,
        approval.reason,
    )
    while len(answered) > MAX_ENDED:
        del answered[next(iter(answered))]


def ended_requests(console: Console) -> tuple[tuple[Kind, EndedRequest], ...]:
    """Return how the last live and suspended calls ended, the last one first."""
    inbox = inbox_of(console)
    live: list[tuple[Kind, EndedRequest]] = [("live", each) for each in (() if inbox is None else inbox.ended)]
    stored: list[tuple[Kind, EndedRequest]] = [("stored", each) for each in tuple(console.answered.values())]
    return tuple(sorted([*live, *stored], key=lambda each: -each[1].ended))


def ended_text(ended: EndedRequest) -> str:
    """Return what happened to a request, as a sentence."""
    reason = f": {ended.reason}" if ended.reason else ""
    if ended.outcome in VERBS:
        unused = ". The call had ended before, so the answer was not used" if ended.is_unused else ""
        return f"{ended.by or 'A user'} {VERBS[ended.outcome]} at {utc_time(ended.ended)}{reason}{unused}."
    word = "expired" if ended.outcome == "expired" else "was withdrawn"
    return f"This request {word} at {utc_time(ended.ended)}{reason}."


def state(console: Console) -> dict[str, Any]:
    """Return what a page that is open must know: what waits, and how the last requests ended."""
    waiting = keys(console)
    ended = ended_requests(console)[:MAX_STATE_ITEMS]
    return {
        "count": len(waiting),
        "waiting": [{"id": key.element, "tool": key.tool} for key in waiting[:MAX_STATE_ITEMS]],
        "ended": {f"{kind}-{each.id}": ended_text(each) for kind, each in ended},
    }
