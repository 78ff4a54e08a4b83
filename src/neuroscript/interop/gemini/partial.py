"""Arguments of a call that come in pieces, each for one place in them.

Source: Gemini API reference, ``PartialArg``; RFC 9535, the paths of single places ("normalized paths", shorthands).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.interop.dumped import strange

STEP: Final = re.compile(
    r"\.(?P<word>[^.\[\]'\"]+)|\[(?P<index>\d{1,9})\]|\['(?P<single>(?:[^'\\]|\\.)*+)'\]|\[\"(?P<double>(?:[^\"\\]|\\.)*+)\"\]"
)
"""A step of a path, to a key or to an item."""

ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
CONTROLS: Final[Mapping[str, str]] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

Path = tuple[str | int, ...]


@attrs.frozen
class Partial:
    """The pieces of one call's arguments.

    Attributes:
        texts: The pieces of each text, by its path.
        values: Every other value, by its path; of a text None, which keeps its place in the order.
    """

    texts: dict[Path, list[str]] = attrs.field(factory=dict)
    values: dict[Path, Any] = attrs.field(factory=dict)

    def take(self, piece: Mapping[str, Any]) -> None:
        """Take the next piece.

        Raises:
            LLMError: ``llm.format``, it names no single place.
        """
        path = path_of(piece.get("jsonPath"))
        if isinstance(piece.get("stringValue"), str):
            self.texts.setdefault(path, []).append(piece["stringValue"])
            self.values.setdefault(path, None)
        elif "numberValue" in piece:
            self.values[path] = _number(piece["numberValue"])
        elif "boolValue" in piece or "nullValue" in piece:
            self.values[path] = piece.get("boolValue")

    def whole(self) -> dict[str, Any]:
        """Return the arguments.

        Raises:
            LLMError: ``llm.format``, two places can not both be, or an item comes before those ahead of it.
        """
        root: dict[str, Any] = {}
        for path, value in self.values.items():
            texts = self.texts.get(path)
            _put(root, path, value if texts is None else "".join(texts))
        return root


def path_of(text: Any) -> Path:
    """Return the keys and the indexes of a path.

    >>> path_of("$.place['the zip'][0]")
    ('place', 'the zip', 0)
    """
    if not isinstance(text, str) or not text.startswith("$"):
        raise strange("a piece of a call has no path")
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = STEP.match(text, at)
        if found is None:
            raise strange("a piece of a call has a path that can not be read")
        steps.append(_step(found))
        at = found.end()
    if not steps or not isinstance(steps[0], str):
        raise strange("a piece of a call is of no argument")
    return tuple(steps)


def _step(found: re.Match[str]) -> str | int:
    if found["index"] is not None:
        return int(found["index"])
    quoted = found["single"] if found["single"] is not None else found["double"]
    return found["word"] if quoted is None else _unescaped(quoted)


def _unescaped(quoted: str) -> str:
    """Return a key without its escapes; two that are the halves of one character become that."""
    if "\\" not in quoted:
        return quoted
    return ESCAPE.sub(_escaped, quoted).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else CONTROLS.get(found[2], found[2])


def _number(value: Any) -> Any:
    """Return a number as JSON text would give it; the SDK has none but floats."""
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**53 else value


def _put(root: dict[str, Any], path: Path, value: Any) -> None:
    place: Any = root
    for step, following in itertools.pairwise(path):
        fresh: Any = {} if isinstance(following, str) else []
        place = _entry(place, step, fresh)
    if _entry(place, path[-1], value) is not value:
        raise strange("two pieces of a call are of one place")


def _entry(place: Any, step: str | int, fresh: Any) -> Any:
    """Return what stands at a step, *fresh* where nothing does yet."""
    if isinstance(place, dict) and isinstance(step, str):
        return place.setdefault(step, fresh)
    if isinstance(place, list) and isinstance(step, int) and step <= len(place):
        if step == len(place):
            place.append(fresh)
        return place[step]
    raise strange("the pieces of a call do not fit together")
