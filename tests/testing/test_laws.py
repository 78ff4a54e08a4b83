"""Each law of the kit catches the one toolset that breaks it, and says so; a good toolset breaks none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.testing import defects, loud, newer, unstable
from tests.testing.defects import QUICK, good

from neuroscript import Example, Runtime, SpecError, ToolImplementation, Toolset
from neuroscript.testing import LAWS, LawsBroken, check_toolset, laws_of

DEFECTS = {
    **defects.DEFECTS,
    "import-quiet": loud.toolset,
    "stable": unstable.toolset,
    "api-version": newer.toolset,
}
"""By the law that each breaks; the last three are imported anew, so each has a module of its own."""

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "testing.md"


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
def test_a_defect_breaks_its_law_and_no_other(law: str, toolset: Toolset) -> None:
    """The text of the error names the law, the tool and what the law asks."""
    with pytest.raises(LawsBroken) as caught:
        check_toolset(toolset, QUICK)

    assert (law,) == caught.value.report.broken, str(caught.value)
    (sentence,) = [each.sentence for each in LAWS if each.name == law]
    assert f": {law}: " in str(caught.value)
    assert f"the law: {sentence}" in str(caught.value)


def test_a_law_can_be_left_out_by_its_name() -> None:
    """And one that there is not is an error, so that no law is left out by a slip of the pen."""
    assert check_toolset(DEFECTS["described"], QUICK, without=["described"]).ok
    with pytest.raises(SpecError) as caught:
        laws_of(good, without=["descrbed"])

    assert "laws: there is no law called descrbed" == str(caught.value)


def test_the_reference_lists_every_law() -> None:
    """By name and sentence, in the order in which they are asked."""
    section = PAGE.read_text().partition("\n## Laws\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", section, re.MULTILINE)

    assert rows == [(law.name, law.sentence) for law in LAWS]


def letters(rt: Runtime, text: str) -> Iterator[str]:
    with Path("/etc/passwd").open() as file:
        yield from file.read(1) and text


def test_what_a_stream_does_between_its_items_is_seen_too() -> None:
    """Its function has returned by then, and its generator still runs."""
    toolset = Toolset("acme", (ToolImplementation(defects.spec(examples=(Example(("a",)),), stream=True), letters),))
    faults = [case.faults() for case in laws_of(toolset, QUICK) if case.law.name == "needs-cover"]

    assert [("it does open, and declares no need of fs:read",)] == faults
