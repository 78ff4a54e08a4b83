"""The doors to the SDKs of OpenAI and of Anthropic, which one generator wrote: they are opened and asked alike.

Source: openai-python and anthropic-sdk-python, README, "Timeouts", "Making custom requests".

The APIs that a server may follow: their bodies, their SDKs, and where their keys stand.

Source: OpenAI API reference, "Chat Completions" and "Responses"; Anthropic API reference, "Messages".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal

import attrs

from neuroscript.llm.errors import missing
from neuroscript.llm.transport import Api
from neuroscript.llm.wire.anthropic import MESSAGES
from neuroscript.llm.wire.openai import CHAT, RESPONSES, to_tools
from neuroscript.runtime.wire_names import WireNames

ACCOUNT: Final = ("organization", "project")
"""What a client of OpenAI takes from the environment beside the key."""


@attrs.frozen
class Sdk:
    """One of the two.

    Attributes:
        title: What is said to be missing where it is not installed.
        extra: The extra that brings it.
        client: The name of its client.
        variable: Where the key of its maker's own address stands in the environment.
        imported: Imports it.
    """

    title: str
    extra: str
    client: str
    variable: str
    imported: Callable[[], Any]

    def opened(self, base_url: str, key: str) -> Any:
        """Return a client of an address; ``""`` is its maker's own.

        Raises:
            LLMError: ``llm.missing``.
        """
        return getattr(self._module(), self.client)(api_key=key, base_url=base_url or None)

    def limited(self, client: Any, connect: float, silence: float, own: bool) -> Any:
        """Return a client like *client* that makes each request once, with timeouts in seconds.

        Args:
            own: Whether its address is that of the API's maker; another one is not told of an account there.
        """
        limited = client.with_options(max_retries=0, timeout=self._module().Timeout(silence, connect=connect))
        for name in () if own else ACCOUNT:
            if hasattr(limited, name):
                setattr(limited, name, None)
        return limited

    def unread(self, client: Any, path: str, body: dict[str, Any] | None) -> Any:
        """Make a request, without a body a GET, and return its stream, of which only the head has been read.

        No redirection is followed: the key, and all that was said, would go where nobody has sent it.
        """
        taken = {"cast_to": object, "stream": True, "stream_cls": self._module().Stream[object]}
        options = {"follow_redirects": False}
        if body is None:
            return client.get(path, options=options, **taken)
        return client.post(path, body=body, options=options, **taken)

    def _module(self) -> Any:
        try:
            return self.imported()
        except ImportError:
            failed = missing(self.title, self.extra)
        raise failed


def _openai() -> Any:
    import openai

    return openai


def _anthropic() -> Any:
    import anthropic

    return anthropic


OPENAI: Final = Sdk("the SDK of OpenAI", "llm", "OpenAI", "OPENAI_API_KEY", _openai)


ANTHROPIC: Final = Sdk("the SDK of Anthropic", "anthropic", "Anthropic", "ANTHROPIC_API_KEY", _anthropic)


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
