"""Programs that run confined: what they can reach, and the words that start them so."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from neuroscript.errors import ToolFailed
from neuroscript.isolation.confinement import available, read_list
from neuroscript.isolation.rules import WORDS, executable_files, file_rules, interpreters
from neuroscript.policy.capabilities import Capability, Grant

if TYPE_CHECKING:
    from neuroscript.calls.steps import CallFrame
    from neuroscript.policy.execution_policy import ExecutionPolicy

LAUNCHER: Final = str(Path(__file__).with_name("program.py"))

SOFTWARE: Final = ("/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share", "/etc/alternatives")
"""Directories that a system's packages fill, which programs may read besides what each worker may read."""

PACKAGES: Final = ("lib", "lib64", "libexec", "pyvenv.cfg")
"""What a program may read beside its directory ``bin``."""

MAX_FILE_BYTES: Final = 1 << 30
"""Maximum bytes of a file that a program writes."""

READ: Final = ("list", "read")
CHANGE: Final = ("delete", "list", "read", "write")
EXECUTE: Final = ("execute", "read")


def launch_words(
    program: str,
    files: Iterable[tuple[int | str, Sequence[str]]],
    *,
    network: bool,
    execute: Iterable[str] = (),
    require: Sequence[str] = (),
    memory_bytes: int | None = None,
    cpu_seconds: int | None = None,
    open_files: int | None = None,
    environment: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Return the words that start a program confined; its name and its arguments follow them.

    Args:
        program: Its absolute path.
        files: Paths or descriptors that it may use, and how; descriptors have to be passed to the process.
        network: Whether it may use the network.
        execute: Further files and directories that it may execute.
        require: The layers without which it is not started.
        memory_bytes: The maximum size of its address space; None means no limit, as for the other limits.
        environment: The names of the variables that it receives, or None for all.
    """
    readable = dict.fromkeys((*read_list(network=network), *SOFTWARE, *own_places(program)))
    executable = dict.fromkeys((*executable_files(program), *execute))
    setup = {
        "program": program,
        "files": [
            *((place, READ) for place in readable),
            *((place, EXECUTE) for place in executable),
            *files,
        ],
        "network": network,
        "require": list(require),
        "memory_bytes": memory_bytes,
        "cpu_seconds": cpu_seconds,
        "open_files": open_files,
        "file_bytes": MAX_FILE_BYTES,
        "environment": environment,
    }
    return (sys.executable, "-I", "-S", LAUNCHER, json.dumps(setup))


@contextmanager
def confined_program(
    frame: CallFrame, program: str, *, read: Iterable[str], write: Iterable[str], execute: Sequence[str], granted: bool
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Provide what `Runtime.confine` provides.

    Raises:
        ToolFailed: ``isolation.unavailable``: the system does not provide a layer that the policy requires.
    """
    policy = frame.session.policy
    settings = policy.program_isolation(frame.tool)
    if settings is not None:
        require_layers(settings.require)
    if settings is None or sys.platform != "linux":
        yield (), ()
        return
    sandbox = frame.session.sandbox
    needs = [need for need in frame.needs if need.resource == "fs"]
    executable = list(execute)
    if granted:
        permitted = tuple(_granted(policy, frame))
        needs += permitted
        if Capability("shell", ("exec",)) in permitted:
            executable += _search_path(sandbox.directory)
    with ExitStack() as stack:
        rules = stack.enter_context(file_rules(needs, lambda: sandbox, raw_files=True))
        files: list[tuple[int | str, Sequence[str]]] = [(each.descriptor, each.words) for each in rules]
        for paths, words in ((read, READ), (write, CHANGE)):
            files += ((descriptor, words) for path in paths for descriptor in _opened(stack, path))
        launched = launch_words(
            program,
            files,
            network=settings.keeps_network,
            execute=executable,
            require=settings.require,
            memory_bytes=settings.memory_bytes,
            cpu_seconds=settings.cpu_seconds,
            open_files=settings.open_files,
        )
        yield launched, tuple(place for place, _ in files if isinstance(place, int))


def require_layers(layers: Sequence[str]) -> None:
    """Raise a `ToolFailed` with the code ``isolation.unavailable`` unless this system provides some layers."""
    if not layers:
        return
    reasons = available()
    missing = [f"{layer} ({reasons[layer]})" for layer in layers if reasons[layer]]
    if missing:
        text = f"this system does not provide what the policy requires: {', '.join(missing)}"
        raise ToolFailed(text, code="isolation.unavailable", retry="host")


def _granted(policy: ExecutionPolicy, frame: CallFrame) -> Iterator[Capability]:
    """Yield the needs for files and programs that every layer of a policy, and every tool above, grants."""
    above = [each.grants for each in frame.chain() if each is not frame]
    grants = dict.fromkeys(grant for held in (*(layer.grants for layer in policy.layers), *above) for grant in held)
    for need in dict.fromkeys(need for grant in grants for need in _needs_of(grant)):
        if policy.uncovered_need((need,), above) is None:
            yield need


def _needs_of(grant: Grant) -> Iterator[Capability]:
    """Yield the needs for files and programs that a grant covers, one for each verb and scope."""
    for resource, verbs in (("fs", tuple(WORDS)), ("shell", ("exec",))):
        if grant.resource in (resource, "*"):
            for verb in verbs:
                if verb in grant.verbs or "*" in grant.verbs:
                    yield from (Capability(resource, (verb,), () if each == "*" else (each,)) for each in grant.scopes)


def _search_path(sandbox: str) -> Iterator[str]:
    """Yield the directories where programs are looked up, except those in the sandbox."""
    root = os.path.realpath(sandbox)
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        real = os.path.realpath(directory)
        if os.path.isabs(directory) and real != root and not real.startswith(f"{root.rstrip('/')}/"):
            yield real


def _opened(stack: ExitStack, path: str) -> Iterator[int]:
    """Yield a descriptor of a file or a directory, if it exists; it is closed with the stack."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        stack.callback(os.close, descriptor)
        yield descriptor


def own_places(program: str) -> Iterator[str]:
    """Yield the directories of the packages that a program belongs to, such as those of a virtual environment."""
    for named in (program, *interpreters(program)):
        for path in (named, os.path.realpath(named)):
            prefix, folder = os.path.split(os.path.dirname(path))
            if folder == "bin":
                yield from (os.path.join(prefix, name) for name in PACKAGES)
