"""Build every distribution, install the wheels into a new environment, use them, and run all contract checks on them.

The checks of a distribution run in a directory that contains only the `conftest.py` of its tests, with the fixtures for
its examples.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.submit(venv.create, folder / "env", with_pip=True)
            for _ in pool.map(lambda project: build(project, folder / "dist"), PROJECTS):
                pass
            made.result()
        wheels = sorted((folder / "dist").glob("*.whl"))
        for wheel in wheels:
            check_wheel(wheel)
        use(wheels, folder)
        passed = run_checks(folder)
    built = f"{len(wheels)} wheels and as many source distributions built, installed and used"
    print(f"{built}; {passed} contract checks passed")


def build(project: Path, folder: Path) -> None:
    """Build a source distribution and a wheel from it, with the index of the toolsets that are not computed.

    All projects have the same build requirements, so one build in an isolated environment shows that they are complete.
    """
    assert build_system(project) == build_system(ROOT), f"{project.name} needs its own isolated build"
    here = [] if project == ROOT else ["--no-isolation"]
    (package,) = project.glob("src/*/__init__.py")
    index = package.with_name("neuroscript.json")
    if "neuroscript.toolsets" in (project / "pyproject.toml").read_text():
        run(sys.executable, "-m", "neuroscript", "index", project.name)
    try:
        run(sys.executable, "-m", "build", *here, "--outdir", str(folder), str(project))
    finally:
        index.unlink(missing_ok=True)


def build_system(project: Path) -> object:
    return tomllib.loads((project / "pyproject.toml").read_text())["build-system"]


def check_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("/py.typed") for name in names), f"{wheel.name} has no py.typed"
    assert not any(name.startswith("tests/") for name in names), f"{wheel.name} contains tests"


def use(wheels: list[Path], folder: Path) -> None:
    python = str(folder / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *map(str, wheels))
    wanted = ("--no-index", "--find-links", str(folder / "dist"), "neuroscript[all]")
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
    wanted = ("-c", str(ROOT / "constraints.txt"), "pytest", "neuroscript-std[jwt]")
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


def run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{command[1:4]} failed:\n{done.stdout}"
    return done.stdout


if __name__ == "__main__":
    main()
