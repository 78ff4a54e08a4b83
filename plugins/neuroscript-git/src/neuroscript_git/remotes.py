"""``git`` tools for remote repositories: clone, pull and push, with one protocol and one granted host.

git receives exactly the URL that was checked. No setting, redirect or alternate of the remote replaces it.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from neuroscript import Example, Runtime, SandboxError, ToolFailed, ToolPolicy, Toolset
from neuroscript_git import parsing, validation
from neuroscript_git.inspection import GIT, SOURCES
from neuroscript_git.merging import merge_commit
from neuroscript_git.repository import Repository, open_repository
from neuroscript_git.settings import Settings
from neuroscript_git.validation import Address

HELPER: Final = "shell:exec:git-remote-{protocol}"
"""The program that git runs for a protocol."""

CLONING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", "net:read:{repository_url.host}", GIT, HELPER),
    effects=("reads", "writes", "net", "exec"),
    sources=SOURCES,
    sinks=("outside", "storage"),
    raw_files=True,
)
PULLING: Final = ToolPolicy(
    capabilities=("fs:read,write,delete:{relative_path}/**", "net:read:{repository_url.host}", GIT, HELPER),
    effects=("reads", "writes", "deletes", "net", "exec"),
    sources=SOURCES,
    sinks=("outside", "storage"),
    raw_files=True,
)
PUSHING: Final = ToolPolicy(
    capabilities=("fs:read,write:{relative_path}/**", "net:write:{repository_url.host}", GIT, HELPER),
    effects=("reads", "writes", "net", "exec"),
    sources=SOURCES,
    sinks=("outside", "storage"),
    raw_files=True,
)
FETCHING: Final = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance")

toolset = Toolset("git")


@toolset.tool(
    policy=CLONING,
    when_to_use="Use it to get a new repository; to update an existing one, use git.pull.",
    examples=(
        Example(
            ("https://git.example.org/a.git", "copy"),
            {"path": "copy", "branch": "main", "commit": "789629573bd6d4ad2e9f0fb4588240d3012692c9"},
        ),
        Example({"repository_url": "https://git.example.org/a.git", "relative_path": "deep/copy"}),
        Example(("https://git.example.org/a.git", "work"), error="git.exists"),
        Example(("https://user:word@git.example.org/a.git", "copy"), error="git.bad_url"),
        Example(
            ("http://git.example.org/a.git", "copy"), error="git.bad_url", note="http must be requested explicitly"
        ),
    ),
)
def clone(
    rt: Runtime, repository_url: str, relative_path: str, protocol: Literal["https", "http"] = "https"
) -> dict[str, Any]:
    """Clone a remote repository from a URL into a new directory and check out its default branch.

    Args:
        repository_url: The URL of the repository.
        relative_path: The directory to create, relative to the sandbox; an existing directory must be empty.
        protocol: The scheme of the URL; http requires a separate grant.

    Returns:
        path, branch (None if the remote is empty) and commit.

    Raises:
        ToolFailed: git.exists, git.bad_url, git.auth, git.network, git.unknown_remote, git.broken, git.timeout.
    """
    address = validation.address(repository_url, protocol)
    _require_free(rt, relative_path)
    rt.spend("net_calls", 1)
    try:
        _prepare(rt, relative_path, Settings({}, {"origin": address.url}, {}))
        with open_repository(rt, relative_path) as git:
            branch, digest = _fetched(git, address)
    except BaseException:
        _remove_clone(rt, relative_path)
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
        raise validation.input_error("git.exists", "the directory is not empty")


def _prepare(rt: Runtime, path: str, settings: Settings) -> None:
    for name in ("objects", "refs", "logs"):
        rt.fs.mkdir(f"{path}/.git/{name}")
    rt.fs.write_text(f"{path}/.git/HEAD", "ref: refs/heads/main\n")
    rt.fs.write_text(f"{path}/.git/config", settings.text())


def _fetched(git: Repository, address: Address) -> tuple[str, str]:
    """Fetch all branches and tags, check out the default branch, and return it and its commit."""
    listing = git.run("ls-remote", "--symref", "--", address.url, "HEAD", protocol=address.scheme)
    branch, digest = parsing.default_branch(listing)
    refspecs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
    git.run("fetch", *FETCHING, "--", address.url, *refspecs, protocol=address.scheme)
    if not branch or not digest:
        return "", ""
    head = f"refs/remotes/origin/{validation.ref(branch)}"
    commit = git.known(head)
    git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    git.run("symbolic-ref", "refs/remotes/origin/HEAD", head)
    git.run("reset", "--quiet", "--hard", "--no-recurse-submodules", commit, "--")
    return branch, commit


def _remove_clone(rt: Runtime, path: str) -> None:
    """Remove an unfinished clone; the directory itself stays, empty."""
    with suppress(SandboxError, OSError), rt.fs.pinned(path) as folder:
        for each in Path(folder).iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink()


@toolset.tool(
    policy=PULLING,
    when_to_use=(
        "Use it to update a repository from a remote; for a new repository, use git.clone, to send commits, git.push."
    ),
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
            {"relative_path": "work", "repository_url": "https://git.example.org/a.git"},
            note="only one host must be granted",
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
    """Pull changes from a remote repository: fetch a branch and merge it into the current branch.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        remote_name: Name of the remote in the repository.
        branch_name: Branch of the remote; by default the upstream branch, or the branch of the same name.
        repository_url: The URL of the remote; if set, only its host must be granted, otherwise every host.
        protocol: The scheme of the URL; http requires a separate grant.

    Returns:
        result, commit and conflicts as in git.merge, remote, branch, and fetched: the commit of the remote branch.

    Raises:
        ToolFailed: git.bad_remote, git.unknown_remote, git.bad_ref, git.bad_url, git.unclean, git.unrelated,
            git.no_author, git.auth, git.network, git.timeout, and what git.status raises.
        PolicyError: The host of the remote is not that of repository_url, or is not granted.
    """
    validation.remote(remote_name)
    with open_repository(rt, relative_path) as git:
        branch = _branch_there(git, remote_name, branch_name)
        address = _address(git, remote_name, protocol)
        _require_host(rt, "read", address)
        target = f"refs/remotes/{remote_name}/{branch}"
        refs = f"+refs/heads/{branch}:{target}"
        git.run("fetch", *FETCHING, "--", address.url, refs, protocol=address.scheme)
        fetched = git.known(target)
        merged = merge_commit(git, fetched, f"Merge {branch} of {remote_name}")
        return {**merged, "remote": remote_name, "branch": branch, "fetched": fetched}


def _branch_there(git: Repository, remote: str, branch: str) -> str:
    if branch:
        return validation.ref(branch)
    here = _branch_here(git)
    followed, name = git.settings.tracked.get(here, ("", ""))
    return name if followed == remote else here


def _branch_here(git: Repository) -> str:
    here = git.branch()
    if here is None:
        raise validation.input_error("git.bad_ref", "no branch is checked out; pass branch_name")
    return validation.ref(here)


def _address(git: Repository, remote: str, protocol: str) -> Address:
    url = git.settings.remotes.get(remote)
    if url is None:
        text = "the repository has no such remote, or its URL is not https or http"
        raise ToolFailed(text, code="git.unknown_remote", retry="model")
    return validation.address(url, protocol)


def _require_host(rt: Runtime, verb: str, address: Address) -> None:
    """Require a grant for the actual host of the remote, and count the network call."""
    rt.require(f"net:{verb}:{address.place}")
    rt.spend("net_calls", 1)


@toolset.tool(
    policy=PUSHING,
    when_to_use=(
        "Use it to publish commits; to create them, use git.commit, to get new commits of the remote, git.pull."
    ),
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
    """Push the local commits of a branch to a remote repository; commits on the remote are never overwritten.

    Args:
        relative_path: The directory of the repository, relative to the sandbox.
        remote_name: Name of the remote in the repository.
        branch_name: The branch, locally and on the remote; the current branch by default.
        repository_url: The URL of the remote; if set, only its host must be granted, otherwise every host.
        protocol: The scheme of the URL; http requires a separate grant.

    Returns:
        result (pushed, new or up_to_date), remote, branch and commit.

    Raises:
        ToolFailed: git.rejected if the remote has commits that are missing locally, git.bad_remote, git.unknown_remote,
            git.bad_ref, git.unknown_ref, git.bad_url, git.auth, git.network, git.timeout, and what git.status raises.
        PolicyError: The host of the remote is not that of repository_url, or is not granted.
    """
    validation.remote(remote_name)
    with open_repository(rt, relative_path) as git:
        branch = validation.ref(branch_name) if branch_name else _branch_here(git)
        address = _address(git, remote_name, protocol)
        digest = git.known(f"refs/heads/{branch}")
        _require_host(rt, "write", address)
        options = ("--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no", "--no-follow-tags")
        name = f"refs/heads/{branch}"
        output = git.run(
            "push", *options, "--", address.url, f"{name}:{name}", protocol=address.scheme, statuses=(0, 1)
        )
        result = parsing.push_result(output)
        if result == "rejected":
            text = "the remote has new commits or rejects the branch; pull first"
            raise ToolFailed(text, code="git.rejected", retry="model")
        return {"result": result, "remote": remote_name, "branch": branch, "commit": digest}
