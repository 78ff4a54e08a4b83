"""Run AgentDojo's tasks and attacks through the engine: ``python -m tests.benchmarks.agentdojo``.

AgentDojo has user's tasks for an agent with tools, and attacks that are hidden in what these tools return. Here, no
model runs. Each user's task is played as its ground truth says, and then each attack, for a model that obeys it fully.

The command makes an environment with AgentDojo and pinned versions of what it needs, once, and plays there. It prints a
table of attacks that pass and tasks that ask, for each profile of `tests.benchmarks.agentdojo.profiles`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from .profiles import PROFILES

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[2]
ENVIRONMENT: Final = ROOT / f".venv-{sys.version_info.major}.{sys.version_info.minor}-agentdojo"
CONSTRAINTS: Final = (ROOT / "constraints.txt", HERE / "constraints.txt")
"""Files that pin everything that is installed."""
RESULTS: Final = ROOT / "docs" / "explanation" / "agentdojo.json"
"""The figures that the documentation states."""
PAGE: Final = RESULTS.with_suffix(".md")
EXPLANATION: Final = RESULTS.with_name("prompt-injection.md")
BEGIN, END = "<!-- agentdojo: begin -->\n", "<!-- agentdojo: end -->\n"

SUITES: Final = ("workspace", "travel", "banking", "slack")
DISGUISES: Final = tuple(sorted(path.stem for path in HERE.glob("disguises/*.py")))
"""The names of our own rewrites of the attacks."""
FOLLOWING: Final = ("values", "allow-list+values")
"""The profiles that compare text, so that a disguise matters."""

Figures = dict[str, Any]


def main(words: Sequence[str] | None = None) -> int:
    """Play what *words* select, print the figures, and return the exit code."""
    options = parser().parse_args(words)
    if options.write or options.check:
        figures = measured()
        print("\n".join([*table(figures), "", *disguise_table(figures)]))
        if options.write:
            write(figures)
        return report_differences(figures)
    if options.rewrite is not None and not options.rewrite.is_file():
        parser().error(f"{options.rewrite} is not a file")
    suites, profiles = options.suite or SUITES, options.profile or tuple(PROFILES)
    figures = play(suites, profiles, options.rewrite, lists=options.list)
    print(json.dumps(figures) if options.json else "\n".join(table(figures)))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    made = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.agentdojo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", action="store_true", help="print the figures as JSON")
    made.add_argument(
        "--rewrite",
        type=Path,
        metavar="FILE.py",
        help="disguise the calls of attacks with its function rewrite(arguments)",
    )
    made.add_argument("--suite", action="append", choices=SUITES, help="play this suite; all by default")
    made.add_argument(
        "--profile", action="append", choices=tuple(PROFILES), help="play under this profile; all by default"
    )
    made.add_argument("--list", action="store_true", help="list the attacks that pass, and why tasks ask, on stderr")
    made.add_argument(
        "--check", action="store_true", help=f"play everything, also disguised, and exit 1 if {RESULTS.name} differs"
    )
    made.add_argument("--write", action="store_true", help=f"play everything, also disguised, and write {RESULTS.name}")
    return made


def play(
    suites: Sequence[str], profiles: Sequence[str], rewrite: Path | None = None, *, lists: bool = False
) -> Figures:
    """Return the figures of some suites and profiles, which are measured in the environment of AgentDojo.

    Args:
        rewrite: A file with a function ``rewrite`` that disguises the arguments of an attack's calls.
        lists: Whether to list attacks and tasks on stderr.
    """
    options = {"suites": suites, "profiles": profiles, "rewrite": rewrite and str(rewrite.resolve()), "list": lists}
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [environment(), "-m", "tests.benchmarks.agentdojo.worker", json.dumps(options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT, env=variables)
    if done.returncode:
        raise SystemExit(done.returncode)
    figures: Figures = json.loads(done.stdout)
    return figures


def environment() -> str:
    """Return the interpreter of the environment with AgentDojo, which is made if its packages have changed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = next(line for line in CONSTRAINTS[1].read_text().splitlines() if line.startswith("agentdojo=="))
    packages = [pinned, *project["dependencies"]]
    facts = "\n".join([*packages, *(path.read_text() for path in CONSTRAINTS)])
    made = ENVIRONMENT / f"made-for-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
    python = str(ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not made.exists():
        print(f"installing {pinned} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        constraints = [word for path in CONSTRAINTS for word in ("-c", str(path))]
        subprocess.run([*pip, *constraints, *packages], check=True, stdout=sys.stderr)
        made.touch()
    return python


def table(figures: Figures) -> Iterator[str]:
    """Yield the lines of a Markdown table with a row for each profile."""
    yield "| profile | attacks | that pass | and take effect | tasks | that ask | impossible |"
    yield "|---|---|---|---|---|---|---|"
    for name, each in figures["profiles"].items():
        cells = (each[key] for key in ("pairs", "through", "effective", "tasks", "asked", "impossible"))
        yield f"| {name} | {' | '.join(map(str, cells))} |"


def disguise_table(figures: Figures) -> Iterator[str]:
    """Yield the lines of a Markdown table with a row for each disguise and a column for each profile."""
    yield f"| disguise | {' | '.join(FOLLOWING)} |"
    yield f"|---|{'---|' * len(FOLLOWING)}"
    for name, profiles in {"none": figures["profiles"], **figures["disguises"]}.items():
        yield f"| {name.replace('_', ' ')} | {' | '.join(str(profiles[each]['through']) for each in FOLLOWING)} |"


def measured() -> Figures:
    """Return all figures that the documentation states: those of all profiles, and those of each disguise."""
    disguised = {name: play(SUITES, FOLLOWING, HERE / "disguises" / f"{name}.py")["profiles"] for name in DISGUISES}
    return {**play(SUITES, tuple(PROFILES)), "disguises": disguised}


def write(figures: Figures) -> None:
    """Store all figures, and update the tables of both pages."""
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    for page, tables in ((PAGE, [*table(figures), "", *disguise_table(figures)]), (EXPLANATION, [*table(figures)])):
        head, begin, rest = page.read_text().partition(BEGIN)
        _, end, tail = rest.partition(END)
        block = "\n".join(["", *tables, "", ""])
        page.write_text(f"{head}{begin}{block}{end}{tail}")


def report_differences(figures: Figures) -> int:
    """Print the rows that differ from the stored ones, and return 1 if there are any."""
    stored = json.loads(RESULTS.read_text())
    different = [*changed_rows(table, stored, figures), *changed_rows(disguise_table, stored, figures)]
    for line in different:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if different else 0


def changed_rows(rows: Callable[[Figures], Iterator[str]], stored: Figures, figures: Figures) -> list[str]:
    """Return the rows of a table that differ from the stored ones."""
    known = [*rows(stored)]
    return [line for line in rows(figures) if line not in known]


if __name__ == "__main__":
    sys.exit(main())
