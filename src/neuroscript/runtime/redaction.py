"""Removal of secrets from strings, values and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from neuroscript.coercion.scalars import AnyContent
from neuroscript.errors import ArgumentError, CallError, Problem
from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS
from neuroscript.runtime.secret_set import MAX_CALL_SECRET_CHARS, MAX_CALL_SECRETS, SecretSet

GUESSABLE_CHARS: Final = 16
"""Length below which a secret can be guessed by trying values."""

MAX_PASSES: Final = 4
"""Passes over one string, because a mark that replaces a secret may complete another one."""

MARK: Final = "[secret]"
"""The replacement of a secret."""

FIELD: Final = re.compile(r"[A-Za-z][A-Za-z_.-]*")
"""A key that only names its value; hiding ``Authorization`` everywhere would hide no secret."""

UNREDACTED_ATTRIBUTES: Final = frozenset({"tool", "state", "_code", "_retry", "seconds", "_has_ended"})
"""Attributes of an error on which hosts base decisions; they are never redacted in place."""

CLASSES: Final = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]", "[^a-zA-Z0-9]")))
"""The character classes that `is_guessable` counts."""


def is_guessable(secret: str | bytes) -> bool:
    """Return whether a secret can be found by trying values: it is short, or all of one character class.

    Blanks around it do not count, nor do several in a row, because it is hidden without them too.
    """
    text = " ".join((secret if isinstance(secret, str) else secret.decode("latin-1")).split())
    return len(text) < GUESSABLE_CHARS or sum(each.search(text) is not None for each in CLASSES) < 2


class Redactor:
    """Replaces the secrets of some sets, in every form, by `MARK`. Thread-safe.

    >>> redactor = Redactor(SecretSet())
    >>> redactor.sets[0].add("open sesame")
    True
    >>> redactor.text("say=open+sesame&to=the%20door")
    'say=[secret]&to=the%20door'
    """

    def __init__(self, *sets: SecretSet) -> None:
        self.sets = sets

    @property
    def is_empty(self) -> bool:
        """Whether there is no secret, so that every value is returned unchanged."""
        return not any(self.sets)

    def text(self, text: str) -> str:
        """Return *text* with `MARK` in place of every form of every secret, or *text* itself if it holds none.

        The time grows linearly with the length of the text.
        """
        if len(text) < MIN_SECRET_CHARS:
            return text
        for _ in range(MAX_PASSES):
            redacted = self._redact_once(text)
            if redacted == text:
                return text
            text = redacted
        return MARK

    def _redact_once(self, text: str) -> str:
        spans = [span for each in self.sets if each for span in each.spans(text)]
        if not spans:
            return text
        spans += ((found.start(), found.end()) for found in re.finditer(re.escape(MARK), text))
        pieces: list[str] = []
        begin = end = 0
        for first, last in sorted(spans):
            if first >= end:
                pieces += (text[begin:end] and MARK, text[end:first])
                begin = first
            end = max(end, last)
        return "".join((*pieces, MARK, text[end:]))

    def plain(self, value: Any) -> Any:
        """Return plain data with every string, bytes and key redacted, or *value* itself if it holds no secret.

        Keys that become equal are numbered. A number stays a number, whatever it is.
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
            case AnyContent():
                return value.mapped(self.plain)
        return value

    def _map(self, value: dict[Any, Any]) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        numbers: dict[Any, int] = {}
        is_same = True
        for key, each in value.items():
            shown_key, shown_value = self.plain(key), self.plain(each)
            is_same = is_same and shown_key is key and shown_value is each
            redacted[_free(shown_key, redacted, numbers)] = shown_value
        return value if is_same else redacted

    def error(self, error: CallError) -> CallError:
        """Redact every text of *error* in place, and return it; its type, code, retry and cause stay as they are.

        A code or a retry that holds a secret is replaced by the default of the error's type.
        """
        if self.is_empty:
            return error
        if isinstance(error, ArgumentError):
            _ = error.problems  # makes the error create them now
        told = vars(error)
        for name in told.keys() - UNREDACTED_ATTRIBUTES:
            told[name] = self.plain(told[name])
        for name, usual in (("_code", error.CODE), ("_retry", error.RETRY)):
            if self.plain(told.get(name)) is not told.get(name):
                told[name] = usual
        error.args = self.plain(error.args)
        return error


def secrets_in(value: object) -> list[str | bytes]:
    """Return the parts of a secret value to hide: unique strings, bytes and numbers, at any depth.

    Parts shorter than `MIN_SECRET_CHARS` and keys that only name their values are left out. If there are more than
    `MAX_CALL_SECRETS`, the last ones are returned, and from a longer one the first `MAX_CALL_SECRET_CHARS`.
    """
    found = (each[:MAX_CALL_SECRET_CHARS] for each in _texts_in(value) if len(each) >= MIN_SECRET_CHARS)
    return list(dict.fromkeys(found))[-MAX_CALL_SECRETS:]


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
        case AnyContent():
            yield from _texts_in(value.values)


def _is(one: object, other: object) -> bool:
    return one is other


def _free(key: Any, taken: dict[Any, Any], numbers: dict[Any, int]) -> Any:
    """Return *key*, or a numbered variant if it is taken; *numbers* stores the last number of each key."""
    if key not in taken or not isinstance(key, (str, bytes)):
        return key
    number = numbers.get(key, 1) + 1
    while (numbered := _numbered(key, number)) in taken:
        number += 1
    numbers[key] = number
    return numbered


def _numbered(key: str | bytes, number: int) -> str | bytes:
    return f"{key} {number}" if isinstance(key, str) else b"%s %d" % (key, number)
