"""The index of a distribution: used if it belongs to it; otherwise another process reads the distribution."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.distributions import TOOLSET, Published, age, ship

from neuroscript import Engine, ExecutionPolicy, PolicyError, ToolFailed
from neuroscript.discovery.installed import HEAD, Distribution, distributions
from neuroscript.discovery.package_index import FILE, METADATA, entries_of

ACME = Published("acme-tools", TOOLSET.format(group="acme", name="acme"), "acme")
MARK = "raise AssertionError('imported')\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install_with_index: Callable[..., None]) -> Iterator[Path]:
    """Return a folder with one installed distribution that contains its index."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    install_with_index(site, ACME)
    yield site
    sys.modules.pop(ACME.module, None)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Return a function that counts the processes started to read a distribution."""
    mark, program = tmp_path / "started", tmp_path / "python"
    program.write_text(f'#!/bin/sh\ntouch {mark}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return mark.exists


@pytest.fixture
def no_process(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it impossible to start a process, which an engine reports only if it needs one."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")


def file_of(site: Path) -> Path:
    (found,) = site.glob(f"*.dist-info/{METADATA}/{FILE}")
    return found


def changed(site: Path, change: Callable[[Any], object]) -> None:
    """Change the content of the index."""
    data = json.loads(file_of(site).read_text())
    change(data)
    file_of(site).write_text(json.dumps(data))


def engine(**keywords: Any) -> Engine:
    return Engine(plugins=["acme-tools"], **keywords)


def codes(made: Engine) -> list[str]:
    return [each.code for each in made.plugin_errors]


# Choice of the index


@pytest.mark.parametrize("place", ["metadata", "package"])
def test_valid_index_needs_no_import_and_no_process(site: Path, started: Callable[[], bool], place: str) -> None:
    """The index is in the metadata or in the package; a call imports the tool."""
    if place == "package":
        (site / ACME.module).mkdir()
        (site / f"{ACME.module}.py").rename(site / ACME.module / "__init__.py")
        file_of(site).rename(site / ACME.module / FILE)

    with engine() as made:
        assert [*made.tools] == [*made.infos] == ["acme.who"]
        assert ACME.module not in sys.modules
        assert made.call("acme.who") == "acme"
        assert ACME.module in sys.modules
    assert not started()


def _first(data: Any) -> Any:
    return data["entry_points"][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(format=1),
        lambda data: data.update(distribution="other-tools"),
        lambda data: data.update(version="1.1"),
        lambda data: data.update(entry_points=5),
        lambda data: data.update(entry_points=[5]),
        lambda data: data["entry_points"].clear(),
        lambda data: _first(data).update(target="other:toolset"),
        lambda data: _first(data).update(name="other"),
        lambda data: _first(data).update(more=1),
        lambda data: _first(data).pop("api"),
        lambda data: _first(data).update(api=[5]),
        lambda data: _first(data).update(api=[["1", 0]]),
        lambda data: _first(data).update(toolsets=[5]),
        lambda data: _first(data).update(aliases={"acme.old": 5}),
        lambda data: _first(data).update(hooks={"neuroscript_decide": {}}),
        lambda data: _first(data).update(plugin="Gate"),
        lambda data: _first(data)["tools"].append(5),
        lambda data: _first(data)["tools"][0].update(name="Acme.WHO"),
        lambda data: _first(data)["tools"][0].update(name="acme.\x1b[31m"),
        lambda data: _first(data)["tools"][0].update(spec=5),
    ],
    ids=range(20),
)
@pytest.mark.usefixtures("no_process")
def test_index_of_another_distribution_is_not_trusted(site: Path, change: Callable[[Any], object]) -> None:
    """The engine needs a separate process to read the distribution, and uses nothing of the index."""
    changed(site, change)

    with engine() as made:
        assert [*made.tools] == []
        assert codes(made) == ["plugin.process"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 1', "\x00", "9" * 5000, "[" * 100_000], ids=range(8)
)
@pytest.mark.usefixtures("no_process")
def test_index_that_is_not_json_is_not_trusted(site: Path, text: str) -> None:
    """This covers a truncated file and other content."""
    file_of(site).write_text(text)

    with engine() as made:
        assert [*made.tools] == []
        assert codes(made) == ["plugin.process"]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda site: changed(site, lambda data: data.update(version="1.1")), id="another distribution"),
        pytest.param(lambda site: file_of(site).write_text("{"), id="not JSON"),
    ],
)
def test_distribution_with_an_invalid_index_is_read_by_a_process(
    site: Path, started: Callable[[], bool], damage: Callable[[Path], object]
) -> None:
    """The distribution is not imported before the first call."""
    damage(site)

    with engine() as made:
        assert [*made.tools] == ["acme.who"]
        assert started()
        assert ACME.module not in sys.modules
        assert made.call("acme.who") == "acme"
        assert codes(made) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Distribution, Any]:
    """Return a distribution, and its index as plain data."""
    site = tmp_path_factory.mktemp("sound")
    ACME.install(site)
    ship(site)
    (found,) = distributions([str(site)])
    return found, json.loads(file_of(site).read_text())


@given(what=JSON, where=st.integers(0, 40))
def test_any_json_is_a_valid_index_or_is_ignored(sound: tuple[Distribution, Any], what: Any, where: int) -> None:
    """Arbitrary values in any place cause no failure, and accepted indexes contain valid tool names."""
    distribution, data = sound
    entries = entries_of(_with(data, what, where), distribution)

    for tool in (tool for entry in entries or () for tool in entry.tools):
        assert tool.name == tool.name.lower()
        assert tool.name.isprintable()


def _with(data: Any, what: Any, where: int) -> Any:
    """Return a copy of *data* with *what* in one place."""
    copy = json.loads(json.dumps(data))
    places = [*_places(copy)]
    if where >= len(places):
        return what
    holder, key = places[where]
    holder[key] = what
    return copy


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in [*items]:
        yield data, key
        yield from _places(value)


@given(what=JSON, where=st.integers(0, 40))
def test_arbitrary_tool_data_in_an_index_does_not_break_an_engine(
    sound: tuple[Distribution, Any], what: Any, where: int
) -> None:
    """Specs and policies are read on demand, and the call reports what is invalid."""
    distribution, data = sound
    from neuroscript.discovery import lazy_tools as deferred

    problems: list[Any] = []
    for entry in entries_of(_with(data, what, where), distribution) or ():
        for tool in deferred.tools([deferred.Source(distribution, entry, problems.append)]):
            for look in ("spec", "policy", "implementation"):
                try:
                    getattr(tool, look)
                except deferred.PluginError as error:
                    assert error.code == "plugin.index"
    assert len(problems) <= 1


def test_index_of_an_editable_distribution_is_not_trusted(site: Path, started: Callable[[], bool]) -> None:
    """Its sources are elsewhere and change without a new build."""
    sources = site.parent / "sources"
    sources.mkdir()
    (site / f"{ACME.module}.py").rename(sources / f"{ACME.module}.py")
    sys.path.append(str(sources))

    try:
        with engine() as made:
            assert made.call("acme.who") == "acme"
    finally:
        sys.path.remove(str(sources))
    assert started()


# Tools that differ from their index


def test_tool_with_other_needs_than_its_index_is_refused(site: Path) -> None:
    """The host decided by the index; the other tools work, and one warning is logged."""
    more = "\n@toolset.tool()\ndef other() -> int:\n    return 1\n"
    (site / f"{ACME.module}.py").write_text(ACME.code + more)
    ship(site)
    risky = ACME.code.replace("tool()", "tool(policy=ToolPolicy(requires_trust=True))") + more
    (site / f"{ACME.module}.py").write_text(f"from neuroscript import ToolPolicy\n{risky}")

    with engine() as made:
        for _ in range(3):
            with pytest.raises(ToolFailed) as caught:
                made.call("acme.who")
        assert made.call("acme.other") == 1
        assert codes(made) == ["plugin.index"]
    assert ("plugin.index", "host", "acme.who") == (caught.value.code, caught.value.retry, caught.value.tool)
    assert "acme.who: cannot be loaded (plugin.index)" == str(caught.value)
    reason = "acme.who does not match its index; rebuild the index with neuroscript index"
    assert f"acme-tools 1.0: {reason}" == str(caught.value.__cause__)


def test_tool_with_another_spec_is_refused_after_its_spec_was_shown(site: Path) -> None:
    """If the spec was never read, the tool runs as it is."""
    (site / f"{ACME.module}.py").write_text(ACME.code.replace("-> str", "-> str | None"))

    with engine() as made:
        assert made.call("acme.who") == "acme"
    with engine() as made:
        assert made.infos["acme.who"].spec.return_type == "string"
        with pytest.raises(ToolFailed) as caught:
            made.call("acme.who")
    assert (caught.value.code, caught.value.retry) == ("plugin.index", "host")


def test_tool_that_no_longer_exists_is_refused(site: Path) -> None:
    """The index still lists it."""
    (site / f"{ACME.module}.py").write_text(ACME.code.replace("def who", "def whose"))

    with engine() as made:
        with pytest.raises(ToolFailed) as caught:
            made.call("acme.who")
    assert (caught.value.code, caught.value.retry) == ("plugin.index", "host")


@pytest.mark.parametrize(
    "what", [{"spec": {}}, {"spec": {"name": "other", "group": "acme"}}, {"policy": {"x": 1}}], ids=str
)
def test_tool_with_an_invalid_index_entry_is_refused(site: Path, what: dict[str, Any]) -> None:
    """Every entry point refuses it; the engine starts, lists the others and logs one warning."""
    changed(site, lambda data: _first(data)["tools"][0].update(what))

    with engine(policy=ExecutionPolicy(allow=["acme.*"])) as made:
        assert "acme.who" not in made.infos
        assert made.unused_rules == ()
        with pytest.raises(Exception, match=r"acme\.who does not match its index"):
            made.tools["acme.who"]
        assert codes(made) == ["plugin.index"]


def test_index_decides_before_anything_is_imported(site: Path) -> None:
    """A tool that may not run is not loaded."""
    (site / f"{ACME.module}.py").write_text(MARK)

    with engine(policy=ExecutionPolicy(deny=["acme.who"])) as made, pytest.raises(PolicyError):
        made.call("acme.who")


def test_wrong_index_is_removed_from_the_cache(site: Path, started: Callable[[], bool]) -> None:
    """The cached data of a distribution is dropped when a tool turns out to differ."""
    code = ACME.code.replace("tool()", "tool(policy=policy)")
    published = attrs.evolve(
        ACME,
        code=f"import os\nfrom neuroscript import ToolPolicy\npolicy = ToolPolicy(requires_trust='RISKY' in os.environ)\n{code}",
    )
    published.install(site)
    file_of(site).unlink()
    age(site)
    with engine():
        assert started()
    (kept,) = (site.parent / "cache" / "neuroscript").glob("index-*")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RISKY", "1")
        with engine() as made, pytest.raises(ToolFailed):
            made.call("acme.who")

    assert not kept.exists()


def test_only_old_files_of_this_project_are_removed_from_the_cache(site: Path) -> None:
    """A name and an age prove nothing, so files of the user stay."""
    cache = site.parent / "cache" / "neuroscript"
    cache.mkdir(parents=True)
    users = {"notes.txt": "mine", "index-0123abcd.json": '{"of": "tea"}', "installed-0123abcd.json": ""}
    ours = {"index-89abcdef.json": '{"of":"(1, 2)","roots":[]}', "installed-89abcdef.json": f"{HEAD}\0/usr/lib\n"}
    for name, text in {**users, **ours}.items():
        (cache / name).write_text(text)
        os.utime(cache / name, (1, 1))
    file_of(site).unlink()
    age(site)

    with engine():
        names = {file.name for file in cache.iterdir()}

    assert names & {*users, *ours} == {*users}
    assert len(names) > len(users)
