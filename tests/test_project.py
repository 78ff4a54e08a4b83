"""The project itself: what stands in several files stands there alike, and nothing of a machine is left in it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGINS = [tomllib.loads(path.read_text()) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]


def tracked() -> list[Path]:
    """Return the files that git knows."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def test_the_core_depends_on_four_libraries_alone() -> None:
    """All else is an extra."""
    names = [re.split(r"[<>=]", each)[0] for each in PROJECT["project"]["dependencies"]]

    assert names == ["attrs", "cattrs", "pluggy", "platformdirs"]


def test_every_plugin_is_a_source_of_the_workspace() -> None:
    """So that uv takes it from here."""
    names = {plugin["project"]["name"] for plugin in PLUGINS}

    assert set(PROJECT["tool"]["uv"]["sources"]) == names | {"neuroscript"}


def test_every_library_that_is_asked_for_has_a_constraint() -> None:
    """What is tested is what is installed."""
    wanted = [*PROJECT["project"]["dependencies"]]
    for each in [PROJECT, *PLUGINS]:
        wanted += [*each["project"]["dependencies"]]
        wanted += [name for extra in each["project"].get("optional-dependencies", {}).values() for name in extra]
    names = {re.split(r"[\[<>=; ]", each)[0].lower().replace("-", "_") for each in wanted if "sys_platform" not in each}
    constrained = {
        line.split("==")[0].lower().replace("-", "_") for line in lines_of("constraints.txt") if "==" in line
    }

    assert {name for name in names if not name.startswith("neuroscript")} <= constrained


def lines_of(name: str) -> list[str]:
    """Return the lines of a file of the project."""
    return (ROOT / name).read_text().splitlines()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_nothing_of_a_machine_is_in_the_files() -> None:
    """No path of a home directory, no address of a package index."""
    machine = re.compile(r"/root/|/home/[a-z]+/|file:///|(?<!test\.)pypi\.org|/work/main|/tmp/[a-z]")
    texts = [path for path in tracked() if path.suffix in (".py", ".md", ".toml", ".txt", ".jsonl") and path.exists()]
    found = [path.name for path in texts if machine.search(path.read_text()) and path != Path(__file__)]

    assert found == []


def test_the_design_page_draws_each_module_of_the_house() -> None:
    """A room that is not in the picture is found by nobody."""
    picture = (ROOT / "docs" / "explanation" / "design.md").read_text()
    modules = [path.name for path in (ROOT / "src" / "neuroscript").iterdir() if path.suffix == ".py"]
    packages = [f"{path.parent.name}/" for path in (ROOT / "src" / "neuroscript").glob("*/__init__.py")]

    assert [name for name in [*modules, *packages] if name not in picture and name != "__main__.py"] == []
