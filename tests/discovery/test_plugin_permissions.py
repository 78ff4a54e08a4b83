"""Plugins of a directory are loaded only if no other user can change or could have changed them."""

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
    """A directory with a file and a package that only the owner may change, below a directory that everyone may read."""
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
    """Return the tools of a directory, and the warnings about everything that is not loaded."""
    with Engine(plugins="none") as engine:
        errors = engine.load_plugins(plugins)
        assert {error.code for error in errors} <= {"plugin.unsafe"}
        return set(engine.tools), [str(error) for error in errors]


ALL = {"file.name", "package.name"}


def test_private_plugin_is_loaded(plugins: Path) -> None:
    """It may be below a shared directory such as ``/tmp``."""
    plugins.parent.chmod(0o1777)

    assert loaded(plugins) == (ALL, [])
    assert exposure(plugins) is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_directory_that_others_may_write_to_is_not_loaded(plugins: Path, mode: int) -> None:
    """Permission to add files is enough to refuse it."""
    plugins.chmod(mode)

    message = f"{plugins}: it is not loaded: other users can write to {plugins}; run 'chmod go-w' to fix this"
    assert loaded(plugins) == (set(), [message])


def test_directory_that_others_could_replace_is_not_loaded(plugins: Path) -> None:
    """Users who may write to its parent can rename it."""
    plugins.parent.chmod(0o777)

    message = f"{plugins}: it is not loaded: other users can write to {plugins.parent}; run 'chmod go-w' to fix this"
    assert loaded(plugins) == (set(), [message])


@pytest.mark.parametrize(
    ("part", "stopped"),
    [("file.py", "file"), ("package/__init__.py", "package"), ("package/other.py", "package"), ("package", "package")],
)
def test_writable_plugin_stops_no_other(plugins: Path, part: str, stopped: str) -> None:
    """The writable file may be any module of a package."""
    (plugins / part).chmod(0o777 if part == "package" else 0o666)

    plugin = plugins / ("package" if stopped == "package" else "file.py")
    message = f"{plugin}: it is not loaded: other users can write to {plugins / part}; run 'chmod go-w' to fix this"
    assert loaded(plugins) == (ALL - {f"{stopped}.name"}, [message])


def write(plugin: Path, user: str | None) -> None:
    """Write a plugin as another user."""
    script = f"cat > {plugin} && chmod 644 {plugin}"
    done = subprocess.run(["sh", "-c", script], input=PLUGIN.format(group="other"), text=True, user=user)
    assert done.returncode == 0


def test_plugin_of_another_user_is_not_loaded(plugins: Path) -> None:
    """It was written while the directory was world-writable."""
    plugins.chmod(0o777)
    write(plugins / "other.py", "nobody")
    plugins.chmod(0o755)

    message = f"{plugins / 'other.py'}: it is not loaded: {plugins / 'other.py'} belongs to another user"
    assert loaded(plugins) == (ALL, [message])


def test_directory_of_another_user_is_not_loaded(plugins: Path) -> None:
    """The owner of the files does not matter, because the owner of the directory can replace them."""
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
def test_each_step_of_a_link_is_checked(plugins: Path, link: Callable[[Path, Path], None]) -> None:
    """This covers the links, their directories and their targets."""
    there = plugins.parent / "elsewhere" / "other.py"
    there.parent.mkdir()
    there.write_text(PLUGIN.format(group="other"))
    link(plugins, there)
    sound = loaded(plugins)
    there.parent.chmod(0o777)
    tools, (message,) = loaded(plugins)

    assert sound[0] == (ALL if link is link_of_another else {*ALL, "other.name"})
    assert sound[1] == [
        f"{plugins / 'other.py'}: it is not loaded: {plugins.parent / 'link'} belongs to another user"
    ] * (link is link_of_another)
    assert tools == ALL
    assert link is link_of_another or str(there.parent) in message


def test_circular_and_dangling_links_are_handled(plugins: Path) -> None:
    circle = plugins / "circle.py"
    circle.symlink_to(circle)
    for path in (circle, plugins / "nowhere.py"):
        with pytest.raises(OSError, match=r"Too many|No such"):
            exposure(path)
    with Engine(plugins="none") as engine:
        (error,) = engine.load_plugins(plugins)
        assert error.code == "plugin.broken"
        assert set(engine.tools) == ALL


def test_explicitly_named_file_is_loaded_without_the_check(plugins: Path) -> None:
    """The user chose that file, as with a script passed to a shell."""
    (plugins / "file.py").chmod(0o666)
    with Engine(plugins="none") as engine:
        engine.load_plugin(plugins / "file.py")

        assert set(engine.tools) == {"file.name"}
        assert (plugins / "file.py").stat().st_mode & 0o777 == 0o666
