"""Asking the user of an MCP client, for an approval or for a tool, where the client offers it.

Source: MCP 2025-11-25, "Elicitation"; contract section 5; issue "MCP", elicitation for prompts and approvals.
"""

from __future__ import annotations

from threading import get_ident
from typing import Final

from neuroscript.approval.card import card
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.errors import PromptError
from neuroscript.interop.mcp.server.request import CURRENT
from neuroscript.io.text import escaped
from neuroscript.runtime.prompter import noninteractive

COLUMNS: Final = 80
"""How wide what a user has to see of a call is."""

NOBODY: Final = "nobody can be asked: the client of this session asks its user nothing"

APPROVAL: Final = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Let it run", "default": False}},
    "required": ["approve"],
}
ANSWER: Final = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


async def ask_client(request: ApprovalRequest) -> Approval:
    """Have the user of the client approve a call that the client made; an approver for an engine that is served.

    It is refused where the client has no elicitation, where the user declines, and where no client made the call.
    """
    current = CURRENT.get()
    if current is None or not current.can_ask:
        return Approval.reject(NOBODY)
    answer = await current.ask(f"May {request.tool} run?\n\n{card(request, COLUMNS)}", APPROVAL)
    if answer is not None and answer.get("approve") is True:
        return Approval.approve()
    return Approval.reject("the user has not approved it")


class ClientPrompter:
    """Asks the user of the client whose call a tool carries out."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*.

        Raises:
            PromptError: prompt.noninteractive, where the client asks its user nothing, where the answer is a secret,
                for which MCP has no form, or where the tool runs on the loop that serves the client; prompt.eof, where
                the user gave no answer.
        """
        current = CURRENT.get()
        if current is None or not current.can_ask:
            raise noninteractive(NOBODY)
        if secret:
            raise noninteractive("a client of MCP is asked for no secret")
        if current.thread == get_ident():
            raise noninteractive("a tool that asks something has to run on a thread: state the effect prompts")
        answer = current.ask_and_wait(escaped(prompt.rstrip()), ANSWER)
        if answer is None or type(answer.get("answer")) is not str:
            raise PromptError("the user gave no answer", code="prompt.eof")
        return str(answer["answer"])
