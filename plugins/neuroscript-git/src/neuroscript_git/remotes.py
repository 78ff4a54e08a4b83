"""Repositories elsewhere: cloned, pulled from, pushed to, by the one protocol and at the one host that was granted.

A URL is given to git as it was checked; no setting, no redirect and no alternate of the far side replaces it.

Source: upstream ``pkg/tool/git``; reliability.md T6 and T8.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from neuroscript import Example, Runtime, SandboxError, ToolFailed, ToolPolicy, Toolset
from neuroscript_git import checking, parsing
from neuroscript_git.checking import Address
from neuroscript_git.looking import GIT
from neuroscript_git.merging import merge_commit
from neuroscript_git.repository import Repository, opened
from neuroscript_git.settings import Settings

HELPER: Final = "shell:exec:git-remote-{protocol}"
"""The program that git itself runs for a protocol."""

CLONING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", "net:read:{repository_url.host}", GIT, HELPER),
    effects=("reads", "writes", "net", "exec"),
)
PULLING: Final = ToolPolicy(
    capabilities=("fs:read,write,delete:{relative_path}/**", "net:read:{repository_url.host}", GIT, HELPER),
    effects=("reads", "writes", "deletes", "net", "exec"),
)
PUSHING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", "net:write:{repository_url.host}", GIT, HELPER),
    effects=("reads", "writes", "net", "exec"),
)
FETCHING: Final = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance")

toolset = Toolset("git")


@toolset.tool(
    policy=CLONING,
    when_to_use="For a repository that is not here yet; git.pull brings what is new to one that is.",
    examples=(
        Example(
            ("https://git.example.org/a.git", "copy"),
            {"path": "copy", "branch": "main", "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9"},
        ),
        Example({"repository_url": "https://git.example.org/a.git", "relative_path": "deep/copy"}),
        Example(("https://git.example.org/a.git", "work"), error="git.exists"),
        Example(("https://user:word@git.example.org/a.git", "copy"), error="git.bad_url"),
        Example(("http://git.example.org/a.git", "copy"), error="git.bad_url", note="http has to be asked for"),
    ),
)
def clone(
    rt: Runtime, repository_url: str, relative_path: str, protocol: Literal["https", "http"] = "https"
) -> dict[str, Any]:
    """Make a directory that holds a repository as it is elsewhere, with its default branch checked out.

    Args:
        repository_url: Where it is.
        relative_path: The directory to make, below the sandbox; an empty one may be there already.
        protocol: What the URL begins with; http has to be granted of its own.

    Returns:
        path, branch (None where the remote is empty) and commit.

    Raises:
        ToolFailed: git.exists, git.bad_url, git.auth, git.network, git.unknown_remote, git.broken, git.timeout.
    """
    address = checking.address(repository_url, protocol)
    _require_free(rt, relative_path)
    rt.spend("net_calls", 1)
    try:
        _prepare(rt, relative_path, Settings({}, {"origin": address.url}, {}))
        with opened(rt, relative_path) as git:
            branch, digest = _fetched(git, address)
    except BaseException:
        _clear(rt, relative_path)
        raise
    if branch:
        settings = Settings({}, {"origin": address.url}, {branch: ("origin", branch)})
        rt.fs.write_text(f"{relative_path}/.git/config", settings.text())
    return {"path": relative_path, "branch": branch or None, "commit": digest or None}


def _require_free(rt: Runtime, path: str) -> None:
    try:
        entries = rt.fs.list(path)
    except SandboxError as error:
        if error.code != "sandbox.notfound":
            raise
        return
    if entries:
        raise checking.bad("git.exists", "the directory is not empty")


def _prepare(rt: Runtime, path: str, settings: Settings) -> None:
    for name in ("objects", "refs", "logs"):
        rt.fs.mkdir(f"{path}/.git/{name}")
    rt.fs.write_text(f"{path}/.git/HEAD", "ref: refs/heads/main\n")
    rt.fs.write_text(f"{path}/.git/config", settings.text())


def _fetched(git: Repository, address: Address) -> tuple[str, str]:
    """Return the branch and the commit that are checked out, after all branches and tags were fetched."""
    asked = git.run("ls-remote", "--symref", "--", address.url, "HEAD", protocol=address.scheme)
    branch, digest = parsing.default_branch(asked)
    wanted = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
    git.run("fetch", *FETCHING, "--", address.url, *wanted, protocol=address.scheme)
    if not branch or not digest:
        return "", ""
    head = f"refs/remotes/origin/{checking.ref(branch)}"
    commit = git.known(head)
    git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    git.run("symbolic-ref", "refs/remotes/origin/HEAD", head)
    git.run("reset", "--quiet", "--hard", "--no-recurse-submodules", commit, "--")
    return branch, commit


def _clear(rt: Runtime, path: str) -> None:
    """Remove what was begun; the directory itself stays, empty."""
    with suppress(SandboxError, OSError), rt.fs.pinned(path) as folder:
        for each in Path(folder).iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink()


@toolset.tool(
    policy=PULLING,
    when_to_use="To bring what is new at a remote here; git.clone makes a repository, git.push goes the other way.",
    examples=(
        Example(
            ("work",),
            {
                "result": "up_to_date",
                "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9",
                "conflicts": [],
                "remote": "origin",
                "branch": "main",
                "fetched": "789629573bd6d4ad2e9f0fb4588240d3012692c9",
            },
        ),
        Example(
            {"relative_path": "work", "repository_url": "https://git.example.org/a.git"}, note="one host is needed"
        ),
        Example(("work", "-u"), error="git.bad_remote"),
        Example(("work", "nobody"), error="git.unknown_remote"),
        Example(("work", "origin", "--all"), error="git.bad_ref"),
    ),
)
def pull(
    rt: Runtime,
    relative_path: str,
    remote_name: str = "origin",
    branch_name: str = "",
    repository_url: str | None = None,
    protocol: Literal["https", "http"] = "https",
) -> dict[str, Any]:
    """Fetch a branch of a remote and merge it into the one that is checked out.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        remote_name: The remote, as the repository calls it.
        branch_name: The branch there; the one that is followed, or of the same name, unless it is said.
        repository_url: The URL of the remote, so that only its host need be granted; without it, every host has to be.
        protocol: What that URL begins with; http has to be granted of its own.

    Returns:
        result, commit and conflicts as of git.merge, remote, branch, and fetched: the commit that the branch has there.

    Raises:
        ToolFailed: git.bad_remote, git.unknown_remote, git.bad_ref, git.bad_url, git.unclean, git.unrelated,
            git.no_author, git.auth, git.network, git.timeout, and what git.status raises.
        PolicyError: The remote is on another host than the URL, or than what was granted.
    """
    checking.remote(remote_name)
    with opened(rt, relative_path) as git:
        branch = _branch_there(git, remote_name, branch_name)
        address = _address(git, remote_name, protocol)
        _may(rt, "read", address)
        target = f"refs/remotes/{remote_name}/{branch}"
        refs = f"+refs/heads/{branch}:{target}"
        git.run("fetch", *FETCHING, "--", address.url, refs, protocol=address.scheme)
        fetched = git.known(target)
        came = merge_commit(git, fetched, f"Merge {branch} of {remote_name}")
        return {**came, "remote": remote_name, "branch": branch, "fetched": fetched}


def _branch_there(git: Repository, remote: str, branch: str) -> str:
    if branch:
        return checking.ref(branch)
    here = _branch_here(git)
    followed, name = git.settings.tracked.get(here, ("", ""))
    return name if followed == remote else here


def _branch_here(git: Repository) -> str:
    here = git.branch()
    if here is None:
        raise checking.bad("git.bad_ref", "no branch is checked out; name one")
    return checking.ref(here)


def _address(git: Repository, remote: str, protocol: str) -> Address:
    url = git.settings.remotes.get(remote)
    if url is None:
        text = "the repository has no such remote, or one whose URL is not https or http"
        raise ToolFailed(text, code="git.unknown_remote", retry="model")
    return checking.address(url, protocol)


def _may(rt: Runtime, verb: str, address: Address) -> None:
    """Ask for the host that is really meant, whatever the call says, and count the call."""
    rt.require(f"net:{verb}:{address.place}")
    rt.spend("net_calls", 1)


@toolset.tool(
    policy=PUSHING,
    when_to_use="To bring commits to a remote; git.commit makes them, git.pull brings what is new there here.",
    examples=(
        Example(("work", "origin", "topic"), note="the remote does not have that branch yet"),
        Example(
            {"relative_path": "work", "repository_url": "https://git.example.org/a.git"},
            {
                "result": "up_to_date",
                "remote": "origin",
                "branch": "main",
                "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9",
            },
        ),
        Example(("work", "--receive-pack=true"), error="git.bad_remote"),
        Example(("work", "nobody"), error="git.unknown_remote"),
        Example(("work", "origin", "+main:other"), error="git.bad_ref"),
    ),
)
def push(
    rt: Runtime,
    relative_path: str,
    remote_name: str = "origin",
    branch_name: str = "",
    repository_url: str | None = None,
    protocol: Literal["https", "http"] = "https",
) -> dict[str, Any]:
    """Send a branch to a remote, where nothing is replaced that is not here.

    Args:
        relative_path: The directory of the repository, below the sandbox.
        remote_name: The remote, as the repository calls it.
        branch_name: The branch, here and there; the one that is checked out unless it is said.
        repository_url: The URL of the remote, so that only its host need be granted; without it, every host has to be.
        protocol: What that URL begins with; http has to be granted of its own.

    Returns:
        result (pushed, new or up_to_date), remote, branch and commit.

    Raises:
        ToolFailed: git.rejected where the remote has commits that are not here, git.bad_remote, git.unknown_remote,
            git.bad_ref, git.unknown_ref, git.bad_url, git.auth, git.network, git.timeout, and what git.status raises.
        PolicyError: The remote is on another host than the URL, or than what was granted.
    """
    checking.remote(remote_name)
    with opened(rt, relative_path) as git:
        branch = checking.ref(branch_name) if branch_name else _branch_here(git)
        address = _address(git, remote_name, protocol)
        digest = git.known(f"refs/heads/{branch}")
        _may(rt, "write", address)
        options = ("--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--no-follow-tags")
        name = f"refs/heads/{branch}"
        said = git.run("push", *options, "--", address.url, f"{name}:{name}", protocol=address.scheme, statuses=(0, 1))
        result = parsing.pushed(said)
        if result == "rejected":
            text = "the remote has commits that are not here, or does not take the branch; pull first"
            raise ToolFailed(text, code="git.rejected", retry="model")
        return {"result": result, "remote": remote_name, "branch": branch, "commit": digest}
