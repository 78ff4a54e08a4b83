"""Approval prompts: a call as lines of text that no argument value can imitate.

Text from callers and authors follows a bar, ``|``, or ``:`` on continuation lines; no line of the prompt itself has one
in that column. This code breaks the rows and not the terminal, and it escapes every character that moves the cursor,
changes the writing direction, hides text or has no width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final
from unicodedata import category, east_asian_width

import attrs

from neuroscript.approval.request import ApprovalRequest
from neuroscript.io.text import escape

LABEL_CELLS: Final = 11
"""Cells of a line before the bar."""

MAX_ROWS: Final = 6
"""Rows that a value, a need or a description may take."""

MAX_NEEDS: Final = 10
"""Maximum number of needs that are shown; the others are counted."""

MAX_COMBINING_MARKS: Final = 2
"""Combining marks that a letter may have; more of them would cover the lines above."""

FIRST_WIDE_CODE_POINT: Final = 0x1F000
"""From this code point on there are pictures, which terminals draw in two cells whatever the tables say."""

MASKED: Final = "[secret]"

BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""Characters that count as printable and show nothing."""


def card(request: ApprovalRequest, columns: int, encoding: str = "utf-8") -> str:
    """Return what the user must see before a call is approved; each line includes its line end.

    Args:
        columns: How many cells a line has; the last one stays free.
        encoding: The encoding of the output; characters that it lacks are escaped.
    """
    width = columns - LABEL_CELLS - 3  # the bar, a space, and the last cell
    lines = ["-" * (columns - 1), *chain.from_iterable(_lines(part, width, encoding) for part in card_parts(request))]
    return "".join(f"{line}\n" for line in lines)


@attrs.frozen
class CardPart:
    """One labelled part of an approval card.

    Attributes:
        label: What the texts are, such as ``arguments``.
        texts: The texts. They may contain any character.
        is_trusted: Whether they come from the registry, the engine or the host, not from authors or callers.
        omitted: How many further texts there are.
    """

    label: str
    texts: tuple[str, ...]
    is_trusted: bool = False
    omitted: int = 0


def card_parts(request: ApprovalRequest) -> tuple[CardPart, ...]:
    """Return what the user must see before a call is approved, with secrets masked; parts without texts are left out.

    The parts ``effects`` and ``arguments`` are always included.
    """
    injected = tuple(f"{name}, by the host" for name in request.injected)
    parts = (
        CardPart("tool", (request.tool,), is_trusted=True),
        CardPart("about", (request.description,) if request.description else ()),
        CardPart("needs", tuple(_needs(request)), omitted=max(0, len(request.needs) - MAX_NEEDS)),
        CardPart("effects", (", ".join(request.effects) or "none",), is_trusted=True),
        CardPart("flow", request.flows, is_trusted=True),
        CardPart("called by", (" < ".join(request.above),) if request.above else (), is_trusted=True),
        CardPart("arguments", tuple(_arguments(request)) or ("none",), is_trusted=not request.arguments),
        CardPart("injected", injected),
    )
    return tuple(part for part in parts if part.texts)


def _lines(part: CardPart, width: int, encoding: str) -> Iterator[str]:
    if part.is_trusted:
        return _trusted_lines(part.label, part.texts, width, encoding)
    return _untrusted_lines(part.label, part.texts, width, encoding, part.omitted)


def _trusted_lines(label: str, texts: Iterable[str], width: int, encoding: str) -> Iterator[str]:
    """Yield the lines with text of the registry, the engine and the host, broken between words if possible."""
    head = f"{label}:"
    for row in chain.from_iterable(rows(line, width, encoding) for line in _wrapped(texts, width, encoding)):
        yield f"{head:{LABEL_CELLS}}{row}"
        head = ""


def _wrapped(texts: Iterable[str], width: int, encoding: str) -> Iterator[str]:
    """Yield texts as lines that break at spaces. Each further line begins with one, so none of them imitates a bar."""
    for text in texts:
        row, *words = text.split(" ")
        for word in words:
            longer = f"{row} {word}"
            if len(rows(longer, width, encoding)) > 1:
                yield row
                longer = f" {word}"
            row = longer
        yield row


def _untrusted_lines(label: str, texts: Iterable[str], width: int, encoding: str, untold: int = 0) -> Iterator[str]:
    """Yield the lines with text of authors and callers: each text begins with a bar, and continues with a colon."""
    head = f"{label}:"
    for text in texts:
        shown = rows(text[: MAX_ROWS * width], width, encoding)
        for index, row in enumerate(shown[:MAX_ROWS]):
            yield f"{head:{LABEL_CELLS}}{':' if index else '|'} {row}"
            head = ""
        if len(text) > MAX_ROWS * width or len(shown) > MAX_ROWS:
            yield f"{'':{LABEL_CELLS}}(cut; {len(text)} characters in all)"
    if untold > 0:
        yield f"{'':{LABEL_CELLS}}(and {untold} more)"


def _needs(request: ApprovalRequest) -> Iterator[str]:
    """Yield the first needs; a need that contains a secret argument is cut after its verb."""
    secrets = [request.arguments[name] for name in request.secrets if name in request.arguments]
    for need in request.needs[:MAX_NEEDS]:
        hidden = any(_may_hold(need, secret) for secret in secrets)
        yield ":".join([*need.split(":")[:2], MASKED]) if hidden else need


def _may_hold(need: str, secret: Any) -> bool:
    if secret is None or type(secret) is bool or secret == "":
        return False
    return type(secret) not in (str, int, float) or str(secret).casefold() in need.casefold()


def _arguments(request: ApprovalRequest) -> Iterator[str]:
    for name, value in request.arguments.items():
        yield f"{name} = {MASKED if name in request.secrets else value_text(value)}"


def value_text(value: Any) -> str:
    """Return an exact value as JSON, or as Python source if JSON would change it.

    >>> value_text({"a": [1, None]}), value_text({1: b"x"})
    ('{"a": [1, null]}', "{1: b'x'}")
    """
    import json

    try:
        text = json.dumps(value, ensure_ascii=False)
        return text if json.loads(text) == value else repr(value)
    except (TypeError, ValueError):
        return repr(value)


def rows(text: str, width: int, encoding: str = "utf-8") -> list[str]:
    """Return a string as rows of at most *width* cells, escaped where necessary; no rows for an empty string."""
    found: list[str] = []
    left = 0
    for piece, cells in _pieces(text.encode(encoding, "backslashreplace").decode(encoding)):
        if cells > left:
            found.append("")
            left = width
        found[-1] += piece
        left -= cells
    return found


def visible_text(text: str) -> str:
    """Return a string as a card shows it, without line breaks: escaped where it could hide or reorder characters.

    >>> visible_text("a\\u202eb\\u200b")
    'a\\\\u202eb\\\\u200b'
    """
    return "".join(piece for piece, _ in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Yield each character as it is shown, and how many cells it takes at most; a combining mark takes none."""
    marks = MAX_COMBINING_MARKS
    for each in text:
        if category(each) in ("Mn", "Me") and marks < MAX_COMBINING_MARKS and not BLANK.match(each):
            marks += 1
            yield each, 0
            continue
        plain = _plain(each)
        marks = 0 if plain == each and category(each)[0] in "LM" else MAX_COMBINING_MARKS
        yield from ((part, _cells(part)) for part in plain)


def _plain(character: str) -> str:
    if category(character) in ("Mn", "Me") or BLANK.match(character):
        return ascii(character)[1:-1]
    return escape(character)


def _cells(character: str) -> int:
    return 2 if ord(character) >= FIRST_WIDE_CODE_POINT or east_asian_width(character) in "WFA" else 1
