"""Names: one canonical spelling, one way back from the wire, and at most so many characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import SpecError, ToolSpec
from neuroscript.io.text import escape, one_line, quote_untrusted
from neuroscript.names import (
    MAX_NAME_CHARS,
    MAX_SPELLING_CHARS,
    MAX_WORD_CHARS,
    canonical,
    from_wire,
    is_full_name,
    is_word,
    to_snake_case,
    wire_name,
)

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
    assert expected == escape(text)


def test_a_name_is_cut_before_it_is_shown() -> None:
    """Sixty-four characters say enough."""
    assert quote_untrusted("x" * 1000) == "x" * 64 + "…"


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
    word = to_snake_case(text)

    assert not word or (is_word(word) and len(word) <= MAX_WORD_CHARS)
    assert word == to_snake_case(word)


LONG = MAX_SPELLING_CHARS + 1


@pytest.mark.parametrize(
    "name", ["tool." * 1_000, "a.b." * 1_000, "__a" * 1_000, "A" * LONG, "tool." * 300 + "math.add"]
)
def test_a_name_that_is_too_long_is_not_read(name: str) -> None:
    """It is not the name of a tool in any spelling, so it is unchanged."""
    assert canonical(name) == from_wire(name) == name
    assert not is_full_name(name)


def test_every_spelling_of_the_longest_name_is_read() -> None:
    """With doubled dots, in capitals, behind ``tool.``"""
    name = "a.b" * (MAX_NAME_CHARS // 4) + "c" * (MAX_NAME_CHARS // 4)

    assert len(name) == MAX_NAME_CHARS
    assert name == canonical(f"Tool.tool.{name.upper()}") == from_wire(f"tool__{wire_name(name)}") == from_wire(name)


def test_a_spec_has_a_name_of_limited_length() -> None:
    """The limit counts the group too."""
    ToolSpec("c" * 2, "b" * (MAX_NAME_CHARS - 3))
    with pytest.raises(SpecError) as caught:
        ToolSpec("c" * 3, "b" * (MAX_NAME_CHARS - 3))

    assert caught.value.problems == ("a name, with its group, has at most 512 characters",)
