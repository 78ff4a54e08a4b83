"""Full disks, killed processes and system errors: files have their old or new content, and nothing else remains."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.sandbox_layouts import BACKENDS, build, free, outcome

from neuroscript.sandbox import Sandbox

BEGIN = """
import json, os, random, resource, signal, sys, time
from neuroscript import SandboxError
from neuroscript.sandbox import Sandbox
root, *words = sys.argv[1:]

def outcome(run):
    try:
        return run()
    except SandboxError as error:
        return error.code

def files(backend="auto"):
    return Sandbox(root, backend=backend).files(lambda verb, path: None, lambda what, count: None)
"""


def run(code: str, root: Path, *words: str, before: tuple[str, ...] = ()) -> Any:
    """Run code in a separate process, and return its JSON output."""
    command = [*before, sys.executable, "-c", BEGIN + code, str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


KILL = """
contents = [bytes([each]) * 1_000_000 for each in b"ab"]
chance = random.Random(1)
writing = files()
writing.write_bytes("f", contents[0])
torn = left = 0
for _ in range(int(words[0])):
    ready, signal_end = os.pipe()
    child = os.fork()
    if not child:
        os.write(signal_end, b"x")
        while True:
            for content in contents:
                writing.write_bytes("f", content)
    os.read(ready, 1)
    time.sleep(chance.uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(signal_end)
    for name in os.listdir(root):
        with open(os.path.join(root, name), "rb") as file:
            torn += file.read() not in contents
    left = len(os.listdir(root)) - 1
print(json.dumps([torn, left]))
"""


def test_a_killed_writer_leaves_the_old_or_the_new_content(tmp_path: Path, full_counts: bool) -> None:
    """The file has no name while it is written, so most killed writers leave nothing else."""
    kills = 300 if full_counts else 60

    torn, left = run(KILL, tmp_path, str(kills))

    assert torn == 0
    assert left < kills / 4


@pytest.mark.parametrize("name", [".report.4194304-0123456789abcdef.tmp", ".report.0123456789abcdef.tmp", ".x.1-0.tmp"])
def test_a_start_deletes_no_file(name: str, tmp_path: Path) -> None:
    """Not even one with the name of a temporary file of an ended process, because a name proves nothing."""
    file = tmp_path / "data" / name
    file.parent.mkdir()
    file.write_text("a user's own")

    Sandbox(str(tmp_path)).close()

    assert file.read_text() == "a user's own"


@pytest.mark.parametrize("unnamed", [True, False], ids=["without a name", "with a name"])
def test_a_file_is_replaced_atomically_on_every_file_system(unnamed: bool, tmp_path: Path) -> None:
    """Also without support for unnamed files; its permissions are preserved, and nothing else remains."""
    sandbox = Sandbox(str(tmp_path))
    sandbox._root = attrs.evolve(sandbox._root, has_unnamed=unnamed)  # type: ignore[arg-type]
    use = sandbox.files(free, free)
    use.write_text("d/f", "old")
    (tmp_path / "d/f").chmod(0o640)

    use.write_text("d/f", "new")

    assert [path.name for path in (tmp_path / "d").iterdir()] == ["f"]
    assert ((tmp_path / "d/f").read_text(), (tmp_path / "d/f").stat().st_mode & 0o777) == ("new", 0o640)


FULL = """
if words[0] == "tmpfs":
    import ctypes
    options = b"size=1m"
    assert ctypes.CDLL(None).mount(b"tmpfs", os.fsencode(root), b"tmpfs", 0, options) == 0
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
use = files(words[1])
use.write_bytes("f", b"old" * 50_000)
use.write_bytes("empty", b"")
codes = [outcome(lambda: use.write_bytes("f", b"new" * 1_000_000)),
         outcome(lambda: use.write_bytes("d/new", b"new" * 1_000_000)),
         outcome(lambda: use.append("f", b"new" * 1_000_000)),
         outcome(lambda: use.append("empty", b"new" * 1_000_000)),
         outcome(lambda: use.append("d/new", b"new" * 1_000_000))]
kept = use.read_bytes("f") == b"old" * 50_000, use.read_bytes("empty") == b""
use.write_bytes("f", b"new" * 100_000)
print(json.dumps([codes, kept, use.read_bytes("f") == b"new" * 100_000, [entry.path for entry in use.walk()]]))
"""

NEW_MOUNTS = (
    ("unshare", "--mount") if hasattr(os, "getuid") and os.getuid() == 0 else ("unshare", "--map-root-user", "--mount")
)


def can_mount() -> bool:
    """Return whether a process may have its own mounts."""
    return (
        shutil.which("unshare") is not None
        and subprocess.run([*NEW_MOUNTS, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reason", ["tmpfs", "limit"])
def test_a_full_disk_leaves_the_old_content(reason: str, backend: str, tmp_path: Path) -> None:
    """For replacing and appending; nothing else remains, and smaller writes still work."""
    if reason == "tmpfs" and not can_mount():
        pytest.skip("no file system may be mounted here")

    codes, kept, new, names = run(FULL, tmp_path, reason, backend, before=NEW_MOUNTS if reason == "tmpfs" else ())

    assert codes == ["sandbox.full"] * 5
    assert kept == [True, True]
    assert new is True
    assert names == ["d", "empty", "f"]


READ_ONLY = """
import ctypes
libc = ctypes.CDLL(None)
assert libc.mount(b"tmpfs", os.fsencode(root), b"tmpfs", 0, b"size=1m") == 0
use = files()
use.write_bytes("f", b"old")
os.mkdir(root + "/mounted")
assert libc.mount(b"tmpfs", os.fsencode(root + "/mounted"), b"tmpfs", 0, b"size=1m") == 0
codes = [outcome(lambda: use.move("f", "mounted/f"))]
assert libc.mount(b"tmpfs", os.fsencode(root), b"tmpfs", 32 | 1, b"") == 0
codes += [outcome(lambda: use.write_bytes("f", b"new")), outcome(lambda: use.delete("f")), outcome(lambda: use.mkdir("d")),
          outcome(lambda: use.append("f", b"new")), outcome(files)]
print(json.dumps([codes, use.read_text("f")]))
"""


def test_a_read_only_file_system_is_reported(tmp_path: Path) -> None:
    """During use, and at the next start; nothing is moved to another file system."""
    if not can_mount():
        pytest.skip("no file system may be mounted here")

    codes, content = run(READ_ONLY, tmp_path, before=NEW_MOUNTS)

    assert codes == ["sandbox.io", *["sandbox.readonly"] * 5]
    assert content == "old"


NO_DESCRIPTORS = """
use = files(words[0])
use.write_bytes("a/b/f", b"old")
before = sorted(os.listdir("/proc/self/fd"))
codes = []
for spare in range(4):
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) - 1 + spare, 1024))
    codes += [outcome(lambda: use.write_bytes("a/b/f", b"old")), outcome(lambda: use.read_text("a/b/f")),
              outcome(lambda: use.append("a/b/f", b"")), outcome(lambda: use.mkdir("x/y")), outcome(lambda: len(use.walk()))]
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
after = sorted(os.listdir("/proc/self/fd"))
print(json.dumps([sorted(set(map(str, codes))), before == after, use.read_text("a/b/f"), [entry.path for entry in use.walk()]]))
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_missing_descriptors_are_reported_and_nothing_is_lost(backend: str, tmp_path: Path) -> None:
    """At any point."""
    codes, same, content, names = run(NO_DESCRIPTORS, tmp_path, backend)

    assert "sandbox.io" in codes
    assert {each for each in codes if each.startswith("sandbox.")} == {"sandbox.io"}
    assert (same, content) == (True, "old")
    assert names == ["a", "a/b", "a/b/f", "x", "x/y"]


FILTERED = """
import ctypes, struct
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x00050000 | int(words[0])), (0x06, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("HBBI", *step) for step in steps)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(len(steps), code)), 0, 0) == 0
sandbox = Sandbox(root)
use = sandbox.files(lambda verb, path: None, lambda what, count: None)
use.write_text("a/b", "x")
print(json.dumps([sandbox.backend, use.read_text("a/b"), outcome(lambda: Sandbox(root, backend="openat2"))]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="not Linux")
@pytest.mark.parametrize("number", [1, 38], ids=["EPERM", "ENOSYS"])
def test_paths_are_resolved_step_by_step_without_openat2(number: int, tmp_path: Path) -> None:
    """On an old kernel or in a container with a filter; requiring openat2 is an error."""
    assert run(FILTERED, tmp_path, str(number)) == ["walk", "x", "sandbox.backend"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_move_without_renameat2_replaces_nothing(backend: Any, tmp_path: Path) -> None:
    """On systems that do not have it."""
    sandbox = build(tmp_path, ["file f 1", "file g 2", "dir d", "dir e"]).sandbox(backend)
    sandbox._root = attrs.evolve(sandbox._root, rename=None)  # type: ignore[arg-type]
    files = sandbox.files(free, free)

    refused = [outcome(lambda: files.move(*names)) for names in [("f", "g"), ("f", "d"), ("d", "f"), ("d", "e")]]
    files.move("f", "d/f")
    files.move("d", "h")

    assert refused == [":sandbox.exists"] * 4
    assert [each.path for each in files.walk()] == ["e", "g", "h", "h/f"]
    assert os.stat(tmp_path / "ROOT/h/f").st_nlink == 1
    sandbox.close()


PATHS = some.lists(some.sampled_from(["a", "b", "c.txt"]), min_size=1, max_size=3).map(tuple)
DATA = some.binary(max_size=20)


class Model(RuleBasedStateMachine):
    """Random operations with both strategies, compared with a dict of names to bytes, or to None for a directory."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.base = Path(tempfile.mkdtemp())
        self.sandboxes = [Sandbox(str(self.base / backend), backend=backend) for backend in BACKENDS]
        self.tree: dict[tuple[str, ...], bytes | None] = {(): None}

    def teardown(self) -> None:
        for sandbox in self.sandboxes:
            sandbox.close()
        shutil.rmtree(self.base)

    def do(self, operation: str, *args: Any) -> Any:
        """Return the result of both strategies."""
        answers = [outcome(lambda: getattr(sandbox.files(free, free), operation)(*args)) for sandbox in self.sandboxes]
        assert answers[0] == answers[1]
        return answers[0]

    def why_not(self, path: tuple[str, ...], missing: str | None = ":sandbox.notfound") -> str | None:
        """Return why the path cannot be used."""
        for length in range(len(path)):
            if path[:length] not in self.tree:
                return missing
            if self.tree[path[:length]] is not None:
                return ":sandbox.notdir"
        return None

    def make_parents(self, path: tuple[str, ...]) -> None:
        for length in range(len(path)):
            self.tree[path[:length]] = None

    @rule(path=PATHS, data=DATA, operation=some.sampled_from(["write_bytes", "append"]))
    def change(self, path: tuple[str, ...], data: bytes, operation: str) -> None:
        expected = self.why_not(path, None)
        if path in self.tree and self.tree[path] is None:
            expected = ":sandbox.type"
        if expected is None:
            self.make_parents(path)
            self.tree[path] = (self.tree.get(path) or b"") + data if operation == "append" else data
        assert self.do(operation, "/".join(path), data) == expected

    @rule(path=PATHS)
    def make(self, path: tuple[str, ...]) -> None:
        expected: Any = self.why_not(path, None) or path not in self.tree
        if self.tree.get(path) is not None:
            expected = ":sandbox.exists"
        if expected is True:
            self.make_parents(path)
            self.tree[path] = None
        assert self.do("mkdir", "/".join(path)) == expected

    @rule(path=PATHS)
    def delete(self, path: tuple[str, ...]) -> None:
        expected: Any = self.why_not(path, None) or path in self.tree
        if any(each[: len(path)] == path and each != path for each in self.tree):
            expected = ":sandbox.notempty"
        if expected is True:
            del self.tree[path]
        assert self.do("delete", "/".join(path)) == expected

    @rule(source=PATHS, goal=PATHS)
    def move(self, source: tuple[str, ...], goal: tuple[str, ...]) -> None:
        expected = self.why_not(source) or (None if source in self.tree else ":sandbox.notfound") or self.why_not(goal)
        if expected is None and goal in self.tree:
            expected = ":sandbox.exists" if goal == source or goal[: len(source)] != source else ":sandbox.name"
        elif expected is None and goal[: len(source)] == source:
            expected = ":sandbox.name"
        if expected is None:
            moved = {each: self.tree.pop(each) for each in [*self.tree] if each[: len(source)] == source}
            self.tree |= {(*goal, *each[len(source) :]): content for each, content in moved.items()}
        assert self.do("move", "/".join(source), "/".join(goal)) == expected

    @rule(path=PATHS)
    def read(self, path: tuple[str, ...]) -> None:
        expected: Any = self.why_not(path) or self.tree.get(path, ":sandbox.notfound")
        assert self.do("read_bytes", "/".join(path)) == (":sandbox.type" if expected is None else expected)
        assert self.do("exists", "/".join(path)) is (path in self.tree)

    @invariant()
    def content_matches_the_model(self) -> None:
        for sandbox in self.sandboxes:
            files = sandbox.files(free, free)
            found = {each.path: None if each.is_dir else files.read_bytes(each.path) for each in files.walk()}
            assert found == {"/".join(path): content for path, content in self.tree.items() if path}
            assert [*found] == ["/".join(path) for path in sorted(self.tree) if path]


class TestModel(Model.TestCase):  # type: ignore[misc,name-defined]
    """Any sequence of operations has the same effect as on a dict."""

    settings = settings(
        max_examples=1_000 if os.environ.get("NEUROSCRIPT_TEST_ALL") == "1" else 30,
        stateful_step_count=30,
        deadline=None,
    )
