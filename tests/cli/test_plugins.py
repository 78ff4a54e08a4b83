"""``neuroscript plugins`` with wheels that were built and installed: valid ones beside fourteen broken ones."""

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
from tests.cli.conftest import CommandResult, command, process, run_installed
from tests.distributions import BROKEN, HEALTHY, TOOLSET, Broken, Published

from neuroscript import Engine, __version__
from neuroscript.discovery.installed import distributions
from neuroscript.discovery.probe import SLOW, probe_all

SECONDS = 6
"""Time limit of each distribution in seconds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of each distribution, and install all of them with pip into one folder."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    published = [*HEALTHY, *(each.published for each in BROKEN)]
    files = [str(each.wheel(wheels)) for each in published]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    done = subprocess.run([*pip, "--target", str(site), *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="module")
def with_site(site: Path) -> Callable[..., CommandResult]:
    """Return a function that runs the command in this process with the folder on its path."""

    def run(*argv: str, **settings: str) -> CommandResult:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(site))
            for name, value in {"COLUMNS": "100", **settings}.items():
                patch.setenv(name, value)
            return run_installed(*argv)

    return run


@pytest.fixture(scope="module")
def report(with_site: Callable[..., CommandResult]) -> Any:
    """Return the JSON output of ``plugins check`` by name."""
    result = with_site("plugins", "check", "--json", "--timeout", str(SECONDS))
    assert (result.code, result.err) == (1, "")
    found = json.loads(result.out)
    assert found["ok"] is False
    return {each["name"]: each for each in found["plugins"]}


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.published.name)
def test_each_broken_plugin_is_reported(report: Any, broken: Broken) -> None:
    """The report contains name, version, code and reason, independent of the other plugins."""
    found = report[broken.published.name]

    assert (found["version"], found["code"]) == ("1.0", broken.code)
    assert found["reason"] == broken.reason.replace("{limit:g}", str(SECONDS)).replace("{slow:g}", f"{SLOW:g}")
    assert found["ok"] == (broken.code == "plugin.slow")


def test_valid_plugins_are_usable_beside_them(report: Any) -> None:
    """The report contains their tools and hooks."""
    good, computed = report["acme-good"], report["zeta-good"]

    assert (good["ok"], good["code"], good["tools"], good["hooks"]) == (True, "", ["acme.who"], [])
    assert (computed["ok"], computed["code"], computed["tools"]) == (True, "", ["numbers.one", "numbers.two"])
    assert computed["hooks"] == ["neuroscript_toolsets", "neuroscript_decide", "neuroscript_call_finished"]
    assert report["neuroscript-fs"]["version"] == __version__
    assert len(report) == len({*report} & {each["name"] for each in report.values()}) >= len(BROKEN) + 4


def test_an_engine_starts_beside_them(site: Path, report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The healthy ones work, and it says the same of the others as the check does.

    The plugin that hangs is excluded, because a process cannot stop its own import.
    """
    monkeypatch.syspath_prepend(str(site))
    before = {*sys.modules}
    with Engine(without=["broken-hang"]) as engine:
        worked = [engine.call("acme.who"), engine.call("numbers.one"), engine.call("math.add", (1, 2))]
        errors = {(each.distribution, each.code) for each in engine.plugin_errors}
    for name in {"acme_good_module", "zeta_good_module"} - before:
        del sys.modules[name]

    assert worked == ["good", 1, 3.0]
    assert errors == {
        (f"{name} 1.0", each["code"])
        for name, each in report.items()
        if not each["ok"] and each["code"] != "plugin.timeout"
    }
    assert len(errors) == len(BROKEN) - 2


def test_readable_output_has_one_row_per_plugin(site: Path) -> None:
    """The counts follow. The command runs in a separate process."""
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    chosen = {"NEUROSCRIPT_PLUGINS": "broken-exit,zeta-good", "PYTHONPATH": path}
    result = process("plugins", "check", "acme-good", "Broken_Exit", "zeta-good", **chosen)

    assert (result.code, result.err) == (1, "")
    assert result.out == (
        "broken-exit 1.0  plugin.exit  entry point broken-exit cannot be loaded: SystemExit: 3\n"
        "                              (broken_exit_module.py, line 1)\n"
        "zeta-good 1.0    ok           2 tools, 3 hooks\n\n"
        "2 plugins: 1 usable, 1 unusable\n"
    )


def test_list_imports_nothing(with_site: Callable[..., CommandResult]) -> None:
    """It contains plugins that hang or exit the process too."""
    result = with_site("plugins", "list", "--json")
    found = {each["name"]: each for each in json.loads(result.out)}

    assert (result.code, result.err) == (0, "")
    assert {each.published.name for each in BROKEN} < {*found}
    assert found["zeta-good"] == {
        "name": "zeta-good",
        "version": "1.0",
        "enabled": True,
        "toolsets": [],
        "plugins": ["zeta-good"],
    }


def test_show_prints_one_plugin(with_site: Callable[..., CommandResult], site: Path) -> None:
    """It contains the directory and the entry points."""
    result = with_site("plugins", "show", "Broken.Hang", "-p", "no:broken-hang")

    assert (result.code, result.err) == (0, "")
    expected = f"""\
broken-hang 1.0
  disabled, in {site}/broken_hang-1.0.dist-info

  neuroscript.toolsets  broken-hang  broken_hang_module:toolset
"""
    assert "".join(result.out.split()) == "".join(expected.split())  # a long path is wrapped
    data = json.loads(with_site("plugins", "show", "acme-good", "--json").out)
    assert data["entry_points"] == [
        {"group": "neuroscript.toolsets", "name": "acme", "target": "acme_good_module:toolset"}
    ]


def test_isolated_plugins_are_marked(with_site: Callable[..., CommandResult]) -> None:
    """By distribution or entry point; none of these commands imports them."""
    isolated = ("--isolate-plugins", "acme-good", "--isolate-plugins", "zeta-good")
    found = {each["name"]: each for each in json.loads(with_site("plugins", "list", "--json", *isolated).out)}
    rows = with_site("plugins", "list", *isolated).out.splitlines()
    shown = with_site("plugins", "show", "acme-good", "--isolate-plugins", "acme")

    assert found["acme-good"]["isolated"] == ["acme"]
    assert "isolated" not in found["broken-hang"]
    assert [row.split()[2:4] for row in rows if row.startswith("acme-good")] == [["enabled,", "isolated"]]
    assert shown.out.splitlines()[-1] == (
        "  neuroscript.toolsets  acme  acme_good_module:toolset  isolated: only worker processes import it"
    )


def test_isolated_plugins_are_checked_in_confined_processes(with_site: Callable[..., CommandResult]) -> None:
    """The hooks of such a plugin are not used."""
    chosen = {"NEUROSCRIPT_PLUGINS": "acme-good,broken-exit,zeta-good"}
    result = with_site("plugins", "check", "--isolate-plugins", "*", **chosen)

    assert (result.code, result.err) == (1, "")
    assert result.out == (
        "acme-good 1.0    ok           1 tool; isolated\n"
        "broken-exit 1.0  plugin.exit  entry point broken-exit cannot be loaded: SystemExit: 3\n"
        "                              (broken_exit_module.py, line 1)\n"
        "zeta-good 1.0    ok           2 tools, 3 hooks; isolated, so its hooks are not used\n\n"
        "3 plugins: 2 usable, 1 unusable\n"
    )
    data = json.loads(with_site("plugins", "check", "acme-good", "--json", "--isolate-plugins", "*", **chosen).out)
    assert data["plugins"][0]["isolated"] == ["acme"]


def test_pattern_of_isolation_without_effect_produces_a_warning(with_site: Callable[..., CommandResult]) -> None:
    """It may be misspelt, and then the command imports the code."""
    chosen = {"NEUROSCRIPT_PLUGINS": "acme-good"}

    assert with_site("call", "acme.who", "--isolate-plugins", "acme-*", **chosen) == CommandResult(0, "good\n")
    assert with_site("call", "acme.who", "--isolate-plugins", "acmee", **chosen) == CommandResult(
        0, "good\n", "neuroscript: warning: no available tool matches --isolate-plugins acmee\n"
    )


# Choosing plugins


def names(result: Any) -> set[str]:
    """Return the groups of the listed tools."""
    assert result.code == 0
    return {each["name"].partition(".")[0] for each in json.loads(result.out)}


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
def test_environment_selects_plugins_of_the_command(
    with_site: Callable[..., CommandResult], settings: dict[str, str], groups: set[str]
) -> None:
    """It does not affect applications."""
    assert groups == names(with_site("list", "--json", **settings))


def test_environment_accepts_bundles(with_site: Callable[..., CommandResult]) -> None:
    """An unknown bundle ends the command."""
    found = names(with_site("list", "--json", NEUROSCRIPT_PLUGINS="acme-good, @files"))
    result = with_site("list", NEUROSCRIPT_PLUGINS="@flies")

    assert {"acme", "fs", "math"} <= found
    assert not found & {"numbers", "shell", "http"}
    assert (result.code, result.out) == (2, "")
    assert result.err == "neuroscript: flies: unknown bundle; did you mean files?\n"


def test_engine_ignores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applications decide themselves what they load."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "nothing-at-all")
    monkeypatch.setenv("NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "1")

    with Engine() as engine:
        assert "math.add" in engine.tools
        assert engine.plugin_errors == ()


def test_option_excludes_plugins(with_site: Callable[..., CommandResult]) -> None:
    """It excludes a distribution or an entry point; a name that excludes nothing produces a warning."""
    only = {"NEUROSCRIPT_PLUGINS": "acme-good,neuroscript-fs,zeta-good"}

    assert names(with_site("list", "--json", "-p", "no:acme-good", "-p", "no:fs", **only)) == {"numbers"}
    result = with_site("list", "--json", "-p", "no:acme-god", **only)
    assert result.err == "neuroscript: warning: -p no:acme-god excludes nothing; no plugin has that name\n"
    assert names(result) == {"acme", "fs", "numbers"}


def test_missing_plugin_produces_a_warning(with_site: Callable[..., CommandResult]) -> None:
    """With every command that would load it."""
    for words in (("list",), ("plugins", "list")):
        result = with_site(*words, NEUROSCRIPT_PLUGINS="nowhere")
        assert result.err.startswith("neuroscript: warning: nowhere: is not installed, or offers no toolset\n")
        assert result.code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plugins",), "expected an action: list, show, check, lock, diff (see neuroscript plugins --help)"),
        (
            ("plugins", "show", "neuroscript-sdt"),
            "unknown plugin neuroscript-sdt; did you mean neuroscript-std or neuroscript-fs or neuroscript-git?",
        ),
        (("plugins", "check", "\x1b[2J"), "unknown plugin \\x1b[2J"),
    ],
    ids=str,
)
def test_invalid_arguments_are_a_usage_error(words: tuple[str, ...], message: str) -> None:
    result = command(*words)

    assert (result.code, result.out, result.err) == (2, "", f"neuroscript: {message}\n")


@pytest.mark.parametrize("word", ["0", "-1", "x", "3601", "1e3", ""])
def test_timeout_must_be_an_integer(word: str) -> None:
    """It must be from 1 to 3600."""
    result = command("plugins", "check", f"--timeout={word}")

    assert result.code == 2
    assert "expected an integer from 1 to 3600" in result.err


# Separate processes


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that is the only one on the path besides those of the interpreter and the project."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path


def checked(folder: Path, code: str, limit: float = SECONDS) -> Any:
    """Return the report about a distribution with this code."""
    Published("odd-tools", code).install(folder)
    (report,) = probe_all(distributions([str(folder)]), limit)
    return report


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        ("import os; os._exit(3)", "plugin.exit", "ended its process while loading (exit code 3)"),
        ("import os; os.abort()", "plugin.exit", "ended its process while loading (exit code -6)"),
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
def test_plugin_cannot_affect_the_checking_process(alone: Path, code: str, message: str, reason: str) -> None:
    report = checked(alone, code)

    assert (report.code, report.reason) == (message, reason)
    assert "odd_tools_module" not in sys.modules


def test_processes_of_a_hanging_plugin_are_killed(alone: Path, tmp_path: Path) -> None:
    """The whole process group is killed."""
    alive = tmp_path / "alive"
    child = f"import time\nwhile True:\n    open({str(alive)!r}, 'a').write('.')\n    time.sleep(0.05)"
    code = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(600)\n"

    report = checked(alone, code, 2)

    assert (report.code, report.reason) == ("plugin.timeout", "did not load within 2 seconds")
    assert alive.exists()
    size = alive.stat().st_size
    time.sleep(0.3)
    assert alive.stat().st_size == size
