"""Access to the ``llm`` package, which knows model names, keys and addresses and supports more models through plugins.

For its models of OpenAI and Anthropic the clients here make the requests. All other models are asked through ``llm``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.formats.json_schema import spec_to_schema
from neuroscript.io.text import quote_untrusted
from neuroscript.llm.errors import classify_error, fault_of_status, missing_package_error, timeout_error
from neuroscript.llm.transport import TextCallback
from neuroscript.llm.wire.tools import arguments_as_map
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

KEY: Final = "llm"
"""The key in `Turn.native` for the messages of the package."""

APIS_BY_CLASS: Final[Mapping[tuple[str, str], str]] = {
    ("llm.default_plugins.openai_models", "Chat"): "openai-chat",
    ("llm.default_plugins.openai_models", "Responses"): "openai-responses",
    ("llm.default_plugins.openai_models", "Completion"): "llm",
    ("llm.default_plugins.openai_models", "OpenAIEmbeddingModel"): "openai-embeddings",
    ("llm_anthropic", "ClaudeMessages"): "anthropic",
}
"""The API of each model class; models of all other classes are asked through the package."""


@attrs.frozen
class ModelEntry:
    """A model that the package knows.

    Attributes:
        name: The name or alias that was requested.
        model: The package's model object.
        client_kind: One of the values of `APIS_BY_CLASS`, or ``llm``.
        embeds: Whether the model is an embedding model.
    """

    name: str
    model: Any = attrs.field(repr=False)
    client_kind: str
    embeds: bool = False


def package() -> Any:
    """Return the ``llm`` package.

    Raises:
        LLMError: ``llm.not_installed``, if it is not installed.
    """
    try:
        import llm
    except ImportError:
        failed = missing_package_error("the package llm, which resolves model names,", "llm")
    else:
        return llm
    raise failed


def find_model(name: str) -> ModelEntry:
    """Return the model for a name or an alias; an embedding model only if no other model has the name.

    Raises:
        LLMError: ``llm.unknown_model`` or ``llm.not_installed``.
    """
    models, embedders = package().get_model_aliases(), package().get_embedding_model_aliases()
    if name in models:
        return ModelEntry(name, models[name], api_of(models[name]))
    if name in embedders:
        return ModelEntry(name, embedders[name], api_of(embedders[name]), embeds=True)
    text = f"unknown model {quote_untrusted(name)}; to list the known models, run: neuroscript models list"
    raise LLMError(text, code="llm.unknown_model", retry="host")


def api_of(model: Any) -> str:
    """Return the API of a model of the package, from the nearest known class in its MRO."""
    kinds = ((kind.__module__, kind.__name__) for kind in type(model).__mro__)
    return next((APIS_BY_CLASS[kind] for kind in kinds if kind in APIS_BY_CLASS), "llm")


def key_of(model: Any, key: str | None) -> str | None:
    """Return the key for a model: *key* if present, else from the package's store or the environment.

    Raises:
        LLMError: ``llm.key``, if the model needs a key and none is set.
    """
    try:
        found: str | None = model.get_key(key)
        return found
    except package().NeedsKeyException:
        failed = missing_key_error(model.key_env_var or "", model.needs_key or "")
    raise failed


def has_key(model: Any) -> bool:
    """Return whether a model of the package has a key or needs none."""
    try:
        key_of(model, None)
    except LLMError:
        return False
    return True


def missing_key_error(variable: str, alias: str) -> LLMError:
    """Return the error for a missing key, with the ways to set one."""
    ways = [f"set {variable}" if variable else "", f"run: llm keys set {alias}" if alias else ""]
    text = f"no key for this model; {', or '.join(filter(None, ways))}"
    return LLMError(text, code="llm.key", retry="host")


def stored_key(alias: str) -> str | None:
    """Return a key of the package's store, or None if there is no such key or the package is not installed."""
    try:
        import llm
    except ImportError:
        return None
    key: str | None = llm.get_key(alias=alias)
    return key


@attrs.frozen
class Library:
    """A model that is asked through the package, which delegates to one of its plugins.

    The plugin makes the request with its own client, so its own timeouts apply, and its retries are not reported.
    """

    found: ModelEntry
    key: str | None = attrs.field(repr=False)
    stream: bool
    seconds: float
    options: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def title(self) -> str:
        """The name of the package."""
        return "llm"

    def attempt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], hear: TextCallback, until: float) -> Reply:
        """Make one request and return the reply, without running tools.

        Raises:
            LLMError: If the request fails, as specific as the plugin's error allows.
        """
        if tools and not self.found.model.supports_tools:
            raise LLMError("this model does not support tools", code="llm.request", retry="host")
        names = WireNames.of(tools)
        options = {
            "stream": self.stream and self.found.model.can_stream,
            "key": self.key,
            "options": dict(self.options),
        }
        offered = {"tools": [_tool(spec, names) for spec in tools]} if tools else {}
        response = _guarded(
            lambda: self.found.model.prompt(messages=[*_messages(turns, names)], **offered, **options),
        )
        pieces = iter(response)
        while (piece := _guarded(lambda: next(pieces, None))) is not None:
            if time.monotonic() > until:
                raise timeout_error(self.seconds)
            hear(piece)
        reply: Reply = _guarded(lambda: _reply(response, names))
        return reply

    def embed(self, text: str, until: float) -> list[float]:
        """Return the embedding of *text*.

        Raises:
            LLMError: ``llm.request``, if the model has no embeddings.
        """
        if not self.found.embeds:
            raise LLMError("this model does not support embeddings", code="llm.request", retry="host")
        numbers: list[float] = _guarded(lambda: self.found.model.embed(text, key=self.key))
        return numbers

    def names(self, until: float) -> list[str]:
        """Return an empty list, because the package does not ask servers for their models."""
        return []

    def close(self) -> None:
        """Do nothing, because the plugin closes its own connections."""


def _guarded(act: Any) -> Any:
    """Call *act*; a plugin's exception becomes an `LLMError` that does not repeat its message."""
    try:
        return act()
    except Exception as error:
        failed = _failure(error)
    raise failed


def _failure(error: Exception) -> LLMError:
    known = classify_error(error)
    status = getattr(error, "status_code", getattr(error, "code", None))
    if known is not None:
        return known.error
    if type(status) is int and 400 <= status < 600:
        return fault_of_status(status, {}).error
    text = f"the plugin for this model failed ({type(error).__name__})"
    return LLMError(text, code="llm.format", retry="host")


def _tool(spec: ToolSpec, names: WireNames) -> Any:
    schema = spec_to_schema(spec, exact=False)
    return package().Tool(names.wire(spec.full_name), spec.description or None, dict(schema))


def _messages(turns: Sequence[Turn], names: WireNames) -> Iterator[Any]:
    from llm.parts import Message, TextPart, ToolCallPart

    for turn in turns:
        messages = (turn.native or {}).get(KEY)
        if messages is not None:
            yield from map(Message.from_dict, messages)
            continue
        if turn.tool_results:
            yield Message("tool", [_result(each, names) for each in turn.tool_results])
        parts: list[Any] = [TextPart(turn.content)] if turn.content else []
        parts += [
            ToolCallPart(names.wire(each.name), arguments_as_map(each.arguments), each.id) for each in turn.tool_calls
        ]
        if parts:
            yield Message("user" if turn.role == "tool" else turn.role, parts)


def _result(result: ToolResult, names: WireNames) -> Any:
    from llm.parts import ToolResultPart

    return ToolResultPart(names.wire(result.tool), result_text(result, names), result.id)


def _reply(response: Any, names: WireNames) -> Reply:
    calls = [_call(each, at, names) for at, each in enumerate(response.tool_calls(), 1)]
    text = response.text()
    if not text.strip() and not calls:
        raise LLMError("the model returned an empty reply", code="llm.empty", retry="later")
    counted = response.usage()
    messages = [message.to_dict() for message in response.messages()]
    turn = Turn("assistant", text, tuple(calls), native={KEY: messages})
    return Reply(turn, "tools" if calls else "end", Usage(counted.input or 0, counted.output or 0))


def _call(call: Any, at: int, names: WireNames) -> ToolCall:
    return ToolCall(names.tool(call.name), call.arguments, id=call.tool_call_id or f"call_{at}")
