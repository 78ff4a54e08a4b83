"""``neuroscript index``, and the build hook: what a distribution ships of its tools is what its code says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Ran, command
from tests.distributions import TOOLSET

PROJECT = """
[build-system]
requires = ["hatchling>=1.27", "neuroscript"]
build-backend = "hatchling.build"

[project]
name = "Acme.Tools"
version = "1.0"

[project.entry-points."neuroscript.toolsets"]
acme = "acme_tools:toolset"

[tool.hatch.build.hooks.neuroscript]

[tool.hatch.build.targets.wheel]
packages = ["src/acme_tools"]
"""
METADATA = "Metadata-Version: 2.1\nName: Acme.Tools\nVersion: 1.0\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of an installed package with one tool."""
    info, package = tmp_path / "acme_tools-1.0.dist-info", tmp_path / "acme_tools"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text("[neuroscript.toolsets]\nacme = acme_tools:toolset\n")
    package.mkdir()
    (package / "__init__.py").write_text(TOOLSET.format(group="acme", name="a"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    assert "acme_tools" not in sys.modules


def index(*words: str) -> Ran:
    return command("index", *words, make_engine=None)


def test_an_index_is_written_into_the_package(package: Path) -> None:
    """With all that an engine needs to know, and checked from then on."""
    file = package / "neuroscript.json"

    assert index("acme-tools") == Ran(0, f"{file}: 1 tools\n")
    written = json.loads(file.read_text())
    assert (written["distribution"], written["version"], written["format"]) == ("Acme.Tools", "1.0", 1)
    (tool,) = written["entry_points"][0]["tools"]
    assert (tool["name"], tool["signature"], tool["is_coroutine"]) == ("acme.who", "() -> string", False)
    assert index("acme-tools", "--check") == Ran(0, f"{file} is current\n")


def test_a_check_finds_what_the_code_no_longer_says(package: Path) -> None:
    """And writes nothing; the next index does."""
    file = package / "neuroscript.json"
    assert index("acme_tools", "--check") == Ran(1, f"{file} is not what the code says\n")
    assert not file.exists()
    index("acme-tools")
    (package / "__init__.py").write_text(TOOLSET.format(group="acme", name="a").replace("who", "whom"))

    assert index("acme-tools", "--check").code == 1
    ran = index("acme-tools", "--json")
    assert json.loads(ran.out) == {"file": str(file), "tools": 1, "was_current": False}
    assert index("acme-tools", "--check").code == 0


def test_the_index_is_used_and_nothing_is_imported(package: Path) -> None:
    """The list shows the tools of a package whose code is gone."""
    index("acme-tools")
    (package / "__init__.py").write_text("raise AssertionError")

    ran = command("list", "acme.*", make_engine=None)

    assert ran.out == "acme.who  () -> string\n"


def test_an_index_goes_where_it_is_told(package: Path, tmp_path: Path) -> None:
    """A file of another name; one that can not be written is told of."""
    file = tmp_path / "other.json"

    assert index("acme-tools", "--output", str(file)).code == 0
    assert json.loads(file.read_text())["distribution"] == "Acme.Tools"
    ran = index("acme-tools", "--output", str(tmp_path / "no" / "such"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("no such file or directory\n")


def test_what_an_engine_could_not_use_has_no_index(package: Path) -> None:
    """The reason is that of the engine; a single module has no package to put it in."""
    (package / "__init__.py").write_text("raise RuntimeError('set ACME_KEY')")
    ran = index("acme-tools")
    assert (ran.code, ran.out) == (2, "")
    reason = "RuntimeError: set ACME_KEY (__init__.py, line 1)"
    assert ran.err == f"neuroscript: Acme.Tools 1.0: entry point acme cannot be loaded: {reason}\n"

    (package / "__init__.py").rename(package.with_suffix(".py"))
    shutil.rmtree(package)
    package.with_suffix(".py").write_text(TOOLSET.format(group="acme", name="a"))
    ran = index("acme-tools")
    assert ran.code == 2
    assert ran.err == "neuroscript: Acme.Tools 1.0 has no package to put its index in; name a file with --output\n"


def test_what_is_computed_has_no_index(package: Path) -> None:
    """It may be something else on another machine."""
    info = package.parent / "acme_tools-1.0.dist-info" / "entry_points.txt"
    info.write_text("[neuroscript.plugins]\nacme = acme_tools\n")

    ran = index("acme-tools")

    assert ran.code == 2
    assert (
        ran.err == "neuroscript: Acme.Tools 1.0 computes its toolsets; an index of them is made where they are used\n"
    )


def build(project: Path) -> Any:
    """Build a wheel with the hook of this project, without the network."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that is built with the hook."""
    source = tmp_path / "src" / "acme_tools"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text(TOOLSET.format(group="acme", name="a"))
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def test_the_build_hook_ships_the_index(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel that is built, unpacked and looked at."""
    built = build(project)
    assert built.returncode == 0, built.stderr
    (wheel,) = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(project / "site")
    (project / "site" / "acme_tools" / "__init__.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(str(project / "site"))

    assert command("list", "acme.*", make_engine=None).out == "acme.who  () -> string\n"


def test_a_wheel_that_no_engine_could_use_is_not_built(project: Path) -> None:
    """And whoever builds it is told why."""
    (project / "src" / "acme_tools" / "__init__.py").write_text("toolset = 1")

    built = build(project)

    assert built.returncode != 0
    assert "Acme.Tools 1.0: entry point acme is no Toolset but a int" in built.stderr
    assert not [*project.glob("dist/*.whl")]
