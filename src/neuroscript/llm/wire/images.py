"""Content with images as model APIs take it: texts and images in order, and images as data URLs."""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any, Final

from neuroscript.coercion.scalars import AnyContent
from neuroscript.runtime.interfaces import ToolResult

MEDIA_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The images that the APIs of OpenAI and Anthropic take."""


def texts_and_images(result: ToolResult) -> list[Any]:
    """Return strings and `Image` blocks for content with images; an empty list for all other results.

    Blocks that the APIs do not take are replaced by their notes; blank texts are left out, because APIs reject them.
    """
    value: Any = result.value
    if not isinstance(value, AnyContent):
        return []
    parts = [each if _is_image(each) else each.note for each in value.parts]
    if not any(map(_is_image, parts)):
        return []
    return [each for each in parts if _is_image(each) or each.strip()]


def _is_image(block: Any) -> bool:
    return getattr(block, "kind", "") == "image" and block.media_type in MEDIA_TYPES


def base64_text(data: bytes) -> str:
    """Return bytes as a base64 string."""
    return b2a_base64(data, newline=False).decode("ascii")


def data_url(media_type: str, data: bytes) -> str:
    """Return an image as a URL that contains it.

    >>> data_url("image/gif", b"GIF89a")
    'data:image/gif;base64,R0lGODlh'
    """
    return f"data:{media_type};base64,{base64_text(data)}"
