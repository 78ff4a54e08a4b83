"""What installed distributions bring: in order, by choice, whole or not at all, and whatever is wrong with one of them."""

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
from tests.distributions import BROKEN, COMPUTED, HEALTHY, TOOLSET, Broken, Published
from tests.test_project import PLUGINS

from neuroscript import Engine, PluginError, PolicyError, RegistryError, SpecError, Toolset, ToolSpec, hookimpl
from neuroscript.discovery.catalog import FIRST_PARTY
from neuroscript.discovery.installed import distributions
from neuroscript.io.text import type_name

UNLOADABLE = [each for each in BROKEN if each.code not in ("plugin.hang", "plugin.slow")]
"""Those that an engine finds; a hang and a slow import are found by ``plugins check``, which gives them a process."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder of installed distributions."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget(tmp_path)


def forget(folder: Path) -> None:
    """Let what lies in a folder be imported anew."""
    for module in [name for name, each in sys.modules.items() if str(folder) in str(getattr(each, "__file__", ""))]:
        del sys.modules[module]


def healthy(name: str, group: str = "") -> Published:
    """Return a distribution with one tool."""
    return Published(name, TOOLSET.format(group=group or name.replace("-", ""), name=name))


def told(engine: Engine) -> list[str]:
    """Return what is said of broken distributions."""
    return [str(each) for each in engine.plugin_errors]


# What is found


def test_an_installed_toolset_is_found(site: Path) -> None:
    """By its entry point, without a word in the host's program."""
    healthy("acme-tools", "acme").install(site)

    with Engine() as engine:
        assert engine.call("acme.who") == "acme-tools"
        assert engine.infos["acme.who"].origin == "acme-tools 1.0"
        assert engine.plugin_errors == ()


def test_both_doors_are_open(site: Path) -> None:
    """A plugin of hooks brings tools that it computes, refuses calls and is told of them."""
    HEALTHY[1].install(site)

    with Engine(plugins=["zeta-good"]) as engine:
        assert engine.call("numbers.one") == 1
        with pytest.raises(PolicyError) as caught:
            engine.call("numbers.two")
        assert [*engine.tools] == ["numbers.one", "numbers.two"]
        assert engine.infos["numbers.one"].origin == "zeta-good 1.0"
    assert caught.value.text == "is one too many"
    assert sys.modules["zeta_good_module"].told == ["numbers.one", "numbers.two"]


def test_what_is_read_of_a_distribution(site: Path) -> None:
    """Its name as it is written, its version, and its entry points of our groups; nothing is imported for it."""
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


def test_the_metadata_of_an_editable_installation_count_too(site: Path) -> None:
    """As older tools leave them, beside the sources."""
    info = site / "old_tools.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 1.1\nName: old-tools\nVersion: 3\n\nName: no header\n")
    (info / "entry_points.txt").write_bytes(b"[neuroscript.toolsets]\nold = old_tools:\xff\n")

    (found,) = distributions([str(site)])

    assert str(found) == "old-tools 3"
    assert [each.module for each in found.entry_points] == [""]


def test_of_two_versions_the_first_on_the_path_counts(site: Path) -> None:
    """It is the one that an import finds."""
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        attrs.evolve(healthy("acme-tools"), version=version).install(site / folder)

    assert ["acme-tools 2.0"] == [str(each) for each in distributions([str(site / "first"), str(site / "second")])]
    assert ["acme-tools 1.0"] == [str(each) for each in distributions([str(site / "second"), str(site / "first")])]


def test_metadata_of_any_size_are_read_and_odd_ones_passed_over(site: Path) -> None:
    """A file that is larger than what is read at once; a folder where a file should be; a distribution without any."""
    healthy("acme-tools", "acme").install(site)
    (entries,) = site.glob("*/entry_points.txt")
    entries.write_text("".join(f"# {line:080}\n" for line in range(2_000)) + entries.read_text())
    (site / "folder-1.0.dist-info" / "entry_points.txt").mkdir(parents=True)
    (site / "empty-1.0.dist-info").mkdir()
    (site / "file-1.0.dist-info").write_text("")

    (found,) = distributions([str(site)])

    assert [str(each) for each in found.entry_points] == ["acme_tools_module:toolset"]


# What is chosen


def test_a_host_chooses_distributions_by_name(site: Path) -> None:
    """In any spelling that PEP 503 takes for the same; what is not chosen is not imported."""
    healthy("Acme.Tools", "acme").install(site)
    Published("other-tools", "raise AssertionError('imported')").install(site)

    with Engine(plugins=["acme_tools"]) as engine:
        assert [*engine.tools] == ["acme.who"]
        assert engine.plugin_errors == ()
    with Engine(plugins="none") as engine:
        assert [*engine.tools] == []


def test_a_host_leaves_out_what_it_names(site: Path) -> None:
    """A distribution, or an entry point of one; neither is imported."""
    Published("other-tools", "raise AssertionError('imported')", "others").install(site)
    healthy("acme-tools", "acme").install(site)

    for name in ("other-tools", "Other.Tools", "others"):
        with Engine(without=[name]) as engine:
            assert "acme.who" in engine.tools
            assert engine.plugin_errors == ()
    with Engine(without=["math"]) as engine:
        assert "str.length" in engine.tools
        assert "math.add" not in engine.tools


def test_a_distribution_that_is_not_there_is_named(site: Path) -> None:
    """A host that asked for it learns that it got nothing."""
    with Engine(plugins=["no-such-tools"]) as engine:
        assert ["no-such-tools: is not installed, or offers no toolset"] == told(engine)
        assert ["plugin.missing"] == [each.code for each in engine.plugin_errors]


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"plugins": "acme"}, "plugins must be 'installed', 'none' or a collection of names of distributions"),
        ({"without": "acme"}, "without must be a collection of strings, not str"),
    ],
    ids=["plugins", "without"],
)
def test_a_text_is_no_collection(keywords: dict[str, str], text: str) -> None:
    """Its letters are no names."""
    with pytest.raises(SpecError) as caught:
        Engine(**keywords)  # type: ignore[arg-type]

    assert f"Engine: {text}" == str(caught.value)


def test_the_order_is_that_of_the_names(site: Path) -> None:
    """Or that in which a host names them, but ours come first; not that of the folder, which no two machines share."""
    for name in ("zeta", "alpha", "mid"):
        healthy(name).install(site)

    def order(**keywords: list[str]) -> list[str]:
        with Engine(**keywords) as engine:  # type: ignore[arg-type]
            return [*dict.fromkeys(name.partition(".")[0] for name in engine.tools)]

    assert order()[-3:] == ["alpha", "mid", "zeta"]
    assert order(plugins=["zeta", "neuroscript-fs", "mid", "alpha"]) == ["fs", "zeta", "mid", "alpha"]
    assert order(plugins={"zeta", "mid", "alpha"}) == ["alpha", "mid", "zeta"]  # type: ignore[arg-type]


# What is broken


@pytest.mark.parametrize("broken", UNLOADABLE, ids=lambda each: each.published.name)
def test_a_broken_distribution_is_named_and_stops_no_other(site: Path, broken: Broken) -> None:
    """It comes between two good ones, and both work; of it there is nothing."""
    for each in (*HEALTHY, broken.published):
        each.install(site)

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
            Published("b", f"runtime_api = (1, 1)\n{COMPUTED}", target="", group="plugins"),
            "api",
            "entry point b was made for the runtime API 1.1, and this is 1.0",
        ),
        (
            Published("b", f"runtime_api = '1.0'\n{COMPUTED}", target="", group="plugins"),
            "api",
            "entry point b declares a runtime_api that is not two integers",
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
            "shadow",
            "uses the name io.deep, which belongs to neuroscript-std",
        ),
    ],
    ids=itertools.count(),
)
def test_each_fault_has_its_own_sentence(site: Path, published: Published, code: str, reason: str) -> None:
    """For whoever has to mend it."""
    published.install(site)

    with Engine(plugins=["b"]) as engine:
        assert [(f"plugin.{code}", reason)] == [(each.code, each.reason) for each in engine.plugin_errors]
        assert not engine.tools


def test_a_distribution_is_taken_whole_or_not_at_all(site: Path) -> None:
    """Where one of two entry points is broken, the sound one brings nothing either."""
    acme = healthy("acme-tools", "acme")
    acme.install(site)
    (entries,) = site.glob("*/entry_points.txt")
    entries.write_text(f"{entries.read_text()}worse = nowhere_to_be_found:toolset\n")

    with Engine(plugins=["acme-tools"]) as engine:
        assert not engine.tools
        reason = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
        assert told(engine) == [f"acme-tools 1.0: entry point worse cannot be loaded: {reason}"]


def test_strict_raises_with_all_that_are_broken(site: Path) -> None:
    """After all have been tried."""
    for each in (*HEALTHY, *(each.published for each in UNLOADABLE)):
        each.install(site)

    with pytest.raises(PluginError) as caught:
        Engine(strict=True)

    error = pickle.loads(pickle.dumps(caught.value))
    assert {(f"{each.published.name} 1.0", each.code, each.reason) for each in UNLOADABLE} == {
        (each.distribution, each.code, each.reason) for each in error.errors
    }
    assert str(error) == f"plugins: {'; '.join(map(str, error.errors))}"


def test_strict_is_content_with_sound_distributions(site: Path) -> None:
    """As all of ours are."""
    HEALTHY[0].install(site)

    with Engine(strict=True) as engine:
        assert engine.call("acme.who") == "good"


def test_the_registry_does_not_depend_on_where_things_are_found(
    site: Path, monkeypatch: pytest.MonkeyPatch, full_counts: bool
) -> None:
    """Each distribution lies in a folder of its own; of any two, each is found first in one order and last in another."""
    for each in (*HEALTHY, *(each.published for each in UNLOADABLE)):
        each.install(site / each.name)
    folders = sorted(map(str, site.iterdir()))
    before, seen = [*sys.path], set()
    for turn in range(0, len(folders), 1 if full_counts else len(folders)):
        for order in (folders[turn:] + folders[:turn], (folders[turn:] + folders[:turn])[::-1]):
            monkeypatch.setattr(sys, "path", [*order, *before])
            with Engine() as engine:
                origins = tuple((name, info.origin) for name, info in engine.infos.items())
                seen.add((tuple(engine.tools), origins, tuple(told(engine))))

    assert len(seen) == 1
    assert len(seen.pop()[2]) == len(UNLOADABLE)


def test_a_keyboard_interrupt_is_no_fault_of_a_distribution(site: Path) -> None:
    """Whoever presses the keys while it is loaded wants the call to end; the next one loads it."""
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


# What can not be taken


def test_the_hosts_own_tools_come_first(site: Path) -> None:
    """A distribution can not take a name that the host uses."""
    healthy("thief", "acme").install(site)
    mine = Toolset("acme")
    mine.add(ToolSpec("who", "acme"), lambda rt: "host")

    with Engine(toolsets=[mine], plugins=["thief"]) as engine:
        assert engine.call("acme.who") == "host"
        assert ["thief 1.0: claims acme.who, which host already provides"] == told(engine)


def test_our_own_distributions_use_the_names_that_are_kept_for_them() -> None:
    """No other may use them, and a name that is not kept is free for all."""
    with Engine() as engine:
        names = {str(each).partition(" ")[0] for each in distributions()}
        origins = engine._world.registry.origins
        used = {(origin.partition(" ")[0], name.partition(".")[0]) for name, origin in origins.items()}
    ours = {(key, group) for key, groups in FIRST_PARTY.items() for group in groups if key in names}

    assert {project["project"]["name"] for project in PLUGINS} <= {*FIRST_PARTY}
    assert ours == {each for each in used if each[0] in FIRST_PARTY}


def test_a_spec_that_changes_later_changes_nothing(site: Path) -> None:
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
def test_a_version_of_the_runtime_is_two_whole_numbers(api: object) -> None:
    """Whatever else is declared, is a SpecError where it is written."""
    with pytest.raises(SpecError) as caught:
        Toolset("g", runtime_api=api)  # type: ignore[arg-type]

    got = "" if type(api) is tuple else f", not {type_name(api)}"
    assert str(caught.value) == f"toolset: runtime_api must be two integers, such as (1, 0){got}"


# Tools that plugins of the host bring


class Numbers:
    """A plugin that brings a tool."""

    @hookimpl
    def neuroscript_toolsets(self) -> list[Toolset]:
        numbers = Toolset("numbers")
        numbers.add(ToolSpec("one", "numbers", return_type="int"), lambda rt: 1)
        return [numbers]


def test_a_hosts_plugin_brings_tools_too() -> None:
    """When it is given to the engine, and when it is added."""
    with Engine(plugins="none", hooks=[Numbers()]) as engine:
        assert engine.call("numbers.one") == 1
    with Engine(plugins="none") as engine:
        engine.add_hooks(Numbers())
        assert engine.call("numbers.one") == 1
        with pytest.raises(RegistryError, match="already registered: numbers"):
            engine.add_hooks(Numbers())
        assert engine.call("numbers.one") == 1


def test_what_a_plugin_brings_is_added_with_its_hooks_or_not_at_all() -> None:
    """A gate whose tools could not be added is not asked."""

    class Gated(Numbers):
        @hookimpl
        def neuroscript_decide(self, call: object) -> str:
            return "no"

    with Engine(plugins="none", hooks=[Numbers()]) as engine:
        with pytest.raises(RegistryError):
            engine.add_hooks(Gated())

        assert engine.call("numbers.one") == 1


def test_two_threads_that_load_at_once_have_the_same_tools(site: Path) -> None:
    """Two engines share nothing but the modules."""
    for each in HEALTHY:
        each.install(site)
    found: list[tuple[str, ...]] = []

    def load() -> None:
        with Engine() as engine:
            found.append((*engine.tools, *told(engine)))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(found) == 4
    assert len({*found}) == 1


def test_loading_does_not_need_the_metadata_library(site: Path) -> None:
    """It costs more than the engine."""
    HEALTHY[0].install(site)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\nfrom neuroscript import Engine\n"
        "with Engine(plugins=['acme-good']) as engine: print(engine.call('acme.who'))\n"
        "print([name for name in ('importlib.metadata', 'pluggy', 'email') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("good\n[]\n", "")


def test_a_part_of_another_class_is_refused(site: Path) -> None:
    """It could be something else each time that it is looked at."""
    code = (
        "import attrs\nfrom neuroscript import Toolset, ToolSpec\n"
        "@attrs.frozen\nclass Sly(ToolSpec): ...\n"
        "toolset = Toolset('sly')\ntoolset.add(Sly('f', 'sly'), lambda rt: 1)\n"
    )
    Published("b", code).install(site)

    with Engine(plugins=["b"]) as engine:
        assert not engine.tools
        assert ["plugin.spec"] == [each.code for each in engine.plugin_errors]
