"""``git`` tools that change a repository: staging, commits, branches, checkout, reset and merge."""

from __future__ import annotations

from typing import Any, Final, Literal

from neuroscript import Example, Runtime, ToolPolicy, Toolset
from neuroscript_git import parsing, validation
from neuroscript_git.inspection import GIT, INERT, SOURCES
from neuroscript_git.merging import merge_commit
from neuroscript_git.nesting import normalize_path
from neuroscript_git.repository import Repository, open_repository, printable
from neuroscript_git.staging import stage

STAGING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", GIT),
    effects=("reads", "writes", "exec"),
    sources=SOURCES,
    sinks=("storage",),
    raw_files=True,
)
CHANGING: Final = ToolPolicy(
    capabilities=("fs:read,write,delete:{relative_path}/**", GIT),
    effects=("reads", "writes", "deletes", "exec"),
    sources=SOURCES,
    sinks=("storage",),
    raw_files=True,
)
REMOVING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", "fs:delete:{relative_path}/{paths}", GIT),
    effects=("reads", "writes", "deletes", "exec"),
    sources=SOURCES,
    sinks=("storage",),
    raw_files=True,
)
RAW: Final = (*INERT, "--raw", "--numstat", "-z")
COMMITTING: Final = (
    *("--quiet", "--no-verify", "--no-gpg-sign", "--no-status", "--cleanup=whitespace", "--file=-"),
    "--allow-empty",  # without it, git runs its status, which enters submodules; `_require_something` has checked
)

toolset = Toolset("git")


@toolset.tool(
    policy=STAGING,
    when_to_use="Use it before git.commit; to delete tracked files and stage the deletion, use git.rm.",
    examples=(
        Example(
            ("work", ["new.txt"]),
            {
                "staged": [
                    {
                        "path": "new.txt",
                        "old_path": None,
                        "change": "added",
                        "added": 1,
                        "deleted": 0,
                        "binary": False,
                    }
                ],
                "nested_repositories": [],
            },
        ),
        Example({"relative_path": "work", "paths": ["."]}),
        Example(("work", ["../notes"]), error="git.bad_path"),
    ),
)
def add(rt: Runtime, relative_path: str, paths: list[str]) -> dict[str, Any]:
    """Stage files for the next commit by adding their contents to the index.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        paths: Files and directories in the repository; "." for all. Wildcards are not supported.

    Returns:
        staged: all changes of the next commit, in the shape of git.diff. nested_repositories: the paths of
        submodules and of other repositories in these directories, which are left out.

    Raises:
        ToolFailed: git.bad_path, git.unknown_path, git.ignored, git.submodule for a path in another repository,
            git.locked, and what git.status raises.
    """
    with open_repository(rt, relative_path) as git:
        nested = stage(git, validation.paths(paths))
        staged = parsing.changes(git.run("diff", "--cached", *RAW, "--"))
        return {"staged": staged, "nested_repositories": [printable(path) for path in nested]}


@toolset.tool(
    policy=REMOVING,
    when_to_use="Use it to delete tracked files; to unstage changes and keep the files, use git.reset.",
    examples=(
        Example(("work", ["b.txt"]), {"removed": ["b.txt"]}),
        Example({"relative_path": "work", "paths": ["./b.txt"]}, {"removed": ["b.txt"]}),
        Example(("work", ["a.txt"]), error="git.unclean", note="it has uncommitted changes"),
    ),
)
def rm(rt: Runtime, relative_path: str, paths: list[str]) -> dict[str, Any]:
    """Delete tracked files from the working tree and the index.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        paths: Files in the repository; directories are not accepted.

    Returns:
        removed: the paths of the removed files.

    Raises:
        ToolFailed: git.bad_path, git.unknown_path, git.unclean if a change would be lost, git.submodule for a path in
            another repository, git.locked, and what git.status raises.
    """
    with open_repository(rt, relative_path, written=(".",)) as git:
        files = [normalize_path(each) for each in validation.paths(paths)]
        git.nesting.require_outside(files)
        if not {each.path for each in git.tracked()}.issuperset(files):
            raise validation.input_error("git.unknown_path", "a path is not a tracked file")
        git.run("rm", "--quiet", "--", *files)
        return {"removed": files}


@toolset.tool(
    policy=STAGING,
    when_to_use="Use it after git.add or git.rm has staged changes; to send commits to a remote, use git.push.",
    examples=(
        Example({"relative_path": "work", "commit_message": "Nothing new", "allow_empty": True}),
        Example(
            {
                "relative_path": "work",
                "commit_message": "--amend",
                "allow_empty": True,
                "author_name": "Bo",
                "author_email": "bo@example.org",
            },
            note="a message that looks like an option is only a message",
        ),
        Example(("work", "Nothing new"), error="git.nothing_staged"),
    ),
)
def commit(
    rt: Runtime,
    relative_path: str,
    commit_message: str,
    allow_empty: bool = False,
    author_name: str = "",
    author_email: str = "",
) -> dict[str, Any]:
    """Commit the staged changes: record them in the repository with a message.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        commit_message: The message; the first line is the subject.
        allow_empty: True to allow a commit without staged changes.
        author_name: Name of the author; by default, user.name of the repository or the value from the host.
        author_email: Email of the author, with the same default rules.

    Returns:
        commit, branch (None if detached), subject, and files in the shape of git.diff.

    Raises:
        ToolFailed: git.nothing_staged, git.no_author, git.bad_message, git.bad_author, git.unclean in the middle of a
            merge with conflicts, git.locked, and what git.status raises.
    """
    text = validation.message(commit_message)
    with open_repository(rt, relative_path) as git:
        _require_something(git, allow_empty)
        more = [*_people("NAME", author_name), *_people("EMAIL", author_email)]
        git.run("commit", *COMMITTING, given=text, more=more)
        digest = git.known("HEAD")
        files = parsing.changes(git.run("diff-tree", "--root", "--no-commit-id", "-r", *RAW, digest, "--"))
        subject = git.run("log", "--max-count=1", "--format=%s", digest, "--").rstrip("\n")
        return {"commit": digest, "branch": git.branch(), "subject": subject, "files": files}


def _require_something(git: Repository, allow_empty: bool) -> None:
    staged = git.run("diff", "--cached", "--raw", "-z", "--no-ext-diff", "--ignore-submodules=all", "--")
    if not staged and not allow_empty and git.commit("MERGE_HEAD") is None:
        raise validation.input_error(
            "git.nothing_staged", "nothing is staged; stage something, or allow an empty commit"
        )


def _people(what: str, value: str) -> list[tuple[str, str]]:
    if not value:
        return []
    return [(f"GIT_{role}_{what}", validation.person(value)) for role in ("AUTHOR", "COMMITTER")]


@toolset.tool(
    policy=STAGING,
    when_to_use="Use it to list or create branches; to switch to an existing branch, use git.checkout.",
    examples=(
        Example(
            ("work",),
            {
                "current": "main",
                "created": None,
                "branches": [
                    {
                        "name": "main",
                        "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9",
                        "current": True,
                        "remote": False,
                        "upstream": None,
                        "subject": "Begin",
                    },
                    {
                        "name": "topic",
                        "commit": "70315e0b5db6fd6c288ce031491e326db2805826",
                        "current": False,
                        "remote": False,
                        "upstream": None,
                        "subject": "Go on",
                    },
                ],
            },
        ),
        Example({"relative_path": "work", "name": "idea", "checkout": True}),
        Example(("work", "-D"), error="git.bad_ref"),
    ),
)
def branch(
    rt: Runtime,
    relative_path: str,
    name: str = "",
    checkout: bool = False,
    list_remote: bool = False,
    list_all: bool = False,
) -> dict[str, Any]:
    """List branches, or create a new branch and list them.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        name: Name of the branch to create, at the current commit; none by default.
        checkout: True to check out the new branch.
        list_remote: True to list the remote-tracking branches instead of the local ones.
        list_all: True to list both.

    Returns:
        current (None if detached), created (None if no branch was created), and branches: for each, name, commit,
        current, remote, upstream and subject.

    Raises:
        ToolFailed: git.bad_ref, git.exists, git.unknown_ref if there is no commit yet, git.locked, and what
            git.status raises.
    """
    with open_repository(rt, relative_path) as git:
        if name:
            git.run("branch", "--no-track", validation.ref(name), git.known("HEAD"))
            if checkout:
                git.run("symbolic-ref", "-m", "checkout", "HEAD", f"refs/heads/{name}")
        here = [] if list_remote and not list_all else ["refs/heads"]
        there = ["refs/remotes"] if list_remote or list_all else []
        shown = git.run("for-each-ref", f"--format={parsing.BRANCH_FORMAT}", *here, *there)
        return {"current": git.branch(), "created": name or None, "branches": parsing.branches(shown)}


@toolset.tool(
    policy=CHANGING,
    when_to_use="Use it to switch branches; to list branches, use git.branch, to undo commits, git.reset.",
    examples=(
        Example({"relative_path": "work", "branch": "idea", "create": True}),
        Example(
            {"relative_path": "work", "branch": "main"},
            {"branch": "main", "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9", "detached": False},
        ),
        Example(("work", "nobody"), error="git.unknown_ref"),
    ),
)
def checkout(rt: Runtime, relative_path: str, branch: str, create: bool = False) -> dict[str, Any]:
    """Switch to (check out) another branch, tag or commit and update the files.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        branch: The branch; or a tag or commit hash, optionally followed by ~1 or ^1, which detaches HEAD.
        create: True to create the branch at the current commit.

    Returns:
        branch (None if detached), commit and detached.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.exists, git.unclean if a change would be lost, git.locked, and
            what git.status raises.
    """
    options = ("--quiet", "--no-guess", "--no-recurse-submodules")
    with open_repository(rt, relative_path) as git:
        if create:
            git.run("checkout", *options, "-b", validation.ref(branch), git.known("HEAD"), "--")
        elif validation.is_ref(branch) and (digest := git.commit(f"refs/heads/{branch}")):
            git.require_apart(digest)
            git.run("checkout", *options, validation.ref(branch), "--")
        else:
            digest = git.known(branch)
            git.require_apart(digest)
            git.run("checkout", *options, "--detach", digest, "--")
        name = git.branch()
        return {"branch": name, "commit": git.commit("HEAD"), "detached": name is None}


@toolset.tool(
    policy=CHANGING,
    when_to_use="Use it to unstage changes or undo commits; to switch branches, use git.checkout.",
    examples=(
        Example(("work",), {"commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9", "mode": "mixed"}),
        Example(
            {"relative_path": "work", "mode": "hard"},
            {"commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9", "mode": "hard"},
            note="uncommitted changes are lost",
        ),
        Example(("work", "hard", "HEAD~5"), error="git.unknown_ref"),
    ),
)
def reset(
    rt: Runtime,
    relative_path: str,
    mode: Literal["soft", "mixed", "hard", "merge", "keep"] = "mixed",
    commit: str = "HEAD",
) -> dict[str, Any]:
    """Reset the current branch to a commit, to undo later commits; depending on the mode, unstage or discard changes.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        mode: soft moves only the branch, mixed also resets the index, hard also resets the files and discards their
            changes, merge and keep preserve unstaged changes; merge also aborts a merge with conflicts.
        commit: The target: a branch, a tag or a digest, with ~1 or ^1 behind it.

    Returns:
        commit and mode.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.unclean, git.locked, and what git.status raises.
    """
    with open_repository(rt, relative_path) as git:
        digest = git.known(commit)
        if mode not in ("soft", "mixed"):
            git.require_apart(digest)
        git.run("reset", "--quiet", f"--{mode}", "--no-recurse-submodules", digest, "--")
        return {"commit": digest, "mode": mode}


@toolset.tool(
    policy=CHANGING,
    when_to_use="Use it for a local branch; for a branch of a remote, use git.pull.",
    examples=(
        Example(
            ("work", "topic"),
            {"result": "fast_forward", "commit": "70315e0b5db6fd6c288ce031491e326db2805826", "conflicts": []},
        ),
        Example(
            {"relative_path": "work", "branch": "main"},
            {"result": "up_to_date", "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9", "conflicts": []},
        ),
        Example(("work", "--abort"), error="git.bad_ref"),
    ),
)
def merge(rt: Runtime, relative_path: str, branch: str) -> dict[str, Any]:
    """Merge another branch into the current branch, joining their histories.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        branch: The branch, tag or commit to merge.

    Returns:
        result (up_to_date, fast_forward, merged or conflict), commit (the current commit afterwards) and conflicts: the
        paths to resolve, stage and commit. To abort the merge instead, use git.reset with mode merge.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.unclean, git.unrelated, git.no_author, git.locked, and what
            git.status raises.
    """
    with open_repository(rt, relative_path) as git:
        return merge_commit(git, git.known(branch), f"Merge {branch}")
