"""Bundles: names for several first-party distributions, their extras, and errors for missing members."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from neuroscript import Engine, PluginError, bundle
from neuroscript._imports import install_hint
from neuroscript.discovery.bundles import BUNDLES, EXTRAS, expand_bundles
from neuroscript.discovery.catalog import FIRST_PARTY

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_brings_the_distribution_of_its_name(extra: str) -> None:
    """Which is one of ours, and is in the workspace."""
    assert required(extra) == EXTRAS[extra] == f"neuroscript-{extra}"
    assert (ROOT / "plugins" / EXTRAS[extra] / "pyproject.toml").is_file()


def test_each_first_party_distribution_has_an_extra() -> None:
    """Those of the workspace, and reserved names."""
    assert {*EXTRAS.values()} == {*FIRST_PARTY} == {path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")}


@pytest.mark.parametrize("name", BUNDLES)
def test_each_bundle_is_the_extra_of_its_name(name: str) -> None:
    """It brings the same, in the same order."""
    (wanted,) = PROJECT[name]
    extras = re.fullmatch(r"neuroscript\[([a-z,]+)\]", wanted)

    assert extras is not None
    assert tuple(extras[1].split(",")) == BUNDLES[name]
    assert bundle(name) == tuple(map(required, BUNDLES[name]))


def required(extra: str) -> str:
    """Return the name of the only distribution that an extra requires."""
    (requirement,) = PROJECT[extra]
    return re.split("[<>=]", requirement)[0]


def test_an_engine_accepts_a_bundle() -> None:
    """It has the tools of its members and of no other distribution."""
    with Engine(plugins=bundle("files")) as engine:
        origins = {info.origin.partition(" ")[0] for info in engine.infos.values()}
        every = {tool.partition(".")[0] for tool in engine.tools}

        assert engine.plugin_errors == ()
        assert origins <= {"neuroscript-std", "neuroscript-fs"}
        assert {"math", "fs"} <= every
        assert not every & {"git", "shell", "http"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("codings", "codings: unknown bundle; did you mean coding?"),
        ("\x1b[2J", "\\x1b[2J: unknown bundle; available bundles: pure, files, coding, online, all"),
        ("", ": unknown bundle; available bundles: pure, files, coding, online, all"),
    ],
    ids=["alike", "unlike", "empty"],
)
def test_an_unknown_bundle_is_reported(name: str, message: str) -> None:
    """With similar names, or all names."""
    with pytest.raises(PluginError) as caught:
        bundle(name)

    assert message == str(caught.value)
    assert caught.value.code == "plugin.bundle"


def test_bundles_can_be_mixed_with_distributions() -> None:
    """Each member is loaded once, at its first position."""
    names = ("@files", "acme-tools", "@online")

    assert expand_bundles(names) == ("neuroscript-std", "neuroscript-fs", "acme-tools", "neuroscript-http")


ALONE = """\
import json, sys
sys.path[:] = [folder for folder in sys.path if "plugins" not in folder and "-packages" not in folder] + sys.argv[1:]
from neuroscript import Engine, bundle
with Engine(plugins=bundle("coding")) as engine:
    print(json.dumps([[str(each), each.code] for each in engine.plugin_errors]))
"""


def test_a_missing_member_is_reported_with_its_install_command(tmp_path: Path) -> None:
    """In a process with only the core and its four libraries."""
    from importlib.metadata import distribution

    folders = {str(distribution(name).locate_file("")) for name in ("attrs", "cattrs", "pluggy", "platformdirs")}
    for folder in folders:
        for package in ("attr", "attrs", "cattr", "cattrs", "pluggy", "platformdirs"):
            if (source := Path(folder, package)).is_dir() and not (tmp_path / package).exists():
                (tmp_path / package).symlink_to(source)
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(ROOT / "src"), str(tmp_path)], capture_output=True, text=True, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [
            f"neuroscript-{extra}: is not installed; install it with: {install_hint(extra)}",
            "plugin.missing",
        ]
        for extra in ("std", "fs", "git", "shell")
    ]
