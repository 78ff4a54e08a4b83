"""A wrapper that adds tool calling to a model without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Final

import attrs

from neuroscript.llm.wire.prompted.parser import read
from neuroscript.llm.wire.prompted.prompt import calls_text, instructions, results_text
from neuroscript.llm.wire.turns import Exchange, exchanges
from neuroscript.runtime.interfaces import LLM, Turn
from neuroscript.runtime.replies import Reply, RetriedRequest, complete_turn, reply_of, turn_of
from neuroscript.runtime.wire_names import WireNames

KEY: Final = "prompted"
"""The key in `Turn.native` for the text that a model wrote, including its calls."""


@attrs.frozen
class PromptedModel:
    """A model that reads tools from the conversation's text, and whose calls are parsed from its replies.

    Attributes:
        model: Any model; it is never passed tools.
    """

    model: LLM

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn after *turns*."""
        return complete_turn(self.reply(turns))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[Any]) -> Turn:
        """Return the model's turn, which may contain calls of *tools*."""
        return complete_turn(self.reply(turns, tools))

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of *text*."""
        return self.model.embed(text)

    def reply(
        self,
        turns: Sequence[Turn],
        tools: Iterable[Any] = (),
        on_text: Callable[[str], object] | None = None,
        on_retry: Callable[[RetriedRequest], object] | None = None,
    ) -> Reply:
        """Return the model's reply; its calls have generated ids, ``call_1`` for the first of the turn.

        Args:
            on_text: Receives the reply without its calls, once it is complete.
            on_retry: Receives the retries that the model reports.
        """
        specs = list(tools)
        names = WireNames.of(specs)
        reply = self._request_reply(as_texts(turns, instructions(specs, names), names), on_retry)
        content = reply.turn.content
        text, calls = read(content, names) if specs else (content, ())
        if on_text is not None and text:
            on_text(text)
        turn = Turn("assistant", text, calls, native={KEY: content} if calls else None)
        return attrs.evolve(reply, turn=turn, stop="tools" if calls and reply.stop == "end" else reply.stop)

    def _request_reply(self, turns: Sequence[Turn], on_retry: Callable[[RetriedRequest], object] | None) -> Reply:
        started = perf_counter()
        if hasattr(self.model, "reply"):
            return reply_of(self.model.reply(turns, on_retry=on_retry))
        return Reply(turn_of(self.model.ask(turns), "ask"), seconds=perf_counter() - started)


def as_texts(turns: Sequence[Turn], instructions_text: str, names: WireNames) -> list[Turn]:
    """Return the turns as text-only turns; *instructions_text* is appended to the system turn.

    >>> [turn.role for turn in as_texts([Turn("user", "Hello")], "Tools.", WireNames())]
    ['system', 'user']
    """
    found = exchanges(turns)
    system = [each.turn.content for each in found if each.turn.role == "system"]
    text = "\n\n".join([*system, instructions_text] if instructions_text else system)
    said = [turn for each in found if each.turn.role != "system" for turn in _turns(each, names)]
    return [Turn("system", text), *said] if text else said


def _turns(exchange: Exchange, names: WireNames) -> list[Turn]:
    turn = exchange.turn
    if turn.role != "assistant":
        return [Turn("user", turn.content)]
    if not turn.tool_calls:
        return [Turn("assistant", turn.content)]
    native = (turn.native or {}).get(KEY) or f"{turn.content}\n{calls_text(turn.tool_calls, names)}".strip()
    return [Turn("assistant", native), Turn("user", results_text(turn.tool_calls, exchange.results, names))]
