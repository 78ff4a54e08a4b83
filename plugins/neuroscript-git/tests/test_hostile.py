"""A repository full of traps: the tools trigger none of them, while plain git, the control, triggers them all."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import Engine

Git = Callable[..., str]

HOOKS: Final = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge"),
    *("post-checkout", "pre-push", "post-index-change", "reference-transaction", "post-rewrite"),
)

SETTINGS: Final = {
    "core.fsmonitor": "touch {}; false #",
    "core.pager": "touch {}; cat",
    "core.editor": "touch {} #",
    "core.sshCommand": "touch {} #",
    "core.gitProxy": "{}.sh",
    "core.askPass": "{}.sh",
    "credential.helper": "!touch {} #",
    "gpg.program": "{}.sh",
    "diff.external": "touch {} #",
    "diff.outer.command": "touch {} #",
    "diff.shown.textconv": "touch {}; cat",
    "filter.evil.clean": "touch {}; cat",
    "filter.evil.smudge": "touch {}; cat",
    "filter.talk.process": "touch {}; false",
    "merge.evil.driver": "touch {}; false",
    "alias.go": "!touch {}",
    "url.ext::sh -c touch% {}% .insteadOf": "https://git.example.org/",
    "remote.away.uploadpack": "touch {} #",
    "remote.away.receivepack": "touch {} #",
}
"""Settings that name a program; ``{}`` is the file that the program makes."""

OTHERS: Final = {
    "commit.gpgSign": "true",
    "protocol.allow": "always",
    "submodule.recurse": "true",
    "gc.auto": "1",
    "core.worktree": "../notes",
    "core.logAllRefUpdates": "always",
    "remote.origin.fetch": "+refs/heads/*:refs/heads/*",
}
"""Settings that make it worse."""

ATTRIBUTES: Final = "a.txt diff=outer filter=evil\nb.txt diff=shown merge=evil\n*.talk filter=talk\n"
PLAIN: Final = {"GIT_WORK_TREE": ".", "GIT_DIR": ".git"}


def mark(marks: Path, name: str) -> Path:
    return marks / name.split(" ")[0].replace("/", "-").replace(":", "-")


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Where triggered traps leave their marks."""
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


@pytest.fixture
def hostile(root: Path, marks: Path, git: Git, make: Callable[[Path], Path]) -> Path:
    """The repository of the examples with all traps, in a state that needs a merge."""
    work = root / "work"
    (work / "b.txt").write_text("b\nless\n")
    (work / ".gitattributes").write_text(ATTRIBUTES)
    make(work / "sub")
    (work / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c "touch {marks}/submodule"\n')
    git(work, "add", "b.txt", "sub", ".gitattributes", ".gitmodules")
    git(work, "commit", "--quiet", "-m", "On main")
    git(work, "checkout", "--quiet", "topic", "--force")
    git(work, "checkout", "--quiet", "main", "--force")
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "b.txt").write_text("b\nleast\n")
    (work / "new.txt").write_text("new\n")
    (work / "new.talk").write_text("new\n")
    for repository, prefix in ((work / "sub", "sub-"), (work, "")):
        arm(repository, marks, prefix)
    return work


def arm(repository: Path, marks: Path, prefix: str) -> None:
    for name in HOOKS:
        script(repository / ".git" / "hooks" / name, mark(marks, f"{prefix}{name}"))
    (repository / ".git" / "info" / "attributes").write_text(ATTRIBUTES)
    lines = []
    for name, value in {**SETTINGS, **({} if prefix else OTHERS)}.items():
        place = mark(marks, f"{prefix}{name}")
        script(Path(f"{place}.sh"), place)
        section, _, rest = name.format(place).partition(".")
        middle, _, key = rest.rpartition(".")
        head = f'[{section} "{middle}"]' if middle else f"[{section}]"
        lines.append(f'{head}\n\t{key} = "{value.format(place)}"\n')
    included = repository / ".git" / "more"
    place = mark(marks, f"{prefix}included")
    included.write_text(f'[alias]\n\tincluded = "!touch {place}"\n')
    lines.append("[include]\n\tpath = more\n")
    with (repository / ".git" / "config").open("a") as config:
        config.write("".join(lines))


def script(path: Path, place: Path) -> None:
    path.write_text(f"#!/bin/sh\ntouch {place}\nexit 0\n")
    path.chmod(0o755)


def sprung(marks: Path) -> set[str]:
    return {each.name for each in marks.iterdir() if each.suffix != ".sh"}


CALLS: Final[dict[str, dict[str, Any]]] = {
    "status": {"repo_path": "work"},
    "diff": {"relative_path": "work"},
    "diff_commits": {"relative_path": "work", "commit1": "main", "commit2": "topic"},
    "diff_cached": {"relative_path": "work", "cached": True, "commit1": "topic"},
    "log": {"relative_path": "work"},
    "add": {"relative_path": "work", "paths": ["."]},
    "rm": {"relative_path": "work", "paths": [".gitmodules"]},
    "commit": {"relative_path": "work", "commit_message": "text", "allow_empty": True},
    "branch": {"relative_path": "work", "name": "idea", "checkout": True},
    "branch_all": {"relative_path": "work", "list_all": True},
    "checkout": {"relative_path": "work", "branch": "idea", "create": True},
    "reset": {"relative_path": "work", "mode": "hard", "commit": "topic"},
    "merge": {"relative_path": "work", "branch": "topic"},
    "pull": {"relative_path": "work", "branch_name": "topic"},
    "push": {"relative_path": "work", "branch_name": "main"},
}


@pytest.mark.parametrize("what", CALLS)
def test_tools_trigger_no_trap(engine: Engine, hostile: Path, marks: Path, remote: str, git: Git, what: str) -> None:
    """Every tool works, and git executes nothing from the repository or the one nested in it."""
    git(hostile, "config", "remote.origin.url", remote, **PLAIN)
    if what in ("merge", "pull"):
        engine.call("git.reset", ["work", "hard"])
    args = CALLS[what] | ({"protocol": "http", "repository_url": remote} if what in ("pull", "push") else {})
    assert set() == sprung(marks)

    result = engine.call_named(f"git.{what.partition('_')[0]}", args)

    assert result
    assert set() == sprung(marks)
    assert not (hostile.parent / "notes" / "a.txt").exists()


def test_table_covers_every_tool(engine: Engine) -> None:
    """Except clone, which needs no existing repository."""
    assert {f"git.{what.partition('_')[0]}" for what in CALLS} | {"git.clone"} == set(engine.tools)


def test_clone_of_hostile_repository_triggers_no_trap(
    engine: Engine, hostile: Path, marks: Path, remote: str, tmp_path: Path, root: Path
) -> None:
    """Its attributes and submodules are cloned, but name no programs."""
    bare = tmp_path / "served" / "b.git"
    shutil.copytree(hostile / ".git" / "objects", bare / "objects")
    shutil.copytree(hostile / ".git" / "refs", bare / "refs")
    (bare / "HEAD").write_text("ref: refs/heads/main\n")

    result = engine.call_named(
        "git.clone",
        {"repository_url": remote.replace("a.git", "b.git"), "relative_path": "copy", "protocol": "http"},
    )

    assert "main" == result["branch"]
    assert (root / "copy" / ".gitattributes").read_text() == ATTRIBUTES
    assert [] == [*(root / "copy" / "sub").iterdir()]
    assert set() == sprung(marks)


CONTROLS: Final[tuple[tuple[tuple[str, ...], set[str]], ...]] = (
    (("status",), {"core.fsmonitor", "sub-core.fsmonitor"}),
    (("add", "a.txt"), {"filter.evil.clean", "post-index-change"}),
    (("add", "new.talk"), {"filter.talk.process"}),
    (("diff", "a.txt"), {"diff.outer.command"}),
    (("diff", "b.txt"), {"diff.external"}),
    (("log", "-p", "--", "b.txt"), {"diff.shown.textconv"}),
    (("commit", "--allow-empty", "--no-gpg-sign"), {"core.editor", "pre-commit", "prepare-commit-msg", "commit-msg"}),
    (("commit", "--allow-empty", "--no-gpg-sign", "-m", "x"), {"post-commit", "reference-transaction"}),
    (("commit", "--allow-empty", "-m", "x"), {"gpg.program"}),
    (("commit", "--allow-empty", "--amend", "--no-gpg-sign", "-m", "x"), {"post-rewrite"}),
    (("checkout", "--force", "topic", "--", "a.txt"), {"filter.evil.smudge"}),
    (("checkout", "-b", "idea"), {"post-checkout"}),
    (("merge", "--no-gpg-sign", "topic"), {"merge.evil.driver"}),
    (("ls-remote", "ssh://git.example.org/a"), {"core.sshCommand"}),
    (("ls-remote", "git://git.example.org/a"), {"core.gitProxy"}),
    (("ls-remote", "https://git.example.org/a"), {"url.ext--sh"}),
    (("fetch", "away"), {"remote.away.uploadpack"}),
    (("push", "away", "main"), {"remote.away.receivepack"}),
    (("go",), {"alias.go"}),
    (("included",), {"included"}),
    (("credential", "fill"), {"credential.helper", "core.askPass"}),
)


@pytest.mark.parametrize(
    ("words", "expected"), CONTROLS, ids=lambda each: "-".join(each)[:40] if isinstance(each, tuple) else ""
)
def test_plain_git_triggers_the_traps(
    hostile: Path, marks: Path, git: Git, alone: dict[str, str], words: tuple[str, ...], expected: set[str]
) -> None:
    """This proves that the traps work."""
    if "merge" in words:
        git(hostile, "reset", "--hard", "--quiet", **PLAIN)
    if "away" in words:
        git(hostile, "config", "remote.away.url", str(hostile), **PLAIN)
    env = {
        name: value for name, value in alone.items() if name not in ("GIT_ASKPASS", "GIT_EDITOR", "GIT_TERMINAL_PROMPT")
    }

    subprocess.run(
        ["git", *words],
        cwd=hostile,
        timeout=20,
        env={**env, **PLAIN},
        input=b"protocol=https\nhost=git.example.org\n\n",
        capture_output=True,
    )

    assert expected <= sprung(marks)
