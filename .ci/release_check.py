"""Check whether this commit can be released, and list every problem. The exit status is 1 if there is one.

Usage: release_check.py [--static]

Checks the tree and its tag, the changelog, the metadata and the documents. Then it builds all distributions twice,
checks them as an index does, and tests the wheels in a new environment for each supported version of Python that is
installed.
`--static` builds nothing. docs/release.md describes a release.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from distributions import NAMES, PROJECTS, ROOT, build_all, run, version, wheels_in
from smoke import check_reproducible, run_checks, use

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The supported versions of Python."""

UNPUBLISHED = "not on a package index"
"""What documents say until the names are registered."""


def main(words: list[str]) -> int:
    found = [*static_problems(ROOT)]
    if "--static" not in words:
        found += build_problems()
    for problem in found:
        print(f"- {problem}")
    print(f"{version()} can be released" if not found else f"{len(found)} problems; {version()} cannot be released")
    return int(bool(found))


def static_problems(root: Path) -> Iterator[str]:
    """Yield the problems of a checkout that are visible without a build."""
    yield from tree_problems(root)
    yield from setting_problems(root)


def tree_problems(root: Path) -> Iterator[str]:
    """Yield changes that are not committed, and a missing tag."""
    if git(root, "status", "--porcelain"):
        yield "the tree has changes; commit or remove them"
    tag = f"v{version()}"
    if tag not in git(root, "tag", "--points-at", "HEAD").split():
        where = "is on another commit" if tag in git(root, "tag").split() else "does not exist; run: git tag -s"
        yield f"the tag {tag} {where}"


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, text=True, capture_output=True, check=True).stdout


def setting_problems(root: Path) -> Iterator[str]:
    """Yield what a maintainer has to set or write before a release."""
    if not re.search(rf"^## {re.escape(version())} - \d{{4}}-\d\d-\d\d$", text(root, "CHANGELOG.md"), re.MULTILINE):
        yield f"CHANGELOG.md: has no section with a date; write: ## {version()} - YYYY-MM-DD"
    tables = [str(project.relative_to(ROOT) / "pyproject.toml") for project in PROJECTS]
    lacking = [
        name for name in tables if "Repository" not in tomllib.loads(text(root, name))["project"].get("urls", {})
    ]
    if lacking:
        yield f"{', '.join(lacking)}: set Repository in [project.urls]"
    if not re.search(r"^Contact: .*(?:@|https://)", text(root, "SECURITY.md"), re.MULTILINE):
        yield "SECURITY.md: set the contact, an email address or a URL"
    if "PUBLISHED: Final[bool] = True" not in text(root, "src/neuroscript/_imports.py"):
        yield f"src/neuroscript/_imports.py: register {', '.join(NAMES)} on the index, and set PUBLISHED"
    else:
        pages = [root / "README.md", *(root / "docs").rglob("*.md")]
        stale = [str(page.relative_to(root)) for page in sorted(pages) if UNPUBLISHED in page.read_text("utf-8")]
        yield from [f"{', '.join(stale)}: say that neuroscript is {UNPUBLISHED}"] if stale else []


def text(root: Path, name: str) -> str:
    return (root / name).read_text("utf-8") if (root / name).exists() else ""


def build_problems() -> Iterator[str]:
    """Yield the problems of the distributions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dist = folder / "dist"
        yield from failure("building", build_all, dist)
        wheels = wheels_in(dist)
        if not all(wheel.exists() for wheel in wheels):
            return
        yield from failure("building again", check_reproducible, dist, folder / "again")
        files = [str(path) for path in sorted(dist.glob("neuroscript*"))]
        yield from failure("twine", run, sys.executable, "-m", "twine", "check", "--strict", *files)
        for python in VERSIONS:
            program = interpreter(python)
            if program is None:
                print(f"not tested on Python {python}, which is not installed")
            else:
                yield from failure(f"Python {python}", check_wheels, program, wheels, dist, folder / python)


def failure(name: str, check: Callable[..., object], *words: object) -> Iterator[str]:
    """Yield the error of a check, if it fails."""
    try:
        check(*words)
    except AssertionError as error:
        yield f"{name}: {error}"


def interpreter(python: str) -> str | None:
    """Return the program of a version of Python, if there is one that runs."""
    program = shutil.which(f"python{python}")
    if program is None or subprocess.run([program, "-c", ""], capture_output=True).returncode:
        return None
    return program


def check_wheels(program: str, wheels: list[Path], dist: Path, folder: Path) -> None:
    """Install the wheels into a new environment, use them, and run all contract checks on them."""
    folder.mkdir()
    run(program, "-m", "venv", str(folder / "env"))
    use(wheels, dist, folder)
    print(f"Python {folder.name}: {run_checks(folder)} contract checks passed", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
