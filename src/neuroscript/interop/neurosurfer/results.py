"""Observations of neurosurfer tools: plain values, the text of model replies, and streams of items."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs

from neuroscript.llm.wire.sdk_data import to_plain_data


def convert_observation(observation: Any) -> Any:
    """Return an observation in the engine's form: a value, or an iterator that nothing has been read from."""
    if hasattr(type(observation), "__anext__"):
        return AwaitedItems(observation)
    return Items(observation) if hasattr(type(observation), "__next__") else value_of(observation)


def value_of(item: Any) -> Any:
    """Return the text of a model reply, and any other value unchanged.

    Replies of neurosurfer's models, and their chunks, have the format of the OpenAI SDK.
    """
    if not hasattr(type(item), "model_dump"):
        return item
    match data := to_plain_data(item):
        case {"choices": [{"message": dict() as said}, *_]} | {"choices": [{"delta": dict() as said}, *_]}:
            return said.get("content") or ""
        case {"choices": [{"delta": None}, *_]}:
            return ""
        case _:
            return data


def _item_of(item: Any) -> Any:
    """Return the value of an item; its code must not raise an exception that would end the iteration."""
    try:
        return value_of(item)
    except (StopIteration, StopAsyncIteration) as error:
        raise RuntimeError("an item cannot be converted") from error


@attrs.frozen(eq=False, repr=False)
class Items:
    """The values of a generator."""

    source: Iterator[Any]

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        return _item_of(next(self.source))

    def close(self) -> None:
        """Close the generator; other iterators need no closing."""
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
        """Close the generator; other iterators need no closing."""
        if hasattr(self.source, "aclose"):
            await self.source.aclose()
