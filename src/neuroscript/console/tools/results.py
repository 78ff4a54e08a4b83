"""Results of calls as a tree, a table, text and pictures. All of it is text or a picture; nothing is HTML of a tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs

from neuroscript.coercion.content import Content, Image
from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.io.text import shorten

MAX_TEXT_CHARS: Final = 200_000
"""Maximum number of characters of a result that a page shows."""

MAX_NODES: Final = 2_000
"""Maximum number of values in a tree."""

MAX_LEVELS: Final = 24
MAX_ROWS: Final = 300
MAX_COLUMNS: Final = 30
MAX_CELL_CHARS: Final = 300
MAX_LEAF_CHARS: Final = 5_000
MAX_PICTURES: Final = 20
MAX_PICTURE_BYTES: Final = 20 * 1024 * 1024
"""Maximum size of all pictures of a result in bytes."""

MEDIA_TYPES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
"""The first bytes of pictures that contain no code. SVG is not among them, because it can contain scripts."""


@attrs.frozen
class Node:
    """A value in a tree.

    Attributes:
        label: Its key or index; ``""`` for the whole value.
        type: The name of its type.
        text: The value, or of a container how many items or keys it has.
        children: The values within it.
        is_open: Whether the children are shown at first.
    """

    label: str
    type: str
    text: str = attrs.field(repr=False)
    children: tuple[Node, ...] = attrs.field(default=(), repr=False)
    is_open: bool = False


@attrs.frozen
class Table:
    """A result as a table.

    Attributes:
        columns: The titles of the columns.
        rows: The text of each cell.
        omitted: How many rows are not shown.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = attrs.field(repr=False)
    omitted: int = 0


@attrs.frozen
class Picture:
    """A picture in a result.

    Attributes:
        data: The bytes of the file.
        media_type: One of `MEDIA_TYPES`, by the first bytes of the file, whatever the tool says.
    """

    data: bytes = attrs.field(repr=False)
    media_type: str


@attrs.frozen
class ResultView:
    """A result in each form that suits it.

    Attributes:
        type: The name of its type.
        text: The result as text: strings unchanged, other values as JSON.
        omitted: How many characters of the text are not shown.
        tree: The result as a tree, or None if it contains nothing.
        table: The result as a table, or None if it is not a list of rows.
        pictures: The pictures in it.
    """

    type: str
    text: str = attrs.field(repr=False)
    omitted: int
    tree: Node | None
    table: Table | None
    pictures: tuple[Picture, ...]

    @property
    def views(self) -> tuple[str, ...]:
        """The forms that suit the result, the most suitable first."""
        found = (("picture", self.pictures), ("table", self.table), ("tree", self.tree), ("text", True))
        return tuple(name for name, shown in found if shown)


def view_of(value: Any) -> ResultView:
    """Return the result of a call in each form that suits it."""
    pictures = tuple(_pictures(value))
    text = _text(value, has_pictures=bool(pictures))
    plain = _plain(value)
    tree = _tree("", plain, _Budget()) if isinstance(plain, (dict, list)) and plain else None
    return ResultView(
        type(value).__name__, text[:MAX_TEXT_CHARS], max(0, len(text) - MAX_TEXT_CHARS), tree, _table(plain), pictures
    )


def item_text(value: Any) -> str:
    """Return one item of a stream as text."""
    text = _text(value, has_pictures=False, indent=None)
    return text if len(text) <= MAX_LEAF_CHARS else f"{text[:MAX_LEAF_CHARS]}… ({len(text):,} characters)"


def _plain(value: Any) -> Any:
    """Return a value as JSON data; of content, the structured data or the blocks without their bytes."""
    if isinstance(value, Content):
        return value.shown
    return to_plain(value)


def _text(value: Any, *, has_pictures: bool, indent: int | None = 2) -> str:
    if isinstance(value, bytes):
        return f"[{len(value):,} bytes]" if has_pictures else _bytes_text(value)
    readable = readable_text(value)
    if readable is not None:
        return readable
    try:
        return json.dumps(to_plain(value), ensure_ascii=False, indent=indent)
    except (TypeError, ValueError):
        return repr(value)


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data[: MAX_TEXT_CHARS // 2].hex(" ")


class _Budget:
    """How many values a tree may still show."""

    def __init__(self) -> None:
        self.left = MAX_NODES

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _tree(label: str, value: Any, budget: _Budget, level: int = 0) -> Node:
    kind = type(value).__name__
    if not isinstance(value, (dict, list)):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
        return Node(label, kind, shorten(text, MAX_LEAF_CHARS))
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    unit = "key" if isinstance(value, dict) else "item"
    size = f"{len(pairs):,} {unit}{'s' * (len(pairs) != 1)}"
    if level >= MAX_LEVELS:
        return Node(label, kind, size)
    children = []
    for key, each in pairs:
        if not budget.take():
            break
        children.append(_tree(str(key), each, budget, level + 1))
    if len(children) < len(pairs):
        size = f"{size}, of which {len(pairs) - len(children):,} are not shown"
    return Node(label, kind, size, tuple(children), level < 2)


def _table(value: Any) -> Table | None:
    """Return a list of maps, or of lists, as a table, or None."""
    if not isinstance(value, list) or not value:
        return None
    shown = value[:MAX_ROWS]
    if all(isinstance(row, dict) for row in shown):
        columns = tuple(dict.fromkeys(str(key) for row in shown for key in row))
        if not 0 < len(columns) <= MAX_COLUMNS:
            return None
        rows = tuple(tuple(_cell(row, column) for column in columns) for row in shown)
    elif all(isinstance(row, list) for row in shown):
        width = max(map(len, shown))
        if not 0 < width <= MAX_COLUMNS:
            return None
        columns = tuple(str(number) for number in range(1, width + 1))
        rows = tuple(tuple(_cell_text(row[i]) if i < len(row) else "" for i in range(width)) for row in shown)
    else:
        return None
    return Table(columns, rows, len(value) - len(shown))


def _cell(row: dict[Any, Any], column: str) -> str:
    return _cell_text(row[column]) if column in row else ""


def _cell_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return shorten(text, MAX_CELL_CHARS)


def _pictures(value: Any) -> Iterator[Picture]:
    if isinstance(value, bytes):
        found = [value]
    elif isinstance(value, Content):
        found = [block.data for block in value.parts if isinstance(block, Image)][:MAX_PICTURES]
    else:
        return
    left = MAX_PICTURE_BYTES
    for data in found:
        media_type, left = media_type_of(data), left - len(data)
        if media_type and left >= 0:
            yield Picture(data, media_type)


def media_type_of(data: bytes) -> str:
    """Return the media type of a picture by its first bytes, or ``""`` if it is not one that is shown.

    >>> media_type_of(b"GIF89a..."), media_type_of(b"<svg onload=alert(1)>")
    ('image/gif', '')
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in MEDIA_TYPES if data.startswith(start)), "")
