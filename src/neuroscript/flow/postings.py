"""An index of texts that finds which of them contain a string."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from itertools import accumulate, repeat
from typing import Final, NamedTuple

ANCHOR_CHARS: Final = 10
"""Length of the strings that are indexed where a word begins, and of the shortest string that is found by them."""

GRAM_CHARS: Final = 6
GRAM_STEP: Final = ANCHOR_CHARS + 1 - GRAM_CHARS
"""Distance of the strings that are indexed inside a word, so that any `ANCHOR_CHARS` of it contain one of them."""

HASH_MASK: Final = 0xFFFF_FFFF

MAX_PLACES: Final = 2_000
"""Maximum number of places that are compared with a string; then all texts are searched for it."""

CHARS_PER_STEP: Final = 40
"""Number of characters that are searched in the time in which one place is compared."""


class WorkLimitError(Exception):
    """A search needs more work than it may do, so its result is incomplete."""


class Work:
    """The work that a search may still do, in steps of about 0.2 microseconds."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Count some work.

        Raises:
            WorkLimitError: If it is more than what is left.

        """
        self.left -= steps
        if self.left < 0:
            raise WorkLimitError


class Entries(NamedTuple):
    """What the index stores of one text.

    Attributes:
        text: Its words, with a space before and after each of them.
        words: Its words of fewer than `ANCHOR_CHARS`.
        hashes: The hashes of the strings by which a place in it is found.
        places: Where these strings begin.
    """

    text: str
    words: set[str]
    hashes: list[int]
    places: list[int]


def entries_of(words: Sequence[str]) -> Entries:
    """Return what the index stores of the text of some words."""
    text = f" {' '.join(words)} "
    starts = starts_of(words, 1)
    anchors = starts[: bisect_right(starts, len(text) - ANCHOR_CHARS)]
    grams = [
        place
        for word, start in zip(words, starts, strict=False)
        if len(word) > ANCHOR_CHARS
        for place in range(start + GRAM_STEP, start + len(word) + 1 - GRAM_CHARS, GRAM_STEP)
    ]
    hashes = [hash(text[place : place + ANCHOR_CHARS]) & HASH_MASK for place in anchors]
    hashes += [hash(text[place : place + GRAM_CHARS]) & HASH_MASK for place in grams]
    short = {word for word in {*words} if len(word) < ANCHOR_CHARS}
    return Entries(text, short, hashes, anchors + grams)


def starts_of(words: Iterable[str], first: int = 0) -> list[int]:
    """Return where each word begins in a text of words whose first one begins at *first*, and where another would."""
    return [*accumulate((len(word) + 1 for word in words), initial=first)]


class TextIndex:
    """Texts, each of a group, and a hash table of places in them. Not thread-safe.

    The table is made of arrays, because a dict of strings takes ten times the memory.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._groups: list[int] = []
        self._words: dict[str, int | list[int]] = {}
        # Item 0 of the places is the end of every chain.
        self._hashes = array("I", [0])
        self._places = array("I", [0])
        self._owners = array("I", [0])
        self._next = array("I", [0])
        self._heads = array("I", [0])

    def add(self, entries: Entries, group: int) -> None:
        """Add a text, which belongs to a group."""
        number = len(self._texts)
        self._texts.append(entries.text)
        self._groups.append(group)
        for word in entries.words:
            match self._words.get(word):
                case None:
                    self._words[word] = number
                case int() as other:
                    self._words[word] = [other, number]
                case list() as others:
                    others.append(number)
        self._hashes.extend(entries.hashes)
        self._places.extend(entries.places)
        self._owners.extend(repeat(number, len(entries.places)))
        if len(self._hashes) > len(self._heads):
            size = 1 << len(self._hashes).bit_length()
            self._heads = array("I", [0]) * size
            self._next = array("I", [0])
        self._link()

    def _link(self) -> None:
        """Put every place that is in no chain into the chain of its hash."""
        heads, following, mask = self._heads, self._next, len(self._heads) - 1
        for place, hashed in enumerate(self._hashes[len(following) :], len(following)):
            slot = hashed & mask
            following.append(heads[slot])
            heads[slot] = place

    def anchors(self, text: str, starts: Iterable[int]) -> list[int]:
        """Return for each place in *text* the first indexed place with the same `ANCHOR_CHARS`, or 0."""
        heads, hashes, following = self._heads, self._hashes, self._next
        mask = len(heads) - 1
        found = []
        for start in starts:
            hashed = hash(text[start : start + ANCHOR_CHARS]) & HASH_MASK
            place = heads[hashed & mask]
            while place and hashes[place] != hashed:
                place = following[place]
            found.append(place)
        return found

    def groups(self, text: str, known: Container[int], work: Work, anchor: int | None = None) -> set[int]:
        """Return the groups of the texts that contain a string of words, except *known* ones.

        A string of fewer than `ANCHOR_CHARS` is found only as whole words. A longer one begins where a word begins, or
        inside a word that contains its first `ANCHOR_CHARS`.

        Args:
            anchor: What `anchors` returns for the string, if the caller knows it.

        Raises:
            WorkLimitError: If this takes more work than permitted.

        """
        if len(text) < ANCHOR_CHARS:
            return self._groups_of_words(text, known, work)
        if anchor is None:
            (anchor,) = self.anchors(text, (0,))
        found = self._groups_at(text, anchor, 0, known, work) if anchor else set()
        if " " not in text[:ANCHOR_CHARS]:
            for start in range(GRAM_STEP):
                gram = self._gram(text[start : start + GRAM_CHARS])
                found |= self._groups_at(text, gram, start, known, work) if gram else set()
        return found

    def _gram(self, text: str) -> int:
        hashed = hash(text) & HASH_MASK
        place = self._heads[hashed & (len(self._heads) - 1)]
        while place and self._hashes[place] != hashed:
            place = self._next[place]
        return place

    def _groups_at(self, text: str, place: int, start: int, known: Container[int], work: Work) -> set[int]:
        """Return the groups of texts that contain *text*, *start* characters before a place of a chain."""
        texts, owners, places, hashes = self._texts, self._owners, self._places, self._hashes
        hashed, found, steps = hashes[place], set[int](), 0
        while place:
            owner = owners[place]
            group = self._groups[owner]
            if (
                hashes[place] == hashed
                and group not in known
                and group not in found
                and texts[owner].startswith(text, places[place] - start)
            ):
                found.add(group)
            place = self._next[place]
            steps += 1
            if steps == MAX_PLACES:
                return self._groups_of_texts(text, range(len(texts)), known, work)
        work.spend(steps)
        return found

    def _groups_of_words(self, text: str, known: Container[int], work: Work) -> set[int]:
        owners: set[int] | None = None
        for word in text.split():
            match self._words.get(word):
                case None:
                    return set()
                case int() as owner:
                    having = {owner}
                case list() as several:
                    having = {*several}
            owners = having if owners is None else owners & having
            work.spend(len(having) // 4 + 1)
        if " " not in text.strip():
            return {self._groups[owner] for owner in owners or ()}
        return self._groups_of_texts(f" {text.strip()} ", owners or (), known, work)

    def _groups_of_texts(self, text: str, owners: Iterable[int], known: Container[int], work: Work) -> set[int]:
        found: set[int] = set()
        for owner in owners:
            group = self._groups[owner]
            if group not in known and group not in found:
                work.spend(len(self._texts[owner]) // CHARS_PER_STEP + 1)
                if text in self._texts[owner]:
                    found.add(group)
        return found
