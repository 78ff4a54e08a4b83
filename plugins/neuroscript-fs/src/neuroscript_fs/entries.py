"""The map that describes one file or directory, the same for every tool."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from neuroscript import DirEntry

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def as_map(entry: DirEntry) -> dict[str, Any]:
    """Return an entry of the sandbox as a map.

    Returns:
        ``name``, ``path`` (relative to the sandbox), ``is_dir``, ``kind`` (file, dir, symlink or other),
        ``size_bytes``,
        ``modified_unix`` (seconds since 1970-01-01 UTC) and ``modified_rfc3339``.
    """
    return {
        "name": entry.name,
        "path": entry.path,
        "is_dir": entry.is_dir,
        "kind": entry.kind,
        "size_bytes": entry.size,
        "modified_unix": entry.modified,
        "modified_rfc3339": _rfc3339(entry.modified),
    }


def by_path(entries: Iterable[DirEntry]) -> list[dict[str, Any]]:
    """Return entries as maps, sorted by path."""
    return [as_map(each) for each in sorted(entries, key=lambda each: each.path)]


def _rfc3339(seconds: float) -> str | None:
    """Return a time in RFC 3339 format, or None if its year is out of range; file times can have any year."""
    try:
        return (EPOCH + timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    except OverflowError:
        return None
