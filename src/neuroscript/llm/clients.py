"""A model that tools and conversations talk to, by its name alone.

``model(name)`` finds out which API the name means; ``model(name, base_url=…)`` talks to any server that follows one.

Source: issue "Models", clients; contract section 1, ``llm``.
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
from neuroscript.io.text import type_name
from neuroscript.llm import library
from neuroscript.llm.apis import APIS, ApiName
from neuroscript.llm.retry import Patience, persisted
from neuroscript.llm.transport import Api, Hear, Transport
from neuroscript.policy.paths import LOCAL, is_address
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply, Retried, whole
from neuroscript.spec.tool_spec import ToolSpec

CONNECT: Final = 10.0
"""How many seconds a connection may take to be there, where less was not asked for."""

UNUSED: Final = "none"
"""What is sent as a key where there is none: the SDKs want one."""

Key = str | Callable[[], str] | None
"""A key, or what gives it; None is that of the environment, or of the store of ``llm``."""

# What each parameter has to be

FORMS: Final = {
    "name": STRING,
    "base_url": Form(
        f"an address such as {LOCAL}, or empty", STRING.accepts, lambda address: not address or is_address(address)
    ),
    "key": optional(
        Form("a string, or a function that returns one", lambda key: isinstance(key, str) or callable(key))
    ),
    "api": Form(one_of(*APIS).words, STRING.accepts, lambda api: not api or api in APIS),
    "timeout": SECONDS,
    "longest": SECONDS,
    "attempts": COUNT,
    "pause": DURATION,
    "max_tokens": optional(COUNT),
    "stream": FLAG,
    "strict": FLAG,
    "options": optional(BY_NAME),
}
CALLBACK: Final = optional(FUNCTION)
TURNS: Final = sequence(instance(Turn), "Turns")
TOOLS: Final = sequence(instance(ToolSpec), "ToolSpecs")


class Way(Protocol):
    """What reaches one model."""

    @property
    def title(self) -> str:
        """The API, as people call it."""

    def attempt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], hear: Hear, until: float) -> Reply:
        """Make one request; *hear* is given the text while it is said, *until* is when all has to be there."""

    def embed(self, text: str, until: float) -> list[float]:
        """Return the embedding of a text."""

    def names(self, until: float) -> list[str]:
        """Return the names of models that the server lists."""

    def close(self) -> None:
        """Close the connections."""


@attrs.frozen
class Model:
    """A model behind the `LLM` protocol. Use it with ``with``, or `close` it; threads may share it.

    Attributes:
        name: As it was asked for.
    """

    name: str
    _way: Way = attrs.field(repr=False)
    _patience: Patience = attrs.field(repr=False)

    @property
    def api(self) -> str:
        """The API that it speaks, for example ``OpenAI Chat``."""
        return self._way.title

    def reply(
        self,
        turns: Sequence[Turn],
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], object] | None = None,
        on_retry: Callable[[Retried], object] | None = None,
    ) -> Reply:
        """Return what the model answers to *turns*.

        Args:
            tools: What it may ask to be called.
            on_text: Is given the text while it is said, in pieces. Once it was given any, nothing is tried again.
            on_retry: Is told of each request that is made again, before the wait for it.

        Raises:
            LLMError: There is no reply; its code says why, and its retry who can change that.
        """
        require(
            "reply",
            turns=(turns, TURNS),
            tools=(tools, TOOLS),
            on_text=(on_text, CALLBACK),
            on_retry=(on_retry, CALLBACK),
        )
        began = time.monotonic()
        said: list[None] = []

        def hear(text: str) -> None:
            if on_text is not None and text:
                said.append(None)
                on_text(text)

        reply, retries = persisted(
            lambda until: self._way.attempt(turns, tools, hear, until),
            self._patience,
            said=lambda: bool(said),
            on_retry=on_retry,
        )
        return attrs.evolve(reply, retries=retries, seconds=time.monotonic() - began)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn after *turns*; `LLMError` as `reply`, and where the model did not say all."""
        return whole(self.reply(turns))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the model's turn, which may ask for calls of *tools*; `LLMError` as `ask`."""
        return whole(self.reply(turns, tools))

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of a text; `LLMError` as `reply`, ``llm.request`` where the API gives none."""
        require("embed", text=(text, STRING))
        return persisted(lambda until: self._way.embed(text, until), self._patience)[0]

    def names(self) -> list[str]:
        """Return the names of models that its server lists, in order; `LLMError` as `reply`."""
        return persisted(self._way.names, self._patience)[0]

    def close(self) -> None:
        """Close the connections."""
        self._way.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@attrs.frozen
class Wishes:
    """What a host asks of a model, as `model` explains."""

    key: Key = attrs.field(repr=False)
    timeout: float
    seconds: float
    max_tokens: int | None
    stream: bool
    strict: bool
    options: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def text(self) -> str | None:
        """The key as it is now; `LLMError` where the function of the host returns anything but a string."""
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
    longest: float = 600.0,
    attempts: int = 3,
    pause: float = 0.5,
    max_tokens: int | None = None,
    stream: bool = True,
    strict: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Model:
    """Return a model, which nothing has been asked of yet.

    Args:
        name: A name or an alias that the package ``llm`` knows; of an address or an API, what its server calls it.
        base_url: The address of a server that follows an API; by default that of the model.
        key: A key, or what gives it. By default it is that of the environment, or of the store of ``llm``; an address
            of your own is sent none of these, only the one given here.
        api: ``openai-chat``, ``openai-responses`` or ``anthropic``; by default what the name means, and of an address
            ``openai-chat``.
        timeout: For how many seconds a server may be silent, before its answer and between the pieces of one.
        longest: How many seconds a reply may take in all, with what is tried again.
        attempts: How many requests are made at most; only what can succeed later is tried again.
        pause: How many seconds are waited before the second request, twice as long before each further one.
        max_tokens: How many tokens a reply may have; by default as many as the API gives, of Anthropic's 4096.
        stream: Whether replies are streamed.
        strict: Whether tools ask for the strict mode of an API where they can.
        options: Further members of each request, such as ``{"temperature": 0}``.

    Raises:
        LLMError: ``llm.unknown``, ``llm.missing``, ``llm.key``; ``llm.connect`` where the environment names a proxy
            that can not be used.
        SpecError: The address is none, the API is none of these, or a number is too small; all of it at once.
    """
    parts = {"name": name, "base_url": base_url, "key": key, "api": api, "timeout": timeout, "longest": longest}
    parts |= {"attempts": attempts, "pause": pause, "max_tokens": max_tokens, "stream": stream, "strict": strict}
    require("model", options=(options, FORMS["options"]), **{each: (parts[each], FORMS[each]) for each in parts})
    wishes = Wishes(key, timeout, longest, max_tokens, stream, strict, dict(options or {}))
    way = _direct(name, base_url, api or "openai-chat", wishes) if base_url or api else _by_name(name, wishes)
    return Model(name, way, Patience(attempts, pause, longest))


def _direct(name: str, base_url: str, api: ApiName, wishes: Wishes) -> Way:
    """Return the way to a model at an address, or at that of its API."""
    known = APIS[api]
    key = wishes.text or (UNUSED if base_url else os.environ.get(known.variable) or library.stored_key(known.alias))
    if not key:
        raise library.no_key(known.variable, known.alias)
    client = _opened(lambda: known.opened(base_url, key), key)
    return _transport(known.api(wishes.strict), name, client, wishes, own=not base_url)


def _by_name(name: str, wishes: Wishes) -> Way:
    """Return the way to a model that ``llm`` knows."""
    found = library.found(name)
    key = library.key_of(found.model, wishes.text)
    match found.way:
        case "openai-chat" | "openai-responses" as api:
            client, own = _opened(lambda: found.model.get_client(key), key), not found.model.api_base
            called = found.model.model_name or found.model.model_id
        case "anthropic" as api:
            address = found.model.base_url or ""
            client, own = _opened(lambda: APIS["anthropic"].opened(address, key or UNUSED), key), True
            called = found.model.claude_model_id
        case "openai-embeddings":
            api, called, own = "openai-chat", found.model.openai_model_id, True
            client = _opened(lambda: APIS["openai-chat"].opened("", key or UNUSED), key)
        case _:
            return library.Library(found, key, wishes.stream, wishes.seconds, wishes.options)
    return _transport(APIS[api].api(wishes.strict), called, client, wishes, own=own)


def _opened(opened: Callable[[], Any], key: str | None) -> Any:
    """Return a client of an SDK.

    Raises:
        LLMError: ``llm.key``, ``llm.missing``; ``llm.connect`` where the SDK does not like the environment.
    """
    if key and not (key.isascii() and key.isprintable()):
        raise LLMError("the key can not be sent: a line end or no ASCII is in it", code="llm.key", retry="host")
    try:
        return opened()
    except LLMError:
        raise
    except Exception as error:
        kind = type(error).__name__
    text = f"its SDK can not be used here ({kind}); are the proxies of the environment right?"
    raise LLMError(text, code="llm.connect", retry="host")


def _transport(api: Api, called: str, client: Any, wishes: Wishes, *, own: bool) -> Transport:
    """Return the way of an API; *own* tells that the server is that of the API itself."""
    silence = min(wishes.timeout, wishes.seconds)
    limited = api.limited(client, min(CONNECT, silence), silence, own)
    longest = api.own_longest if own else ""
    return Transport(api, called, limited, wishes.max_tokens, wishes.stream, wishes.seconds, wishes.options, longest)
