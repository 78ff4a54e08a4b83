"""Names that are spelled like another name, found in an index of many names.

The last segment of a name counts by itself: ``add`` and ``plus.add`` find ``math.add``. Within a group, a word finds
another one that means the same: ``math.plus`` finds ``math.add``. However many names the index holds, one search
compares a bounded number of them letter by letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

COMPARED_CHARS: Final = 64
"""Maximum number of characters of a name that are compared; the rest is ignored."""

MAX_NAMES: Final = 3
"""Maximum number of names that one search returns."""

MAX_CANDIDATES: Final = 32
"""Maximum number of names from each source that one search compares letter by letter."""

MAX_FILTERED: Final = 16 * MAX_CANDIDATES
"""Maximum number of names from each source that are passed to a caller's filter."""

MAX_VISITS: Final = 10_000
"""Maximum number of entries of an index that one search counts."""

NEAR: Final = 0.6
"""Minimum similarity of two whole names, from 0 to 1, as `difflib` measures it."""

NEAR_WORD: Final = 0.8
"""Minimum similarity of two last segments if the groups differ."""

SAME_WORD: Final = 0.75
"""The minimum similarity of two names in different groups with the same last segment."""

SAME_MEANING: Final = 0.9
"""The similarity of two names in one group whose last segments are synonyms."""

MARGIN: Final = 0.1
"""Maximum difference between the similarity of the best match and that of other names."""

SYNONYMS: Final = (
    ("add", "plus", "sum"),
    ("subtract", "minus", "sub"),
    ("multiply", "times", "mul"),
    ("divide", "div"),
    ("delete", "remove", "rm", "unlink"),
    ("list", "ls", "dir"),
    ("read", "cat", "get", "load", "fetch"),
    ("write", "save", "put", "store"),
    ("copy", "cp"),
    ("move", "mv", "rename"),
    ("find", "search", "grep", "query"),
    ("length", "len", "size", "count"),
    ("execute", "exec", "run", "call"),
    ("join", "concat"),
)
"""Last segments of tool names that models and users confuse with each other."""

_MEANINGS: Final[Mapping[str, Sequence[str]]] = {word: words for words in SYNONYMS for word in words}


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return at most three of the *known* names that are spelled like *name*, the most similar first.

    >>> near("add", ["math.abs", "math.add"])
    ('math.add',)
    """
    return NearNames(known).near(name)


def did_you_mean(word: str, known: Iterable[str], shows: Callable[[str], str] = str) -> str:
    """Return a question with the most similar known words, or ``""``.

    Args:
        shows: Returns the form in which a known word is displayed.

    >>> did_you_mean("lst", ["show", "list"])
    '; did you mean list?'
    """
    alike = [shows(each) for each in near(word, known)]
    return f"; did you mean {' or '.join(alike)}?" if alike else ""


class NearNames:
    """An index of names for repeated searches; the first search builds it.

    Attributes:
        names: The names; equally similar names are returned in this order.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._index: _Index | None = None

    def near(self, name: str, accepts: Callable[[str], bool] | None = None) -> tuple[str, ...]:
        """Return at most three names that are spelled like *name*, the most similar first.

        The search ignores case and everything after the first `COMPARED_CHARS` characters.

        Args:
            accepts: Returns whether a name may be in the result.
        """
        if self._index is None:
            self._index = _Index([each[:COMPARED_CHARS].lower() for each in self.names])
        wanted = name[:COMPARED_CHARS].lower()
        is_accepted = None if accepts is None else lambda position: accepts(self.names[position])
        scores = dict(_scores(wanted, self._index.candidates(wanted, is_accepted), self._index.names))
        least = max(NEAR, max(scores.values(), default=0.0) - MARGIN)
        found = sorted((-score, position) for position, score in scores.items() if score >= least)
        return tuple(self.names[position] for _, position in found[:MAX_NAMES])


class _Index:
    """Positions of names by last segment and by letter pairs.

    Attributes:
        names: The names in lower case.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._is_small = len(names) <= MAX_CANDIDATES * 4
        self._positions: dict[str, int] = {}
        self._by_word: dict[str, list[int]] = {}
        if not self._is_small:
            for position, name in enumerate(names):
                self._positions.setdefault(name, position)
                self._by_word.setdefault(_word(name), []).append(position)
            self._words = tuple(self._by_word)
            self._word_pairs = _by_pair(self._words)
            self._name_pairs = _by_pair(names)

    def candidates(self, wanted: str, is_accepted: Callable[[int], bool] | None) -> Iterable[int]:
        """Return the positions of the names that may be near, each once."""
        if self._is_small:
            return filter(is_accepted, range(len(self.names))) if is_accepted else range(len(self.names))
        found: dict[int, None] = {}
        for source in self._sources(wanted):
            accepted = filter(is_accepted, islice(source, MAX_FILTERED)) if is_accepted else source
            found.update(dict.fromkeys(islice(accepted, MAX_CANDIDATES)))
        return found

    def _sources(self, wanted: str) -> Iterator[Iterable[int]]:
        """Yield names with the same last segment, a synonymous one or a similar one, then similar whole names."""
        group, word = _group(wanted), _word(wanted)
        yield self._by_word.get(word, ())
        yield self._of_same_meaning(group, word)
        yield chain.from_iterable(self._by_word[self._words[each]] for each in _most_common(self._word_pairs, word))
        yield _most_common(self._name_pairs, wanted)

    def _of_same_meaning(self, group: str, word: str) -> Iterator[int]:
        for other in _MEANINGS.get(word, ()):
            if not group:
                yield from self._by_word.get(other, ())
            elif (position := self._positions.get(f"{group}.{other}")) is not None:
                yield position


def _word(name: str) -> str:
    return name.rpartition(".")[2]


def _group(name: str) -> str:
    return name.rpartition(".")[0]


def _pairs(name: str) -> set[str]:
    """Return the letter pairs of a name, with marks for its two ends."""
    marked = f"^{name}$"
    return {marked[at : at + 2] for at in range(len(marked) - 1)}


def _by_pair(names: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        for pair in _pairs(name):
            found.setdefault(pair, []).append(position)
    return found


def _most_common(by_pair: Mapping[str, list[int]], wanted: str) -> list[int]:
    """Return the positions that share most letter pairs with *wanted*; rare pairs are counted first."""
    import heapq

    counts: Counter[int] = Counter()
    left = MAX_VISITS
    for positions in sorted((by_pair[pair] for pair in _pairs(wanted) if pair in by_pair), key=len):
        counts.update(positions[:left])
        left -= len(positions)
        if left <= 0:
            break
    return heapq.nsmallest(MAX_FILTERED, counts, key=lambda position: (-counts[position], position))


def _scores(wanted: str, positions: Iterable[int], names: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield the position of each candidate and how similar it is to *wanted*, from 0 to 1."""
    from difflib import SequenceMatcher

    group, word = _group(wanted), _word(wanted)
    meanings = frozenset(_MEANINGS.get(word, ()))
    whole, last = SequenceMatcher(autojunk=False), SequenceMatcher(autojunk=False)
    whole.set_seq2(wanted)
    last.set_seq2(word)
    for position in positions:
        name = names[position]
        other = _word(name)
        score = _ratio(whole, name, NEAR)
        weight = SAME_WORD if group else 1.0
        if other == word:
            score = max(score, weight)
        elif other in meanings and _group(name) and group in ("", _group(name)):
            score = max(score, SAME_MEANING)
        else:
            score = max(score, weight * _ratio(last, other, NEAR_WORD))
        yield position, score


def _ratio(matcher: Any, name: str, least: float) -> float:
    """Return the similarity of *name* to the name in the matcher, or 0 if it is less than *least*."""
    matcher.set_seq1(name)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    ratio: float = matcher.ratio()
    return ratio if ratio >= least else 0.0
