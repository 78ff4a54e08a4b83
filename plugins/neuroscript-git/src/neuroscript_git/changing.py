"""What is changed in a repository: files staged and removed, commits, branches, and what is checked out.

Source: upstream ``pkg/tool/git``. What differs on purpose: results are parsed, every argument does what it says, and
nothing of the repository runs.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from neuroscript import Example, Runtime, ToolPolicy, Toolset
from neuroscript_git import checking, parsing
from neuroscript_git.looking import GIT, INERT
from neuroscript_git.merging import merge_commit
from neuroscript_git.nesting import plain
from neuroscript_git.repository import Repository, opened, shown
from neuroscript_git.staging import stage

STAGING: Final = ToolPolicy(capabilities=("fs:read,write:{relative_path}/**", GIT), effects=("reads", "writes", "exec"))
CHANGING: Final = ToolPolicy(
    capabilities=("fs:read,write,delete:{relative_path}/**", GIT), effects=("reads", "writes", "deletes", "exec")
)
REMOVING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", "fs:delete:{relative_path}/{paths}", GIT),
    effects=("reads", "writes", "deletes", "exec"),
)
RAW: Final = (*INERT, "--raw", "--numstat", "-z")
COMMITTING: Final = (
    *("--quiet", "--no-verify", "--no-gpg-sign", "--no-status", "--cleanup=whitespace", "--file=-"),
    "--allow-empty",  # without it, git runs its status, which enters submodules; `_require_something` has checked
)

toolset = Toolset("git")


@toolset.tool(
    policy=STAGING,
    when_to_use="To choose what goes into the next commit; git.commit makes it, and git.rm stages what is deleted.",
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
    """Stage files as they are now.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        paths: Files and directories in it; "." is all of it. No character in them is a wildcard.

    Returns:
        staged: all that the next commit would change, in the shape of git.diff. nested_repositories: the paths of
        submodules and of other repositories in these directories, which are left out.

    Raises:
        ToolFailed: git.bad_path, git.unknown_path, git.ignored, git.submodule for a path in another repository,
            git.locked, and what git.status raises.
    """
    with opened(rt, relative_path) as git:
        nested = stage(git, checking.paths(paths))
        staged = parsing.changes(git.run("diff", "--cached", *RAW, "--"))
        return {"staged": staged, "nested_repositories": [shown(path) for path in nested]}


@toolset.tool(
    policy=REMOVING,
    when_to_use="To delete tracked files and stage that; git.reset takes back what was only staged.",
    examples=(
        Example(("work", ["b.txt"]), {"removed": ["b.txt"]}),
        Example({"relative_path": "work", "paths": ["./b.txt"]}, {"removed": ["b.txt"]}),
        Example(("work", ["a.txt"]), error="git.unclean", note="it has changes that are not committed"),
    ),
)
def rm(rt: Runtime, relative_path: str, paths: list[str]) -> dict[str, Any]:
    """Delete tracked files, and stage their deletion.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        paths: Files in it; no directories.

    Returns:
        removed: their paths.

    Raises:
        ToolFailed: git.bad_path, git.unknown_path, git.unclean if a change would be lost, git.submodule for a path in
            another repository, git.locked, and what git.status raises.
    """
    with opened(rt, relative_path) as git:
        files = [plain(each) for each in checking.paths(paths)]
        git.nesting.require_outside(files)
        if not {each.path for each in git.tracked()}.issuperset(files):
            raise checking.bad("git.unknown_path", "a path names no file that git knows")
        git.run("rm", "--quiet", "--", *files)
        return {"removed": files}


@toolset.tool(
    policy=STAGING,
    when_to_use="To keep what git.add and git.rm have staged.",
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
            note="whatever the message says is a message",
        ),
        Example(("work", "Nothing new"), error="git.nothing"),
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
    """Make a commit of what is staged.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        commit_message: Its message; the first line is the subject.
        allow_empty: Whether there may be nothing staged.
        author_name: Who made it; user.name of the repository, or what the host lends, unless it is said.
        author_email: The same of the address.

    Returns:
        commit, branch (None where none is checked out), subject, and files in the shape of git.diff.

    Raises:
        ToolFailed: git.nothing, git.no_author, git.bad_message, git.bad_author, git.unclean in the middle of a merge
            with conflicts, git.locked, and what git.status raises.
    """
    text = checking.message(commit_message)
    with opened(rt, relative_path) as git:
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
        raise checking.bad("git.nothing", "nothing is staged; stage something, or allow an empty commit")


def _people(what: str, value: str) -> list[tuple[str, str]]:
    if not value:
        return []
    return [(f"GIT_{role}_{what}", checking.person(value)) for role in ("AUTHOR", "COMMITTER")]


@toolset.tool(
    policy=STAGING,
    when_to_use="To see the branches or to make one here; git.checkout goes to one that is there.",
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
    """List the branches, after one was made where a name is given.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        name: The branch to make, at the commit that is checked out; none unless it is said.
        checkout: Whether the new branch is checked out.
        list_remote: Whether the branches of remotes are listed in place of those here.
        list_all: Whether both are listed.

    Returns:
        current (None where a mere commit is checked out), created (None where none was), and branches: of each name,
        commit, current, remote, upstream and subject.

    Raises:
        ToolFailed: git.bad_ref, git.exists, git.unknown_ref where there is no commit yet, git.locked, and what
            git.status raises.
    """
    with opened(rt, relative_path) as git:
        if name:
            git.run("branch", "--no-track", checking.ref(name), git.known("HEAD"))
            if checkout:
                git.run("symbolic-ref", "-m", "checkout", "HEAD", f"refs/heads/{name}")
        here = [] if list_remote and not list_all else ["refs/heads"]
        there = ["refs/remotes"] if list_remote or list_all else []
        shown = git.run("for-each-ref", f"--format={parsing.BRANCH_FORMAT}", *here, *there)
        return {"current": git.branch(), "created": name or None, "branches": parsing.branches(shown)}


@toolset.tool(
    policy=CHANGING,
    when_to_use="To go to a branch or a commit, with the files as they are there; git.branch lists what there is.",
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
    """Go to a branch, a tag or a commit.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        branch: The branch; or a tag or a digest, with ~1 or ^1 behind it, which then is checked out without a branch.
        create: Whether the branch is made, at the commit that is checked out.

    Returns:
        branch (None where detached), commit and detached.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.exists, git.unclean where a change would be lost, git.locked, and
            what git.status raises.
    """
    options = ("--quiet", "--no-guess", "--no-recurse-submodules")
    with opened(rt, relative_path) as git:
        if create:
            git.run("checkout", *options, "-b", checking.ref(branch), git.known("HEAD"), "--")
        elif checking.is_ref(branch) and (digest := git.commit(f"refs/heads/{branch}")):
            git.require_apart(digest)
            git.run("checkout", *options, checking.ref(branch), "--")
        else:
            digest = git.known(branch)
            git.require_apart(digest)
            git.run("checkout", *options, "--detach", digest, "--")
        name = git.branch()
        return {"branch": name, "commit": git.commit("HEAD"), "detached": name is None}


@toolset.tool(
    policy=CHANGING,
    when_to_use="To take back what was staged or committed; git.checkout goes elsewhere and takes nothing back.",
    examples=(
        Example(("work",), {"commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9", "mode": "mixed"}),
        Example(
            {"relative_path": "work", "mode": "hard"},
            {"commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9", "mode": "hard"},
            note="changes of files are lost",
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
    """Make the branch stand at a commit, and the index and the files too where the mode says so.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        mode: soft moves the branch alone, mixed the index too, hard the files too and loses what they have, merge and
            keep lose nothing that is not staged; merge ends a merge with conflicts.
        commit: Where to: a branch, a tag or a digest, with ~1 or ^1 behind it.

    Returns:
        commit and mode.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.unclean, git.locked, and what git.status raises.
    """
    with opened(rt, relative_path) as git:
        digest = git.known(commit)
        if mode not in ("soft", "mixed"):
            git.require_apart(digest)
        git.run("reset", "--quiet", f"--{mode}", "--no-recurse-submodules", digest, "--")
        return {"commit": digest, "mode": mode}


@toolset.tool(
    policy=CHANGING,
    when_to_use="To bring the commits of another branch here; git.pull brings those of a remote.",
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
    """Merge a branch into the one that is checked out.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        branch: The branch, tag or commit to merge.

    Returns:
        result (up_to_date, fast_forward, merged or conflict), commit (what is checked out then) and conflicts: the
        paths that have to be mended, staged and committed, unless git.reset with the mode merge gives the merge up.

    Raises:
        ToolFailed: git.bad_ref, git.unknown_ref, git.unclean, git.unrelated, git.no_author, git.locked, and what
            git.status raises.
    """
    with opened(rt, relative_path) as git:
        return merge_commit(git, git.known(branch), f"Merge {branch}")
