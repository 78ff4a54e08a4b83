"""Paths that try to leave the sandbox, and layouts of links around it."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.sandbox_layouts import (
    BACKENDS,
    OPERATIONS,
    SECRET,
    World,
    build,
    free,
    outcome,
    remove_root,
    swapping,
)

from neuroscript import SandboxError
from neuroscript.sandbox import Sandbox
from neuroscript.sandbox.by_path import PathFolder
from neuroscript.sandbox.files import Files

UPSTREAM = [
    case
    for case in json.loads((Path(__file__).parents[1] / "vectors" / "upstream.json").read_text())
    if case["area"] == "sandbox"
]
CASES = json.loads((Path(__file__).parents[1] / "vectors" / "paths.json").read_text())["cases"]

ELSEWHERE = {case["id"]: "a rule of Windows, see test_paths" for case in CASES if case["platforms"] == ["windows"]}
LATER = {case["id"]: "a rule of the tools that start programs" for case in CASES if case["category"] == "argv"}
AS_OTHER = {case["id"]: case for case in CASES if "nonroot" in case.get("needs", ())}
HERE = [case for case in CASES if case["id"] not in {*ELSEWHERE, *LATER, *AS_OTHER}]

DEPARTURES = {
    "P045": "sandbox.absolute",  # a pattern is a path, and an absolute path is called absolute wherever it stands
    "P074": "sandbox.absolute",  # a subclass of str is flattened, as everywhere, and its real text is refused
}
"""Cases that are refused as the corpus has it, under another word."""

ESCAPES = {
    "P028",
    "P036",
    "P037",
    "P038",
    "P039",
    "P040",
    "P041",
    "P043",
    "P044",
    "P045",
    "P047",
    "P049",
    "P092",
    "P093",
}
ESCAPES |= {"P105", "P107", "P109", "P117", "P121", "P136"}
"""Cases that leave the sandbox without a check."""


def case_path(case: dict[str, Any], world: World) -> Any:
    """Return the path of a case."""
    return eval(case["input_expr"]) if "input_expr" in case else world.expanded(case["input"])


def run_case(case: dict[str, Any], world: World, files: Files) -> Any:
    """Run a case, optionally while names are exchanged."""
    operation = OPERATIONS[case["op"]]
    path, other = case_path(case, world), world.expanded(case.get("dest", "other"))
    swap = next((line.split(" ")[1:] for line in case.get("setup", ()) if line.startswith("swap")), None)
    if swap is None:
        return outcome(lambda: operation(files, path, other))
    outcomes: set[str] = set()
    with swapping(world.root, *swap):
        for tries in range(50_000):
            if tries > 1000 and len({each.startswith(":") for each in outcomes}) == 2:
                break
            outcomes.add(str(outcome(lambda: operation(files, path, other))))
    return next((each for each in outcomes if each.startswith(":")), None) if len(outcomes) > 1 else outcomes


@pytest.mark.parametrize("case", HERE, ids=lambda case: case["id"])
def test_each_path_of_the_corpus_has_its_listed_outcome(case: dict[str, Any], tmp_path: Path) -> None:
    """With the same value and code for both strategies, and no access outside."""
    answers = []
    for backend in BACKENDS:
        (tmp_path / backend).mkdir()
        world = build(tmp_path / backend, case.get("setup", []))
        before = world.outside()
        sandbox = world.sandbox(backend)
        if "removeroot" in case.get("setup", ()):
            remove_root(world)
        answers.append(run_case(case, world, sandbox.files(free, free)))
        sandbox.close()

        assert world.outside() == before
        assert SECRET not in str(answers)

    assert answers[0] == answers[1]
    if case["expect"] == "deny":
        word = case["error"].replace("path.", "sandbox.")
        assert answers[0] == f":{DEPARTURES.get(case['id'], word)}"
    else:
        assert not str(answers[0]).startswith(":")
        assert answers[0] == b"inside" or case["op"] != "read"
    if case["id"] == "P046":
        assert answers[0] == ["f.txt", "lnk"]


def unguarded(case: dict[str, Any], world: World) -> Any:
    """Access the joined path as a tool without a sandbox would."""
    import glob

    path = os.path.join(world.root, case_path(case, world))
    match case["op"]:
        case "read":
            return Path(path).read_bytes()
        case "list":
            return os.listdir(path)
        case "glob":
            return glob.glob(path)
        case "write":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return Path(path).write_text("NEW")
        case "append":
            with open(path, "a") as file:
                return file.write("NEW")
        case "mkdir":
            return os.makedirs(path)
        case "delete":
            return os.unlink(path)
        case "rename":
            return os.rename(path, os.path.join(world.root, case["dest"]))


@pytest.mark.parametrize("case", [case for case in CASES if case["id"] in ESCAPES], ids=lambda case: case["id"])
def test_the_same_path_escapes_without_a_sandbox(case: dict[str, Any], tmp_path: Path) -> None:
    """So the refusals above prove something: the outside is read, listed or changed."""
    world = build(tmp_path, case.get("setup", []))
    before = world.outside()

    answer = unguarded(case, world)

    reported = str(answer)
    assert (
        SECRET in reported
        or "root:" in reported
        or "secret" in reported
        or "ROOT2" in reported
        or "/etc/" in reported
        or world.outside() != before
    )


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["id"])
def test_cases_of_upstream_hold(root: Path, backend: Any, case: Mapping[str, Any]) -> None:
    """Paths that it resolves in its sandbox are resolved here, and refused ones are refused."""
    sandbox = Sandbox(str(root), backend=backend)

    def resolved() -> Any:
        path = os.path.relpath(sandbox.resolve(case["args"][0]), root)
        return True if case["tool_or_fn"] == "is_path_in_sandbox" else path

    if "error" in case["expect"]:
        with pytest.raises(SandboxError) as caught:
            resolved()
        assert (caught.value.code, caught.value.retry) == ("sandbox.escape", "model")
    else:
        assert case["expect"]["value"] == resolved()


AS_NOBODY = """
import ctypes, os, pwd, sys
from neuroscript import SandboxError
from neuroscript.sandbox import Sandbox, open_beneath as beneath
operation, backend, path = sys.argv[1:]
if os.getuid() == 0:
    account = pwd.getpwnam("nobody")
    os.chown("ROOT", account.pw_uid, account.pw_gid)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
try:
    files = Sandbox("ROOT", backend=backend).files(lambda verb, path: None, lambda what, count: None)
    print(files.read_bytes(path) if operation == "read" else files.write_bytes(path, b"NEW"))
except SandboxError as error:
    print(error.code, error, sep="|")
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a directory that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.mark.parametrize("case", AS_OTHER.values(), ids=lambda case: case["id"])
def test_a_system_error_does_not_contain_the_path_of_the_sandbox(
    case: dict[str, Any], public: Path, backend: Any
) -> None:
    """In a process of an unprivileged user, because the tests may run as root."""
    world = build(public, case["setup"])
    command = [sys.executable, "-c", AS_NOBODY, case["op"], backend, case["input"]]

    done = subprocess.run(command, cwd=world.base, capture_output=True, text=True, check=True)

    code, _, text = done.stdout.strip().partition("|")
    assert code == case["error"].replace("path.", "sandbox.")
    assert str(world.base) not in text


LAYOUTS: dict[str, tuple[list[str], str]] = {
    "file": (["file f inside"], "f"),
    "file in a directory": (["file a/b/f inside"], "a/b/f"),
    "file with a slash": (["file f inside"], "f/"),
    "file as a directory": (["file f inside"], "f/x"),
    "directory": (["dir d/e"], "d"),
    "empty directory": (["dir d"], "d/"),
    "the root": (["file f inside"], "."),
    "the root by a detour": (["dir d"], "d/.."),
    "nothing": ([], "nothing"),
    "nothing in nothing": ([], "no/thing"),
    "dot dot inside": (["file f inside"], "x/../f"),
    "dot dot outside": ([], "../OUT/secret"),
    "link to a file outside": (["symlink l ../OUT/secret"], "l"),
    "link to a directory outside": (["symlink l ../OUT"], "l"),
    "below a link to a directory outside": (["symlink l $OUT"], "l/secret"),
    "below a link to a directory outside, missing": (["symlink l $OUT"], "l/missing"),
    "link with a slash": (["symlink l ../OUT"], "l/"),
    "link inside": (["file f inside", "symlink l f"], "l"),
    "link to the root": (["file f inside", "symlink l ."], "l/f"),
    "chain of links": (["symlink a/b ../d", "symlink d ../OUT"], "a/b/secret"),
    "loop of links": (["symlink a b", "symlink b a"], "a"),
    "dangling link": (["symlink l ../OUT/created"], "l"),
    "fifo": (["fifo p"], "p"),
    "socket": (["sock s"], "s"),
    "device": (["char c 1 5"], "c"),
    "hard link": (["hardlink h $OUT/secret"], "h"),
}

DISCLOSED = {
    ("hard link", "read"),
    ("hard link", "text"),
    ("hard link", "open"),
    ("hard link", "pinned"),
    ("hard link", "hash"),
}
"""A hard link looks like a file; reading one is permitted."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_operation_leaves_the_sandbox_in_any_layout(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each returns a value or raises our error, equal for both strategies, and opens nothing outside."""
    setup, path = LAYOUTS[layout]
    seen: list[str] = []
    for word, operation in OPERATIONS.items():
        answers = []
        for backend in BACKENDS:
            base = tmp_path / f"{word}-{backend}"
            base.mkdir()
            world = build(base, ["file mine mine", *setup])
            before = world.outside()
            sandbox = world.sandbox(backend)
            opened = watch(sandbox, monkeypatch)
            answers.append(outcome(lambda: operation(sandbox.files(free, free), path, "other")))
            monkeypatch.undo()
            sandbox.close()

            after = world.outside()
            assert after == before, word
            seen += opened
            assert [each for each in opened if not each.startswith(str(world.root))] == [], word
            assert SECRET not in str(answers) or (layout, word) in DISCLOSED
        assert answers[0] == answers[1], word
    assert seen or layout == "dot dot outside"


def watch(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the path of every opened file is appended."""
    opened: list[str] = []
    system_open, folder = os.open, sandbox._root

    def noting(run: Any) -> Any:
        def note(*args: Any, **options: Any) -> int:
            descriptor = run(*args, **options)
            opened.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            return int(descriptor)

        return note

    monkeypatch.setattr(os, "open", noting(system_open))
    sandbox._root = attrs.evolve(folder, opener=noting(folder.opener))  # type: ignore[attr-defined,misc]
    return opened


def test_each_documented_difference_is_a_case() -> None:
    """And each documented escape, so every row is tested."""
    assert {*DEPARTURES} | ESCAPES <= {case["id"] for case in HERE}
    assert len(ELSEWHERE) == 7
    assert len(LATER) == 4
    assert len(HERE) == 92 - 7 - 4 - 2
    assert len(LAYOUTS) >= 25


# The directory itself.


def test_no_descriptor_stays_open(tmp_path: Path, backend: Any) -> None:
    """After any operation in any layout."""
    gc.collect()  # descriptors that other tests have left open
    before = sorted(os.listdir("/proc/self/fd"))
    for number, (setup, path) in enumerate(LAYOUTS.values()):
        base = tmp_path / str(number)
        base.mkdir()
        world = build(base, ["file mine mine", *setup])
        sandbox = world.sandbox(backend)
        held = len(os.listdir("/proc/self/fd"))
        for word, operation in OPERATIONS.items():
            outcome(lambda: operation(sandbox.files(free, free), path, "other"))
            assert len(os.listdir("/proc/self/fd")) == held, (path, word)
        sandbox.close()

    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_resolution_by_names_is_equal_without_races(layout: str, tmp_path: Path) -> None:
    """It is for Windows, which has no directory descriptors; here it only refuses links and escapes."""
    setup, path = LAYOUTS[layout]
    for word, operation in OPERATIONS.items():
        answers = []
        for way in ("walk", "named"):
            base = tmp_path / f"{word}-{way}"
            base.mkdir()
            world = build(base, ["file mine mine", *setup])
            before = world.outside()
            sandbox = world.sandbox("walk")
            if way == "named":
                sandbox._root.close()
                sandbox._root = PathFolder(str(world.root), str(world.root))
            answers.append(outcome(lambda: operation(sandbox.files(free, free), path, "other")))
            sandbox.close()

            assert world.outside() == before
        assert answers[0] == answers[1] or word == "pinned", word
