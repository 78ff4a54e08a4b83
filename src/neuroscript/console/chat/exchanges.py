"""The conversation of one browser, as its page shows it: prompts, text of the model, and tool calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import attrs

from neuroscript.console.activities import Activity
from neuroscript.engine.session import Session
from neuroscript.llm.transcripts import arguments_line
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.replies import Usage
from neuroscript.runtime.result_text import result_text

MAX_TEXT_CHARS: Final = 50_000
"""Maximum number of characters of one text, call or result on the page."""

MAX_ITEMS: Final = 20
"""Maximum number of stream items of one call on the page, the last ones."""

MAX_EXCHANGES: Final = 50
"""Maximum number of exchanges on the page, the last ones; the model still reads the older ones."""


@attrs.define
class TextPart:
    """A piece of the model's text, or a note about a retry or an error.

    Attributes:
        text: The text.
        kind: Whose text it is.
    """

    text: str
    kind: Literal["text", "note", "error"] = "text"

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The text in paragraphs; empty lines separate them."""
        return tuple(part.strip("\n") for part in re.split(r"\n\s*\n", _cut(self.text)) if part.strip())


@attrs.define
class CallPart:
    """A tool call that the model has requested.

    Attributes:
        tool: The name of the tool, as the model wrote it if the tool is unknown.
        arguments: The call on one line, as the model wrote it; ``""`` while it may contain secrets.
        result: The result as the model reads it, or None while the call runs.
        code: The code of the error, or ``""``.
        is_refused: Whether the policy, an approver or a limit refused the call.
        repairs: What was converted: where, from which type, to which type.
        remedy: What the host can change to permit the call.
        items: The last items of a stream.
        item_count: How many items have arrived.
        approvals: The requests for approval of this call, by id, as HTML.
    """

    tool: str
    arguments: str = ""
    result: str | None = None
    code: str = ""
    is_refused: bool = False
    repairs: tuple[tuple[str, str, str], ...] = ()
    remedy: str = ""
    items: list[str] = attrs.Factory(list)
    item_count: int = 0
    approvals: dict[str, Any] = attrs.Factory(dict)

    def end(self, call: ToolCall, result: ToolResult) -> None:
        """Set what a call has returned; secrets are redacted in both."""
        self.tool = result.tool or self.tool
        self.arguments = _cut(arguments_line(call))
        self.result = _cut(result_text(result))
        self.repairs = tuple((each.where, each.got, each.became) for each in result.repairs)
        if result.error is not None:
            self.code, self.remedy = result.error.code, result.error.remedy
            self.is_refused = self.code.startswith(("policy.", "limit."))

    def add_item(self, text: str) -> None:
        """Add an item of a stream."""
        self.item_count += 1
        self.items = [*self.items, _cut(text)][-MAX_ITEMS:]


Part = TextPart | CallPart


@attrs.define
class Exchange:
    """A prompt and what followed.

    Attributes:
        number: Its number in the conversation, from 1.
        prompt: What the user asked.
        activity: The activity that runs it; None until it has started.
        parts: What followed.
    """

    number: int
    prompt: str
    activity: Activity | None = None
    parts: list[Part] = attrs.Factory(list)

    @property
    def is_running(self) -> bool:
        """Whether the model still answers."""
        return self.activity is not None and not self.activity.finished

    @property
    def element(self) -> str:
        """The id of the element with its parts."""
        return f"exchange-{self.number}"

    def part_element(self, index: int) -> str:
        """Return the id of the element of a part."""
        return f"{self.element}-part-{index}"


@attrs.define(eq=False)
class Chat:
    """The conversation of one browser.

    Attributes:
        turns: What the model reads; every call in it has its result.
        exchanges: What the page shows.
        usage: The tokens of all replies.
        count: How many exchanges there were.
    """

    turns: tuple[Turn, ...] = ()
    exchanges: list[Exchange] = attrs.Factory(list)
    usage: Usage = attrs.Factory(Usage)
    count: int = 0

    @property
    def running(self) -> Exchange | None:
        """The exchange that has not ended, or None."""
        return next((each for each in self.exchanges if each.is_running), None)

    def begin(self, prompt: str) -> Exchange:
        """Add an exchange."""
        self.count += 1
        exchange = Exchange(self.count, prompt)
        self.exchanges = [*self.exchanges, exchange][-MAX_EXCHANGES:]
        return exchange

    def clear(self) -> None:
        """Begin a new conversation; variables, handles and approvals of the session remain."""
        self.turns, self.exchanges, self.usage = (), [], Usage()


def started_call(session: Session, call: ToolCall) -> CallPart:
    """Return a call that begins, without its arguments if the tool takes secrets, which are not registered yet."""
    name = from_wire(call.name) if isinstance(call.name, str) else "(no name)"
    info = session.infos.get(name)
    has_secrets = info is not None and any(arg.holds_secret for arg in info.spec.args)
    secrets = session.secrets
    line = "" if has_secrets else arguments_line(call)
    return CallPart(name, _cut(line if secrets is None else secrets.text(line)))


def discreet(session: Session, text: str) -> str:
    """Return text of the model with the secrets of the session replaced."""
    return text if session.secrets is None else session.secrets.text(text)


def call_parts(exchange: Exchange) -> Iterator[tuple[int, CallPart]]:
    """Yield the calls of an exchange that have not ended, with their indexes."""
    for index, part in enumerate(exchange.parts):
        if isinstance(part, CallPart) and part.result is None:
            yield index, part


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}… ({len(text):,} characters in all)"
