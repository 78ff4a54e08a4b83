"""Directory listings and pattern matching: sorted by name, without following links, and limited in size."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from typing import Final, Literal

import attrs

from neuroscript.errors import LimitError, SandboxError
from neuroscript.io.text import escape
from neuroscript.policy.paths import MAX_SEGMENTS, canonical_path, relative
from neuroscript.runtime.interfaces import DirEntry
from neuroscript.sandbox.directory import Folder, Segments, Spend

Kind = Literal["file", "dir", "symlink", "other"]
KINDS: Final[dict[int, Kind]] = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "symlink"}

MAX_ENTRIES: Final = 100_000
"""Maximum number of entries that one call examines."""

FREE_ENTRIES: Final = 1_000
"""Number of entries of one directory after which they are counted against the limit."""

MAGIC: Final = re.compile(r"[*?\[]")


def entry(segments: Segments, status: os.stat_result) -> DirEntry:
    """Return the `DirEntry` for the path *segments*."""
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
    return DirEntry(escape(canonical_path(segments)), kind, status.st_size if kind == "file" else 0, status.st_mtime)


@attrs.frozen(eq=False, repr=False)
class Pattern:
    """A path pattern: ``*``, ``?`` and ``[…]`` match characters of one name, ``**`` matches any number of names.

    Matching proceeds directory by directory. A state is the number of pattern parts used up, and each name leads from
    one set of states to the next. Therefore no pattern makes the search slow, and only promising directories are
    entered.
    """

    names: tuple[Callable[[str], object] | None, ...]
    """A predicate on names for each part; None is ``**``."""

    @classmethod
    def of(cls, segments: Iterable[str]) -> Pattern:
        """Return the pattern written as *segments*."""
        from fnmatch import translate

        return cls(tuple(None if name == "**" else re.compile(translate(name)).match for name in segments))

    def first(self) -> frozenset[int]:
        """Return the initial states."""
        return self._with_none_skipped({0})

    def after(self, states: frozenset[int], name: str) -> frozenset[int]:
        """Return the states after one more name; empty if nothing can match any more."""
        return self._with_none_skipped(self._used(state, name) for state in states)

    def fits(self, states: frozenset[int]) -> bool:
        """Return whether the names so far are a complete match."""
        return len(self.names) in states

    def goes_on(self, states: frozenset[int]) -> bool:
        """Return whether a longer path may match."""
        return any(state < len(self.names) for state in states)

    def _used(self, state: int, name: str) -> int:
        """Return the state after *name*, or -1 if the part does not match."""
        if state == len(self.names):
            return -1
        fits = self.names[state]
        if fits is None:
            return state
        return state + 1 if fits(name) else -1

    def _with_none_skipped(self, states: Iterable[int]) -> frozenset[int]:
        found = set()
        for state in states:
            found.add(state)
            while 0 <= state < len(self.names) and self.names[state] is None:
                state += 1
                found.add(state)
        return frozenset(found - {-1})


CHILDREN: Final = Pattern((lambda name: True,))
ALL_BELOW: Final = Pattern((None,))


def split(segments: Segments) -> tuple[Segments, Segments]:
    """Return the directory where the search for a pattern starts, and the rest of the pattern, at least one name."""
    count = next((index for index, name in enumerate(segments) if MAGIC.search(name)), len(segments))
    count = min(count, max(0, len(segments) - 1))
    return segments[:count], segments[count:]


def find_entries(
    root: Folder, start: Segments, pattern: Pattern, permits: Callable[[str], bool], spend: Spend
) -> list[DirEntry]:
    """Return the entries below *start* that match *pattern*, sorted by name, each directory before its entries.

    Entries that are not permitted are neither returned nor entered. A directory that cannot be read, or that was
    removed meanwhile, is returned but not entered. Each entry of a directory that is read counts against the limit,
    even without a match.

    Raises:
        LimitError: With the code ``limit.fs_entries``, for more than 100,000 entries or 256 levels, or raised by
            *spend*.
    """
    entries: list[DirEntry] = []
    looked_at = 0
    waiting = [(each, pattern.first()) for each in reversed(_children(root, start, spend))]
    while waiting:
        (segments, each), before = waiting.pop()
        looked_at += 1
        if len(segments) > MAX_SEGMENTS or looked_at + len(waiting) > MAX_ENTRIES:
            raise too_many()
        states = pattern.after(before, segments[-1])
        if not states or not permits(each.path):
            continue
        if pattern.fits(states):
            entries.append(each)
        if each.is_dir and pattern.goes_on(states) and is_spellable(segments):
            waiting += [(child, states) for child in reversed(_inside(root, segments, spend))]
    return entries


def is_spellable(segments: Segments) -> bool:
    """Return whether a valid path leads to *segments*."""
    try:
        return relative("/".join(segments)) == segments
    except SandboxError:
        return False


def too_many() -> LimitError:
    """Return the error for a tree that is too large."""
    text = f"the directory tree has more than {MAX_ENTRIES} entries or {MAX_SEGMENTS} levels"
    return LimitError(text, code="limit.fs_entries")


def _children(root: Folder, segments: Segments, spend: Spend) -> list[tuple[Segments, DirEntry]]:
    children: list[tuple[Segments, DirEntry]] = []
    with root.below(segments) as folder:
        for each in folder.scan():
            if len(children) == MAX_ENTRIES:
                raise too_many()
            try:
                status = each.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            here = (*segments, each.name)
            children.append((here, entry(here, status)))
            if len(children) % FREE_ENTRIES == 0:
                spend("fs_entries", FREE_ENTRIES)
    spend("fs_entries", len(children) % FREE_ENTRIES)
    return sorted(children, key=lambda child: child[0])


def _inside(root: Folder, segments: Segments, spend: Spend) -> list[tuple[Segments, DirEntry]]:
    try:
        return _children(root, segments, spend)
    except OSError:
        return []
