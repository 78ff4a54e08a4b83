"""Fixtures of the git tool tests: real repositories, engines with grants, and a git server on loopback."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeVar

import pytest

from neuroscript import CallError, Engine, ExecutionPolicy, Host
from neuroscript.testing import Setup

MOMENT: Final = "1700000000 +0000"
WHO: Final = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", MOMENT))
}
ALONE: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TEST_FSYNC": "0",  # repositories of tests do not have to survive a crash
}
REMOTE: Final = "https://git.example.org/"
"""The remote of the examples."""

EVERYTHING: Final = ("fs:*:*", "shell:exec:*", "net:*:*")

LENT: Final = ExitStack()
"""What lasts as long as the run of the tests."""

Result = TypeVar("Result")

EngineWith = Callable[..., Engine]
Tool = Callable[..., Any]


Git = Callable[..., str]


def run(folder: Path, *words: str, **more: str) -> str:
    """Run plain git like a user, and return its output."""
    env = {**os.environ, **ALONE, **WHO, **more}
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """Create the repository of the examples: two branches, one changed file, one new file."""
    shutil.copytree(template(), folder)
    return folder


@cache
def template() -> Path:
    """Make that repository once, with git itself; every other one is a copy."""
    folder = Path(LENT.enter_context(tempfile.TemporaryDirectory(prefix="neuroscript-git-tests-")), "work")
    folder.mkdir()
    run(folder, "init", "--quiet", "--initial-branch=main")
    run(folder, "config", "user.name", "Ada")
    run(folder, "config", "user.email", "ada@example.org")
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("b\n")
    run(folder, "add", ".")
    run(folder, "commit", "--quiet", "-m", "Begin")
    run(folder, "checkout", "--quiet", "-b", "topic")
    (folder / "b.txt").write_text("b\nmore\n")
    run(folder, "commit", "--quiet", "-am", "Go on")
    run(folder, "checkout", "--quiet", "main")
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "new.txt").write_text("new\n")
    for sample in (folder / ".git" / "hooks").iterdir():
        sample.unlink()
    return folder


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's git settings and proxies from git."""
    for name in [*WHO, "http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def git() -> Git:
    """Takes a directory and arguments, runs plain git like a user, and returns its output."""
    return run


@pytest.fixture
def make() -> Callable[[Path], Path]:
    """Takes a directory that does not exist, and creates the repository of the examples there."""
    return repository


@pytest.fixture(scope="module")
def plain() -> tuple[Git, Callable[[Path], Path]]:
    """The functions of `git` and `make`, for module fixtures."""
    return run, repository


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Takes a directory of bare repositories, and returns the URL of the one named a.git."""
    with ExitStack() as stack:
        yield lambda folder: f"{stack.enter_context(serving(folder, []))}/a.git"


@pytest.fixture
def alone() -> dict[str, str]:
    """An environment in which git has an author and reads no settings of the machine."""
    return {**os.environ, **ALONE, **WHO}


CREATE_RULESET: Final = 444
"""The number of the system call landlock_create_ruleset."""


def hide_landlock() -> None:
    """Make the kernel appear to have no Landlock, for this thread and everything that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    rules = (
        (0x20, 0, 0, 0),
        (0x15, 0, 1, CREATE_RULESET),
        (0x06, 0, 0, 0x50000 | errno.ENOSYS),
        (0x06, 0, 0, 0x7FFF0000),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = struct.pack("@HP", len(rules), ctypes.addressof(code))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0


def run_without_landlock(function: Callable[[], Result]) -> Result:
    """Call a function on a thread for which the kernel appears to have no Landlock."""
    with ThreadPoolExecutor(1, initializer=hide_landlock) as executor:
        return executor.submit(function).result()


@pytest.fixture(params=["landlock", "no landlock"])
def locked(request: pytest.FixtureRequest) -> Callable[[Callable[[], Any]], Any]:
    """Calls a function; one test run has Landlock, the other does not."""
    if request.param == "no landlock":
        return run_without_landlock
    return lambda function: function()


@pytest.fixture
def without_landlock() -> Callable[[Callable[[], Any]], Any]:
    """Calls a function as if the kernel had no Landlock."""
    return run_without_landlock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sandbox directory, with the repository of the examples."""
    repository(tmp_path / "box" / "work")
    (tmp_path / "box" / "notes").mkdir()
    return tmp_path / "box"


@pytest.fixture
def engine_with(root: Path) -> Iterator[EngineWith]:
    """Takes grants, and returns an engine over that sandbox which has found this distribution by its entry points."""
    with ExitStack() as stack:

        def made(*grants: str) -> Engine:
            policy = ExecutionPolicy(grants=grants)
            return stack.enter_context(Engine(plugins=["neuroscript-git"], host=Host(sandbox_dir=root), policy=policy))

        yield made


@pytest.fixture
def engine(engine_with: EngineWith) -> Engine:
    """An engine with all grants for repositories."""
    return engine_with(*EVERYTHING)


RETRIES = {"git.network": "later"}
"""Who can make the call succeed, by code; for every other code it is 'model'."""


@pytest.fixture
def tool(engine: Engine) -> Tool:
    """Takes the name of a tool and its arguments, and returns its result or its error code."""

    def outcome(name: str, *args: Any, **named: Any) -> Any:
        try:
            return engine.call_named(f"git.{name}", named) if named else engine.call(f"git.{name}", args)
        except CallError as error:
            assert error.retry == RETRIES.get(error.code, "model")
            return error.code

    return outcome


class Backend(BaseHTTPRequestHandler):
    """Passes one request to ``git http-backend``, as a web server does."""

    served: Path
    seen: list[str]

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        self.seen.append(self.path)
        path, _, query = self.path.partition("?")
        if path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.replace("/moved/", "/"))
            self.end_headers()
            return
        env = {
            **os.environ,
            **ALONE,
            "GIT_PROJECT_ROOT": str(self.served),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "somebody",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(folder: Path, seen: list[str]) -> Iterator[str]:
    """Serve the bare repositories in a directory, and yield their URL."""
    handler = type("Served", (Backend,), {"served": folder, "seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def seen() -> list[str]:
    """The requests to the git server."""
    return []


@pytest.fixture
def remote(root: Path, tmp_path: Path, seen: list[str]) -> Iterator[str]:
    """The URL of a bare repository with the commits of the examples, outside the sandbox."""
    served = tmp_path / "served"
    served.mkdir()
    run(served, "clone", "--quiet", "--bare", str(root / "work"), "a.git")
    with serving(served, seen) as url:
        yield f"{url}/a.git"


def led_to(url: str, served: Path) -> Callable[[Engine, str, Any], Any]:
    """Return what makes the remote of an example real: a bare repository on loopback, each time as it was at first.

    It speaks http, which has to be asked for.
    """

    def prepared(engine: Engine, name: str, args: Any) -> Any:
        arguments = [arg.name for arg in engine.tools[name].spec.args]
        if "protocol" not in arguments:
            return args
        shutil.rmtree(served / "a.git", ignore_errors=True)
        shutil.copytree(served / "first.git", served / "a.git")
        named = dict(args) if isinstance(args, Mapping) else dict(zip(arguments, args, strict=False))
        config = Path(engine.host.directory()) / "work" / ".git" / "config"
        config.write_text(config.read_text().replace(REMOTE, f"{url}/"))
        far = named.get("repository_url", REMOTE)
        return {**named, "repository_url": far.replace(REMOTE, f"{url}/"), **_spoken(far)}

    return prepared


def _spoken(far: str) -> dict[str, str]:
    return {"protocol": "http"} if far.startswith(REMOTE) else {}


@contextmanager
def examples(folder: Path) -> Iterator[Setup]:
    """Provide what the examples use: a repository, a directory without one, and a remote on loopback.

    Args:
        folder: An empty directory outside of that world.
    """
    work, served = repository(folder / "box" / "work"), folder / "served"
    run(work, "remote", "add", "origin", f"{REMOTE}a.git")
    run(folder, "clone", "--quiet", "--bare", "--single-branch", str(work), str(served / "first.git"))
    (folder / "box" / "notes").mkdir()
    paths = (folder / "box").rglob("*")
    files = {str(path.relative_to(folder / "box")): path.read_bytes() if path.is_file() else None for path in paths}
    with serving(served, []) as url:
        yield Setup(files=files, prepare=led_to(url, served))


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    """The environment of the examples."""
    with examples(tmp_path) as setup:
        yield setup


@pytest.hookimpl(optionalhook=True)
def pytest_neuroscript_setup(distribution: str) -> Setup | None:
    """Return the environment of the examples, which exists until the tests have run."""
    if distribution != "neuroscript-git":
        return None
    folder = LENT.enter_context(tempfile.TemporaryDirectory(prefix="neuroscript-git-tests-"))
    return LENT.enter_context(examples(Path(folder)))


def pytest_unconfigure() -> None:
    """Clean up the environment."""
    LENT.close()
