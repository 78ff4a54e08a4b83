"""The APIs that a server may follow: their bodies, their SDKs, and where their keys stand.

Source: OpenAI API reference, "Chat Completions" and "Responses"; Anthropic API reference, "Messages".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal

import attrs

from neuroscript.interop.anthropic import MESSAGES
from neuroscript.interop.openai import CHAT, RESPONSES, to_tools
from neuroscript.llm.sdks import ANTHROPIC, OPENAI
from neuroscript.llm.transport import Api
from neuroscript.wirenames import WireNames

ApiName = Literal["openai-chat", "openai-responses", "anthropic"]
"""What an API is called here."""

DEFAULT_TOKENS: Final = 4096
"""How many tokens a reply of Anthropic may have where nobody says."""


@attrs.frozen
class Known:
    """What leads to the servers of one API.

    Attributes:
        api: Returns the API; strict where it is asked to be.
        opened: Returns a client of its SDK, by address and key.
        variable: Where its key stands in the environment.
        alias: What its key is called in the store of ``llm``.
    """

    api: Callable[[bool], Api]
    opened: Callable[[str, str], Any]
    variable: str
    alias: str


def _chat(strict: bool) -> Api:
    wire = attrs.evolve(CHAT, tools=partial(_tools, "chat", strict))
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    return Api(
        wire,
        "/chat/completions",
        "max_tokens",
        OPENAI.unread,
        OPENAI.limited,
        own_longest="max_completion_tokens",
        streaming=streaming,
        end={"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        embeds=True,
    )


def _responses(strict: bool) -> Api:
    wire = attrs.evolve(RESPONSES, tools=partial(_tools, "responses", strict))
    return Api(wire, "/responses", "max_output_tokens", OPENAI.unread, OPENAI.limited, embeds=True)


def _messages(strict: bool) -> Api:
    return Api(
        MESSAGES,
        "/v1/messages",
        "max_tokens",
        ANTHROPIC.unread,
        ANTHROPIC.limited,
        default=DEFAULT_TOKENS,
        listed="/v1/models?limit=1000",
    )


def _tools(
    api: Literal["chat", "responses"], strict: bool, tools: Iterable[Any], names: WireNames
) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = to_tools(tools, api=api, strict=strict, names=names)
    return told


APIS: Final[Mapping[ApiName, Known]] = {
    "openai-chat": Known(_chat, OPENAI.opened, OPENAI.variable, "openai"),
    "openai-responses": Known(_responses, OPENAI.opened, OPENAI.variable, "openai"),
    "anthropic": Known(_messages, ANTHROPIC.opened, ANTHROPIC.variable, "anthropic"),
}
"""Every API by its name."""
