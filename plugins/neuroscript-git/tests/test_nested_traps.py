"""Run every git tool on hostile repositories: none executes a program that a configuration names.

The outer repository, the repositories below it and a bare one are all hostile. The tools are those of the engine, so a
new tool fails here until its calls are in the table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine, ExecutionPolicy, Host

Git = Callable[..., str]
Make = Callable[[Path], Path]
Run = Callable[[Callable[[], Any]], Any]
Serve = Callable[[Path], str]

ALL: Final = os.environ.get("NEUROSCRIPT_TEST_ALL") == "1"

URL: Final = "http://127.0.0.1:1/a.git"
"""The placeholder for the URL of the remote."""

CALLS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "status": ({},),
    "diff": ({}, {"cached": True}, {"commit1": "topic"}, {"commit1": "topic", "commit2": "apart"}, {"path": "a.txt"}),
    "log": ({}, {"path": "a.txt"}),
    "add": ({"paths": ["."]}, {"paths": ["a.txt", "z.talk"]}),
    "rm": ({"paths": ["b.txt"]},),
    "commit": ({"commit_message": "x", "allow_empty": True},),
    "branch": ({"name": "idea", "checkout": True}, {"list_all": True}),
    "checkout": ({"branch": "idea", "create": True}, {"branch": "topic"}, {"branch": "apart~0"}),
    "reset": (
        *({"mode": mode, "commit": "topic"} for mode in ("soft", "mixed", "hard")),
        *({"mode": mode, "commit": "ahead"} for mode in ("merge", "keep")),
    ),
    "merge": ({"branch": "ahead"}, {"branch": "apart"}, {"branch": "topic"}),
    "clone": ({"relative_path": "copy", "repository_url": URL, "protocol": "http"},),
    "pull": ({"branch_name": "apart", "repository_url": URL, "protocol": "http"},),
    "push": ({"branch_name": "main", "repository_url": URL, "protocol": "http"},),
}
"""The calls of each tool, without the path of the repository."""

KINDS: Final = {
    "work": "ok",
    "work/sub": "ok",
    "work/wild": "ok",
    "work/link": "git.unsafe",
    "work/tree": "git.unsafe",
    "work/worktree": "git.format",
    "work/bare.git": "git.no_repository",
}
"""The repositories that the tools are called for, and the outcome."""

EXCEPTIONS: Final = {
    **{("clone", place): "ok" for place in KINDS},  # it makes a repository of its own
    **{("push", place): "git.rejected" for place in ("work/sub", "work/wild")},  # the remote has one more commit
}

HOOKS: Final = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge", "pre-push"),
    *("post-checkout", "post-index-change", "reference-transaction", "post-rewrite", "pre-auto-gc", "pre-rebase"),
    *("fsmonitor-watchman", "pre-receive", "update", "post-receive", "post-update", "proc-receive", "push-to-checkout"),
)

TRAPS: Final = {
    "core.fsmonitor": "touch {}; false #",
    "core.pager": "touch {}; cat",
    "core.editor": "touch {} #",
    "core.sshCommand": "touch {} #",
    "core.gitProxy": "{}.sh",
    "core.askPass": "{}.sh",
    "core.alternateRefsCommand": "touch {} #",
    "sequence.editor": "touch {} #",
    "interactive.diffFilter": "touch {}; cat",
    "pager.status": "touch {}; cat",
    "credential.helper": "!touch {} #",
    "credential.http://127.0.0.1.helper": "!touch {} #",
    "gpg.program": "{}.sh",
    "gpg.ssh.program": "{}.sh",
    "gpg.x509.program": "{}.sh",
    "diff.external": "touch {} #",
    "diff.evil.command": "touch {} #",
    "diff.evil.textconv": "touch {}; cat",
    "filter.evil.clean": "touch {}; cat",
    "filter.evil.smudge": "touch {}; cat",
    "filter.talk.process": "touch {}; false",
    "merge.evil.driver": "touch {}; false",
    "mergetool.evil.cmd": "touch {}",
    "trailer.evil.cmd": "touch {}",
    "alias.go": "!touch {}",
    "url.ext::sh -c touch% {}% .insteadOf": "http://127.0.0.1",
    "remote.origin.uploadpack": "touch {} #",
    "remote.origin.receivepack": "touch {} #",
    "uploadpack.packObjectsHook": "touch {} #",
    "submodule.sub.update": "!touch {}",
    "submodule.wild.update": "!touch {}",
}
"""Settings that name a program; ``{}`` is the file that the program creates."""

OTHERS: Final = {
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "push.gpgSign": "if-asked",
    "merge.verifySignatures": "true",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "submodule.recurse": "true",
    "submodule.sub.ignore": "none",
    "diff.submodule": "diff",
    "diff.ignoreSubmodules": "none",
    "status.submoduleSummary": "true",
    "fetch.recurseSubmodules": "true",
    "push.recurseSubmodules": "on-demand",
    "gc.auto": "1",
    "rerere.enabled": "true",
}
"""Settings that make git run more of those programs."""

ATTRIBUTES: Final = "* filter=evil diff=evil merge=evil\n*.talk filter=talk\n"
MODULES: Final = "".join(
    f'[submodule "{name}"]\n\tpath = {name}\n\turl = ext::sh -c touch% x\n\tignore = none\n\tfetchRecurseSubmodules = true\n'
    for name in ("sub", "wild")
)


def script(path: Path, mark: Path) -> None:
    path.write_text(f"#!/bin/sh\ntouch {mark}\nexit 0\n")
    path.chmod(0o755)


def setting(name: str, value: str) -> str:
    section, _, rest = name.partition(".")
    middle, _, key = rest.rpartition(".")
    head = f'[{section} "{middle}"]' if middle else f"[{section}]"
    quoted = value.replace('"', '\\"')
    return f'{head}\n\t{key} = "{quoted}"\n'


def arm(repository: Path, marks: Path, prefix: str) -> None:
    """Set all traps in a git directory; each program creates a file whose name begins with *prefix*."""

    def mark(name: str) -> Path:
        return marks / f"{prefix}:{name.split(' ')[0].replace('/', '-')}"

    hooks, elsewhere = repository / "hooks", repository / "others"
    hooks.mkdir(exist_ok=True)
    elsewhere.mkdir()
    for name in HOOKS:
        script(hooks / name, mark(f"hook.{name}"))
        script(elsewhere / name, mark(f"path.{name}"))
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text(ATTRIBUTES)
    (repository / "more-attributes").write_text(ATTRIBUTES)
    lines = [setting(name, value) for name, value in OTHERS.items()]
    for name, value in TRAPS.items():
        script(Path(f"{mark(name)}.sh"), mark(name))
        lines.append(setting(name.format(mark(name)), value.format(mark(name))))
    for name in ("include", "includeIf.gitdir:**"):
        included = repository / f"more-{name[:9]}"
        included.write_text(setting(f"alias.{name[:9]}", f"!touch {mark(name[:9])}"))
        lines.append(setting(f"{name}.path", str(included)))
    lines.append(setting("core.hooksPath", str(elsewhere)) if prefix != "sub" else "")
    lines.append(setting("core.attributesFile", str(repository / "more-attributes")))
    with (repository / "config").open("a") as config:
        config.write("".join(lines))


def sprung(marks: Path) -> set[str]:
    return {each.name for each in marks.iterdir() if each.suffix != ".sh"}


def commit(work: Path, git: Git, branch: str, start: str, files: Mapping[str, str]) -> None:
    git(work, "checkout", "--quiet", "-B", branch, start)
    for name, text in files.items():
        (work / name).write_text(text)
    git(work, "add", *files)
    git(work, "commit", "--quiet", "-m", branch)


def built(work: Path, git: Git, make: Make, more: Mapping[str, str]) -> Path:
    """Make a repository with branches that can be fast-forwarded, merged, and merged with a conflict."""
    make(work)
    git(work, "checkout", "--quiet", "--force", "main")
    commit(work, git, "main", "main", {".gitattributes": ATTRIBUTES, **more})
    commit(work, git, "topic", "main", {"b.txt": "t\nmore\n", ".gitattributes": f"{ATTRIBUTES}#\n"})
    commit(work, git, "ahead", "main", {"ahead.txt": "x\n"})
    commit(work, git, "apart", "main", {"apart.txt": "x\n"})
    commit(work, git, "main", "ahead", {"b.txt": "m\nless\n"})
    git(work, "branch", "--force", "ahead", git(work, "commit-tree", "main^{tree}", "-p", "main", "-m", "ahead"))
    (work / "z.talk").write_text("new\n")
    return work


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the programs create their files."""
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, marks: Path, plain: tuple[Git, Make]) -> Path:
    """A sandbox with hostile repositories of every kind, and their remote outside of it."""
    git, make = plain
    folder = tmp_path_factory.mktemp("world")
    box, served = folder / "box", folder / "served"
    work = built(box / "work", git, make, {".gitmodules": MODULES})
    for name in ("sub", "wild", "worktree"):
        built(work / name, git, make, {".gitmodules": MODULES})
    built(box / "store", git, make, {})
    git(work, "add", "sub")
    git(work, "commit", "--quiet", "-m", "Nest")
    git(work, "worktree", "add", "--quiet", "-b", "beside", str(work / "tree"))
    git(work, "clone", "--quiet", "--bare", ".", "bare.git")
    git(folder, "clone", "--quiet", "--bare", str(work), str(served / "a.git"))
    git(served / "a.git", "config", "http.receivepack", "true")
    for path in ("link", "half"):
        (work / path).mkdir()
        (work / path / "a.txt").write_text("one\n")
    (work / "link" / ".git").write_text("gitdir: ../../store/.git\n")
    (work / "half" / ".git").mkdir()
    (work / "half" / ".git" / "config").write_text('[core]\n\tfsmonitor = "touch x"\n')
    armed = {
        "outer": work,
        "sub": work / "sub",
        "wild": work / "wild",
        "store": box / "store",
        "worktree": work / "worktree",
    }
    for prefix, place in armed.items():
        arm(place / ".git", marks, prefix)
        (place / "a.txt").write_text("two\n")  # the same size, so git has to run the filter to compare
    arm(work / "bare.git", marks, "bare")
    (work / "link" / "a.txt").write_text("two\n")
    git(work, "config", "--file", "worktree/.git/config", "extensions.worktreeConfig", "true")
    (work / "worktree" / ".git" / "config.worktree").write_text(
        setting("core.fsmonitor", f"touch {marks}/config.worktree")
    )
    return folder


@pytest.fixture
def box(world: Path, tmp_path: Path, marks: Path) -> Path:
    """A copy of that sandbox, with no files of the programs."""
    for name in sprung(marks):
        (marks / name).unlink()
    shutil.copytree(world / "served", tmp_path / "served", copy_function=copied)
    return Path(shutil.copytree(world / "box", tmp_path / "box", symlinks=True, copy_function=copied))


def copied(source: str, target: str) -> None:
    """Copy a file, or link it if git never changes it in place, which is faster."""
    if {"hooks", "others", "objects"} & {*Path(source).parts}:
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)


@pytest.fixture
def engine(box: Path) -> Iterator[Engine]:
    """An engine with this sandbox and all grants."""
    policy = ExecutionPolicy(grants=("fs:*:*", "shell:exec:*", "net:*:*"))
    with Engine(plugins=["neuroscript-git"], host=Host(sandbox_dir=box), policy=policy) as engine:
        yield engine


def arguments(engine: Engine, tool: str, args: Mapping[str, Any], place: str, url: str) -> dict[str, Any]:
    """Return the arguments of a call, with the path of the repository and the URL of the remote."""
    name = next(arg.name for arg in engine.tools[f"git.{tool}"].spec.args if arg.name in ("repo_path", "relative_path"))
    path = f"{place}/{args[name]}" if name in args else place
    changed = {"repository_url": url} if "repository_url" in args else {}
    return {**args, **changed, name: path}


RETRIES = {"git.no_repository": "model", "git.rejected": "model"}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def outcome(engine: Engine, tool: str, args: dict[str, Any]) -> str:
    try:
        engine.call_named(f"git.{tool}", args)
    except CallError as error:
        assert error.retry == RETRIES.get(error.code, "host")
        return error.code
    return "ok"


CASES: Final = [
    pytest.param(tool, args, place, lock, id="-".join((tool, str(number), place, lock)))
    for tool, calls in CALLS.items()
    for number, args in enumerate(calls)
    for place in KINDS
    for lock in ("one lock", "both locks")
    if ALL or (lock == "one lock" and (place == "work" or (number == 0 and tool in ("status", "add", "merge"))))
]
"""Each call in each repository, with and without Landlock. CI runs most calls in one repository and without Landlock."""


@pytest.mark.parametrize(("tool", "args", "place", "lock"), CASES)
def test_no_tool_executes_what_a_configuration_names(
    engine: Engine,
    box: Path,
    marks: Path,
    serve: Serve,
    without_landlock: Run,
    tool: str,
    args: Mapping[str, Any],
    place: str,
    lock: str,
) -> None:
    """The call has its usual outcome, and no program ran in its repository and in those below it."""
    url = serve(box.parent / "served")
    config = box / place / (".git/config" if (box / place / ".git").is_dir() else "config")
    with config.open("a") if config.exists() else Path(os.devnull).open("a") as file:
        file.write(setting("remote.origin.url", url))
    call = arguments(engine, tool, args, place, url)

    result = (
        outcome(engine, tool, call) if lock == "both locks" else without_landlock(lambda: outcome(engine, tool, call))
    )

    assert sprung(marks) == set()
    assert result == EXCEPTIONS.get((tool, place), KINDS[place])


def test_every_tool_has_its_calls(engine: Engine) -> None:
    """A tool without calls in the table fails this test."""
    assert {f"git.{tool}" for tool in CALLS} == set(engine.tools)


CONTROLS: Final[tuple[tuple[str, tuple[str, ...], set[str]], ...]] = (
    ("work", ("status",), {"outer:core.fsmonitor", "sub:filter.evil.clean"}),
    ("work", ("add", "."), {"outer:filter.evil.clean", "sub:filter.evil.clean"}),
    ("work", ("add", "z.talk"), {"outer:filter.talk.process"}),
    ("work", ("diff",), {"outer:diff.evil.command", "sub:filter.evil.clean"}),
    ("work", ("merge", "--no-gpg-sign", "--no-verify-signatures", "topic"), {"outer:merge.evil.driver"}),
    ("work", ("commit", "--no-gpg-sign", "-am", "x"), {"outer:path.pre-commit", "sub:filter.evil.clean"}),
    ("work", ("commit", "--allow-empty", "-m", "x"), {"outer:gpg.program"}),
    ("work", ("checkout", "--force", "topic"), {"outer:filter.evil.smudge", "outer:path.post-checkout"}),
    ("work", ("ls-remote", "http://127.0.0.1/a"), {"outer:url.ext::sh"}),
    ("work", ("ls-remote", "ssh://git.example.org/a"), {"outer:core.sshCommand"}),
    ("work", ("include",), {"outer:include"}),
    ("work", ("includeIf",), {"outer:includeIf"}),
    ("work", ("credential", "fill"), {"outer:credential.helper"}),
    ("work/wild", ("add", "."), {"wild:filter.evil.clean"}),
    ("work/sub", ("commit", "--no-gpg-sign", "-am", "x"), {"sub:hook.pre-commit"}),
    ("work/link", ("status",), {"store:core.fsmonitor"}),
    ("work/worktree", ("status",), {"config.worktree"}),
    ("work/tree", ("go",), {"outer:alias.go"}),
    ("work/bare.git", ("go",), {"bare:alias.go"}),
    ("work/bare.git", ("diff", "--ext-diff", "topic", "ahead"), {"bare:diff.evil.command"}),
)


@pytest.mark.parametrize(
    ("place", "words", "expected"), CONTROLS, ids=lambda each: "-".join(each) if isinstance(each, tuple) else None
)
def test_plain_git_executes_it(
    box: Path, marks: Path, alone: dict[str, str], place: str, words: tuple[str, ...], expected: set[str]
) -> None:
    """The control: the same repositories make plain git run the programs."""
    env = {name: value for name, value in alone.items() if name not in ("GIT_ASKPASS", "GIT_EDITOR")}

    subprocess.run(
        ["git", *words],
        cwd=box / place,
        timeout=60,
        env=env,
        input=b"protocol=https\nhost=git.example.org\n\n",
        capture_output=True,
    )

    assert expected <= sprung(marks)
