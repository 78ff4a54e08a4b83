"""Names: one spelling, one way back from the wire, and names spelt alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript.display import escaped, one_line, shown
from neuroscript.foreignnames import LONGEST, word_of
from neuroscript.names import canonical, from_wire, is_word, near, wire_name

words = st.from_regex(r"[a-z](_?[a-z0-9]){0,6}_?", fullmatch=True)


@given(st.lists(words, min_size=2, max_size=4))
def test_a_wire_name_has_one_way_back(parts: list[str]) -> None:
    """Also where a part ends in an underscore."""
    name = ".".join(parts)

    assert all(map(is_word, parts))
    assert name == from_wire(wire_name(name))
    assert name == from_wire(name)


@given(st.text())
def test_a_canonical_name_is_its_own(name: str) -> None:
    """Spelling it again changes nothing."""
    assert canonical(canonical(name)) == canonical(name)


@pytest.mark.parametrize("word", ["", "_a", "1a", "a__b", "a-b", "A", "é", "a b", "a.b"])
def test_what_is_no_word(word: str) -> None:
    """A look-alike of another script is none either."""
    assert not is_word(word)


def test_near_names_come_nearest_first_even_of_many() -> None:
    """A hundred thousand names do not make an error slow."""
    many = [f"group{index}.tool" for index in range(100_000)] + ["math.add"]

    assert near("math.ad", ["math.add", "str.length"]) == ("math.add",)
    assert near("Math.ADDD", many)[0] == "math.add"
    assert near("zzz", ["math.add"]) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 你", "plain é 你"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800", "\\ud800"),
    ],
)
def test_text_from_outside_is_escaped(text: str, expected: str) -> None:
    """No control character, no mark that turns the writing round, no half of a character."""
    assert expected == escaped(text)


def test_a_name_is_cut_before_it_is_shown() -> None:
    """Sixty-four characters say enough."""
    assert shown("x" * 1000) == "x" * 64 + "…"


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        (" two\n lines\u2028here\x07 ", None, "two lines here\\x07"),
        ("four", 4, "four"),
        ("fours", 4, "fou…"),
        ("a\x07b", 5, "a\\x0…"),
        (["no text"], 4, ""),
        (None, None, ""),
    ],
)
def test_text_from_outside_is_one_line(text: object, longest: int | None, expected: str) -> None:
    """It is cut after it is escaped, so that it is never longer than was asked."""
    assert expected == one_line(text, longest)


@given(st.text())
def test_a_name_from_outside_is_a_word_or_nothing(text: str) -> None:
    """And a word of ours is what it was."""
    word = word_of(text)

    assert not word or (is_word(word) and len(word) <= LONGEST)
    assert word == word_of(word)
