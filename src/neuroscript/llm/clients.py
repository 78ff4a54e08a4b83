"""Model clients: reach a model by its name.

``model(name)`` finds the API of a known model; ``model(name, base_url=…)`` talks to any server with a compatible API.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Protocol

import attrs

from neuroscript.coercion.parameters import (
    BY_NAME,
    COUNT,
    DURATION,
    FLAG,
    FUNCTION,
    SECONDS,
    STRING,
    Form,
    instance,
    one_of,
    optional,
    require,
    sequence,
)
from neuroscript.errors import LLMError
from neuroscript.io.text import join_surrogates, type_name
from neuroscript.llm import library
from neuroscript.llm.apis import APIS, ApiName
from neuroscript.llm.retry import RetryPolicy, retry
from neuroscript.llm.transport import Api, TextCallback, Transport
from neuroscript.policy.paths import EXAMPLE_URL, is_address
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, RetriedRequest, complete_turn
from neuroscript.spec.tool_spec import ToolSpec

CONNECT_TIMEOUT_SECONDS: Final = 10.0
"""Maximum seconds for opening a connection; a shorter *timeout* takes precedence."""

PLACEHOLDER_KEY: Final = "none"
"""The placeholder sent when there is no key, because the SDKs require one."""

Key = str | Callable[[], str] | None
"""A key, or a function that returns one. None means the environment or the key store of ``llm``."""

# The expected form of each parameter

FORMS: Final = {
    "name": STRING,
    "base_url": Form(
        f"an address such as {EXAMPLE_URL}, or empty",
        STRING.accepts,
        lambda address: not address or is_address(address),
    ),
    "key": optional(
        Form("a string, or a function that returns one", lambda key: isinstance(key, str) or callable(key))
    ),
    "api": Form(one_of(*APIS).words, STRING.accepts, lambda api: not api or api in APIS),
    "timeout": SECONDS,
    "total_timeout": SECONDS,
    "attempts": COUNT,
    "backoff": DURATION,
    "max_tokens": optional(COUNT),
    "stream": FLAG,
    "strict": FLAG,
    "options": optional(BY_NAME),
}
CALLBACK: Final = optional(FUNCTION)
TURNS: Final = sequence(instance(Turn), "Turns")
TOOLS: Final = sequence(instance(ToolSpec), "ToolSpecs")


class Connection(Protocol):
    """A connection to one model."""

    @property
    def title(self) -> str:
        """The display name of the API."""

    def attempt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], hear: TextCallback, until: float) -> Reply:
        """Make one request.

        Args:
            hear: Receives the text of the reply as it arrives.
            until: The deadline for the whole reply, on the clock of `time.monotonic`.
        """

    def embed(self, text: str, until: float) -> list[float]:
        """Return the embedding of *text*."""

    def names(self, until: float) -> list[str]:
        """Return the names of the models that the server lists."""

    def close(self) -> None:
        """Close the connections."""


@attrs.frozen
class Model:
    """A model client that implements the `LLM` protocol.

    Use it in a ``with`` statement, or call `close`. It can be shared between threads.

    Attributes:
        name: The name that was passed to `model`.
    """

    name: str
    _connection: Connection = attrs.field(repr=False)
    _retry_policy: RetryPolicy = attrs.field(repr=False)

    @property
    def api(self) -> str:
        """The display name of the API, for example ``OpenAI Chat``."""
        return self._connection.title

    def reply(
        self,
        turns: Sequence[Turn],
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], object] | None = None,
        on_retry: Callable[[RetriedRequest], object] | None = None,
    ) -> Reply:
        """Return the model's reply to *turns*.

        Args:
            tools: The tools that the model may call.
            on_text: Receives the text of the reply in pieces, as it arrives. After the first piece, the request is not
                retried.
            on_retry: Receives each retry before the wait for it.

        Raises:
            LLMError: If there is no reply. The code names the reason, and *retry* says who can fix it.
        """
        require(
            "reply",
            turns=(turns, TURNS),
            tools=(tools, TOOLS),
            on_text=(on_text, CALLBACK),
            on_retry=(on_retry, CALLBACK),
        )
        began = time.monotonic()
        delivered: list[None] = []
        half = ""  # the first half of a character, if a server splits it between two pieces

        def hear(text: str) -> None:
            nonlocal half
            if on_text is not None and text:
                delivered.append(None)
                text = join_surrogates(half + text)
                half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
                if text != half:
                    on_text(text.removesuffix(half))

        reply, retries = retry(
            lambda until: self._connection.attempt(turns, tools, hear, until),
            self._retry_policy,
            said=lambda: bool(delivered),
            on_retry=on_retry,
        )
        return attrs.evolve(reply, retries=retries, seconds=time.monotonic() - began)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn after *turns*; `LLMError` as `reply`, and if the reply is incomplete."""
        return complete_turn(self.reply(turns))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the model's turn, which may contain calls of *tools*; `LLMError` as `ask`."""
        return complete_turn(self.reply(turns, tools))

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of *text*; `LLMError` as `reply`, ``llm.request`` if the API has no embeddings."""
        require("embed", text=(text, STRING))
        return retry(lambda until: self._connection.embed(text, until), self._retry_policy)[0]

    def names(self) -> list[str]:
        """Return the sorted names of the models that the server lists; `LLMError` as `reply`."""
        return retry(self._connection.names, self._retry_policy)[0]

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@attrs.frozen
class ClientSettings:
    """The settings of a model client; `model` describes them."""

    key: Key = attrs.field(repr=False)
    timeout: float
    seconds: float
    max_tokens: int | None
    stream: bool
    strict: bool
    options: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def text(self) -> str | None:
        """The current key; `LLMError` if the host's function does not return a string."""
        key: Any = self.key() if callable(self.key) else self.key
        if key is not None and not isinstance(key, str):
            raise LLMError(f"key returned {type_name(key)} instead of a string", code="llm.key", retry="host")
        return key


def model(
    name: str,
    *,
    base_url: str = "",
    key: Key = None,
    api: ApiName | Literal[""] = "",
    timeout: float = 60.0,
    total_timeout: float = 600.0,
    attempts: int = 3,
    backoff: float = 0.5,
    max_tokens: int | None = None,
    stream: bool = True,
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Model:
    """Return a client for a model, without making a request yet.

    Args:
        name: A name or alias that the ``llm`` package knows. With *base_url* or *api*: the name that the server uses.
        base_url: The address of a server with a compatible API; by default the vendor's own.
        key: A key, or a function that returns one. By default it comes from the environment or from the key store of
            ``llm``. With *base_url*, only the key passed here is sent.
        api: ``openai-chat``, ``openai-responses`` or ``anthropic``. By default it follows from the name; with
            *base_url*
            it is ``openai-chat``.
        timeout: How many seconds the server may be silent, before and during a reply.
        total_timeout: Maximum seconds for a reply, including retries.
        attempts: Maximum number of requests. Only errors that may be temporary are retried.
        backoff: Seconds before the first retry; doubled for each further one.
        max_tokens: Maximum tokens of a reply; by default the API's own limit, or 4096 for Anthropic.
        stream: Whether replies are streamed.
        strict: Whether tools use the API's strict mode where possible.
        options: Further members of each request, such as ``{"temperature": 0}``.

    Raises:
        LLMError: ``llm.unknown_model``, ``llm.not_installed`` or ``llm.key``; ``llm.connect`` if the environment
            names a proxy that cannot be used.
        SpecError: If arguments are invalid; it lists all problems at once.
    """
    parts = {
        "name": name,
        "base_url": base_url,
        "key": key,
        "api": api,
        "timeout": timeout,
        "total_timeout": total_timeout,
    }
    parts |= {"attempts": attempts, "backoff": backoff, "max_tokens": max_tokens, "stream": stream, "strict": strict}
    require("model", options=(options, FORMS["options"]), **{each: (parts[each], FORMS[each]) for each in parts})
    settings = ClientSettings(key, timeout, total_timeout, max_tokens, stream, strict, dict(options or {}))
    connection = (
        _direct(name, base_url, api or "openai-chat", settings) if base_url or api else _by_name(name, settings)
    )
    return Model(name, connection, RetryPolicy(attempts, backoff, total_timeout))


def _direct(name: str, base_url: str, api: ApiName, settings: ClientSettings) -> Connection:
    """Return the connection to a model at *base_url*, or at the vendor's own server."""
    known = APIS[api]
    key = settings.text or (
        PLACEHOLDER_KEY if base_url else os.environ.get(known.variable) or library.stored_key(known.alias)
    )
    if not key:
        raise library.missing_key_error(known.variable, known.alias)
    client = _opened(lambda: known.opened(base_url, key), key)
    return _transport(known.api(settings.strict), name, client, settings, own=not base_url)


def _by_name(name: str, settings: ClientSettings) -> Connection:
    """Return the connection to a model that ``llm`` knows."""
    found = library.find_model(name)
    key = library.key_of(found.model, settings.text)
    match found.client_kind:
        case "openai-chat" | "openai-responses" as api:
            client, own = _opened(lambda: found.model.get_client(key), key), not found.model.api_base
            called = found.model.model_name or found.model.model_id
        case "anthropic" as api:
            address = found.model.base_url or ""
            client, own = _opened(lambda: APIS["anthropic"].opened(address, key or PLACEHOLDER_KEY), key), True
            called = found.model.claude_model_id
        case "openai-embeddings":
            api, called, own = "openai-chat", found.model.openai_model_id, True
            client = _opened(lambda: APIS["openai-chat"].opened("", key or PLACEHOLDER_KEY), key)
        case _:
            return library.Library(found, key, settings.stream, settings.seconds, settings.options)
    return _transport(APIS[api].api(settings.strict), called, client, settings, own=own)


def _opened(opened: Callable[[], Any], key: str | None) -> Any:
    """Return a client of an SDK.

    Raises:
        LLMError: ``llm.key`` or ``llm.not_installed``; ``llm.connect`` if the SDK rejects the environment.
    """
    if key and not (key.isascii() and key.isprintable()):
        raise LLMError("the key cannot be sent: expected printable ASCII characters", code="llm.key", retry="host")
    try:
        return opened()
    except LLMError:
        raise
    except Exception as error:
        kind = type(error).__name__
    text = f"the SDK cannot create a client ({kind}); check the proxy settings of the environment"
    raise LLMError(text, code="llm.connect", retry="host")


def _transport(api: Api, called: str, client: Any, settings: ClientSettings, *, own: bool) -> Transport:
    """Return the connection for an API; *own* means that the server is the API vendor's own."""
    silence = min(settings.timeout, settings.seconds)
    limited = api.limited(client, min(CONNECT_TIMEOUT_SECONDS, silence), silence, own)
    longest = api.own_longest if own else ""
    return Transport(
        api, called, limited, settings.max_tokens, settings.stream, settings.seconds, settings.options, longest
    )
