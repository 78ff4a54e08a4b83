"""Wheels of the installed distributions, so that a test can install them elsewhere without a network.

Their files follow the specifications of the PyPA for binary distributions and installed projects.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]

OF_INSTALLERS: Final = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "RECORD.jws", "uv_cache.json"}
"""What an installer adds to the files of a wheel."""


def wheelhouse(folder: Path, *names: str) -> Path:
    """Fill a folder with wheels of some distributions and of all that they need, and return it.

    Args:
        names: Requirements of what is installed here; neuroscript itself is built from its sources.
    """
    for found in needed(names):
        if canonicalize_name(found.metadata["Name"]) != "neuroscript":
            repacked(found, folder)
    built(ROOT, folder)
    return folder


def built(project: Path, folder: Path) -> None:
    """Build the wheel of a project with the backend that is installed here."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def needed(names: Iterable[str]) -> list[Distribution]:
    """Return the distributions that are installed here under these names, and all that they need."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(name) for name in names]
    request: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in request:
            continue
        request.add(str(requirement))
        each = found.setdefault(canonicalize_name(requirement.name), distribution(requirement.name))
        waiting += _required(each, requirement.extras)
    return [*found.values()]


def _required(each: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for text in each.requires or ():
        required = Requirement(text)
        chosen = [{"extra": extra} for extra in ("", *extras)]
        if required.marker is None or any(required.marker.evaluate(each) for each in chosen):
            yield required


def repacked(installed: Distribution, folder: Path) -> Path:
    """Write the wheel that a distribution was installed from, without what its installer added.

    Scripts are left out: an installer makes them anew from the entry points.
    """
    assert isinstance(installed, PathDistribution)
    info = next(file for file in installed.files or () if file.name == "METADATA").parent
    files = [file for file in installed.files or () if _belongs(file, info)]
    path = folder / f"{info.stem}-{_tag(installed)}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        lines = []
        for file in files:
            data = Path(str(installed.locate_file(file))).read_bytes()
            wheel.writestr(file.as_posix(), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f'"{file.as_posix()}",sha256={digest},{len(data)}\n')
        wheel.writestr(f"{info.as_posix()}/RECORD", "".join([*lines, f"{info.as_posix()}/RECORD,,\n"]))
    return path


def _belongs(file: PurePosixPath, info: PurePosixPath) -> bool:
    if file.is_absolute() or ".." in file.parts or "__pycache__" in file.parts:
        return False
    return not (file.parent == info and file.name in OF_INSTALLERS)


def _tag(installed: Distribution) -> str:
    """Return the tags of a wheel as its name has them: each part once, joined by dots."""
    lines = (installed.read_text("WHEEL") or "").splitlines()
    tags = [tuple(line.split()[1].split("-")) for line in lines if line.startswith("Tag:")]
    parts = [list(dict.fromkeys(part)) for part in zip(*tags, strict=True)]
    assert {*product(*parts)} == {*tags}, "not every combination of the parts is a tag"
    return "-".join(".".join(part) for part in parts)
