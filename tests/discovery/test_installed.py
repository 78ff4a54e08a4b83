"""Cached data about installed distributions: a second start is fast and never uses outdated data."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.conftest import command
from tests.conftest import examples
from tests.distributions import TOOLSET, Published, age

from neuroscript import Engine
from neuroscript.discovery import installed
from neuroscript.discovery import probe as probing
from neuroscript.discovery.installed import distributions, installed_distributions
from neuroscript.io.user_cache import cache_file

ROOT = Path(__file__).parents[2]


def acme(name: str = "acme-tools", version: str = "1.0", said: str = "") -> Published:
    """Return a distribution with one tool."""
    code = TOOLSET.format(group=name.partition("-")[0], name=said or name)
    return Published(name, code, name.partition("-")[0], version=version)


@pytest.fixture(scope="module", autouse=True)
def _settled() -> None:
    """Write the bytecode files of a first start, and make all files old enough to be trusted."""
    Engine().close()
    time.sleep(0.2)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with one installed distribution that has been read; the path contains only it and this project."""
    site = tmp_path / "site"
    site.mkdir()
    lasting = [each for each in sys.path if Path(each).is_absolute() and Path(each) != ROOT]  # tests write into it
    monkeypatch.setattr(sys, "path", [str(site), *lasting])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # compiling a module changes its folder
    acme().install(site)
    age(site)
    installed_distributions()
    yield site
    for name in [name for name, each in sys.modules.items() if str(tmp_path) in str(getattr(each, "__file__", ""))]:
        del sys.modules[name]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Return a function that says whether the folders were searched since the last question."""
    calls: list[object] = []

    def counted(path: object = None) -> object:
        calls.append(path)
        return distributions(path)  # type: ignore[arg-type]

    monkeypatch.setattr(installed, "distributions", counted)

    def asked() -> bool:
        found = bool(calls)
        calls.clear()
        return found

    return asked


def names() -> list[str]:
    return [str(each) for each in installed_distributions() if not each.key.startswith("neuroscript-")]


def cache(site: Path, kind: str = "installed") -> list[Path]:
    return [*(site.parent / "cache" / "neuroscript").glob(f"{kind}-*")]


# Installed distributions


def test_unchanged_distributions_are_not_searched_again(site: Path, read: Callable[[], bool]) -> None:
    """The cached data equals the result of a search."""
    assert installed_distributions() == distributions()
    assert not read()


def _upgrade(site: Path) -> None:
    (found,) = site.glob("acme_tools-1.0.dist-info")
    found.rename(site / "acme_tools-2.0.dist-info")
    acme(version="2.0").install(site)


def _uninstall(site: Path) -> None:
    (found,) = site.glob("acme_tools-1.0.dist-info")
    found.rename(site.parent / "gone")


def _edit(site: Path) -> None:
    (entries,) = site.glob("*/entry_points.txt")
    entries.write_text("[neuroscript.toolsets]\nother = other_module:toolset\n")


def _egg(site: Path) -> None:
    info = site / "beside.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: beside\nVersion: 3\n")
    (info / "entry_points.txt").write_text("[neuroscript.toolsets]\nbeside = beside:toolset\n")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda site: acme("more-tools").install(site), ["acme-tools 1.0", "more-tools 1.0"], id="install"),
        pytest.param(_upgrade, ["acme-tools 2.0"], id="upgrade"),
        pytest.param(_uninstall, [], id="uninstall"),
        pytest.param(_edit, ["acme-tools 1.0"], id="edit"),
        pytest.param(_egg, ["acme-tools 1.0", "beside 3"], id="egg-info"),
    ],
)
def test_change_is_seen_at_once(
    site: Path, read: Callable[[], bool], change: Callable[[Path], None], expected: list[str]
) -> None:
    """Every way of installing is covered, including undone and continued changes."""
    change(site)

    assert names() == expected
    assert installed_distributions() == distributions()
    assert read()


def test_file_edited_in_place_is_seen(site: Path) -> None:
    """The folder is unchanged, and the new content is as long as the old."""
    (entries,) = site.glob("*/entry_points.txt")
    folder = entries.parent.stat()
    entries.write_text(entries.read_text().replace("acme = ", "acne = "))
    os.utime(entries.parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))

    assert ["acne"] == [
        point.name for each in installed_distributions() for point in each.entry_points if each.key == "acme-tools"
    ]


def test_egg_info_beside_its_sources_is_seen_when_it_gains_entry_points(site: Path) -> None:
    """Older installers rewrite it in place."""
    _egg(site)
    entries = site / "beside.egg-info" / "entry_points.txt"
    text = entries.read_text()
    entries.write_text("")
    age(site)
    assert names() == ["acme-tools 1.0"]
    entries.write_text(text)

    assert names() == ["acme-tools 1.0", "beside 3"]


def test_folders_and_their_order_matter(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This covers a new folder, and two folders with the same distribution in either order."""
    other = site.parent / "other"
    other.mkdir()
    acme(version="7.0").install(other)
    age(other)

    monkeypatch.setattr(sys, "path", [str(other), *sys.path])
    assert [names(), names()] == [["acme-tools 7.0"]] * 2
    monkeypatch.setattr(sys, "path", [sys.path[1], sys.path[0], *sys.path[2:]])
    assert [names(), names()] == [["acme-tools 1.0"]] * 2


def test_recent_change_is_read_again(site: Path, read: Callable[[], bool]) -> None:
    """Another change may get the same timestamp from the file system."""
    acme("more-tools").install(site)

    assert [names(), read(), names(), read()] == [["acme-tools 1.0", "more-tools 1.0"], True] * 2


def test_relative_folder_depends_on_the_working_directory(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in two directories use two folders; a deleted one contains nothing."""
    here = site.parent / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", ["", *sys.path[1:]])
    age(here)
    assert names() == []
    monkeypatch.chdir(site)
    assert names() == ["acme-tools 1.0"]
    gone = site.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert names() == []


# The cache


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["installed", "index"])
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_cache_is_read_again(site: Path, kind: str, data: st.DataObject) -> None:
    """Truncated, overwritten and foreign files neither break the start nor are believed."""
    if not cache(site, "index"):
        Engine(plugins=["acme-tools"]).close()
    (file,) = cache(site, kind)
    whole = file.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    how = data.draw(st.sampled_from(["cut", "byte", "all"]))
    file.write_bytes({"cut": whole[:place], "byte": whole[:place] + b"\xff" + whole[place + 1 :], "all": b"[5]"}[how])

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.plugin_errors == ()
        assert engine.call("acme.who") == "acme-tools"
    file.write_bytes(whole)


@pytest.mark.parametrize("damaged", [b"acme-toils", b"acme-to\xffls"], ids=["another letter", "not UTF-8"])
def test_damaged_name_in_the_cache_is_read_again(site: Path, damaged: bytes) -> None:
    """The content is still well-formed, so only its checksum shows the damage."""
    (file,) = cache(site, "installed")
    whole = file.read_bytes()
    assert b"acme-tools" in whole
    file.write_bytes(whole.replace(b"acme-tools", damaged))

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.plugin_errors == ()
        assert engine.call("acme.who") == "acme-tools"


@pytest.mark.parametrize("cache_home", ["cache", "", "/proc/nowhere"], ids=["relative", "none", "impossible"])
def test_everything_is_read_without_a_cache(site: Path, monkeypatch: pytest.MonkeyPatch, cache_home: str) -> None:
    """A relative cache directory is ignored, and an unwritable one is not created."""
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.chdir(site.parent)
    before = {*site.parent.rglob("*")}

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.call("acme.who") == "acme-tools"
    assert before == {each for each in site.parent.rglob("*") if "__pycache__" not in str(each)}


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
def test_unwritable_cache_is_not_an_error(site: Path) -> None:
    """If another user owns the directory, each start reads everything."""
    folder = cache(site)[0].parent
    before = sorted(folder.iterdir())
    acme("more-tools").install(site)
    age(site)
    code = "import os\nfrom neuroscript.discovery.installed import installed_distributions\nos.setuid(65534)\nprint(len(installed_distributions()) > 1)"
    folder.chmod(0o755)
    for each in (site.parent, *site.parent.parents):
        if str(each).startswith(("/tmp/", "/dev/shm/")):
            each.chmod(0o755)

    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"], capture_output=True, text=True
    )

    assert (done.stdout, done.stderr) == ("True\n", "")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("cache_home", ["cache", "/proc/nowhere"], ids=["relative", "impossible"])
def test_process_without_a_cache_reads_once(site: Path, monkeypatch: pytest.MonkeyPatch, cache_home: str) -> None:
    """A server with an engine for each request does not start a process for each; changes are still seen."""
    monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.plugin_errors == ()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with Engine(plugins=["acme-tools"]) as engine:
        assert [*engine.tools] == ["acme.who"]
    (site / "acme_tools_module.py").write_text(TOOLSET.format(group="acme", name="other"))
    with Engine(plugins=["acme-tools"]) as engine:
        (error,) = engine.plugin_errors
    assert (error.code, [*engine.tools]) == ("plugin.process", [])


def test_old_cache_files_are_removed(site: Path) -> None:
    """Each write to the cache removes them."""
    file = cache(site)[0]
    others = {name: file.with_name(f"index-{name}.json") for name in ("old", "new", "foreign")}
    for name, other in others.items():
        other.write_text("{}" if name == "foreign" else file.read_text())
        if name != "new":
            os.utime(other, (1, 1))
    file.write_text("{}")

    with Engine(plugins=["acme-tools"]):
        assert {name: other.exists() for name, other in others.items()} == {"old": False, "new": True, "foreign": True}


def test_cache_is_readable_by_its_owner_only(site: Path) -> None:
    """It lists what is installed."""
    (file,) = cache(site)

    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.slow
def test_concurrent_writers_leave_one_complete_file(site: Path) -> None:
    """The last writer wins, and no reader sees a partial file."""
    for each in cache(site):
        each.unlink()
    code = f"import sys; sys.path[:] = {sys.path!r}\nfrom neuroscript import Engine\nwith Engine(plugins=['acme-tools']) as e: print(e.call('acme.who'), e.plugin_errors)"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(4)
    ]
    reported = [each.communicate()[0] for each in running]

    assert reported == ["acme-tools ()\n"] * 4
    assert len(cache(site)) == len(cache(site, "index")) == 1
    assert {each.suffix for each in cache(site)[0].parent.iterdir()} == {".json"}
    assert installed_distributions() == distributions()


def test_cache_directory_is_that_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """platformdirs is imported only if the path is not known otherwise."""
    import platformdirs

    for home in ("/somewhere", "", " ", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        expected = os.path.join(platformdirs.user_cache_dir("neuroscript", appauthor=False), "x")  # noqa: PTH118
        assert cache_file("x") == (expected if Path(expected).is_absolute() else None)


# Content of distributions


def test_distribution_without_an_index_is_read_once(site: Path) -> None:
    """The second start needs no process."""
    Engine(plugins=["acme-tools"]).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        with Engine(plugins=["acme-tools"]) as engine:
            assert engine.call("acme.who") == "acme-tools"


def test_source_change_is_seen(site: Path) -> None:
    """Editable distributions change this way; a new file of a package counts too."""
    module = site / "acme_tools_module.py"
    Engine(plugins=["acme-tools"]).close()
    module.write_text(module.read_text().replace("def who", "def whose"))
    with Engine(plugins=["acme-tools"]) as engine:
        assert [*engine.tools] == ["acme.whose"]
    package = site / "acme_tools_module"
    package.mkdir()
    module.rename(package / "__init__.py")
    (package / "more.py").write_text("name = 'before'\n")
    with (package / "__init__.py").open("a") as code:
        code.write("from pathlib import Path\nfor each in sorted(Path(__file__).parent.glob('m*.py')):\n")
        code.write("    exec(f'@toolset.tool()\\ndef {each.stem}() -> int:\\n    return 1\\n')\n")
    age(site)
    with Engine(plugins=["acme-tools"]) as engine:
        assert [*engine.tools] == ["acme.whose", "acme.more"]
    (package / "most.py").write_text("")
    with Engine(plugins=["acme-tools"]) as engine:
        assert [*engine.tools] == ["acme.whose", "acme.more", "acme.most"]


def test_change_during_the_read_is_read_again(site: Path) -> None:
    """The file is newer than the start of the reading process, which may have read the old content."""
    module = site / "acme_tools_module.py"
    late = f"import os, time\nos.utime({str(module)!r})\ntime.sleep(0.3)\n"
    module.write_text(late + module.read_text())
    age(site)
    Engine(plugins=["acme-tools"]).close()

    assert cache(site, "index") == []


def test_failure_is_cached_until_something_is_installed(site: Path) -> None:
    """A missing dependency may be present afterwards."""
    module = site / "acme_tools_module.py"
    module.write_text(f"import needed_by_acme\n{module.read_text()}")
    age(site)
    for _ in range(2):
        with Engine(plugins=["acme-tools"]) as engine:
            assert [each.code for each in engine.plugin_errors] == ["plugin.import"]
    assert len(cache(site, "index")) == 1
    (site / "needed_by_acme.py").write_text("")

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.call("acme.who") == "acme-tools"


def test_cached_data_of_two_distributions_is_not_mixed_up(site: Path) -> None:
    """Cache files are named by a checksum, which may collide."""
    Engine(plugins=["acme-tools"]).close()
    (sound,) = cache(site, "index")
    Published("broken-tools", "raise ValueError", "broken").install(site)
    age(site)
    Engine(plugins=["broken-tools"]).close()
    (broken,) = {*cache(site, "index")} - {sound}
    sound.write_bytes(broken.read_bytes())

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.plugin_errors == ()
        assert engine.call("acme.who") == "acme-tools"


def test_check_reads_again(site: Path) -> None:
    """The next start uses what it finds."""
    module = site / "acme_tools_module.py"
    module.write_text(f"import os\nassert 'BROKEN' not in os.environ\n{module.read_text()}")
    age(site)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROKEN", "1")
        with Engine(plugins=["acme-tools"]) as engine:
            assert [each.code for each in engine.plugin_errors] == ["plugin.import"]
    with Engine(plugins=["acme-tools"]) as engine:
        assert [each.code for each in engine.plugin_errors] == ["plugin.import"]
    command("plugins", "check", "acme-tools", make_engine=None)

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.call("acme.who") == "acme-tools"


def test_hanging_distribution_delays_only_one_start(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine starts after the timeout, the others work, and the next start skips this one."""
    Published("hanging-tools", "import threading\nthreading.Event().wait()\n").install(site)
    age(site)
    monkeypatch.setattr(probing, "TIMEOUT_SECONDS", 1.5)
    chosen = ["acme-tools", "hanging-tools"]

    with Engine(plugins=chosen) as engine:
        assert [each.code for each in engine.plugin_errors] == ["plugin.timeout"]
        assert engine.call("acme.who") == "acme-tools"
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with Engine(plugins=chosen) as engine:
        assert [each.code for each in engine.plugin_errors] == ["plugin.timeout"]


def test_two_engines_exclude_different_distributions(site: Path) -> None:
    """Each gets its choice, immediately and from the cache."""
    entries = next(site.glob("*/entry_points.txt"))
    (site / "second_module.py").write_text(TOOLSET.format(group="second", name="second"))
    entries.write_text(f"{entries.read_text()}second = second_module:toolset\n")
    age(site)
    found: dict[str, set[tuple[str, ...]]] = {"acme": set(), "second": set()}

    def start(without: str) -> None:
        for _ in range(2):
            with Engine(plugins=["acme-tools"], without=[without]) as engine:
                found[without].add((*engine.tools,))

    threads = [threading.Thread(target=start, args=(each,)) for each in found]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert found == {"acme": {("second.who",)}, "second": {("acme.who",)}}
