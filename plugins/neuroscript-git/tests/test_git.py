"""The git tools on real repositories, and with a real git server on loopback."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuroscript import Engine

Git = Callable[..., str]
Tool = Callable[..., Any]


def test_change_is_staged_and_committed(tool: Tool, root: Path, git: Git) -> None:
    """Plain git sees what the results describe."""
    tool("add", "work", ["a.txt", "new.txt"])
    result = tool("commit", "work", "Add more\n\nWith a body.")

    assert git(root / "work", "rev-parse", "HEAD") == result["commit"]
    assert ("main", "Add more") == (result["branch"], result["subject"])
    assert [("a.txt", "modified"), ("new.txt", "added")] == [(each["path"], each["change"]) for each in result["files"]]
    assert tool("status", "work")["clean"]
    assert ["Add more", "Begin"] == [each["subject"] for each in tool("log", "work")]
    assert "With a body." == tool("log", "work")[0]["body"]


def test_file_names_are_returned_unchanged(tool: Tool, root: Path, git: Git) -> None:
    """A renamed file has both names; spaces, quotes and other scripts are preserved."""
    git(root / "work", "mv", "b.txt", 'ü "b" c.txt')
    (root / "work" / "-x").write_text("")

    files = {each["path"]: each for each in tool("status", "work")["files"]}

    assert ("b.txt", "renamed") == (files['ü "b" c.txt']["old_path"], files['ü "b" c.txt']["index"])
    assert "untracked" == files["-x"]["worktree"]
    changed = tool("diff", "work", True)["files"]
    assert [('ü "b" c.txt', "b.txt", "renamed")] == [(e["path"], e["old_path"], e["change"]) for e in changed]


def test_conflict_is_reported_and_can_be_aborted(tool: Tool, root: Path) -> None:
    """The result lists its paths, and reset ends the merge."""
    tool("reset", "work", "hard")
    (root / "work" / "b.txt").write_text("b\nless\n")
    tool("add", "work", ["b.txt"])
    here = tool("commit", "work", "On main")["commit"]

    assert {"result": "conflict", "commit": here, "conflicts": ["b.txt"]} == tool("merge", "work", "topic")
    assert "git.unclean" == tool("commit", "work", "Too early")
    tool("reset", "work", "merge")
    assert "b\nless\n" == (root / "work" / "b.txt").read_text()


def test_branches_are_merged(tool: Tool, root: Path) -> None:
    """With a merge commit."""
    tool("add", "work", ["."])
    tool("commit", "work", "On main")

    result = tool("merge", "work", "topic")

    assert "merged" == result["result"]
    assert 2 == len(tool("log", "work", "HEAD", 1)[0]["parents"])
    assert "b\nmore\n" == (root / "work" / "b.txt").read_text()


def test_clone_push_and_pull(tool: Tool, root: Path, remote: str, git: Git) -> None:
    """Over http, which is granted here; plain git sees the same."""
    cloned = tool("clone", repository_url=remote, relative_path="deep/copy", protocol="http")
    assert ("main", "one\n") == (cloned["branch"], (root / "deep/copy/a.txt").read_text())
    assert "origin/main" == tool("status", "deep/copy")["upstream"]
    assert "" == git(root / "deep/copy", "status", "--porcelain")

    (root / "deep/copy/c.txt").write_text("c\n")
    tool("add", "deep/copy", ["c.txt"])
    named = {"author_name": "Bo", "author_email": "bo@example.org"}
    made = tool("commit", relative_path="deep/copy", commit_message="From the copy", **named)["commit"]
    pushed = tool("push", relative_path="deep/copy", protocol="http", repository_url=remote)
    assert {"result": "pushed", "remote": "origin", "branch": "main", "commit": made} == pushed

    git(root / "work", "remote", "add", "origin", remote)
    pulled = tool("pull", relative_path="work", protocol="http")
    assert ("fast_forward", made) == (pulled["result"], pulled["commit"])
    assert "c\n" == (root / "work" / "c.txt").read_text()


def test_push_does_not_overwrite_remote_commits(tool: Tool, root: Path, remote: str, git: Git) -> None:
    """A push that would lose commits of the remote is refused."""
    git(root / "work", "remote", "add", "origin", remote)
    git(root / "work", "push", "--quiet", "origin", "topic:main")
    tool("add", "work", ["."])
    tool("commit", "work", "On main")

    assert "git.rejected" == tool("push", relative_path="work", protocol="http")


def test_repository_url_does_not_grant_another_host(
    engine_with: Callable[..., Engine], root: Path, remote: str, git: Git, seen: list[str]
) -> None:
    """A URL argument that differs from that of the remote grants nothing."""
    git(root / "work", "remote", "add", "origin", remote)
    engine = engine_with("fs:*:**", "shell:exec:git*", "net:*:git.example.org")
    args = {"relative_path": "work", "protocol": "http", "repository_url": "http://git.example.org/a.git"}

    result = [_code(engine, name, args) for name in ("pull", "push")]

    assert ["policy.capability"] * 2 == result
    assert [] == seen


RETRIES = {"git.cancelled": "never"}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def _code(engine: Engine, name: str, args: dict[str, Any]) -> str:
    from neuroscript import CallError

    with pytest.raises(CallError) as caught:
        engine.call_named(f"git.{name}", args)
    assert caught.value.retry == RETRIES.get(caught.value.code, "host")
    return caught.value.code


def test_protocol_needs_a_grant(engine_with: Callable[..., Engine], remote: str, seen: list[str]) -> None:
    """http needs a separate grant."""
    engine = engine_with("fs:*:**", "shell:exec:git,git-remote-https", "net:*:*")

    result = _code(engine, "clone", {"repository_url": remote, "relative_path": "copy", "protocol": "http"})

    assert "policy.capability" == result
    assert [] == seen


def test_redirects_are_not_followed(tool: Tool, root: Path, remote: str, seen: list[str]) -> None:
    """The target of a redirect was not granted; nothing is left of the clone."""
    moved = remote.replace("/a.git", "/moved/a.git")

    assert "git.network" == tool("clone", repository_url=moved, relative_path="copy", protocol="http")
    assert [] == [*(root / "copy").iterdir()]
    assert all(path.startswith("/moved/") for path in seen)


@pytest.mark.alone
def test_timeout_stops_git(engine: Engine, root: Path) -> None:
    """A server that does not respond blocks no thread: the timeout of the call stops the processes."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a.git"
        args = {"repository_url": url, "relative_path": "copy", "protocol": "http"}
        thread = threading.Thread(target=lambda: _code(engine, "clone", args))
        thread.start()
        connection, _ = server.accept()
        began = time.monotonic()
        engine.close()
        with connection:
            connection.settimeout(10)
            while connection.recv(65536):
                pass
        thread.join(10)

    assert not thread.is_alive()
    assert time.monotonic() - began < 10


@pytest.mark.full
def test_repository_of_100000_files(engine: Engine, root: Path, git: Git, alone: dict[str, str]) -> None:
    """The list of its files is larger than a result can be, but only tools such as git.status return it."""
    work = root / "work"
    digest = git(work, "rev-parse", "HEAD:a.txt")
    names = (f"directory/of/files/number{index // 100}/file{index}.txt" for index in range(100_000))
    index = "".join(f"100644 {digest} 0\t{name}\n" for name in names)
    subprocess.run(["git", "update-index", "--index-info"], cwd=work, input=index.encode(), env=alone, check=True)
    git(work, "commit", "--quiet", "-m", "Files")

    assert engine.call("git.commit", ["work", "Many", True])["branch"] == "main"
    assert engine.call("git.branch", ["work"])["current"] == "main"
    assert [each["subject"] for each in engine.call("git.log", ["work", "HEAD", 1])] == ["Many"]
