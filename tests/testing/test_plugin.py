"""The pytest plugin, in a separate process, as authors use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PLUGIN = ("-p", "neuroscript.testing.plugin", "-p", "no:cacheprovider")

FIXTURES = """
def test_fixtures(engine, runtime, sandbox):
    (sandbox / "a.txt").write_text("x")
    assert engine.host.directory() == str(sandbox)
    assert runtime.lines == []
"""

BREAKING = """
from neuroscript import ArgSpec, ArgType, ToolPolicy, Toolset, ToolSpec

toolset = Toolset("broken")
toolset.add(ToolSpec("one", "broken", return_type=ArgType.INT), lambda rt: 1, ToolPolicy(effects=("pure",)))
"""

KEEPING = """
from neuroscript import ArgSpec, ArgType, Example, ToolPolicy, Toolset, ToolSpec, hookimpl

def made(group):
    toolset = Toolset(group)
    spec = ToolSpec(
        "double", group, (ArgSpec("text", ArgType.STRING, description="It."),), return_type=ArgType.STRING,
        description=f"Say something twice, in {group}.", when_to_use=f"For emphasis in {group}.", return_help="The text.",
        examples=(Example(("a",), "aa"), Example((5,), error="coercion.type")),
    )
    toolset.add(spec, lambda rt, text: text * 2, ToolPolicy(effects=("pure",)))
    return toolset

toolset = made("acme")

@hookimpl
def neuroscript_toolsets():
    return [made("acme2")]
"""

STARTED = """
import sys
def test_nothing_is_loaded():
    ours = {name for name in sys.modules if name.partition(".")[0] == "neuroscript"}
    assert ours == {"neuroscript", "neuroscript._imports", "neuroscript.testing", "neuroscript.testing.plugin"}
    assert "hypothesis" not in sys.modules or "_hypothesis_pytestplugin" in sys.modules
"""


def run(place: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a directory with the plugin, and without the installed plugins of others."""
    argv = [sys.executable, "-m", "pytest", "-q", *PLUGIN, *args]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_fixtures_are_available(tmp_path: Path) -> None:
    """An engine over a sandbox, and a Runtime with an empty script.

    Before they are used, only the root package, the package of the kit and the plugin itself are imported.
    """
    (tmp_path / "test_it.py").write_text(STARTED + FIXTURES)

    done = run(tmp_path)

    assert "2 passed" in done.stdout, done.stdout


def installed(place: Path, name: str, text: str = BREAKING, more: str = "") -> None:
    """Lay out a distribution as it is found on a path."""
    (place / "broken_tools.py").write_text(text)
    info = place / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[neuroscript.toolsets]\nbroken = broken_tools:toolset\n{more}")


def test_checks_run_on_installed_distribution(tmp_path: Path) -> None:
    """There is one item for each tool and check; failures are sentences without a traceback."""
    installed(tmp_path, "broken-tools")

    done = run(tmp_path, "--neuroscript-toolset", "broken-tools")

    assert 1 == done.returncode, done.stdout + done.stderr
    assert "FAILED broken-tools::broken.one[described]" in done.stdout, done.stdout
    assert "broken.one fails the contract check described:\n  its description is not a sentence" in done.stdout
    assert "Rule: The description is a sentence." in done.stdout
    assert "Traceback" not in done.stdout


def test_sound_distribution_passes_with_toolset_and_hook(tmp_path: Path) -> None:
    """Toolsets from an entry point and from a hook have the same definition in a new process."""
    installed(tmp_path, "sound-tools", KEEPING, "[neuroscript.plugins]\nsound = broken_tools\n")

    done = run(tmp_path, "--neuroscript-toolset", "sound-tools", "-rA")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert {"acme.double", "acme2.double"} == set(re.findall(r"PASSED sound-tools::(\S+)\[described\]", done.stdout))
    assert "PASSED sound-tools::sound-tools[importable]" in done.stdout


def test_unknown_distribution_is_usage_error(tmp_path: Path) -> None:
    """The message contains the option and the name."""
    done = run(tmp_path, "--neuroscript-toolset", "nothing-at-all")

    assert 4 == done.returncode
    assert "--neuroscript-toolset: nothing-at-all: is not installed, or offers no toolset" in done.stderr
