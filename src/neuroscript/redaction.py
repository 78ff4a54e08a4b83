"""Values that must not be seen, and what hides them in whatever form they are met.

A form is found by its first characters, all of them in one compiled alternation, and then compared as a whole: so what
it costs to look through a text does not grow with the length of a secret, and hardly with their number.

Source: contract section 6; reliability.md T19 and parts 4.5 and 5.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript.errors import ArgumentError, CallError, Problem
from neuroscript.forms import SHORTEST, Form, forms_of

MOST: Final = 1_000
"""How many secrets of calls are kept; those of the host are kept for good."""

MOST_TEXT: Final = 256 * 1024
"""How many characters the secrets of calls may have together; of a longer one so many are hidden."""

MARK: Final = "[secret]"
"""What stands where a secret stood."""

FIELD: Final = re.compile(r"[A-Za-z][A-Za-z_.-]*")
"""A key that only says what stands under it: to hide ``Authorization`` everywhere would hide no secret."""

SAME: Final = frozenset({"tool", "state", "_code", "_retry", "seconds", "_has_ended"})
"""Attributes of an error that hosts decide by; a tool that writes a secret into one of its own has made it up."""

BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]")


class Secrets:
    """Values that must not be seen, and what hides them; it may be used from several threads.

    Attributes:
        is_empty: Whether there is nothing to hide; then everything is passed on untouched.

    >>> secrets = Secrets()
    >>> secrets.add("open sesame")
    True
    >>> secrets.text("say=open+sesame&to=the%20door")
    'say=[secret]&to=the%20door'
    """

    def __init__(self) -> None:
        self.is_empty = True
        self._kept: dict[str | bytes, frozenset[Form]] = {}
        self._hidden: dict[str | bytes, frozenset[Form]] = {}
        self._size = 0
        self._finder: Finder | None = None
        self._lock = Lock()

    def add(self, value: str | bytes) -> bool:
        """Keep a value for good, and tell whether it is a new one.

        Raises:
            ValueError: It has fewer than `SHORTEST` characters.
        """
        if len(value) < SHORTEST:
            raise ValueError(f"a secret has {SHORTEST} characters or more, for hiding it would hide much else")
        with self._lock:
            is_new = value not in self._kept
            if is_new:
                self._kept[value] = forms_of(value)
                self._changed()
        return is_new

    def hide(self, value: object) -> None:
        """Hide what is in a secret argument: texts, bytes and numbers, at any depth.

        What is shorter than `SHORTEST` is ignored, and so are keys that are plain words. The `MOST` latest are kept.
        """
        texts = dict.fromkeys(each[:MOST_TEXT] for each in _texts_in(value) if len(each) >= SHORTEST)
        with self._lock:
            for each in list(texts)[-MOST:]:
                self._hide(each)
            while len(self._hidden) > MOST or self._size > MOST_TEXT:
                oldest = next(iter(self._hidden))
                del self._hidden[oldest]
                self._size -= len(oldest)

    def _hide(self, text: str | bytes) -> None:
        forms = self._hidden.pop(text, None)
        if forms is None:
            if text in self._kept:
                return
            forms = forms_of(text)
            self._size += len(text)
            self._changed()
        self._hidden[text] = forms

    def _changed(self) -> None:
        self._finder = None
        self.is_empty = False

    def text(self, text: str) -> str:
        """Return a text with `MARK` in the place of every form of every secret, the very same where there is none."""
        if self.is_empty or len(text) < SHORTEST:
            return text
        finder = self._finder or self._made()
        while (hidden := finder.hidden(text)) != text:  # the mark itself may have completed a secret
            text = hidden
        return text

    def _made(self) -> Finder:
        with self._lock:
            finder = self._finder
            if finder is None:
                forms = chain([Form(MARK)], *self._kept.values(), *self._hidden.values())
                finder = self._finder = Finder.of(forms)
        return finder

    def plain(self, value: Any) -> Any:
        """Return a copy of a plain value with every text, bytes and key redacted, the very same where there is none.

        Keys that become alike are numbered. A number stays a number, whatever it is.
        """
        if self.is_empty:
            return value
        match value:
            case str():
                return self.text(value)
            case bytes():
                seen = value.decode("latin-1")
                hidden = self.text(seen)
                return value if hidden is seen else hidden.encode("latin-1")
            case Problem():
                told = {name: self.text(getattr(value, name)) for name in ("where", "expected", "got", "hint")}
                return value._replace(**told)
            case list() | tuple():
                parts = [self.plain(each) for each in value]
                return value if all(map(_is, parts, value)) else list(parts) if isinstance(value, list) else (*parts,)
            case dict():
                return self._map(value)
        return value

    def _map(self, value: dict[Any, Any]) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        is_same = True
        for key, each in value.items():
            shown_key, shown_value = self.plain(key), self.plain(each)
            is_same = is_same and shown_key is key and shown_value is each
            redacted[_free(shown_key, redacted)] = shown_value
        return value if is_same else redacted

    def error(self, error: CallError) -> CallError:
        """Return the same error, all its texts redacted; type, code, retry and cause stay as they are.

        A code or a retry with a secret in it is none, and gives way to that of the type.
        """
        if self.is_empty:
            return error
        if isinstance(error, ArgumentError):
            _ = error.problems  # which writes them out, where nobody has looked at them so far
        told = vars(error)
        for name in told.keys() - SAME:
            told[name] = self.plain(told[name])
        for name, usual in (("_code", error.CODE), ("_retry", error.RETRY)):
            if self.plain(told.get(name)) is not told.get(name):
                told[name] = usual
        error.args = self.plain(error.args)
        return error


def _texts_in(value: object) -> Iterator[str | bytes]:
    match value:
        case str() | bytes():
            yield value
        case int() | float():
            yield repr(value)
        case list() | tuple():
            yield from chain.from_iterable(map(_texts_in, value))
        case dict():
            for key, each in value.items():
                if not (isinstance(key, str) and FIELD.fullmatch(key)):
                    yield from _texts_in(key)
                yield from _texts_in(each)


def _is(one: object, other: object) -> bool:
    return one is other


def _free(key: Any, taken: dict[Any, Any]) -> Any:
    if key not in taken or not isinstance(key, (str, bytes)):
        return key
    number = 2
    while (numbered := _numbered(key, number)) in taken:
        number += 1
    return numbered


def _numbered(key: str | bytes, number: int) -> str | bytes:
    return f"{key} {number}" if isinstance(key, str) else b"%s %d" % (key, number)


@attrs.frozen(eq=False, repr=False)
class Finder:
    """What finds forms in a text.

    Attributes:
        search: Finds the next of all beginnings of forms, each `SHORTEST` long, from a position on.
        forms: The forms that have a beginning, the longest first.
    """

    search: Callable[[str, int], re.Match[str] | None]
    forms: dict[str, list[Form]]

    @classmethod
    def of(cls, forms: Iterable[Form]) -> Finder:
        """Return what finds these forms."""
        by_beginning: dict[str, list[Form]] = {}
        for form in sorted(set(forms), key=_length, reverse=True):
            by_beginning.setdefault(form.text[:SHORTEST], []).append(form)
        return cls(re.compile(_alternation(by_beginning)).search, by_beginning)

    def hidden(self, text: str) -> str:
        """Return a text with `MARK` in the place of each run of forms that overlap."""
        pieces: list[str] = []
        start = end = 0
        for first, last in self._spans(text):
            if first >= end:
                pieces += (text[start:end] and MARK, text[end:first])
                start = first
            end = max(end, last)
        if not pieces:
            return text
        return "".join((*pieces, MARK, text[end:]))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the longest form stands at each place where one begins, in order."""
        found = self.search(text, 0)
        while found:
            at = found.start()
            for form in self.forms[found[0]]:
                if text.startswith(form.text, at):
                    yield _span(text, at, form)
                    break
            found = self.search(text, at + 1)


def _span(text: str, start: int, form: Form) -> tuple[int, int]:
    end = start + len(form.text)
    if form.before and BASE64.match(text, start - 1 if start else len(text)):
        start -= 1
    if form.after:
        end += BASE64.match(text, end) is not None
        end += text.startswith("=", end)
        end += text.startswith("=", end)
    return start, end


def _length(form: Form) -> int:
    return len(form.text)


def _alternation(beginnings: Iterable[str]) -> str:
    """Return a pattern of literals, by their first character: it is then tried only where one of these stands."""
    rests: dict[str, list[str]] = {}
    for each in sorted(beginnings):
        rests.setdefault(each[0], []).append(re.escape(each[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(each)})" for first, each in rests.items())
