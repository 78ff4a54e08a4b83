"""``neuroscript plugins``, over wheels that were built and installed: healthy ones beside the fourteen broken ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import command, environment, process
from tests.distributions import BROKEN, HEALTHY, TOOLSET, Broken, Published

from neuroscript import Engine, __version__
from neuroscript.discovery.installed import distributions
from neuroscript.discovery.probe import SLOW, probed

SECONDS = 6
"""How long each distribution is given here."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of each distribution, and let pip install them all into one folder."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    published = [*HEALTHY, *(each.published for each in BROKEN)]
    files = [str(each.wheel(wheels)) for each in published]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    done = subprocess.run([*pip, "--target", str(site), *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def with_site(site: Path) -> Callable[..., Any]:
    """Return what runs the command in a process that has the folder on its path."""

    def run(*argv: str, **settings: str) -> Any:
        path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
        return process(*argv, PYTHONPATH=path, **settings)

    return run


@pytest.fixture(scope="module")
def report(with_site: Callable[..., Any]) -> Any:
    """Return what ``plugins check --json`` says of all of them, by name."""
    ran = with_site("plugins", "check", "--json", "--seconds", str(SECONDS))
    assert (ran.code, ran.err) == (1, "")
    found = json.loads(ran.out)
    assert found["ok"] is False
    return {each["name"]: each for each in found["plugins"]}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.published.name)
def test_each_of_the_fourteen_is_named_with_its_reason(report: Any, broken: Broken) -> None:
    """By name, version, code and sentence, whatever the others do."""
    found = report[broken.published.name]

    assert (found["version"], found["code"]) == ("1.0", broken.code)
    assert found["reason"] == broken.reason.replace("{limit:g}", str(SECONDS)).replace("{slow:g}", f"{SLOW:g}")
    assert found["ok"] == (broken.code == "plugin.slow")


def test_the_healthy_ones_are_sound_beside_them(report: Any) -> None:
    """With their tools and their hooks."""
    good, computed = report["acme-good"], report["zeta-good"]

    assert (good["ok"], good["code"], good["tools"], good["hooks"]) == (True, "", ["acme.who"], [])
    assert (computed["ok"], computed["code"], computed["tools"]) == (True, "", ["numbers.one", "numbers.two"])
    assert computed["hooks"] == ["neuroscript_toolsets", "neuroscript_decide", "neuroscript_call_finished"]
    assert report["neuroscript-fs"]["version"] == __version__
    assert len(report) == len({*report} & {each["name"] for each in report.values()}) >= len(BROKEN) + 4


def test_an_engine_starts_beside_them(site: Path) -> None:
    """In a process of its own; the healthy ones work, and it says the same of the others as the check does.

    The one that hangs is left out: an import can not be stopped from within its process.
    """
    code = (
        "import json\nfrom neuroscript import Engine\n"
        "with Engine(without=['broken-hang']) as engine:\n"
        "    worked = [engine.call('acme.who'), engine.call('numbers.one'), engine.call('math.add', (1, 2))]\n"
        "    print(json.dumps([worked, [[each.distribution, each.code] for each in engine.plugin_errors]]))\n"
    )
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(PYTHONPATH=path)
    )

    worked, errors = json.loads(done.stdout)

    assert worked == ["good", 1, 3.0]
    expected = {(f"{each.published.name} 1.0", each.code) for each in BROKEN}
    assert {tuple(each) for each in errors} == {
        each for each in expected if each[1] not in ("plugin.hang", "plugin.slow")
    }


def test_a_person_sees_the_same(with_site: Callable[..., Any]) -> None:
    """One row for each plugin, and the counts."""
    ran = with_site(
        "plugins", "check", "acme-good", "Broken_Exit", "zeta-good", NEUROSCRIPT_PLUGINS="broken-exit,zeta-good"
    )

    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "broken-exit 1.0  plugin.exit  entry point broken-exit cannot be loaded: SystemExit: 3\n"
        "                              (broken_exit_module.py, line 1)\n"
        "zeta-good 1.0    ok           2 tools, 3 hooks\n\n"
        "2 plugins: 1 can be used, 1 can not\n"
    )


def test_a_list_imports_nothing(with_site: Callable[..., Any]) -> None:
    """All are there, those that hang and those that end the process too."""
    ran = with_site("plugins", "list", "--json")
    found = {each["name"]: each for each in json.loads(ran.out)}

    assert (ran.code, ran.err) == (0, "")
    assert {each.published.name for each in BROKEN} < {*found}
    assert found["zeta-good"] == {
        "name": "zeta-good",
        "version": "1.0",
        "on": True,
        "toolsets": [],
        "plugins": ["zeta-good"],
    }


def test_one_plugin_is_shown(with_site: Callable[..., Any], site: Path) -> None:
    """Where it lies, and what its entry points mean."""
    ran = with_site("plugins", "show", "Broken.Hang", "-p", "no:broken-hang")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"broken-hang 1.0\n  off, in {site}/broken_hang-1.0.dist-info\n\n"
        "  neuroscript.toolsets  broken-hang  broken_hang_module:toolset\n"
    )
    data = json.loads(with_site("plugins", "show", "acme-good", "--json").out)
    assert data["entry_points"] == [
        {"group": "neuroscript.toolsets", "name": "acme", "target": "acme_good_module:toolset"}
    ]


# What a user chooses


def names(ran: Any) -> set[str]:
    """Return the groups of the tools in a list."""
    assert ran.code == 0
    return {each["name"].partition(".")[0] for each in json.loads(ran.out)}


@pytest.mark.parametrize(
    ("settings", "groups"),
    [
        ({"NEUROSCRIPT_PLUGINS": "acme-good, Neuroscript_FS,"}, {"acme", "fs"}),
        ({"NEUROSCRIPT_PLUGINS": ""}, set()),
        ({"NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD": "1"}, set()),
        ({"NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD": "1", "NEUROSCRIPT_PLUGINS": "acme-good"}, {"acme"}),
        ({"NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD": "", "NEUROSCRIPT_PLUGINS": "zeta-good"}, {"numbers"}),
    ],
    ids=["some", "none", "no-autoload", "no-autoload-but-some", "empty-no-autoload"],
)
def test_the_environment_chooses_for_the_command(
    with_site: Callable[..., Any], settings: dict[str, str], groups: set[str]
) -> None:
    """And for the command alone."""
    assert groups == names(with_site("list", "--json", **settings))


def test_the_environment_names_a_bundle(with_site: Callable[..., Any]) -> None:
    """Beside distributions; one that there is not ends the command."""
    found = names(with_site("list", "--json", NEUROSCRIPT_PLUGINS="acme-good, @files"))
    ran = with_site("list", NEUROSCRIPT_PLUGINS="@flies")

    assert {"acme", "fs", "math"} <= found
    assert not found & {"numbers", "shell", "http"}
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "neuroscript: flies: no bundle is called so; did you mean files?\n"


def test_an_engine_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an application loads is what it says."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "nothing-at-all")
    monkeypatch.setenv("NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "1")

    with Engine() as engine:
        assert "math.add" in engine.tools
        assert engine.plugin_errors == ()


def test_words_leave_plugins_out(with_site: Callable[..., Any]) -> None:
    """A distribution, or one entry point; a name that leaves nothing out is told of."""
    only = {"NEUROSCRIPT_PLUGINS": "acme-good,neuroscript-fs,zeta-good"}

    assert names(with_site("list", "--json", "-p", "no:acme-good", "-p", "no:fs", **only)) == {"numbers"}
    ran = with_site("list", "--json", "-p", "no:acme-god", **only)
    assert ran.err == "neuroscript: warning: -p no:acme-god leaves nothing out; no plugin is called so\n"
    assert names(ran) == {"acme", "fs", "numbers"}


def test_a_plugin_that_is_not_there_is_warned_of(with_site: Callable[..., Any]) -> None:
    """By every command that would load it."""
    for words in (("list",), ("plugins", "list")):
        ran = with_site(*words, NEUROSCRIPT_PLUGINS="nowhere")
        assert ran.err.startswith("neuroscript: warning: nowhere: is not installed, or offers no toolset\n")
        assert ran.code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plugins",), "an action is missing: list, show, check, lock, diff (see neuroscript plugins --help)"),
        (
            ("plugins", "show", "neuroscript-sdt"),
            "no plugin is called neuroscript-sdt; did you mean neuroscript-std or neuroscript-fs or neuroscript-git?",
        ),
        (("plugins", "check", "\x1b[2J"), "no plugin is called \\x1b[2J"),
    ],
    ids=str,
)
def test_words_that_can_not_be_followed(words: tuple[str, ...], said: str) -> None:
    """Are said to be such, with the exit code of usage."""
    ran = command(*words)

    assert (ran.code, ran.out, ran.err) == (2, "", f"neuroscript: {said}\n")


@pytest.mark.parametrize("word", ["0", "-1", "x", "3601", "1e3", ""])
def test_seconds_are_a_whole_number(word: str) -> None:
    """From 1 to 3600."""
    ran = command("plugins", "check", f"--seconds={word}")

    assert ran.code == 2
    assert "expected a whole number from 1 to 3600" in ran.err


# What a process may do


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that is all that there is on the path besides the interpreter's and ours."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path


def checked(folder: Path, code: str, limit: float = SECONDS) -> Any:
    """Return what came of a distribution with this code."""
    Published("odd-tools", code).install(folder)
    (report,) = probed(distributions([str(folder)]), limit)
    return report


@pytest.mark.parametrize(
    ("code", "told", "reason"),
    [
        ("import os; os._exit(3)", "plugin.exit", "ended its process while it was loaded (exit code 3)"),
        ("import os; os.abort()", "plugin.exit", "ended its process while it was loaded (exit code -6)"),
        ("raise KeyboardInterrupt", "plugin.exit", "cannot be loaded: KeyboardInterrupt (odd_tools_module.py, line 1)"),
        (f"import sys; sys.stdout.close(); sys.path.clear()\n{TOOLSET.format(group='odd', name='odd')}", "", ""),
        (
            f"import threading; threading.Thread(target=threading.Event().wait).start()\n"
            f"{TOOLSET.format(group='odd', name='odd')}",
            "",
            "",
        ),
    ],
    ids=["ends", "aborts", "interrupts", "closes", "leaves a thread"],
)
def test_a_process_takes_what_a_plugin_does_to_it(alone: Path, code: str, told: str, reason: str) -> None:
    """Nothing of it reaches whoever asks."""
    report = checked(alone, code)

    assert (report.code, report.reason) == (told, reason)
    assert "odd_tools_module" not in sys.modules


def test_what_a_hanging_plugin_has_started_is_ended_with_it(alone: Path, tmp_path: Path) -> None:
    """The whole group of its process."""
    alive = tmp_path / "alive"
    child = f"import time\nwhile True:\n    open({str(alive)!r}, 'a').write('.')\n    time.sleep(0.05)"
    code = f"import pathlib, subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\nwhile True: pass\n"

    report = checked(alone, code, 2)

    assert (report.code, report.reason) == ("plugin.hang", "has not been loaded after 2 seconds")
    assert alive.exists()
    size = alive.stat().st_size
    time.sleep(0.3)
    assert alive.stat().st_size == size
