"""Models for ``llm`` that follow a script, one step a turn, and record the results of their calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import llm

Step = str | list[tuple[str, dict[str, Any]]]
"""The text of a model, or the calls that it requests in one turn."""


def results_of(prompt: Any) -> list[str]:
    """Return the results of the calls of the previous turn, as the model reads them."""
    return [each.output for each in prompt.tool_results]


def act(step: Step, prompt: Any, response: Any) -> str:
    """Request the calls of a step, and return its text."""
    if isinstance(step, str):
        return step
    for at, (name, arguments) in enumerate(step, 1):
        response.add_tool_call(llm.ToolCall(name, arguments, f"c{at}"))
    return ""


class Scripted(llm.Model):
    """A synchronous model."""

    model_id = "scripted"
    supports_tools = True
    attachment_types: ClassVar = {"image/gif"}

    def __init__(self, *steps: Step) -> None:
        self.steps, self.results = [*steps], []
        self.attached: list[Any] = []

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        """Take the next step."""
        self.results += results_of(prompt)
        self.attached += prompt.attachments
        yield act(self.steps.pop(0), prompt, response)


class AsyncScripted(llm.AsyncModel):
    """An asynchronous model."""

    model_id = "scripted-async"
    supports_tools = True

    def __init__(self, *steps: Step) -> None:
        self.steps, self.results = [*steps], []

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> AsyncIterator[str]:
        """Take the next step."""
        self.results += results_of(prompt)
        yield act(self.steps.pop(0), prompt, response)
