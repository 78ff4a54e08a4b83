"""Play a new user: run each block of README and the tutorials in empty environments, as written, and print the seconds.

Usage: newcomer.py [--short] [DIRECTORY]

DIRECTORY contains the wheels; without it, they are built. There are three environments at the start: with the core
alone, with the extras std and cli, and with all toolsets. With the core alone, each page has an environment of its own,
so it must install what it needs. At the end, each environment runs the commands that `neuroscript new toolset` prints,
and an empty one runs those of the CI file of the new toolset. `--short` runs README with the core alone.

Each page is read in a new copy of the checkout, in one shell and one Python process:

- python: is executed.
- console: each line that begins with $ is executed, and must print what the page shows.
- text: each line that begins with $ is executed, and must succeed; its output may differ, such as a time.
- sh: each line is executed, and must succeed.

Not executed are blocks of other languages, blocks that contain the placeholder …, blocks after `<!--- skip: next -->`,
and lines that begin with `python3 dev.py`: they make the environment of a developer, in which CI runs this script.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

from distributions import ROOT, build_all, install_command, run, version, write_constraints

sys.path.insert(0, str(ROOT))
from tests.consoles import commands, is_output

ENVIRONMENTS = {"core": "", "std,cli": "std,cli", "all": "all,cli"}
"""The extras with which each environment starts."""

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/tutorial/*.md"))]

MAX_SECONDS = 600
"""The most that one command may take."""


def main(words: list[str]) -> int:
    is_short = "--short" in words
    given = [Path(word).resolve() for word in words if not word.startswith("--")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        wheels = given[0] if given else folder / "wheels"
        if not given:
            build_all(wheels)
        newcomer = Newcomer(folder, wheels)
        for label in ["core"] if is_short else ENVIRONMENTS:
            newcomer.read_pages(label, PAGES[:1] if is_short else PAGES)
            if not is_short:
                newcomer.start_toolset(label)
        if not is_short:
            newcomer.run_ci()
    for problem in newcomer.problems:
        print(f"\n{problem}")
    print(f"\n{newcomer.count} blocks executed, {len(newcomer.problems)} failed")
    return int(bool(newcomer.problems) or not newcomer.count)


class Newcomer:
    """A user with an empty machine, and what went wrong."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder, self.wheels = folder, wheels
        self.problems: list[str] = []
        self.count = 0
        self.started = time.monotonic()

    def read_pages(self, label: str, pages: list[Path]) -> None:
        """Read pages in an environment, or each in its own if there is only the core."""
        environment = None
        for page in pages:
            checkout = self.checkout()
            if environment is None or label == "core":
                environment = self.environment(label, checkout)
            self.read(page, label, checkout, environment)

    def checkout(self) -> Path:
        """Return a new copy of the checkout, with the wheels that `dev.py wheels` builds."""
        place = Path(tempfile.mkdtemp(dir=self.folder)) / "neuroscript"
        for name in run("git", "ls-files", "-z").split("\0"):
            if name and (ROOT / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place / name)
        shutil.copytree(self.wheels, place / "dist")
        write_constraints(place / "dist")
        return place

    def environment(self, label: str, checkout: Path) -> Path:
        """Return a new environment with the core and some extras."""
        place = Path(tempfile.mkdtemp(dir=self.folder)) / "env"
        venv.create(place, with_pip=True)
        extras = ENVIRONMENTS[label]
        command = install_command(Path("dist"), extras) if extras else f"pip install dist/{core()}"
        self.report(f"{label}: a new environment")
        with Terminal(checkout, settings(self.folder, place)) as terminal:
            self.record(f"{label}: {command}", *succeeded(terminal, [command]))
        return place

    def read(self, page: Path, label: str, checkout: Path, environment: Path) -> None:
        """Run the blocks of a page."""
        name = page.relative_to(ROOT)
        own = settings(self.folder, environment)
        with Terminal(checkout, own) as terminal, Interpreter(environment, checkout, own) as interpreter:
            for number, language, text in blocks(page.read_text()):
                where = f"{label}: {name}:{number} {language}"
                reason = skipped(language, text)
                if reason:
                    self.report(f"{where}: not executed, {reason}")
                elif language == "python":
                    self.record(where, *interpreter.execute(text))
                elif language == "console":
                    self.record(where, *shown(terminal, text))
                else:
                    self.record(where, *succeeded(terminal, lines_of(language, text)))

    def start_toolset(self, label: str) -> None:
        """Create a toolset, and run the commands that are printed next."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        environment = self.environment(label, self.checkout())
        with Terminal(place, settings(self.folder, environment)) as terminal:
            printed, code = terminal.run("neuroscript new toolset acme-weather")
            found = re.search(r"^next: (.*)", printed, re.MULTILINE)
            if code or found is None:
                self.record(f"{label}: neuroscript new", printed)
            else:
                self.record(f"{label}: {found[1]}", *succeeded(terminal, [found[1]]))
        self.project = place / "acme-weather"

    def run_ci(self) -> None:
        """Run the commands of the CI file of a new toolset, with the wheel that its README asks for."""
        (self.project / "wheels").mkdir()
        shutil.copy(self.wheels / core(), self.project / "wheels")
        environment = Path(tempfile.mkdtemp(dir=self.folder)) / "env"
        venv.create(environment, with_pip=True)
        steps = re.findall(r"- run: (.*)", (self.project / ".github/workflows/test.yml").read_text())
        with Terminal(self.project, settings(self.folder, environment)) as terminal:
            for step in steps:
                self.record(f"CI: {step}", *succeeded(terminal, [step]))

    def record(self, where: str, *problems: str) -> None:
        """Count a block, and report its seconds and problems."""
        self.count += 1
        self.report(f"{where}{': FAILED' if problems else ''}")
        self.problems += [f"{where}\n{problem}" for problem in problems]

    def report(self, text: str) -> None:
        """Print a line with the seconds since the line before."""
        now = time.monotonic()
        print(f"{now - self.started:6.1f} s  {text}", flush=True)
        self.started = now


def core() -> str:
    """Return the file name of the wheel of the core."""
    return f"neuroscript-{version()}-py3-none-any.whl"


def settings(folder: Path, environment: Path) -> dict[str, str]:
    """Return the variables of a user who has nothing of neuroscript, but the index and the cache of pip."""
    home = Path.home()
    config = folder / "config"
    if not config.exists():
        config.mkdir()
        (config / "pip").symlink_to(Path(os.environ.get("XDG_CONFIG_HOME", home / ".config")) / "pip")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("NEUROSCRIPT", "PYTHON"))}
    cache = Path(os.environ.get("XDG_CACHE_HOME", home / ".cache")) / "pip"
    return {
        "PIP_CACHE_DIR": str(cache),
        **own,
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "XDG_CONFIG_HOME": str(config),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_DATA_HOME": str(folder / "data"),
    }


def blocks(page: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the language and the text of each code block of a page."""
    language, number, lines, is_skipped = "", 0, list[str](), False
    for index, line in enumerate(page.splitlines(), 1):
        fence = re.fullmatch(r"```(\w*).*", line)
        if number and fence:
            if not is_skipped:
                yield number, language, "\n".join(lines)
            number, is_skipped = 0, False
        elif number:
            lines.append(line)
        elif fence:
            language, number, lines = fence[1] or "text", index, []
        elif re.match(r"<!-+ *skip: *next", line):
            is_skipped = True


def skipped(language: str, text: str) -> str:
    """Return why a block is not executed, or an empty string."""
    if language not in ("python", "console", "text", "sh"):
        return "its language is not executed"
    if language == "sh" and "…" in text:
        return "it contains a placeholder"
    if language in ("text", "sh") and not lines_of(language, text):
        return "it contains no command for a user"
    return ""


def lines_of(language: str, text: str) -> list[str]:
    """Return the commands of a block of text or sh."""
    if language == "text":
        found = [command for command, _ in commands(text)]
    else:
        found = text.replace("\\\n", "").splitlines()
    return [line for line in found if line.strip() and not line.startswith(("#", "python3 dev.py"))]


def shown(terminal: Terminal, text: str) -> Iterator[str]:
    """Run the commands of a console block, and yield those that print something else."""
    for command, expected in commands(text):
        printed, _ = terminal.run(command)
        if not is_output(expected, printed):
            yield f"$ {command}\nexpected:\n{expected}\ngot:\n{printed}"


def succeeded(terminal: Terminal, lines: list[str]) -> Iterator[str]:
    """Run commands, and yield those that fail."""
    for line in lines:
        printed, code = terminal.run(line)
        if code:
            yield f"$ {line}\n{printed}exit code {code}"


class Process:
    """A program that stays open while a user types."""

    def __init__(self, command: list[str], cwd: Path, variables: dict[str, str]) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            command,
            cwd=cwd,
            env=variables,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.mark = secrets.token_hex(8)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, text: str) -> tuple[str, int]:
        """Send text to the program, and return what it prints up to the mark, and the number after the mark.

        The number is 1 if the program ends, or does not answer in time.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        timer = Timer(MAX_SECONDS, self.process.kill)
        timer.start()
        printed = []
        try:
            self.process.stdin.write(text)
            self.process.stdin.flush()
            for line in self.process.stdout:
                before, mark, code = line.partition(self.mark)
                printed.append(before)
                if mark:
                    return "".join(printed), int(code)
            return "".join([*printed, "the program ended\n"]), 1
        except BrokenPipeError:
            return "the program has ended\n", 1
        finally:
            timer.cancel()


class Terminal(Process):
    """A shell that remembers directories and activated environments."""

    def __init__(self, cwd: Path, variables: dict[str, str]) -> None:
        super().__init__(["bash", "--noprofile", "--norc"], cwd, variables)

    def run(self, command: str) -> tuple[str, int]:
        """Run a command, and return its output and its exit code."""
        return self.send(f"{{ {command}\n}} < /dev/null\necho {self.mark} $?\n")


INTERPRETER = """
import importlib, json, sys, traceback
for line in sys.stdin:
    importlib.invalidate_caches()
    mark, code = json.loads(line)
    failed = 0
    try:
        exec(compile(code, "<page>", "exec", dont_inherit=True), vars(sys.modules["__main__"]))
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        failed = 1
    print(mark, failed, flush=True)
"""
"""Executes blocks of code in one namespace, as the prompt of Python does."""


class Interpreter(Process):
    """A Python process that remembers names."""

    def __init__(self, environment: Path, cwd: Path, variables: dict[str, str]) -> None:
        super().__init__([str(environment / "bin" / "python"), "-c", INTERPRETER], cwd, variables)

    def execute(self, code: str) -> Iterator[str]:
        """Execute code, and yield its traceback if it fails."""
        printed, failed = self.send(f"{json.dumps([self.mark, code])}\n")
        if failed:
            yield printed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
