"""Which models there are, what each needs, and whether one answers.

Source: issue "Models", ``models list|check``.
"""

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
"""What a model is asked to find out whether it answers."""


NOTHING: Final = Usage()


@attrs.frozen
class KnownModel:
    """A model that the package ``llm`` knows.

    Attributes:
        aliases: Its other names.
        api: What it is reached by: ``openai-chat``, ``openai-responses``, ``anthropic``, ``openai-embeddings``, or
            ``llm`` where a plugin of that package knows how.
        has_tools: Whether it can ask for calls of tools.
        has_key: Whether there is what it needs of a key.
        variable: Where its key stands in the environment; ``""`` where it needs none, or has no such place.
    """

    name: str
    aliases: tuple[str, ...]
    api: str
    has_tools: bool
    has_key: bool
    variable: str


@attrs.frozen
class Checked:
    """What came of one small request.

    Attributes:
        api: The API that was spoken, as people call it.
        seconds: How long it took.
        error: Why there was no reply; None where there was one.
    """

    name: str
    api: str
    seconds: float = 0.0
    usage: Usage = NOTHING
    error: LLMError | None = None

    @property
    def ok(self) -> bool:
        """Whether the model answered."""
        return self.error is None


def known() -> list[KnownModel]:
    """Return every model that the package ``llm`` knows, by name; nothing is asked of any network.

    Raises:
        LLMError: ``llm.missing``.
    """
    return sorted(_known(), key=lambda each: each.name)


def _known() -> Iterator[KnownModel]:
    package = library.package()
    for entry in package.get_models_with_aliases():
        if entry.model is not None:
            yield _facts(entry.model, entry.aliases, bool(entry.model.supports_tools))
    for embedder in package.get_embedding_models_with_aliases():
        yield _facts(embedder.model, embedder.aliases, False)


def _facts(model: Any, aliases: Any, has_tools: bool) -> KnownModel:
    variable = model.key_env_var if model.needs_key else None
    return KnownModel(
        model.model_id, tuple(aliases), library.way(model), has_tools, library.has_key(model), variable or ""
    )


def check(model: Model) -> Checked:
    """Return what came of one small request to a model."""
    try:
        reply = model.reply([Turn("user", QUESTION)])
    except LLMError as error:
        return Checked(model.name, model.api, error=error)
    return Checked(model.name, model.api, reply.seconds, reply.usage)
