"""Each law of the kit catches the one toolset that breaks it, and says so; a good toolset breaks none."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.distributions import ship
from tests.testing import defects, loud, newer, unstable
from tests.testing.defects import QUICK, good

from neuroscript import UNSET, Example, Runtime, SpecError, ToolImplementation, Toolset
from neuroscript.testing import LAWS, LawsBroken, check_toolset, laws_of

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
    "import-quiet": loud.toolset,
    "stable": unstable.toolset,
    "api-version": newer.toolset,
    "index-current": outdated(),
}
"""By the law that each breaks; the last four are imported anew, so each has a module of its own."""

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "testing.md"


def test_a_good_toolset_breaks_no_law() -> None:
    """And every law was asked of it."""
    report = check_toolset(good, QUICK)

    assert report.ok
    assert report.asked == len(LAWS)


def test_there_are_enough_laws_and_a_defect_for_each() -> None:
    """In the order in which they are asked."""
    assert len(LAWS) >= 25
    assert [law.name for law in LAWS] == list(DEFECTS)


@pytest.mark.parametrize(("law", "toolset"), DEFECTS.items(), ids=DEFECTS)
def test_a_defect_breaks_its_law_and_no_other(law: str, toolset: Toolset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of the error names the law, the tool and what the law asks."""
    monkeypatch.chdir(ROOT)  # from where a fresh process finds what the modules share
    monkeypatch.syspath_prepend(str(OUTDATED))
    gc.freeze()  # where a Runtime is held, all garbage is looked for after each call

    with pytest.raises(LawsBroken) as caught:
        check_toolset(toolset, QUICK)

    assert (law,) == caught.value.report.broken, str(caught.value)
    (sentence,) = [each.sentence for each in LAWS if each.name == law]
    assert f": {law}: " in str(caught.value)
    assert f"the law: {sentence}" in str(caught.value)


def test_an_index_that_is_current_breaks_no_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same distribution, with the index that its publisher makes now."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copytree(OUTDATED, tmp_path, dirs_exist_ok=True)
    (law,) = [each for each in laws_of(DEFECTS["index-current"], QUICK) if each.law.name == "index-current"]
    ship(tmp_path)

    assert law.faults() == ()


def test_a_law_can_be_left_out_by_its_name() -> None:
    """And one that there is not is an error, so that no law is left out by a slip of the pen."""
    assert check_toolset(DEFECTS["described"], QUICK, without=["described"]).ok
    with pytest.raises(SpecError) as caught:
        laws_of(good, without=["descrbed"])

    assert "contract checks: unknown check descrbed" == str(caught.value)


def test_the_reference_lists_every_law() -> None:
    """By name and sentence, in the order in which they are asked."""
    section = PAGE.read_text().partition("\n## Contract checks\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", section, re.MULTILINE)

    assert rows == [(law.name, law.sentence) for law in LAWS]


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
    """Return what the law of needs says of a function."""
    toolset = Toolset("acme", (ToolImplementation(defects.spec(), func),))
    (case,) = [case for case in laws_of(toolset, QUICK) if case.law.name == "needs-cover"]
    return [*case.faults()]


def test_what_a_tool_does_in_temporary_files_of_its_own_needs_nothing() -> None:
    """Nobody else looks at them; nor is a pipe, which is open already, a file that is written."""
    assert [] == told_of_needs(shout_by_files)


def test_what_leads_out_of_them_is_told() -> None:
    """By a link from there, by the path itself, or by a directory that is made elsewhere."""
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
def test_a_result_that_an_example_states_is_that_of_every_door(result: object, faults: tuple[str, ...]) -> None:
    """Of a tool that is not pure only its type would be compared, for who knows what decides."""
    examples = (Example(("a",), result), defects.WRONG)
    tool = ToolImplementation(defects.spec(examples=examples), shout_as_awaited, policy=defects.NOTHING)
    (case,) = [case for case in laws_of(Toolset("acme", (tool,)), QUICK) if case.law.name == "doors-agree"]

    assert faults == case.faults()


def letters(rt: Runtime, text: str) -> Iterator[str]:
    with Path("/etc/passwd").open() as file:
        yield from file.read(1) and text


def test_what_a_stream_does_between_its_items_is_seen_too() -> None:
    """Its function has returned by then, and its generator still runs."""
    toolset = Toolset("acme", (ToolImplementation(defects.spec(examples=(Example(("a",)),), stream=True), letters),))
    faults = [case.faults() for case in laws_of(toolset, QUICK) if case.law.name == "needs-cover"]

    assert [("it causes the event open, but does not declare the capability fs:read",)] == faults
