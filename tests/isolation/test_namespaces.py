"""Namespaces, and processes that end with their parent."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.isolation.children import libc_call, outcome

from neuroscript.isolation import namespaces
from neuroscript.isolation.confinement import available

NEEDED = ("userns", "pidns", "netns", "ipcns", "mountns")
pytestmark = [
    pytest.mark.skipif(
        any(map(available().get, NEEDED)), reason="namespaces are not permitted to unprivileged users here"
    ),
    pytest.mark.forks,
]


def test_user_id_remains_in_a_user_namespace(user: int) -> None:
    """Only a process without privileges needs one."""
    ids = repr((user, user, user) if user else os.getresuid())
    names = ("netns", "ipcns", "utsns")

    def entered() -> str:
        return repr(namespaces.enter(names))

    expected = repr(("userns", *names)) if user or os.geteuid() else repr(names)
    assert outcome(os.getresuid, entered, user=user) == ids
    assert outcome(lambda: eval(entered()), user=user) == expected
    assert outcome(os.getresuid, namespaces.enter_user_namespace, user=user) == ids
    assert outcome(lambda: namespaces.enter(())) == "()"


def test_files_of_the_user_remain_accessible(folder: Path, user: int) -> None:
    def write() -> tuple[int, bool]:
        (folder / "inside" / "new").write_text("mine")
        return (folder / "inside" / "new").stat().st_uid, os.access(folder / "inside" / "new", os.W_OK)

    assert outcome(write, lambda: namespaces.enter(["netns"]), user=user) == repr((user or os.getuid(), True))


def test_network_of_the_host_is_unreachable(user: int) -> None:
    """UDP and abstract sockets too, which some versions of Landlock do not refuse."""
    with closing(socket.socket()) as tcp, closing(socket.socket(type=socket.SOCK_DGRAM)) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))

        def connect() -> None:
            socket.create_connection(tcp.getsockname(), 1).close()

        def send() -> int:
            with socket.socket(type=socket.SOCK_DGRAM) as client:
                return client.sendto(b"abc", udp.getsockname())

        def confine() -> None:
            namespaces.enter(["netns"])

        assert outcome(connect, user=user) == "None"
        assert outcome(send, user=user) == "3"
        assert outcome(connect, confine, user=user) == "ENETUNREACH"
        assert outcome(send, confine, user=user) == "ENETUNREACH"


def test_shared_memory_of_the_host_is_unreachable(user: int) -> None:
    key = libc_call("shmget", 0, 4096, 0o666)
    try:

        def attach() -> bool:
            return libc_call("shmdt", libc_call("shmat", key, None, 0o10000)) == 0

        def stat() -> int:
            import ctypes

            return libc_call("shmctl", key, 2, ctypes.create_string_buffer(256))

        assert outcome(stat, user=user) == "0"
        assert outcome(stat, lambda: namespaces.enter(["ipcns"]), user=user) == "EINVAL"
    finally:
        libc_call("shmctl", key, 0, None)


# Processes


def enter_pid_namespace() -> None:
    """Become what a zygote is: process 1 of a PID namespace, with privileges in a user namespace."""
    namespaces.enter(["pidns"])
    zygote = os.fork()
    if zygote:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(zygote, 0)[1]))


def fork_twice() -> list[int]:
    """Fork two children into namespaces, and one into that of this process; return their exit codes.

    The first two exit with the number of processes that they see, including their parents, and the last with 0 unless it
    is process 1.
    """
    codes = []
    for _ in range(2):
        pid = namespaces.fork_into_pid_namespace()
        if not pid:
            os._exit(os.getpid() + os.getppid() + sum(map(is_running, range(2, 300))))
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    plain = os.fork()
    if not plain:
        os._exit(int(os.getpid() == 1))
    return [*codes, os.waitstatus_to_exitcode(os.waitpid(plain, 0)[1])]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def test_zygote_forks_repeatedly_into_namespaces(user: int) -> None:
    """The zygote remains in its own namespace."""
    assert outcome(fork_twice, enter_pid_namespace, user=user) == "[1, 1, 0]"


def test_superuser_forks_into_namespaces_from_any_namespace() -> None:
    assert outcome(fork_twice) == ("[1, 1, 0]" if os.geteuid() == 0 else "EPERM")


@pytest.mark.parametrize("confine", [namespaces.drop_capabilities, namespaces.enter_user_namespace])
def test_process_without_privileges_cannot_fork_into_a_namespace(confine: Callable[[], None], user: int) -> None:
    """Nothing is forked. The process remains in its namespace, and forks as before."""

    def fork() -> int:
        try:
            namespaces.fork_into_pid_namespace()
        except PermissionError:
            child = os.fork()
            if not child:
                os._exit(int(os.getpid() == 1))
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return -1

    assert outcome(fork, confine, user=user) == "0"


def test_kernel_kills_everything_in_a_namespace_with_its_first_process(user: int) -> None:
    """The daemon has left the session, the parent and the process group."""

    def run() -> bytes:
        reading, writing = os.pipe()
        first = namespaces.fork_into_pid_namespace()
        if not first:
            if not os.fork():
                os.setsid()
                if os.fork():
                    os._exit(0)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.write(writing, b"ready")
                time.sleep(20)
            signal.pause()
        os.close(writing)
        ready = os.read(reading, 100)
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)
        return ready + os.read(reading, 100)  # the end of the file: the daemon has closed its descriptor

    assert outcome(run, enter_pid_namespace, user=user) == "b'ready'"


@pytest.mark.parametrize("is_gone", [False, True], ids=["later", "before"])
@pytest.mark.parametrize("is_in_namespace", [False, True], ids=["same namespace", "own namespace"])
def test_process_ends_with_its_parent(is_gone: bool, is_in_namespace: bool, user: int) -> None:
    """Even if the parent ends before the process asks for that."""

    def run() -> bytes:
        reading, writing = os.pipe()
        go, going = os.pipe()
        if not os.fork():
            parent = os.pidfd_open(os.getpid())
            if not (namespaces.fork_into_pid_namespace() if is_in_namespace else os.fork()):
                os.close(going)
                if is_gone:
                    select.select([parent], [], [])
                namespaces.end_with_parent(parent)
                os.write(writing, b"ready")
                time.sleep(20)
            if not is_gone:
                os.close(going)
                os.read(go, 1)
            os._exit(0)
        os.close(writing)
        if not is_gone:
            ready = os.read(reading, 100)
        os.close(going)
        return b"" if is_gone and os.read(reading, 100) == b"" else ready + os.read(reading, 100)

    confine: Callable[[], object] = enter_pid_namespace if is_in_namespace else lambda: None
    assert outcome(run, confine, user=user) == ("b''" if is_gone else "b'ready'")


def test_orphans_are_adopted(user: int) -> None:
    def run() -> bool:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            middle = os.getpid()
            if not os.fork():
                while os.getppid() == middle:
                    time.sleep(0.001)
                os.write(writing, str(os.getppid()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        return int(os.read(reading, 100)) == os.getpid() and os.wait()[1] == 0

    assert outcome(run, namespaces.adopt_orphans, user=user) == "True"


def test_inspection_is_forbidden() -> None:
    """A process of the same user cannot read its environment; the superuser can."""

    def read() -> int:
        target = os.fork()
        if not target:
            namespaces.forbid_inspection()
            time.sleep(20)
        time.sleep(0.1)
        try:
            namespaces.drop_capabilities()
            return len(Path(f"/proc/{target}/environ").read_bytes())
        finally:
            os.kill(target, signal.SIGKILL)

    assert outcome(read) == "EACCES"


def test_capabilities_are_gone(user: int) -> None:
    """The superuser can still read files of other users, and no program returns the rest."""

    def capabilities() -> set[str]:
        done = subprocess.run(["/bin/cat", "/proc/self/status"], capture_output=True, text=True)
        lines = dict(line.split(":\t") for line in done.stdout.splitlines() if line.startswith("Cap"))
        return {lines["CapEff"], lines["CapPrm"], lines["CapInh"]}

    from neuroscript.isolation.system_calls import forbid_new_privileges

    def confine() -> None:
        forbid_new_privileges()
        namespaces.drop_capabilities()

    none, kept = "0" * 16, f"{namespaces.CAP_DAC_OVERRIDE:016x}"
    assert eval(outcome(capabilities, confine, user=user)) == ({none} if user or os.geteuid() else {none, kept})


# Mounts


def test_only_writable_places_can_be_changed(folder: Path, user: int) -> None:
    """Modes and times outside are protected, which Landlock does not do."""
    inside, outside = folder / "inside", folder / "outside"
    if user:
        os.chown(inside / "file", user, user)
        os.chown(outside / "file", user, user)

    def confine() -> None:
        os.chdir(inside)
        namespaces.enter(["mountns"])
        namespaces.make_read_only([str(inside)])

    def by_descriptor() -> None:
        descriptor = os.open(inside, os.O_PATH)
        namespaces.enter(["mountns"])
        namespaces.make_read_only([descriptor])

    for each in (confine, by_descriptor):
        assert outcome(lambda: (inside / "new").write_text("new"), each, user=user) == "3"
        assert outcome(lambda: (inside / "file").chmod(0o600), each, user=user) == "None"
        assert outcome(lambda: (outside / "file").write_text("new"), each, user=user) == "EROFS"
        assert outcome(lambda: (outside / "file").chmod(0o600), each, user=user) == "EROFS"
        assert outcome(lambda: os.utime(outside / "file"), each, user=user) == "EROFS"
        assert outcome(lambda: Path("/dev/null").write_text("a"), each, user=user) == "1"
    assert outcome(lambda: Path("relative").write_text("new"), confine, user=user) == "3"
    assert outcome(lambda: (outside / "file").chmod(0o600), user=user) == "None"
    assert (outside / "file").stat().st_mode & 0o777 == 0o600


def test_mount_that_is_read_only_remains_so(folder: Path, user: int) -> None:
    """The writable directory contains it; a process with privileges could make it writable."""
    inside = folder / "inside"
    (inside / "mounted").mkdir()

    def mount() -> None:
        namespaces.enter(["mountns"])
        target = os.fsencode(inside / "mounted")
        namespaces.call("mount", None, b"/", None, namespaces.MS_REC | namespaces.MS_PRIVATE, None)
        namespaces.call("mount", b"tmpfs", target, b"tmpfs", 0, None)
        namespaces.call("mount", None, target, None, 0x1021, None)  # remount, bind, read-only

    def confine() -> None:
        mount()
        namespaces.make_read_only([str(inside)])

    assert outcome(lambda: (inside / "new").write_text("new"), confine, user=user) == "3"
    assert outcome(lambda: (inside / "mounted/new").write_text("new"), mount, user=user) == "EROFS"
    assert outcome(lambda: (inside / "mounted/new").write_text("new"), confine, user=user) == "EROFS"


def test_root_can_be_writable(folder: Path, user: int) -> None:
    def confine() -> None:
        namespaces.enter(["mountns"])
        namespaces.make_read_only(["/", str(folder)])

    assert outcome(lambda: (folder / "inside" / "file").write_text("new"), confine, user=user) == "3"


def test_single_file_can_be_writable(folder: Path, user: int) -> None:
    inside = folder / "inside"

    def confine() -> None:
        namespaces.enter(["mountns"])
        namespaces.make_read_only([str(inside / "file")])

    assert outcome(lambda: (inside / "file").write_text("new"), confine, user=user) == "3"
    assert outcome(lambda: (inside / "other").write_text("new"), confine, user=user) == "EROFS"


def test_file_in_a_writable_directory_can_be_deleted(folder: Path, user: int) -> None:
    """It is not a mount point of its own, even if it is named too."""
    inside = folder / "inside"

    def confine() -> None:
        namespaces.enter(["mountns"])
        namespaces.make_read_only([str(inside / "file"), str(inside)])

    assert outcome((inside / "file").unlink, confine, user=user) == "None"
    assert not (inside / "file").exists()


# Descriptors


def test_all_other_descriptors_are_closed() -> None:
    kept = os.open("/dev/null", os.O_RDONLY)
    other = os.dup2(kept, 700)
    try:

        def run(report: int) -> list[int]:
            namespaces.close_all_but({2, kept, report})
            return [each for each in range(1000) if is_open(each) and each != report]

        def is_open(descriptor: int) -> bool:
            try:
                os.fstat(descriptor)
            except OSError:
                return False
            return True

        reading, writing = os.pipe()
        if not os.fork():
            os.write(writing, repr(run(writing)).encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as report:
            assert report.read() == repr([2, kept])
        os.wait()
    finally:
        os.close(kept)
        os.close(other)
