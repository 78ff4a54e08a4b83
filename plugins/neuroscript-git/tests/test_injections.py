"""Arguments that look like options, programs or paths elsewhere: none of them reaches git as such."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine, ExecutionPolicy, Host

Git = Callable[..., str]

REFS: Final = (
    *("--output=pwned", "-D", "-f", "--upload-pack=touch pwned", "--exec=touch pwned", "-c core.pager=x", "--", "-"),
    *("main --force", "main\nother", "main:a.txt", ":a.txt", ":/Begin", "main..topic", "@{-1}", "HEAD@{0}", "a\\b"),
    *("../../notes", "/etc/passwd", "refs/heads/../../config", "main.lock", "a//b", "a/.b", "", "^main", "main^{/x}"),
    *(
        "$(touch pwned)",
        "`touch pwned`",
        "main;touch pwned",
        "main|touch pwned",
        "\x00",
        "main\x7f",
        "-oProxyCommand=x",
    ),
)
PATHS: Final = (
    *("../notes", "a/../../notes", "/etc/passwd", ".git/config", ".GIT/config", "a/.git/x", ".git ", "git~1/x", ""),
    *("a\\..\\b", "a\nb", "a\x00b", "..", "--all", "-A", "--pathspec-from-file=/etc/passwd", ":(exclude)a.txt", ":/"),
    *(":!a.txt", "*.txt", "?.txt", "[a].txt"),
)
URLS: Final = (
    *(
        "ext::sh -c touch% pwned",
        "-oProxyCommand=touch pwned",
        "--upload-pack=touch pwned",
        "fd::0",
        "file://localhost/etc",
    ),
    *("/etc", "../work", "work", "ssh://-oProxyCommand=x/a", "git@host:a.git", "git://host/a", "ftp://host/a.git"),
    *("https://user@host/a", "https://user:word@host/a", "https://host/a?b", "https://host/a#b", "https://host\\@b/a"),
    *("https://-host/a", "https://host:99999/a", "https://host /a", "https://host\n/a", "http://127.0.0.1:1/a"),
    *("https::http://host/a", "transport::https://host/a", "https://", "https://host/$(touch pwned)", "HTTPS://host/a"),
)


RETRIES = {"git.unsafe": "host"}
"""Who can make the call succeed, by code; for every other code it is 'model'."""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, plain: tuple[Git, Callable[[Path], Path]]) -> Path:
    """A sandbox directory with the repository of the examples, for calls that are refused and change nothing."""
    folder = tmp_path_factory.mktemp("injections") / "box"
    plain[1](folder / "work")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture(scope="module")
def refusing(box: Path) -> Iterator[Engine]:
    """An engine over that sandbox with all grants for repositories."""
    policy = ExecutionPolicy(grants=("fs:*:*", "shell:exec:*", "net:*:*"))
    with Engine(plugins=["neuroscript-git"], host=Host(sandbox_dir=box), policy=policy) as engine:
        yield engine


def code(engine: Engine, tool: str, **args: Any) -> str:
    try:
        engine.call_named(f"git.{tool}", args)
    except CallError as error:
        assert error.retry == RETRIES.get(error.code, "model")
        return error.code
    return "ok"


def state(root: Path) -> dict[str, bytes]:
    """Return the content of each file of the sandbox."""
    return {str(each.relative_to(root)): each.read_bytes() for each in root.rglob("*") if each.is_file()}


@pytest.mark.parametrize("text", REFS, ids=ascii)
def test_refs_are_validated(refusing: Engine, box: Path, text: str) -> None:
    """Invalid branches and commits are refused by their characters, and nothing changes."""
    before = state(box)
    calls = [
        ("diff", {"commit1": text or "-"}),
        ("log", {"commit": text}),
        ("checkout", {"branch": text}),
        ("checkout", {"branch": text, "create": True}),
        ("branch", {"name": text or "-"}),
        ("merge", {"branch": text}),
        ("reset", {"commit": text}),
        ("pull", {"branch_name": text or "-"}),
        ("push", {"branch_name": text or "-"}),
    ]

    assert {"git.bad_ref"} == {code(refusing, tool, relative_path="work", **args) for tool, args in calls}
    assert before == state(box)


@pytest.mark.parametrize("text", PATHS, ids=ascii)
def test_paths_are_validated(refusing: Engine, box: Path, text: str) -> None:
    """They are refused by their characters or treated as missing files, and nothing changes."""
    before = state(box)
    codes = {code(refusing, tool, relative_path="work", paths=[text]) for tool in ("add", "rm")}

    assert codes <= {"git.bad_path", "git.unknown_path", "policy.capability"}
    assert before == state(box)
    assert [] == [*box.rglob("pwned")]


@pytest.mark.parametrize("text", URLS, ids=ascii)
def test_urls_are_validated(refusing: Engine, box: Path, text: str) -> None:
    """They are refused before git runs, and no directory is created."""
    result = code(refusing, "clone", repository_url=text, relative_path="copy")

    assert result in ("arg.url", "git.bad_url")
    assert not (box / "copy").exists()


@pytest.mark.parametrize("text", ["-u", "--all", "ext::sh", "../work", "a..b", "a.lock", "", "a b", "https://host/a"])
def test_remotes_are_validated(refusing: Engine, text: str) -> None:
    """A remote is a name, never a URL or a path."""
    assert "git.bad_remote" == code(refusing, "pull", relative_path="work", remote_name=text)
    assert "git.bad_remote" == code(refusing, "push", relative_path="work", remote_name=text)


@pytest.mark.parametrize("text", ["--amend", "-F/etc/passwd", "--author=x <y@z>", "$(touch pwned)", "# no comment"])
def test_message_is_never_an_option(engine: Engine, root: Path, git: Git, text: str) -> None:
    """Whatever it contains."""
    assert "ok" == code(engine, "commit", relative_path="work", commit_message=text, allow_empty=True)
    assert text == git(root / "work", "log", "-1", "--format=%B")
    assert "2" == git(root / "work", "rev-list", "--count", "HEAD")


@pytest.mark.parametrize("text", ["a <b@c>", "a\nb", 'a"b', "a\\b", "a" * 256])
def test_author_cannot_end_its_field(refusing: Engine, text: str) -> None:
    """Characters that delimit the field are refused."""
    args = {"relative_path": "work", "commit_message": "x", "allow_empty": True}
    assert "git.bad_author" == code(refusing, "commit", author_name=text, **args)


def leads_by_file(work: Path) -> None:
    (work / ".git").rename(work.parent.parent / "elsewhere")
    (work / ".git").write_text(f"gitdir: {work.parent.parent / 'elsewhere'}\n")


def leads_by_link(work: Path) -> None:
    (work / ".git").rename(work.parent.parent / "elsewhere")
    (work / ".git").symlink_to(work.parent.parent / "elsewhere")


def leads_by_linked_objects(work: Path) -> None:
    (work / ".git" / "objects").rename(work.parent.parent / "elsewhere")
    (work / ".git" / "objects").symlink_to(work.parent.parent / "elsewhere")


def leads_by_linked_head(work: Path) -> None:
    (work / ".git" / "HEAD").unlink()
    (work / ".git" / "HEAD").symlink_to("refs/heads/main")


def leads_by_alternates(work: Path) -> None:
    (work / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (work / ".git" / "objects" / "info" / "alternates").write_text("/elsewhere\n")


def leads_by_index(work: Path) -> None:
    index = work / ".git" / "index"
    data = index.read_bytes().replace(b"a.txt", b"../x.")[:-20]
    from hashlib import sha1

    index.write_bytes(data + sha1(data).digest())


@pytest.mark.parametrize(
    "lead",
    [leads_by_file, leads_by_link, leads_by_linked_objects, leads_by_linked_head, leads_by_alternates, leads_by_index],
)
def test_repository_with_outside_parts_is_refused(engine: Engine, root: Path, lead: Callable[[Path], None]) -> None:
    """By every tool that opens a repository."""
    lead(root / "work")
    calls: dict[str, dict[str, Any]] = {
        "diff": {},
        "log": {},
        "add": {"paths": ["."]},
        "rm": {"paths": ["b.txt"]},
        "commit": {"commit_message": "x"},
        "branch": {},
        "checkout": {"branch": "topic"},
        "reset": {},
        "merge": {"branch": "topic"},
        "pull": {},
        "push": {},
    }

    assert "git.unsafe" == code(engine, "status", repo_path="work")
    assert {"git.unsafe"} == {code(engine, tool, relative_path="work", **args) for tool, args in calls.items()}


def test_parent_directories_are_not_searched(engine: Engine, root: Path, git: Git) -> None:
    """Even a repository outside the sandbox is not found."""
    git(root.parent, "init", "--quiet")

    assert "git.no_repository" == code(engine, "status", repo_path="notes")


def test_git_in_the_sandbox_is_not_run(engine: Engine, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if PATH lists its directory first."""
    program = root / "notes" / "git"
    program.write_text("#!/bin/sh\ntouch pwned\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{root / 'notes'}{os.pathsep}{os.environ['PATH']}")

    assert "ok" == code(engine, "status", repo_path="work")
    assert [] == [*root.rglob("pwned")]
