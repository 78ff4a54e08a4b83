"""The door to the ``llm`` package, which knows the names, keys and addresses of models, and brings others as plugins.

Its models of OpenAI and of Anthropic lend us their clients; every other one is asked through the package itself.

Source: docs of ``llm``, "Python API" and "Writing a model plugin"; issue "Models", clients.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.formats.json_schema import spec_to_schema
from neuroscript.io.text import shown
from neuroscript.llm.errors import fault_of, missing, of_status, timeout_error
from neuroscript.llm.transport import Hear
from neuroscript.llm.wire.tools import mapped
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

KEY: Final = "llm"
"""What stands in `Turn.native` for the messages of the package."""

WAYS: Final[Mapping[tuple[str, str], str]] = {
    ("llm.default_plugins.openai_models", "Chat"): "openai-chat",
    ("llm.default_plugins.openai_models", "Responses"): "openai-responses",
    ("llm.default_plugins.openai_models", "Completion"): "llm",
    ("llm.default_plugins.openai_models", "OpenAIEmbeddingModel"): "openai-embeddings",
    ("llm_anthropic", "ClaudeMessages"): "anthropic",
}
"""Which API the models of a class speak; all others are asked through the package."""


@attrs.frozen
class Found:
    """A model that the package knows.

    Attributes:
        name: As it was asked for.
        model: The package's own.
        way: One of the values of `WAYS`, or ``llm``.
        embeds: Whether it gives embeddings, and nothing else.
    """

    name: str
    model: Any = attrs.field(repr=False)
    way: str
    embeds: bool = False


def package() -> Any:
    """Return the package.

    Raises:
        LLMError: ``llm.missing``.
    """
    try:
        import llm
    except ImportError:
        failed = missing("the package llm, which knows models by their names,", "llm")
    else:
        return llm
    raise failed


def found(name: str) -> Found:
    """Return the model of a name or an alias; one for embeddings where there is no other.

    Raises:
        LLMError: ``llm.unknown``, ``llm.missing``.
    """
    models, embedders = package().get_model_aliases(), package().get_embedding_model_aliases()
    if name in models:
        return Found(name, models[name], way(models[name]))
    if name in embedders:
        return Found(name, embedders[name], way(embedders[name]), embeds=True)
    text = f"no model is called {shown(name)}; see: neuroscript models list"
    raise LLMError(text, code="llm.unknown", retry="host")


def way(model: Any) -> str:
    """Return which API a model of the package speaks, by the nearest of its classes that is known."""
    kinds = ((kind.__module__, kind.__name__) for kind in type(model).__mro__)
    return next((WAYS[kind] for kind in kinds if kind in WAYS), "llm")


def key_of(model: Any, key: str | None) -> str | None:
    """Return the key of a model: the one given, else that of the package's store or of the environment.

    Raises:
        LLMError: ``llm.key``: it needs one, and there is none.
    """
    try:
        found: str | None = model.get_key(key)
        return found
    except package().NeedsKeyException:
        failed = no_key(model.key_env_var or "", model.needs_key or "")
    raise failed


def has_key(model: Any) -> bool:
    """Tell whether there is a key for a model of the package, or it needs none."""
    try:
        key_of(model, None)
    except LLMError:
        return False
    return True


def no_key(variable: str, alias: str) -> LLMError:
    """Return the error that there is no key, with what puts one there."""
    ways = [f"set {variable}" if variable else "", f"run: llm keys set {alias}" if alias else ""]
    text = f"there is no key for this model; {', or '.join(filter(None, ways))}"
    return LLMError(text, code="llm.key", retry="host")


def stored_key(alias: str) -> str | None:
    """Return a key of the package's store, or None where there is none, or no package."""
    try:
        import llm
    except ImportError:
        return None
    key: str | None = llm.get_key(alias=alias)
    return key


@attrs.frozen
class Library:
    """A model that is asked through the package: one of its plugins knows how.

    The plugin makes the request with a client of its own, so its timeouts hold, and retries that it makes are not told.
    """

    found: Found
    key: str | None = attrs.field(repr=False)
    stream: bool
    seconds: float
    options: Mapping[str, Any] = attrs.field(repr=False)

    @property
    def title(self) -> str:
        """The package's name."""
        return "llm"

    def attempt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], hear: Hear, until: float) -> Reply:
        """Make one request and return the reply; no tool is run.

        Raises:
            LLMError: What went wrong, as far as it can be told.
        """
        if tools and not self.found.model.supports_tools:
            raise LLMError("this model takes no tools", code="llm.request", retry="host")
        names = WireNames.of(tools)
        asked = {"stream": self.stream and self.found.model.can_stream, "key": self.key, "options": dict(self.options)}
        offered = {"tools": [_tool(spec, names) for spec in tools]} if tools else {}
        said = _guarded(
            lambda: self.found.model.prompt(messages=[*_messages(turns, names)], **offered, **asked),
        )
        pieces = iter(said)
        while (piece := _guarded(lambda: next(pieces, None))) is not None:
            if time.monotonic() > until:
                raise timeout_error(self.seconds)
            hear(piece)
        reply: Reply = _guarded(lambda: _reply(said, names))
        return reply

    def embed(self, text: str, until: float) -> list[float]:
        """Return the embedding of a text.

        Raises:
            LLMError: ``llm.request``: the model gives none.
        """
        if not self.found.embeds:
            raise LLMError("this model gives no embeddings", code="llm.request", retry="host")
        numbers: list[float] = _guarded(lambda: self.found.model.embed(text, key=self.key))
        return numbers

    def names(self, until: float) -> list[str]:
        """Return nothing: the package does not ask servers what they have."""
        return []

    def close(self) -> None:
        """Do nothing: the plugin closes what it opened."""


def _guarded(act: Any) -> Any:
    """Return what *act* returns; an error of a plugin becomes one of ours, without its text."""
    try:
        return act()
    except Exception as error:
        failed = _failure(error)
    raise failed


def _failure(error: Exception) -> LLMError:
    known = fault_of(error)
    status = getattr(error, "status_code", getattr(error, "code", None))
    if known is not None:
        return known.error
    if type(status) is int and 400 <= status < 600:
        return of_status(status, {}).error
    text = f"the plugin of this model failed with {type(error).__name__}"
    return LLMError(text, code="llm.format", retry="host")


def _tool(spec: ToolSpec, names: WireNames) -> Any:
    schema = spec_to_schema(spec, exact=False)
    return package().Tool(names.wire(spec.full_name), spec.description or None, dict(schema))


def _messages(turns: Sequence[Turn], names: WireNames) -> Iterator[Any]:
    from llm.parts import Message, TextPart, ToolCallPart

    for turn in turns:
        kept = (turn.native or {}).get(KEY)
        if kept is not None:
            yield from map(Message.from_dict, kept)
            continue
        if turn.tool_results:
            yield Message("tool", [_result(each, names) for each in turn.tool_results])
        parts: list[Any] = [TextPart(turn.content)] if turn.content else []
        parts += [ToolCallPart(names.wire(each.name), mapped(each.arguments), each.id) for each in turn.tool_calls]
        if parts:
            yield Message("user" if turn.role == "tool" else turn.role, parts)


def _result(result: ToolResult, names: WireNames) -> Any:
    from llm.parts import ToolResultPart

    return ToolResultPart(names.wire(result.tool), result_text(result, names), result.id)


def _reply(said: Any, names: WireNames) -> Reply:
    calls = [_call(each, at, names) for at, each in enumerate(said.tool_calls(), 1)]
    text = said.text()
    if not text.strip() and not calls:
        raise LLMError("the model said nothing", code="llm.empty", retry="later")
    counted = said.usage()
    kept = [message.to_dict() for message in said.messages()]
    turn = Turn("assistant", text, tuple(calls), native={KEY: kept})
    return Reply(turn, "tools" if calls else "end", Usage(counted.input or 0, counted.output or 0))


def _call(call: Any, at: int, names: WireNames) -> ToolCall:
    return ToolCall(names.tool(call.name), call.arguments, id=call.tool_call_id or f"call_{at}")
