"""git.add and git.merge have the same results as plain git, although they use other git commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine

Git = Callable[..., str]
Files = Mapping[str, str | None]

TEXT: Final = "".join(f"{number}\n" for number in range(20))
TOP: Final = TEXT.replace("1\n", "one\n", 1)
BOTTOM: Final = TEXT.replace("18\n", "eighteen\n")
OTHER: Final = TEXT.replace("1\n", "uno\n", 1)

MERGES: Final[Mapping[str, tuple[Files, Files, Files]]] = {
    "other files": ({"a": "a\n"}, {"b": "b\n"}, {"c": "c\n"}),
    "other lines": ({"a": TEXT}, {"a": TOP}, {"a": BOTTOM}),
    "the same lines": ({"a": TEXT, "b": "b\n"}, {"a": TOP}, {"a": OTHER, "b": "c\n"}),
    "the same change": ({"a": TEXT}, {"a": TOP}, {"a": TOP}),
    "changed and deleted": ({"a": TEXT, "b": "b\n"}, {"a": TOP}, {"a": None}),
    "deleted and changed": ({"a": TEXT, "b": "b\n"}, {"a": None}, {"a": TOP}),
    "added twice": ({"a": "a\n"}, {"new": "ours\n"}, {"new": "theirs\n"}),
    "renamed and changed": ({"a": TEXT}, {"a": None, "b": TEXT}, {"a": TOP}),
    "renamed twice": ({"a": TEXT, "z": "z\n"}, {"a": None, "b": TEXT}, {"a": None, "c": TEXT}),
    "a directory renamed": (
        {"d/a": TEXT, "d/b": TEXT * 2},
        {"d/a": None, "d/b": None, "e/a": TEXT, "e/b": TEXT * 2},
        {"d/c": "c\n"},
    ),
    "a file and a directory": ({"z": "z\n"}, {"a": "a\n"}, {"a/b": "b\n"}),
    "a file becomes a directory": ({"a": "a\n", "z": "z\n"}, {"a": None, "a/b": "b\n"}, {"z": "y\n"}),
    "merged by an attribute": ({".gitattributes": "a merge=union\n", "a": TEXT}, {"a": TOP}, {"a": OTHER}),
    "not merged by an attribute": ({".gitattributes": "a -merge\n", "a": TEXT}, {"a": TOP}, {"a": BOTTOM}),
    "binary": ({"a": "\0a"}, {"a": "\0b"}, {"a": "\0c"}),
    "names": ({'ü "x" \t': TEXT, "-x": "x\n"}, {'ü "x" \t': TOP, "-x": "y\n"}, {'ü "x" \t': OTHER, "-x": "z\n"}),
}


def write(folder: Path, files: Files) -> None:
    for name, text in files.items():
        path = folder / name
        if text is None:
            path.unlink()
            continue
        if path.parent.is_file():
            path.parent.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path, git: Git, files: Files, message: str = "x") -> None:
    for name in [name for name, text in files.items() if text is None]:
        git(folder, "rm", "--quiet", "--", name)
    write(folder, {name: text for name, text in files.items() if text is not None})
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", message)


@pytest.fixture
def begin(root: Path, git: Git) -> Callable[[Files], Path]:
    """Takes files, and makes a repository in which they are committed."""

    def made(files: Files) -> Path:
        folder = root / "mine"
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "config", "user.name", "Ada")
        git(folder, "config", "user.email", "ada@example.org")
        commit(folder, git, files)
        return folder

    return made


def copied(folder: Path) -> Path:
    """Return a copy of a repository, for plain git."""
    return Path(shutil.copytree(folder, folder.with_name("plain"), symlinks=True))


def state(folder: Path, git: Git) -> dict[str, Any]:
    """Return the index, the files, the status and the history of a repository, without times."""
    names = [each for each in sorted(folder.rglob("*")) if ".git" not in each.parts]
    heads = [folder / ".git" / name for name in ("MERGE_HEAD", "ORIG_HEAD")]
    return {
        "index": git(folder, "ls-files", "--stage"),
        "files": {
            str(each.relative_to(folder)): (
                each.readlink() if each.is_symlink() else each.read_bytes(),
                each.lstat().st_mode,
            )
            for each in names
            if each.is_symlink() or each.is_file()
        },
        "directories": [str(each.relative_to(folder)) for each in names if each.is_dir()],
        "status": git(folder, "status", "--porcelain=v2"),
        "history": git(folder, "log", "--format=%T %p %s"),
        "heads": [each.read_text() if each.exists() else None for each in heads],
    }


@pytest.mark.parametrize("name", MERGES)
def test_a_merge_is_that_of_plain_git(engine: Engine, begin: Callable[[Files], Path], git: Git, name: str) -> None:
    """The commit is the same, or the conflicts in the index and in the files; a reset ends the merge."""
    base, ours, theirs = MERGES[name]
    folder = begin(base)
    git(folder, "checkout", "--quiet", "-b", "theirs")
    commit(folder, git, theirs, "theirs")
    git(folder, "checkout", "--quiet", "main")
    commit(folder, git, ours)
    plain, digest = copied(folder), git(folder, "rev-parse", "theirs")
    before = git(folder, "rev-parse", "HEAD")

    result = engine.call("git.merge", ["mine", "theirs"])
    try:
        git(plain, "merge", "--quiet", "-m", "Merge theirs", digest)
        expected = "merged"
    except subprocess.CalledProcessError:
        expected = "conflict"
    unmerged = git(plain, "diff", "--name-only", "--diff-filter=U", "-z").split("\0")[:-1]

    assert (expected, unmerged) == (result["result"], result["conflicts"])
    assert state(plain, git) == state(folder, git)
    if expected == "conflict":
        engine.call("git.reset", ["mine", "merge"])
        assert (before, "") == (git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain"))


def test_several_merge_bases_are_merged_as_by_plain_git(
    engine: Engine, begin: Callable[[Files], Path], git: Git
) -> None:
    """The branches have been merged into each other before."""
    folder = begin({"a": TEXT, "b": TEXT})
    git(folder, "checkout", "--quiet", "-b", "theirs")
    commit(folder, git, {"a": TOP})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, git, {"b": TOP})
    first = git(folder, "rev-parse", "HEAD")
    git(folder, "merge", "--quiet", "-m", "x", "theirs")
    git(folder, "checkout", "--quiet", "theirs")
    git(folder, "merge", "--quiet", "-m", "x", first)
    commit(folder, git, {"a": TOP.replace("18\n", "eighteen\n")})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, git, {"b": TOP.replace("18\n", "eighteen\n")})
    plain, digest = copied(folder), git(folder, "rev-parse", "theirs")

    assert engine.call("git.merge", ["mine", "theirs"])["result"] == "merged"
    git(plain, "merge", "--quiet", "-m", "Merge theirs", digest)
    assert state(plain, git) == state(folder, git)


@pytest.mark.parametrize("way", ["changed", "staged", "untracked", "unmerged"])
def test_a_merge_loses_nothing(engine: Engine, begin: Callable[[Files], Path], git: Git, way: str) -> None:
    """Uncommitted changes prevent a merge that would overwrite them, and so do staged changes."""
    folder = begin({"a": TEXT, "b": "b\n"})
    git(folder, "checkout", "--quiet", "-b", "theirs")
    commit(folder, git, {"a": TOP, "new": "theirs\n"})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, git, {"a": OTHER if way == "unmerged" else BOTTOM})
    if way == "unmerged":
        engine.call("git.merge", ["mine", "theirs"])
    if way in ("changed", "staged"):
        write(folder, {"a": "mine\n"} if way == "changed" else {"b": "mine\n"})
    if way == "staged":
        git(folder, "add", "b")
    if way == "untracked":
        write(folder, {"new": "mine\n"})
    before = state(folder, git)

    with pytest.raises(CallError) as caught:
        engine.call("git.merge", ["mine", "theirs"])

    assert ("git.unclean", "model") == (caught.value.code, caught.value.retry)
    assert before == state(folder, git)


def test_a_merge_keeps_unrelated_changes(engine: Engine, begin: Callable[[Files], Path], git: Git) -> None:
    """Changed files that it does not touch, and files with only another modification time, do not prevent it."""
    folder = begin({"a": TEXT, "b": "b\n", "c": "c\n"})
    git(folder, "checkout", "--quiet", "-b", "theirs")
    commit(folder, git, {"a": TOP, "c": "d\n"})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, git, {"new": "new\n"})
    write(folder, {"b": "mine\n"})
    os.utime(folder / "c", (0, 0))

    assert engine.call("git.merge", ["mine", "theirs"])["result"] == "merged"
    assert ("mine\n", "d\n") == ((folder / "b").read_text(), (folder / "c").read_text())


def test_a_merge_into_a_branch_without_commits(engine: Engine, begin: Callable[[Files], Path], git: Git) -> None:
    """The branch gets the commits of the other one."""
    folder = begin({"a": "a\n"})
    git(folder, "checkout", "--quiet", "--orphan", "empty")
    git(folder, "rm", "--quiet", "-rf", ".")

    assert engine.call("git.merge", ["mine", "main"])["result"] == "fast_forward"
    assert (folder / "a").read_text() == "a\n"


def test_unrelated_branches_are_not_merged(engine: Engine, begin: Callable[[Files], Path], git: Git) -> None:
    """They have no commit in common."""
    folder = begin({"a": "a\n"})
    git(folder, "checkout", "--quiet", "--orphan", "alone")
    commit(folder, git, {"b": "b\n"})

    with pytest.raises(CallError) as caught:
        engine.call("git.merge", ["mine", "main"])

    assert ("git.unrelated", "model") == (caught.value.code, caught.value.retry)


CHANGES: Final[Mapping[str, Callable[[Path], object]]] = {
    "changed": lambda folder: write(folder, {"a": TOP}),
    "new": lambda folder: write(folder, {"d/e/new": "new\n", "-x": "x\n", ":(exclude)a": "y\n", "*": "z\n"}),
    "deleted": lambda folder: write(folder, {"a": None}),
    "a directory deleted": lambda folder: shutil.rmtree(folder / "d"),
    "a file becomes a directory": lambda folder: write(folder, {"a": None, "a/b/c": "c\n"}),
    "a directory becomes a file": lambda folder: (shutil.rmtree(folder / "d"), write(folder, {"d": "d\n"})),
    "executable": lambda folder: (folder / "a").chmod(0o755),
    "a link": lambda folder: (folder / "link").symlink_to("a"),
    "a file becomes a link": lambda folder: ((folder / "a").unlink(), (folder / "a").symlink_to("b")),
    "ignored": lambda folder: write(
        folder, {".gitignore": "*.o\nout/\n", "x.o": "", "out/x": "", "d/y.o": "", "d/y": ""}
    ),
    "tracked and ignored": lambda folder: write(folder, {".gitignore": "a\n", "a": TOP}),
    "line ends": lambda folder: write(folder, {".gitattributes": "* text=auto\n", "a": "1\r\n2\r\n"}),
    "an empty directory": lambda folder: (folder / "empty").mkdir(),
    "a pipe": lambda folder: os.mkfifo(folder / "pipe"),
    "nothing": lambda folder: None,
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_staged_is_what_plain_git_stages(
    engine: Engine, begin: Callable[[Files], Path], git: Git, name: str
) -> None:
    """The index is the same, for the whole repository or for some paths."""
    folder = begin({"a": TEXT, "b": "b\n", "d/f": "f\n", "d/g": "g\n"})
    CHANGES[name](folder)
    plain = copied(folder) if name != "a pipe" else folder
    paths = ["."] if name != "new" else ["d", ":(exclude)a", "*"]

    engine.call("git.add", ["mine", paths])
    index = git(folder, "ls-files", "--stage")
    git(plain, "--literal-pathspecs", "-c", "core.symlinks=false", "add", "--", *paths)

    assert git(plain, "ls-files", "--stage") == index


def test_a_conflict_that_is_staged_is_resolved(engine: Engine, begin: Callable[[Files], Path], git: Git) -> None:
    """Staging the file or its deletion resolves the conflict; the commit has both parents."""
    folder = begin({"a": TEXT, "b": TEXT})
    git(folder, "checkout", "--quiet", "-b", "theirs")
    commit(folder, git, {"a": TOP, "b": TOP})
    git(folder, "checkout", "--quiet", "main")
    commit(folder, git, {"a": OTHER, "b": OTHER})
    assert engine.call("git.merge", ["mine", "theirs"])["conflicts"] == ["a", "b"]

    write(folder, {"a": "resolved\n", "b": None})
    engine.call("git.add", ["mine", ["a", "b"]])
    engine.call("git.commit", ["mine", "Resolve"])

    assert 2 == len(engine.call("git.log", ["mine"])[0]["parents"])
    assert ["a"] == git(folder, "ls-files").split("\n")
    assert "" == git(folder, "status", "--porcelain")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("none", "git.unknown_path"),
        ("a/", "git.unknown_path"),
        ("d/none", "git.unknown_path"),
        ("x.o", "git.ignored"),
        ("out", "git.ignored"),
        ("out/", "git.ignored"),
        ("out/x", "git.ignored"),
        ("link/f", "git.unknown_path"),
        ("away/none", "git.unknown_path"),
        ("away/f", "git.unknown_path"),
    ],
)
def test_a_path_that_cannot_be_staged_is_refused(
    engine: Engine, begin: Callable[[Files], Path], git: Git, tmp_path: Path, path: str, code: str
) -> None:
    """The call stages none of its other paths. The error for a path behind a link does not tell whether the file exists."""
    folder = begin({"a": "a\n", "d/f": "f\n", ".gitignore": "*.o\nout/\n"})
    write(folder, {"a": "b\n", "x.o": "", "out/x": ""})
    (folder / "link").symlink_to("d")
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "f").write_text("")
    (folder / "away").symlink_to(tmp_path / "away")

    with pytest.raises(CallError) as caught:
        engine.call("git.add", ["mine", ["a", path]])

    assert (code, "model") == (caught.value.code, caught.value.retry)
    assert "" == git(folder, "diff", "--cached", "--name-only")
