"""Plugins of a directory are loaded only where nobody else could have written them, or could before they are read."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neuroscript import Engine
from neuroscript.io.private_files import exposure

NAMED = 'def name() -> str:\n    """Say who it is."""\n    return __name__\n'
PLUGIN = f'{NAMED}\ndef register(registrar):\n    registrar.toolset("{{group}}").tool()(name)\n'


@pytest.fixture
def plugins() -> Iterator[Path]:
    """A directory with a file and a package that nobody else may change, where everyone may look."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        plugins = Path(folder) / "plugins"
        package = plugins / "package"
        package.mkdir(parents=True)
        (plugins / "file.py").write_text(PLUGIN.format(group="file"))
        (package / "__init__.py").write_text(f"from .other import *\n{PLUGIN.format(group='package')}")
        (package / "other.py").write_text("x = 1\n")
        yield plugins


def loaded(plugins: Path) -> tuple[set[str], list[str]]:
    """Return the tools that a directory brings, and what is said of all that is not loaded."""
    with Engine(plugins="none") as engine:
        errors = engine.load_plugins(plugins)
        assert {error.code for error in errors} <= {"plugin.unsafe"}
        return set(engine.tools), [str(error) for error in errors]


ALL = {"file.name", "package.name"}


def test_what_nobody_else_may_change_is_loaded(plugins: Path) -> None:
    """Below a directory like ``/tmp`` too, in which everyone has files."""
    plugins.parent.chmod(0o1777)

    assert loaded(plugins) == (ALL, [])
    assert exposure(plugins) is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_directory_that_others_may_write_to_is_not_loaded(plugins: Path, mode: int) -> None:
    """Whether they may rename what is there, or only add to it."""
    plugins.chmod(mode)

    said = f"{plugins}: it is not loaded: other users can write to {plugins}; run 'chmod go-w' to fix this"
    assert loaded(plugins) == (set(), [said])


def test_nor_one_that_others_could_put_another_in_the_place_of(plugins: Path) -> None:
    """They may rename it, for they may write to where it stands."""
    plugins.parent.chmod(0o777)

    said = f"{plugins}: it is not loaded: other users can write to {plugins.parent}; run 'chmod go-w' to fix this"
    assert loaded(plugins) == (set(), [said])


@pytest.mark.parametrize(
    ("part", "stopped"),
    [("file.py", "file"), ("package/__init__.py", "package"), ("package/other.py", "package"), ("package", "package")],
)
def test_a_plugin_that_others_may_change_stops_no_other(plugins: Path, part: str, stopped: str) -> None:
    """It may be any module of a package."""
    (plugins / part).chmod(0o777 if part == "package" else 0o666)

    plugin = plugins / ("package" if stopped == "package" else "file.py")
    said = f"{plugin}: it is not loaded: other users can write to {plugins / part}; run 'chmod go-w' to fix this"
    assert loaded(plugins) == (ALL - {f"{stopped}.name"}, [said])


def write(plugin: Path, user: str | None) -> None:
    """Have a user write a plugin."""
    script = f"cat > {plugin} && chmod 644 {plugin}"
    done = subprocess.run(["sh", "-c", script], input=PLUGIN.format(group="other"), text=True, user=user)
    assert done.returncode == 0


def test_a_plugin_of_another_user_is_not_loaded(plugins: Path) -> None:
    """It was written while everyone could, and stands there since."""
    plugins.chmod(0o777)
    write(plugins / "other.py", "nobody")
    plugins.chmod(0o755)

    said = f"{plugins / 'other.py'}: it is not loaded: {plugins / 'other.py'} belongs to another user"
    assert loaded(plugins) == (ALL, [said])


def test_a_directory_of_another_user_is_not_loaded(plugins: Path) -> None:
    """Whoever writes what is in it: the other user may put something else there."""
    plugins.parent.chmod(0o1777)
    own = plugins.parent / "own"
    subprocess.run(["mkdir", str(own)], user="nobody", check=True)
    write(own / "other.py", None)

    assert loaded(own) == (set(), [f"{own}: it is not loaded: {own} belongs to another user"])


def link_to_file(plugins: Path, there: Path) -> None:
    (plugins / "other.py").symlink_to(there)


def link_of_another(plugins: Path, there: Path) -> None:
    link = plugins.parent / "link"
    plugins.parent.chmod(0o1777)
    subprocess.run(["ln", "-s", str(there), str(link)], user="nobody", check=True)
    plugins.parent.chmod(0o755)
    (plugins / "other.py").symlink_to(link)


def relative_link(plugins: Path, there: Path) -> None:
    (plugins.parent / "way").symlink_to("elsewhere")
    (plugins / "other.py").symlink_to("../way/other.py")


@pytest.mark.parametrize("link", [link_to_file, link_of_another, relative_link])
def test_each_step_of_a_link_counts(plugins: Path, link: Callable[[Path, Path], None]) -> None:
    """The links, where they stand, and where they lead."""
    there = plugins.parent / "elsewhere" / "other.py"
    there.parent.mkdir()
    there.write_text(PLUGIN.format(group="other"))
    link(plugins, there)
    sound = loaded(plugins)
    there.parent.chmod(0o777)
    tools, (said,) = loaded(plugins)

    assert sound[0] == (ALL if link is link_of_another else {*ALL, "other.name"})
    assert sound[1] == [
        f"{plugins / 'other.py'}: it is not loaded: {plugins.parent / 'link'} belongs to another user"
    ] * (link is link_of_another)
    assert tools == ALL
    assert link is link_of_another or str(there.parent) in said


def test_links_that_lead_nowhere_end(plugins: Path) -> None:
    """In a circle, and to what is not there."""
    circle = plugins / "circle.py"
    circle.symlink_to(circle)
    for path in (circle, plugins / "nowhere.py"):
        with pytest.raises(OSError, match=r"Too many|No such"):
            exposure(path)
    with Engine(plugins="none") as engine:
        (error,) = engine.load_plugins(plugins)
        assert error.code == "plugin.broken"
        assert set(engine.tools) == ALL


def test_a_file_that_is_named_is_taken_as_it_is(plugins: Path) -> None:
    """Whoever names a file means that file, as a shell that is told to run it does."""
    (plugins / "file.py").chmod(0o666)
    with Engine(plugins="none") as engine:
        engine.load_plugin(plugins / "file.py")

        assert set(engine.tools) == {"file.name"}
        assert (plugins / "file.py").stat().st_mode & 0o777 == 0o666
