"""``neuroscript new toolset``: the scaffolded distribution is complete and meets every requirement."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from tests.publishing.wheelhouse import built, wheelhouse

from neuroscript import RUNTIME_API, SpecError, __version__
from neuroscript.publishing.lint.check import lint
from neuroscript.publishing.scaffold import Names, create, derive_names, install_command, render_files
from neuroscript.testing import CHECKS

ROOT = Path(__file__).parents[2]

FILES = [
    ".github/workflows/test.yml",
    ".gitignore",
    "README.md",
    "pyproject.toml",
    "src/acme_weather/__init__.py",
    "src/acme_weather/py.typed",
    "tests/conftest.py",
    "tests/test_toolset.py",
]


def files_of(root: Path) -> list[str]:
    """Return the files of a directory."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def run(*command: str, cwd: Path, **settings: str) -> str:
    """Run a program to its end, which must be a good one, and return what it wrote."""
    environment = {**os.environ, **settings}
    done = subprocess.run(
        command, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new distribution."""
    return create("acme-weather", tmp_path / "acme-weather", author="Ada Lovelace <ada@example.org>")


def test_distribution_is_complete(project: Path) -> None:
    """It has all files and names, and no placeholders of the template."""
    table = tomllib.loads((project / "pyproject.toml").read_text())

    assert files_of(project) == FILES
    assert [path for path in FILES if "<<" in (project / path).read_text()] == []
    assert (table["project"]["name"], table["project"]["dependencies"]) == (
        "acme-weather",
        [f"neuroscript>={__version__}"],
    )
    assert table["project"]["authors"] == [{"name": "Ada Lovelace", "email": "ada@example.org"}]
    assert table["project"]["entry-points"]["neuroscript.toolsets"] == {"acme-weather": "acme_weather:toolset"}
    assert f"runtime_api={RUNTIME_API}" in (project / "src" / "acme_weather" / "__init__.py").read_text()


SCAFFOLDS = {
    f"{name}-{label}": (name, words)
    for name in ("acme-weather", "zz", "a-distribution-with-a-name-of-many-words")
    for label, words in (("its own group", {}), ("a dotted group", {"group": "weather.of_acme"}))
}
"""Names and groups of different lengths."""


@pytest.mark.parametrize(("name", "words"), SCAFFOLDS.values(), ids=SCAFFOLDS)
def test_scaffold_passes_every_static_check(name: str, words: dict[str, str], tmp_path: Path) -> None:
    """ruff with default settings, its formatter, and ``neuroscript lint``."""
    project = create(name, tmp_path / "new", **words)
    run(sys.executable, "-m", "ruff", "check", cwd=project)
    run(sys.executable, "-m", "ruff", "format", "--check", cwd=project)

    found = lint(project)

    assert (found.findings, found.suggestions, found.tools) == ((), (), 2)


@pytest.mark.full
@pytest.mark.parametrize("case", SCAFFOLDS)
def test_scaffold_passes_strict_type_checks(case: str, tmp_path: Path) -> None:
    """mypy in strict mode."""
    name, words = SCAFFOLDS[case]
    project = create(name, tmp_path / "new", **words)
    path = os.pathsep.join([str(project / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"), "src", "tests"]

    assert "Success: no issues found" in run(*command, cwd=project, MYPYPATH=path)


@pytest.mark.full
def test_scaffold_installs_without_network(project: Path, tmp_path: Path) -> None:
    """Each command of its CI file works in an empty environment, with neuroscript's wheel in the project.

    Its tests pass there without a warning, including every contract check of every tool.
    """
    (tmp_path / "wheels").mkdir()
    wheels = wheelhouse(tmp_path / "wheels", "neuroscript", "hatchling", "editables", "pytest")
    (wheel,) = wheels.glob("neuroscript-*.whl")
    (project / "wheels").mkdir()
    wheel.rename(project / "wheels" / wheel.name)  # a search for neuroscript would now fail
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    path = f"{tmp_path / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    alone = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": ""}

    for step in re.findall(r"- run: (.*)", (project / ".github/workflows/test.yml").read_text()):
        run("bash", "-e", "-c", step, cwd=project, PATH=path, **alone)
    words = ["-q", "-W", "error", "--neuroscript-toolset", "acme-weather"]
    output = run(python, "-m", "pytest", *words, cwd=project, **alone)
    listed = run(python, "-m", "neuroscript", "list", "acme_weather.*", cwd=project, **alone)
    checked = run(python, "-m", "neuroscript", "plugins", "check", cwd=project, **alone)

    checks = sum(1 if check.of_all else 2 for check in CHECKS)
    assert output.splitlines()[-1].startswith(f"{2 * checks + 5} passed in ")
    assert [line.split()[0] for line in listed.splitlines()] == ["acme_weather.headings", "acme_weather.slug"]
    assert "1 plugin: 1 usable, 0 unusable" in checked


def test_published_neuroscript_needs_no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the names are on an index, the commands are those of any distribution."""
    before = render_files(derive_names("acme-weather"))
    monkeypatch.setattr("neuroscript.publishing.scaffold.PUBLISHED", True)
    after = render_files(derive_names("acme-weather"))

    assert install_command(with_wheel=False) == "pip install -e '.[test]'"
    assert [name for name in before if "wheels/" in before[name]] == ["README.md", ".github/workflows/test.yml"]
    assert [name for name in after if "wheels/" in after[name]] == []
    assert "      - run: pip install -e '.[test]'\n" in after[".github/workflows/test.yml"]
    assert "## Install\n\n```sh\n" in after["README.md"]


def test_wheel_contains_only_package(project: Path, tmp_path: Path) -> None:
    """With its marker and without its tests, and with an index of its tools from the build hook."""
    built(project, tmp_path)

    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (index,) = (name for name in names if name.endswith("/neuroscript.json"))
        (entry,) = json.loads(archive.read(index))["entry_points"]

    assert [name for name in names if ".dist-info" not in name] == ["acme_weather/__init__.py", "acme_weather/py.typed"]
    assert index == "acme_weather-0.1.0.dist-info/extra_metadata/neuroscript.json"
    assert [tool["name"] for tool in entry["tools"]] == ["acme_weather.slug", "acme_weather.headings"]


def test_project_wheel_contains_template(tmp_path: Path) -> None:
    """Every file of the template is included."""
    built(ROOT, tmp_path)

    (wheel,) = tmp_path.glob("*.whl")
    template = ROOT / "src" / "neuroscript" / "publishing" / "template"

    assert {f"neuroscript/publishing/template/{name}" for name in files_of(template)} <= {
        *zipfile.ZipFile(wheel).namelist()
    }


# Names

NAMES = {
    "acme-weather": Names("acme-weather", "acme_weather", "acme_weather"),
    "Acme.Weather": Names("acme-weather", "acme_weather", "acme_weather"),
    "ACME__weather": Names("acme-weather", "acme_weather", "acme_weather"),
    "w": Names("w", "w", "w"),
    "acme2": Names("acme2", "acme2", "acme2"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_derived_from_any_spelling(name: str, tmp_path: Path) -> None:
    """As PEP 503 and PEP 8 define them."""
    project = create(name, tmp_path / "new")

    assert derive_names(name) == NAMES[name]
    assert (project / "src" / NAMES[name].module / "py.typed").exists()


BAD = {
    "": "is not a valid name of a distribution; use letters and digits, with - . or _ between them",
    "acme weather": "acme weather is not a valid name of a distribution; use letters and digits, with - . or _ between them",
    "../acme": "../acme is not a valid name of a distribution; use letters and digits, with - . or _ between them",
    "-acme": "-acme is not a valid name of a distribution; use letters and digits, with - . or _ between them",
    "wetter-für-acme": "wetter-für-acme is not a valid name of a distribution; use letters and digits, with - . or _ between them",
    "acme\n": "acme\\n is not a valid name of a distribution; use letters and digits, with - . or _ between them",
    "import": "the module would be called import, which is a Python keyword",
    "Class": "the module would be called class, which is a Python keyword",
    "2weather": "the module would be called 2weather, which cannot be imported; start the name with a letter; "
    "2weather is not a valid name of a group; set one with --group: lower-case letters, digits and single underscores, starting with a letter",
    "json": "the module would be called json, which is in the standard library; choose another name",
    "NeuroScript": "neuroscript is a distribution of this project; choose another name",
    "neuroscript.fs": "neuroscript-fs is a distribution of this project; choose another name",
    "git": "the group git belongs to neuroscript-git; choose another one with --group",
    "a" * 51: "a group of more than 50 characters leaves no room for the names of tools; set one with --group",
}


@pytest.mark.parametrize("name", BAD, ids=range(len(BAD)))
def test_invalid_name_is_refused(name: str, tmp_path: Path) -> None:
    """The error has the reason, and nothing is written."""
    with pytest.raises(SpecError) as caught:
        create(name, tmp_path / "new" / "deep")

    assert str(caught.value).removeprefix("new toolset: ").strip() == BAD[name]
    assert [*tmp_path.iterdir()] == []


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    """Problems of the name, the group, the directory and the author."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").write_text("mine")

    with pytest.raises(SpecError) as caught:
        create("class", tmp_path / "new", group="http.more", author="<>")

    assert caught.value.problems == (
        "the module would be called class, which is a Python keyword",
        "the group http belongs to neuroscript-http; choose another one with --group",
        f"{tmp_path / 'new'} is not empty; choose another one with --directory",
        "an author is a name, an email address in < >, or both, such as 'Ada <ada@example.org>'",
    )
    assert files_of(tmp_path) == ["new/mine.txt"]


def test_only_empty_directory_is_filled(tmp_path: Path) -> None:
    """Files, and links to any target, are not replaced."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "empty")

    assert files_of(create("acme-weather", tmp_path / "empty")) == FILES
    for name in ("file", "link"):
        with pytest.raises(SpecError, match="exists and is not a directory"):
            create("acme-weather", tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("", ""),
        ("Ada", 'authors = [{ name = "Ada" }]\n'),
        ('A "B" \\ C', 'authors = [{ name = "A \\"B\\" \\\\ C" }]\n'),
        ("<a@b.test>", 'authors = [{ email = "a@b.test" }]\n'),
        ("Ädä <a@b.test>", 'authors = [{ name = "Ädä", email = "a@b.test" }]\n'),
    ],
)
def test_author_is_written_as_toml(author: str, expected: str, tmp_path: Path) -> None:
    """Any name is escaped, and an empty author is omitted."""
    text = (create("acme", tmp_path / "new", author=author) / "pyproject.toml").read_text("utf-8")

    assert [line for line in text.splitlines(keepends=True) if line.startswith("authors")] == [expected] * bool(
        expected
    )
    tomllib.loads(text)


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    """The parent is a file, or the directory is created concurrently."""
    (tmp_path / "file").write_text("mine")

    with pytest.raises(OSError, match=r"directory|exists"):
        create("acme-weather", tmp_path / "file" / "new")
    assert files_of(tmp_path) == ["file"]
