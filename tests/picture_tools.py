"""A toolset that returns content, for tests of everything that a result passes through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuroscript import Audio, Content, EmbeddedResource, Image, ResourceLink, Text, Toolset

pictures = Toolset("pictures")

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(32))
EVERY_BLOCK = Content(
    "The plot:",
    Text("for people", annotations={"audience": ["user"]}, meta={"k": [1, {"a": None}]}),
    Image(PNG, "image/png", annotations={"priority": 0.5}),
    Audio(b"RIFF\x00", "audio/wav", meta={"a": 1}),
    ResourceLink(
        "shop:a.csv", "a", title="A", description="Data.", media_type="text/csv", size=9, icons=[{"src": "x:y"}]
    ),
    EmbeddedResource("note:1", "grüße", media_type="text/plain", resource_meta={"m": 1}, annotations={"priority": 1.0}),
    EmbeddedResource("note:2", b"\xff\x00", meta={"m": 2}),
    structured={"rows": [1, 2.5, None]},
    meta={"took": 3},
)
"""Content with each form of block and each field."""


@pictures.tool
def every() -> Content:
    """Return content with each form of block."""
    return EVERY_BLOCK


@pictures.tool
def each(count: int) -> Iterator[Content]:
    """Yield content."""
    for number in range(count):
        yield Content(str(number), Image(PNG, "image/png"))


@pictures.tool
def echo(value: Any) -> Any:
    """Return a value."""
    return value


@pictures.tool
def say(text: str) -> Content:
    """Return a text in each place where a block has one."""
    link = ResourceLink(f"a:{text}", text, title=text, description=text)
    return Content(text, link, EmbeddedResource("b:c", text), structured={text: [text]}, meta={"k": text})
