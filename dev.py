#!/usr/bin/env python3
"""What a fresh machine needs to run the main job and the tests: nothing but Python 3.11 or later.

    python3 dev.py demo             run the tool calls of sandbox/inbox and show what became of each
    python3 dev.py demo agent       run a scripted model that uses tools, and approve one of its calls
    python3 dev.py demo injection   run a scripted model that a web page attacks, without rules and with them
    python3 dev.py test             run the tests in parallel, without the slow ones
    python3 dev.py test ARG …       words for pytest; where they choose tests (a path, -k, …), these run in one process
    python3 dev.py test --slow      run the slow tests too, as .ci/run does
    python3 dev.py test --all       run all tests with their full counts, the benchmarks and the newcomer
    python3 dev.py docs             build the documentation site in build/site/html; any warning fails
    python3 dev.py wheels           build all distributions into dist/, and print the command that installs them
    python3 dev.py release-check    check whether this commit can be released
    python3 dev.py run PROGRAM …    run a program of the development environment
    python3 dev.py python           print the interpreter of the development environment

The environment is made once, in .venv-<version>, with uv where there is one and else with venv and pip; it is made anew
when what it was made from has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
ENVIRONMENT = ROOT / f".venv-{VERSION}"
CONSTRAINTS = str(ROOT / "constraints.txt")
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
EXTRAS = {"demo": "[cli]", "test": "[dev]", "all": "[dev,bench]"}
"""Which extras of the project each level of the environment has; each has what stands before it."""

BUILDERS = ["build", "hatchling", "editables"]
"""What builds distributions; each level has it."""

MOST = 8
"""Processes that run the tests; each imports all of them, so that more would cost more than they gain."""

FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
"""Where pytest stores which tests have failed."""

TESTS_FAILED = 1
"""The exit code of pytest if tests have failed, and nothing else is wrong."""

MOST_REPEATED = 3
"""How many failed tests are repeated; more are hardly an accident."""

DEMO = ["sandbox/inbox/calls.jsonl", "--report", "--sandbox", "sandbox", "--grant", "fs:read:inbox/**"]


MEMORY = Path("/dev/shm")
"""The directory whose files Linux holds in memory."""

MIN_MEMORY_BYTES = 4 * 2**30
"""The least free space in memory with which the tests use it; a container often has only 64 MB."""


def main(argv: list[str]) -> int:
    match argv:
        case ["demo", "agent"]:
            return run("demo", "docs.examples.demo_agent")
        case ["demo", "injection", *rest]:
            return run("demo", "docs.examples.mail_agent", *rest)
        case ["demo", *rest]:
            return demo(rest)
        case ["test", "--all", *rest]:
            os.environ["NEUROSCRIPT_TEST_ALL"] = "1"
            return test("all", rest, slow=True) or run("all", "tests.benchmarks") or script("all", "newcomer.py")
        case ["test", *rest]:
            words = [word for word in rest if word != "--slow"]
            return test("test", words, slow=words != rest)
        case ["docs", *rest]:
            return run("test", "docs._ext.build", *rest)
        case ["wheels", *rest]:
            return script("demo", "distributions.py", *rest)
        case ["release-check", *rest]:
            return script("test", "release_check.py", *rest)
        case ["run", program, *rest]:
            return run("all" if "benchmarks" in program else "test", program, *rest)
        case ["python"]:
            print(made("test"))
            return 0
        case _:
            print(__doc__)
            return 0 if argv in (["--help"], ["-h"]) else 2


def demo(words: list[str]) -> int:
    """Run the tool calls of the inbox, show the report, and say what to try next."""
    code = run("demo", "neuroscript", "execute", *DEMO, *words)
    if code == 0 and not words:
        print("Next, approve a call of an agent: python3 dev.py demo agent", flush=True)
    return code


def test(level: str, words: list[str], *, slow: bool) -> int:
    """Run tests, and return the exit code. Tests that *words* choose run in one process, and all of them.

    Args:
        slow: Whether to run the slow tests too.
    """
    if any(not word.startswith("--") for word in words):
        return run(level, "pytest", *words)
    with memory_directory():
        return max([phase(level, [*options, *words], words) for options in phases(slow=slow, full=level == "all")])


def phase(level: str, command: list[str], words: list[str]) -> int:
    """Run tests. Few that fail are repeated once, in one process, because the machine may have been busy.

    A test that fails beside others and passes alone is named in the output, and is worth a look.
    """
    FAILED.unlink(missing_ok=True)
    code = run(level, "pytest", *command)
    failed = sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if code != TESTS_FAILED or not 0 < len(failed) <= MOST_REPEATED:
        return code
    print(f"\nrepeated, because few tests failed: {', '.join(failed)}", flush=True)
    return run(level, "pytest", "--last-failed", "--last-failed-no-failures=none", *words)


def phases(*, slow: bool, full: bool) -> list[list[str]]:
    """Return the options of three runs.

    Most tests run in two processes per core, because tests also wait for others. Then those that fork run in
    processes that import nothing else, and at last those that measure something, one after the other.
    """
    count = min(2 * (os.cpu_count() or 1), MOST)
    also = ("" if slow else " and not slow") + ("" if full else " and not full")
    together = ["-n", str(count), "--dist", "worksteal"]
    return [
        [*together, "-m", f"not alone and not forks{also}"],
        [*together, *marked("forks"), "-m", f"forks and not alone{also}"],
        [*marked("alone"), "-m", f"alone{also}"],
    ]


def marked(marker: str) -> list[str]:
    """Return the files with a marker."""
    files = (path for pattern in ("tests", "plugins/*/tests") for path in ROOT.glob(f"{pattern}/**/test_*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in files if f"mark.{marker}" in path.read_text())


@contextmanager
def memory_directory() -> Iterator[None]:
    """Use a directory in memory for the temporary files of the tests, if the system has one with enough space.

    Engines and audit logs flush their files to the disk, so thousands of tests would wait for it. Selected tests and
    `test --all` use the disk. An explicit TMPDIR is not changed.
    """
    if "TMPDIR" in os.environ or not is_usable(MEMORY):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="ns-", dir=MEMORY, ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)  # as /tmp is: some tests read files as another user
        os.environ["TMPDIR"] = directory
        try:
            yield
        finally:
            del os.environ["TMPDIR"]


def is_usable(directory: Path) -> bool:
    """Return whether tests can write to a directory, run programs in it, and use the space that they need."""
    if not (sys.platform == "linux" and directory.is_dir() and os.access(directory, os.W_OK)):
        return False
    system = os.statvfs(directory)
    return not system.f_flag & os.ST_NOEXEC and system.f_bavail * system.f_frsize >= MIN_MEMORY_BYTES


def run(level: str, module: str, *words: str) -> int:
    python = str(made(level))
    if module == "pytest":  # its tests start thousands of processes, each of which would compile what it imports
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        done(python, "-m", "compileall", "-qq", "-j", "0", "src", *(f"plugins/{each.name}/src" for each in PLUGINS))
    return subprocess.call([python, "-m", module, *words], cwd=ROOT)


def script(level: str, name: str, *words: str) -> int:
    """Run a script of .ci, and return its exit code."""
    return subprocess.call([str(made(level)), str(ROOT / ".ci" / name), *words], cwd=ROOT)


def made(level: str) -> Path:
    """Return the interpreter of an environment that has *level*, which is made or made anew where that is needed."""
    levels = list(EXTRAS)
    stamp = ENVIRONMENT / f"made-for-{fingerprint()}"
    has = stamp.read_text() if stamp.exists() else ""
    if has not in levels or levels.index(has) < levels.index(level):
        make(level)
        stamp.write_text(level)
    return interpreter()


def interpreter() -> Path:
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def fingerprint() -> str:
    sources = [ROOT / "pyproject.toml", ROOT / "constraints.txt", *(plugin / "pyproject.toml" for plugin in PLUGINS)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def make(level: str) -> None:
    print(f"making {ENVIRONMENT.name} for {level} …", file=sys.stderr)
    started = time.monotonic()
    for old in ENVIRONMENT.glob("made-for-*"):
        old.unlink()
    if not (shutil.which("uv") and installed_by_uv(level)):
        install_by_pip(level)
    print(f"made in {time.monotonic() - started:.0f} s", file=sys.stderr)


def tested(level: str) -> str:
    """Return the extra of a plugin that a level has."""
    return "" if level == "demo" else "[test]"


def installed_by_uv(level: str) -> bool:
    """Tell whether uv could do it; it reads no settings of pip, so it may not reach what pip reaches."""
    ours = [f"{ROOT}{EXTRAS[level]}", *(f"{each}{tested(level)}" for each in PLUGINS)]
    wanted = ["-c", CONSTRAINTS, *BUILDERS, *(word for each in ours for word in ("-e", each))]
    if not interpreter().exists() and not done("uv", "venv", "--quiet", "--python", sys.executable, str(ENVIRONMENT)):
        return False
    return done("uv", "pip", "install", "--quiet", "--python", str(interpreter()), *wanted)


def install_by_pip(level: str) -> None:
    """Do it with what comes with Python: ours are built here, not each in an environment of its own."""
    python = str(interpreter())
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    ours = [word for place in (ROOT, *PLUGINS) for word in ("-e", str(place))]
    for command in (
        [sys.executable, "-m", "venv", str(ENVIRONMENT)],
        [*pip, "-c", CONSTRAINTS, *BUILDERS],
        [*pip, "--no-deps", "--no-build-isolation", *ours],
        [*pip, "-c", CONSTRAINTS, f"neuroscript{EXTRAS[level]}", *(f"{each.name}{tested(level)}" for each in PLUGINS)],
    ):
        if not done(*command):
            raise SystemExit(f"{' '.join(command[:4])} … failed")
    done(python, "-m", "compileall", "-qq", "-j", "0", str(ENVIRONMENT / "lib"))  # in a process for each core


def done(*command: str) -> bool:
    return subprocess.call(command, cwd=ROOT, stdout=sys.stderr) == 0


if __name__ == "__main__":
    if sys.version_info < (3, 11):
        raise SystemExit(f"neuroscript needs Python 3.11 or later, and this is {VERSION}")
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # the program that runs was interrupted too, and reports it
        raise SystemExit(130) from None
