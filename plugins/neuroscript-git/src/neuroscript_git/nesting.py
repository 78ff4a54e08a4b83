"""Nested repositories: which paths of a repository belong to another one below it.

A directory is a nested repository if it holds a ``.git``, which may be a directory, a file or a link, or if the index
has a submodule there. Submodules, embedded repositories and linked worktrees are all nested repositories. git reads
their own configurations and runs the programs that these name, so the tools keep git out of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

import attrs

from neuroscript import ToolFailed
from neuroscript_git.validation import input_error

Kind = Literal["nested", "directory", "other"]
"""What is at a path; a missing file is ``other``."""


@attrs.frozen
class NestedRepositories:
    """The nested repositories of one repository.

    Attributes:
        folder: The directory of the repository.
        submodules: The paths of the submodules in its index.
    """

    folder: str
    submodules: frozenset[str]

    def populated(self) -> list[str]:
        """Return the submodules that have a repository in their directory."""
        return sorted(path for path in self.submodules if self._kind(path) == "nested")

    def below(self, path: str) -> list[str]:
        """Return the submodules at and below a path, in order."""
        start = f"{normalize_path(path)}/".lstrip("/")
        return sorted(each for each in self.submodules if f"{each}/".startswith(start))

    def roots(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the outermost nested repository of each path that is one or is in one."""
        kinds: dict[str, Kind] = {}
        found = {path: self._root(path, kinds) for path in paths}
        return {path: root for path, root in found.items() if root}

    def require_outside(self, paths: Iterable[str]) -> None:
        """Refuse paths that are nested repositories, or are in one.

        Raises:
            ToolFailed: git.submodule.
        """
        if self.roots(paths):
            raise submodule_error(
                "a path is in a nested repository, which git tools do not enter; name paths outside it"
            )

    def _root(self, path: str, kinds: dict[str, Kind]) -> str:
        for prefix in accumulate(filter(None, normalize_path(path).split("/")), "{}/{}".format):
            if prefix in self.submodules:
                return prefix
            if prefix not in kinds:
                kinds[prefix] = self._kind(prefix)
            if kinds[prefix] != "directory":
                return prefix if kinds[prefix] == "nested" else ""
        return ""

    def _kind(self, path: str) -> Kind:
        """Return what is at a path. No directory above it may be a link, which `_root` has checked."""
        place = f"{self.folder}/{path}".encode("utf-8", "surrogateescape")
        try:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                return "other"
        except OSError:
            return "other"
        return "nested" if os.path.lexists(place + b"/.git") else "directory"


def normalize_path(path: str) -> str:
    """Return a path without ``.``, doubled and final slashes; the repository itself is ``""``."""
    return "/".join(name for name in path.split("/") if name not in ("", "."))


def pathspecs(paths: Iterable[str], excluded: Iterable[str]) -> list[str]:
    """Return the pathspecs for some paths, or for the whole repository if there are none, without those excluded."""
    left_out = [f":(exclude,literal){path}" for path in sorted(set(excluded))]
    return [*(f":(literal){path}" for path in paths), *left_out]


def submodule_error(text: str) -> ToolFailed:
    """Return the error for a call that would enter a nested repository."""
    return input_error("git.submodule", text)
