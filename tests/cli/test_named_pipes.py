"""Named pipes and devices in place of a file: they are refused at once, and no command waits for another process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from tests.cli.conftest import ROOT, environment, run_installed

from neuroscript import Engine
from neuroscript.audit import FileAudit, read, read_key, verify
from neuroscript.errors import AuditError
from neuroscript.testing.replay import replay

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

SECONDS = 30
"""Time limit in seconds on a busy machine; a command that waits for a writer never ends."""

ADD = ("math.add", "1", "2")
PLAN = str(ROOT / "docs/examples/plans/sequence.toml")
MODEL = ("--base-url", "http://127.0.0.1:9/v1", "--model", "local")

COMMANDS = {
    "call --audit": (("call", "--audit", "pipe", *ADD), "pipe: an audit log cannot be a named pipe; specify a file"),
    "call --audit-key": (
        ("call", "--audit", "trail.jsonl", "--audit-key", "pipe", *ADD),
        "cannot read pipe: it is a named pipe",
    ),
    "call --record": (("call", "--record", "pipe", *ADD), "recording pipe: it is not a regular file"),
    "call --policy": (("call", "--policy", "pipe", *ADD), "pipe: cannot be read: it is not a regular file"),
    "call --locked": (("call", "--locked=pipe", *ADD), "pipe: cannot be read: it is not a regular file"),
    "call --input-json": (("call", "--input-json", "pipe", "math.add"), "cannot read pipe: it is a named pipe"),
    "audit show": (("audit", "show", "pipe"), "cannot read pipe: it is a named pipe"),
    "audit verify": (("audit", "verify", "pipe"), "cannot read pipe: it is a named pipe"),
    "audit stats": (("audit", "stats", "pipe"), "cannot read pipe: it is a named pipe"),
    "replay": (("replay", "pipe"), "cannot read pipe: it is a named pipe"),
    "run": (("run", "pipe"), "pipe: cannot be read: it is not a regular file"),
    "run --input-json": (("run", PLAN, "--input-json", "pipe"), "cannot read pipe: it is a named pipe"),
    "run --save": (("run", PLAN, "--save", "pipe"), "cannot write pipe: it is not a regular file"),
    "trace show": (("trace", "show", "pipe"), "pipe: cannot be read: it is not a regular file"),
    "approve": (("approve", "pipe"), "pending approval: it is not a regular file"),
    "docs --output": (("docs", "--output", "pages"), "cannot read pages/math.md: it is a named pipe"),
    "docs --check": (("docs", "--check", "--output", "pages"), "cannot read pages/math.md: it is a named pipe"),
    "stubs --output": (("stubs", "--output", "pipe.pyi"), "cannot read pipe.pyi: it is a named pipe"),
    "index --output": (("index", "--output", "pipe", "neuroscript-std"), "cannot write pipe: it is not a regular file"),
    "ask --transcript": (("ask", "hello", *MODEL, "--transcript", "pipe"), "cannot write pipe: it is a named pipe"),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with named pipes that no process has opened."""
    (tmp_path / "pages").mkdir()
    for name in ("pipe", "pipe.pyi", "module.py", "pages/math.md"):
        os.mkfifo(tmp_path / name, 0o600)
    return tmp_path


def run(directory: Path, *words: str, stdin: bytes = b"", shell: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run the command in a directory; *shell* holds words that bash expands first."""
    command = [sys.executable, "-m", "neuroscript", *words]
    if shell:
        command = ["bash", "-c", f'"$@" {shell}', "bash", *command]
    return subprocess.run(
        command,
        cwd=directory,
        env=environment(NEUROSCRIPT_PLUGINS="neuroscript-std"),
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture
def alarm() -> Iterator[None]:
    """Interrupt a call that waits, so that it fails only this test."""

    def fail(*_: object) -> NoReturn:
        pytest.fail("it waits for a writer")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(("words", "sentence"), COMMANDS.values(), ids=COMMANDS)
def test_command_does_not_wait_for_a_named_pipe(
    words: tuple[str, ...], sentence: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports the file."""
    monkeypatch.chdir(directory)
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "neuroscript-std")

    result = run_installed(*words)

    assert (result.code, result.err.splitlines()[-1]) == (2, f"neuroscript: {sentence}")


def test_process_does_not_wait_for_a_named_pipe(directory: Path) -> None:
    """Its stdin is a pipe too."""
    result = run(directory, "call", "--audit", "pipe", *ADD)

    sentence = "neuroscript: pipe: an audit log cannot be a named pipe; specify a file\n"
    assert (result.returncode, result.stderr.decode()) == (2, sentence)


def test_lint_reports_a_named_pipe_among_the_sources(directory: Path) -> None:
    """It reads the other files."""
    (directory / "__init__.py").write_text("")

    result = run(directory, "lint", ".")

    assert result.returncode == 1
    assert b"the file cannot be read as Python source" in result.stdout


LIBRARY = {
    "FileAudit": (lambda path: FileAudit(path), AuditError, "an audit log cannot be a named pipe; specify a file"),
    "read": (lambda path: [*read(path)], OSError, "it is a named pipe"),
    "verify": (lambda path: verify(path), OSError, "it is a named pipe"),
    "read_key": (lambda path: read_key(path), OSError, "it is a named pipe"),
    "replay": (lambda path: replay(path, Engine(plugins="none")), OSError, "it is a named pipe"),
}


@pytest.mark.parametrize(("use", "error", "sentence"), LIBRARY.values(), ids=LIBRARY)
def test_no_function_waits_for_a_named_pipe(
    use: Callable[[Path], object], error: type[Exception], sentence: str, directory: Path
) -> None:
    """It runs on a thread, so that a function that waits fails only this test."""
    raised: list[BaseException] = []

    def call() -> None:
        try:
            use(directory / "pipe")
        except BaseException as caught:
            raised.append(caught)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SECONDS)

    assert [type(each) for each in raised] == [error]
    assert getattr(raised[0], "strerror", None) or str(raised[0]) == sentence


def test_open_pipe_is_read(directory: Path) -> None:
    """It may be stdin, or a process substitution of bash."""
    calls = b'{"name": "math.add", "arguments": [1, 2]}\n'
    key = "<(printf %064d 7)"

    executed = [run(directory, "execute", name, stdin=calls) for name in ("-", "/dev/stdin")]
    executed.append(run(directory, "execute", shell=f"<(printf '%s' '{calls.decode()}')"))
    called = run(directory, "call", "math.add", "--input-json", "/dev/stdin", stdin=b"[1, 2]")
    audited = run(directory, "call", "--audit", "trail.jsonl", *ADD, shell=f"--audit-key {key}")
    verified = run(directory, "audit", "verify", shell=f"--audit-key {key} <(cat trail.jsonl)")
    written = run(directory, "call", "--audit", "/dev/stderr", *ADD)

    assert [(result.returncode, json.loads(result.stdout)["value"]) for result in executed] == [(0, 3.0)] * 3
    assert [(result.returncode, result.stdout) for result in (called, audited, written)] == [(0, b"3.0\n")] * 3
    assert (verified.returncode, b"intact" in verified.stdout) == (0, True)
    assert [json.loads(line)["kind"] for line in written.stderr.splitlines()[:2]] == ["intent", "outcome"]


def test_calls_from_a_named_pipe_run_as_they_arrive(directory: Path) -> None:
    """The command waits for a process that writes them."""
    command = [sys.executable, "-m", "neuroscript", "execute", "pipe"]
    with subprocess.Popen(
        command, cwd=directory, env=environment(NEUROSCRIPT_PLUGINS="neuroscript-std"), stdout=subprocess.PIPE
    ) as process:
        with (directory / "pipe").open("w") as pipe:
            print(json.dumps({"name": "math.add", "arguments": [1, 2]}), file=pipe)
        out, _ = process.communicate(timeout=SECONDS)

    assert json.loads(out)["value"] == 3.0
