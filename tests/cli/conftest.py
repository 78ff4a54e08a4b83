"""Fixtures that run the command in this process or in separate processes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.cli.probe import engine
from tests.llm.fixtures import no_keys as no_keys
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.server import ModelServer

from neuroscript.cli import main

ROOT = Path(__file__).parents[2]

OURS = ("PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
"""Environment variables that affect a command."""


@attrs.frozen
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str = ""
    err: str = ""


def command(*argv: str, stdin: bytes = b"", make_engine: Callable[..., Any] | None = engine) -> CommandResult:
    """Run the command in this process, by default with only the tools of the probe."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(argv), make_engine)
    finally:
        sys.stdin = before
    return CommandResult(code, _written(out), _written(err))


def run_installed(*argv: str, stdin: bytes = b"") -> CommandResult:
    """Run the command in this process with the installed tools."""
    return command(*argv, stdin=stdin, make_engine=None)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined, no-any-return]


def start(
    *argv: str, module: str = "neuroscript", shell: str = "", before: str = "", **settings: Any
) -> subprocess.Popen[bytes]:
    """Start the command in a separate process.

    Args:
        shell: Redirections, in shell syntax.
        before: Commands that the shell runs first.
        settings: Additional environment variables.
    """
    words = [sys.executable, "-m", module, *argv]
    if shell or before:
        words = ["bash", "-c", f'{before} "$@" {shell}', "bash", *words]
    return subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment(COLUMNS="100", **settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def environment(**settings: str) -> dict[str, str]:
    """Return the environment of a command: that of the tests without variables that affect it, plus *settings*."""
    return {**{name: value for name, value in os.environ.items() if name not in OURS}, **settings}


def process(*argv: str, stdin: bytes = b"", **how: Any) -> CommandResult:
    """Run the command in a separate process until it exits."""
    child = start(*argv, **how)
    out, err = child.communicate(stdin, timeout=30)
    return CommandResult(
        child.returncode, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape")
    )


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set a fixed page width and a user without a policy file.

    Returns:
        The path of the user's policy file, which does not exist.
    """
    home = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return home / "neuroscript" / "neuroscript.toml"


def asked_of(server: ModelServer, *words: str, api: str = "openai-chat") -> tuple[str, ...]:
    """Return the arguments of a command, with options that select the model of that server."""
    return (words[0], "--base-url", server.base_url(api), "--api", api, "--model", "tiny", *words[1:])


@pytest.fixture
def calls() -> bytes:
    """The calls of the demo."""
    return (ROOT / "sandbox" / "inbox" / "calls.jsonl").read_bytes()


@contextmanager
def serving_http(*words: str, **environment: str) -> Iterator[tuple[Any, str]]:
    """Run a command that serves over HTTP in a separate process, and yield it with the URL that it prints."""
    command = [sys.executable, "-m", "neuroscript", *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, cwd=ROOT
    ) as running:
        try:
            line = running.stderr.readline() if running.stderr else ""
            found = re.search(r"serving at (\S+)", line)
            assert found, line
            yield running, found[1]
        finally:
            running.kill()
