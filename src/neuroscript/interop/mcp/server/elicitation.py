"""Approvals and prompts by the user of an MCP client that supports elicitation.

See MCP 2025-11-25, "Elicitation".
"""

from __future__ import annotations

from threading import get_ident
from typing import Final

from neuroscript.approval.card import card
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.errors import PromptError
from neuroscript.interop.mcp.server.request import CURRENT
from neuroscript.io.text import escape
from neuroscript.runtime.prompter import noninteractive

CARD_COLUMNS: Final = 80
"""Width of the approval card, in columns."""

NO_ELICITATION: Final = "cannot ask the user: the client of this session does not support elicitation"

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
    if current is None or not current.can_ask:
        return Approval.reject(NO_ELICITATION)
    answer = await current.ask(f"May {request.tool} run?\n\n{card(request, CARD_COLUMNS)}", APPROVAL)
    if answer is not None and answer.get("approve") is True:
        return Approval.approve()
    return Approval.reject("the user did not approve it")


class ClientPrompter:
    """Prompts the user of the client whose call is running."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*.

        Raises:
            PromptError: ``prompt.noninteractive``: the client does not support elicitation, the answer is a secret,
                which MCP does not support, or the tool runs on the loop that serves the client. ``prompt.eof``: the
                user gave no answer.
        """
        current = CURRENT.get()
        if current is None or not current.can_ask:
            raise noninteractive(NO_ELICITATION)
        if secret:
            raise noninteractive("cannot ask an MCP client for a secret")
        if current.thread == get_ident():
            raise noninteractive("a tool that prompts must run in a thread: declare the effect prompts")
        answer = current.ask_and_wait(escape(prompt.rstrip()), ANSWER)
        if answer is None or type(answer.get("answer")) is not str:
            raise PromptError("the user gave no answer", code="prompt.eof")
        return str(answer["answer"])
