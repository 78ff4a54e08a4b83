"""What the pages of approvals have in common: cards, and pages about requests that cannot be answered."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.approvals.cards import arguments_text, card_sections
from neuroscript.console.approvals.requests import Entry, ended_text, inbox_of
from neuroscript.console.console import Console
from neuroscript.console.inbox import EndedRequest
from neuroscript.console.rendering import message, not_found, page
from neuroscript.console.routing import console_of

GONE: Final = "This call does not wait for an approval. It was answered or withdrawn, or the console was started again."
OTHER_CALL: Final = "The form shows another call than the one that waits."


def card_context(found: Entry) -> dict[str, Any]:
    """Return the variables of a card and its forms."""
    request = found.request
    return {
        "entry": found,
        "sections": () if request is None else card_sections(request),
        "arguments": "" if request is None else arguments_text(request),
        "has_secrets": request is not None and bool(request.secrets),
    }


def ended_request(console: Console, id: str) -> EndedRequest | None:
    """Return how a live request or a suspended call ended, or None if it has not, or is unknown."""
    inbox = inbox_of(console)
    found = None if inbox is None else inbox.find(id)
    return found if isinstance(found, EndedRequest) else console.answered.get(id)


def absent_page(request: Request, id: str, status: int = 200) -> Response:
    """Return the page of a request that does not wait; with status 409 the answer of this user came too late."""
    ended = ended_request(console_of(request), id)
    if ended is None:
        return message(request, status, "Already answered", GONE) if status == 409 else not_found(request, GONE)
    context = {"ended": ended, "text": ended_text(ended), "is_late": status == 409}
    return page(request, "approvals/ended.html", status, active="approvals", **context)


def invalid_page(request: Request, found: Entry, problem: str, written: str = "") -> Response:
    """Return the page of a request after a form that is not an answer.

    Args:
        written: The arguments that the user has written. They are not sent back if some may be secret.
    """
    context = {**card_context(found), "problem": problem}
    if written and not context["has_secrets"]:
        context["arguments"] = written
    return page(request, "approvals/show.html", 422, active="approvals", **context)
