"""``git`` tools that read a repository: its status, its differences, its commits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from neuroscript import Example, Runtime, ToolPolicy, Toolset
from neuroscript_git import parsing, validation
from neuroscript_git.nesting import pathspecs
from neuroscript_git.repository import MAGIC, Repository, open_repository, printable

GIT: Final = "shell:exec:git"
SOURCES: Final = ("untrusted", "private")
"""A repository contains what everyone who can commit to it has written, and not everyone may read it."""

READING: Final = ToolPolicy(
    capabilities=("fs:read:{relative_path}/**", GIT),
    effects=("reads", "exec"),
    sources=SOURCES,
    sinks=(),
    raw_files=True,
)
SEEING: Final = ToolPolicy(
    capabilities=("fs:read:{repo_path}/**", GIT), effects=("reads", "exec"), sources=SOURCES, sinks=(), raw_files=True
)
"""No program that a repository names is executed, so arguments only select what git reads."""

INERT: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--find-renames")
"""Options that make git compute differences itself, without external programs."""

UNSTAGED: Final = ("unchanged", "untracked")
"""The states of the index in `status` if only the file has changed."""

MAX_COMMITS: Final = 1000

toolset = Toolset("git")


@toolset.tool(
    policy=SEEING,
    when_to_use="Use it to see which files changed; to see the changes themselves, use git.diff.",
    examples=(
        Example(
            ("work",),
            {
                "branch": "main",
                "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9",
                "upstream": None,
                "ahead": 0,
                "behind": 0,
                "clean": False,
                "files": [
                    {"path": "a.txt", "old_path": None, "index": "unchanged", "worktree": "modified"},
                    {"path": "new.txt", "old_path": None, "index": "untracked", "worktree": "untracked"},
                ],
                "nested_repositories": [],
            },
        ),
        Example({"repo_path": "work/"}, note="the same"),
        Example(("notes",), error="git.no_repository"),
    ),
)
def status(rt: Runtime, repo_path: str = ".") -> dict[str, Any]:
    """Show the status of the working tree of a git repository: its branch and its modified, staged and untracked files.

    Args:
        repo_path: The directory of the repository, relative to the sandbox.

    Returns:
        branch (None if detached), commit (None before the first one), upstream, ahead and behind (numbers of commits),
        clean, and files. Each file has path, old_path (if it was renamed), index and worktree, which are unchanged,
        added, modified, deleted, renamed, copied, type_changed, unmerged or untracked. nested_repositories: the paths
        of submodules and of other repositories below this one, which are left out.

    Raises:
        ToolFailed: git.no_repository, git.unsafe, git.format, git.broken.
    """
    with open_repository(rt, repo_path, written=()) as git:
        shape = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all")
        found = parsing.status(git.run("status", *shape))
        roots = git.nesting.roots(each["path"] for each in found["files"])
        files = [each for each in found["files"] if each["path"] not in roots or each["index"] not in UNSTAGED]
        nested = _nested(git, "", roots.values())
        return {**found, "clean": not files, "files": files, "nested_repositories": nested}


def _nested(git: Repository, path: str, found: Iterable[str]) -> list[str]:
    """Return the nested repositories that a result leaves out: the submodules below a path, and those found."""
    return [printable(each) for each in sorted({*git.nesting.below(path), *found})]


@toolset.tool(
    policy=READING,
    when_to_use="Use it to see changes line by line; for a list of changed files, use git.status.",
    examples=(
        Example(
            ("work",),
            {
                "files": [
                    {
                        "path": "a.txt",
                        "old_path": None,
                        "change": "modified",
                        "added": 1,
                        "deleted": 0,
                        "binary": False,
                    }
                ],
                "patch": "diff --git a/a.txt b/a.txt\nindex 5626abf..814f4a4 100644\n--- a/a.txt\n+++ b/a.txt\n"
                "@@ -1 +1,2 @@\n one\n+two\n",
                "nested_repositories": [],
            },
        ),
        Example(
            {"relative_path": "work", "cached": True},
            {"files": [], "patch": "", "nested_repositories": []},
        ),
        Example({"relative_path": "work", "commit1": "--output=x"}, error="git.bad_ref"),
    ),
)
def diff(
    rt: Runtime, relative_path: str, cached: bool = False, commit1: str = "", commit2: str = "", path: str = ""
) -> dict[str, Any]:
    """Show the changes in the working tree or the index, or between commits, as a diff.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        cached: Whether to compare what is staged, with the last commit or with commit1.
        commit1: The commit to compare with: a branch, a tag or a commit hash, optionally followed by ~1 or ^1.
        commit2: The commit to compare with commit1; by default the files themselves.
        path: The one file or directory to compare, in the repository; by default all of it.

    Returns:
        files: for each, path, old_path (if it was renamed), change, added and deleted (lines) and binary. patch: the
        text. nested_repositories: the paths of submodules and of other repositories below this one, which are left out.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.bad_path, git.submodule for a path in another repository,
            git.too_large, and what git.status raises.
    """
    with open_repository(rt, relative_path, written=()) as git:
        if commit2 and (cached or not commit1):
            raise validation.input_error("git.bad_ref", "a second commit needs a first one, and no cached")
        commits = [git.known(each) for each in (commit1, commit2) if each]
        paths = [validation.path(path)] if path else []
        git.nesting.require_outside(paths)
        arguments = [*INERT, *(["--cached"] if cached else []), *commits]
        files = parsing.changes(git.run("diff", "--raw", "--numstat", "-z", *arguments, "--", *paths))
        roots = {} if cached or commit2 else git.nesting.roots(each["path"] for each in files)
        scope = pathspecs(paths, roots.values())
        patch = git.run("diff", "--patch", *arguments, "--", *scope, more=MAGIC)
        listed = [each for each in files if each["path"] not in roots]
        return {"files": listed, "patch": patch, "nested_repositories": _nested(git, path, roots.values())}


@toolset.tool(
    policy=READING,
    when_to_use="Use it to see who changed what and when; for the changes themselves, use git.diff.",
    examples=(
        Example(
            ("work",),
            [
                {
                    "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9",
                    "parents": [],
                    "author": "Ada",
                    "email": "ada@example.org",
                    "time": "2023-11-14T22:13:20+00:00",
                    "subject": "Begin",
                    "body": "",
                }
            ],
        ),
        Example({"relative_path": "work", "commit": "topic", "limit": 1, "path": "b.txt"}),
        Example(("work", "nobody"), error="git.unknown_ref"),
    ),
)
def log(rt: Runtime, relative_path: str, commit: str = "HEAD", limit: int = 20, path: str = "") -> list[dict[str, Any]]:
    """Show the commit history, most recent commits first.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        commit: The commit to start at: a branch, a tag or a commit hash, optionally followed by ~1 or ^1.
        limit: Maximum number of commits, up to 1000.
        path: List only commits that changed this file or directory; by default all commits.

    Returns:
        For each, commit, parents (hashes), author, email, time (ISO 8601), subject and body.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.bad_path, git.submodule, and what git.status raises.
    """
    with open_repository(rt, relative_path, written=()) as git:
        paths = [validation.path(path)] if path else []
        git.nesting.require_outside(paths)
        arguments = [git.known(commit), "--", *paths]
        count = max(0, min(limit, MAX_COMMITS))
        shape = ("-z", "--no-color", "--no-show-signature", "--no-mailmap", f"--format=tformat:{parsing.LOG_FORMAT}")
        return parsing.log(git.run("log", *shape, f"--max-count={count}", *arguments))
