"""Tools that try to hurt the host, or to reach what they were not granted.

A tool returns what it has read or done. Everything that it may aim at is in its argument, see `hostile_world`. What one
of them does outside if nothing stops it is limited, so that a test can let it succeed.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import fcntl
import multiprocessing
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from neuroscript import PolicyError, Runtime, ToolFailed, ToolPolicy, Toolset
from neuroscript.isolation import seccomp

hostile = Toolset("hostile")

Target = dict[str, Any]

INSIDE: Final = ("fs:read:inside/**", "fs:write:inside/**", "fs:delete:inside/**")
RAW: Final = ToolPolicy(
    raw_files=True, capabilities=INSIDE, effects=("reads", "writes", "deletes"), sources=(), sinks=()
)
"""What a tool declares that opens the files of one directory of the sandbox by path."""

PROGRAM: Final = ToolPolicy(capabilities=("shell:exec:sleep",), effects=("exec",), sources=(), sinks=())
"""What a tool declares that starts one program."""

LIBC: Final = ctypes.CDLL(None, use_errno=True)
NUMBERS: Final = {
    **seccomp.REFUSED, **seccomp.METADATA, **seccomp.SIGNALS, **seccomp.EXEC, **seccomp.CHECKED, **seccomp.ATTRIBUTES
}  # fmt: skip
COLUMN: Final = seccomp.MACHINES.get(os.uname().machine, (0, 0))[1]

MAX_CHILDREN: Final = 30


def call(name: str, *args: int | bytes | None) -> int:
    """Make a system call, and return its result or raise its error."""
    number = NUMBERS[name][COLUMN]
    words = [ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each) for each in args]
    result = int(LIBC.syscall(ctypes.c_long(number or 0), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def considered(name: str, *args: int | bytes | None) -> str:
    """Make a system call with arguments that the kernel rejects, and return how; a refusal by a filter is raised."""
    try:
        return str(call(name, *args))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise
        return errno.errorcode[error.errno or 0]


def any_of(attempts: dict[str, Callable[[], object]]) -> dict[str, str]:
    """Return what the attempts that succeed return, or raise the error of the last one."""
    found, last = {}, None
    for name, attempt in attempts.items():
        try:
            found[name] = str(attempt())
        except OSError as error:
            last = error
    if last is not None and not found:
        raise last
    return found


def read(path: str | int) -> str:
    """Return the start of a file."""
    with open(path, "rb") as file:
        return file.read(4096).decode(errors="replace")


# Never returning, crashing, and using up memory


@hostile.tool
def harmless(target: Target) -> int:
    """Return a number."""
    return 1


@hostile.tool
def loop(target: Target) -> int:
    """Never return."""
    while True:
        pass


@hostile.tool
def loop_in_c(target: Target) -> int:
    """Hold the interpreter lock in C."""
    return sum(range(10**12))


@hostile.tool
def regular_expression(target: Target) -> bool:
    """Match with exponential backtracking."""
    return re.match(r"(a+)+$", "a" * 60 + "b") is not None


@hostile.tool
def big_power(target: Target) -> int:
    """Compute a power that takes hours."""
    return int(pow(7, 10**10))


@hostile.tool
def deadlock(target: Target) -> int:
    """Wait for a lock that this thread holds."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
    return 0


@hostile.tool
def ignore_signals(target: Target) -> int:
    """Ignore all signals, and stop itself."""
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        pass


@hostile.tool
def signal_handlers(target: Target) -> int:
    """Handle every signal by waiting."""
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, lambda *_: time.sleep(1000))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(1000)
    return 0


@hostile.tool
def trace_function(target: Target) -> int:
    """Let a trace function loop after the call has returned."""

    def trace(*_: Any) -> Any:
        while True:
            time.sleep(0.01)

    threading.setprofile(trace)
    sys.setprofile(trace)
    return 1


@hostile.tool
def many_threads(target: Target) -> int:
    """Start threads that loop until no more can be started, and wait for them."""
    threads = []
    try:
        while True:
            threads.append(threading.Thread(target=time.sleep, args=(1000,), daemon=True))
            threads[-1].start()
    except RuntimeError:
        time.sleep(1000)
    return len(threads)


@hostile.tool
def fork_bomb(target: Target) -> int:
    """Fork, in each child too."""
    for _ in range(MAX_CHILDREN):
        if not os.fork():
            os._exit(0)
    return MAX_CHILDREN


@hostile.tool
def fork_bomb_in_c(target: Target) -> int:
    """Fork by system calls."""
    number = int(signal.SIGCHLD)
    attempts: dict[str, Callable[[], object]] = {
        "clone": lambda: _child(call("clone", number, 0, 0, 0, 0)),
        "clone3": lambda: _child(call("clone3", struct.pack("<8Q", 0, 0, 0, 0, number, 0, 0, 0), 64)),
    }
    return len(any_of(attempts))


def _child(pid: int) -> int:
    if not pid:
        os._exit(0)
    return pid


@hostile.tool
def one_allocation(target: Target) -> int:
    """Allocate 8 GiB."""
    return len(bytearray(8 << 30))


@hostile.tool
def many_allocations(target: Target) -> int:
    """Allocate small objects until there is no memory."""
    found: list[Any] = []
    while True:
        found.append([bytearray(1000) for _ in range(1000)])


@hostile.tool
def allocation_in_c(target: Target) -> int:
    """Allocate and use memory behind Python's back."""
    allocate = LIBC.malloc
    allocate.restype = ctypes.c_void_p
    done = 0
    while done < 8 << 30:
        memory = allocate(ctypes.c_size_t(16 << 20))
        if not memory:
            raise MemoryError
        ctypes.memset(memory, 1, 16 << 20)
        done += 16 << 20
    return done


@hostile.tool
def memory_files(target: Target) -> int:
    """Use more memory than permitted, in files that no limit of the address space counts."""
    done, piece = 0, bytes(1 << 20)
    files = []
    while done < target["memory_bytes"] + (16 << 20):
        files.append(os.memfd_create("hostile"))
        for _ in range(32):
            done += os.write(files[-1], piece)
    return done


@hostile.tool
def recursion(target: Target) -> int:
    """Recurse without end, through C."""
    sys.setrecursionlimit(2**31 - 1)

    def deeper(_: Any) -> int:
        return max(map(deeper, [0]))

    return deeper(0)


@hostile.tool
def recursion_in_c(target: Target) -> int:
    """Use up the stack of C."""
    sys.setrecursionlimit(2**31 - 1)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(first: int, second: int) -> int:
        LIBC.qsort(ctypes.create_string_buffer(b"ba"), 2, 1, kind(compare))
        return 0

    return compare(0, 0)


@hostile.tool
def segfault(target: Target) -> bytes:
    """Read address 0."""
    return ctypes.string_at(0)


@hostile.tool
def exit_process(target: Target) -> int:
    """End the process."""
    os._exit(7)


@hostile.tool
def abort(target: Target) -> int:
    """Abort."""
    os.abort()


# Exceptions and results


class Refusing(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise SystemExit("no text")


class Pretending(Exception):
    """An exception that pretends to be a refusal of the host."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return PolicyError

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        pass


class Pickled(Exception):
    """An exception that starts a program where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("kill -9 $$",)


class Looping(Exception):
    """An exception whose text never ends."""

    def __repr__(self) -> str:
        while True:
            pass

    __str__ = __repr__


@hostile.tool
def raise_refusing(target: Target) -> int:
    """Raise an exception whose text raises."""
    raise Refusing


@hostile.tool
def raise_pretending(target: Target) -> int:
    """Raise an exception of a false class."""
    raise Pretending


@hostile.tool
def raise_pickled(target: Target) -> int:
    """Raise an exception that is dangerous to unpickle."""
    raise Pickled


@hostile.tool
def raise_looping(target: Target) -> int:
    """Raise an exception whose text takes forever."""
    raise Looping


@hostile.tool
def raise_interrupt(target: Target) -> int:
    """Raise what means that the user has interrupted the host."""
    raise KeyboardInterrupt


@hostile.tool
def raise_exit(target: Target) -> int:
    """Raise what ends a process, with a handler that would run then."""
    atexit.register(Path(target["outside"], "file").write_text, "changed")
    raise SystemExit(3)


@hostile.tool
def raise_generator_exit(target: Target) -> int:
    """Raise what closes generators."""
    raise GeneratorExit


@hostile.tool
def raise_timeout(target: Target) -> int:
    """Raise an exception with the name of one of the host."""
    raise type("CallTimeout", (Exception,), {"code": "call.timeout"})("late")


@hostile.tool
def raise_memory_error(target: Target) -> int:
    """Raise an exception without any need."""
    raise MemoryError


@hostile.tool
def raise_long(target: Target) -> int:
    """Raise an error with a long text."""
    raise ToolFailed("x" * (30 << 20), code="hostile.long")


@hostile.tool
def raise_chain(target: Target) -> int:
    """Raise an error with ten thousand causes."""
    last = ToolFailed("first")
    for _ in range(10_000):
        following = ToolFailed("next")
        following.__cause__ = last
        last = following
    raise last


@hostile.tool
def unsendable(target: Target) -> Any:
    """Return what no other process can have."""
    return threading.Lock()


@hostile.tool
def cyclic(target: Target) -> list[Any]:
    """Return a list that contains itself."""
    found: list[Any] = []
    found.append(found)
    return found


@hostile.tool
def giant(target: Target) -> Any:
    """Return more than a message may contain."""
    return ["x" * (50 << 20)] * 5


class LeavesAtExit:
    """An object that changes a file when it is deleted."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __del__(self) -> None:
        Path(self.path).write_text("changed")


@hostile.tool
def delete_at_exit(target: Target) -> int:
    """Leave an object behind that acts when the process ends."""
    sys.modules["hostile_rest"] = LeavesAtExit(str(Path(target["outside"], "file")))  # type: ignore[assignment]
    sys.exit()


# Requests and items without end


@hostile.tool
def requests_without_end(rt: Runtime, target: Target) -> int:
    """Ask the host for something, forever."""
    while True:
        rt.now()


@hostile.tool
def errors_without_end(rt: Runtime, target: Target) -> int:
    """Make requests that fail, forever, and ignore the errors."""
    while True:
        with suppress(PolicyError):
            rt.require("acme:use:" + "x" * 100_000)


@hostile.tool
def updates_without_end(rt: Runtime, target: Target) -> int:
    """Change a variable within its own change, so that the host begins again."""

    def change(value: Any) -> int:
        rt.set_var("own", time.monotonic())
        return 1

    return int(rt.update_var("own", change))


@hostile.tool
def updates_within_updates(rt: Runtime, target: Target) -> int:
    """Change a variable within its own change, ever deeper."""
    sys.setrecursionlimit(10**6)

    def change(value: Any) -> Any:
        return rt.update_var("own", change)

    return int(rt.update_var("own", change))


@hostile.tool
def calls_without_end(rt: Runtime, target: Target) -> Any:
    """Call itself."""
    return rt.call_tool("hostile.calls_without_end", (target,))


@hostile.tool
def items_without_end(target: Target) -> Iterator[int]:
    """Yield integers forever."""
    while True:
        yield 1


# Files


@hostile.tool
def read_outside(target: Target) -> str:
    """Read a file outside the sandbox."""
    return read(target["secret"])


@hostile.tool
def read_sandbox(target: Target) -> str:
    """Read a file of the sandbox without a grant."""
    return read(target["inside"] + "/private")


@hostile.tool
def list_outside(target: Target) -> str:
    """List a directory outside."""
    return "token" if os.listdir(target["outside"]) else ""


@hostile.tool
def write_outside(target: Target) -> int:
    """Change a file outside."""
    return Path(target["outside"], "file").write_text("changed")


@hostile.tool
def append_outside(target: Target) -> int:
    """Append to a file outside, through a descriptor for the path alone."""
    directory = os.open(target["outside"], os.O_PATH)
    descriptor = os.open("file", os.O_WRONLY | os.O_APPEND, dir_fd=directory)
    return os.write(descriptor, b"changed")


@hostile.tool
def create_outside(target: Target) -> str:
    """Create files of every kind outside."""
    path = target["outside"] + "/new"
    attempts: dict[str, Callable[[], object]] = {
        "file": lambda: os.close(os.open(path + "1", os.O_CREAT | os.O_WRONLY)),
        "directory": lambda: os.mkdir(path + "2"),
        "pipe": lambda: os.mkfifo(path + "3"),
        "link": lambda: os.symlink("/etc", path + "4"),
        "hard link": lambda: os.link(target["secret"], path + "5"),
        "unnamed": lambda: os.open(target["outside"], os.O_TMPFILE | os.O_WRONLY),
    }
    return str(any_of(attempts))


@hostile.tool
def delete_outside(target: Target) -> str:
    """Delete a file outside."""
    os.unlink(target["outside"] + "/file")
    return "deleted"


@hostile.tool
def rename_outside(target: Target) -> str:
    """Rename a file outside."""
    os.rename(target["outside"] + "/file", target["outside"] + "/other")
    return "renamed"


@hostile.tool
def truncate_outside(target: Target) -> str:
    """Shorten a file outside."""
    os.truncate(target["outside"] + "/file", 1)
    return "shortened"


@hostile.tool
def change_metadata_outside(target: Target) -> str:
    """Change modes, times and attributes of a file outside."""
    path = target["outside"] + "/file"
    attempts: dict[str, Callable[[], object]] = {
        "mode": lambda: os.chmod(path, 0o755),
        "times": lambda: os.utime(path, (1, 1)),
        "owner": lambda: os.chown(path, 1, 1),
        "attributes": lambda: os.setxattr(path, "user.hostile", b"1"),
    }
    return str(any_of(attempts))


@hostile.tool
def read_through_proc(target: Target) -> str:
    """Read a file outside through the links of ``/proc``."""
    secret = target["secret"]
    descriptor = os.open(secret, os.O_PATH)
    os.chdir(os.path.dirname(secret))
    attempts: dict[str, Callable[[], object]] = {
        "root": lambda: read(f"/proc/self/root{secret}"),
        "directory": lambda: read(f"/proc/self/cwd/{os.path.basename(secret)}"),
        "descriptor": lambda: read(f"/proc/self/fd/{descriptor}"),
        "thread": lambda: read(f"/proc/thread-self/fd/{descriptor}"),
    }
    return str(any_of(attempts))


@hostile.tool
def open_by_handle(target: Target) -> str:
    """Open a file outside by its number, and not by its path."""
    handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0) + bytes(128))
    mount = ctypes.create_string_buffer(4)
    names = {"name_to_handle_at": NUMBERS["name_to_handle_at"], "open_by_handle_at": NUMBERS["open_by_handle_at"]}
    number, other = (ctypes.c_long(names[each][COLUMN] or 0) for each in names)
    path = ctypes.c_char_p(target["secret"].encode())
    if LIBC.syscall(number, ctypes.c_long(-100), path, handle, mount, ctypes.c_long(0)) < 0:
        raise OSError(ctypes.get_errno(), "name_to_handle_at")
    root = os.open(os.path.dirname(target["secret"]), os.O_PATH | os.O_DIRECTORY)
    readable = os.open(os.path.dirname(target["secret"]), os.O_RDONLY)
    found = LIBC.syscall(other, ctypes.c_long(readable), handle, ctypes.c_long(os.O_RDONLY))
    os.close(root)
    if found < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at")
    return os.read(found, 4096).decode()


@hostile.tool
def watch_outside(target: Target) -> str:
    """Watch what others do with a file outside."""
    descriptor = LIBC.inotify_init1(0)
    found = LIBC.inotify_add_watch(descriptor, target["secret"].encode(), 0x20)
    if found < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return "watched"


@hostile.tool
def fill_shared_memory(target: Target) -> int:
    """Fill ``/dev/shm``."""
    with open(f"/dev/shm/{target['name']}", "wb") as file:
        return sum(file.write(bytes(1 << 20)) for _ in range(8))


@hostile.tool
def fill_temporary_directory(target: Target) -> int:
    """Fill the directory for temporary files."""
    with open(f"/tmp/{target['name']}", "wb") as file:
        return file.write(bytes(1 << 20))


# Files, with a granted directory


@hostile.tool(policy=RAW)
def link_that_leads_outside(target: Target) -> str:
    """Follow a symbolic link of the granted directory that leads outside."""
    return read(target["inside"] + "/link")


@hostile.tool(policy=RAW)
def directory_link_that_leads_outside(target: Target) -> int:
    """Write through a symbolic link to a directory outside."""
    return Path(target["inside"], "links", "file").write_text("changed")


@hostile.tool(policy=RAW)
def create_link(target: Target) -> str:
    """Create a symbolic link in the granted directory, for others to follow."""
    os.symlink(target["secret"], target["inside"] + "/created")
    return "created"


@hostile.tool(policy=RAW)
def link_file_inside(target: Target) -> str:
    """Give a file outside a name in the granted directory, and read it there."""
    os.link(target["secret"], target["inside"] + "/linked")
    return read(target["inside"] + "/linked")


@hostile.tool(policy=RAW)
def move_file_inside(target: Target) -> str:
    """Move a file outside into the granted directory, and read it there."""
    os.rename(target["outside"] + "/token", target["inside"] + "/moved")
    return read(target["inside"] + "/moved")


@hostile.tool(policy=RAW)
def move_directory_outside(target: Target) -> str:
    """Move a directory of the granted one outside."""
    os.rename(target["inside"] + "/directory", target["outside"] + "/directory")
    return "moved"


@hostile.tool(policy=RAW)
def parent_of_the_granted_directory(target: Target) -> str:
    """Leave the granted directory by its parent."""
    directory = os.open(target["inside"], os.O_RDONLY)
    return read(os.open("../../secret", os.O_RDONLY, dir_fd=directory))


@hostile.tool(policy=RAW)
def sibling_of_the_granted_directory(target: Target) -> str:
    """Read another directory of the sandbox."""
    return read(target["inside"] + "/../other/token")


@hostile.tool(policy=RAW)
def mount_point(target: Target) -> str:
    """Read what is mounted in the granted directory."""
    return read(target["inside"] + "/mounted/token")


@hostile.tool(policy=RAW)
def mount_point_by_runtime(rt: Runtime, target: Target) -> str:
    """Read the same file through the host."""
    return rt.fs.read_text("inside/mounted/token")


@hostile.tool(policy=RAW)
def execute_file_of_the_sandbox(target: Target) -> str:
    """Write a program into the granted directory, and start it."""
    path = Path(target["inside"], "program")
    path.write_text(f"#!/bin/sh\necho changed > {target['outside']}/file")
    path.chmod(0o755)
    return str(subprocess.run([str(path)], check=True).returncode)


# Descriptors and the environment


@hostile.tool
def inherited_descriptors(target: Target) -> str:
    """Read all open descriptors."""
    found = []
    for number in range(1024):
        try:
            found.append(os.pread(number, 4096, 0).decode(errors="replace"))
        except OSError:
            continue
    return _nonempty("".join(found))


@hostile.tool
def environment(target: Target) -> str:
    """Read the environment."""
    return _nonempty(" ".join(value for name, value in os.environ.items() if name not in ("LANG", "TMPDIR")))


def _nonempty(text: str) -> str:
    if not text:
        raise PermissionError("there is nothing to read")
    return text


@hostile.tool
def environments_of_processes(target: Target) -> str:
    """Read the environment of every process."""
    pids = [str(target["victim"]), *filter(str.isdigit, os.listdir("/proc"))]
    return str(any_of({each: lambda each=each: read(f"/proc/{each}/environ") for each in pids}))  # type: ignore[misc]


@hostile.tool
def environment_of_the_victim(target: Target) -> str:
    """Read the environment and the command line of a process."""
    return str(
        any_of({each: lambda each=each: read(f"/proc/{target['victim']}/{each}") for each in ("environ", "cmdline")})
    )  # type: ignore[misc]


# Processes


def kill(target: Target, pid: int, number: int) -> str:
    """Send a signal in every way; not to process 1, because its group would be all processes."""
    if pid <= 1:
        raise ProcessLookupError("there is no such process")
    info = struct.pack("<iii", number, 0, -1) + bytes(116)
    attempts: dict[str, Callable[[], object]] = {
        "kill": lambda: call("kill", pid, number),
        "tgkill": lambda: call("tgkill", pid, pid, number),
        "tkill": lambda: call("tkill", pid, number),
        "queue": lambda: call("rt_sigqueueinfo", pid, number, info),
        "descriptor": lambda: call("pidfd_send_signal", os.pidfd_open(pid), number, None, 0),
        "group": lambda: call("kill", -pid, number),
    }
    return str(any_of(attempts))


@hostile.tool
def kill_victim(target: Target) -> str:
    """Kill a process of the user."""
    return kill(target, target["victim"], signal.SIGKILL)


@hostile.tool
def signal_host(target: Target) -> str:
    """Send a signal to the host."""
    return kill(target, target["host"], signal.SIGUSR1)


@hostile.tool
def kill_parent(target: Target) -> str:
    """Kill the process that has started this one."""
    return kill(target, os.getppid(), signal.SIGKILL)


@hostile.tool
def kill_launcher(target: Target) -> str:
    """Kill the process that has started the zygotes."""
    return kill(target, target["launcher"], signal.SIGKILL)


@hostile.tool
def kill_neighbour(target: Target) -> str:
    """Kill the worker of another engine."""
    return kill(target, target["neighbour"], signal.SIGKILL)


@hostile.tool
def signal_everything(target: Target) -> str:
    """Test whether a signal to all processes, or to the own group, would reach any."""
    return str(any_of({"all": lambda: call("kill", -1, 0), "group": lambda: call("kill", 0, 0)}))


@hostile.tool
def signal_by_descriptor(target: Target) -> str:
    """Let the kernel signal another process when this connection can be read."""
    first, _ = socket.socketpair()
    fcntl.fcntl(first, 8, target["victim"])  # F_SETOWN
    return "accepted"


@hostile.tool
def trace_victim(target: Target) -> str:
    """Trace a process."""
    call("ptrace", 16, target["victim"], 0, 0)  # PTRACE_ATTACH
    os.waitpid(target["victim"], 0x40000000)
    call("ptrace", 17, target["victim"], 0, 0)
    return "traced"


@hostile.tool
def trace_itself(target: Target) -> str:
    """Let the parent trace this process."""
    return str(call("ptrace", 0, 0, 0, 0))


@hostile.tool
def memory_of_the_victim(target: Target) -> str:
    """Read the memory of a process through ``/proc``."""
    return _memory(target["victim"], target["address"])


@hostile.tool
def memory_of_the_neighbour(target: Target) -> str:
    """Read the memory of the worker of another engine through ``/proc``."""
    return _memory(target["neighbour"], target["neighbour_address"])


def _memory(pid: int, address: int) -> str:
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    return os.pread(descriptor, 64, address).decode()


@hostile.tool
def copy_memory_of_the_victim(target: Target) -> str:
    """Read the memory of a process by a system call."""
    return _copied(target["victim"], target["address"])


@hostile.tool
def copy_memory_of_the_neighbour(target: Target) -> str:
    """Read the memory of the worker of another engine by a system call."""
    return _copied(target["neighbour"], target["neighbour_address"])


def _copied(pid: int, address: int) -> str:
    buffer = ctypes.create_string_buffer(64)
    own = struct.pack("PN", ctypes.addressof(buffer), 64)
    other = struct.pack("PN", address, 64)
    call("process_vm_readv", pid, own, 1, other, 1, 0)
    return buffer.raw.decode(errors="replace")


@hostile.tool
def write_memory_of_the_victim(target: Target) -> str:
    """Overwrite the memory of a process."""
    buffer = ctypes.create_string_buffer(b"changed")
    own = struct.pack("PN", ctypes.addressof(buffer), 7)
    return str(call("process_vm_writev", target["victim"], own, 1, struct.pack("PN", target["address"], 7), 1, 0))


@hostile.tool
def descriptor_of_the_victim(target: Target) -> str:
    """Take a descriptor of a process."""
    found = call("pidfd_getfd", os.pidfd_open(target["victim"]), target["memory_file"], 0)
    return os.pread(found, 64, 0).decode()


@hostile.tool
def memory_file_of_the_victim(target: Target) -> str:
    """Open a memory file of a process through ``/proc``."""
    return read(f"/proc/{target['victim']}/fd/{target['memory_file']}")


@hostile.tool
def compare_processes(target: Target) -> str:
    """Find out what two processes share."""
    return str(call("kcmp", target["victim"], target["victim"], 0, 0, 0))


@hostile.tool
def limit_victim(target: Target) -> str:
    """Lower a resource limit of a process."""
    return str(resource.prlimit(target["victim"], resource.RLIMIT_CORE, (0, 0)))


@hostile.tool
def slow_victim_down(target: Target) -> str:
    """Give a process a low priority."""
    os.setpriority(os.PRIO_PROCESS, target["victim"], 19)
    return "changed"


@hostile.tool
def bind_victim(target: Target) -> str:
    """Bind a process to one processor."""
    os.sched_setaffinity(target["victim"], {min(os.sched_getaffinity(0))})
    return "changed"


# Memory that is shared by name or number


@hostile.tool
def shared_memory_by_name(target: Target) -> str:
    """Read a file of ``/dev/shm``."""
    return read(f"/dev/shm/{target['shared_name']}")


@hostile.tool
def shared_memory_by_number(target: Target) -> str:
    """Read a segment of shared memory."""
    number = LIBC.shmget(target["shared_key"], 0, 0)
    if number < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    attach = LIBC.shmat
    attach.restype = ctypes.c_void_p
    return ctypes.string_at(attach(number, None, 0o10000), 64).decode(errors="replace")


@hostile.tool
def message_queues(target: Target) -> str:
    """Create queues and semaphores that other processes see."""
    attempts: dict[str, Callable[[], object]] = {
        "queue": lambda: call("msgctl", call("msgget", 0, 0o1600), 0, None),
        "semaphores": lambda: call("semctl", call("semget", 0, 1, 0o1600), 0, 0, 0),
        "named": lambda: _queue(target["name"].encode()),
    }
    return str(any_of(attempts))


def _queue(name: bytes) -> int:
    call("mq_open", name, 0o102, 0o600, None)
    return call("mq_unlink", name)


# Sockets


@hostile.tool
def tcp(target: Target) -> str:
    """Connect to a server of this machine."""
    with socket.create_connection(("127.0.0.1", target["tcp"]), 1) as connection:
        connection.sendall(b"hostile")
    return "connected"


@hostile.tool
def udp(target: Target) -> str:
    """Send a datagram to a server of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        return str(connection.sendto(b"hostile", ("127.0.0.1", target["udp"])))


@hostile.tool
def tcp_server(target: Target) -> str:
    """Wait for connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname())


@hostile.tool
def unix_path(target: Target) -> str:
    """Connect to a Unix socket with a path."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(target["unix"])
    return "connected"


@hostile.tool
def unix_abstract(target: Target) -> str:
    """Connect to a Unix socket with an abstract name."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + target["abstract"])
    return "connected"


@hostile.tool
def unix_datagram(target: Target) -> str:
    """Send a datagram to a Unix socket, from a pair of sockets."""
    first, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return str(first.sendto(b"hostile", "\0" + target["abstract_datagram"]))


def open_socket(family: int, kind: int, protocol: int = 0) -> str:
    """Open a socket."""
    with socket.socket(family, kind, protocol):
        return "opened"


@hostile.tool
def raw_socket(target: Target) -> str:
    """Open a raw socket."""
    return open_socket(socket.AF_INET, socket.SOCK_RAW, 1)


@hostile.tool
def packet_socket(target: Target) -> str:
    """Open a socket that sees every packet."""
    return open_socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300)


@hostile.tool
def netlink_socket(target: Target) -> str:
    """Open a socket to the kernel's network."""
    return open_socket(socket.AF_NETLINK, socket.SOCK_RAW)


@hostile.tool
def vsock_socket(target: Target) -> str:
    """Open a socket to the host of a virtual machine."""
    return open_socket(40, socket.SOCK_STREAM)


@hostile.tool
def crypto_socket(target: Target) -> str:
    """Open a socket to the kernel's cryptography."""
    return open_socket(38, socket.SOCK_SEQPACKET)


@hostile.tool
def any_socket(target: Target) -> str:
    """Open sockets of all families."""
    attempts = {
        f"{family} {kind}": lambda family=family, kind=kind: open_socket(family, kind)
        for family in range(46)
        for kind in (1, 2, 3, 5)
    }
    return str(any_of(attempts))  # type: ignore[arg-type]


@hostile.tool
def resolve_name(target: Target) -> str:
    """Ask for the address of a name, which may carry data."""
    found = socket.getaddrinfo("localhost", 80)
    return str(found) + tcp(target)


# The kernel


@hostile.tool
def io_uring(target: Target) -> str:
    """Use a part of the kernel that filters of system calls do not see."""
    return str(call("io_uring_setup", 1, bytes(120)))


@hostile.tool
def mount(target: Target) -> str:
    """Mount a file system."""
    place = target["outside"].encode()
    call("mount", b"tmpfs", place, b"tmpfs", 0, None)
    call("umount2", place, 0)
    return "mounted"


@hostile.tool
def unshare(target: Target) -> str:
    """Enter a user namespace, in which everything is permitted."""
    return str(call("unshare", 0x10000000 | 0x20000))


@hostile.tool
def enter_namespace(target: Target) -> str:
    """Enter a namespace of another process."""
    descriptor = os.open(f"/proc/{target['victim']}/ns/uts", os.O_RDONLY)
    return str(call("setns", descriptor, 0))


@hostile.tool
def enter_namespaces_by_descriptor(target: Target) -> str:
    """Enter all namespaces of another process."""
    return str(call("setns", os.pidfd_open(target["victim"]), 0x4000000 | 0x40000000))


@hostile.tool
def chroot(target: Target) -> str:
    """Change the root directory."""
    os.chroot(target["outside"])
    return "changed"


@hostile.tool
def pivot_root(target: Target) -> str:
    """Exchange the root directory."""
    return considered("pivot_root", b"/no/such/directory", b"/no/such/directory")


@hostile.tool
def keys(target: Target) -> str:
    """Read and add keys of the user."""
    attempts: dict[str, Callable[[], object]] = {
        "read": lambda: call("keyctl", 0, -4, 0),
        "add": lambda: call("add_key", b"user", target["name"].encode(), b"x", 1, -2),
    }
    return str(any_of(attempts))


@hostile.tool
def bpf(target: Target) -> str:
    """Load a program into the kernel."""
    return considered("bpf", 5, bytes(120), 120)


@hostile.tool
def perf(target: Target) -> str:
    """Measure other processes."""
    return considered("perf_event_open", None, 0, -1, -1, 0)


@hostile.tool
def userfaultfd(target: Target) -> str:
    """Delay the kernel when it reads memory."""
    return str(call("userfaultfd", 0))


@hostile.tool
def personality(target: Target) -> str:
    """Change how the kernel treats this process."""
    return str(call("personality", 0x40000))


@hostile.tool
def type_into_terminal(target: Target) -> str:
    """Type a command into the terminal of the host."""
    try:
        fcntl.ioctl(0, 0x5412, b"x")
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
    return "considered"


@hostile.tool
def raise_limits(target: Target) -> str:
    """Raise the resource limits of this process."""
    attempts: dict[str, Callable[[], object]] = {
        name: lambda name=name: resource.setrlimit(getattr(resource, name), (-1, -1))  # type: ignore[misc]
        for name in ("RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_CORE")
    }
    try:
        return str(any_of(attempts))
    except ValueError as error:
        raise PermissionError(str(error)) from None


@hostile.tool
def become_another_user(target: Target) -> str:
    """Change the user of this process."""
    return str(call("setresuid", 65534, 65534, 65534))


@hostile.tool
def gain_capabilities(target: Target) -> str:
    """Take back a privilege of the superuser."""
    chroot = 1 << 18
    return str(call("capset", struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", chroot, chroot, 0, 0, 0, 0)))


@hostile.tool
def become_inspectable(target: Target) -> str:
    """Permit other processes to inspect this one, and outlive the parent."""
    attempts: dict[str, Callable[[], object]] = {
        "dumpable": lambda: call("prctl", 4, 1, 0, 0, 0),
        "parent": lambda: call("prctl", 1, 0, 0, 0, 0),
    }
    return str(any_of(attempts))


# Programs


@hostile.tool
def start_program(target: Target) -> str:
    """Start a program in every way of the standard library."""
    path = f"echo changed > {target['outside']}/file"
    attempts: dict[str, Callable[[], object]] = {
        "subprocess": lambda: subprocess.run(["/bin/sh", "-c", path], check=True),
        "spawn": lambda: os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", path], {}), 0),
        "system": lambda: _zero(os.system(path)),
        "popen": lambda: _zero(os.popen(path).close() or 0),
    }
    return str(any_of(attempts))


def _zero(code: int) -> int:
    if code:
        raise PermissionError(code, "the program was not started")
    return code


@hostile.tool
def replace_process(target: Target) -> str:
    """Replace this process by a program."""
    os.execv("/bin/sh", ["sh", "-c", f"echo changed > {target['outside']}/file"])


@hostile.tool
def execute_memory_file(target: Target) -> str:
    """Execute a program in memory."""
    descriptor = os.memfd_create("program")
    os.write(descriptor, f"#!/bin/sh\necho changed > {target['outside']}/file\n".encode())
    os.set_inheritable(descriptor, True)
    os.execve(descriptor, ["program"], {})


@hostile.tool
def start_worker_process(target: Target) -> str:
    """Start a process with multiprocessing."""
    child = multiprocessing.get_context("fork").Process(target=Path(target["outside"], "file").write_text, args=["x"])
    child.start()
    child.join()
    return "started"


@hostile.tool(policy=PROGRAM)
def start_another_program(target: Target) -> str:
    """Start a program that is not the granted one."""
    return str(subprocess.run(["/bin/sh", "-c", f"echo changed > {target['outside']}/file"], check=True).returncode)


@hostile.tool(policy=PROGRAM)
def copy_granted_program(target: Target) -> str:
    """Run a program in memory, where one program may be started."""
    descriptor = os.memfd_create("program")
    os.write(descriptor, Path("/bin/sh").resolve().read_bytes())
    return str(
        subprocess.run(
            ["sh", "-c", f"echo changed > {target['outside']}/file"],
            executable=f"/proc/self/fd/{descriptor}",
            pass_fds=[descriptor],
            check=True,
        ).returncode
    )


@hostile.tool(policy=PROGRAM)
def load_program_with_loader(target: Target) -> str:
    """Let the loader of programs run another program."""
    loader = next(Path("/lib64").glob("ld-*"), None) or next(Path("/lib").glob("ld-*"))
    return str(
        subprocess.run(
            [str(loader), "/bin/sh", "-c", f"echo changed > {target['outside']}/file"], check=True
        ).returncode
    )


@hostile.tool(policy=PROGRAM)
def leave_daemon(target: Target) -> int:
    """Leave a program behind that has no connection to this process."""
    child = os.fork()
    if not child:
        os.setsid()
        if not os.fork():
            os.closerange(0, 1024)
            os.execvp("sleep", ["sleep", target["seconds"]])
        os._exit(0)
    os.waitpid(child, 0)
    while target["confined"]:
        time.sleep(0.1)
    return 1
