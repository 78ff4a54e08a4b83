"""The comparison with other frameworks: the pages contain the stored results, and the probes observe them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "docs" / "comparison"
WHY = ROOT / "docs" / "explanation" / "why-neuroscript.md"


def script(name: str) -> ModuleType:
    """Return a module of the comparison."""
    spec = importlib.util.spec_from_file_location(f"comparison_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run = script("run")
RESULTS = json.loads(run.RESULTS.read_text())


@pytest.mark.parametrize("page", run.PAGES, ids=lambda page: page.name)
def test_page_has_the_stored_table(page: Path) -> None:
    """Nothing in it is written by hand."""
    block = page.read_text().partition(run.BEGIN)[2].partition(run.END)[0]

    assert block.strip().splitlines() == run.table(RESULTS)


def test_table_has_eight_rows_and_the_pinned_versions() -> None:
    """The versions are those that the scripts install, and that the other tests use."""
    constraints = [line for path in run.CONSTRAINTS for line in path.read_text().splitlines()]
    pinned = {name: each.rpartition("==")[2] for name, each in run.FRAMEWORKS.items() if "==" in each}
    head = run.table(RESULTS)[0]

    assert len(RESULTS["rows"]) == 8
    assert {name: RESULTS["versions"][name] for name in pinned} == pinned
    assert all(f"{name} {version}" in head for name, version in pinned.items())
    assert {each for each in run.FRAMEWORKS.values() if "==" in each} <= {*constraints}


def test_changed_cell_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """``--check`` exits with 1 and names the row."""
    changed = json.loads(json.dumps(RESULTS))
    changed["rows"]["Its MCP server offers"]["llm"] = "tools"

    assert run.report_differences(RESULTS) == 0
    assert run.report_differences(changed) == 1
    assert capsys.readouterr().err == (
        "differs from results.json: | Its MCP server offers | tools, resources, prompts | tools, resources, prompts | no |"
        " tools | no |\n"
    )


def test_page_counts_the_mistakes_of_models() -> None:
    """The table is what the script prints."""
    extract = script("extract")
    data = json.loads(extract.OUTPUT.read_text())

    assert "\n".join(extract.table_of_mistakes(data["calls"])) in WHY.read_text()


@pytest.mark.slow
def test_probe_observes_the_stored_cells_of_neuroscript() -> None:
    """A change of neuroscript that changes a cell is noticed without the other frameworks."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "probe.py"), "neuroscript"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {row: cells["neuroscript"] for row, cells in RESULTS["rows"].items()}


if os.environ.get("NEUROSCRIPT_TEST_ALL"):  # not a skip, because it needs a package index and several minutes

    @pytest.mark.slow
    def test_environments_of_their_own_observe_the_stored_cells(tmp_path: Path) -> None:
        """The whole comparison, as its page says."""
        done = subprocess.run(
            [sys.executable, str(SCRIPTS / "run.py"), "--check", "--environments", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == run.table(RESULTS)
