"""The plugin of pytest, in a process of its own, as an author meets it."""

from __future__ import annotations

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

STARTED = """
import sys
def test_nothing_is_loaded():
    ours = {name for name in sys.modules if name.partition(".")[0] == "neuroscript"}
    assert ours == {"neuroscript", "neuroscript.testing", "neuroscript.testing.plugin"}
    assert "hypothesis" not in sys.modules or "_hypothesis_pytestplugin" in sys.modules
"""


def run(place: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a directory with the plugin."""
    argv = [sys.executable, "-m", "pytest", "-q", *PLUGIN, *args]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, timeout=120, check=False)


def test_the_fixtures_are_there(tmp_path: Path) -> None:
    """An engine over a sandbox, and a Runtime with an empty script."""
    (tmp_path / "test_it.py").write_text(FIXTURES)

    done = run(tmp_path)

    assert "1 passed" in done.stdout, done.stdout


def test_a_plugin_that_is_not_used_loads_nothing_of_the_engine(tmp_path: Path) -> None:
    """The root, the door of the kit, and itself."""
    (tmp_path / "test_it.py").write_text(STARTED)

    done = run(tmp_path)

    assert "1 passed" in done.stdout, done.stdout


def installed(place: Path, name: str) -> None:
    """Lay out a distribution as it is found on a path."""
    (place / "broken_tools.py").write_text(BREAKING)
    info = place / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[neuroscript.toolsets]\nbroken = broken_tools:toolset\n")


def test_the_laws_run_over_an_installed_distribution(tmp_path: Path) -> None:
    """One item for each tool and law; what is wrong stands there in sentences, without a trace."""
    installed(tmp_path, "broken-tools")

    done = run(tmp_path, "--neuroscript-toolset", "broken-tools")

    assert 1 == done.returncode, done.stdout + done.stderr
    assert "FAILED broken-tools::broken.one[described]" in done.stdout, done.stdout
    assert "broken.one breaks the law described:\n  its description is no sentence" in done.stdout
    assert "The law: The description is a sentence." in done.stdout
    assert "Traceback" not in done.stdout


def test_a_distribution_that_is_not_there_is_an_error_of_usage(tmp_path: Path) -> None:
    """The option and the name are in the text."""
    done = run(tmp_path, "--neuroscript-toolset", "nothing-at-all")

    assert 4 == done.returncode
    assert "--neuroscript-toolset: nothing-at-all: is not installed, or offers no toolset" in done.stderr
