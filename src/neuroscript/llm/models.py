"""The list of known models, and a check that a model answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.llm import library
from neuroscript.llm.clients import Model
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Usage

QUESTION: Final = "Answer with the one word: ready"
"""The prompt that checks whether a model answers."""


NO_USAGE: Final = Usage()


@attrs.frozen
class KnownModel:
    """A model that the ``llm`` package knows.

    Attributes:
        aliases: Its other names.
        api: ``openai-chat``, ``openai-responses``, ``anthropic`` or ``openai-embeddings``, or ``llm`` if a plugin of
            that package makes the requests.
        has_tools: Whether it can call tools.
        has_key: Whether its key is available, or it needs none.
        variable: The environment variable for its key; ``""`` if it needs none or has no variable.
    """

    name: str
    aliases: tuple[str, ...]
    api: str
    has_tools: bool
    has_key: bool
    variable: str


@attrs.frozen
class CheckResult:
    """The result of one small request.

    Attributes:
        api: The display name of the API.
        seconds: The duration of the request.
        error: Why there was no reply, or None.
    """

    name: str
    api: str
    seconds: float = 0.0
    usage: Usage = NO_USAGE
    error: LLMError | None = None

    @property
    def ok(self) -> bool:
        """Whether the model answered."""
        return self.error is None


def list_models() -> list[KnownModel]:
    """Return every model that the ``llm`` package knows, sorted by name, without any network access.

    Raises:
        LLMError: ``llm.not_installed``.
    """
    return sorted(_iter_models(), key=lambda each: each.name)


def _iter_models() -> Iterator[KnownModel]:
    package = library.package()
    for entry in package.get_models_with_aliases():
        if entry.model is not None:
            yield _facts(entry.model, entry.aliases, bool(entry.model.supports_tools))
    for embedder in package.get_embedding_models_with_aliases():
        yield _facts(embedder.model, embedder.aliases, False)


def _facts(model: Any, aliases: Any, has_tools: bool) -> KnownModel:
    variable = model.key_env_var if model.needs_key else None
    return KnownModel(
        model.model_id, tuple(aliases), library.api_of(model), has_tools, library.has_key(model), variable or ""
    )


def check(model: Model) -> CheckResult:
    """Send one small request to a model and return the result."""
    try:
        reply = model.reply([Turn("user", QUESTION)])
    except LLMError as error:
        return CheckResult(model.name, model.api, error=error)
    return CheckResult(model.name, model.api, reply.seconds, reply.usage)
