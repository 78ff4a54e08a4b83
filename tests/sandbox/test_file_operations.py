"""The operations on files and directories of a sandbox."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox_layouts import (
    OPERATIONS,
    build,
    free,
    outcome,
)

from neuroscript import LimitError, PolicyError, SandboxError
from neuroscript.sandbox import Sandbox
from neuroscript.sandbox.files import Files


@pytest.fixture
def files(root: Path, backend: Any) -> Iterator[Files]:
    sandbox = Sandbox(str(root), backend=backend)
    yield sandbox.files(free, free)
    sandbox.close()


# The result of each operation.


def test_written_text_is_read_unchanged(files: Files, root: Path) -> None:
    """Including line ends; directories are created."""
    files.write_text("a/b/c.txt", "é\r\nx\n")

    assert files.read_text("a/b/c.txt") == "é\r\nx\n"
    with files.open("a/b/c.txt", "r") as file:
        assert file.read() == "é\r\nx\n"
    assert (root / "a/b/c.txt").read_bytes() == "é\r\nx\n".encode()
    assert files.hash("a/b/c.txt") == hashlib.sha256("é\r\nx\n".encode()).hexdigest()


def test_a_replaced_file_keeps_its_permissions(files: Files, root: Path) -> None:
    """A new file has those of the process."""
    files.write_bytes("old", b"1")
    (root / "old").chmod(0o640)
    files.write_bytes("old", b"2")
    files.write_bytes("new", b"3")

    umask = os.umask(0)
    os.umask(umask)
    assert (root / "old").stat().st_mode & 0o7777 == 0o640
    assert (root / "new").stat().st_mode & 0o7777 == 0o666 & ~umask
    assert sorted(os.listdir(root)) == ["new", "old"]


def test_a_name_of_maximum_length_can_be_written(files: Files) -> None:
    """Its temporary name is not longer."""
    name = "é" * 127 + "x"
    files.write_bytes(name, b"1")
    files.append(name, "2")

    assert files.read_bytes(name) == b"12"


@pytest.mark.parametrize("data", [bytearray(b"12"), memoryview(b"12"), memoryview(b"1x2x")[::2]])
def test_any_bytes_like_object_can_be_written(files: Files, data: Any) -> None:
    """Unchanged."""
    files.write_bytes("f", data)
    files.append("f", data)

    assert files.read_bytes("f") == b"1212"


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (lambda files: files.write_bytes("f", "text"), "sandbox.argtype"),
        (lambda files: files.write_text("f", b"bytes"), "sandbox.argtype"),
        (lambda files: files.append("f", 1), "sandbox.argtype"),
        (lambda files: files.write_text("f", "\ud800"), "sandbox.encoding"),
        (lambda files: files.open("mine", "w"), "sandbox.argtype"),
        (lambda files: files.hash("mine", "crc"), "sandbox.argtype"),
        (lambda files: files.hash("mine", "shake_128"), "sandbox.argtype"),
        (lambda files: files.read_text("mine", encoding="utf-16"), "sandbox.encoding"),
        (lambda files: files.read_text("mine", encoding="no-such"), "sandbox.encoding"),
        (lambda files: files.write_bytes(".", b""), "sandbox.isroot"),
        (lambda files: files.append("d/..", b""), "sandbox.isroot"),
        (lambda files: files.delete("."), "sandbox.isroot"),
        (lambda files: files.move(".", "x"), "sandbox.isroot"),
        (lambda files: files.move("mine", "."), "sandbox.isroot"),
        (lambda files: files.write_bytes("d", b""), "sandbox.type"),
        (lambda files: files.write_bytes("new/", b""), "sandbox.type"),
        (lambda files: files.mkdir("mine"), "sandbox.exists"),
        (lambda files: files.mkdir("mine/d"), "sandbox.notdir"),
        (lambda files: files.list("mine"), "sandbox.notdir"),
        (lambda files: files.delete("mine/"), "sandbox.type"),
        (lambda files: files.delete("d"), "sandbox.notempty"),
        (lambda files: files.move("mine", "d"), "sandbox.exists"),
        (lambda files: files.move("d", "mine"), "sandbox.exists"),
        (lambda files: files.move("mine", "mine"), "sandbox.exists"),
        (lambda files: files.move("d", "d/x"), "sandbox.name"),
        (lambda files: files.move("mine", "mine/x"), "sandbox.notdir"),
        (lambda files: files.move("mine", "no/where"), "sandbox.notfound"),
        (lambda files: files.move("nothing", "x"), "sandbox.notfound"),
        (lambda files: files.move("mine/", "x"), "sandbox.type"),
        (lambda files: files.move("mine", "x/"), "sandbox.type"),
        (lambda files: files.read_bytes("mine", limit=3), "limit.fs_bytes"),
        (lambda files: files.read_bytes("mine", limit=-1), "limit.fs_bytes"),
    ],
)
def test_an_impossible_operation_is_refused_and_changes_nothing(files: Files, run: Any, code: str) -> None:
    """Each reason has its own code."""
    files.write_bytes("mine", b"\xe9\xe9\xe9\xe9\xe9")
    files.mkdir("d/e")
    before = files.walk()

    assert outcome(lambda: run(files)) == f":{code}"
    assert files.walk() == before


def test_errors_contain_only_the_path_in_the_sandbox(files: Files) -> None:
    """In its canonical form, escaped and truncated."""
    with pytest.raises(SandboxError) as raised:
        files.read_bytes("a/./b")
    with pytest.raises(SandboxError) as long:
        files.read_bytes("x" * 100)

    assert str(raised.value) == "a/b: no such file or directory"
    assert raised.value.retry == "model"
    assert str(long.value) == f"{'x' * 64}…: no such file or directory"


def test_paths_outside_are_refused_whether_they_exist_or_not(tmp_path: Path, backend: Any) -> None:
    """No operation reveals the target of a link."""
    world = build(tmp_path, ["symlink l $OUT", "symlink there ../OUT/secret", "symlink gone ../OUT/nothing"])
    files = world.sandbox(backend).files(free, free)
    for word in ("read", "open", "hash", "list", "walk", "pinned", "write", "append", "rename", "stat", "exists"):
        reported = [answer(files, word, path) for path in ("l/secret", "l/nothing")]
        assert reported[0] == reported[1].replace("nothing", "secret"), word
        reported = [answer(files, word, path) for path in ("there", "gone")]
        assert reported[0] == reported[1].replace("gone", "there"), word


def answer(files: Files, word: str, path: str) -> str:
    try:
        return str(OPERATIONS[word](files, path, "other"))
    except SandboxError as error:
        return f"{error.code} {error.retry} {error}"


def test_directories_are_created_and_entries_deleted_once(files: Files) -> None:
    """The second call reports that nothing was changed."""
    assert [files.mkdir("a/b"), files.mkdir("a/b"), files.mkdir("."), files.mkdir("a/")] == [True, False, False, False]
    assert [files.delete("a/b/"), files.delete("a/b"), files.delete("no/thing"), files.exists("a/b")] == [
        True,
        False,
        False,
        False,
    ]


def test_files_and_directories_are_moved(files: Files) -> None:
    """With all their content."""
    files.write_bytes("a/f", b"1")
    files.mkdir("d")
    files.move("a", "d/b")
    files.move("d/b/f", "g")

    assert [each.path for each in files.walk()] == ["d", "d/b", "g"]


def test_an_entry_has_the_kind_of_its_name(files: Files, root: Path) -> None:
    """The same for stat, list, walk and glob; a link is not followed."""
    files.write_bytes("d/f.txt", b"123")
    os.utime(root / "d/f.txt", (1, 1.5))
    (root / "l").symlink_to("d")
    os.mkfifo(root / "p")

    entry = files.stat("d/f.txt")
    assert (entry.path, entry.name, entry.is_dir, entry.size, entry.modified, entry.kind) == (
        "d/f.txt",
        "f.txt",
        False,
        3,
        1.5,
        "file",
    )
    assert (
        files.list("d")
        == files.walk("d")
        == files.glob("d/*")
        == files.glob("*/f.txt")
        == files.glob("d/f.txt")
        == [entry]
    )
    assert [(each.path, each.kind, each.size) for each in files.walk()] == [
        ("d", "dir", 0),
        ("d/f.txt", "file", 3),
        ("l", "symlink", 0),
        ("p", "other", 0),
    ]
    assert files.stat(".").path == "."
    assert files.list() == files.list(".") == [each for each in files.walk() if "/" not in each.path]


def test_a_name_that_is_not_a_valid_path_is_shown_escaped(files: Files, root: Path) -> None:
    """It is visible, cannot forge a line, and is refused as a path."""
    for name in (b"a\nb", b"\xff", b"\xe2\x80\xaex"):
        os.mkdir(os.path.join(os.fsencode(root), name))
        (root / os.fsdecode(name) / "f").write_text("x")

    shown = [each.path for each in files.walk()]

    assert shown == ["a\\nb", "\\u202ex", "\\udcff"]
    assert {outcome(lambda path=path: files.list(path)) for path in shown} == {":sandbox.separator"}


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*", [".h", "a", "b.txt"]),
        ("*/", ["a"]),
        ("**", [".h", "a", "a/b", "a/b/c.txt", "a/d.txt", "b.txt"]),
        ("**/*.txt", ["a/b/c.txt", "a/d.txt", "b.txt"]),
        ("**/b*", ["a/b", "b.txt"]),
        ("**/**/c.txt", ["a/b/c.txt"]),
        ("a/**", ["a/b", "a/b/c.txt", "a/d.txt"]),
        ("a*/**", ["a", "a/b", "a/b/c.txt", "a/d.txt"]),
        ("a/**/*.txt", ["a/b/c.txt", "a/d.txt"]),
        ("a/?.txt", ["a/d.txt"]),
        ("a/[!a-c].txt", ["a/d.txt"]),
        ("a/b", ["a/b"]),
        ("nothing/*", []),
        ("b.txt/*", []),
        (".", []),
    ],
)
def test_a_pattern_matches_names_and_directories(files: Files, pattern: str, paths: list[str]) -> None:
    """One star matches within a name, two stars across directories."""
    for path in ("a/b/c.txt", "a/d.txt", "b.txt", ".h"):
        files.write_bytes(path, b"")

    assert [each.path for each in files.glob(pattern)] == paths


def test_a_pattern_with_many_stars_is_fast(files: Files) -> None:
    """The watchdog would end a search with exponential time."""
    files.write_bytes("a" * 250, b"")
    files.write_bytes("/".join("a" * 100), b"")

    assert files.glob("*a" * 100 + "b") == []
    assert files.glob("**/a/" * 60 + "b") == []


def test_permissions_are_checked_before_any_access(root: Path, backend: Any) -> None:
    """With the verb and the canonical path; a refusal changes nothing."""
    requests: list[tuple[str, str]] = []

    def may(verb: str, path: str) -> None:
        requests.append((verb, path))
        raise PolicyError("no")

    sandbox = Sandbox(str(root), backend=backend)
    files = sandbox.files(may, free)
    for word in OPERATIONS:
        assert outcome(lambda: OPERATIONS[word](files, "./mine//x", "other")) == ":policy.denied"

    reads = ["read", "text", "open", "hash", "stat", "exists", "list", "walk", "glob", "pinned", "resolve"]
    assert requests[: len(reads)] == [("read", "mine/x" if word != "glob" else "mine") for word in reads]
    assert requests[len(reads) :] == [*[("write", "mine/x")] * 3, *[("delete", "mine/x")] * 2, ("delete", "mine")]
    assert os.listdir(root) == []


def test_a_move_needs_permissions_for_both_paths(files: Files, root: Path, backend: Any) -> None:
    """To delete the source and to write the target."""
    files.write_bytes("a", b"")
    requests: list[tuple[str, str]] = []
    with_record = Sandbox(str(root), backend=backend).files(lambda *ask: requests.append(ask), free)
    with_record.move("a", "b")

    assert requests == [("delete", "a"), ("write", "b")]


def test_moving_a_directory_needs_permissions_for_its_content(root: Path, backend: Any) -> None:
    """One entry that may not be deleted or written prevents the whole move."""
    (root / "d" / "deep").mkdir(parents=True)
    (root / "d" / "deep" / "f").write_text("x")
    requests: list[tuple[str, str]] = []

    def may(verb: str, path: str) -> None:
        requests.append((verb, path))
        if (verb, path) == ("write", "e/deep/f"):
            raise PolicyError("no")

    with pytest.raises(PolicyError):
        Sandbox(str(root), backend=backend).files(may, free).move("d", "e")

    assert requests == [
        ("delete", "d"),
        ("write", "e"),
        ("delete", "d/deep"),
        ("write", "e/deep"),
        ("delete", "d/deep/f"),
        ("write", "e/deep/f"),
    ]
    assert (root / "d" / "deep" / "f").exists() and not (root / "e").exists()


def test_unreadable_entries_are_neither_listed_nor_entered(files: Files, root: Path, backend: Any) -> None:
    """Other entries are."""
    for path in ("a/f", "b/f", "c/secret/f", "c/g"):
        files.write_bytes(path, b"")

    def may(verb: str, path: str) -> None:
        if path in ("a", "b/f", "c/secret"):
            raise PolicyError("no")

    some = Sandbox(str(root), backend=backend).files(may, free)

    assert [each.path for each in some.walk()] == ["b", "c", "c/g"]
    assert [each.path for each in some.glob("**/f")] == []


def test_bytes_are_spent_before_a_write_and_after_each_read(root: Path, backend: Any) -> None:
    """A reached limit leaves no file, not even a temporary one."""
    spent: list[int] = []

    def spend(what: str, count: int) -> None:
        assert what == "fs_bytes"
        if count > 600_000 or sum(spent) > 1_000_000:
            raise LimitError("no more", code="limit.fs_bytes")
        spent.append(count)

    files = Sandbox(str(root), backend=backend).files(free, spend)
    assert outcome(lambda: files.write_bytes("new/f", b"x" * 700_000)) == ":limit.fs_bytes"
    assert os.listdir(root) == []
    files.write_bytes("f", b"x" * 600_000)
    files.append("f", b"x" * 100_000)
    assert spent == [600_000, 100_000]
    assert outcome(lambda: files.read_bytes("f")) == ":limit.fs_bytes"
    assert sum(spent) < 1_300_000

    few: list[Any] = []
    files_of_few = Sandbox(str(root)).files(free, lambda *spent: few.append(spent))
    assert outcome(lambda: files_of_few.read_bytes("f", limit=10)) == ":limit.fs_bytes"
    assert few == [("fs_bytes", 11)]

    with files.open("f") as file, pytest.raises(LimitError):
        file.read(1)
    with files.open("f", "r") as text, pytest.raises(LimitError):
        text.read()


@pytest.mark.parametrize(
    ("look", "count"),
    [
        (lambda files: files.list("d"), 3),
        (lambda files: files.list("d/deep"), 4),
        (lambda files: files.walk(), 8),
        (lambda files: files.glob("d/*.txt"), 3),
        (lambda files: files.glob("**/*.txt"), 8),
        (lambda files: files.move("d", "e"), 7),
        (lambda files: files.stat("d/a.txt"), 0),
        (lambda files: files.exists("d"), 0),
    ],
    ids=["list", "list deep", "walk", "glob", "glob all", "move", "stat", "exists"],
)
def test_names_that_are_read_are_spent(look: Any, count: int, root: Path, backend: Any) -> None:
    """All names of each directory that is read, whether they match or not; a known name costs nothing."""
    for name in ("d/a.txt", "d/b", *(f"d/deep/{each}" for each in range(4))):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    spent: list[tuple[str, int]] = []
    look(Sandbox(str(root), backend=backend).files(free, lambda *each: spent.append(each)))

    assert {what for what, _ in spent} <= {"fs_entries"}
    assert sum(each for _, each in spent) == count


def test_names_are_spent_before_any_is_returned(root: Path, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large directory is charged in parts, so that listing stops when the budget is used up."""
    monkeypatch.setattr("neuroscript.sandbox.listing.FREE_ENTRIES", 10)
    for number in range(5):
        (root / str(number)).mkdir(parents=True)
        for each in range(25):
            (root / str(number) / str(each)).write_text("")
    spent: list[int] = []

    def spend(what: str, count: int) -> None:
        if sum(spent) + count > 30:
            raise LimitError("no more", code="limit.fs_entries")
        spent.append(count)

    files = Sandbox(str(root), backend=backend).files(free, spend)

    assert outcome(lambda: files.walk()) == ":limit.fs_entries"
    assert spent == [5, 10, 10, 5]
    assert outcome(lambda: files.list("1")) == ":limit.fs_entries"
    assert spent == [5, 10, 10, 5]


def test_appending_needs_a_file_with_one_name(files: Files, root: Path) -> None:
    """It happens in place, so other readers see it; a second name may be outside, and is refused."""
    files.append("log", "1")
    with (root / "log").open() as seen:
        files.append("log", b"2")
        assert seen.read() == "12"
    os.link(root / "log", root / "second")

    assert outcome(lambda: files.append("log", "3")) == ":sandbox.hardlink"
    assert (root / "log").read_text() == "12"


def test_a_fifo_and_a_device_are_refused_at_once(files: Files, root: Path) -> None:
    """Even if another process has opened the other end."""
    os.mkfifo(root / "p")
    reader = os.open(root / "p", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for word in ("read", "append", "write", "hash", "pinned", "rename"):
            assert outcome(lambda: OPERATIONS[word](files, "p", "other")) == ":sandbox.type", word
        assert files.delete("p") is True
    finally:
        os.close(reader)


def test_too_many_names_are_refused(files: Files, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one directory or in total; so are too many levels."""
    for each in range(20):
        files.write_bytes(f"{each % 4}/{each}", b"")
    monkeypatch.setattr("neuroscript.sandbox.listing.MAX_ENTRIES", 10)
    assert outcome(lambda: files.walk()) == ":limit.fs_entries"
    assert len(files.list("1")) == 5
    monkeypatch.setattr("neuroscript.sandbox.listing.MAX_ENTRIES", 3)
    assert outcome(lambda: files.list("1")) == ":limit.fs_entries"
    assert outcome(lambda: files.list()) == ":limit.fs_entries"


def test_deeply_nested_directories_are_refused(files: Files, root: Path) -> None:
    """The limit is 256 levels."""
    files.mkdir("/".join("d" * 256))
    assert len(files.walk("/".join("d" * 255))) == 1
    here = os.open(root.joinpath(*"d" * 255), os.O_RDONLY)
    try:
        os.mkdir("d/d", dir_fd=here)
    finally:
        os.close(here)

    assert outcome(lambda: files.walk("/".join("d" * 250))) == ":limit.fs_entries"


def test_a_pinned_name_refers_to_the_opened_file(files: Files, root: Path) -> None:
    """Even if its name now belongs to another file; errors of the block propagate."""
    files.write_bytes("d/f", b"1")
    with files.pinned("d") as name, files.pinned("d/f") as file:
        files.move("d", "e")
        assert os.listdir(name) == ["f"]
        assert Path(file).read_bytes() == b"1"
        done = subprocess.run(
            [sys.executable, "-c", "import os; print(os.listdir())"],
            cwd=name,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "['f']\n"
    with pytest.raises(FileNotFoundError), files.pinned("e"):
        raise FileNotFoundError


def test_a_path_can_be_resolved_for_other_libraries(tmp_path: Path, backend: Any) -> None:
    """It is checked at that time, and may be missing."""
    world = build(tmp_path, ["file a/f inside", "symlink l $OUT"])
    sandbox = world.sandbox(backend)

    assert [sandbox.resolve(path) for path in ("a/f", "a/../b/c/new", ".")] == [
        str(world.root / path) for path in ("a/f", "b/c/new", ".")
    ]
    for path in ("l", "l/x"):
        assert outcome(lambda path=path: sandbox.resolve(path)) == ":sandbox.symlink"
    assert outcome(lambda: sandbox.resolve("a/f/g")) == ":sandbox.notdir"
    assert outcome(lambda: sandbox.resolve("../x")) == ":sandbox.escape"
