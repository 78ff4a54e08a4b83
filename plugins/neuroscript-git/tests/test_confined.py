"""git under ``Isolation(programs=True)``: the tools work as always, and git reaches only what a call names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, Isolation, Runtime, ToolFailed, ToolPolicy, Toolset
from neuroscript_git import program

Git = Callable[..., str]
EngineWith = Callable[..., Engine]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs can be confined on Linux alone")

GRANTS: Final = ("fs:*:*", "shell:exec:*", "net:*:*")

plain = Toolset("plain")


@plain.tool(policy=ToolPolicy(capabilities=("fs:read:work/**", "shell:exec:git"), effects=("reads", "exec")))
def git(rt: Runtime, words: list[str]) -> str:
    """Run git as a repository configures it, and return what it prints."""
    path = program.find_git(rt.sandbox_dir)
    env = {"PATH": program.search_path(rt.sandbox_dir), "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    with rt.fs.pinned("work") as folder, program.confine(rt, path, ()) as launch:
        keep = (int(folder.rpartition("/")[2]),)
        status, output, complaints = program.run(
            rt, [path, *words], folder=folder, env=env, keep=keep, given=b"", seconds=60, launch=launch
        )
    return f"{status} {output.decode()}{complaints}"


@pytest.fixture
def confined_engine(root: Path) -> Iterator[EngineWith]:
    """Takes settings of the isolation, and returns an engine."""
    with ExitStack() as stack:

        def made(**settings: Any) -> Engine:
            policy = ExecutionPolicy(grants=GRANTS, isolate=Isolation(**settings))
            host = Host(sandbox_dir=root)
            return stack.enter_context(Engine(plugins=["neuroscript-git"], toolsets=[plain], host=host, policy=policy))

        yield made


def test_tools_work_as_always(confined_engine: EngineWith, root: Path) -> None:
    """Every local tool, and each command of git writes only where the tool may write."""
    engine = confined_engine(programs=True)
    work = root / "work"

    assert [each["path"] for each in engine.call("git.status", ["work"])["files"]] == ["a.txt", "new.txt"]
    assert engine.call("git.diff", ["work"])["files"]
    engine.call("git.add", ["work", ["a.txt", "new.txt"]])
    engine.call("git.commit", ["work", "More"])
    engine.call("git.branch", ["work", "other"])
    engine.call("git.checkout", ["work", "topic"])
    assert (work / "b.txt").read_text() == "b\nmore\n"
    engine.call("git.checkout", ["work", "main"])
    merged = engine.call("git.merge", ["work", "topic"])
    engine.call("git.rm", ["work", ["new.txt"]])
    engine.call_named("git.reset", {"relative_path": "work", "mode": "hard"})

    assert merged["result"] == "merged"
    assert [each["subject"] for each in engine.call("git.log", ["work", "main~1"])] == ["More", "Begin"]
    assert engine.call("git.status", ["work"])["clean"]
    assert (work / "b.txt").read_text() == "b\nmore\n"


def test_network_is_a_setting_of_its_own(confined_engine: EngineWith, root: Path, remote: str) -> None:
    """The pattern names the tools whose git may use it."""
    open, closed = confined_engine(programs=True, network=["git.clone", "git.pu*"]), confined_engine(programs=True)

    with pytest.raises(ToolFailed) as caught:
        closed.call("git.clone", [remote, "copy", "http"])
    cloned = open.call("git.clone", [remote, "copy", "http"])
    (root / "copy" / "a.txt").write_text("three\n")
    open.call("git.add", ["copy", ["a.txt"]])
    open.call("git.commit", ["copy", "Three", False, "Ada", "ada@example.org"])
    pushed = open.call_named("git.push", {"relative_path": "copy", "repository_url": remote, "protocol": "http"})
    pulled = open.call_named("git.pull", {"relative_path": "copy", "repository_url": remote, "protocol": "http"})

    assert (caught.value.code, caught.value.retry) == ("git.network", "later")
    assert cloned["branch"] == "main"
    assert (pushed["result"], pulled["result"]) == ("pushed", "up_to_date")


HOSTILE: Final = {
    "reads a file outside": (["diff", "--no-index", "--", "/dev/null", "{outside}/secret"], "+secret"),
    "reads another file of the sandbox": (["diff", "--no-index", "--", "/dev/null", "../notes/own"], "+own"),
    "writes a file outside": (["config", "--file", "{outside}/config", "a.b", "c"], "0 "),
    "changes the repository, which it may only read": (["config", "a.b", "c"], "0 "),
    "executes what the repository names": (["-c", "alias.x=!printf %s%s r an", "x"], "ran"),
    "connects": (["ls-remote", "{remote}"], "refs/heads/main"),
}
"""What git is made to do, and what it prints if that succeeds."""


@pytest.mark.parametrize(("words", "success"), HOSTILE.values(), ids=HOSTILE)
def test_git_reaches_only_what_the_call_names(
    confined_engine: EngineWith,
    root: Path,
    tmp_path: Path,
    remote: str,
    without_landlock: Callable[[Callable[[], Any]], Any],
    words: list[str],
    success: str,
) -> None:
    """Each attempt fails, and succeeds without the confinement and without the other barrier of these tools."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    (root / "notes" / "own").write_text("own\n")
    words = [word.format(outside=outside, remote=remote) for word in words]

    confined = confined_engine(programs=True).call("plain.git", [words])
    has_changed = (outside / "config").exists() or "[a]" in (root / "work" / ".git" / "config").read_text()
    free = without_landlock(lambda: confined_engine().call("plain.git", [words]))

    assert success not in confined
    assert not has_changed
    assert success in free


def test_isolated_tool_says_what_to_do(root: Path) -> None:
    """A worker has no directory for the configuration that git reads."""
    policy = ExecutionPolicy(grants=GRANTS, isolate=["git.*"])
    with Engine(plugins=["neuroscript-git"], host=Host(sandbox_dir=root), policy=policy) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("git.status", ["work"])

    assert (caught.value.code, caught.value.retry) == ("git.isolated", "host")
    assert str(caught.value) == (
        "git.status: cannot be isolated; add it to exclude of isolation, and set programs = true there"
    )
