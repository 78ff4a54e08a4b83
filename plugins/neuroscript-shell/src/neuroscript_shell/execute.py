"""A program with a list of arguments, and never a shell.

Source: upstream ``pkg/tool/shell``, which runs ``sh -c`` for whoever asks, and knows no time, no limit and no end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, SandboxError, ToolPolicy, Toolset, ToolSpec
from neuroscript_shell.environment import environment
from neuroscript_shell.programs import Fence, failure, found, searched
from neuroscript_shell.running import Launch, Outcome, run

RUNNING: Final = ToolPolicy(
    requires_trust=True,
    capabilities=("shell:exec:{command}", "fs:read:{directory}", "env:read:{env_names}"),
    effects=("exec", "reads", "writes", "deletes", "net", "clock", "random"),
)
"""A program does what its user may do, so no grant for files or hosts would confine it; hence the trust."""

LONGEST: Final = 3600.0
"""Seconds that a program may take."""

MOST_KEPT: Final = 4 << 20
"""Bytes that are kept of each stream at most."""

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
        raise failure("shell.no_system", "programs are run on POSIX systems alone", "never")
    _require_whole(args_list)
    fence = Fence.around(rt.sandbox_dir)
    directories = searched(os.environ.get("PATH", os.defpath), fence)
    program = found(command, directories, fence)
    variables = environment(directories, rt.sandbox_dir, env_names)
    with _working_directory(rt, directory) as path:
        words = (command, *args_list)
        launch = Launch(program, words, variables, path, stdin, timeout_seconds, max_output_bytes)
        outcome = run(launch, fence, lambda: rt.cancelled)
    if outcome.reason == "cancelled":
        raise failure("shell.cancelled", "nobody waits for the result any more", "later")
    return _as_map(outcome)


def _require_whole(args_list: list[str]) -> None:
    for index, arg in enumerate(args_list):
        if "\0" in arg:
            raise failure(
                "shell.bad_argument", f"args_list[{index}]: expected a text without zero bytes, got one with them"
            )


@contextmanager
def _working_directory(rt: Runtime, directory: str) -> Iterator[str]:
    """Lend a path that stays on the directory that was opened, wherever links lead meanwhile."""
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
                description="The bare name of a program, such as ls: no path, no arguments, no shell.",
            ),
            ArgSpec(
                "args_list",
                ArgType.SLICE_STRING,
                default=(),
                description="Its arguments, each as the program gets it; nothing in them is expanded or split.",
            ),
            ArgSpec(
                "directory",
                ArgType.STRING,
                default=".",
                min_length=1,
                description="Where it works, below the sandbox; the sandbox itself unless it is said.",
            ),
            ArgSpec("stdin", ArgType.STRING, default="", description="What it can read; nothing unless it is said."),
            ArgSpec(
                "env_names",
                ArgType.SLICE_STRING,
                default=(),
                description="Variables of the host that it gets besides PATH, LANG and HOME, as far as they are set.",
            ),
            ArgSpec(
                "timeout_seconds",
                ArgType.FLOAT,
                default=60.0,
                minimum=0.01,
                maximum=LONGEST,
                description="After how many seconds it is ended, with all that it began; 60 unless it is said.",
            ),
            ArgSpec(
                "max_output_bytes",
                ArgType.INT,
                default=1 << 20,
                minimum=0,
                maximum=MOST_KEPT,
                description="How much is kept of each of its streams, the first bytes of it; 1 MiB unless it is said.",
            ),
        ),
        return_type=ArgType.MAP,
        description="Run a program with a list of arguments.",
        when_to_use="For what no other tool does; os.getenv reads a variable without a program, os.sleep waits.",
        return_help=(
            "success (whether it ended with 0), exit_code (or null), signal (what ended it, such as SIGKILL, or null), "
            "stdout, stderr, stdout_truncated, stderr_truncated, timed_out, seconds. What is not UTF-8 is replaced."
        ),
        examples=(
            Example(("echo", ["a  b", "$HOME; ls"]), note="one line, just as it was given"),
            Example({"command": "cat", "stdin": "one\ntwo\n"}),
            Example(("ls", ["-l", "--", "-n.txt"], "data")),
            Example(("sleep", ["60"], ".", "", [], 0.2), note="timed_out is true, and signal is SIGTERM"),
            Example(("sh", ["-c", "ls"]), error="shell.is_shell"),
            Example(("ls -l",), error="shell.bad_program"),
        ),
        error_conditions=(
            "shell.bad_program, shell.is_shell, shell.not_found, shell.in_sandbox, shell.not_runnable, "
            "shell.bad_argument, shell.too_long, shell.bad_env, before anything runs; shell.too_many, shell.lost, "
            "shell.cancelled; those of the sandbox for the directory."
        ),
    ),
    _executed,
    RUNNING,
)
