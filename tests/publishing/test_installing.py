"""The install commands, with an index where a stranger has registered the names of this project."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename
from tests.distributions import Published
from tests.publishing.wheelhouse import built, needed, repacked

from neuroscript import __version__
from neuroscript._imports import install_hint

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / ".ci" / "distributions.py"))

pytestmark = pytest.mark.slow


class Silent(SimpleHTTPRequestHandler):
    """Serves directories, whose listings are the pages of a package index."""

    def log_message(self, *args: Any) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of an index with the dependencies, and with our names in a higher version and a later build."""
    simple = tmp_path_factory.mktemp("simple")
    wheels = [repacked(each, simple) for each in needed(["neuroscript[cli]", "neuroscript-std"]) if not is_ours(each)]
    for name in SCRIPT["NAMES"]:
        wheels.append(Published(name, "", version="9.9").wheel(simple))
        same = Published(name, "", version=__version__).wheel(simple)
        wheels.append(same.rename(same.with_name(same.name.replace("-py3", "-9-py3"))))
    for wheel in wheels:
        page = simple / parse_wheel_filename(wheel.name)[0]
        page.mkdir(exist_ok=True)
        shutil.move(wheel, page)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(simple)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def is_ours(each: Any) -> bool:
    """Return whether a distribution belongs to this project."""
    return canonicalize_name(each.metadata["Name"]) in SCRIPT["NAMES"]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the wheels of the core and of the standard tools, and the constraints."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "plugins" / "neuroscript-std"):
        built(project, folder)
    SCRIPT["write_constraints"](folder)
    return folder


def sources(command: str, index: str, cwd: Path) -> dict[str, str]:
    """Return where pip would take our distributions from, by name, if a user ran a command."""
    report = cwd / "report.json"
    options = ["--dry-run", "--ignore-installed", "--no-build-isolation", "--quiet", "--report", str(report)]
    settings = {"PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    words = shlex.split(command)
    assert words[:2] == ["pip", "install"]
    done = subprocess.run(
        [sys.executable, "-m", *words, *options],
        cwd=cwd,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    found = json.loads(report.read_text())["install"]
    return {
        each["metadata"]["name"]: each["download_info"]["url"]
        for each in found
        if canonicalize_name(each["metadata"]["name"]) in SCRIPT["NAMES"]
    }


def test_bare_name_installs_what_a_stranger_registered(index: str, dist: Path, tmp_path: Path) -> None:
    """A directory of wheels and even an exact version do not prevent it, so no document says this."""
    by_name = sources(f"pip install --find-links {dist} 'neuroscript[std,cli]'", index, tmp_path)
    by_version = sources(f"pip install --find-links {dist} 'neuroscript[std,cli]=={__version__}'", index, tmp_path)
    (wheel,) = dist.glob("neuroscript-*.whl")
    by_extra = sources(f"pip install --find-links {dist} '{wheel}[std]'", index, tmp_path)

    assert by_name == {"neuroscript": f"{index}neuroscript/neuroscript-9.9-py3-none-any.whl"}
    assert by_version == {"neuroscript": f"{index}neuroscript/neuroscript-{__version__}-9-py3-none-any.whl"}
    assert by_extra["neuroscript-std"] == f"{index}neuroscript-std/neuroscript_std-{__version__}-9-py3-none-any.whl"


@pytest.mark.full
def test_printed_command_installs_the_wheels(index: str, dist: Path, tmp_path: Path) -> None:
    """It also works as it is printed for a relative directory."""
    expected = {
        name: (dist / f"{name.replace('-', '_')}-{__version__}-py3-none-any.whl").as_uri()
        for name in ("neuroscript", "neuroscript-std")
    }

    assert sources(SCRIPT["install_command"](dist, "std,cli"), index, tmp_path) == expected
    assert sources(SCRIPT["install_command"](Path(dist.name), "std,cli"), index, dist.parent) == expected


def test_checkout_command_installs_the_checkout(index: str, tmp_path: Path) -> None:
    """The command that doctor and the errors of a checkout print."""
    assert sources(install_hint("std"), index, tmp_path) == {
        "neuroscript": ROOT.as_uri(),
        "neuroscript-std": (ROOT / "plugins" / "neuroscript-std").as_uri(),
    }
