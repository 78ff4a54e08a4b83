"""Loading of installed distributions: order, selection, atomicity, and faults."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from tests.distributions import BROKEN, COMPUTED, HEALTHY, TOOLSET, Broken, Published, age
from tests.test_project import PLUGINS

from neuroscript import Engine, PluginError, PolicyError, RegistryError, SpecError, Toolset, ToolSpec, hookimpl
from neuroscript.discovery.catalog import FIRST_PARTY
from neuroscript.discovery.installed import distributions
from neuroscript.io.text import type_name

ROOT = Path(__file__).parents[2]

UNLOADABLE = [each for each in BROKEN if each.code not in ("plugin.timeout", "plugin.slow")]
"""The faults that an engine finds; ``plugins check`` finds hangs and slow imports in a separate process."""

OURS = [*FIRST_PARTY]
"""The distributions of this project. Most tests exclude them, because an engine reads them anew for each search path."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of installed distributions."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget(tmp_path)


def forget(folder: Path) -> None:
    """Make the modules of a folder importable again."""
    for module in [name for name, each in sys.modules.items() if str(folder) in str(getattr(each, "__file__", ""))]:
        del sys.modules[module]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return a folder for each distribution, valid or broken; they are old, so what was read of them is cached."""
    folder = tmp_path_factory.mktemp("folders")
    for each in (*HEALTHY, *(each.published for each in UNLOADABLE)):
        each.install(folder / each.name)
    age(folder)
    return sorted(map(str, folder.iterdir()))


@pytest.fixture
def everything(folders: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put all these folders on the search path, always in the same order, and return them."""
    lasting = [each for each in sys.path if Path(each) != ROOT]  # other tests write into the project's own folder
    monkeypatch.setattr(sys, "path", [*folders, *lasting])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a new file in a folder makes its cached data outdated
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    yield folders
    for each in folders:
        forget(Path(each))


def healthy(name: str, group: str = "") -> Published:
    """Return a distribution with one tool."""
    return Published(name, TOOLSET.format(group=group or name.replace("-", ""), name=name))


def warnings_of(engine: Engine) -> list[str]:
    """Return the warnings about broken distributions."""
    return [str(each) for each in engine.plugin_errors]


# Discovery


def test_installed_toolset_is_found(site: Path) -> None:
    """Its entry point is enough; the host names nothing."""
    healthy("acme-tools", "acme").install(site)

    with Engine(without=OURS) as engine:
        assert engine.call("acme.who") == "acme-tools"
        assert engine.infos["acme.who"].origin == "acme-tools 1.0"
        assert engine.plugin_errors == ()


def test_installed_plugin_is_loaded(site: Path) -> None:
    """Its hooks provide generated tools, refuse calls and observe them."""
    HEALTHY[1].install(site)

    with Engine(plugins=["zeta-good"]) as engine:
        assert engine.call("numbers.one") == 1
        with pytest.raises(PolicyError) as caught:
            engine.call("numbers.two")
        assert [*engine.tools] == ["numbers.one", "numbers.two"]
        assert engine.infos["numbers.one"].origin == "zeta-good 1.0"
    assert caught.value.text == "is one too many"
    assert sys.modules["zeta_good_module"].calls == ["numbers.one", "numbers.two"]


def test_distribution_metadata_is_read(site: Path) -> None:
    """The name, version and entry points are read without an import."""
    Published("Acme.Tools", "raise AssertionError", "b", version="2.0rc1").install(site)
    (entries,) = site.glob("*/entry_points.txt")
    entries.write_text(
        "# a comment\n[console_scripts]\nneuroscript.x = a:b\n\n[neuroscript.plugins]\na=pkg.mod\n"
        "[neuroscript.toolsets]\n; another\nb = pkg.mod : deep.er [extra]\nc = not a target\n"
    )

    (found,) = distributions([str(site), "/nowhere", str(site)])

    assert (found.key, str(found)) == ("acme-tools", "Acme.Tools 2.0rc1")
    assert [(each.name, str(each)) for each in found.entry_points] == [
        ("b", "pkg.mod:deep.er"),
        ("c", ""),
        ("a", "pkg.mod"),
    ]


def test_metadata_of_an_editable_installation_count_too(site: Path) -> None:
    """Older tools leave them beside the sources."""
    info = site / "old_tools.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 1.1\nName: old-tools\nVersion: 3\n\nName: no header\n")
    (info / "entry_points.txt").write_bytes(b"[neuroscript.toolsets]\nold = old_tools:\xff\n")

    (found,) = distributions([str(site)])

    assert str(found) == "old-tools 3"
    assert [each.module for each in found.entry_points] == [""]


def test_first_of_two_versions_on_the_path_counts(site: Path) -> None:
    """It is the one that an import finds."""
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        attrs.evolve(healthy("acme-tools"), version=version).install(site / folder)

    assert ["acme-tools 2.0"] == [str(each) for each in distributions([str(site / "first"), str(site / "second")])]
    assert ["acme-tools 1.0"] == [str(each) for each in distributions([str(site / "second"), str(site / "first")])]


def test_unusual_metadata_are_handled(site: Path) -> None:
    """The cases are a file larger than one read, a folder in place of a file, and missing metadata."""
    healthy("acme-tools", "acme").install(site)
    (entries,) = site.glob("*/entry_points.txt")
    entries.write_text("".join(f"# {line:080}\n" for line in range(2_000)) + entries.read_text())
    (site / "folder-1.0.dist-info" / "entry_points.txt").mkdir(parents=True)
    (site / "empty-1.0.dist-info").mkdir()
    (site / "file-1.0.dist-info").write_text("")

    (found,) = distributions([str(site)])

    assert [str(each) for each in found.entry_points] == ["acme_tools_module:toolset"]


# Selection


def test_host_selects_distributions_by_name(site: Path) -> None:
    """Spellings are equal as in PEP 503; other distributions are not imported."""
    healthy("Acme.Tools", "acme").install(site)
    Published("other-tools", "raise AssertionError('imported')").install(site)

    with Engine(plugins=["acme_tools"]) as engine:
        assert [*engine.tools] == ["acme.who"]
        assert engine.plugin_errors == ()
    with Engine(plugins="none") as engine:
        assert [*engine.tools] == []


def test_host_excludes_distributions_and_entry_points(site: Path) -> None:
    """Neither is imported."""
    Published("other-tools", "raise AssertionError('imported')", "others").install(site)
    healthy("acme-tools", "acme").install(site)
    age(site)

    for name in ("other-tools", "Other.Tools", "others"):
        with Engine(without=[name, *OURS]) as engine:
            assert "acme.who" in engine.tools
            assert engine.plugin_errors == ()
    with Engine(plugins=["neuroscript-std"], without=["math"]) as engine:
        assert "str.length" in engine.tools
        assert "math.add" not in engine.tools


def test_missing_distribution_is_reported(site: Path) -> None:
    with Engine(plugins=["no-such-tools"]) as engine:
        assert ["no-such-tools: is not installed, or offers no toolset"] == warnings_of(engine)
        assert ["plugin.missing"] == [each.code for each in engine.plugin_errors]


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"plugins": "acme"}, "plugins must be 'installed', 'none' or a collection of names of distributions"),
        ({"without": "acme"}, "without must be a collection of strings, not str"),
    ],
    ids=["plugins", "without"],
)
def test_string_is_not_a_collection_of_names(keywords: dict[str, str], text: str) -> None:
    """Otherwise its characters would be names."""
    with pytest.raises(SpecError) as caught:
        Engine(**keywords)  # type: ignore[arg-type]

    assert f"Engine: {text}" == str(caught.value)


def test_distributions_load_in_order_of_their_names(site: Path) -> None:
    """First-party ones come first; a host may set another order. The order of a folder differs between machines."""
    for name in ("zeta", "alpha", "mid"):
        healthy(name).install(site)
    age(site)

    def order(**keywords: list[str]) -> list[str]:
        with Engine(**keywords) as engine:  # type: ignore[arg-type]
            return [*dict.fromkeys(name.partition(".")[0] for name in engine.tools)]

    assert order(without=[each for each in OURS if each != "neuroscript-fs"]) == ["fs", "alpha", "mid", "zeta"]
    assert order(plugins=["zeta", "neuroscript-fs", "mid", "alpha"]) == ["fs", "zeta", "mid", "alpha"]
    assert order(plugins={"zeta", "mid", "alpha"}) == ["alpha", "mid", "zeta"]  # type: ignore[arg-type]


# Broken distributions


@pytest.mark.parametrize("broken", UNLOADABLE, ids=lambda each: each.published.name)
@pytest.mark.usefixtures("everything")
def test_broken_distribution_is_reported_and_stops_no_other(broken: Broken) -> None:
    """It is loaded between two good ones, and leaves nothing behind."""
    with Engine(plugins=["acme-good", broken.published.name, "zeta-good"]) as engine:
        assert [engine.call("acme.who"), engine.call("numbers.one")] == ["good", 1]
        assert [*engine.tools] == ["acme.who", "numbers.one", "numbers.two"]
        (error,) = engine.plugin_errors
    assert isinstance(error, PluginError)
    assert f"{broken.published.name} 1.0: {broken.reason}" == str(error)
    assert broken.code == error.code


@pytest.mark.parametrize(
    ("published", "code", "reason"),
    [
        (
            Published("b", "x = ("),
            "import",
            "entry point b cannot be loaded: SyntaxError: '(' was never closed (b_module.py, line 1)",
        ),
        (
            Published("b", "x = 1"),
            "import",
            "entry point b cannot be loaded: AttributeError: module 'b_module' has no attribute 'toolset'",
        ),
        (Published("b", "", target="a b"), "object", "entry point b must have the form module:object"),
        (
            Published("b", "", target="", group="plugins"),
            "hook",
            "entry point b cannot be used: it has no hooks; mark one with @hookimpl",
        ),
        (
            Published("b", COMPUTED.replace("[numbers()]", "[5]"), target="", group="plugins"),
            "hook",
            "entry point b cannot be used: neuroscript_toolsets returned int instead of a Toolset",
        ),
        (
            Published("b", f"runtime_api = (1, 3)\n{COMPUTED}", target="", group="plugins"),
            "api",
            "entry point b requires runtime API 1.3, but this is 1.2",
        ),
        (
            Published("b", f"runtime_api = '1.0'\n{COMPUTED}", target="", group="plugins"),
            "api",
            "entry point b declares a runtime_api that is not a pair of integers",
        ),
        (
            Published("b", COMPUTED.replace('("one", 1)', '("two", 1)'), target="", group="plugins"),
            "hook",
            "entry point b cannot be used: neuroscript_toolsets failed: "
            "toolset numbers has two tools called numbers.two",
        ),
        (
            Published("b", COMPUTED.replace("[numbers()]", "[numbers(), numbers()]"), target="", group="plugins"),
            "duplicate",
            "claims numbers.one, which b 1.0 already provides",
        ),
        (
            Published(
                "b", "from neuroscript import Toolset\nclass T(Toolset):\n    def __init__(self): ...\ntoolset = T()"
            ),
            "spec",
            "entry point b cannot be used: AttributeError: 'T' object has no attribute 'runtime_api'",
        ),
        (
            Published("b", TOOLSET.format(group="io.deep", name="b")),
            "reserved_name",
            "uses the name io.deep, which belongs to neuroscript-std",
        ),
    ],
    ids=itertools.count(),
)
def test_each_fault_has_its_own_message(site: Path, published: Published, code: str, reason: str) -> None:
    published.install(site)

    with Engine(plugins=["b"]) as engine:
        assert [(f"plugin.{code}", reason)] == [(each.code, each.reason) for each in engine.plugin_errors]
        assert not engine.tools


def test_distribution_is_loaded_completely_or_not_at_all(site: Path) -> None:
    """If one of two entry points is broken, the other one provides nothing either."""
    acme = healthy("acme-tools", "acme")
    acme.install(site)
    (entries,) = site.glob("*/entry_points.txt")
    entries.write_text(f"{entries.read_text()}worse = nowhere_to_be_found:toolset\n")

    with Engine(plugins=["acme-tools"]) as engine:
        assert not engine.tools
        reason = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
        assert warnings_of(engine) == [f"acme-tools 1.0: entry point worse cannot be loaded: {reason}"]


@pytest.mark.usefixtures("everything")
def test_strict_raises_with_all_broken_distributions() -> None:
    """It tries all of them first."""
    with pytest.raises(PluginError) as caught:
        Engine(strict=True, without=OURS)

    error = pickle.loads(pickle.dumps(caught.value))
    assert {(f"{each.published.name} 1.0", each.code, each.reason) for each in UNLOADABLE} == {
        (each.distribution, each.code, each.reason) for each in error.errors
    }
    assert str(error) == f"plugins: {'; '.join(map(str, error.errors))}"


def test_strict_accepts_sound_distributions() -> None:
    """All first-party distributions are sound."""
    with Engine(strict=True) as engine:
        assert {str(each) for each in distributions()} == {info.origin for info in engine.infos.values()}


@pytest.mark.slow
def test_registry_does_not_depend_on_the_search_order(
    everything: list[str], monkeypatch: pytest.MonkeyPatch, full_counts: bool
) -> None:
    """Each distribution is in its own folder; each order of the folders gives the same registry."""
    folders, before, seen = everything, [each for each in sys.path if each not in everything], set()
    for turn in range(0, len(folders), 1 if full_counts else len(folders)):
        for order in (folders[turn:] + folders[:turn], (folders[turn:] + folders[:turn])[::-1]):
            monkeypatch.setattr(sys, "path", [*order, *before])
            with Engine(without=OURS) as engine:
                origins = tuple((name, info.origin) for name, info in engine.infos.items())
                seen.add((tuple(engine.tools), origins, tuple(warnings_of(engine))))

    assert len(seen) == 1
    assert len(seen.pop()[2]) == len(UNLOADABLE)


def test_interrupt_during_loading_is_not_a_fault(site: Path) -> None:
    """It ends the call, and the next call loads the distribution."""
    once = "import os, sys\nif 'pressed' not in sys.modules and os.environ.get('PRESSED'):\n    sys.modules['pressed'] = os\n    raise KeyboardInterrupt\n"
    Published("acme-tools", once + TOOLSET.format(group="acme", name="a")).install(site)

    with Engine(plugins=["acme-tools"]) as engine:
        os.environ["PRESSED"] = "1"
        try:
            with pytest.raises(KeyboardInterrupt):
                engine.call("acme.who")
            assert engine.plugin_errors == ()
            assert engine.call("acme.who") == "a"
        finally:
            del os.environ["PRESSED"], sys.modules["pressed"]


# Refused content


def test_tools_of_the_host_come_first(site: Path) -> None:
    """A distribution cannot take a name that the host uses."""
    healthy("thief", "acme").install(site)
    mine = Toolset("acme")
    mine.add(ToolSpec("who", "acme"), lambda rt: "host")

    with Engine(toolsets=[mine], plugins=["thief"]) as engine:
        assert engine.call("acme.who") == "host"
        assert ["thief 1.0: claims acme.who, which host already provides"] == warnings_of(engine)


def test_first_party_distributions_use_reserved_names() -> None:
    """Other distributions may not use them; all other names are free."""
    with Engine() as engine:
        names = {str(each).partition(" ")[0] for each in distributions()}
        origins = engine._shared.registry.origins
        used = {(origin.partition(" ")[0], name.partition(".")[0]) for name, origin in origins.items()}
    ours = {(key, group) for key, groups in FIRST_PARTY.items() for group in groups if key in names}

    assert {project["project"]["name"] for project in PLUGINS} <= {*FIRST_PARTY}
    assert ours == {each for each in used if each[0] in FIRST_PARTY}


def test_later_spec_change_has_no_effect(site: Path) -> None:
    """The engine has a copy."""
    Published("acme-tools", f"{TOOLSET.format(group='acme', name='a')}\nspec = toolset.tools[0].spec\n").install(site)

    with Engine(plugins=["acme-tools"]) as engine:
        assert engine.preload() == ()
        module = sys.modules["acme_tools_module"]
        object.__setattr__(module.spec, "return_type", "int")
        object.__setattr__(module.spec, "full_name", "fs.read")
        module.toolset.add(ToolSpec("late", "acme"), lambda rt: 1)

        assert [*engine.tools] == ["acme.who"]
        assert engine.call("acme.who") == "a"


@pytest.mark.parametrize("api", [(1,), (1, 2, 3), [1, 0], (1, "0"), (True, 0), (-1, 0), "1.0", None], ids=repr)
def test_runtime_version_is_two_integers(api: object) -> None:
    """Any other value is a SpecError in the declaration."""
    with pytest.raises(SpecError) as caught:
        Toolset("g", runtime_api=api)  # type: ignore[arg-type]

    got = "" if type(api) is tuple else f", not {type_name(api)}"
    assert str(caught.value) == f"toolset: runtime_api must be two integers, such as (1, 0){got}"


# Tools of host plugins


class Numbers:
    """A plugin with a tool."""

    @hookimpl
    def neuroscript_toolsets(self) -> list[Toolset]:
        numbers = Toolset("numbers")
        numbers.add(ToolSpec("one", "numbers", return_type="int"), lambda rt: 1)
        return [numbers]


def test_host_plugin_provides_tools() -> None:
    """This works for the constructor and for later registration."""
    with Engine(plugins="none", hooks=[Numbers()]) as engine:
        assert engine.call("numbers.one") == 1
    with Engine(plugins="none") as engine:
        engine.add_hooks(Numbers())
        assert engine.call("numbers.one") == 1
        with pytest.raises(RegistryError, match="already registered: numbers"):
            engine.add_hooks(Numbers())
        assert engine.call("numbers.one") == 1


def test_tools_and_hooks_of_a_plugin_are_added_together_or_not_at_all() -> None:
    """A guard whose tools could not be added is not asked."""

    class Gated(Numbers):
        @hookimpl
        def neuroscript_decide(self, call: object) -> str:
            return "no"

    with Engine(plugins="none", hooks=[Numbers()]) as engine:
        with pytest.raises(RegistryError):
            engine.add_hooks(Gated())

        assert engine.call("numbers.one") == 1


@pytest.mark.slow
def test_concurrent_loads_give_the_same_tools(site: Path) -> None:
    """Two engines share only the modules."""
    for each in HEALTHY:
        each.install(site)
    found: list[tuple[str, ...]] = []

    def load() -> None:
        with Engine(without=OURS) as engine:
            found.append((*engine.tools, *warnings_of(engine)))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(found) == 4
    assert len({*found}) == 1


def test_loading_does_not_import_the_metadata_library(site: Path) -> None:
    """Importing it takes longer than creating the engine."""
    HEALTHY[0].install(site)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\nfrom neuroscript import Engine\n"
        "with Engine(plugins=['acme-good']) as engine: print(engine.call('acme.who'))\n"
        "print([name for name in ('importlib.metadata', 'pluggy', 'email') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("good\n[]\n", "")


def test_instance_of_a_spec_subclass_is_refused(site: Path) -> None:
    """It could change between two reads."""
    code = (
        "import attrs\nfrom neuroscript import Toolset, ToolSpec\n"
        "@attrs.frozen\nclass Sly(ToolSpec): ...\n"
        "toolset = Toolset('sly')\ntoolset.add(Sly('f', 'sly'), lambda rt: 1)\n"
    )
    Published("b", code).install(site)

    with Engine(plugins=["b"]) as engine:
        assert not engine.tools
        assert ["plugin.spec"] == [each.code for each in engine.plugin_errors]
