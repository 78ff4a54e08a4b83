"""What a process does to itself before it runs code that is not trusted.

Each layer closes what the others leave open:

- Resource limits: memory, processor time, and sizes of files.
- Namespaces: the network, memory shared by number, and with a read-only mount the metadata of files.
- Landlock: the content of files, signals, and abstract sockets.
- Capabilities: what is left of the superuser.
- Seccomp: new processes, sockets of every kind, metadata of files, and parts of the kernel that no tool needs.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final, NamedTuple

from neuroscript.isolation import landlock, seccomp
from neuroscript.isolation.child import in_child
from neuroscript.isolation.namespaces import (
    drop_capabilities,
    enter,
    enter_user_namespace,
    forbid_inspection,
    make_read_only,
    mount_memory,
)
from neuroscript.isolation.system_calls import LIBC, MISSING, forbid_new_privileges

if sys.platform != "win32":
    import resource

PACKAGES: Final = ("site-packages", "dist-packages")
"""Names of directories on ``sys.path`` that a package installer fills."""

SHARED_PREFIXES: Final = ("/", "/usr", "/usr/local", "/opt")
"""Prefixes of an interpreter that contain more than Python."""

LIBRARIES: Final = ("/lib64", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
SYSTEM_FILES: Final = (
    *("/usr/share/zoneinfo", "/etc/localtime", "/etc/timezone"),
    *("/usr/lib/locale", "/usr/share/locale", "/etc/locale.alias"),
    *("/etc/mime.types", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"),
)
"""Time zones, locales, and the files that modules of the standard library open."""

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")
"""Devices that a process may write to, which changes nothing."""

NETWORK_FILES: Final = (
    *("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/usr/share/ca-certificates"),
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
)
"""Certificates, and how names of hosts are resolved."""

TEMPORARY_PLACES: Final = ("/var/tmp", "/dev/shm", "/tmp")  # noqa: S108
"""Where a process may find a temporary directory of its own: at the first one that hides no file of its rules."""

DEVICE_WORDS: Final = frozenset({"read", "write"})

TEMPORARY_WORDS: Final = frozenset({"read", "list", "write", "delete"})

TEMPORARY_BYTES: Final = 64 << 20
"""Size of the temporary directory of a worker."""


class Rules(NamedTuple):
    """What a process can still do.

    Attributes:
        files: A path or an open descriptor, with words of `neuroscript.isolation.landlock.ACCESS`. A directory stands
            for all that is below it. Paths that do not exist are skipped.
        network: Whether it may use the internet.
        execute: Whether it may start processes and programs.
        memory_bytes: The size of its address space.
        cpu_seconds: The processor time that it may use, or None for any.
        open_files: How many descriptors it may have.
        file_bytes: How large a file may become.
        temporary_bytes: How large its own temporary directory may become, which is in memory and ends with the process;
            0 means that it has none. It needs a mount namespace.
    """

    files: tuple[tuple[int | str, frozenset[str]], ...]
    network: bool
    execute: bool
    memory_bytes: int
    cpu_seconds: int | None
    open_files: int
    file_bytes: int
    temporary_bytes: int = 0


def confine(rules: Rules, *, namespaces: bool = True, in_pid_namespace: bool = False) -> tuple[str, ...]:
    """Confine this process, and everything that it starts, for the rest of its life.

    Call it with one thread, after everything that needs ``/proc``. A layer that this system lacks is left out.

    Args:
        namespaces: Whether to enter namespaces.
        in_pid_namespace: Whether the process is in a PID namespace that contains nothing else. There, or where Landlock
            confines signals, the programs of a process that may execute may send signals; elsewhere they may not.

    Returns:
        The layers that are in force, from `available`, except ``pidns``. The variable ``TMPDIR`` names the temporary
        directory if the process has one.

    Raises:
        OSError: A layer that works on this system failed. The process is partly confined, and must end.
    """
    missing = available()
    layers = []
    if not missing["rlimits"]:
        limit_resources(rules)
        layers.append("rlimits")
    if LIBC is None:
        return tuple(layers)
    forbid_new_privileges()
    files = (*rules.files, *((device, DEVICE_WORDS) for device in DEVICES))
    writable = [place for place, words in files if words & {"write", "delete"} and _is_on_disk(place)]
    wanted = {"netns": not rules.network, "ipcns": True, "mountns": bool(writable or rules.temporary_bytes)}
    layers += enter([name for name, is_wanted in wanted.items() if namespaces and is_wanted and not missing[name]])
    is_read_only = "mountns" in layers and bool(writable)
    if is_read_only:
        make_read_only(writable)
    if "mountns" in layers and rules.temporary_bytes:
        files = (*files, *((each, TEMPORARY_WORDS) for each in _mounted_temporary(rules)))
    if not missing["landlock"]:
        landlock.restrict(files, network=rules.network)
        layers.append("landlock")
    if not missing["capabilities"]:
        drop_capabilities()
        layers.append("capabilities")
    if not rules.execute:
        forbid_inspection()  # after the namespaces, because files of /proc belong to the superuser then
    if not missing["seccomp"]:
        signals = rules.execute and (in_pid_namespace or landlock.confines_signals())
        seccomp.restrict(network=rules.network, execute=rules.execute, signals=signals, metadata=is_read_only)
        layers.append("seccomp")
    return tuple(layers)


def _is_on_disk(place: int | str) -> bool:
    """Return whether there is a file or a directory; a device is writable on a read-only mount too."""
    try:
        mode = os.stat(place).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _mounted_temporary(rules: Rules) -> tuple[str, ...]:
    """Give this process a temporary directory of its own if possible, and return its path."""
    used = [_path_of(place) for place, _ in rules.files]
    for place in TEMPORARY_PLACES:
        if os.path.realpath(place) == place and not any(_overlap(each, place) for each in used):
            try:
                mount_memory(place, rules.temporary_bytes)
            except OSError:  # there is no such directory
                continue
            os.environ["TMPDIR"] = place
            if "tempfile" in sys.modules:
                import tempfile

                tempfile.tempdir = place  # it remembers another one
            return (place,)
    return ()


def _overlap(path: str, other: str) -> bool:
    return path == other or _is_below(path, other) or _is_below(other, path)


def _path_of(place: int | str) -> str:
    return os.path.realpath(f"/proc/self/fd/{place}" if isinstance(place, int) else place)


def limit_resources(rules: Rules) -> None:
    """Lower the resource limits of this process; a limit that is lower already remains."""
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": rules.memory_bytes,
        "RLIMIT_NOFILE": rules.open_files,
        "RLIMIT_FSIZE": rules.file_bytes,
    }
    for name, limit in limits.items():
        _lower(name, limit, limit)
    if rules.cpu_seconds is not None:
        _lower("RLIMIT_CPU", rules.cpu_seconds, rules.cpu_seconds + 1)  # process 1 of a namespace ignores SIGXCPU


def _lower(name: str, soft: int, hard: int) -> None:
    kind = getattr(resource, name)
    now = [sys.maxsize if each == resource.RLIM_INFINITY else each for each in resource.getrlimit(kind)]
    try:
        resource.setrlimit(kind, (min(soft, *now), min(hard, now[1])))
    except (OSError, ValueError):  # macOS refuses limits of the address space
        if sys.platform == "linux":
            raise


def available() -> dict[str, str]:
    """Return each layer with ``""``, or with the reason why it does not work on this system.

    The layers are tried in a new process. The result is stored for the rest of this process, and its forks inherit it.
    """
    return dict(_available())


@cache
def _available() -> dict[str, str]:
    if sys.platform != "linux":
        reason = "" if hasattr(os, "fork") else "needs resource limits"
        return {name: reason if name == "rlimits" else MISSING for name in ATTEMPTS}
    if _tried:
        return _tried
    import subprocess

    # A fork of this process would try them with the locks and threads that libraries leave in it.
    packages = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [sys.executable, "-I", "-S", "-c", TRYING, packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        return dict.fromkeys(ATTEMPTS, "the process that tries it could not be started")
    return {name: str(reason) for name, reason in json.loads(done.stdout).items()}


TRYING: Final = """\
import json, sys
sys.path.append(sys.argv[1])
from neuroscript.isolation.confinement import try_layers
print(json.dumps(try_layers()))
"""
"""The program of the new process."""

_tried: dict[str, str] = {}


def try_layers() -> dict[str, str]:
    """Try each layer in a forked child, and return what `available` then returns in this process and its forks.

    Call it in a process that has one thread, and has never had another.
    """
    _tried.update({name: in_child(attempt) for name, attempt in ATTEMPTS.items()})
    return _tried


def _try_limits() -> str:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return ""


def _try_user_namespace() -> str:
    user = os.getuid()
    enter_user_namespace()
    return "" if os.getuid() == user else "the user id is lost"


def _try_namespace(name: str) -> str:
    enter((name,))
    return ""


def _try_pid_namespace() -> str:
    enter(("pidns",))
    first = os.fork()
    if not first:
        os._exit(os.getpid())
    return "" if os.waitpid(first, 0)[1] == 1 << 8 else "the child is not process 1"


def _try_mount_namespace() -> str:
    enter(("mountns",))
    make_read_only((os.path.dirname(__file__),))
    return ""


def _try_landlock() -> str:
    landlock.restrict(())
    try:
        os.listdir("/")
    except PermissionError:
        return ""
    return "it does not refuse anything"


def _try_capabilities() -> str:
    drop_capabilities()
    return ""


def _try_seccomp() -> str:
    seccomp.restrict(network=False, execute=False)
    try:
        os.fork()
    except PermissionError:
        return ""
    return "it does not refuse anything"


ATTEMPTS: Final[dict[str, Callable[[], str]]] = {
    "rlimits": _try_limits,
    "userns": _try_user_namespace,
    "pidns": _try_pid_namespace,
    "netns": partial(_try_namespace, "netns"),
    "ipcns": partial(_try_namespace, "ipcns"),
    "mountns": _try_mount_namespace,
    "landlock": _try_landlock,
    "capabilities": _try_capabilities,
    "seccomp": _try_seccomp,
}
"""What is tried for each layer."""


def read_list(*, network: bool = False) -> tuple[str, ...]:
    """Return what every worker may read: directories with all that is below them, and files.

    The list contains the interpreter, installed packages, shared libraries, time zones and locales. It never contains
    the working directory, the home directory, or a directory that a user added to ``sys.path``.

    Args:
        network: Whether to add certificates, and the files that resolve names of hosts.
    """
    places = (*_python(), *_libraries(), *SYSTEM_FILES, *(NETWORK_FILES if network else ()))
    found = {os.path.realpath(place) for place in places if os.path.exists(place)}
    return tuple(sorted(place for place in found if not any(_is_below(place, other) for other in found)))


def _python() -> Iterator[str]:
    """Yield the interpreter, the standard library, installed packages, and this package."""
    yield from (prefix for prefix in (sys.prefix, sys.base_prefix) if _is_own(prefix))
    yield os.path.dirname(os.__file__)
    names = ("lib-dynload", *PACKAGES)
    yield from (each for each in sys.path if os.path.isabs(each) and os.path.basename(each) in names)
    yield os.path.dirname(os.path.dirname(__file__))


def _is_own(prefix: str) -> bool:
    """Return whether a prefix contains only an interpreter or an environment."""
    real = os.path.realpath(prefix)
    others = (os.path.realpath(os.path.expanduser("~")), _working_directory())
    return real not in SHARED_PREFIXES and not any(real == other or _is_below(other, real) for other in others)


def _working_directory() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # it is gone
        return "/"


def _is_below(path: str, directory: str) -> bool:
    return path != directory and path.startswith(f"{directory.rstrip('/')}/")


def _libraries() -> Iterator[str]:
    """Yield the directories of shared libraries; that of the processor alone where ``/usr/lib`` contains more."""
    architecture = getattr(sys.implementation, "_multiarch", "")
    for directory in ("/lib", "/usr/lib"):
        own = f"{directory}/{architecture}"
        yield own if architecture and os.path.isdir(own) else directory
    yield from LIBRARIES
