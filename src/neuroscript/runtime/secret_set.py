"""A set of secrets that are redacted together: the host's, and the most recent ones of calls."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from threading import Lock
from typing import Final, NamedTuple

from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS, Form, forms_of
from neuroscript.runtime.secret_search import FormFinder, Span

MAX_CALL_SECRETS: Final = 1_000
"""Secrets of calls that one set retains; secrets of the host are retained as long as the engine."""

MAX_CALL_SECRET_CHARS: Final = 256 * 1024
"""Total characters of the secrets of calls in one set; from a longer secret, this many are hidden."""

Text = str | bytes


class SecretSet:
    """Secrets that are redacted together. Thread-safe."""

    def __init__(self) -> None:
        self._permanent: dict[Text, frozenset[Form]] = {}
        self._recent: dict[Text, frozenset[Form]] = {}
        self._senders: dict[Text, Hashable] = {}
        self._sent: dict[Hashable, dict[Text, None]] = {}
        self._recent_chars = 0
        self._layers: tuple[Layer, ...] = ()
        self._fresh: list[Text] = []
        self._dropped = 0
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._permanent or self._recent)

    def add(self, secret: Text) -> bool:
        """Hide a secret for as long as this set exists, and return whether it is new.

        Raises:
            ValueError: If it has fewer than `MIN_SECRET_CHARS` characters.
        """
        if len(secret) < MIN_SECRET_CHARS:
            why = "redacting a shorter one would also redact unrelated text"
            raise ValueError(f"a secret needs {MIN_SECRET_CHARS} characters or more, because {why}")
        with self._lock:
            is_new = secret not in self._permanent
            if is_new:
                self._permanent[secret] = forms_of(secret)
                self._fresh.append(secret)
        return is_new

    def add_recent(self, secrets: Iterable[Text], sender: Hashable = None) -> None:
        """Hide secrets until `MAX_CALL_SECRETS` or `MAX_CALL_SECRET_CHARS` newer ones replace them.

        Args:
            sender: The source of the secrets. The source of the most secrets loses its oldest secret first, so that it
                cannot displace the secrets of other sources.
        """
        with self._lock:
            for each in secrets:
                self._add_recent(each, sender)
            while len(self._recent) > MAX_CALL_SECRETS:
                self._drop(max(self._sent.values(), key=len))
            while self._recent_chars > MAX_CALL_SECRET_CHARS:
                self._drop(max(self._sent.values(), key=_chars))

    def _add_recent(self, secret: Text, sender: Hashable) -> None:
        forms = self._recent.pop(secret, None)
        if forms is None:
            if secret in self._permanent:
                return
            forms = forms_of(secret)
            self._recent_chars += len(secret)
            self._senders[secret] = sender
            self._fresh.append(secret)
        sent = self._sent.setdefault(self._senders[secret], {})
        sent.pop(secret, None)
        sent[secret] = None
        self._recent[secret] = forms

    def _drop(self, sent: dict[Text, None]) -> None:
        """Forget the oldest secret of one sender."""
        oldest = next(iter(sent))
        del sent[oldest], self._recent[oldest]
        sender = self._senders.pop(oldest)
        if not sent:
            del self._sent[sender]
        self._recent_chars -= len(oldest)
        self._dropped += 1

    def spans(self, text: str) -> Iterator[Span]:
        """Yield spans that cover every form of every secret in *text*."""
        layers = self._settled() if self._fresh or self._dropped else self._layers
        for layer in layers:
            yield from layer.finder.spans(text)

    def _settled(self) -> tuple[Layer, ...]:
        """Return finders for all secrets.

        Building one finder for all secrets is slow, so a new secret gets its own. Finders of similar sizes are merged,
        so there are few, and each secret is merged only a few times. Dropped secrets are removed when they number a
        quarter of the others.
        """
        with self._lock:
            layers = list(self._layers)
            fresh = [*dict.fromkeys(self._fresh)]
            if self._dropped > (len(self._permanent) + len(self._recent)) // 4:
                layers, fresh, self._dropped = [], [*self._permanent, *self._recent], 0
            while fresh and layers and len(layers[-1].secrets) <= len(fresh):
                fresh += layers.pop().secrets
            known = {each: forms for each in fresh if (forms := self._forms(each))}
            if known:
                layers.append(Layer(tuple(known), FormFinder({form for forms in known.values() for form in forms})))
            self._layers, self._fresh = tuple(layers), []
            return self._layers

    def _forms(self, secret: Text) -> frozenset[Form] | None:
        return self._permanent.get(secret) or self._recent.get(secret)


class Layer(NamedTuple):
    """Some secrets of a set, and the finder for their forms."""

    secrets: tuple[Text, ...]
    finder: FormFinder


def _chars(secrets: Iterable[Text]) -> int:
    return sum(map(len, secrets))
