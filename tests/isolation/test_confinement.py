"""Confinement: all layers together, what a program can still do in it, and what every worker may read."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import site
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.isolation.children import libc_call, outcome

from neuroscript.isolation import confinement
from neuroscript.isolation.confinement import Rules, available, confine, read_list

LAYERS = ("rlimits", "netns", "ipcns", "mountns", "landlock", "capabilities", "seccomp")
missing = {name: reason for name, reason in available().items() if reason}
pytestmark = [
    pytest.mark.skipif(bool(missing), reason="some layers of the confinement are not available here"),
    pytest.mark.forks,
]

READ = frozenset({"read", "list"})
WRITE = frozenset({"read", "list", "write", "delete"})
GIB = 1 << 30


def rules(*files: tuple[int | str, frozenset[str]], **changes: object) -> Rules:
    """Return rules with everything that every worker may read, and more files."""
    usual = tuple((place, READ) for place in read_list())
    base = Rules((*usual, *files), False, False, GIB, None, 256, 1 << 20)
    return base._replace(**changes)  # type: ignore[arg-type]


def confined(*files: tuple[int | str, frozenset[str]], **changes: object) -> Callable[[], object]:
    """Return a function that confines the process."""
    available()
    return partial(confine, rules(*files, **changes))


@pytest.fixture
def read_only(folder: Path) -> Callable[[], object]:
    return confined((str(folder / "inside"), READ))


@pytest.fixture
def writable(folder: Path) -> Callable[[], object]:
    return confined((str(folder / "inside"), WRITE))


# Layers


def test_layers_in_force_are_returned(folder: Path, user: int) -> None:
    """Namespaces of mounts and of the network are entered where the rules need them."""
    place = str(folder / "inside")
    begin = ("rlimits", *(("userns",) if user or os.geteuid() else ()))
    end = ("landlock", "capabilities", "seccomp")

    assert eval(outcome(confined((place, READ)), user=user)) == (*begin, "netns", "ipcns", *end)
    assert eval(outcome(confined((place, WRITE)), user=user)) == (*begin, "netns", "ipcns", "mountns", *end)
    assert eval(outcome(confined(("/dev/null", WRITE)), user=user)) == (*begin, "netns", "ipcns", *end)
    assert eval(outcome(confined((place, READ), network=True), user=user)) == (*begin, "ipcns", *end)
    assert eval(outcome(partial(confine, rules(), namespaces=False), user=user)) == ("rlimits", *end)


@pytest.mark.parametrize("absent", LAYERS)
def test_missing_layer_is_left_out(absent: str, folder: Path, user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others remain in force."""
    monkeypatch.setattr(confinement, "_available", lambda: {**dict.fromkeys(confinement.ATTEMPTS, ""), absent: "no"})
    found = eval(outcome(confined((str(folder / "inside"), WRITE)), user=user))

    assert {*LAYERS} - {*found} == {absent}


def test_layers_that_do_not_work_have_a_reason(user: int) -> None:
    """What a process may not do is found by trying it."""

    def tried() -> dict[str, str]:
        return {name: reason for name, reason in confinement.try_layers().items() if reason}

    reasons = dict.fromkeys(("userns", "pidns", "netns", "ipcns", "mountns"), "unshare: Operation not permitted")
    reasons["capabilities"] = "capset: Operation not permitted"

    assert outcome(tried, user=user) == "{}"
    assert outcome(tried, confined(execute=True), user=user) == repr(reasons)


def test_layers_that_need_linux_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resource limits work on other systems too."""
    confinement._available.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(confinement, "LIBC", None)

    def found() -> tuple[dict[str, str], tuple[str, ...]]:
        return available(), confine(rules())

    reasons, layers = eval(outcome(found))
    confinement._available.cache_clear()
    assert {name for name, reason in reasons.items() if not reason} == {"rlimits"}
    assert layers == ("rlimits",)


def test_process_that_executes_nothing_cannot_be_inspected(user: int) -> None:
    """Other processes of the user cannot read its memory."""

    def is_dumpable() -> int:
        return libc_call("prctl", 3, 0, 0, 0, 0)

    assert outcome(is_dumpable, user=user) == "1"
    assert outcome(is_dumpable, confined(), user=user) == "0"


# Attacks


def in_folder(folder: Path) -> dict[str, Callable[[], object]]:
    inside, outside = folder / "inside", folder / "outside"
    return {
        "read outside": lambda: (outside / "file").read_text(),
        "write outside": lambda: (outside / "file").write_text("a"),
        "mode outside": lambda: (outside / "file").chmod(0o666),
        "truncate outside": lambda: os.truncate(outside / "file", 0),
        "times outside": lambda: os.utime(outside / "file"),
        "attribute outside": lambda: os.setxattr(outside / "file", "user.a", b"a"),
        "own environment": lambda: len(Path("/proc/self/environ").read_bytes()) > 0,
        "environment of the parent": lambda: len(Path(f"/proc/{os.getppid()}/environ").read_bytes()) > 0,
        "list the root": lambda: bool(os.listdir("/")),
        "users": lambda: bool(Path("/etc/passwd").read_text()),
        "terminal": lambda: os.open("/dev/ptmx", os.O_RDWR) > 0,
        "new device": lambda: os.mkfifo(inside / "pipe"),
        "link out": lambda: (inside / "link").symlink_to(outside),
        "program": lambda: subprocess.run(["/bin/true"]).returncode,
        "process": lambda: os.waitpid(os.fork() or os._exit(0), 0)[1],
        "internet": lambda: socket.socket().close(),
        "more memory": lambda: mmap.mmap(-1, 2 * GIB).close(),
        "thousand descriptors": lambda: len([os.dup(0) for _ in range(1000)]),
        "memory file": lambda: os.posix_fallocate(os.memfd_create("a"), 0, 1 << 21),
        "large file": lambda: os.posix_fallocate(os.open(inside / "file", os.O_RDWR), 0, 1 << 21),
    }


EXPECTED = {
    "attribute outside": "ENOTSUP",
    **dict.fromkeys(("mode outside", "times outside", "truncate outside", "program", "process", "internet"), "EPERM"),
    "memory file": "EPERM",
    "more memory": "ENOMEM",
    "thousand descriptors": "EMFILE",
}


@pytest.mark.parametrize("name", in_folder(Path()))
@pytest.mark.parametrize("kind", ["read-only", "writable"])
def test_attack_works_without_confinement_alone(name: str, kind: str, folder: Path, user: int) -> None:
    attack = in_folder(folder)[name]
    if user:
        os.chown(folder / "outside" / "file", user, user)
    if user and name == "environment of the parent":
        user = 0  # another user may not read that of this process
    expected = EXPECTED.get(name, "EACCES")
    if kind == "writable" and name.endswith(" outside"):
        expected = "EROFS" if name != "read outside" else "EACCES"
    if kind == "writable" and name == "large file":
        expected = "EFBIG"
    found = outcome(attack, confined((str(folder / "inside"), WRITE if kind == "writable" else READ)), user=user)
    free = outcome(attack, user=user)

    assert not free.startswith("E"), free
    assert found == expected


def test_programs_are_confined_like_the_process_that_starts_them(folder: Path, user: int) -> None:
    """They change what is writable, including modes and times, and nothing else."""
    programs = tuple((place, READ | {"execute"}) for place in ("/bin", "/usr", "/lib", "/lib64"))
    confine = confined(*programs, (str(folder / "inside"), WRITE), ("/dev/null", WRITE), execute=True)

    def run(script: str) -> str:
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, cwd=folder / "inside")
        return done.stdout + done.stderr

    attempts = {
        "cat file": "inside",
        "touch file; chmod 640 file; stat -c %a file": "640\n",
        "cp -p file copy && cat copy": "inside",
        "cat ../outside/file": "cat: ../outside/file: Permission denied\n",
        "chmod 600 ../outside/file": "chmod: changing permissions of '../outside/file': Read-only file system\n",
        "kill -0 $$ && echo itself": "itself\n",
    }
    if user:
        os.chown(folder / "inside" / "file", user, user)

    assert {script: eval(outcome(partial(run, script), confine, user=user)) for script in attempts} == attempts


def test_programs_signal_only_each_other(user: int) -> None:
    """The parent is outside, and a child inside."""
    confine = confined(*((place, READ | {"execute"}) for place in ("/bin", "/usr", "/lib", "/lib64")), execute=True)
    script = f"sleep 60 & kill $! && echo sent; kill -0 {os.getpid()}"

    def run() -> str:
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True)
        return done.stdout + done.stderr.rpartition(":")[2].strip()

    assert outcome(run, confine, user=user) == repr("sent\nOperation not permitted")


def test_programs_cannot_signal_where_nothing_confines_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they are in a PID namespace of their own."""
    monkeypatch.setattr("neuroscript.isolation.landlock.confines_signals", lambda: False)
    rule = rules(*((place, READ | {"execute"}) for place in ("/bin", "/usr", "/lib", "/lib64")), execute=True)

    def run() -> str:
        done = subprocess.run(["/bin/sh", "-c", "kill -0 $$ && echo sent"], capture_output=True, text=True)
        return done.stdout + done.stderr.rpartition(":")[2].strip()

    assert outcome(run, partial(confine, rule)) == "'Operation not permitted'"
    assert outcome(run, partial(confine, rule, in_pid_namespace=True)) == "'sent\\n'"


def test_device_of_a_standard_descriptor_does_not_change(folder: Path, user: int) -> None:
    """The descriptor was opened outside the namespace, where the mount is writable."""
    readers = []

    def use_terminal() -> None:
        reader, terminal = os.openpty()
        readers.append(reader)
        for descriptor in range(3):
            os.dup2(terminal, descriptor)
        os.close(terminal)

    def use_terminal_confined() -> None:
        use_terminal()
        confined((str(folder / "inside"), WRITE))()

    def change() -> str:
        os.write(1, b"written")
        return os.read(readers[0], 7).decode() + str(os.fchmod(1, 0o620) or os.utime(0))

    assert outcome(change, use_terminal, user=user) == "'writtenNone'"
    assert outcome(change, use_terminal_confined, user=user) == "EROFS"
    assert outcome(lambda: os.write(2, b"written"), use_terminal_confined, user=user) == "7"


# What Python can still do


def test_writable_folder_gets_no_program_that_runs_as_another_user(folder: Path, user: int) -> None:
    """Another user of the machine could start it, and act as the user of the host."""
    program = folder / "inside" / "program"

    def create() -> str:
        os.close(os.open(program, os.O_CREAT | os.O_WRONLY, 0o4755))
        return oct(program.stat().st_mode)

    def change() -> str:
        program.write_text("x")
        program.chmod(0o2755)
        return oct(program.stat().st_mode)

    writable = confined((str(folder / "inside"), WRITE), execute=True)
    for attack in (create, change):
        program.unlink(missing_ok=True)
        assert outcome(attack, user=user) in ("'0o104755'", "'0o102755'")
        program.unlink()
        assert outcome(attack, writable, user=user) == "EPERM"


def test_writable_folder_works_for_sqlite_and_copies(folder: Path, user: int) -> None:
    """The process of the tests, which a child is a copy of, may be larger than the usual limit."""
    inside = folder / "inside"
    writable = confined((str(inside), WRITE), memory_bytes=16 * GIB)
    if user:
        os.chown(inside / "file", user, user)

    def use() -> list[tuple[int]]:
        with sqlite3.connect(inside / "data.db") as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE numbers (number)")
            database.execute("INSERT INTO numbers VALUES (7)")
            rows = database.execute("SELECT number FROM numbers").fetchall()
        database.close()
        return rows

    def copy() -> str:
        shutil.copy2(inside / "file", inside / "copy")
        shutil.rmtree(inside / "tree", ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=inside) as name:
            Path(name, "a").write_text("a")
        return (inside / "copy").read_text()

    assert outcome(use, writable, user=user) == "[(7,)]"
    assert outcome(copy, writable, user=user) == "'inside'"


def test_temporary_directory_is_its_own_and_limited(user: int) -> None:
    """Nothing of it reaches the directory of the same name, and it is full after some bytes."""

    def fill() -> tuple[str, str, str]:
        directory = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile("w+", prefix="neuroscript-own-", delete=False) as file:
            file.write("own")
        content = Path(file.name).read_text()
        Path(file.name).rename(f"{file.name}.txt")
        try:
            Path(directory, "large").write_bytes(bytes(2 << 20))
        except OSError as error:
            return directory, content, str(error.strerror)
        return directory, content, ""

    directory, content, error = eval(outcome(fill, confined(temporary_bytes=1 << 20), user=user))

    assert directory in confinement.TEMPORARY_PLACES
    assert (content, error) == ("own", "No space left on device")
    assert not list(Path(directory).glob("neuroscript-own-*"))


@pytest.mark.parametrize("kind", ["path", "descriptor"])
def test_temporary_directory_hides_no_file_of_the_rules(kind: str, user: int) -> None:
    """It is mounted at a place that contains none of them."""
    first, second, *_ = confinement.TEMPORARY_PLACES
    with tempfile.TemporaryDirectory(dir=first) as name:
        file = Path(name, "file")
        file.write_text("kept")
        os.chmod(name, 0o755)
        place = os.open(name, os.O_PATH) if kind == "descriptor" else name

        def use() -> tuple[str, str]:
            return os.environ["TMPDIR"], file.read_text()

        assert eval(outcome(use, confined((place, READ), temporary_bytes=1 << 20), user=user)) == (second, "kept")


@pytest.mark.parametrize("top", ["/var", "/"])
def test_temporary_directory_is_not_within_a_directory_of_the_rules(
    top: str, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hide files that the rules permit."""
    monkeypatch.delenv("TMPDIR", raising=False)
    expected = {"/var": confinement.TEMPORARY_PLACES[1], "/": "none"}

    def use() -> str:
        return os.environ.pop("TMPDIR", "none")

    assert outcome(use, confined((top, READ), temporary_bytes=1 << 20), user=user) == repr(expected[top])


def test_no_temporary_directory_without_namespaces(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)

    def use() -> str:
        return os.environ.pop("TMPDIR", "none")

    start = partial(confine, rules(temporary_bytes=1 << 20), namespaces=False)
    assert outcome(use, start, user=user) == "'none'"


PROGRAM = """
import sys
from neuroscript.isolation.confinement import Rules, confine, read_list
files = tuple((place, frozenset({"read", "list"})) for place in read_list(network=False))
confine(Rules(files, False, False, 1 << 30, None, 256, 0))
import asyncio, concurrent.futures, csv, ctypes, decimal, hashlib, json, locale, mimetypes, sqlite3, ssl, zoneinfo
import attrs, cattrs, neuroscript
neuroscript.Engine, neuroscript.ToolSpec
ssl.create_default_context()
hashlib.sha256(b"").hexdigest()
assert zoneinfo.ZoneInfo("Europe/Oslo").key == "Europe/Oslo"
assert mimetypes.guess_type("a.html")[0] == "text/html"
assert sqlite3.connect(":memory:").execute("SELECT 1").fetchall() == [(1,)]
locale.setlocale(locale.LC_ALL, "C.UTF-8")
open("/dev/null").read()
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    assert [*threads.map(abs, [-1])] == [1]
async def main():
    await asyncio.sleep(0)
    return await asyncio.to_thread(abs, -2)
assert asyncio.run(main()) == 2
try:
    open(__file__)
except PermissionError:
    print("confined")
"""


@pytest.mark.parametrize("options", [("-I",), ("-X", "utf8")], ids=["isolated", "with the environment"])
def test_modules_are_imported_after_the_confinement(options: tuple[str, ...], tmp_path: Path) -> None:
    """An interpreter and its packages are readable, but not the program itself."""
    file = tmp_path / "program.py"
    paths = f"import sys; sys.path[:] = {sys.path!r}\n" if options == ("-I",) else ""
    file.write_text(paths + PROGRAM)
    done = subprocess.run([sys.executable, *options, str(file)], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("confined\n", "")


def test_network_reaches_servers_and_resolves_names(user: int) -> None:
    """But no local socket."""
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
        server.bind(("127.0.0.1", 0))
        local.bind(f"\0neuroscript-{os.getpid()}")
        for each in (server, local):
            each.listen()

        def connect() -> object:
            with socket.create_connection(("localhost", server.getsockname()[1]), 5) as client:
                client.sendall(b"a")
                return client.getpeername()[0]

        def connect_locally() -> None:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(local.getsockname())

        online = partial(confine, rules(*((place, READ) for place in read_list(network=True)), network=True))
        assert outcome(connect, online, user=user) == "'127.0.0.1'"
        assert outcome(connect_locally, user=user) == "None"
        assert outcome(connect_locally, online, user=user) == "EPERM"


def test_process_one_of_a_namespace_ends_by_itself(folder: Path) -> None:
    """Signals without a handler do not reach it, so ``abort()`` ends it by SIGSEGV, and the processor limit by SIGKILL."""
    from tests.isolation.test_namespaces import enter_pid_namespace

    from neuroscript.isolation.namespaces import fork_into_pid_namespace

    def end(attempt: Callable[[], object], **changes: object) -> str:
        pid = fork_into_pid_namespace()
        if not pid:
            confine(rules(**changes))
            attempt()
            os._exit(0)
        return signal.Signals(os.WTERMSIG(os.waitpid(pid, 0)[1])).name

    def abort() -> None:
        import faulthandler

        faulthandler.disable()
        os.abort()

    def spin() -> None:
        latest = time.monotonic() + 30
        while time.monotonic() < latest:
            pass

    available()
    assert outcome(partial(end, abort), enter_pid_namespace) == "'SIGSEGV'"
    assert outcome(partial(end, spin, cpu_seconds=1), enter_pid_namespace) == "'SIGKILL'"


def test_limits_cannot_be_raised_again(user: int) -> None:
    import resource

    def raise_limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 * GIB, 2 * GIB))

    def limits() -> tuple[tuple[int, int], ...]:
        return tuple(resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU))

    assert outcome(raise_limit, confined(), user=user) == "ValueError: not allowed to raise maximum limit"
    assert outcome(limits, confined(cpu_seconds=9), user=user) == repr(((GIB, GIB), (9, 10)))

    def twice() -> None:
        confinement.limit_resources(rules(memory_bytes=GIB))
        confinement.limit_resources(rules(memory_bytes=2 * GIB))

    assert eval(outcome(limits, twice, user=user))[0] == (GIB, GIB)


def test_process_with_threads_is_not_confined_by_half() -> None:
    """A user namespace needs a process with one thread, and the call raises."""

    def confine_with_thread() -> None:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        confine(rules())

    if os.geteuid() == 0:
        assert outcome(confine_with_thread) == "None"
    assert outcome(confine_with_thread, user=65534 if os.geteuid() == 0 else 0) == "EINVAL"


# The read list


def test_read_list_has_the_interpreter_and_system_files() -> None:
    found = read_list()

    assert all(Path(place).exists() for place in found)
    assert [*found] == sorted({os.path.realpath(place) for place in found})
    for needed in (os.__file__, confinement.__file__, site.__file__, "/dev/urandom", "/etc/ld.so.cache"):
        assert any(Path(os.path.realpath(needed)).is_relative_to(place) for place in found), needed
    assert not any(Path(place) in Path(other).parents for place in found for other in found)


def test_certificates_are_readable_with_the_network_alone() -> None:
    assert "/etc/ssl/certs" in read_list(network=True)
    assert "/etc/ssl/certs" not in read_list()
    assert {*read_list()} < {*read_list(network=True)}


def test_read_list_has_no_directory_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the working directory nor the home directory, even if Python is installed in it, and no ``sys.path``."""
    for name in ("work", "home", "added", "added/site-packages", "other/bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", ["", ".", "site-packages", str(tmp_path / "added"), str(tmp_path / "work")])
    prefixes = (str(tmp_path / "work"), str(tmp_path / "home"), str(tmp_path), "/", "/usr", "/usr/local")
    for prefix in prefixes:
        monkeypatch.setattr(sys, "prefix", prefix)
        monkeypatch.setattr(sys, "base_prefix", prefix)
        assert not {prefix, str(tmp_path / "added"), str(tmp_path)} & {*read_list()}
        assert any(Path(os.path.realpath(os.__file__)).is_relative_to(place) for place in read_list())
    monkeypatch.setattr(sys, "path", [str(tmp_path / "added" / "site-packages")])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "other"))

    assert {str(tmp_path / "added" / "site-packages"), str(tmp_path / "other")} <= {*read_list()}
