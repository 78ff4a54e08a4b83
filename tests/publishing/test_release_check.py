"""``dev.py release-check``: it names everything that a maintainer has to do, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from neuroscript import __version__

ROOT = Path(__file__).parents[2]

PROJECTS = ["pyproject.toml", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("plugins/*/pyproject.toml")))]

TAG = f"v{__version__}"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, which imports others of its directory."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    before = {*sys.modules}
    yield import_module("release_check")
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", "") or "").parent == ROOT / ".ci":
            del sys.modules[name]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that are checked, where a maintainer has set nothing."""
    for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "src/neuroscript/_imports.py", *PROJECTS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    change(tmp_path, "CHANGELOG.md", rf"^## {__version__}.*$", f"## {__version__} (not released)")
    change(tmp_path, "SECURITY.md", r"^Contact: .*$", "Contact: not set yet")
    change(tmp_path, "src/neuroscript/_imports.py", r"^PUBLISHED: .*$", "PUBLISHED: Final[bool] = False")
    for name in PROJECTS:
        assert "[project.urls]" not in (tmp_path / name).read_text(), "remove the table here"
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def change(root: Path, name: str, pattern: str, text: str) -> None:
    """Replace one line of a file."""
    changed, count = re.subn(pattern, text, (root / name).read_text(), flags=re.MULTILINE)
    assert count == 1, name
    (root / name).write_text(changed)


def git(root: Path, *words: str) -> None:
    """Run git with an identity of its own."""
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True)


def commit(root: Path) -> None:
    """Commit everything."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "Change")


MISSING = [
    f"CHANGELOG.md: has no section with a date; write: ## {__version__} - YYYY-MM-DD",
    f"{', '.join(PROJECTS)}: set Repository in [project.urls]",
    "SECURITY.md: set the contact, an email address or a URL",
    "src/neuroscript/_imports.py: register neuroscript, neuroscript-fs, neuroscript-git, neuroscript-http, "
    "neuroscript-shell, neuroscript-std on the index, and set PUBLISHED",
]


def test_every_setting_of_a_maintainer_is_listed(script: Any, checkout: Path) -> None:
    """All at once, and after the tag, which is missing too."""
    assert [*script.static_problems(checkout)] == [f"the tag {TAG} does not exist; run: git tag -s", *MISSING]


def set_urls(root: Path) -> None:
    """Name the repository in each distribution."""
    for name in PROJECTS:
        change(root, name, r"\A", '[project.urls]\nRepository = "https://example.org/neuroscript"\n\n')


SETTINGS: dict[str, Callable[[Path], None]] = {
    "changelog": lambda root: change(root, "CHANGELOG.md", rf"^## {__version__}.*$", f"## {__version__} - 2027-01-31"),
    "urls": set_urls,
    "contact": lambda root: change(root, "SECURITY.md", r"^Contact: .*$", "Contact: security@example.org"),
    "names": lambda root: change(
        root, "src/neuroscript/_imports.py", r"^PUBLISHED: .*$", "PUBLISHED: Final[bool] = True"
    ),
}
"""What a maintainer does about each problem."""


@pytest.mark.parametrize(("name", "problem"), [*zip(SETTINGS, MISSING, strict=True)], ids=SETTINGS)
def test_each_setting_fixes_one_problem(script: Any, checkout: Path, name: str, problem: str) -> None:
    """The others remain."""
    (checkout / "README.md").write_text("")

    SETTINGS[name](checkout)

    assert [*script.setting_problems(checkout)] == [each for each in MISSING if each != problem]


def test_complete_checkout_has_no_problem(script: Any, checkout: Path) -> None:
    """Only if no document says that the names are not registered."""
    for setting in SETTINGS.values():
        setting(checkout)
    (checkout / "README.md").write_text("neuroscript is not on a package index.\n")
    commit(checkout)
    git(checkout, "tag", TAG)
    before = [*script.static_problems(checkout)]
    (checkout / "README.md").write_text("Install neuroscript.\n")
    commit(checkout)
    git(checkout, "tag", "-f", TAG)

    assert before == ["README.md: say that neuroscript is not on a package index"]
    assert [*script.static_problems(checkout)] == []


def test_changed_tree_and_moved_tag_are_problems(script: Any, checkout: Path) -> None:
    """The tag must be on the commit that is checked."""
    git(checkout, "tag", TAG)
    commit(checkout)
    (checkout / "new.txt").touch()

    assert [*script.tree_problems(checkout)] == [
        "the tree has changes; commit or remove them",
        f"the tag {TAG} is on another commit",
    ]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_command_fails_with_a_list() -> None:
    """As a maintainer runs it, without the builds."""
    command = [sys.executable, str(ROOT / ".ci" / "release_check.py"), "--static"]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()

    assert done.returncode == (0 if lines[-1] == f"{__version__} can be released" else 1)
    assert all(line.startswith("- ") for line in lines[:-1])
