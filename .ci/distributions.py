"""Build all distributions reproducibly, check what they contain, and print the command that installs them.

Usage: distributions.py [DIRECTORY]

Writes a wheel and a source distribution of each into DIRECTORY, by default dist, and constraints.txt, which names the
wheels. Two builds of the same sources are identical byte by byte, in any directory. SOURCE_DATE_EPOCH sets the time of
the files in them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
NAMES = ["neuroscript", *(project.name for project in PROJECTS[1:])]


def main(words: list[str]) -> None:
    folder = Path(words[0]).resolve() if words else ROOT / "dist"
    wheels = build_all(folder)
    place = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    print(*(str(place / path.name) for path in sorted(folder.glob("neuroscript*"))), sep="\n")
    print(f"\n{len(wheels)} wheels and as many source distributions. Install the ones that you need with:\n")
    print(f"    {install_command(place, 'std,cli')}")


def install_command(folder: Path, extras: str) -> str:
    """Return the command that installs the core with some extras from a directory, without searching for our names."""
    return f'pip install -c {folder}/constraints.txt "{folder}/neuroscript-{version()}-py3-none-any.whl[{extras}]"'


def build_all(folder: Path) -> list[Path]:
    """Build and check all distributions, and return their wheels. Earlier ones in *folder* are deleted."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("neuroscript*-*.whl"), *folder.glob("neuroscript*-*.tar.gz")]:
        path.unlink()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        [*pool.map(lambda project: build(project, folder), PROJECTS)]
    wheels = wheels_in(folder)
    for project, wheel in zip(PROJECTS, wheels, strict=True):
        check_wheel(project, wheel)
        check_source(project, wheel.with_name(f"{wheel.name.split('-py3-')[0]}.tar.gz"))
    write_constraints(folder)
    return wheels


def wheels_in(folder: Path) -> list[Path]:
    """Return the path of each wheel, in the order of the projects."""
    return [folder / f"{name.replace('-', '_')}-{version()}-py3-none-any.whl" for name in NAMES]


def write_constraints(folder: Path) -> None:
    """Write the constraints with which pip takes our distributions from *folder* alone, not from an index."""
    lines = (f"{name} @ {wheel.as_uri()}\n" for name, wheel in zip(NAMES, wheels_in(folder), strict=True))
    (folder / "constraints.txt").write_text("".join(lines), "utf-8")


def version() -> str:
    """Return the version of all distributions, which only the package of the core contains."""
    (found,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / "src/neuroscript/__init__.py").read_text(), re.MULTILINE)
    return str(found)


def build(project: Path, folder: Path, *, isolated: bool = False) -> None:
    """Build a source distribution, and a wheel from it.

    Args:
        isolated: Whether to install the build requirements into an environment of their own.
    """
    options = [] if isolated else ["--no-isolation"]
    with indexed(project):
        command = [sys.executable, "-m", "build", *options, "--outdir", str(folder), str(project)]
        run(*command, PIP_CONSTRAINT=str(ROOT / "constraints.txt"))


@contextmanager
def indexed(project: Path) -> Iterator[None]:
    """Write the index of the toolsets of a project into its package, unless they are computed, and remove it again."""
    (package,) = project.glob("src/*/__init__.py")
    index = package.with_name("neuroscript.json")
    try:
        if "neuroscript.toolsets" in (project / "pyproject.toml").read_text():
            run(sys.executable, "-m", "neuroscript", "index", project.name, "--output", str(index))
        yield
    finally:
        index.unlink(missing_ok=True)


def check_wheel(project: Path, wheel: Path) -> None:
    """Check the files and the metadata of a wheel."""
    package = next(project.glob("src/*/__init__.py")).parent.name
    info = f"{wheel.name.split('-py3-')[0]}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licence = archive.read(f"{info}/licenses/LICENSE")
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
    assert {name.partition("/")[0] for name in names} == {package, info}, f"{wheel.name} contains other files"
    assert not any("tests" in name.split("/")[:-1] for name in names), f"{wheel.name} contains tests"
    assert f"{package}/py.typed" in names, f"{wheel.name} has no py.typed"
    assert licence == (ROOT / "LICENSE").read_bytes(), f"{wheel.name} has another licence"
    check_metadata(project, metadata)


def check_metadata(project: Path, metadata: Message) -> None:
    """Check that the metadata is that of the project, and that it requires compatible versions of the others."""
    table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    expected = {
        "Name": table["name"],
        "Version": version(),
        "Summary": table["description"],
        "License-Expression": "MIT",
        "Author": "The NeuroScript for Python authors",
        "Requires-Python": ">=3.11",
    }
    assert {key: metadata[key] for key in expected} == expected
    assert metadata.get_all("Classifier") == table["classifiers"]
    assert metadata.get_payload() == (project / "README.md").read_text(), f"{table['name']} has another description"
    for requirement in map(Requirement, metadata.get_all("Requires-Dist", [])):
        if requirement.name in NAMES and requirement.name != table["name"] and not requirement.extras:
            assert str(requirement.specifier) == compatible(), f"{table['name']} requires {requirement}"


def compatible() -> str:
    """Return the versions that this version works with: those of the same minor version, up to 1.0."""
    major, minor, *_ = map(int, version().split("."))
    return f"<{major}.{minor + 1},>={major}.{minor}.0" if major == 0 else f"<{major + 1},>={major}.0.0"


def check_source(project: Path, source: Path) -> None:
    """Check that a source distribution has what a build needs."""
    root = source.name.removesuffix(".tar.gz")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    missing = {f"{root}/{name}" for name in ("pyproject.toml", "PKG-INFO", "README.md", "LICENSE")} - {*names}
    assert not missing, f"{source.name} lacks {missing}"
    assert any(name.endswith("/py.typed") for name in names), f"{source.name} has no py.typed"


def run(*command: str, cwd: Path = ROOT, **settings: str) -> str:
    """Run a program, and return its output; it must succeed."""
    environment = {**os.environ, **settings}
    done = subprocess.run(
        command, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, f"{command[1:4]} failed:\n{done.stdout}"
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
