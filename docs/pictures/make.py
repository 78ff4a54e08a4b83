"""Make the pictures of README and the documentation from real runs of the commands, at a terminal of fixed width.

    python3 dev.py run docs.pictures.make            run every command, and write the pictures that have changed
    python3 dev.py run docs.pictures.make --check    write nothing, and exit with 1 if a picture is not current

A picture shows what the command printed. Only what differs between machines is replaced, by the rules below; a row of
dots stands for lines that are left out.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

import attrs
from rich.console import Console
from rich.text import Text
from tests.terminals import wait_until_it_reads

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILES = ("sandbox/inbox", "docs/examples")
"""What the commands read; they run beside a copy, so that they change nothing here."""

TIMEOUT_SECONDS = 60
"""How long a command may print nothing."""

RULES = (
    (re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h\r\x1b\[1A\x1b\[2K", re.DOTALL), ""),  # a spinner that has disappeared
    (re.compile(r"\b3\.1\d\.\d+\S*, \w+ on \w+"), "3.11, cpython on linux"),
    (re.compile(r" *\x1b\[[\d;]+mPYTHONPATH[^\n]*\n"), ""),  # set where the sources are not installed
    (
        re.compile(r"(confinement +\x1b\[0m  ).*?(?=\r\n\r\n)", re.DOTALL),
        "\\1\x1b[32mok      \x1b[0m  all layers work here",
    ),
    (re.compile(r"(back end[^\n]*ok *\x1b\[0m  )[^\r]*"), r"\1openat2: the kernel rejects every link in a path"),
)
"""What differs between machines and runs, and what the pictures show instead."""

FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A font from another host, which a picture does not need."""

CUT = "\x1b[2m…\x1b[0m"


@attrs.frozen
class Picture:
    """A picture of one command.

    Attributes:
        command: What the shell runs, and the first line of the picture.
        runs: What it runs instead, if the command would also make an environment.
        before: The prompt at which keys are typed, and the keys.
        cut: The beginnings of the first and of the last line that are left out.
        columns: The width of the terminal in columns.
    """

    command: str
    runs: str = ""
    before: tuple[str, str] = ("", "")
    cut: tuple[str, str] = ("", "")
    columns: int = 100


PICTURES = {
    "demo": Picture(
        "sed -n '1p;3p;10p;11p;18p;19p' sandbox/inbox/calls.jsonl |"
        " neuroscript execute - --report --sandbox sandbox --grant 'fs:read:inbox/**'"
    ),
    "agent": Picture(
        "python3 dev.py demo agent",
        runs="python -m docs.examples.demo_agent",
        before=("Allow office.post? [n] ", "y\n"),
        columns=104,
    ),
    "injection-without": Picture(
        "python3 dev.py demo injection without", runs="python -m docs.examples.mail_agent without", columns=104
    ),
    "injection-with": Picture(
        "python3 dev.py demo injection with",
        runs="python -m docs.examples.mail_agent with",
        before=("Allow mail.send? [n] ", "n\n"),
        columns=104,
    ),
    "approval": Picture(
        "neuroscript call -p docs/examples/shop.py shop.close Harbour",
        before=("Allow shop.close? [n] ", "y\n"),
        columns=80,
    ),
    "policy-explain": Picture(
        "neuroscript policy explain --policy docs/examples/policy.toml fs.write drafts/a.txt hello", columns=92
    ),
    "doctor": Picture(
        "NEUROSCRIPT_PLUGINS=neuroscript-fs,acme-weather neuroscript doctor", cut=("  attrs", "  otel"), columns=92
    ),
    "audit": Picture("neuroscript audit show docs/examples/trail.jsonl", columns=92),
    "trace": Picture("neuroscript trace show docs/examples/traces/monday.json", columns=104),
}


def svg(name: str) -> str:
    """Run the command of a picture, and return the picture."""
    picture = PICTURES[name]
    with tempfile.TemporaryDirectory() as directory:
        for each in FILES:
            shutil.copytree(ROOT / each, Path(directory, each), ignore=shutil.ignore_patterns("__pycache__"))
        output = run(picture, Path(directory))
    console = Console(record=True, file=io.StringIO(), width=picture.columns, force_terminal=True, legacy_windows=False)
    console.print(Text(f"$ {picture.command}", "bold"))
    for line in lines(output, picture):
        console.print(Text.from_ansi(line), soft_wrap=True)
    text = FONT.sub("", console.export_svg(title="", unique_id=name))
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())


def lines(output: str, picture: Picture) -> list[str]:
    """Return the lines of a picture."""
    for pattern, instead in RULES:
        output = pattern.sub(instead, output)
    found = output.replace("\r", "").rstrip("\n").split("\n")
    first, last = picture.cut
    if not first:
        return found
    plain = [Text.from_ansi(line).plain for line in found]
    start, end = (next(n for n, line in enumerate(plain) if line.startswith(each)) for each in (first, last))
    return [*found[:start], CUT, *found[end + 1 :]]


def run(picture: Picture, directory: Path) -> str:
    """Run the command of a picture at a terminal, and return what it prints."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(directory)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, picture.columns, 0, 0))
        os.execve("/bin/bash", ["bash", "-c", picture.runs or picture.command], environment(directory))  # noqa: S606
    try:
        return read(process, terminal, *picture.before)
    finally:
        os.close(terminal)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def read(process: int, terminal: int, prompt: str, keys: str) -> str:
    """Return everything that a terminal shows, and type *keys* when the process waits for them at the *prompt*."""
    shown = b""
    latest = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < latest:
        if keys and shown.endswith(prompt.encode()):
            wait_until_it_reads(process)  # what is typed earlier is discarded
            os.write(terminal, keys.encode())
            keys = ""
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux reports this when the process has ended
            part = b""
        if not part:
            return shown.decode()
        shown += part
        latest = time.monotonic() + TIMEOUT_SECONDS
    raise SystemExit(f"the command waits, after {shown!r}")


def environment(directory: Path) -> dict[str, str]:
    """Return the environment of a command: that of a new user with a terminal that has colours."""
    home = directory / "home"
    (home / ".local/share/neuroscript/sandbox").mkdir(parents=True, mode=0o700)
    (home / ".cache/neuroscript").mkdir(parents=True, mode=0o700)
    paths = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**paths, "PATH": path, "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}


def main(words: list[str]) -> int:
    """Write the pictures that have changed, or list them, and return the exit code."""
    changed = 0
    for name in PICTURES:
        file = HERE / f"{name}.svg"
        text = svg(name)
        if not file.exists() or file.read_text("utf-8") != text:
            changed += 1
            print(f"{file.name}: {'not current' if words == ['--check'] else 'written'}")
            if words != ["--check"]:
                file.write_text(text, "utf-8")
    return 1 if changed and words == ["--check"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
