#!/usr/bin/env python3
"""Compare neuroscript with other frameworks: ``run.py`` prints the table of README.

    run.py                      make an environment for each framework, observe it, and print the table
    run.py --environments DIR   make the environments in DIR, or use those that are there
    run.py --check              exit 1 if a cell differs from results.json
    run.py --write              write results.json, and the table into README.md and index.md

It needs Python 3.11 or later and a package index. All versions are pinned. The probes use no network and no model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

# ruff: noqa: S603, T201

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
RESULTS: Final = HERE / "results.json"
PAGES: Final = (ROOT / "README.md", HERE / "index.md")
BEGIN, END = "<!-- comparison: begin -->\n", "<!-- comparison: end -->\n"

FRAMEWORKS: Final = {
    "neuroscript": f"{ROOT}[llm,mcp]",
    "FastMCP": "fastmcp==4.1.2",
    "pydantic-ai": "pydantic-ai-slim==2.68.0",
    "llm": "llm==0.36",
    "LangChain": "langchain==1.3.0",
}
"""What pip installs for each framework."""
CONSTRAINTS: Final = (ROOT / "constraints.txt", HERE / "constraints.txt")
"""Files that pin everything else."""

Results = dict[str, Any]


def main(argv: list[str]) -> int:
    """Print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, metavar="DIR")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="comparison-") as temporary:
        results = observe((options.environments or Path(temporary)).resolve())
    print("\n".join(table(results)))
    if options.write:
        write(results)
    return report_differences(results) if options.check else 0


def observe(directory: Path) -> Results:
    """Return the cells of all frameworks, and their versions."""
    columns: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}
    for name, requirement in FRAMEWORKS.items():
        module = name.lower().replace("-", "_")
        python = environment(directory / module, requirement)
        print(f"calling the tools of {name} …", file=sys.stderr)
        columns[name] = json.loads(output(python, str(HERE / "probe.py"), module))
        versions[name] = version_of(python, requirement)
    rows = list(columns["neuroscript"])
    return {"versions": versions, "rows": {row: {name: cells[row] for name, cells in columns.items()} for row in rows}}


def environment(directory: Path, requirement: str) -> str:
    """Return the interpreter of an environment with *requirement*, which is made unless it exists."""
    python = str(directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    installed = directory / "installed"
    if not installed.exists():
        print(f"installing {directory.name} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory)], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        constraints = [word for path in CONSTRAINTS for word in ("-c", str(path))]
        subprocess.run([*pip, *constraints, requirement], check=True, stdout=sys.stderr)
        installed.touch()
    return python


def version_of(python: str, requirement: str) -> str:
    """Return the version of a framework."""
    _, _, pinned = requirement.partition("==")
    return pinned or output(python, "-c", "import neuroscript; print(neuroscript.__version__)").strip()


def output(*command: str) -> str:
    """Return what a command prints, or raise an error with what it reports."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def table(results: Results) -> list[str]:
    """Return the lines of the Markdown table."""
    titles = [f"{name} {version}" for name, version in results["versions"].items()]
    lines = [f"| | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    lines += [f"| {row} | {' | '.join(cells.values())} |" for row, cells in results["rows"].items()]
    return lines


def write(results: Results) -> None:
    """Store the results, and update the table of each page."""
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for page in PAGES:
        head, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, end, tail = rest.partition(END)
        if not (begin and end):
            raise SystemExit(f"{page.name} has no place for the table")
        block = "\n".join(["", *table(results), "", ""])
        page.write_text(f"{head}{begin}{block}{end}{tail}", encoding="utf-8")


def report_differences(results: Results) -> int:
    """Print the lines that differ from the stored results, and return 1 if there are any."""
    stored = table(json.loads(RESULTS.read_text(encoding="utf-8")))
    different = [line for line in table(results) if line not in stored]
    for line in different:
        print(f"differs from {RESULTS.name}: {line}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
