"""Content that a tool returns for people and models: text, images, audio, links and embedded resources, in order.

The blocks are those of MCP 2025-11-25, "Tool Result". Content is immutable and valid once it exists, so no part of the
call pipeline has to check it again.
"""

from __future__ import annotations

import copy
import json
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import attrs

from neuroscript.coercion.context import RESULT, ROOT, CoercionPass
from neuroscript.coercion.parameters import FUNCTION, WHOLE, Form, optional, require, require_fields, sequence
from neuroscript.coercion.plain_data import FrozenDict, FrozenList, freeze, to_plain
from neuroscript.coercion.scalars import AnyContent, is_unicode, to_builtin
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import coerce_value
from neuroscript.errors import UNSET, SpecError

MAX_BLOCKS: Final = 10_000
"""Maximum number of blocks."""

MAX_CONTENT_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of all strings (as UTF-8), keys and byte strings together, in bytes."""


def _as_text(value: str) -> str:
    text: str = to_builtin(value)
    return text


def _as_maybe_text(value: str | None) -> str | None:
    text: str | None = to_builtin(value)
    return text


def _as_bytes(value: bytes | bytearray | memoryview) -> bytes:
    data: bytes = bytes(value) if isinstance(value, (bytearray, memoryview)) else to_builtin(value)
    return data


def _as_text_or_bytes(value: str | bytes) -> str | bytes:
    content: str | bytes = to_builtin(value)
    return content


def _as_map(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    data: Mapping[str, Any] | None = _as_data(dict(value)) if isinstance(value, Mapping) else value
    return data


def _as_list(value: Any) -> Any:
    return _as_data(value) if isinstance(value, list) else value


def _as_data(value: Any) -> Any:
    """Return plain data as exact, read-only data; anything else is returned unchanged, so that a check rejects it."""
    if value is None or value is UNSET:
        return value
    walk = CoercionPass(RESULT)
    exact = walk.limited(coerce_value, ArgType.ANY, value, ROOT)
    return value if walk.noted else freeze(exact)


def _is_data(value: Any) -> bool:
    """Return whether a value is `UNSET` or what `_as_data` returns for plain data."""
    if value is UNSET or type(value) in (FrozenDict, FrozenList):
        return True
    walk = CoercionPass(RESULT)
    walk.limited(coerce_value, ArgType.ANY, value, ROOT)
    return type(value) not in (dict, list) and not walk.noted


TEXT: Final = Form("a string", lambda value: type(value) is str, is_unicode, rule="valid Unicode")
MAYBE_TEXT: Final = optional(TEXT)
BYTES: Final = Form("bytes", lambda value: type(value) is bytes)
FACTS: Final = optional(Form("a map of plain data", lambda value: type(value) is FrozenDict))
ICONS: Final = optional(Form("a list of plain data", lambda value: type(value) is FrozenList))
DATA: Final = Form("plain data", _is_data)

FORMS: Final[Mapping[str, Form]] = {
    **dict.fromkeys(("text", "uri", "name"), TEXT),
    **dict.fromkeys(("media_type", "title", "description"), MAYBE_TEXT),
    **dict.fromkeys(("annotations", "meta", "resource_meta"), FACTS),
    "data": BYTES,
    "size": optional(WHOLE),
    "icons": ICONS,
}
"""The form of each field of a block."""

KEYS: Final[Mapping[str, str]] = {"media_type": "mimeType", "meta": "_meta"}
"""The fields with another name in the protocol."""


class Block:
    """One part of a `Content`; the classes below are its forms.

    Attributes:
        annotations: Hints for the reader, such as ``{"audience": ["user"]}``, or None.
        meta: Further facts for programs, or None.
    """

    __slots__ = ()

    kind: ClassVar[str] = ""
    """The type of the block in the protocol."""

    def __attrs_post_init__(self) -> None:
        require_fields(type(self).__name__, self, **{name: self._form(name) for name in names_of(self)})

    def _form(self, name: str) -> Form:
        return FORMS[name]

    @property
    def facts(self) -> dict[str, Any]:
        """The block with the keys of the protocol, as new plain data; bytes are bytes."""
        found: dict[str, Any] = {"type": self.kind}
        for name in names_of(self):
            value = getattr(self, name)
            if value is not None:
                found[KEYS.get(name, name)] = copy.deepcopy(value)
        return found

    @property
    def note(self) -> str:
        """What a reader sees who cannot see the block."""
        return ""


@attrs.frozen
class Text(Block):
    """A text.

    Attributes:
        text: The text.
        annotations: Hints for the reader, such as ``{"audience": ["user"]}``, or None.
        meta: Further facts for programs, or None.

    Raises:
        SpecError: With every problem, as in all classes of this module.
    """

    kind: ClassVar[str] = "text"

    text: str = attrs.field(converter=_as_text)
    annotations: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)
    meta: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)

    @property
    def note(self) -> str:
        return self.text


@attrs.frozen
class _Media(Block):
    data: bytes = attrs.field(converter=_as_bytes, repr=False)
    media_type: str = attrs.field(converter=_as_text)
    annotations: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)
    meta: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)

    def _form(self, name: str) -> Form:
        return TEXT if name == "media_type" else super()._form(name)

    @property
    def note(self) -> str:
        return _size_note(self.media_type, self.data)


@attrs.frozen
class Image(_Media):
    """An image.

    Attributes:
        data: The bytes of the file.
        media_type: Its media type, such as ``image/png``.
        annotations: Hints for the reader, or None.
        meta: Further facts for programs, or None.

    >>> Image(b"GIF89a", "image/gif").note
    '[image/gif, 6 bytes]'
    """

    kind: ClassVar[str] = "image"


@attrs.frozen
class Audio(_Media):
    """Audio.

    Attributes:
        data: The bytes of the file.
        media_type: Its media type, such as ``audio/wav``.
        annotations: Hints for the reader, or None.
        meta: Further facts for programs, or None.
    """

    kind: ClassVar[str] = "audio"


@attrs.frozen
class ResourceLink(Block):
    """A link to something that the reader may fetch.

    Attributes:
        uri: The address.
        name: A short name.
        title: A name for people, or None.
        description: What the link leads to, or None.
        media_type: The media type of the resource, or None.
        size: The size of the resource in bytes, or None.
        icons: Icons as plain data, or None.
        annotations: Hints for the reader, or None.
        meta: Further facts for programs, or None.
    """

    kind: ClassVar[str] = "resource_link"

    uri: str = attrs.field(converter=_as_text)
    name: str = attrs.field(converter=_as_text)
    title: str | None = attrs.field(default=None, kw_only=True, converter=_as_maybe_text)
    description: str | None = attrs.field(default=None, kw_only=True, converter=_as_maybe_text)
    media_type: str | None = attrs.field(default=None, kw_only=True, converter=_as_maybe_text)
    size: int | None = attrs.field(default=None, kw_only=True)
    icons: list[Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_list)
    annotations: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)
    meta: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)

    @property
    def note(self) -> str:
        name = self.title or self.name
        return f"[{name}: {self.uri}]"


@attrs.frozen
class EmbeddedResource(Block):
    """A resource with its content.

    Attributes:
        uri: Its address.
        content: Its text, or its bytes.
        media_type: Its media type, or None.
        resource_meta: Further facts about the resource, or None.
        annotations: Hints for the reader, or None.
        meta: Further facts about the block, or None.
    """

    kind: ClassVar[str] = "resource"

    uri: str = attrs.field(converter=_as_text)
    content: str | bytes = attrs.field(converter=_as_text_or_bytes, repr=False)
    media_type: str | None = attrs.field(default=None, kw_only=True, converter=_as_maybe_text)
    resource_meta: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)
    annotations: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)
    meta: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False, converter=_as_map)

    def _form(self, name: str) -> Form:
        if name != "content":
            return super()._form(name)
        return BYTES if type(self.content) is bytes else TEXT

    @property
    def facts(self) -> dict[str, Any]:
        key = "text" if type(self.content) is str else "blob"
        optionals = {"mimeType": self.media_type, "_meta": copy.deepcopy(self.resource_meta)}
        resource = {"uri": self.uri, **{name: each for name, each in optionals.items() if each is not None}}
        outer = {"annotations": copy.deepcopy(self.annotations), "_meta": copy.deepcopy(self.meta)}
        shown = {name: each for name, each in outer.items() if each is not None}
        return {"type": self.kind, "resource": {**resource, key: self.content}, **shown}

    @property
    def note(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return _size_note(f"{self.uri}, {self.media_type or 'unknown type'}", self.content)


KINDS: Final = (Text, Image, Audio, ResourceLink, EmbeddedResource)
BLOCK: Final = Form(
    "a string, Text, Image, Audio, ResourceLink or EmbeddedResource", lambda value: type(value) in KINDS
)
BLOCKS: Final = sequence(BLOCK, "blocks")


def _as_blocks(blocks: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(Text(each) if isinstance(each, str) else each for each in blocks)


@attrs.frozen(init=False)
class Content(AnyContent):
    """What a tool returns if one value is not enough: blocks in the order in which a reader sees them.

    Attributes:
        blocks: The blocks, each a `Text`, `Image`, `Audio`, `ResourceLink` or `EmbeddedResource`.
        structured: The same result as data for programs, read-only; `UNSET` if there is none.
        meta: Further facts about the result for programs, or None.
        size: The bytes of all strings (as UTF-8), keys and byte strings.
        count: The number of values.

    Raises:
        SpecError: A block is of another type, or there are more than 10,000 blocks or 32 MiB.

    >>> Content("The plot:", Image(b"GIF89a", "image/gif")).text
    'The plot:\\n[image/gif, 6 bytes]'
    """

    blocks: tuple[Block, ...] = attrs.field(converter=_as_blocks)
    structured: Any = attrs.field(default=UNSET, converter=_as_data)
    meta: Mapping[str, Any] | None = attrs.field(default=None, converter=_as_map)
    size: int = attrs.field(init=False, default=0, eq=False, repr=False)
    count: int = attrs.field(init=False, default=0, eq=False, repr=False)

    def __init__(self, *blocks: str | Block, structured: Any = UNSET, meta: Mapping[str, Any] | None = None) -> None:
        """Create content.

        Args:
            blocks: The blocks; a string is a `Text`.
            structured: The same result as data for programs.
            meta: Further facts about the result for programs.
        """
        if len(blocks) > MAX_BLOCKS:
            raise SpecError("Content", [f"expected at most {MAX_BLOCKS} blocks, got {len(blocks)}"])
        self.__attrs_init__(blocks, structured, meta)
        if self.size > MAX_CONTENT_BYTES:
            raise SpecError("Content", [f"expected at most {MAX_CONTENT_BYTES} bytes, got {self.size}"])

    def __attrs_post_init__(self) -> None:
        require_fields("Content", self, blocks=BLOCKS, structured=DATA, meta=FACTS)
        size, count = _measure(self.data)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "count", count)

    @property
    def text(self) -> str:
        """The content as a reader sees it who reads only text: images and other bytes are replaced by a note."""
        return "\n".join(each.note for each in self.parts)

    @property
    def parts(self) -> tuple[Block, ...]:
        """The blocks as a reader sees them: the structured content comes first, as JSON, if no block is a text."""
        if self.structured is UNSET or any(type(each) is Text for each in self.blocks):
            return self.blocks
        return (Text(json.dumps(to_plain(self.structured), ensure_ascii=False)), *self.blocks)

    @property
    def data(self) -> dict[str, Any]:
        """The content with the keys of the protocol, as new plain data; bytes are bytes. See `of_data`."""
        return self._with([each.facts for each in self.blocks])

    @property
    def wire(self) -> dict[str, Any]:
        """The content as JSON data with the keys of the protocol; bytes are base64 strings."""
        found: dict[str, Any] = to_plain(self._with(_encoded([each.facts for each in self.blocks])))
        return found

    def _with(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the content with the keys of the protocol and these blocks."""
        found: dict[str, Any] = {"content": blocks}
        if self.structured is not UNSET:
            found["structuredContent"] = copy.deepcopy(self.structured)
        if self.meta is not None:
            found["_meta"] = copy.deepcopy(self.meta)
        return found

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The `parts` as JSON data, for readers who do not see the structured content."""
        found: list[dict[str, Any]] = to_plain(_encoded([each.facts for each in self.parts]))
        return found

    @classmethod
    def of_data(cls, data: Any) -> Content:
        """Return the content for plain data with the keys of the protocol; bytes may be a base64 string.

        Raises:
            SpecError: The data is invalid.
        """
        match data:
            case {"content": list() as blocks}:
                if len(blocks) > MAX_BLOCKS:
                    raise SpecError("Content", [f"expected at most {MAX_BLOCKS} blocks, got {len(blocks)}"])
                structured = data.get("structuredContent", UNSET)
                return cls(*map(_block, blocks), structured=structured, meta=data.get("_meta"))
            case _:
                raise SpecError("Content", ["expected a map with a list under content"])

    def mapped(self, change: Callable[[Any], Any]) -> Content:
        """Return the content with *change* applied to the value of each field, or itself if all are unchanged.

        The result may be larger than content that a tool returns, because a mark may be longer than a secret.
        """
        require("mapped", change=(change, FUNCTION))
        blocks = [_mapped(each, change) for each in self.blocks]
        structured = self.structured if self.structured is UNSET else change(self.structured)
        meta = change(self.meta)
        pairs = zip((*blocks, structured, meta), (*self.blocks, self.structured, self.meta), strict=True)
        if all(new is old for new, old in pairs):
            return self
        made = Content.__new__(Content)
        made.__attrs_init__(tuple(blocks), structured, meta)
        return made

    @property
    def values(self) -> list[Any]:
        """The value of each field of each block, then the structured content and the metadata."""
        found = [getattr(each, name) for each in self.blocks for name in names_of(each)]
        return [*found, None if self.structured is UNSET else self.structured, self.meta]


def _size_note(what: str, data: bytes) -> str:
    return f"[{what}, {len(data):,} bytes]"


def names_of(block: Any) -> list[str]:
    """Return the names of the fields of a block."""
    return [each.name for each in attrs.fields(type(block))]


def _mapped(block: Any, change: Callable[[Any], Any]) -> Any:
    old = {name: getattr(block, name) for name in names_of(block)}
    new = {name: change(value) for name, value in old.items()}
    return block if all(new[name] is old[name] for name in old) else attrs.evolve(block, **new)


def _measure(value: Any) -> tuple[int, int]:
    """Return the bytes of the strings and byte strings in plain data, and the number of its values."""
    size = count = 0
    waiting = [value]
    while waiting:
        count += 1
        match waiting.pop():
            case str() as text:
                size += len(text) if text.isascii() else len(text.encode())
            case bytes() as data:
                size += len(data)
            case list() as items:
                waiting.extend(items)
            case dict() as items:
                waiting.extend(items.values())
                size += sum(len(str(key).encode()) for key in items)
            case AnyContent():
                raise SpecError("Content", ["structured content and metadata cannot contain content"])
    return size, count


def _block(data: Any) -> Block:
    """Return the block for plain data with the keys of the protocol."""
    match data:
        case {"type": "text", "text": text}:
            return Text(text, **_outer(data))
        case {"type": "image", "data": content, "mimeType": kind}:
            return Image(_decoded(content), kind, **_outer(data))
        case {"type": "audio", "data": content, "mimeType": kind}:
            return Audio(_decoded(content), kind, **_outer(data))
        case {"type": "resource_link", "uri": uri, "name": name}:
            facts = {each: data.get(each) for each in ("title", "description", "size", "icons")}
            return ResourceLink(uri, name, media_type=data.get("mimeType"), **facts, **_outer(data))
        case {"type": "resource", "resource": {"uri": uri, **resource}}:
            inner: dict[str, Any] = {"media_type": resource.get("mimeType"), "resource_meta": resource.get("_meta")}
            inside: Any = resource["text"] if "text" in resource else _decoded(resource.get("blob"))
            return EmbeddedResource(uri, inside, **inner, **_outer(data))
        case _:
            raise SpecError("Content", ["a block has an unsupported content type"])


def _outer(data: Any) -> dict[str, Any]:
    return {"annotations": data.get("annotations"), "meta": data.get("_meta")}


def _decoded(content: Any) -> Any:
    if type(content) is not str:
        return content
    try:
        return a2b_base64(content, strict_mode=True)
    except (Error, ValueError):
        raise SpecError("Content", ["a block contains invalid base64"]) from None


def _encoded(value: Any) -> Any:
    match value:
        case bytes():
            return b2a_base64(value, newline=False).decode("ascii")
        case list():
            return [_encoded(each) for each in value]
        case dict():
            return {key: _encoded(each) for key, each in value.items()}
        case _:
            return value
