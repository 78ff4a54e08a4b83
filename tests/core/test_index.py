"""The index of a distribution: used where it is its own, and otherwise the distribution is read, in another process."""

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
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with one installed distribution that ships its index."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ACME.install(site)
    ship(site)
    yield site
    sys.modules.pop(ACME.module, None)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Return what tells whether a process was started to read a distribution."""
    mark, program = tmp_path / "started", tmp_path / "python"
    program.write_text(f'#!/bin/sh\ntouch {mark}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return mark.exists


def file_of(site: Path) -> Path:
    (found,) = site.glob(f"*.dist-info/{METADATA}/{FILE}")
    return found


def changed(site: Path, change: Callable[[Any], object]) -> None:
    """Change what the index says."""
    data = json.loads(file_of(site).read_text())
    change(data)
    file_of(site).write_text(json.dumps(data))


def engine(**keywords: Any) -> Engine:
    return Engine(plugins=["acme-tools"], **keywords)


def codes(made: Engine) -> list[str]:
    return [each.code for each in made.plugin_errors]


# Which one is used


@pytest.mark.parametrize("place", ["metadata", "package"])
def test_nothing_is_imported_or_started_where_an_index_came_along(
    site: Path, started: Callable[[], bool], place: str
) -> None:
    """In the metadata or in the package; the tool is imported when it is called."""
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
        lambda data: data.update(format=2),
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
def test_what_is_no_index_of_the_distribution_is_not_trusted(
    site: Path, started: Callable[[], bool], change: Callable[[Any], object]
) -> None:
    """Then it is read, and not in this process."""
    changed(site, change)

    with engine() as made:
        assert [*made.tools] == ["acme.who"]
        assert started()
        assert ACME.module not in sys.modules
        assert made.call("acme.who") == "acme"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 1', "\x00", "9" * 5000, "[" * 100_000], ids=range(8)
)
def test_what_is_no_json_is_not_trusted(site: Path, started: Callable[[], bool], text: str) -> None:
    """A file that is cut off, or something else."""
    file_of(site).write_text(text)

    with engine() as made:
        assert made.call("acme.who") == "acme"
        assert codes(made) == []
    assert started()


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
def test_whatever_json_an_index_is_it_is_one_or_none(sound: tuple[Distribution, Any], what: Any, where: int) -> None:
    """Anything may stand in any place of it: nothing fails, and what is taken has names that tools can have."""
    distribution, data = sound
    entries = entries_of(_with(data, what, where), distribution)

    for tool in (tool for entry in entries or () for tool in entry.tools):
        assert tool.name == tool.name.lower()
        assert tool.name.isprintable()


def _with(data: Any, what: Any, where: int) -> Any:
    """Return a copy of *data* in which *what* stands at one place."""
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
def test_whatever_an_index_says_of_a_tool_an_engine_bears(
    sound: tuple[Distribution, Any], what: Any, where: int
) -> None:
    """Its spec and its policy are looked at when they are needed: what they can not be, the call says."""
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


def test_the_index_of_an_editable_distribution_is_not_trusted(site: Path, started: Callable[[], bool]) -> None:
    """Its sources lie elsewhere and change: nobody builds it again for that."""
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


# A tool that is not what its index says


def test_a_tool_that_needs_something_else_is_refused(site: Path) -> None:
    """The host has decided by what the index says; the others of the distribution work, and it is told of once."""
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


def test_a_tool_that_promises_something_else_is_refused_where_somebody_was_told(site: Path) -> None:
    """Whoever has not seen its spec gets the tool as it is."""
    (site / f"{ACME.module}.py").write_text(ACME.code.replace("-> str", "-> str | None"))

    with engine() as made:
        assert made.call("acme.who") == "acme"
    with engine() as made:
        assert made.infos["acme.who"].spec.return_type == "string"
        with pytest.raises(ToolFailed) as caught:
            made.call("acme.who")
    assert (caught.value.code, caught.value.retry) == ("plugin.index", "host")


def test_a_tool_that_is_no_longer_there_is_refused(site: Path) -> None:
    """The index still tells of it."""
    (site / f"{ACME.module}.py").write_text(ACME.code.replace("def who", "def whose"))

    with engine() as made:
        with pytest.raises(ToolFailed) as caught:
            made.call("acme.who")
    assert (caught.value.code, caught.value.retry) == ("plugin.index", "host")


@pytest.mark.parametrize(
    "what", [{"spec": {}}, {"spec": {"name": "other", "group": "acme"}}, {"policy": {"x": 1}}], ids=str
)
def test_a_tool_of_which_the_index_tells_nonsense_is_refused(site: Path, what: dict[str, Any]) -> None:
    """By whichever door somebody asks for it; an engine starts, lists the others and tells of it once."""
    changed(site, lambda data: _first(data)["tools"][0].update(what))

    with engine(policy=ExecutionPolicy(allow=["acme.*"])) as made:
        assert "acme.who" not in made.infos
        assert made.idle_rules == ()
        with pytest.raises(Exception, match=r"acme\.who does not match its index"):
            made.tools["acme.who"]
        assert codes(made) == ["plugin.index"]


def test_what_the_index_says_decides_before_anything_is_imported(site: Path) -> None:
    """A tool that may not run is not loaded."""
    (site / f"{ACME.module}.py").write_text(MARK)

    with engine(policy=ExecutionPolicy(deny=["acme.who"])) as made, pytest.raises(PolicyError):
        made.call("acme.who")


def test_an_index_that_is_not_true_is_not_kept(site: Path, started: Callable[[], bool]) -> None:
    """What was read and kept of a distribution is forgotten when a tool turns out to be another."""
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


def test_only_old_files_of_our_own_are_removed_from_the_cache(site: Path) -> None:
    """A name and an age prove nothing: a file of the user's stays, whatever it is called."""
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
