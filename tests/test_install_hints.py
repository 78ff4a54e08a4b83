"""The commands that install extras: each works where the user stands, and none lets pip search for our own names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.publishing.wheelhouse import built

from neuroscript._imports import OWN_EXTRAS, WHEELS_HINT, install_hint

ROOT = Path(__file__).parent.parent

LIBRARIES = 'pip install "argcomplete>=3" "rich>=14"'
"""The libraries of the extra ``cli``."""

HINTS = "import sys; sys.path.insert(0, sys.argv[1]); from neuroscript._imports import install_hint as hint; "


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the core, alone in a directory whose name has a space."""
    folder = tmp_path_factory.mktemp("the wheels")
    built(ROOT, folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def site(wheel: Path, tmp_path: Path) -> Path:
    """Return a directory with what the wheel installs."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    publish(tmp_path / "site", is_published=False)
    return tmp_path / "site"


def publish(site: Path, *, is_published: bool) -> None:
    """Set the constant that a maintainer changes."""
    module = site / "neuroscript" / "_imports.py"
    line = f"PUBLISHED: Final[bool] = {is_published}"
    text, count = re.subn(r"^PUBLISHED: .*$", line, module.read_text(), flags=re.MULTILINE)
    assert count == 1
    module.write_text(text)


def hints(site: Path, source: Any = None) -> tuple[str, str]:
    """Return the commands for an own extra and for another one, of the package in *site*.

    Args:
        source: The content of ``direct_url.json``, which pip writes if it did not use an index.
    """
    (info,) = site.glob("*.dist-info")
    if source is not None:
        (info / "direct_url.json").write_text(json.dumps(source))
    code = f"{HINTS}print(hint('std'), hint('cli'), sep='\\n')"
    done = subprocess.run([sys.executable, "-I", "-c", code, str(site)], capture_output=True, text=True, check=True)
    own, other = done.stdout.splitlines()
    return own, other


@pytest.mark.parametrize("extra", OWN_EXTRAS)
def test_checkout_is_installed_with_its_plugin(extra: str) -> None:
    """pip then searches for neither of them."""
    assert install_hint(extra) == f"pip install -e '{ROOT}[{extra}]' -e {ROOT}/plugins/neuroscript-{extra}"
    assert install_hint("llm") == f"pip install -e '{ROOT}[llm]'"


def test_directory_is_named_as_it_was_installed(site: Path) -> None:
    """A directory without plugins has no own extras."""
    whole = hints(site, {"url": ROOT.as_uri(), "dir_info": {}})
    shutil.copy(ROOT / "pyproject.toml", site)
    core = hints(site, {"url": site.as_uri(), "dir_info": {"editable": True}})

    assert whole == (
        f"pip install '{ROOT}[std]' {ROOT}/plugins/neuroscript-std",
        f"pip install '{ROOT}[cli]'",
    )
    assert core == (WHEELS_HINT, f"pip install -e '{site}[cli]'")


def test_wheel_is_named_with_its_constraints(site: Path, wheel: Path, tmp_path: Path) -> None:
    """The constraints of another project are not used; without ours, pip would search for the plugin."""
    copy = tmp_path / "the wheels" / wheel.name
    copy.parent.mkdir()
    shutil.copy(wheel, copy)
    source = {"url": copy.as_uri(), "archive_info": {}}
    alone = hints(site, source)
    (constraints := copy.with_name("constraints.txt")).write_text("rich==14\n")
    others = hints(site, source)
    constraints.write_text(f"neuroscript-std @ {wheel.as_uri()}\n")
    ours = hints(site, source)

    assert alone == others == (WHEELS_HINT, f"pip install '{copy}[cli]'")
    assert ours == (f"pip install -c '{constraints}' '{copy}[std]'", f"pip install -c '{constraints}' '{copy}[cli]'")


SOURCES = {
    "none": None,
    "deleted wheel": {"url": Path("/nowhere/neuroscript-0.1.0-py3-none-any.whl").as_uri(), "archive_info": {}},
    "repository": {"url": "https://example.org/neuroscript.git", "vcs_info": {"vcs": "git", "commit_id": "0"}},
    "damaged": ["url"],
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_unknown_source_installs_only_libraries(site: Path, source: Any) -> None:
    """A distribution of this project has no command, because it is not published."""
    assert hints(site, source) == (WHEELS_HINT, LIBRARIES)


def test_missing_metadata_has_no_command(site: Path) -> None:
    """The package was copied, not installed."""
    (info,) = site.glob("*.dist-info")
    code = f"{HINTS}print(hint('cli'))"
    shutil.rmtree(info)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, str(site)], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == (f"{WHEELS_HINT}\n", "")


def test_published_names_are_used_for_an_unknown_source(site: Path) -> None:
    """A checkout or a wheel is still named by its path."""
    publish(site, is_published=True)

    assert hints(site) == ('pip install "neuroscript[std]"', 'pip install "neuroscript[cli]"')
    assert hints(site, {"url": ROOT.as_uri(), "dir_info": {}})[1] == f"pip install '{ROOT}[cli]'"
