"""Build every distribution twice, install the wheels into a new environment, use them, and run all contract checks.

Usage: smoke.py [DIRECTORY]

The distributions are built into DIRECTORY, if it is passed. The checks of one run in a directory that contains only the
`conftest.py` of its tests, with the fixtures for its examples.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from distributions import PROJECTS, ROOT, build, build_all, run


def main(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dist = Path(words[0]).resolve() if words else folder / "dist"
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(venv.create, folder / "env", with_pip=True)
            wheels = build_all(dist)
            made.result()
        check_reproducible(dist, folder / "again")
        use(wheels, dist, folder)
        passed = run_checks(folder)
    built = f"{len(wheels)} wheels and as many source distributions built reproducibly, installed and used"
    print(f"{built}; {passed} contract checks passed")


NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "*_cache", "dist")


def check_reproducible(dist: Path, folder: Path) -> None:
    """Build everything again from a copy in another directory, and compare the files.

    The core is built in an isolated environment, which shows that the build requirements are complete. All projects
    have the same.
    """
    copy = folder / "a copy"
    shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
    for project in PROJECTS:
        build(copy / project.relative_to(ROOT), folder / "dist", isolated=project == ROOT)
    files = [path for path in dist.iterdir() if path.name != "constraints.txt"]
    assert len(files) == 2 * len(PROJECTS), f"{dist} contains other files"
    different = [path.name for path in files if path.read_bytes() != (folder / "dist" / path.name).read_bytes()]
    assert not different, f"another build made a different {' and '.join(different)}"


def use(wheels: list[Path], dist: Path, folder: Path) -> None:
    python = str(folder / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *map(str, wheels))
    wanted = ("--no-index", "--find-links", str(dist), "neuroscript[all]")
    run(python, "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", *wanted)
    code = (
        "from neuroscript import Engine; engine = Engine(); "
        "print(engine.call('math.add', (2, ' 3 ')), 'fs.read' in engine.tools, engine.plugin_errors)"
    )
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    assert run(python, "-c", code, cwd=folder) == "5.0 True ()\n"
    read = [*(folder / "cache").glob("*/index-*.json")]
    assert len(read) == 1, f"only the distribution that computes its toolsets has no index in its wheel: {read}"


def run_checks(folder: Path) -> int:
    """Run the contract checks on the installed distributions, and return how many passed; none may fail."""
    python = str(folder / "env" / "bin" / "python")
    wanted = ("-c", str(ROOT / "constraints.txt"), "pytest", "pyjwt")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(lambda project: checks_of(project, folder), PROJECTS[1:]))


def checks_of(project: Path, folder: Path) -> int:
    """Run all contract checks on a distribution, in a directory from which the checkout cannot be imported."""
    place = folder / "checks" / project.name
    place.mkdir(parents=True)
    shutil.copy(project / "tests" / "conftest.py", place)
    (place / "origins.py").write_text(ORIGINS)
    python = str(folder / "env" / "bin" / "python")
    output = run(python, "-m", "pytest", "-q", "-p", "origins", "--neuroscript-toolset", project.name, cwd=place)
    (passed,) = re.findall(r"^(\d+) passed", output, re.MULTILINE)
    return int(passed)


ORIGINS = """
import sys

def pytest_sessionfinish():
    files = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("neuroscript")}
    assert len({name.partition(".")[0] for name in files}) >= 2, files
    others = [file for file in files.values() if not (file.startswith(sys.prefix) and "site-packages" in file)]
    assert not others, others
"""
"""A pytest plugin which checks that all modules of neuroscript and of the distribution come from the wheels."""


if __name__ == "__main__":
    main(sys.argv[1:])
