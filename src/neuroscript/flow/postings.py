"""An index of documents, which finds those that contain some words."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence, Set
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

MIN_LONG_CHARS: Final = 10
"""Length of a word from which it is also found inside longer words."""

GRAM_CHARS: Final = 6
GRAM_STEP: Final = MIN_LONG_CHARS + 1 - GRAM_CHARS
"""Distance of the strings of a long word that are indexed, so that any `MIN_LONG_CHARS` of it contain one of them."""

MIN_PLACES: Final = 32
"""Number of places that are compared with a string before a search of all documents is considered."""

MAX_COMPARED_CHAINS: Final = 8
"""Maximum number of pairs of words of which the rarest one is looked for."""

MAX_PLACES: Final = 2_000
"""Maximum number of places that are compared with a string; then all documents are searched for it."""

CHARS_PER_STEP: Final = 40
"""Number of characters that are searched in the time in which one place is compared."""


class WorkLimitError(Exception):
    """A search needs more work than it may do, so its result is incomplete."""


class Work:
    """The work that a search may still do, in steps of about 0.2 microseconds."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Count some work.

        Raises:
            WorkLimitError: If it is more than what is left.

        """
        self._left -= steps
        if self._left < 0:
            raise WorkLimitError


class Entries(NamedTuple):
    """What the index stores of one document.

    Attributes:
        text: Its words, with a space before and after each of them.
        words: Its words of fewer than `MIN_LONG_CHARS`.
        hashes: The hashes of its pairs of words, and of strings in its different long words.
        places: Where these begin.
    """

    text: str
    words: list[str]
    hashes: list[int]
    places: array[int]


def entries_of(words: Sequence[str]) -> Entries:
    """Return what the index stores of a document of some words."""
    text = f" {' '.join(words)} "
    starts = starts_of(words, 1)
    last = dict(zip(words, starts, strict=False))
    grams = [
        place
        for word, start in last.items()
        if len(word) >= MIN_LONG_CHARS
        for place in range(start, start + len(word) + 1 - GRAM_CHARS, GRAM_STEP)
    ]
    hashes = [*map(hash, pairwise(words))]
    hashes += [hash(text[place : place + GRAM_CHARS]) for place in grams]
    places = array("I", starts[: len(words) - 1])
    places.fromlist(grams)
    return Entries(text, [word for word in last if len(word) < MIN_LONG_CHARS], hashes, places)


def starts_of(words: Iterable[str], first: int = 0) -> list[int]:
    """Return where each word begins, if the first one begins at *first*, and where another word would begin."""
    return [*accumulate([len(word) + 1 for word in words], initial=first)]


class TextIndex:
    """Documents, each of a group, and a hash table of places in them. Not thread-safe.

    The table is made of arrays, because a dict of strings takes ten times the memory.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._groups: list[int] = []
        self._chars: dict[int, int] = {}
        self._words: dict[str, int | list[int]] = {}
        # Item 0 is the end of every chain.
        self._hashes = array("q", [0])
        self._places = array("I", [0])
        self._owners = array("I", [0])
        self._next = array("I", [0])
        self._heads = array("I", [0])

    def add(self, entries: Entries, group: int) -> None:
        """Add a document, which belongs to a group."""
        number = len(self._texts)
        self._texts.append(entries.text)
        self._groups.append(group)
        self._chars[group] = self._chars.get(group, 0) + len(entries.text)
        for word in entries.words:
            match self._words.get(word):
                case None:
                    self._words[word] = number
                case int() as other:
                    self._words[word] = [other, number]
                case list() as others:
                    others.append(number)
        size = len(self._hashes) + len(entries.hashes)
        if size > len(self._heads):
            self._heads = array("I", [0]) * (1 << size.bit_length())
            self._next = array("I", [0])
            self._link(self._hashes[1:])
        self._link(entries.hashes)
        self._hashes.fromlist(entries.hashes)
        self._places.extend(entries.places)
        self._owners.extend(array("I", [number]) * len(entries.places))

    def _link(self, hashes: Iterable[int]) -> None:
        """Put the next places into the chains of their hashes."""
        heads, mask = self._heads, len(self._heads) - 1
        append = self._next.append
        for place, slot in enumerate(map(mask.__and__, hashes), len(self._next)):
            append(heads[slot])
            heads[slot] = place

    def pairs(self, words: Iterable[str]) -> list[int]:
        """Return for each pair of successive words the first place that the index has of it, or 0."""
        return self._first(map(hash, pairwise(words)))

    def grams(self, text: str, starts: Iterable[int]) -> list[int]:
        """Return for each place in *text* the first place that the index has of `GRAM_CHARS` there, or 0."""
        return self._first([hash(text[start : start + GRAM_CHARS]) for start in starts])

    def _first(self, hashed: Iterable[int]) -> list[int]:
        """Return the first place of each hash, or 0."""
        heads, hashes, following = self._heads, self._hashes, self._next
        mask = len(heads) - 1
        found = []
        for each in hashed:
            place = heads[each & mask]
            while place and hashes[place] != each:
                place = following[place]
            found.append(place)
        return found

    def groups(self, words: Sequence[str], pairs: Sequence[int], known: Set[int], work: Work) -> set[int]:
        """Return the groups of the documents that contain some words, except *known* groups.

        Args:
            words: Whole words in this order. A single word of `MIN_LONG_CHARS` may also be a part of a longer one.
            pairs: What `pairs` returns for the words.
            known: Groups that are not searched.
            work: What the search may do.

        Raises:
            WorkLimitError: If the search needs more work.

        """
        if not all(pairs):
            return set()
        if pairs:
            rarest = self._rarest(pairs[:MAX_COMPARED_CHAINS])
            start = starts_of(words[:rarest], 1)[-1]
            return self._groups_at(f" {' '.join(words)} ", pairs[rarest], start, known, work)
        (word,) = words
        if len(word) < MIN_LONG_CHARS:
            return self._groups_of_word(word) - known
        found: set[int] = set()
        for start, place in enumerate(self.grams(word, range(GRAM_STEP))):
            if place:
                found |= self._groups_at(word, place, start, known | found, work)
        return found

    def _rarest(self, places: Sequence[int]) -> int:
        """Return the number of the place with the shortest chain, or 0 if all chains are long."""
        following = self._next
        for _ in range(MIN_PLACES):
            places = [following[place] for place in places]
            if 0 in places:
                return places.index(0)
        return 0

    def _groups_of_word(self, word: str) -> set[int]:
        match self._words.get(word):
            case int() as owner:
                return {self._groups[owner]}
            case list() as owners:
                return {self._groups[owner] for owner in owners}
        return set()

    def _groups_at(self, text: str, place: int, start: int, known: Set[int], work: Work) -> set[int]:
        """Return the groups of the documents that contain *text*, *start* characters before a place of a chain."""
        texts, owners, places, hashes, groups = self._texts, self._owners, self._places, self._hashes, self._groups
        hashed, known, found, steps = hashes[place], {*known}, set[int](), 0
        while place:
            group = groups[owners[place]]
            if (
                group not in known
                and hashes[place] == hashed
                and texts[owners[place]].startswith(text, places[place] - start)
            ):
                found.add(group)
                known.add(group)
            place = self._next[place]
            steps += 1
            if steps == MIN_PLACES:
                unknown = sum([chars for group, chars in self._chars.items() if group not in known])
                most = min(MAX_PLACES, unknown // CHARS_PER_STEP)
            if steps >= MIN_PLACES and steps > most:
                work.spend(steps)
                return found | self._search(text, known, work)
        work.spend(steps)
        return found

    def _search(self, text: str, known: Set[int], work: Work) -> set[int]:
        """Return the groups of the documents that contain *text*, without the table."""
        found: set[int] = set()
        for owner, group in enumerate(self._groups):
            if group not in known and group not in found:
                work.spend(len(self._texts[owner]) // CHARS_PER_STEP + 1)
                if text in self._texts[owner]:
                    found.add(group)
        return found
