"""Stage files: find what has changed, and write it to the index.

``git add`` runs ``git status`` in submodules, which runs the filters of the submodule, and no option turns that off.
``git update-index`` stages the files that it is passed and starts no other git.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from neuroscript_git import validation
from neuroscript_git.nesting import normalize_path
from neuroscript_git.repository import MAGIC, Repository, nul_terminated

CHANGED: Final = ("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")


def stage(git: Repository, paths: Sequence[str]) -> list[str]:
    """Stage the files at and below some paths, and return the nested repositories that were left out, in order.

    Raises:
        ToolFailed: git.submodule, git.unknown_path, git.ignored, git.locked.
    """
    git.nesting.require_outside(paths)
    _require_known(git, paths)
    changed = set(git.listed(*CHANGED, "--", *paths))
    nested = git.nesting.roots(changed)
    files = sorted(changed - nested.keys())
    if files:
        git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", given=nul_terminated(files))
    submodules = [submodule for path in paths for submodule in git.nesting.below(path)]
    return sorted({*nested.values(), *submodules})


def _require_known(git: Repository, paths: Sequence[str]) -> None:
    """Refuse paths that do not exist, and files that the repository ignores."""
    missing = [path for path in paths if not os.path.lexists(f"{git.folder}/{path}".encode())]
    if missing:
        git.run("ls-files", "--error-unmatch", "--", *missing)
    names = [f"./{normalize_path(path)}" for path in paths if path not in missing and normalize_path(path)]
    if names and git.run("check-ignore", "-z", "--stdin", given=nul_terminated(names), statuses=(0, 1), more=MAGIC):
        raise validation.input_error("git.ignored", "a path is ignored by the repository")
