"""Model clients and the conversation loop in which a model calls the tools of an engine.

Every public name is exported here; the module that defines it is loaded on first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.llm.clients import Model, model
    from neuroscript.llm.events import (
        CallEnded,
        CallStarted,
        Conversation,
        ConversationError,
        Event,
        ItemProduced,
        ReplyReceived,
        RetryScheduled,
        TextReceived,
    )
    from neuroscript.llm.loop import aconverse, converse
    from neuroscript.llm.transcripts import transcript
    from neuroscript.llm.typed_answers import aask, ask

__all__ = [
    "CallEnded",
    "CallStarted",
    "Conversation",
    "ConversationError",
    "Event",
    "ItemProduced",
    "Model",
    "ReplyReceived",
    "RetryScheduled",
    "TextReceived",
    "aask",
    "aconverse",
    "ask",
    "converse",
    "model",
    "transcript",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "clients": "Model model",
        "events": "CallEnded CallStarted Conversation ConversationError Event ItemProduced ReplyReceived "
        "RetryScheduled TextReceived",
        "loop": "aconverse converse",
        "transcripts": "transcript",
        "typed_answers": "aask ask",
    },
)
