"""Merge one commit into the branch that is checked out.

``git merge`` runs ``git stash create``. If ``.gitmodules`` says so, that runs ``git status`` in submodules, which runs
the filters of the submodule. Here git computes the merge without the working tree and then checks out the result.
Neither step starts another git.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from neuroscript import ToolFailed
from neuroscript_git import validation
from neuroscript_git.nesting import submodule_error
from neuroscript_git.repository import SUBMODULE, Repository, nul_terminated, printable

UNFINISHED: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD")
"""The files in ``.git`` of a merge that has not been committed."""

NO_OBJECT: Final = "0" * 40


def merge_commit(git: Repository, digest: str, message: str) -> dict[str, Any]:
    """Merge a commit, and return what git.merge returns.

    Raises:
        ToolFailed: git.unclean, git.unrelated, git.no_author, git.submodule, git.locked.
    """
    _require_finished(git)
    before = git.commit("HEAD")
    bases = (git.tells("merge-base", "--all", before, digest) or "").split() if before else []
    if before and digest in bases:
        return _outcome("up_to_date", before)
    if before is None or before in bases:
        git.require_apart(digest)
        git.run("merge", "--quiet", "--ff-only", "--no-verify-signatures", "--no-stat", "--no-autostash", digest)
        return _outcome("fast_forward", digest)
    _require_clean_index(git, before)
    _require_mergeable(git, before, digest, bases)
    return _merge_both(git, before, digest, message)


def _require_finished(git: Repository) -> None:
    if any(git.rt.fs.exists(f"{git.path}/.git/{name}") for name in UNFINISHED):
        raise unclean_error("a merge is unfinished; resolve its conflicts and commit, or reset with the mode merge")


def _require_clean_index(git: Repository, before: str) -> None:
    """Refuse to merge while changes are staged; a file with only a new modification time is unchanged."""
    git.run("update-index", "-q", "--ignore-submodules", "--refresh", statuses=(0, 1))
    if git.run("diff-index", "--cached", "--name-only", "-z", before, "--"):
        raise unclean_error("there are staged changes; commit or reset them first")


def unclean_error(text: str) -> ToolFailed:
    """Return the error for changes that prevent a merge."""
    return validation.input_error("git.unclean", text)


def _require_mergeable(git: Repository, before: str, digest: str, bases: Sequence[str]) -> None:
    """Refuse a merge in which both sides have changed a populated submodule: git would compare commits in it."""
    populated = git.nesting.populated()
    if not populated:
        return
    ours, theirs, *common = (_submodules(git, commit, populated) for commit in (before, digest, *bases))
    for path in ours.keys() & theirs.keys():
        origins = {each.get(path) for each in common}
        if len(origins) > 1 or len({ours[path], theirs[path], *origins}) > 2:
            raise submodule_error(
                "both sides have changed a submodule, and git tools do not enter submodules; merge it by hand"
            )


def _submodules(git: Repository, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the submodules that a commit has at some paths, with their entries in its tree."""
    entries = (entry.partition("\t") for entry in git.listed("ls-tree", "-z", commit, "--", *paths))
    return {path: entry for entry, _, path in entries if entry.startswith(SUBMODULE)}


def _merge_both(git: Repository, before: str, digest: str, message: str) -> dict[str, Any]:
    """Merge a commit into a branch when each has commits that the other does not have."""
    status, output = git.answer("merge-tree", "--write-tree", "-z", "--no-messages", "HEAD", digest, statuses=(0, 1))
    tree, *entries = output.split("\0")[:-1]
    git.require_apart(tree)
    if status == 0:
        parents = ("-p", before, "-p", digest)
        after = git.run("commit-tree", tree, *parents, "-F", "-", given=message.encode()).strip()
        _check_out(git, before, tree)
        git.run("update-ref", "-m", f"merge {digest}", "HEAD", after, before)
        return _outcome("merged", after)
    _check_out(git, before, tree)
    _record_conflicts(git, entries)
    git.rt.fs.write_text(f"{git.path}/.git/MERGE_MSG", f"{message}\n")
    git.rt.fs.write_text(f"{git.path}/.git/MERGE_HEAD", f"{digest}\n")
    conflicts = {printable(entry.partition("\t")[2]) for entry in entries}
    return _outcome("conflict", before, sorted(conflicts))


def _check_out(git: Repository, before: str, tree: str) -> None:
    """Update the index and the files to a tree; git refuses if an uncommitted change would be lost."""
    git.run("read-tree", "-m", "-u", "--no-recurse-submodules", before, tree)
    git.run("update-ref", "ORIG_HEAD", before)


def _record_conflicts(git: Repository, entries: Sequence[str]) -> None:
    """Replace the merged files in the index, which have conflict markers, by the sides of their conflicts."""
    removed = {f"0 {NO_OBJECT}\t{entry.partition(chr(9))[2]}" for entry in entries}
    git.run("update-index", "-z", "--index-info", given=nul_terminated([*sorted(removed), *entries]))


def _outcome(result: str, commit: str, conflicts: Sequence[str] = ()) -> dict[str, Any]:
    return {"result": result, "commit": commit, "conflicts": list(conflicts)}
