"""An agent on this machine: a scripted model reads a file, adds numbers, and posts a letter if you approve it.

    python3 dev.py demo agent

The model is a script, so the demo needs no network and no key. The rest is what every agent uses: `converse`, the
standard tools, a policy, and an approval for each letter. Without a terminal, a rule decides instead of you.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from neuroscript import (
    Approval,
    ApprovalRequest,
    Approver,
    Engine,
    ExecutionPolicy,
    Host,
    HostError,
    Runtime,
    TerminalApprover,
    ToolCall,
    ToolFailed,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    Turn,
)
from neuroscript.llm import CallEnded, CallStarted, Conversation, ConversationError, Event, TextReceived, converse

SANDBOX = Path(__file__).parents[2] / "sandbox"
PROMPT = "What did we spend on 3 February? Post the total to the office."
THINKING_SECONDS = 0.8
"""How long the model pretends to think at a terminal, so that a person can follow it."""

office = Toolset("office")


@office.tool(policy=ToolPolicy(requires_approval=True, effects=("writes",), capabilities=("fs:write:outbox/{to}.txt",)))
def post(rt: Runtime, to: str, text: str) -> str:
    """Post a letter: put it in the outbox.

    Args:
        to: The department that receives it.
        text: The content of the letter.
    """
    rt.fs.write_text(f"outbox/{to}.txt", text)
    return f"posted to {to}"


class ScriptedModel:
    """A model that always tries the same steps, and reads the results of its calls as any model does."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the next step."""
        if self.console.is_terminal:
            with self.console.status("waiting for the model"):
                time.sleep(THINKING_SECONDS)
        return self.ask(turns)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the next step."""
        results = [result for turn in turns for result in turn.tool_results]
        if not results:
            return calls("I read the list of expenses.", "fs.read", {"filepath": "inbox/expenses.csv", "limit": "4"})
        amounts = [row.split(",")[2] for row in str(results[0].value).splitlines() if row.startswith("2026-02-03")]
        match results[1:]:
            case []:
                return calls("", "math.add", dict(zip(("num1", "num2"), amounts, strict=True)))
            case [total]:
                note = {"filepath": "inbox/total.txt", "content": f"{total.value}"}
                return calls("First, I write the total beside the list.", "fs.write", note)
            case [total, _]:
                letter = {"to": "office", "text": f"We spent {total.value:.2f} EUR on 3 February."}
                return calls("I cannot write there, so I only post the letter.", "office.post", letter)
            case [total, _, letter]:
                posted = f"The letter {letter.error.text}." if letter.error else "The letter is in the outbox."
                return Turn("assistant", f"We spent {total.value:.2f} EUR. {posted}")
        raise AssertionError("the conversation has one call in each turn")


def calls(text: str, name: str, arguments: dict[str, str]) -> Turn:
    """Return a turn that says something and calls a tool."""
    return Turn("assistant", text, tool_calls=(ToolCall(name, arguments, id=name),))


def approve_letters_to_the_office(request: ApprovalRequest) -> Approval:
    """Decide without a user: letters to the office may be posted, and nothing else."""
    if request.tool == "office.post" and request.arguments["to"] == "office":
        return Approval.approve()
    return Approval.reject("only letters to the office are approved")


class Drawing:
    """Draws a conversation while it runs."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __call__(self, event: Event) -> None:
        match event:
            case TextReceived(text):
                self.line("model", text, "bold")
            case CallStarted(call):
                self.line("calls", f"{call.name} {json.dumps(call.arguments)}", "cyan")
            case CallEnded(_, result):
                self.end(result)

    def end(self, result: ToolResult) -> None:
        """Draw the repairs and the outcome of a call."""
        for each in result.repairs:
            self.line("repaired", f"{each.where}: {each.got} -> {each.became}", "yellow")
        if result.error is None:
            self.line("result", str(result.value).strip(), "green")
        else:
            self.line("failed" if isinstance(result.error, ToolFailed) else "refused", result.error.text, "red")

    def line(self, label: str, text: str, style: str) -> None:
        """Draw a label, and beside it one or more lines of text."""
        first, *others = text.splitlines() or [""]
        self.console.print(Text.assemble((f"{label:>9}  ", "dim"), (first, style)), soft_wrap=True)
        for each in others:
            self.console.print(Text(f"{'':>9}  {each}", style), soft_wrap=True)


def summary(conversation: Conversation) -> str:
    """Return one sentence about the calls of a conversation."""
    results = conversation.results
    ran = [result for result in results if result.ok]
    repaired = sum(bool(result.repairs) for result in ran)
    return (
        f"Of {len(results)} calls, {len(ran)} ran, {repaired} of them with repaired arguments; "
        f"{len(results) - len(ran)} did not, and the model went on without them."
    )


def is_interactive() -> bool:
    """Return whether a user can answer at a terminal; a closed stream is None."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def main() -> None:
    """Run the conversation."""
    console = Console(highlight=False)
    approver: Approver = TerminalApprover()
    if not is_interactive():
        approver = approve_letters_to_the_office
        console.print("There is no terminal, so a rule approves letters to the office.\n", soft_wrap=True)
    policy = ExecutionPolicy(grants=["fs:read:inbox/**", "fs:write:outbox/**"], approver=approver)
    drawing = Drawing(console)
    drawing.line("you", PROMPT, "bold")
    try:
        with Engine(toolsets=[office], policy=policy, host=Host(sandbox_dir=SANDBOX)) as engine:
            conversation = converse(
                engine,
                PROMPT,
                tools=("fs.read", "fs.write", "math.add", "office.post"),
                model=ScriptedModel(console),
                on_event=drawing,
            )
    except ConversationError as error:  # the user stopped the session
        drawing.line("ended", str(error), "red")
    else:
        console.print(f"\n{summary(conversation)}", soft_wrap=True)
    console.print("Next: run it again and answer n, or read docs/tutorial/a-model-that-uses-tools.md", soft_wrap=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except HostError as error:  # such as a sandbox that is not writable
        sys.exit(str(error))
