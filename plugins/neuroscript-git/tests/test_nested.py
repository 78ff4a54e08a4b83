"""Nested repositories: no git tool enters one, and every tool that leaves one out says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine

Git = Callable[..., str]
Make = Callable[[Path], Path]
Locked = Callable[[Callable[[], Any]], Any]

IN_ONE: Final = "a path is in a nested repository, which git tools do not enter; name paths outside it"
NESTED: Final = ["deep/inner", "half", "link", "sub", "tree", "wild"]
PATHS: Final = (
    *("sub", "sub/", "./sub//a.txt", "sub/none", "wild", "wild/a.txt", "deep/inner", "deep/inner/a.txt"),
    *("half", "half/f", "link/f", "tree/a.txt", "sub/deeper/f"),
)
LEADS: Final = ("checkout", "detach", "hard", "merge", "keep", "merge_branch", "fast_forward")
OCCUPIED: Final = ("wild", "wild/a.txt", "half/f", "sub", "sub/a.txt")
ALL: Final = os.environ.get("NEUROSCRIPT_TEST_ALL") == "1"
CASES: Final = [
    case
    for case in (product(LEADS, OCCUPIED) if ALL else zip(LEADS, OCCUPIED * 2, strict=False))
    if case != ("merge_branch", "sub")  # git writes the file beside the submodule, under another name
]


@pytest.fixture
def work(root: Path, git: Git, make: Make) -> Path:
    """The repository of the examples, with nested repositories of every kind, and a bare one.

    The nested ones are a submodule, untracked repositories, a ``.git`` that is a link, one that is an empty directory,
    and a linked worktree. A second linked worktree is outside.
    """
    work = root / "work"
    make(work / "sub")
    (work / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')
    git(work, "add", "sub", ".gitmodules")
    git(work, "commit", "--quiet", "-m", "Nest")
    git(work, "worktree", "add", "--quiet", "-b", "beside", str(work / "tree"))
    git(work, "worktree", "add", "--quiet", "-b", "outside", str(root / "tree"))
    make(work / "wild")
    make(work / "deep" / "inner")
    (work / "deep" / "f").write_text("f\n")
    make(root / "store")
    for name in ("link", "half"):
        (work / name).mkdir()
        (work / name / "f").write_text("f\n")
    (work / "link" / ".git").symlink_to(root / "store" / ".git")
    (work / "half" / ".git").mkdir()
    git(work, "init", "--quiet", "--bare", "bare.git")
    return work


def failure(engine: Engine, tool: str, **args: Any) -> tuple[str, str, str]:
    """Return the code, the retry and the text of the error of a call."""
    with pytest.raises(CallError) as caught:
        engine.call_named(f"git.{tool}", {"relative_path": "work", **args})
    return caught.value.code, caught.value.retry, str(caught.value)


@pytest.mark.parametrize("staged_by", ["tools", "plain git"])
@pytest.mark.parametrize("modules", ["", "[submodule 'x']\n\tpath = sub\n\turl = x\n\tignore = none\n"])
def test_add_runs_no_filter_of_a_nested_repository(
    engine: Engine, root: Path, tmp_path: Path, git: Git, staged_by: str, modules: str, locked: Locked
) -> None:
    """A model moves a repository into another one and has git add a file that changed there."""
    marker, author = tmp_path / "marker", ["Ada", "ada@example.org"]
    (root / "other").mkdir()
    git(root / "other", "init", "--quiet")
    (root / "other" / "f").write_text("one\n")
    engine.call("git.add", ["other", ["f"]])
    engine.call("git.commit", ["other", "Begin", False, *author])
    (root / "other").rename(root / "work" / "sub")
    if modules:
        (root / "work" / ".gitmodules").write_text(modules.replace("'", '"'))
    if staged_by == "tools":
        engine.call("git.add", ["work", ["."]])
    else:
        git(root / "work", "add", ".")
    engine.call("git.commit", ["work", "Nest", False, *author])
    with (root / "work" / "sub" / ".git" / "config").open("a") as config:
        config.write(f'[filter "x"]\n\tclean = "id > {marker}; cat"\n')
    (root / "work" / "sub" / ".gitattributes").write_text("* filter=x\n")
    (root / "work" / "sub" / "f").write_text("two\n")

    locked(lambda: engine.call("git.add", ["work", ["."]]))
    result = marker.exists()
    git(root / "work", "add", ".")

    assert not result
    assert marker.exists() == (staged_by == "plain git")


@pytest.mark.parametrize("has_conflict", [False, True])
def test_merge_runs_no_filter_of_a_nested_repository(
    engine: Engine, work: Path, tmp_path: Path, git: Git, has_conflict: bool, locked: Locked
) -> None:
    """Whether it succeeds or has a conflict, even if ``.gitmodules`` sets ``ignore = none``."""
    marker = tmp_path / "marker"
    git(work, "config", "--file", "sub/.git/config", "filter.x.clean", f"touch {marker}; cat")
    (work / "sub" / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (work / "sub" / "b.txt").write_text("c\n")
    if has_conflict:
        (work / "b.txt").write_text("b\nless\n")
        git(work, "commit", "--quiet", "-m", "On main", "b.txt")

    result = locked(lambda: engine.call("git.merge", ["work", "topic"]))
    outcome = marker.exists()
    git(work, "diff", "--name-only", "--diff-filter=U")

    assert result["result"] == ("conflict" if has_conflict else "merged")
    assert result["conflicts"] == (["b.txt"] if has_conflict else [])
    assert not outcome
    assert marker.exists()


def test_a_path_in_a_nested_repository_is_refused(engine: Engine, work: Path, git: Git) -> None:
    """Every tool that takes paths refuses it, and stages and deletes nothing."""
    before = git(work, "ls-files", "--stage")
    calls = [(tool, {"paths": ["a.txt", path]}) for path in PATHS for tool in ("add", "rm")]
    calls += [(tool, {"path": path}) for path in PATHS for tool in ("diff", "log")]

    for tool, args in calls:
        assert failure(engine, tool, **args) == ("git.submodule", "model", f"git.{tool}: {IN_ONE}"), (tool, args)
    assert git(work, "ls-files", "--stage") == before


def test_add_leaves_nested_repositories_out_and_says_so(engine: Engine, work: Path, git: Git) -> None:
    """All files of the repository itself are staged, including those of a bare repository, which git does not enter."""
    before = git(work, "ls-files", "--stage", "sub")
    git(work / "sub", "commit", "--quiet", "--allow-empty", "-m", "Go on")

    result = engine.call("git.add", ["work", ["."]])
    paths = {each["path"] for each in result["staged"]}

    assert result["nested_repositories"] == NESTED
    assert {"a.txt", "new.txt", "deep/f"} == {path for path in paths if not path.startswith("bare.git/")}
    assert "bare.git/HEAD" in paths
    assert [line for line in git(work, "ls-files", "--stage").split("\n") if line.startswith("160000")] == [before]


@pytest.mark.parametrize(("path", "nested"), [("deep", ["deep/inner"]), ("a.txt", []), ("./", NESTED)])
def test_add_names_the_nested_repositories_of_its_paths(engine: Engine, work: Path, path: str, nested: str) -> None:
    """The result lists only those in the directories that were named."""
    assert engine.call("git.add", ["work", [path]])["nested_repositories"] == nested


def test_status_leaves_nested_repositories_out_and_says_so(engine: Engine, work: Path) -> None:
    """A repository with no other changes is clean."""
    result = engine.call("git.status", ["work"])
    shutil.rmtree(work / "bare.git")
    (work / "new.txt").unlink()
    (work / "deep" / "f").unlink()
    (work / "a.txt").write_text("one\n")
    after = engine.call("git.status", ["work"])

    paths = [each["path"] for each in result["files"] if not each["path"].startswith("bare.git/")]
    assert (["a.txt", "deep/f", "new.txt"], False, NESTED) == (paths, result["clean"], result["nested_repositories"])
    assert ([], True, NESTED) == (after["files"], after["clean"], after["nested_repositories"])


def test_diff_leaves_nested_repositories_out_and_says_so(engine: Engine, work: Path, git: Git) -> None:
    """Files that were tracked before their directory became a repository are left out too."""
    (work / "half" / ".git").rmdir()
    git(work, "add", "half/f")
    (work / "half" / ".git").mkdir()
    (work / "half" / "f").write_text("g\n")

    result = engine.call_named("git.diff", {"relative_path": "work"})
    commits = engine.call_named("git.diff", {"relative_path": "work", "commit1": "main~1", "commit2": "main"})

    assert ["a.txt"] == [each["path"] for each in result["files"]]
    assert "half" not in result["patch"]
    assert ["half", "sub"] == result["nested_repositories"]
    assert ([".gitmodules"], ["sub"]) == ([each["path"] for each in commits["files"]], commits["nested_repositories"])


def occupied(work: Path, git: Git, path: str) -> None:
    """Make a branch that has a file at the path of a nested repository."""
    git(work, "stash", "--quiet")
    for name in ("half", "sub", "wild"):
        (work / name).rename(work.parent / f"{name}.away")
    git(work, "checkout", "--quiet", "-b", "occupied", "topic")
    (work / path).parent.mkdir(exist_ok=True)
    (work / path).write_text("theirs\n")
    git(work, "add", path)
    git(work, "commit", "--quiet", "-m", "Occupy")
    git(work, "checkout", "--quiet", "main")
    for name in ("half", "sub", "wild"):
        shutil.rmtree(work / name, ignore_errors=True)
        (work.parent / f"{name}.away").rename(work / name)


@pytest.mark.parametrize(("lead", "path"), CASES)
def test_no_file_is_checked_out_into_a_nested_repository(
    engine: Engine, work: Path, git: Git, lead: str, path: str
) -> None:
    """The call is refused and changes nothing; ``git reset --hard`` would delete the repository."""
    occupied(work, git, path)
    if lead == "fast_forward":
        git(work, "reset", "--quiet", "--soft", "topic~1")
        git(work, "reset", "--quiet")
    before = {str(each): each.read_bytes() for each in work.rglob("*") if each.is_file() and ".git" not in each.parts}
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "checkout": ("checkout", {"branch": "occupied"}),
        "detach": ("checkout", {"branch": "occupied~0"}),
        "merge_branch": ("merge", {"branch": "occupied"}),
        "fast_forward": ("merge", {"branch": "occupied"}),
    }
    tool, args = calls.get(lead, ("reset", {"mode": lead, "commit": "occupied"}))
    text = f"git.{tool}: the commit has files at the path of a nested repository; move that repository away first"

    assert failure(engine, tool, **args) == ("git.submodule", "model", text)
    after = {str(each): each.read_bytes() for each in work.rglob("*") if each.is_file() and ".git" not in each.parts}
    assert before == after


def test_an_empty_submodule_can_become_a_directory(engine: Engine, work: Path, git: Git) -> None:
    """An empty directory holds no repository, so a branch may have files in it."""
    occupied(work, git, "sub/a.txt")
    shutil.rmtree(work / "sub")
    (work / "sub").mkdir()

    assert engine.call("git.checkout", ["work", "occupied"])["branch"] == "occupied"
    assert (work / "sub" / "a.txt").read_text() == "theirs\n"


def test_a_submodule_that_is_a_file_elsewhere_is_a_conflict(engine: Engine, work: Path, git: Git) -> None:
    """The file gets another name, and the nested repository keeps its files."""
    occupied(work, git, "sub")
    before = git(work / "sub", "status", "--porcelain=v2", "--branch")

    result = engine.call("git.merge", ["work", "occupied"])

    assert result["result"] == "conflict"
    assert all(path.startswith("sub") for path in result["conflicts"])
    assert git(work / "sub", "status", "--porcelain=v2", "--branch") == before


def bump(work: Path, git: Git, branch: str, commit: str) -> None:
    """Commit another commit of the submodule on a branch."""
    git(work, "checkout", "--quiet", branch)
    git(work, "update-index", "--cacheinfo", f"160000,{commit},sub")
    git(work, "commit", "--quiet", "-m", f"Bump {branch}")


@pytest.fixture
def bumped(work: Path, git: Git) -> Path:
    """Two branches that have each changed the submodule, and a third that has not."""
    git(work, "stash", "--quiet")
    git(work, "branch", "third")
    for branch, commit in (("other", "main"), ("main", "topic")):
        if branch == "other":
            git(work, "branch", "other")
        git(work, "commit", "--quiet", "--allow-empty", "-m", "x")
        bump(work, git, branch, git(work / "sub", "commit-tree", "-m", branch, "-p", commit, f"{commit}^{{tree}}"))
    (work / "c.txt").write_text("c\n")
    git(work, "add", "c.txt")
    git(work, "commit", "--quiet", "-m", "c")
    git(work, "checkout", "--quiet", "third")
    (work / "d.txt").write_text("d\n")
    git(work, "add", "d.txt")
    git(work, "commit", "--quiet", "-m", "d")
    return work


def test_a_merge_that_would_enter_a_submodule_is_refused(engine: Engine, bumped: Path, git: Git) -> None:
    """git compares the commits of a submodule if both sides have changed it."""
    git(bumped, "checkout", "--quiet", "main")
    before = git(bumped, "rev-parse", "HEAD")
    text = "git.merge: both sides have changed a submodule, and git tools do not enter submodules; merge it by hand"

    assert failure(engine, "merge", branch="other") == ("git.submodule", "model", text)
    assert git(bumped, "rev-parse", "HEAD") == before


def test_a_submodule_that_one_side_has_changed_is_merged(engine: Engine, bumped: Path, git: Git) -> None:
    """The merge commit has the new commit of the submodule; the submodule's own HEAD does not move."""
    before = git(bumped / "sub", "rev-parse", "HEAD")

    assert engine.call("git.merge", ["work", "main"])["result"] == "merged"
    assert git(bumped, "ls-tree", "HEAD", "sub") == git(bumped, "ls-tree", "main", "sub")
    assert git(bumped / "sub", "rev-parse", "HEAD") == before


def test_a_conflict_in_an_empty_submodule_is_shown(engine: Engine, bumped: Path, git: Git) -> None:
    """git.merge lists it, and so does git.status."""
    git(bumped, "checkout", "--quiet", "main")
    shutil.rmtree(bumped / "sub")
    (bumped / "sub").mkdir()

    result = engine.call("git.merge", ["work", "other"])
    status = engine.call("git.status", ["work"])

    assert ("conflict", ["sub"]) == (result["result"], result["conflicts"])
    unmerged = {"path": "sub", "old_path": None, "index": "unmerged", "worktree": "unmerged"}
    assert unmerged in status["files"]
    assert "sub" in status["nested_repositories"]


def test_a_nested_repository_works_by_itself(engine: Engine, work: Path) -> None:
    """The tools accept its path as the repository of a call."""
    (work / "sub" / "c.txt").write_text("c\n")
    engine.call("git.add", ["work/sub", ["c.txt"]])

    assert engine.call("git.commit", ["work/sub", "Go on"])["files"][0]["path"] == "c.txt"
    assert engine.call("git.status", ["work/wild"])["nested_repositories"] == []


def test_linked_worktrees_still_work(engine: Engine, work: Path, root: Path, git: Git) -> None:
    """The tools work in their repository, wherever the worktrees are, and plain git works in the worktrees afterwards."""
    engine.call("git.add", ["work", ["a.txt"]])
    made = engine.call("git.commit", ["work", "Go on"])["commit"]
    engine.call("git.checkout", ["work", "topic"])
    engine.call("git.reset", ["work", "hard", "main"])

    for tree, branch in ((work / "tree", "beside"), (root / "tree", "outside")):
        (tree / "a.txt").write_text(f"{branch}\n")
        git(tree, "commit", "--quiet", "-am", branch)
        assert git(tree, "rev-parse", f"{branch}~2") == git(work, "rev-parse", f"{made}~2")
        assert engine.call("git.log", ["work", branch, 1])[0]["subject"] == branch


def test_names_that_are_not_utf_8_are_staged(engine: Engine, root: Path, git: Git) -> None:
    """The index has their bytes, and results show them escaped, as they do nested repositories with such names."""
    work = root / "work"
    (work / "d\udcff").mkdir()
    (work / "d\udcff" / "f\udcfe").write_text("")
    (work / "n\udcfd").mkdir()
    git(work / "n\udcfd", "init", "--quiet")
    git(work / "n\udcfd", "commit", "--quiet", "--allow-empty", "-m", "x")

    result = engine.call("git.add", ["work", ["."]])

    assert "d\\xff/f\\xfe" in {each["path"] for each in result["staged"]}
    assert ["n\\xfd"] == result["nested_repositories"]
    assert '"d\\377/f\\376"' in git(work, "ls-files", "d*")
