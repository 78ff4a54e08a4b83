"""The launcher of a confined program: it confines a process, which then becomes the program, and ends what that leaves.

This file is a program: ``python -I -S program.py SETUP [NAME [ARG …]]``. SETUP is a JSON object:

- ``program``: the path of the program; NAME is its ``argv[0]``;
- ``files``: pairs of a path or an inherited descriptor, and words of `neuroscript.isolation.landlock.ACCESS`;
- ``network``, ``memory_bytes``, ``cpu_seconds``, ``open_files`` and ``file_bytes``: as in
  `neuroscript.isolation.confinement.Rules`; a null means no limit;
- ``require``: the layers without which the program is not started;
- ``environment``: the names of the variables that the program receives, or null for all. ``TMPDIR`` names its own
  temporary directory where it has one.

Where a PID namespace is permitted, the program is in one of its own, and nothing that it started outlives it or this
process. Elsewhere this process adopts and kills what the program leaves, unless it is killed itself.

The exit code is that of the program. If a signal ends the program, the same signal ends this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing would take longer to import than everything else here
    from collections.abc import Callable
    from typing import Any, Final, NoReturn

PACKAGES: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The directory of the package, which ``-I -S`` leaves out."""

NOT_CONFINED: Final = 125
NOT_EXECUTABLE: Final = 126
"""Exit codes when the program was not started, as those of ``env``; the reason is written to standard error."""

ASKING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals for the program, which is in the same process group. They end the launcher while there is no program yet;
after that, it ignores them and ends with the program."""

STATUS_BYTES: Final = 4

BEGUN: Final = b"b"
"""What process 1 of the namespace reports when the process of the program exists."""


def main() -> NoReturn:
    """Run the program of the command line, and end as it does."""
    setup, argv = json.loads(sys.argv[1]), sys.argv[2:]
    sys.path.append(PACKAGES)
    _handle_requests(signal.SIG_DFL)
    from neuroscript.isolation import namespaces
    from neuroscript.isolation.confinement import try_layers
    from neuroscript.isolation.system_calls import PR_SET_PDEATHSIG, prctl

    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if not try_layers()["pidns"]:
        layers = namespaces.enter(("pidns",))
        status = _run_in_namespace(setup, argv, layers)
    else:
        namespaces.adopt_orphans()
        status = _run(setup, argv, (), lambda: _handle_requests(signal.SIG_IGN))
        while namespaces.kill_children():  # what the program has left
            os.wait()
    _end_as(status)


def _run_in_namespace(setup: dict[str, Any], argv: list[str], layers: tuple[str, ...]) -> int:
    """Run the program below process 1 of a PID namespace, and return its wait status."""
    from neuroscript.isolation.namespaces import end_with_parent

    reading, writing = os.pipe()
    own = os.pidfd_open(os.getpid())
    first = os.fork()
    if not first:
        try:
            end_with_parent(own)
            status = _run(setup, argv, layers, lambda: os.write(writing, BEGUN))
            os.write(writing, status.to_bytes(STATUS_BYTES, "little"))
        finally:
            os._exit(0)
    os.close(writing)
    _release_streams()
    if os.read(reading, len(BEGUN)):
        _handle_requests(signal.SIG_IGN)
    data = os.read(reading, STATUS_BYTES)
    ended = os.waitpid(first, 0)[1]
    return int.from_bytes(data, "little") if data else ended


def _run(setup: dict[str, Any], argv: list[str], layers: tuple[str, ...], begun: Callable[[], object]) -> int:
    """Run the program, wait until it has ended, and return its wait status.

    Args:
        begun: Called when its process exists.
    """
    from neuroscript.isolation.namespaces import end_with_parent

    own = os.pidfd_open(os.getpid())
    program = os.fork()
    if not program:
        try:
            end_with_parent(own)
            _become(setup, argv, layers)
        except Exception as error:
            _fail(NOT_CONFINED, str(error))
        finally:
            os._exit(NOT_CONFINED)
    begun()
    _release_streams()
    while True:
        ended, status = os.wait()
        if ended == program:
            return status


def _become(setup: dict[str, Any], argv: list[str], layers: tuple[str, ...]) -> NoReturn:
    """Confine this process, and turn it into the program."""
    from neuroscript.isolation.confinement import TEMPORARY_BYTES, Rules, confine

    files = tuple((place, frozenset(words)) for place, words in setup["files"])
    limits = {name: sys.maxsize if setup[name] is None else setup[name] for name in ("memory_bytes", "open_files")}
    rules = Rules(
        files=files,
        network=setup["network"],
        execute=True,
        cpu_seconds=setup["cpu_seconds"],
        file_bytes=setup["file_bytes"],
        temporary_bytes=TEMPORARY_BYTES,
        **limits,
    )
    names = os.environ if setup["environment"] is None else setup["environment"]
    variables = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.pop("TMPDIR", None)
    found = (*layers, *confine(rules, in_pid_namespace="pidns" in layers))
    if "TMPDIR" in os.environ:  # it has a temporary directory of its own
        variables["TMPDIR"] = os.environ["TMPDIR"]
    missing = [each for each in setup["require"] if each not in found]
    if missing:
        _fail(NOT_CONFINED, f"this system does not provide what the policy requires: {', '.join(missing)}")
    for place, _ in files:
        if isinstance(place, int):
            os.close(place)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(setup["program"], argv, variables)  # noqa: S606
    except OSError as error:
        _fail(NOT_EXECUTABLE, f"the program cannot be executed: {error.strerror}")


def _handle_requests(handler: signal.Handlers) -> None:
    for number in ASKING:
        signal.signal(number, handler)


def _fail(code: int, text: str) -> NoReturn:
    with suppress(OSError):
        os.write(2, f"neuroscript: the program was not started: {text}\n".encode(errors="replace"))
    os._exit(code)


def _release_streams() -> None:
    """Leave the streams to the program, so that they end with it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _end_as(status: int) -> NoReturn:
    """End in the same way as a process with this wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
