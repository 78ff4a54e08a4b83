"""Landlock: what is permitted by each access word, and what gets around none of them."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.isolation.children import outcome

from neuroscript.isolation import landlock

pytestmark = [
    pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock"),
    pytest.mark.forks,
]

EVERYTHING = frozenset(landlock.ACCESS)


def needs(version: int) -> pytest.MarkDecorator:
    """Return a mark that skips a test on kernels with an older version of Landlock."""
    return pytest.mark.skipif(landlock.version() < version, reason="this kernel's Landlock is too old")


def only(place: Path | int, *words: str) -> Callable[[], None]:
    """Return a function that restricts the process to one file or directory."""
    name = place if isinstance(place, int) else str(place)
    return partial(landlock.restrict, [(name, frozenset(words))])


def read(path: Path) -> str:
    return path.read_text()


def replace(path: Path) -> int:
    return path.write_text("new")


def append(path: Path) -> int:
    with path.open("a") as file:
        return file.write("more")


OPERATIONS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "read a file": ("read", lambda inside: read(inside / "file")),
    "list a directory": ("list", lambda inside: len(os.listdir(inside)) == 1),
    "overwrite a file": ("write", lambda inside: replace(inside / "file")),
    "append to a file": ("write", lambda inside: append(inside / "file")),
    "truncate a file": ("write", lambda inside: os.truncate(inside / "file", 0)),
    "create a file": ("write", lambda inside: replace(inside / "new")),
    "create a directory": ("write", lambda inside: (inside / "new").mkdir()),
    "delete a file": ("delete", lambda inside: (inside / "file").unlink()),
    "execute a file": ("execute", lambda inside: os.spawnv(os.P_WAIT, inside / "program", ["program"])),
    "create a symbolic link": ("", lambda inside: (inside / "link").symlink_to("file")),
    "create a named pipe": ("", lambda inside: os.mkfifo(inside / "pipe")),
    "create a socket": ("", lambda inside: socket.socket(socket.AF_UNIX).bind(str(inside / "socket"))),
}


WORDS = [(), *((word,) for word in landlock.ACCESS), ("read", "execute"), tuple(landlock.ACCESS)]


@pytest.mark.parametrize("words", WORDS, ids="-".join)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_access_word_permits_its_operations_alone(name: str, words: tuple[str, ...], folder: Path) -> None:
    """Without the restriction, each operation succeeds. The kernel reads a program that it executes."""
    needed, operation = OPERATIONS[name]
    inside = folder / "inside"
    if needed == "execute":
        (inside / "program").write_bytes(Path("/bin/true").read_bytes())
        (inside / "program").chmod(0o755)
        expected = "0" if {"read", "execute"} <= {*words} else "127"
        rules = [(str(inside), frozenset(words)), ("/lib64", EVERYTHING), ("/usr/lib", EVERYTHING)]
        confined = outcome(partial(operation, inside), partial(landlock.restrict, rules))
        assert (confined, outcome(partial(operation, inside))) == (expected, "0")
        return
    confined = outcome(partial(operation, inside), only(inside, *words))
    if needed in words:
        assert confined in ("None", "True", "3", "4", "'inside'")
    else:
        free = outcome(partial(operation, inside))
        assert (confined, free in ("None", "True", "3", "4", "'inside'")) == ("EACCES", True)


@pytest.mark.parametrize(
    ("words", "expected"), [(("write",), "EACCES"), (("delete",), "EACCES"), (("write", "delete"), "True")]
)
def test_renaming_creates_and_deletes(words: tuple[str, ...], expected: str, folder: Path) -> None:
    inside = folder / "inside"
    assert outcome(lambda: bool((inside / "file").rename(inside / "other")), only(inside, *words)) == expected


def around(folder: Path, name: str) -> object:
    """Reach a file outside in a way that a naive check would miss."""
    inside, outside = folder / "inside", folder / "outside"
    match name:
        case "symbolic link":
            return read(inside / "link")
        case "parent directory":
            return read(inside / ".." / "outside" / "file")
        case "hard link":
            os.link(outside / "file", inside / "hard")
            return read(inside / "hard")
        case "rename into":
            (outside / "file").rename(inside / "moved")
            return read(inside / "moved")
        case "rename out of":
            return bool((inside / "file").rename(outside / "moved"))
        case "rename the directory":
            return bool((outside).rename(inside / "moved"))
        case "path of a descriptor":
            return read(Path(f"/proc/self/fd/{os.open(outside / 'file', os.O_PATH)}"))
        case "file below a descriptor":
            return os.read(os.open("file", os.O_RDONLY, dir_fd=os.open(outside, os.O_PATH)), 100)
        case _:
            return read(Path(f"/proc/{os.getppid()}/root") / str(outside / "file").lstrip("/"))


WAYS = (
    *("symbolic link", "parent directory", "hard link", "rename into", "rename out of", "rename the directory"),
    *("path of a descriptor", "file below a descriptor", "root of another process"),
)


@pytest.mark.parametrize("name", WAYS)
def test_no_path_leads_outside(name: str, folder: Path, user: int) -> None:
    """A rule for a directory permits everything in it, and each way works without the restriction."""
    (folder / "inside" / "link").symlink_to(folder / "outside" / "file")
    if name == "root of another process":
        user = 0  # another user may not use the root of this process
    confined = outcome(partial(around, folder, name), only(folder / "inside", *EVERYTHING), user=user)
    free = outcome(partial(around, folder, name), user=user)

    assert confined in ("EACCES", "EXDEV")
    assert free in ("'outside'", "b'outside'", "True")


def test_descriptor_that_is_open_continues_to_work(folder: Path, user: int) -> None:
    """So a process has to close what it must not use."""
    descriptor = os.open(folder / "outside" / "file", os.O_RDONLY)
    directory = os.open(folder / "outside", os.O_RDONLY)
    try:
        of_file = outcome(lambda: os.read(descriptor, 100), only(folder / "inside", "read"), user=user)
        below = outcome(lambda: os.open("file", 0, dir_fd=directory), only(folder / "inside", "read"), user=user)
    finally:
        os.close(descriptor)
        os.close(directory)

    assert (of_file, below) == ("b'outside'", "EACCES")


def test_rule_follows_the_directory_of_a_descriptor(folder: Path, user: int) -> None:
    """Another directory under the same name is not permitted."""
    descriptor = os.open(folder / "inside", os.O_PATH)

    def exchange() -> None:
        only(descriptor, "read")()

    try:
        (folder / "inside").rename(folder / "moved")
        (folder / "outside").rename(folder / "inside")
        moved = outcome(lambda: read(folder / "moved" / "file"), exchange, user=user)
        other = outcome(lambda: read(folder / "inside" / "file"), exchange, user=user)
    finally:
        os.close(descriptor)

    assert (moved, other) == ("'inside'", "EACCES")


def test_rule_for_a_file_permits_that_file_alone(folder: Path, user: int) -> None:
    inside = folder / "inside"
    (inside / "sibling").write_text("sibling")
    confine = only(inside / "file", *EVERYTHING)

    assert outcome(lambda: read(inside / "file"), confine, user=user) == "'inside'"
    assert outcome(lambda: replace(inside / "file"), confine, user=user) == "3"
    assert outcome(lambda: read(inside / "sibling"), confine, user=user) == "EACCES"
    assert outcome(lambda: (inside / "file").unlink(), confine, user=user) == "EACCES"
    assert outcome(lambda: os.listdir(inside), confine, user=user) == "EACCES"


@pytest.mark.parametrize("place", ["missing", "file/below"])
def test_missing_path_is_skipped(place: str, folder: Path, user: int) -> None:
    """A file that is created there later is not permitted."""
    confine = only(folder / "inside" / place, *EVERYTHING)

    assert outcome(lambda: read(folder / "inside" / "file"), confine, user=user) == "EACCES"


def test_second_restriction_permits_nothing_more(folder: Path, user: int) -> None:
    def twice() -> None:
        only(folder / "inside", *EVERYTHING)()
        only(folder, *EVERYTHING)()

    assert outcome(lambda: read(folder / "inside" / "file"), twice, user=user) == "'inside'"
    assert outcome(lambda: read(folder / "outside" / "file"), twice, user=user) == "EACCES"


@pytest.mark.parametrize("version", range(1, landlock.version() + 1))
def test_each_version_restricts_files(version: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer kernel accepts what is asked of an older one."""
    monkeypatch.setattr(landlock, "version", lambda: version)
    confine = only(folder / "inside", *EVERYTHING)

    assert outcome(lambda: replace(folder / "inside" / "new"), confine) == "3"
    assert outcome(lambda: read(folder / "outside" / "file"), confine) == "EACCES"
    assert outcome(lambda: around(folder, "hard link"), confine) in ("EACCES", "EXDEV")


def test_older_kernel_raises(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """So a process never believes that it is restricted."""
    monkeypatch.setattr(landlock, "CREATE_RULESET", 999)

    assert outcome(lambda: landlock.version()) == "0"
    assert outcome(lambda: landlock.restrict(())) == "ENOSYS"


# Other processes


@pytest.fixture
def listener() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP server and a server with an abstract name."""
    with closing(socket.socket()) as tcp, closing(socket.socket(socket.AF_UNIX)) as abstract:
        tcp.bind(("127.0.0.1", 0))
        abstract.bind(f"\0neuroscript-{os.getpid()}")
        for each in (tcp, abstract):
            each.listen()
        yield tcp, abstract


def connect(server: socket.socket) -> None:
    with socket.socket(server.family) as client:
        client.connect(server.getsockname())


@needs(landlock.NETWORK_VERSION)
def test_tcp_is_refused_without_network(listener: tuple[socket.socket, socket.socket], user: int) -> None:
    def binding() -> None:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))

    connecting = partial(connect, listener[0])

    assert outcome(connecting, user=user) == "None"
    assert outcome(connecting, partial(landlock.restrict, ()), user=user) == "EACCES"
    assert outcome(connecting, partial(landlock.restrict, (), network=True), user=user) == "None"
    assert outcome(binding, user=user) == "None"
    assert outcome(binding, partial(landlock.restrict, ()), user=user) == "EACCES"


@needs(landlock.SCOPE_VERSION)
def test_abstract_sockets_of_others_are_refused(listener: tuple[socket.socket, socket.socket], user: int) -> None:
    connecting = partial(connect, listener[1])

    assert outcome(connecting, user=user) == "None"
    assert outcome(connecting, partial(landlock.restrict, (), network=True), user=user) == "EPERM"


@needs(landlock.SCOPE_VERSION)
def test_signals_reach_only_processes_of_the_domain(user: int) -> None:
    assert landlock.confines_signals()

    def signal_child() -> str:
        child = os.fork()
        if not child:
            signal.pause()
        os.kill(child, signal.SIGTERM)
        return signal.Signals(os.WTERMSIG(os.waitpid(child, 0)[1])).name

    def signal_parent() -> None:
        parent = os.getpid()
        child = os.fork()
        if not child:
            landlock.restrict(())
            try:
                os.kill(parent, 0)
            except PermissionError:
                os._exit(13)
            os._exit(0)
        raise OSError(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "")

    assert outcome(signal_child, partial(landlock.restrict, ()), user=user) == "'SIGTERM'"
    assert outcome(signal_parent, user=user) == "EACCES"
