"""What a repository holds, without a change to it: its state, its differences, its commits.

Source: upstream ``pkg/tool/git``; ``git.log`` is new.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import Example, Runtime, ToolPolicy, Toolset
from neuroscript_git import checking, parsing
from neuroscript_git.repository import opened

GIT: Final = "shell:exec:git"
READING: Final = ToolPolicy(capabilities=("fs:read:{relative_path}/**", GIT), effects=("reads", "exec"))
SEEING: Final = ToolPolicy(capabilities=("fs:read:{repo_path}/**", GIT), effects=("reads", "exec"))

INERT: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--find-renames")
"""A difference that is made by git itself."""

MOST_COMMITS: Final = 1000

toolset = Toolset("git")


@toolset.tool(
    policy=SEEING,
    when_to_use="To see which files have changed; git.diff shows what has changed in them.",
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
            },
        ),
        Example({"repo_path": "work/"}, note="the same"),
        Example(("notes",), error="git.no_repository"),
    ),
)
def status(rt: Runtime, repo_path: str = ".") -> dict[str, Any]:
    """Tell which branch is checked out, and which files differ from its last commit.

    Args:
        repo_path: The directory of the repository, below the sandbox.

    Returns:
        branch and commit (None where there is none), upstream, ahead and behind (commits), clean, and files: of each
        path, old_path (of a renamed one), index and worktree, which are unchanged, added, modified, deleted, renamed,
        copied, type_changed, unmerged or untracked.

    Raises:
        ToolFailed: git.no_repository, git.unsafe, git.format, git.broken.
    """
    with opened(rt, repo_path) as git:
        shape = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all")
        return parsing.status(git.run("status", *shape))


@toolset.tool(
    policy=READING,
    when_to_use="To see what has changed in files, or between two commits; git.status shows which have changed.",
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
            },
        ),
        Example({"relative_path": "work", "cached": True}, {"files": [], "patch": ""}),
        Example({"relative_path": "work", "commit1": "--output=x"}, error="git.bad_ref"),
    ),
)
def diff(
    rt: Runtime, relative_path: str, cached: bool = False, commit1: str = "", commit2: str = "", path: str = ""
) -> dict[str, Any]:
    """Show the differences between files and the index, or commits, by file and as a patch.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        cached: Whether what is staged is compared, with the last commit or the first one that is named.
        commit1: The commit to compare with: a branch, a tag or a digest, with ~1 or ^1 behind it.
        commit2: The commit that is compared with the first; the files themselves unless it is said.
        path: The one file or directory to compare, in the repository; all of it unless it is said.

    Returns:
        files: of each path, old_path (of a renamed one), change, added and deleted (lines) and binary. patch: the text.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.bad_path, git.too_large, and what git.status raises.
    """
    with opened(rt, relative_path) as git:
        if commit2 and (cached or not commit1):
            raise checking.bad("git.bad_ref", "a second commit needs a first one, and no cached")
        commits = [git.known(each) for each in (commit1, commit2) if each]
        wanted = [*(["--cached"] if cached else []), *commits, "--", *([checking.path(path)] if path else [])]
        files = parsing.changes(git.run("diff", *INERT, "--raw", "--numstat", "-z", *wanted))
        return {"files": files, "patch": git.run("diff", *INERT, "--patch", *wanted)}


@toolset.tool(
    policy=READING,
    when_to_use="To see who changed what and when; git.diff shows the change itself.",
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
    """List commits, the latest first.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        commit: Where to begin: a branch, a tag or a digest, with ~1 or ^1 behind it.
        limit: How many there are at most, up to 1000.
        path: The one file or directory that they changed; any unless it is said.

    Returns:
        Of each commit, parents (digests), author, email, time (ISO 8601), subject and body.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.bad_path, and what git.status raises.
    """
    with opened(rt, relative_path) as git:
        wanted = [git.known(commit), "--", *([checking.path(path)] if path else [])]
        count = max(0, min(limit, MOST_COMMITS))
        shape = ("-z", "--no-color", "--no-show-signature", "--no-mailmap", f"--format=tformat:{parsing.LOG_FORMAT}")
        return parsing.log(git.run("log", *shape, f"--max-count={count}", *wanted))
