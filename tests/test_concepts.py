"""The picture of the page about concepts."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.pipeline_picture import FILE, QUESTIONS, picture, steps


def test_picture_has_the_steps_of_the_contract() -> None:
    """If not, run ``python3 dev.py run tests.pipeline_picture``."""
    assert [*QUESTIONS] == [step.name for step in steps()]
    assert picture() == FILE.read_text(encoding="utf-8")


def test_picture_is_accessible() -> None:
    """It has a title and a description, no text is wider than its box, and both modes have a background of their own."""
    root = ElementTree.fromstring(FILE.read_text(encoding="utf-8"))
    names = {each.get("id"): each.text for each in root if each.get("id")}

    assert [*names] == str(root.get("aria-labelledby")).split()
    assert str(names["desc"]).count("Failure: ") == sum(bool(step.failures) for step in steps())
    assert max(map(len, QUESTIONS.values())) <= 34
    assert str(root[2].text).count(".paper {") == 2
