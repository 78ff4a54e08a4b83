"""A request for an approval, and a terminal that answers it."""

from __future__ import annotations

import ast
import io
import re
from typing import Any

import attrs
from tests.terminals import Terminal

from neuroscript import Approval, ApprovalRequest

FIELDS: dict[str, Any] = {
    "tool": "fs.delete",
    "description": "Delete a file of the sandbox.",
    "arguments": {"path": "data/a.txt"},
    "secrets": frozenset(),
    "needs": ("fs:delete:data/a.txt",),
    "effects": ("deletes",),
    "session": "alice",
    "depth": 1,
    "above": (),
    "fingerprint": "1" * 64,
    "policy": "2" * 64,
    "digest": "3" * 64,
}
ASK = "Allow fs.delete? [n] "

BEGIN = f"""
import json, os, signal, sys, threading
from neuroscript import Approval, ApprovalRequest, ConsolePrompter, TerminalApprover

FIELDS = {FIELDS!r}
approver = TerminalApprover()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

def ask(**fields):
    try:
        answer = approver(ApprovalRequest(**{{**FIELDS, **fields}}))
    except KeyboardInterrupt:
        print("=> interrupted <=", flush=True)
    else:
        shown = [answer.verdict, answer.reason, answer.arguments, answer.for_session]
        print("=>", ascii(shown), "<=", flush=True)
"""


def request(**fields: Any) -> ApprovalRequest:
    """Return the standard request with some fields changed."""
    return ApprovalRequest(**{**FIELDS, **fields})


def answered(seen: Terminal) -> Approval:
    """Return the approver's decision for an answer."""
    shown = re.search(r"=> (.*) <=", seen.see("<=\r\n"))
    assert shown is not None
    verdict, reason, arguments, for_session = ast.literal_eval(shown[1])
    return Approval(verdict, reason, arguments, for_session)


@attrs.frozen
class Desk:
    """The two ends of a terminal in this process: one for approvers, one for the user."""

    ours: int
    stdin: io.TextIOWrapper
    output: io.TextIOWrapper
