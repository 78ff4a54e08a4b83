"""What a tool of neurosurfer has observed: a value as it is, a reply of a model as its text, a generator as a stream.

Source: seed-systems.md rows NSF-33, NSF-34; neurosurfer's ``normalize_tool_observation``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs

from neuroscript.llm.wire.sdk_data import dumped


def observed(observation: Any) -> Any:
    """Return an observation as the line takes it: a value, or an iterator, which is read by nobody before the line."""
    if hasattr(type(observation), "__anext__"):
        return AwaitedItems(observation)
    return Items(observation) if hasattr(type(observation), "__next__") else value_of(observation)


def value_of(thing: Any) -> Any:
    """Return what a model's SDK has made as the text that it holds, and everything else as it is.

    neurosurfer's models give replies, and pieces of them, in the shape of OpenAI's.
    """
    if not hasattr(type(thing), "model_dump"):
        return thing
    match data := dumped(thing):
        case {"choices": [{"message": dict() as said}, *_]} | {"choices": [{"delta": dict() as said}, *_]}:
            return said.get("content") or ""
        case {"choices": [{"delta": None}, *_]}:
            return ""
        case _:
            return data


def _item_of(thing: Any) -> Any:
    """Return the value of an item, whose own code can not pass for the end of all of them."""
    try:
        return value_of(thing)
    except (StopIteration, StopAsyncIteration) as error:
        raise RuntimeError("an item can not be told") from error


@attrs.frozen(eq=False, repr=False)
class Items:
    """The values of a generator."""

    source: Iterator[Any]

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        return _item_of(next(self.source))

    def close(self) -> None:
        """End the generator; other iterators need no end."""
        if hasattr(self.source, "close"):
            self.source.close()


@attrs.frozen(eq=False, repr=False)
class AwaitedItems:
    """The values of an async generator."""

    source: AsyncIterator[Any]

    def __aiter__(self) -> AwaitedItems:
        return self

    async def __anext__(self) -> Any:
        item = await anext(self.source)
        return _item_of(item)

    async def aclose(self) -> None:
        """End the generator; other iterators need no end."""
        if hasattr(self.source, "aclose"):
            await self.source.aclose()
