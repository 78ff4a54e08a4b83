"""Approvals and prompts by the user of an MCP client that supports elicitation, and other requests to the client.

With a handshake, the call waits for the answer. In protocol 2026-07-28, it ends, and the client makes it again with the
answer; see `rounds`.

See MCP 2025-11-25 and 2026-07-28, "Elicitation".
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from threading import get_ident
from typing import Any, Final

from neuroscript.approval.card import card
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.errors import PromptError
from neuroscript.interop.mcp.server.request import CURRENT, Request
from neuroscript.interop.mcp.server.rounds import CAPABILITIES, ELICITATION, SAMPLING, Round, may_repeat
from neuroscript.io.text import escape, quote_untrusted
from neuroscript.runtime.interfaces import Runtime
from neuroscript.runtime.prompter import noninteractive

CARD_COLUMNS: Final = 80
"""Width of the approval card, in columns."""

NO_ELICITATION: Final = "cannot ask the user: the client of this session does not support elicitation"

ASKED: Final = "the user of the client is asked"

APPROVAL_KEY: Final = "approval-"
"""The start of the keys of approvals."""

APPROVAL: Final = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Let it run", "default": False}},
    "required": ["approve"],
}
ANSWER: Final = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


async def ask_client(request: ApprovalRequest) -> Approval:
    """Ask the user of the client to approve a call of that client; an approver for the engine of a server.

    The call is rejected if the client does not support elicitation, if the user declines, and if no client made the
    call.
    """
    current = CURRENT.get()
    if current is None or not current.can_ask(ELICITATION):
        return Approval.reject(NO_ELICITATION)
    form = _form(f"May {request.tool} run?\n\n{card(request, CARD_COLUMNS)}", APPROVAL)
    key = APPROVAL_KEY + _digest(request.digest, str(request.approver), *request.flows)
    if current.round is not None:
        return _approval(current.round, request, key, form)
    return _decided(_content(await current.ask(key, form)))


def _approval(round: Round, request: ApprovalRequest, key: str, form: Mapping[str, Any]) -> Approval:
    """Return the approval that came with the request, or the answer that ends the call so that the client is asked."""
    is_inside = request.depth > 1
    refusal = round.refusal(request.effects, is_inside=is_inside)
    if refusal:
        return Approval.reject(refusal)
    answer = round.ask(key, ELICITATION, form, is_approval=True)
    if answer is None:
        return Approval.suspend(ASKED)
    decided = _decided(_content(answer))
    if is_inside and decided.verdict == "approve" and not may_repeat(request.effects):
        round.has_run = True
    return decided


def _decided(answer: Mapping[str, Any] | None) -> Approval:
    if answer is not None and answer.get("approve") is True:
        return Approval.approve()
    return Approval.reject("the user did not approve it")


class ClientPrompter:
    """Prompts the user of the client whose call is running."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*.

        Raises:
            PromptError: ``prompt.noninteractive``: the client does not support elicitation, the answer is a secret,
                which MCP does not support, or the call cannot wait for an answer. ``prompt.pending``: the client is
                asked, and makes the call again. ``prompt.eof``: the user gave no answer.
        """
        current = CURRENT.get()
        if current is None or not current.can_ask(ELICITATION):
            raise noninteractive(NO_ELICITATION)
        if secret:
            raise noninteractive("cannot ask an MCP client for a secret")
        text = escape(prompt.rstrip())
        answer = _content(_answers(current, {f"prompt-{_digest(text)}": (ELICITATION, _form(text, ANSWER))})[0])
        if answer is None or type(answer.get("answer")) is not str:
            raise PromptError("the user gave no answer", code="prompt.eof")
        return str(answer["answer"])


ON_THE_LOOP: Final = "a tool that prompts must run in a thread: declare the effect prompts"


def can_request(method: str) -> bool:
    """Return whether the client whose call is running accepts a request of a method, see `request_input`."""
    current = CURRENT.get()
    return current is not None and current.accepts(method)


def request_input(rt: Runtime, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Send requests of a tool to the client whose call is running, and return the answers by key.

    Use it for what `Runtime.prompt_user` cannot express, such as a form with several fields.

    Args:
        rt: The Runtime of the call. ``sampling/createMessage`` needs ``model:use``.
        requests: Each with a ``method`` (``elicitation/create``, ``sampling/createMessage`` or ``roots/list``) and its
            ``params``, by a key that is the same whenever the tool runs.

    Returns:
        The results in the wire format of MCP, such as ``{"action": "accept", "content": {…}}``.

    Raises:
        PromptError: As for `ClientPrompter.ask`.
    """
    found = {key: (str(each.get("method")), each.get("params") or {}) for key, each in requests.items()}
    for key, (method, _) in found.items():
        if method not in CAPABILITIES or key.startswith(APPROVAL_KEY):
            raise ValueError(f"{quote_untrusted(key)}: {quote_untrusted(method)} cannot be requested")
    current = CURRENT.get()
    if any(method == SAMPLING for method, _ in found.values()):
        rt.require("model:use")
    lacking = [key for key, (method, _) in found.items() if current is None or not current.can_ask(method)]
    if current is None or lacking:
        raise noninteractive("cannot ask: the client of this session does not support it")
    return dict(zip(found, _answers(current, found), strict=True))


def continue_as_task(*, required: bool = False) -> bool:
    """Let the client poll the result of the running call, and return whether it will.

    The response to the request is sent at once, and the function continues. From then on, its questions wait for their
    answers. Use it for calls that take long.

    Args:
        required: Whether to raise an error if the client does not support tasks.

    Raises:
        PromptError: ``prompt.noninteractive``: the client does not support tasks, and *required* is true.
    """
    current = CURRENT.get()
    is_task = current is not None and (current.task is not None or current.become_task())
    if required and not is_task:
        if current is not None:
            current.require_tasks()
        raise noninteractive("needs a client that supports tasks, or there are too many tasks")
    return is_task


def _answers(current: Request, requests: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """Return the answers of the client, or raise an error that ends the call so that the client is asked."""
    round = current.round
    if round is None and current.thread == get_ident():
        raise noninteractive(ON_THE_LOOP)
    if round is None:
        return current.ask_and_wait(requests)
    refusal = round.refusal()
    if refusal:
        raise noninteractive(refusal)
    answers = [round.ask(key, method, params) for key, (method, params) in requests.items()]
    if any(each is None for each in answers):
        raise PromptError(ASKED, code="prompt.pending", retry="later")
    return answers


def _content(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return answer.get("content") or {} if answer["action"] == "accept" else None


def _form(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"mode": "form", "message": text, "requestedSchema": schema}


def _digest(*parts: str) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
