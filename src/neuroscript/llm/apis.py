"""The supported server APIs: request bodies, SDK clients and environment variables for keys.

The SDKs of OpenAI and Anthropic come from one generator, so one class covers both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal

import attrs

from neuroscript.llm.errors import missing_package_error
from neuroscript.llm.transport import Api
from neuroscript.llm.wire.anthropic import MESSAGES
from neuroscript.llm.wire.openai import CHAT, RESPONSES, to_tools
from neuroscript.runtime.wire_names import WireNames

ACCOUNT_SETTINGS: Final = ("organization", "project")
"""Settings besides the key that a client of OpenAI reads from the environment."""


@attrs.frozen
class Sdk:
    """The SDK of OpenAI or of Anthropic.

    Attributes:
        title: The name shown when the SDK is not installed.
        extra: The extra that installs it.
        client: The name of its client class.
        variable: The environment variable that holds the key for the vendor's own server.
        imported: Imports and returns the SDK.
    """

    title: str
    extra: str
    client: str
    variable: str
    imported: Callable[[], Any]

    def opened(self, base_url: str, key: str) -> Any:
        """Return a client for *base_url*; ``""`` means the vendor's own server.

        Raises:
            LLMError: ``llm.not_installed``, if the SDK is not installed.
        """
        return getattr(self._module(), self.client)(api_key=key, base_url=base_url or None)

    def limited(self, client: Any, connect: float, silence: float, own: bool) -> Any:
        """Return a copy of *client* that sends each request once, with timeouts in seconds.

        Args:
            own: Whether the client talks to the vendor's own server. Other servers do not receive the account settings.
        """
        limited = client.with_options(max_retries=0, timeout=self._module().Timeout(silence, connect=connect))
        for name in () if own else ACCOUNT_SETTINGS:
            if hasattr(limited, name):
                setattr(limited, name, None)
        return limited

    def unread(self, client: Any, path: str, body: dict[str, Any] | None) -> Any:
        """Send a request and return its stream with only the response headers read. Without a body it is a GET.

        Redirects are not followed, because they would send the key and the conversation to another address.
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
            failed = missing_package_error(self.title, self.extra)
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
"""The name of an API, as `model` takes it."""


DEFAULT_MAX_TOKENS: Final = 4096
"""The token limit of a reply from Anthropic when the host sets none; that API requires a limit."""


@attrs.frozen
class ApiAccess:
    """How to reach servers of one API.

    Attributes:
        api: Returns the API; the argument turns strict mode on.
        opened: Returns a client of its SDK, from an address and a key.
        variable: The environment variable that holds the key.
        alias: The name of the key in the key store of ``llm``.
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
        default=DEFAULT_MAX_TOKENS,
        listed="/v1/models?limit=1000",
    )


def _tools(
    api: Literal["chat", "responses"], strict: bool, tools: Iterable[Any], names: WireNames
) -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = to_tools(tools, api=api, strict=strict, names=names)
    return definitions


APIS: Final[Mapping[ApiName, ApiAccess]] = {
    "openai-chat": ApiAccess(_chat, OPENAI.opened, OPENAI.variable, "openai"),
    "openai-responses": ApiAccess(_responses, OPENAI.opened, OPENAI.variable, "openai"),
    "anthropic": ApiAccess(_messages, ANTHROPIC.opened, ANTHROPIC.variable, "anthropic"),
}
"""All APIs by name."""
