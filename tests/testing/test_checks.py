"""Contract checks: a good toolset passes all of them, and each defective toolset fails exactly one."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ALL
from tests.distributions import ship
from tests.testing import defects, loud, newer, unstable
from tests.testing.defects import QUICK, good

from neuroscript import UNSET, Example, Runtime, SpecError, ToolImplementation, ToolPolicy, Toolset
from neuroscript.testing import CHECKS, ChecksFailed, check_toolset, checks_for
from neuroscript.tools.fingerprints import fingerprint

OUTDATED = Path(__file__).with_name("outdated")
"""A folder with an installed distribution, whose index is of what it was."""


def outdated() -> Toolset:
    """Return the toolset of the distribution there."""
    sys.path.insert(0, str(OUTDATED))
    try:
        toolset: Toolset = import_module("acme_outdated").toolset
    finally:
        sys.path.remove(str(OUTDATED))
    return toolset


DEFECTS = {
    **defects.DEFECTS,
    "import-without-effects": loud.toolset,
    "stable": unstable.toolset,
    "api-version": newer.toolset,
    "index-current": outdated(),
}
"""By the check that each fails; the last four are imported again, so each has its own module."""

IMPORTS = ("import-without-effects", "stable")
"""The checks that import the module of a toolset in a new process; one process is enough for those of one module."""

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "testing.md"


def test_good_toolset_passes_every_check() -> None:
    """Every check runs for every tool."""
    report = check_toolset(good, QUICK)

    assert report.ok
    assert report.check_count == len(CHECKS)


def test_every_check_has_a_defective_toolset() -> None:
    """The toolsets are in the order of the checks."""
    assert len(CHECKS) >= 25
    assert [check.name for check in CHECKS] == list(DEFECTS)


@pytest.mark.slow
@pytest.mark.parametrize(("check", "toolset"), DEFECTS.items(), ids=DEFECTS)
def test_defect_fails_exactly_one_check(check: str, toolset: Toolset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the check, the tool and the rule."""
    monkeypatch.chdir(ROOT)  # from where a fresh process finds what the modules share
    monkeypatch.syspath_prepend(str(OUTDATED))
    gc.freeze()  # where a Runtime is held, all garbage is looked for after each call

    with pytest.raises(ChecksFailed) as caught:
        check_toolset(toolset, QUICK, without=() if ALL or check not in defects.DEFECTS else IMPORTS)

    assert (check,) == caught.value.report.failed_checks, str(caught.value)
    (sentence,) = [each.sentence for each in CHECKS if each.name == check]
    assert f": {check}: " in str(caught.value)
    assert f"rule: {sentence}" in str(caught.value)


INSPECTED = """
import json, sys
from neuroscript.testing.checks.child_process import inspect_module
print(json.dumps([inspect_module(*sys.argv[1:3], name) for name in sys.argv[3:]]))
"""


def test_defects_of_one_module_pass_the_checks_that_import_it() -> None:
    """Its import has no side effects, and each of its toolsets has the same definition in another process."""
    toolsets = {name: value for name, value in vars(defects).items() if isinstance(value, Toolset)}
    words = [sys.executable, "-c", INSPECTED, defects.__name__, defects.__file__, *toolsets]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}

    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    assert len(toolsets) >= len(defects.DEFECTS) - 1  # one has no name in the module
    assert json.loads(done.stdout) == [
        {"events": [], "tools": {tool.name: fingerprint(tool) for tool in toolset}} for toolset in toolsets.values()
    ]


def test_current_index_passes_every_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same distribution passes with an index that is rebuilt."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copytree(OUTDATED, tmp_path, dirs_exist_ok=True)
    (check,) = [
        each for each in checks_for(DEFECTS["index-current"], QUICK) if each.contract_check.name == "index-current"
    ]
    ship(tmp_path)

    assert check.faults() == ()


def test_check_can_be_skipped_by_name() -> None:
    """An unknown name is an error, so that a typo skips no check."""
    assert check_toolset(DEFECTS["described"], QUICK, without=["described"]).ok
    with pytest.raises(SpecError) as caught:
        checks_for(good, without=["descrbed"])

    assert "contract checks: unknown check descrbed" == str(caught.value)


def test_reference_lists_every_check() -> None:
    """By name and rule, in the order in which the checks run."""
    section = PAGE.read_text().partition("\n## Contract checks\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", section, re.MULTILINE)

    assert rows == [(check.name, check.sentence) for check in CHECKS]


def shout_by_files(rt: Runtime, text: str) -> str:
    reading, writing = os.pipe()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as nameless,
        os.fdopen(writing, "wb") as pipe,
    ):
        made = Path(folder) / "a.txt"
        made.write_text(text.upper())
        made.with_name("b.txt").symlink_to(made)
        made.with_name("empty").mkdir()
        made.with_name("empty").rmdir()
        made.rename(made.with_name("c.txt"))
        nameless.write(made.with_name("c.txt").read_bytes())
        nameless.seek(0)
        pipe.write(b"over")
    os.close(reading)
    return made.name and text.upper()


def shout_out_of_scratch(rt: Runtime, text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "out").symlink_to(rt.sandbox_dir)
        (Path(folder) / "out" / "a.txt").write_text(text)
        tempfile.mkdtemp(dir=rt.sandbox_dir)
        (Path(rt.sandbox_dir) / "a.txt").unlink()
    return text.upper()


def told_of_needs(func: Callable[..., str]) -> list[str]:
    """Return what the check of needs reports for a function."""
    toolset = Toolset("acme", (ToolImplementation(defects.spec(), func),))
    (case,) = [case for case in checks_for(toolset, QUICK) if case.contract_check.name == "capabilities-complete"]
    return [*case.faults()]


def test_own_temporary_files_need_no_capability() -> None:
    """No other process uses them. A pipe that is already open counts as no file either."""
    assert [] == told_of_needs(shout_by_files)


def test_path_out_of_temporary_directory_is_reported() -> None:
    """By a link, by the path itself, or by a directory created elsewhere."""
    assert [
        "it causes the event open, but does not declare the capability fs:write",
        "it causes the event os.mkdir, but does not declare the capability fs:write",
        "it causes the event os.remove, but does not declare the capability fs:delete",
    ] == told_of_needs(shout_out_of_scratch)


async def shout_as_awaited(rt: Runtime, text: str) -> str:
    return text.lower() if threading.current_thread() is threading.main_thread() else text.upper()


@pytest.mark.parametrize(
    ("result", "faults"),
    [("A", ("example 1 behaves differently through acall than through call",)), (UNSET, ())],
    ids=["stated", "open"],
)
def test_declared_result_is_compared_for_every_entry_point(result: object, faults: tuple[str, ...]) -> None:
    """Without a declared result, only the types are compared unless the tool is pure."""
    examples = (Example(("a",), result), defects.WRONG)
    tool = ToolImplementation(defects.spec(examples=examples), shout_as_awaited, policy=defects.NOTHING)
    (case,) = [
        case for case in checks_for(Toolset("acme", (tool,)), QUICK) if case.contract_check.name == "entry-points-agree"
    ]

    assert faults == case.faults()


def shout_by_sandbox(rt: Runtime, text: str) -> str:
    rt.fs.write_text("a.txt", text.upper())
    return rt.fs.read_text("a.txt")


NO_SINK = "it uses rt.fs.write_text, but its sinks do not include storage"
NO_SOURCE = "it uses rt.fs.read_text, but its sources do not include private"


@pytest.mark.parametrize(
    ("labels", "faults"),
    [
        ({}, ()),
        ({"sources": ("private:notes",), "sinks": ("storage:notes",)}, ()),
        ({"sources": (), "declassifies": ("private",), "sinks": ("storage",)}, ()),
        ({"sources": ("untrusted",), "sinks": ("people",)}, (NO_SOURCE, NO_SINK)),
        ({"sources": ()}, (NO_SOURCE,)),
        ({"sinks": ()}, (NO_SINK,)),
    ],
)
def test_labels_are_compared_with_uses_of_files(labels: dict[str, Any], faults: tuple[str, ...]) -> None:
    """Undeclared labels follow from the effects, which other checks compare."""
    policy = ToolPolicy(effects=("reads", "writes"), capabilities=("fs:read,write:a.txt",), **labels)
    toolset = Toolset("acme", (ToolImplementation(defects.spec(), shout_by_sandbox, policy),))
    (case,) = [case for case in checks_for(toolset, QUICK) if case.contract_check.name == "labels-declared"]

    assert faults == case.faults()


def letters(rt: Runtime, text: str) -> Iterator[str]:
    with Path("/etc/passwd").open() as file:
        yield from file.read(1) and text


def test_side_effects_between_stream_items_are_observed() -> None:
    """The function has returned by then, but its generator still runs."""
    toolset = Toolset("acme", (ToolImplementation(defects.spec(examples=(Example(("a",)),), stream=True), letters),))
    faults = [
        case.faults() for case in checks_for(toolset, QUICK) if case.contract_check.name == "capabilities-complete"
    ]

    assert [("it causes the event open, but does not declare the capability fs:read",)] == faults
