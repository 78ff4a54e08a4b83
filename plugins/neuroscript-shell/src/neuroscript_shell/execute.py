"""The ``shell.execute`` tool: run a program with a list of arguments, never through a shell."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, SandboxError, ToolPolicy, Toolset, ToolSpec
from neuroscript_shell.environment import environment
from neuroscript_shell.programs import SandboxFence, failure, find_program, search_directories
from neuroscript_shell.running import Launch, Outcome, run

RUNNING: Final = ToolPolicy(
    requires_trust=True,
    capabilities=("shell:exec:{command}", "fs:read:{directory}", "env:read:{env_names}"),
    effects=("exec", "reads", "writes", "deletes", "net", "clock", "random"),
    sources=("untrusted", "private"),
    sinks=("code", "outside", "storage"),
    raw_files=True,
)
"""A program can do whatever its user can do, so grants for files or hosts cannot confine it: it requires trust."""

MAX_TIMEOUT_SECONDS: Final = 3600.0
"""Maximum timeout of a program in seconds."""

MAX_OUTPUT_BYTES: Final = 4 << 20
"""Maximum bytes to retain of each output stream."""

toolset = Toolset("shell")


def _executed(
    rt: Runtime,
    command: str,
    args_list: list[str],
    directory: str,
    stdin: str,
    env_names: list[str],
    timeout_seconds: float,
    max_output_bytes: int,
) -> dict[str, Any]:
    if os.name != "posix":
        raise failure("shell.unsupported_system", "programs can only be run on POSIX systems", "never")
    _require_whole(args_list)
    fence = SandboxFence.around(rt.sandbox_dir)
    directories = search_directories(os.environ.get("PATH", os.defpath), fence)
    program = find_program(command, directories, fence)
    variables = environment(directories, rt.sandbox_dir, env_names)
    with _working_directory(rt, directory) as path, rt.confine(program, granted=True) as (prefix, descriptors):
        first, words = prefix[0] if prefix else program, (*prefix, command, *args_list)
        launch = Launch(first, words, variables, path, stdin, timeout_seconds, max_output_bytes, descriptors)
        outcome = run(launch, fence, lambda: rt.cancelled)
    if outcome.reason == "cancelled":
        raise failure("shell.cancelled", "the call was cancelled", "later")
    return _as_map(outcome)


def _require_whole(args_list: list[str]) -> None:
    for index, arg in enumerate(args_list):
        if "\0" in arg:
            raise failure(
                "shell.bad_argument",
                f"args_list[{index}]: expected a string without null bytes, got one with null bytes",
            )


@contextmanager
def _working_directory(rt: Runtime, directory: str) -> Iterator[str]:
    """Yield a path that refers to the opened directory, even if a link changes in the meantime."""
    with rt.fs.pinned(directory) as path:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise SandboxError("directory: expected a directory, got a file", code="sandbox.notdir", retry="model")
        yield path


def _as_map(outcome: Outcome) -> dict[str, Any]:
    return {
        "success": outcome.exit_code == 0,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "stdout": outcome.stdout.text(),
        "stderr": outcome.stderr.text(),
        "stdout_truncated": outcome.stdout.is_cut,
        "stderr_truncated": outcome.stderr.is_cut,
        "timed_out": outcome.reason == "time",
        "seconds": outcome.seconds,
    }


toolset.add(
    ToolSpec(
        "execute",
        "shell",
        (
            ArgSpec(
                "command",
                ArgType.STRING,
                description="Name of a program, such as ls, without a path or arguments; shells are not allowed.",
            ),
            ArgSpec(
                "args_list",
                ArgType.SLICE_STRING,
                default=(),
                description="Arguments of the program, passed unchanged; nothing is expanded or split.",
            ),
            ArgSpec(
                "directory",
                ArgType.STRING,
                default=".",
                min_length=1,
                description="Working directory, relative to the sandbox; the sandbox itself by default.",
            ),
            ArgSpec(
                "stdin", ArgType.STRING, default="", description="Standard input of the program; empty by default."
            ),
            ArgSpec(
                "env_names",
                ArgType.SLICE_STRING,
                default=(),
                description=(
                    "Names of host environment variables to pass, besides PATH, LANG and HOME, if they are set."
                ),
            ),
            ArgSpec(
                "timeout_seconds",
                ArgType.FLOAT,
                default=60.0,
                minimum=0.01,
                maximum=MAX_TIMEOUT_SECONDS,
                description=(
                    "Timeout in seconds, after which the program and its child processes are stopped; 60 by default."
                ),
            ),
            ArgSpec(
                "max_output_bytes",
                ArgType.INT,
                default=1 << 20,
                minimum=0,
                maximum=MAX_OUTPUT_BYTES,
                description="Maximum bytes to return of each output stream, from its start; 1 MiB by default.",
            ),
        ),
        return_type=ArgType.MAP,
        description="Run a command: execute a program with arguments and capture its output.",
        when_to_use=(
            "Use it only if no other tool does the job; for an environment variable, use os.getenv, to wait, os.sleep."
        ),
        return_help=(
            "success (whether the exit code is 0), exit_code (or null), signal (that ended it, such as SIGKILL, "
            "or null), "
            "stdout, stderr, stdout_truncated, stderr_truncated, timed_out, seconds. Invalid UTF-8 is replaced."
        ),
        examples=(
            Example(("echo", ["a  b", "$HOME; ls"]), note="the arguments are printed unchanged"),
            Example({"command": "cat", "stdin": "one\ntwo\n"}),
            Example(("ls", ["-l", "--", "-n.txt"], "data")),
            Example(("sleep", ["60"], ".", "", [], 0.2), note="timed_out is true, and signal is SIGTERM"),
            Example(("sh", ["-c", "ls"]), error="shell.is_shell"),
            Example(("ls -l",), error="shell.bad_program"),
        ),
        error_conditions=(
            "shell.bad_program, shell.is_shell, shell.not_found, shell.in_sandbox, shell.not_runnable, "
            "shell.bad_argument, shell.too_long, shell.bad_env, before anything runs; shell.too_many, shell.lost, "
            "shell.cancelled; sandbox errors for the directory."
        ),
    ),
    _executed,
    RUNNING,
)
