"""``neuroscript index`` and the build hook: the index of a distribution matches its code."""

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
from tests.cli.conftest import CommandResult, command
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
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "acme-tools")
    yield package
    assert "acme_tools" not in sys.modules


def index(*words: str) -> CommandResult:
    return command("index", *words, make_engine=None)


def test_index_is_written_to_the_package(package: Path) -> None:
    """It contains everything that an engine needs, and --check passes afterwards."""
    file = package / "neuroscript.json"

    assert index("acme-tools") == CommandResult(0, f"{file}: 1 tools\n")
    written = json.loads(file.read_text())
    assert (written["distribution"], written["version"], written["format"]) == ("Acme.Tools", "1.0", 2)
    (tool,) = written["entry_points"][0]["tools"]
    assert (tool["name"], tool["signature"], tool["is_coroutine"]) == ("acme.who", "() -> string", False)
    assert index("acme-tools", "--check") == CommandResult(0, f"{file} is current\n")


def test_check_finds_an_outdated_index(package: Path) -> None:
    """It writes nothing; the next run updates the index."""
    file = package / "neuroscript.json"
    assert index("acme_tools", "--check") == CommandResult(1, f"{file} does not match the code\n")
    assert not file.exists()
    index("acme-tools")
    (package / "__init__.py").write_text(TOOLSET.format(group="acme", name="a").replace("who", "whom"))

    assert index("acme-tools", "--check").code == 1
    result = index("acme-tools", "--json")
    assert json.loads(result.out) == {"file": str(file), "tools": 1, "was_current": False}
    assert index("acme-tools", "--check").code == 0


def test_index_is_used_without_an_import(package: Path) -> None:
    """The list contains the tools of a package whose code is missing."""
    index("acme-tools")
    (package / "__init__.py").write_text("raise AssertionError")

    result = command("list", "acme.*", make_engine=None)

    assert result.out == "acme.who  () -> string\n"


def test_output_option_sets_the_file(package: Path, tmp_path: Path) -> None:
    """A file that cannot be written is reported."""
    file = tmp_path / "other.json"

    assert index("acme-tools", "--output", str(file)).code == 0
    assert json.loads(file.read_text())["distribution"] == "Acme.Tools"
    result = index("acme-tools", "--output", str(tmp_path / "no" / "such"))
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith("no such file or directory\n")


def test_unusable_distribution_gets_no_index(package: Path) -> None:
    """The reason is that of the engine; a single module has no package for an index."""
    (package / "__init__.py").write_text("raise RuntimeError('set ACME_KEY')")
    result = index("acme-tools")
    assert (result.code, result.out) == (2, "")
    reason = "RuntimeError: set ACME_KEY (__init__.py, line 1)"
    assert result.err == f"neuroscript: Acme.Tools 1.0: entry point acme cannot be loaded: {reason}\n"

    (package / "__init__.py").rename(package.with_suffix(".py"))
    shutil.rmtree(package)
    package.with_suffix(".py").write_text(TOOLSET.format(group="acme", name="a"))
    result = index("acme-tools")
    assert result.code == 2
    assert result.err == "neuroscript: Acme.Tools 1.0 has no package for its index; add --output FILE\n"


def test_computed_toolsets_get_no_index(package: Path) -> None:
    """They may differ on another machine."""
    info = package.parent / "acme_tools-1.0.dist-info" / "entry_points.txt"
    info.write_text("[neuroscript.plugins]\nacme = acme_tools\n")

    result = index("acme-tools")

    assert result.code == 2
    assert (
        result.err == "neuroscript: Acme.Tools 1.0 computes its toolsets, so it cannot have an index in its package\n"
    )


def build(project: Path) -> Any:
    """Build a wheel with the hook of this project, without the network."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that uses the build hook."""
    source = tmp_path / "src" / "acme_tools"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text(TOOLSET.format(group="acme", name="a"))
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def test_build_hook_ships_the_index(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test builds and unpacks a wheel."""
    built = build(project)
    assert built.returncode == 0, built.stderr
    (wheel,) = (project / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(project / "site")
    (project / "site" / "acme_tools" / "__init__.py").write_text("raise AssertionError")
    monkeypatch.syspath_prepend(str(project / "site"))
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "acme-tools")

    assert command("list", "acme.*", make_engine=None).out == "acme.who  () -> string\n"


def test_unusable_wheel_is_not_built(project: Path) -> None:
    """The build fails with the reason."""
    (project / "src" / "acme_tools" / "__init__.py").write_text("toolset = 1")

    built = build(project)

    assert built.returncode != 0
    assert "Acme.Tools 1.0: entry point acme is not a Toolset but a int" in built.stderr
    assert not [*project.glob("dist/*.whl")]
