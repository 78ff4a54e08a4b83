"""Write the Python examples of the documents to one module per page, and check their types.

    python -m tests.typing.examples             check the examples, and all code of the project, with mypy --strict
    python -m tests.typing.examples --pyright   check the examples with pyright

An example has the same line number in its module as on its page, so each finding names the line of the page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sybil.document import Document
from sybil.parsers.markdown import PythonCodeBlockParser
from tests.npm_packages import installed

ROOT = Path(__file__).parents[2]
PYRIGHT = "1.1.414"
CODE = [
    "src",
    *(str(each.relative_to(ROOT)) for each in sorted(ROOT.glob("plugins/*/src"))),
    *("tests/typing", "dev.py", "docs/_ext", "docs/pictures/make.py"),
    *(f"docs/examples/{name}.py" for name in ("demo_agent", "mail_agent")),
]
"""All other code whose types are checked: with it in one run, mypy reads each library once."""


ABSENT = ["docs_how_to_use_our_tools_in_crewai.py", "docs_how_to_use_our_tools_in_google_adk.py"]
"""Modules of pages about packages that need an environment of their own; pyright does not report them."""


def write_examples(directory: Path) -> dict[str, str]:
    """Write a module for each page with examples, and return the path of the page for the name of each module."""
    pages = {}
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")]):
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
        text = module_of(page)
        if text.strip():
            (directory / f"{name}.py").write_text(text, "utf-8")
            pages[f"{name}.py"] = str(page.relative_to(ROOT))
    return pages


def module_of(page: Path) -> str:
    """Return the examples of a page as the text of a module; a doctest becomes its statements."""
    lines = [""] * page.read_text("utf-8").count("\n")
    for start, example in examples_of(page):
        for offset, line in enumerate(example.rstrip("\n").split("\n")):
            lines[start + offset] = line
    return "\n".join(lines) + "\n"


def examples_of(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the index of the first line of each example, and its code."""
    document = Document.parse(str(page), PythonCodeBlockParser())
    for example in document.examples():
        if hasattr(example.parsed, "want"):  # a doctest
            yield example.line - 1, example.parsed.source
        else:
            yield example.line + example.parsed.line_offset, str(example.parsed)


def main(words: list[str]) -> int:
    """Check the types, print the findings with the lines of the pages, and return the exit code of the checker."""
    with tempfile.TemporaryDirectory() as directory:
        pages = write_examples(Path(directory))
        files = [str(Path(directory, name)) for name in pages]
        done = run_pyright(files) if words == ["--pyright"] else run_mypy([*CODE, *files])
        found = done.stdout
        for name, page in pages.items():
            found = found.replace(str(Path(directory, name)), page)
    print(found, end="")
    return done.returncode


def run_mypy(files: list[str]) -> subprocess.CompletedProcess[str]:
    """Run mypy with the settings of the project."""
    return subprocess.run([sys.executable, "-m", "mypy", *files], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def run_pyright(files: list[str]) -> subprocess.CompletedProcess[str]:
    """Run pyright with its default rules, which are those of editors.

    Raises:
        OSError: It cannot be installed.
    """
    command = installed("pyright", PYRIGHT, "index.js")
    settings = {
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT), *(str(ROOT / each) for each in CODE if each.endswith("src"))],
        "reportUnusedExpression": "none",  # of doctests
        "ignore": ABSENT,
    }
    file = Path(files[0]).with_name("pyrightconfig.json")
    file.write_text(json.dumps(settings))
    words = ["--pythonpath", sys.executable, "--project", str(file)]
    return subprocess.run([*command, *words], cwd=file.parent, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
