"""Streamed responses of Google's Gemini API, including call arguments that arrive in pieces.

Each piece of an argument names its place by a JSONPath of keys and indexes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.io.text import join_surrogates, json_text
from neuroscript.llm.wire.gemini.replies import (
    candidate_of,
    parts_of,
    reason_of,
    reply_of,
    response_data,
    usage_of,
    visible_text,
)
from neuroscript.llm.wire.sdk_data import format_error, map_in, maps_in
from neuroscript.llm.wire.tools import MALFORMED
from neuroscript.runtime.replies import Reply, Usage
from neuroscript.runtime.wire_names import WireNames

STEP: Final = re.compile(
    r"\.(?P<word>[^.\[\]'\"]+)|\[(?P<index>\d{1,9})\]|\['(?P<single>(?:[^'\\]|\\.)*+)'\]|\[\"(?P<double>(?:[^\"\\]|\\.)*+)\"\]"
)
"""A step of a path: a key or an index."""


ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


CONTROLS: Final[Mapping[str, str]] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


Path = tuple[str | int, ...]


@attrs.frozen
class Partial:
    """The arguments of one call that arrive in pieces.

    Attributes:
        pieces: The pieces of each string, by path.
        values: All other values by path; None for a string, which keeps its position.
    """

    pieces: dict[Path, list[str]] = attrs.field(factory=dict)
    values: dict[Path, Any] = attrs.field(factory=dict)

    def take(self, piece: Mapping[str, Any]) -> None:
        """Add the next piece.

        Raises:
            LLMError: ``llm.format``, if its path is not that of a single value.
        """
        path = path_of(piece.get("jsonPath"))
        if isinstance(piece.get("stringValue"), str):
            self.pieces.setdefault(path, []).append(piece["stringValue"])
            self.values.setdefault(path, None)
        elif "numberValue" in piece:
            self.values[path] = _number(piece["numberValue"])
        elif "boolValue" in piece or "nullValue" in piece:
            self.values[path] = piece.get("boolValue")

    def whole(self) -> dict[str, Any]:
        """Return the complete arguments.

        Raises:
            LLMError: ``llm.format``, if two paths conflict, or an item arrives before the items ahead of it.
        """
        root: dict[str, Any] = {}
        for path, value in self.values.items():
            pieces = self.pieces.get(path)
            _set_value(root, path, value if pieces is None else join_surrogates("".join(pieces)))
        return root


def path_of(text: Any) -> Path:
    """Return the keys and indexes of a path.

    >>> path_of("$.place['the zip'][0]")
    ('place', 'the zip', 0)
    """
    if not isinstance(text, str) or not text.startswith("$"):
        raise format_error("a piece of an argument has no path")
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = STEP.match(text, at)
        if found is None:
            raise format_error("a piece of an argument has an invalid path")
        steps.append(_step(found))
        at = found.end()
    if not steps or not isinstance(steps[0], str):
        raise format_error("a piece of an argument does not name the argument")
    return tuple(steps)


def _step(found: re.Match[str]) -> str | int:
    if found["index"] is not None:
        return int(found["index"])
    quoted = found["single"] if found["single"] is not None else found["double"]
    return found["word"] if quoted is None else _unescaped(quoted)


def _unescaped(quoted: str) -> str:
    """Return a key without its escapes; surrogate pairs are combined."""
    if "\\" not in quoted:
        return quoted
    return ESCAPE.sub(_escaped, quoted).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else CONTROLS.get(found[2], found[2])


def _number(value: Any) -> Any:
    """Return a number as a JSON parser would; the SDK converts all numbers to floats."""
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**53 else value


def _set_value(root: dict[str, Any], path: Path, value: Any) -> None:
    place: Any = root
    for step, following in itertools.pairwise(path):
        fresh: Any = {} if isinstance(following, str) else []
        place = _entry(place, step, fresh)
    if _entry(place, path[-1], value) is not value:
        raise format_error("two pieces of an argument have the same path")


def _entry(place: Any, step: str | int, fresh: Any) -> Any:
    """Return the value at *step*, inserting *fresh* if it is missing."""
    if isinstance(place, dict) and isinstance(step, str):
        return place.setdefault(step, fresh)
    if isinstance(place, list) and isinstance(step, int) and step <= len(place):
        if step == len(place):
            place.append(fresh)
        return place[step]
    raise format_error("the pieces of an argument do not fit together")


PLAIN: Final = frozenset({"text", "thought"})
"""The members of a part that holds only text; such parts are joined."""


MEMBERS: Final = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"})
"""The members of a chunk; at least one must be present."""


@attrs.frozen
class OpenCall:
    """A call whose arguments are still arriving.

    Attributes:
        index: The index of its part.
        partial: The arguments so far.
    """

    index: int
    partial: Partial = attrs.field(factory=Partial)


@attrs.define
class ResponseAssembler:
    """Assembles the chunks of one response: an SDK's objects or plain data.

    Attributes:
        names: The tool names that the model uses.
    """

    names: WireNames = attrs.field(factory=WireNames)
    _parts: list[dict[str, Any]] = attrs.field(init=False, factory=list)
    _texts: dict[int, list[str]] = attrs.field(init=False, factory=dict)
    _open: OpenCall | None = attrs.field(init=False, default=None)
    _cut: dict[int, str] = attrs.field(init=False, factory=dict)
    _reason: str = attrs.field(init=False, default="")
    _usage: Usage = attrs.field(init=False, default=Usage())

    def take(self, piece: Any) -> str:
        """Add the next chunk and return its text, or ``""``.

        Raises:
            LLMError: ``llm.format`` if it is not a chunk, or the error that it reports.
        """
        data = response_data(piece)
        if MEMBERS.isdisjoint(data):
            raise format_error("a chunk has no candidates")
        candidate = candidate_of(data)
        parts = parts_of(candidate)
        for part in parts:
            self._add(part)
        self._reason = reason_of(data, candidate) or self._reason
        self._usage = usage_of(data) if "usageMetadata" in data else self._usage
        return "".join(map(visible_text, parts))

    def reply(self) -> Reply:
        """Return the complete reply; arguments of an unfinished call are a string.

        Raises:
            LLMError: ``llm.incomplete`` if no chunk had a finish reason; otherwise as `read`.
        """
        if not self._reason:
            raise LLMError("the reply ended before it was complete", code="llm.incomplete", retry="later")
        self._close(is_whole=False)
        joined = {at: join_surrogates("".join(texts)) for at, texts in self._texts.items()}
        parts = [{**part, "text": joined[at]} if at in joined else part for at, part in enumerate(self._parts)]
        return reply_of(parts, self._reason, self._usage, self.names, self._cut)

    def _add(self, part: Mapping[str, Any]) -> None:
        if "functionCall" in part:
            self._add_call(dict(part))
            return
        last = len(self._parts) - 1
        if last in self._texts and _is_text(part) and part.get("thought") == self._parts[last].get("thought"):
            self._texts[last].append(part["text"])
            return
        if _is_text(part):
            self._texts[last + 1] = [part["text"]]
        self._parts.append(dict(part))

    def _add_call(self, part: dict[str, Any]) -> None:
        call = map_in(part, "functionCall")
        if self._open is not None and self._begins(call):
            self._close(is_whole=True)
        if self._open is None:
            self._parts.append(
                {**part, "functionCall": {key: call[key] for key in ("id", "name", "args") if key in call}}
            )
            if not call.get("willContinue") and "partialArgs" not in call:
                return
            self._open = OpenCall(len(self._parts) - 1)
        else:
            more = {key: each for key, each in part.items() if key != "functionCall"}
            self._parts[self._open.index] |= more
        for each in maps_in(call, "partialArgs"):
            self._open.partial.take(each)
        if not call.get("willContinue"):
            self._close(is_whole=True)

    def _begins(self, call: Mapping[str, Any]) -> bool:
        """Return whether a piece begins another call than the open one."""
        if self._open is None or not call.get("name"):
            return False
        known = self._parts[self._open.index]["functionCall"]
        return not call.get("id") or call.get("id") != known.get("id")

    def _close(self, *, is_whole: bool) -> None:
        if self._open is None:
            return
        index, found = self._open.index, self._open.partial.whole()
        args = {**map_in(self._parts[index]["functionCall"], "args"), **found}
        if not is_whole:
            self._cut[index] = json_text(args)[:-1]  # without the closing brace, so that it is not taken for complete
            args = {MALFORMED: self._cut[index]}
        self._parts[index]["functionCall"] = {**self._parts[index]["functionCall"], "args": args}
        self._open = None


def _is_text(part: Mapping[str, Any]) -> bool:
    return "text" in part and isinstance(part["text"], str) and PLAIN.issuperset(part)
