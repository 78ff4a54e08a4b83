"""An index of labelled results, which finds the labels of arguments that repeat a part of a result."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, combinations, permutations
from threading import Lock
from typing import Final

import attrs

from neuroscript.flow.labels import MAX_SOURCES, NO_LABELS, Labels, union
from neuroscript.flow.postings import MIN_LONG_CHARS, Entries, TextIndex, Work, WorkLimitError, entries_of
from neuroscript.flow.text import (
    EDGE,
    NO_GAP,
    SPACE,
    UNSPACED,
    Leaves,
    Part,
    decode_escapes,
    decode_runs,
    leaves,
    parts,
    words,
)

MAX_INDEXED_BYTES: Final = 4 << 20
"""Maximum size of the labelled results of a session, in UTF-8; every call carries the labels of what does not fit."""

MIN_WHOLE_CHARS: Final = 4
"""Length of the shortest argument that is compared as a whole."""

MIN_TOKEN_CHARS: Final = MIN_LONG_CHARS
"""Length of the shortest token, or string of `WINDOW_WORDS`, that is compared."""

MIN_FRAGMENT_CHARS: Final = 16
"""Length of the shortest part of a token that is compared; a shorter one is often only the domain of an address."""

WINDOW_WORDS: Final = 4
"""Number of successive words that are compared."""

MAX_REVERSED: Final = 200
"""Maximum number of strings in the arguments that are also joined backwards."""

MAX_PERMUTED: Final = {2: 8, 3: 4}
"""Maximum number of strings in the arguments of which any two, or any three, are joined in any order."""

MAX_SUCCESSIVE: Final = 8
"""Maximum number of strings in the arguments of which any successive ones are joined."""

MAX_CLOSED_SPACES: Final = 8
"""Maximum number of spaces of a string that is also compared without each of them."""

WORDS_AT_EDGES: Final = 2 * WINDOW_WORDS
"""Number of words at each end of a string that are compared when it is joined with other strings."""

MAX_STEPS: Final = 100_000
"""Work that a search may do besides a fixed amount for each character of the arguments."""

GAP: Final = "\0"
"""A word of arguments that no indexed result contains."""

CONSTANTS: Final = (["true"], ["false"], ["none"], ["null"])
"""Arguments that are not compared as a whole, as booleans and None are not."""


class LabelledTexts:
    """The labelled results of one session, and the words of its user. Thread-safe.

    >>> from neuroscript.flow.labels import Source
    >>> results = LabelledTexts()
    >>> results.add("Write to eve@example.com", {"untrusted": (Source("web.fetch", 3),)})
    >>> results.search(["eve@example.com"])
    {'untrusted': (Source(tool='web.fetch', call=3),)}
    """

    def __init__(self, max_bytes: int = MAX_INDEXED_BYTES) -> None:
        self.is_empty = True
        """Whether no labelled result was added, so that `search` returns no labels."""

        self._lock = Lock()
        self._index = TextIndex()
        self._labels: list[Labels] = []
        self._counts: Counter[str] = Counter()
        self._all = NO_LABELS
        self._always = NO_LABELS
        self._left = max_bytes
        self._user = TextIndex()
        self._user_left = max_bytes

    def add(self, value: object, labels: Labels) -> None:
        """Add a result that carries labels.

        Args:
            value: The result, which is any plain value. Booleans, None and handles are ignored.
            labels: What it carries. Every later `search` returns them if the result does not fit into the index.

        """
        found = leaves(value)
        if not labels or not (found.values or found.keys):
            return
        size = _size(found)
        with self._lock:
            fits = size <= self._left
            self._left -= size if fits else 0
        entries = _entries(found) if fits else None
        with self._lock:
            self._all = union(self._all, labels)
            if entries is None:
                self._always = union(self._always, labels)
            else:
                self._index.add(entries, self._group(labels))
            self.is_empty = False

    def _group(self, labels: Labels) -> int:
        if labels not in self._labels[-1:]:
            self._labels.append(labels)
            self._counts.update(labels.keys())
        return len(self._labels) - 1

    def said(self, text: object) -> None:
        """Add words of the user, as any plain value. A string that they contain does not carry a label.

        Words that do not fit into the index are ignored, so that arguments with them carry labels.
        """
        found = leaves(text)
        size = _size(found)
        with self._lock:
            if size > self._user_left:
                return
            self._user_left -= size
        entries = _entries(found)
        if entries is not None:
            with self._lock:
                self._user.add(entries, 0)

    def search(self, values: Iterable[object]) -> Labels:
        """Return the labels that the arguments of one call carry, with their sources.

        All labels are returned if the search would take too long.
        """
        if self.is_empty:
            return NO_LABELS
        try:
            arguments = Arguments.of(values)
        except OverflowError:
            return self._all
        with self._lock:
            labels = self._always
            search = _Search(self._index, self._user, self._labels, self._counts, arguments)
            try:
                search.run()
            except WorkLimitError:
                return self._all
            for group in sorted(search.found):
                labels = union(labels, self._labels[group])
        return labels


def _size(found: Leaves) -> int:
    return sum(
        len(text) if text.isascii() else len(text.encode(errors="surrogatepass")) for each in found for text in each
    )


def _entries(found: Leaves) -> Entries | None:
    """Return what the index stores of a value, or None if it encodes too much."""
    text = decode_escapes("\n".join((*found.values, *found.keys)))
    plain = words(text)
    try:
        decoded = decode_runs(text, f" {' '.join(plain)} ")
    except OverflowError:
        return None
    for each in decoded:
        plain += words(each)
    return entries_of(plain)


@attrs.frozen
class Leaf:
    """A string of the arguments.

    Attributes:
        parts: Its words, with the gap after each of them.
        before: The gap before the first word.
        is_key: Whether it is a key of a map.
    """

    parts: Sequence[Part]
    before: int
    is_key: bool = False

    @classmethod
    def of(cls, text: str, is_key: bool = False) -> Leaf:
        """Return the leaf of a string without escapes."""
        before, found = parts(text)
        return cls(found, before, is_key)

    @property
    def words(self) -> list[str]:
        """Its words."""
        return [part.word for part in self.parts]

    @property
    def chars(self) -> int:
        """Its length, in which everything between two words counts as one character."""
        if len(self.parts) == 1:
            return len(self.parts[0].word)
        return sum([len(word) for word, _ in self.parts]) + sum([gap != NO_GAP for _, gap in self.parts[:-1]])

    @property
    def is_short(self) -> bool:
        """Whether it has so few words that `edges` leaves none of them out."""
        return len(self.parts) <= 2 * WORDS_AT_EDGES

    @property
    def edges(self) -> Sequence[Part]:
        """Its parts without those that are far from both ends."""
        if self.is_short:
            return self.parts
        return [*self.parts[:WORDS_AT_EDGES], Part(GAP, SPACE), *self.parts[-WORDS_AT_EDGES:]]


@attrs.frozen
class Arguments:
    """The strings of the arguments of one call.

    Attributes:
        values: The strings, bytes and numbers.
        keys: The keys of maps.
        others: What the strings encode, and floats as integers.
        chars: Their length.
    """

    values: Sequence[Leaf]
    keys: Sequence[Leaf]
    others: Sequence[Leaf]
    chars: int

    @classmethod
    def of(cls, values: Iterable[object]) -> Arguments:
        """Return the strings of the values.

        Raises:
            OverflowError: If they encode too much.

        """
        found = leaves([*values])
        texts, keys = [*map(decode_escapes, found.values)], [*map(decode_escapes, found.keys)]
        others = {text.removesuffix(".0"): None for text in texts if text.endswith(".0")}
        for joined in _joined(texts, keys):
            others |= dict.fromkeys(decode_runs(joined, f" {' '.join(words(joined))} "))
        return cls(
            values=[Leaf.of(text) for text in texts],
            keys=[Leaf.of(key, is_key=True) for key in keys],
            others=[Leaf.of(text) for text in others],
            chars=sum(map(len, texts)) + sum(map(len, keys)),
        )


def _joined(texts: Sequence[str], keys: Sequence[str]) -> Iterator[str]:
    yield "\n".join((*texts, *keys))
    for several in (texts, keys):
        if len(several) > 1:
            yield "".join(several)
        if 1 < len(several) <= MAX_REVERSED:
            yield "".join(reversed(several))


class _AllFoundError(Exception):
    """Every label was found with as many sources as it names, so a search can stop."""


class _Search:
    """One search of the labelled results.

    Attributes:
        found: The groups of the results that contain a part of the arguments.
    """

    def __init__(
        self,
        index: TextIndex,
        user: TextIndex,
        labels: Sequence[Labels],
        counts: Mapping[str, int],
        arguments: Arguments,
    ) -> None:
        self.found: set[int] = set()
        self._index = index
        self._user = user
        self._labels = labels
        self._missing = {name: min(count, MAX_SOURCES) for name, count in counts.items()}
        self._arguments = arguments
        self._work = Work(MAX_STEPS + arguments.chars)

    def run(self) -> None:
        """Find the groups.

        Raises:
            WorkLimitError: If this takes more work than permitted.

        """
        try:
            self._match_leaves()
            for several in (self._arguments.values, self._arguments.keys):
                if len(several) > 1:
                    self._match_joined(several)
                    if len(several) <= MAX_REVERSED:
                        self._match_joined(several[::-1])
                        self._match_parts(_spaced(leaf.edges for leaf in several[::-1]), is_joined=True)
                    self._match_permuted(several)
        except _AllFoundError:
            pass

    def _match_leaves(self) -> None:
        arguments = self._arguments
        for leaf in (*arguments.values, *arguments.keys, *arguments.others):
            at_least = MIN_TOKEN_CHARS if leaf.is_key else MIN_WHOLE_CHARS
            if leaf.chars >= at_least and leaf.words not in CONSTANTS:
                self._match(leaf.words, self._index.pairs(leaf.words))
        for several in (arguments.values, arguments.keys, arguments.others):
            self._match_parts(_spaced(leaf.parts for leaf in several))
        for leaf in (*arguments.values, *arguments.others):
            for token in _closed_up(leaf.parts):
                self._match_parts(token, is_joined=True)

    def _match(self, found: Sequence[str], pairs: Sequence[int], is_joined: bool = False) -> bool:
        """Find the groups of words that are not the user's, and return whether further results contain them."""
        groups = self._index.groups(found, pairs, self.found, self._work)
        if groups and not self._is_said(found, is_joined):
            self._add(groups)
        return bool(groups)

    def _is_said(self, found: Sequence[str], is_joined: bool) -> bool:
        """Return whether the user said some words: one by one, if they are joined from different arguments.

        Otherwise arguments that the user named in another order would carry labels, such as a time and a date.
        """
        user, work, known = self._user, self._work, frozenset[int]()
        if is_joined:
            return all(user.groups((word,), (), known, work) for word in found)
        return bool(user.groups(found, user.pairs(found), known, work))

    def _add(self, groups: set[int]) -> None:
        self.found |= groups
        for name in chain.from_iterable([self._labels[group] for group in groups]):
            self._missing[name] -= 1
        if max(self._missing.values()) <= 0:
            raise _AllFoundError

    def _match_parts(self, found: Sequence[Part], is_joined: bool = False) -> None:
        """Find the groups of the tokens and of the successive words of a string."""
        text = _Text([part.word for part in found], [part.gap for part in found])
        pairs = self._index.pairs(text.words)
        for first, word in enumerate(text.words):
            if len(word) >= MIN_TOKEN_CHARS:
                self._match((word,), (), is_joined)
            if first < len(pairs) and pairs[first]:
                for last, inside in text.matched(first):
                    chosen = text.words[first : last + 1]
                    if not self._match(chosen, pairs[first:last], is_joined or inside == EDGE):
                        break

    def _match_joined(self, several: Sequence[Leaf]) -> None:
        """Find the groups of a string that is split over several ones, which may also contain other words."""
        for some in _successive(several):
            self._match_parts(_glued(some, [leaf.edges for leaf in some]), is_joined=True)
            self._match_whole(some)
        for run in _runs(several):
            self._match_run(run)

    def _match_permuted(self, several: Sequence[Leaf]) -> None:
        """Find the groups of a string that is split over two or three ones, in any order."""
        for count in (2, 3):
            if len(several) <= MAX_PERMUTED[count]:
                for chosen in permutations(several, count):
                    for run in _runs(chosen):
                        self._match_run(run)
                    if all(leaf.is_short for leaf in chosen):
                        self._match_whole(chosen)

    def _match_whole(self, several: Sequence[Leaf]) -> None:
        each = [leaf.parts for leaf in several]
        for joined in (chain.from_iterable(each), _glued(several, each)):
            found = [part.word for part in joined]
            if sum(map(len, found)) + len(found) > MIN_TOKEN_CHARS:
                self._match(found, self._index.pairs(found), is_joined=True)

    def _match_run(self, run: Sequence[str]) -> None:
        """Find the groups of a word that is split over several strings."""
        text = "".join(run)
        ends = [*accumulate(map(len, run))]
        starts = [0, *ends[:-1]]
        for start, place in zip(starts, self._index.grams(text, starts), strict=True):
            if place:
                for end in ends[bisect_left(ends, start + MIN_TOKEN_CHARS) :]:
                    if not self._match((text[start:end],), ()):
                        break


@attrs.frozen
class _Text:
    """The words of a string, and the gap after each of them."""

    words: Sequence[str]
    gaps: Sequence[int]

    def matched(self, first: int) -> Iterator[tuple[int, int]]:
        """Return where the strings end that begin with a word and are compared, and the strongest gap in each of them.

        These are tokens, long parts of tokens, and `WINDOW_WORDS` words, or more if these are short.
        """
        before = self.gaps[first - 1] if first else SPACE
        inside, chars = NO_GAP, len(self.words[first])
        for last in range(first + 1, len(self.words)):
            inside = min(inside, self.gaps[last - 1])
            chars += 1 + len(self.words[last])
            if last - first + 1 >= WINDOW_WORDS:
                if chars >= MIN_TOKEN_CHARS:
                    yield last, inside
                    return
            elif inside > SPACE:
                after = self.gaps[last] if last + 1 < len(self.gaps) else SPACE
                is_token = chars >= MIN_TOKEN_CHARS and max(before, after) < inside
                if is_token or chars >= MIN_FRAGMENT_CHARS:
                    yield last, inside


def _closed_up(found: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the tokens of a string that has few words as they are without one space: ``evil.ex ample`` as one token."""
    spaces = [place for place, part in enumerate(found[:-1]) if part.gap == SPACE]
    if len(spaces) > MAX_CLOSED_SPACES:
        return
    for place, space in enumerate(spaces):
        first = spaces[place - 1] + 1 if place else 0
        last = spaces[place + 1] if place + 1 < len(spaces) else len(found) - 1
        joined = Part(found[space].word + found[space + 1].word, found[space + 1].gap)
        yield [*found[first:space], joined, *found[space + 2 : last + 1]]


def _spaced(several: Iterable[Sequence[Part]]) -> list[Part]:
    """Join some strings with spaces."""
    joined: list[Part] = []
    for found in several:
        if found:
            joined += found
            joined[-1] = Part(joined[-1].word, EDGE)
    return joined


def _successive(several: Sequence[Leaf]) -> Iterator[Sequence[Leaf]]:
    """Yield all strings, and if they are few, each two or more successive ones.

    In all strings together, the last word of some of them may be the beginning of another one.
    """
    yield several
    if len(several) <= MAX_SUCCESSIVE:
        for first, last in combinations(range(len(several) + 1), 2):
            if 1 < last - first < len(several):
                yield several[first:last]


def _glued(several: Sequence[Leaf], parts: Sequence[Sequence[Part]]) -> list[Part]:
    """Join some strings with nothing between them."""
    joined: list[Part] = []
    pieces: list[str] = []  # of the last word, which is not joined yet, and its gap
    gap = NO_GAP
    for leaf, found in zip(several, parts, strict=True):
        if pieces and _is_glued(gap, leaf):
            pieces.append(found[0].word)
            gap = found[0].gap
            found = found[1:]
        elif pieces:
            gap = min(gap, leaf.before)
        if found:
            if pieces:
                joined.append(Part("".join(pieces), gap))
            joined += found[:-1]
            pieces, gap = [found[-1].word], found[-1].gap
    if pieces:
        joined.append(Part("".join(pieces), gap))
    return joined


def _is_glued(gap: int, leaf: Leaf) -> bool:
    """Return whether a string continues a word with this gap after it."""
    if gap != NO_GAP or leaf.before != NO_GAP or not leaf.parts:
        return False
    word = leaf.parts[0].word
    return word.isascii() or not UNSPACED.match(word)


def _runs(several: Sequence[Leaf]) -> Iterator[list[str]]:
    """Return the words that are split over several strings, as their pieces."""
    run: list[str] = []
    gap = SPACE
    for leaf in several:
        if _is_glued(gap, leaf):
            run.append(leaf.parts[0].word)
            if len(leaf.parts) > 1:
                yield run
                run = [leaf.parts[-1].word]
        else:
            if len(run) > 1:
                yield run
            run = [part.word for part in leaf.parts[-1:]]
        gap = leaf.parts[-1].gap if leaf.parts else SPACE
    if len(run) > 1:
        yield run
