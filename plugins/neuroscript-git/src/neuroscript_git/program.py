"""The git program: its path, its environment, its timeout and its output limits."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Final

from neuroscript import Runtime, ToolFailed
from neuroscript_git import landlock
from neuroscript_git.executables import executables

Launch = tuple[tuple[str, ...], tuple[int, ...]]
"""The words to put before a command, and the descriptors to pass, so that it runs confined."""

MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes of output of one run."""

MAX_LIST_BYTES: Final = 64 * 1024 * 1024
"""Maximum bytes of internal lists, such as the index: about 500,000 files."""

MAX_ERROR_BYTES: Final = 64 * 1024
STEP: Final = 0.05
"""Seconds between two checks for cancellation."""

WAIT_FLAGS: Final = os.WEXITED | os.WNOWAIT | os.WNOHANG
"""Options to check whether a process has ended without reaping it."""

CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables with paths that git reads."""

PASSED_VARIABLES: Final = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", *CERTIFICATES, "TZ"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
"""Environment variables of the host that git sees; all others are hidden."""

FIXED_VARIABLES: Final = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "true",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=true",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.symlinks=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.quotePath=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "merge.verifySignatures=false",
    "gpg.program=false",
    "diff.external=",
    "diff.ignoreSubmodules=all",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "rerere.enabled=false",
    "http.followRedirects=false",
    "user.useConfigOnly=true",
    "protocol.allow=never",
)
"""Settings that override the repository; most of them are a second line of defence."""

REASONS: Final = (
    (r"index\.lock|Unable to create .*\.lock", "git.locked", "later", "another git process is using the repository"),
    (r"would be overwritten|local changes|local modifications|staged content different|changes staged in the index|"
     r"Entry .* not uptodate|unmerged|not concluded your merge|You are in the middle",
     "git.unclean", "model", "uncommitted changes or an unfinished merge prevent this; commit or reset them"),
    (r"already exists", "git.exists", "model", "that name already exists"),
    (r"paths are ignored", "git.ignored", "model", "a path is ignored by the repository"),
    (r"pathspec|did not match|beyond a symbolic link|is in submodule|outside repository", "git.unknown_path", "model",
     "a path does not match any file known to git"),
    (r"unrelated histories", "git.unrelated", "model", "the branches have no commit in common"),
    (r"empty ident|auto-detect|tell me who you are|user\.useConfigOnly|user\.email", "git.no_author", "model",
     "the repository has no user.name and user.email; pass author_name and author_email"),
    (r"could not read (?:Username|Password)|Authentication failed|error: 40[13]|terminal prompts", "git.auth", "host",
     "the remote requires authentication, which is not supported"),
    (r"couldn't find remote ref|not found|error: 404", "git.unknown_remote", "model",
     "the remote has no such repository or branch"),
    (r"unable to access|unable to update url|Could not resolve|Failed to connect|redirect|early EOF|RPC failed",
     "git.network", "later", "the remote cannot be reached or redirects"),
    (r"not a git repository|bad config|index file|corrupt|bad object|fsck error", "git.broken", "host",
     "the repository is broken or git rejects its content"),
)  # fmt: skip
"""Patterns of git's errors with our messages; git's own text is never passed on, because it contains values."""


def find_git(sandbox: str) -> str:
    """Return the path of git, which is never in the sandbox.

    Raises:
        ToolFailed: git.missing.
    """
    program = shutil.which("git", path=search_path(sandbox))
    if program is None:
        raise ToolFailed("git was not found; install it", code="git.missing", retry="host")
    return program


def search_path(sandbox: str) -> str:
    """Return the absolute directories of PATH that are not in the sandbox."""
    root = Path(sandbox).resolve()
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(
        each for each in directories if Path(each).is_absolute() and not Path(each).resolve().is_relative_to(root)
    )


def confine(rt: Runtime, git: str, writable: Sequence[str]) -> AbstractContextManager[Launch]:
    """Provide what starts git, which can write to some directories besides those that the call names."""
    certificates = [os.environ[name] for name in CERTIFICATES if name in os.environ]
    return rt.confine(git, read=certificates, write=writable, execute=executables(git))


def environment(sandbox: str, home: str, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of git.

    Args:
        home: A directory without user settings.
        more: Further variables for this run.
    """
    passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    return {**passed, **FIXED_VARIABLES, "PATH": search_path(sandbox), "HOME": home, "XDG_CONFIG_HOME": home, **more}


def words(program: str, settings: Sequence[str], args: Sequence[str]) -> list[str]:
    """Return the words of a command: git, the fixed settings, the settings of this run and the arguments."""
    fixed = [word for setting in (*SETTINGS, *settings) for word in ("-c", setting)]
    return [program, "--no-pager", *fixed, *args]


def run(
    rt: Runtime,
    command: Sequence[str],
    *,
    folder: str,
    env: Mapping[str, str],
    keep: Sequence[int],
    given: bytes,
    seconds: float,
    most: int = MAX_OUTPUT_BYTES,
    launch: Launch = ((), ()),
) -> tuple[int, bytes, str]:
    """Run a program and its process group to the end, and return its status, output and error output.

    Args:
        folder: The working directory.
        keep: File descriptors to inherit.
        given: The standard input.
        seconds: The timeout; the deadline of the call also applies.
        most: Maximum bytes of output.
        launch: What `Runtime.confine` provides.

    Raises:
        ToolFailed: git.timeout, git.cancelled, git.too_large.
    """
    process = _started(command, folder, env, keep, given, launch)
    end = 0.0
    try:
        with process.stdout, process.stderr:  # type: ignore[union-attr]
            output, complaints = _read_outputs(rt, process, _end(rt, seconds), most)
        end = _end(rt, seconds)
    finally:
        status = _kill_group(process, end)
    return status, output, complaints.decode(errors="backslashreplace")


def _started(
    command: Sequence[str], folder: str, env: Mapping[str, str], keep: Sequence[int], given: bytes, launch: Launch
) -> subprocess.Popen[bytes]:
    """Start git, which under Landlock can execute only itself and the programs that come with it."""
    prefix, descriptors = launch
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)

        def popen() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603 - a list of words, the first of them looked up outside the sandbox
                (*prefix, *command),
                cwd=folder,
                env=dict(env),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*keep, *descriptors),
                start_new_session=True,
            )

        return landlock.start(() if prefix else executables(command[0]), popen)


def failure(complaints: str) -> ToolFailed:
    """Return the error for the error output of git."""
    for pattern, code, retry, text in REASONS:
        if re.search(pattern, complaints):
            return ToolFailed(text, code=code, retry=retry)  # type: ignore[arg-type]
    return ToolFailed("git failed for an unknown reason", code="git.failed", retry="never")


def _end(rt: Runtime, seconds: float) -> float:
    return min(time.monotonic() + seconds, rt.deadline or float("inf"))


def _read_outputs(rt: Runtime, process: subprocess.Popen[bytes], end: float, max_bytes: int) -> tuple[bytes, bytes]:
    """Read both outputs as they arrive."""
    output, complaints = bytearray(), bytearray()
    for stream, data in _pieces(rt, [each for each in (process.stdout, process.stderr) if each], end):
        if stream is process.stdout:
            output += data
        elif len(complaints) < MAX_ERROR_BYTES:
            complaints += data
        if len(output) > max_bytes:
            raise ToolFailed(
                f"the output of git exceeds {max_bytes} bytes; narrow the request", code="git.too_large", retry="model"
            )
    return bytes(output), bytes(complaints)


def _pieces(rt: Runtime, streams: list[IO[bytes]], end: float) -> Iterator[tuple[IO[bytes], bytes]]:
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ, stream)
        while selector.get_map():
            if rt.cancelled:
                raise ToolFailed("the call was cancelled", code="git.cancelled", retry="never")
            if time.monotonic() > end:
                raise ToolFailed("git did not end in time", code="git.timeout", retry="later")
            for key, _ in selector.select(STEP):
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.data)
                yield key.data, data


def _kill_group(process: subprocess.Popen[bytes], end: float) -> int:
    """Kill what is left of a process group, and return the status of its process.

    The process is reaped last, so its id cannot belong to another group before.
    """
    while time.monotonic() < end and not os.waitid(os.P_PID, process.pid, WAIT_FLAGS):
        time.sleep(STEP / 10)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()
