"""Races with a process that exchanges the target of a path: nothing outside is read or changed."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.sandbox_layouts import BACKENDS, SECRET, World, build, can_swap, free, outcome, swapping

from neuroscript.sandbox.files import Files

pytestmark = pytest.mark.skipif(not can_swap(), reason="names cannot be exchanged here")

READS = (2_000, 20_000)
WRITES = (300, 3_000)
"""How often an operation is raced for every change, and when all is tried."""

LEAST = 0.01
"""Which part of the tries must meet each side, or the test has proved nothing."""

MOST = 50
"""How many times as often it is tried where one side is not met."""


@attrs.frozen
class Ground:
    """A world in which ``d`` and a link to OUT change places, and the true ``d``, wherever it is."""

    world: World
    true: int

    def put(self, name: str) -> None:
        """Make an empty file in the true directory."""
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=self.true))

    def clear(self, *names: str) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                os.rmdir(name, dir_fd=self.true)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    world = build(tmp_path, ["file d/f inside", "symlink evil $OUT", "file last inside", "symlink link ../OUT/f"])
    for name in ("f", "x"):
        (world.out / name).write_text(SECRET)
    true = os.open(world.root / "d", os.O_RDONLY)
    yield Ground(world, true)
    os.close(true)


def read(files: Files, ground: Ground) -> None:
    assert files.read_bytes("d/f") == b"inside"


def read_by_other_means(files: Files, ground: Ground) -> None:
    with files.open("d/f") as file:
        assert file.read() == b"inside"
    with files.pinned("d/f") as name:
        assert Path(name).read_bytes() == b"inside"
    assert files.stat("d/f").size == len("inside")
    assert {each.name for each in files.list("d")} == {"f"}


def read_what_changes_itself(files: Files, ground: Ground) -> None:
    assert files.read_bytes("last") == b"inside"


def write(files: Files, ground: Ground) -> None:
    files.write_bytes("d/w", b"NEW")


def append(files: Files, ground: Ground) -> None:
    files.append("d/a", b"+")


def append_to_what_changes_itself(files: Files, ground: Ground) -> None:
    files.append("last", b"+")


def delete(files: Files, ground: Ground) -> None:
    ground.put("x")
    assert files.delete("d/x") is True


def move_away(files: Files, ground: Ground) -> None:
    ground.put("x")
    files.move("d/x", "away")
    os.unlink(ground.world.root / "away")


def move_there(files: Files, ground: Ground) -> None:
    (ground.world.root / "mine").write_text("mine")
    files.move("mine", "d/y")
    os.unlink("y", dir_fd=ground.true)


def make_directories(files: Files, ground: Ground) -> None:
    ground.clear("m/n", "m")
    assert files.mkdir("d/m/n") is True


RACES: list[tuple[Callable[[Files, Ground], None], tuple[int, int], tuple[str, str]]] = [
    (read, READS, ("d", "evil")),
    (read_by_other_means, WRITES, ("d", "evil")),
    (read_what_changes_itself, READS, ("last", "link")),
    (write, WRITES, ("d", "evil")),
    (append, WRITES, ("d", "evil")),
    (append_to_what_changes_itself, WRITES, ("last", "link")),
    (delete, WRITES, ("d", "evil")),
    (move_away, WRITES, ("d", "evil")),
    (move_there, WRITES, ("d", "evil")),
    (make_directories, WRITES, ("d", "evil")),
]


def run_race(run: Callable[[], Any], count: int) -> Counter[Any]:
    """Count the outcomes of *count* attempts, and of more if both outcomes have not occurred."""
    met: Counter[Any] = Counter()

    def is_one_sided() -> bool:
        return min(met[None], met[":sandbox.symlink"]) < LEAST * count

    while met.total() < count or (is_one_sided() and met.total() < MOST * count):
        met[run()] += 1
    return met


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("run", "counts", "names"), RACES, ids=[race[0].__name__ for race in RACES])
def test_an_operation_in_a_race_stays_inside(
    run: Callable[[Files, Ground], None],
    counts: tuple[int, int],
    names: tuple[str, str],
    backend: Any,
    ground: Ground,
    full_counts: bool,
) -> None:
    """It succeeds inside or is refused, each often enough; nothing outside is accessed."""
    sandbox = ground.world.sandbox(backend)
    files, before = sandbox.files(free, free), ground.world.outside()
    with swapping(ground.world.root, *names):
        met = run_race(lambda: outcome(lambda: run(files, ground)), counts[full_counts])
    sandbox.close()

    assert ground.world.outside() == before
    assert {*met} <= {None, ":sandbox.symlink", ":sandbox.raced"}
    assert min(met[None], met[":sandbox.symlink"]) >= LEAST * counts[full_counts], met
    assert met.total() >= counts[full_counts]
    assert not [name for name in os.listdir(ground.true) if name.endswith(".tmp")]


def test_checking_a_path_before_opening_it_does_escape(ground: Ground) -> None:
    """In the same race, so the test above proves something."""
    path = os.path.join(ground.world.root, "d", "f")

    def escapes() -> bool:
        with suppress(OSError):  # realpath itself fails in this race
            inside = os.path.realpath(path).startswith(f"{ground.world.root}/")
            return inside and Path(path).read_text() == SECRET
        return False

    with swapping(ground.world.root, "d", "evil"):
        assert any(escapes() for _ in range(MOST * READS[0]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_concurrent_reader_sees_one_complete_content(backend: Any, tmp_path: Path, full_counts: bool) -> None:
    """For any timing of the threads."""
    sandbox = build(tmp_path, []).sandbox(backend)
    files = sandbox.files(free, free)
    contents = [bytes([each]) * 50_000 for each in b"abcd"]
    files.write_bytes("f", contents[0])
    torn: list[int] = []

    def work(content: bytes) -> None:
        for _ in range(1_000 if full_counts else 50):
            files.write_bytes("f", content)
            seen = files.read_bytes("f")
            if seen not in contents:
                torn.append(len(seen))

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert torn == []
    assert [each.path for each in files.list()] == ["f"]
    sandbox.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_of_many_concurrent_moves_succeeds(backend: Any, tmp_path: Path) -> None:
    """No file is lost."""
    sandbox = build(tmp_path, []).sandbox(backend)
    files = sandbox.files(free, free)
    for number in range(100):
        for each in range(4):
            files.write_text(f"{number}/{each}", str(each))
        results: list[Any] = []
        barrier = threading.Barrier(4)

        def work(each: int, number: int = number) -> None:
            barrier.wait()
            results.append(outcome(lambda: files.move(f"{number}/{each}", f"{number}/new")))

        threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(map(str, results)) == [":sandbox.exists"] * 3 + ["None"]
        assert sorted(files.read_text(entry.path) for entry in files.list(str(number))) == ["0", "1", "2", "3"]
    sandbox.close()
