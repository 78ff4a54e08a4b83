"""Search for many forms at once: the same spans as a naive search, in linear time."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as some
from tests.work import calls_in

from neuroscript.runtime.secret_forms import Form, forms_of
from neuroscript.runtime.secret_search import COMPARED_CHARS, LONG_RUN_CHARS, MAX_COMPARISONS_PER_CHAR, FormFinder


def covered(text: str, forms: list[str]) -> list[bool]:
    """Return for each character whether it belongs to an occurrence of a form, by trying every position."""
    hidden = [False] * len(text)
    for form in forms:
        for start in range(len(text) - len(form) + 1):
            if text.startswith(form, start):
                hidden[start : start + len(form)] = [True] * len(form)
    return hidden


def found(text: str, forms: list[str]) -> list[bool]:
    """Return the same, using the finder."""
    hidden = [False] * len(text)
    for start, end in FormFinder(map(Form, forms)).spans(text):
        hidden[start:end] = [True] * (end - start)
    return hidden


PIECES = some.tuples(some.text("ab", min_size=1, max_size=5), some.integers(1, 60)).map(lambda each: each[0] * each[1])
"""A few characters, repeated: strings that are hard to search."""
REPETITIVE = some.lists(PIECES, min_size=1, max_size=4).map("".join)


@given(text=REPETITIVE, forms=some.lists(REPETITIVE.filter(lambda each: len(each) >= 6), min_size=1, max_size=6))
@example(text="a" * 200 + "b", forms=["a" * 40 + "b", "aaaaaab", "a" * 150])
@example(text="ab" * 100 + "ac" + "ab" * 50, forms=["ab" * 40 + "ac", "bababab", "abacab"])
@example(text="abcdefghijklmnop" * 20, forms=["abcdefghijklmnop" * 3, "cdefgh"])
def test_finder_agrees_with_a_search_at_every_position(text: str, forms: list[str]) -> None:
    """Overlapping forms, forms that begin others, and forms that repeat themselves."""
    assert found(text, forms) == covered(text, forms)


def test_finder_agrees_on_random_strings_of_few_letters() -> None:
    """Long strings, so repetitive parts end in every way."""
    chance = random.Random(7)
    for _ in range(300):
        unit = "".join(chance.choices("abc", k=chance.randint(1, 20)))
        noise = "".join(chance.choices("ab", k=chance.randint(0, 12)))
        text = unit * chance.randint(1, 40) + noise + unit * chance.randint(1, 40)
        starts = [chance.randrange(len(text)) for _ in range(8)]
        forms = [text[start : start + chance.randint(6, 3 * LONG_RUN_CHARS)] for start in starts]
        forms = [each for each in forms if len(each) >= 6] + [f"{each}c" for each in forms if len(each) >= 6]
        if forms:
            assert found(text, forms) == covered(text, forms)


@pytest.mark.parametrize(
    ("forms", "unit"),
    [
        (["aaaaaa"], "a"),
        (["aaaaaab"], "a"),
        (["a" * 1000 + "b"], "a"),
        (["a" * 1000], "a"),
        (["ab" * 500 + "c"], "ab"),
        (["abcdefghijklmnopqrstuvwxyz" * 40 + "!"], "abcdefghijklmnopqrstuvwxyz"),
        ([f"{'a' * 40}{number:03}" for number in range(500)], "a"),
        (
            [f"{'abcdefghijklmnopqrstuvwxyz012345'}{number:03}" for number in range(500)],
            "abcdefghijklmnopqrstuvwxyz012345",
        ),
        (["482913"], "0"),
        ([form.text for form in forms_of("correct-horse-42!")], "correct-horse-42"),
    ],
    ids=["letter", "prefix", "long prefix", "long letter", "two", "alphabet", "same run", "same head", "pin", "near"],
)
def test_search_is_linear(forms: list[str], unit: str) -> None:
    """Twice the input takes at most about twice the calls, for any secrets."""
    finder = FormFinder(map(Form, forms))
    count = 6_000 // len(unit)
    once, twice = unit * count, unit * count * 2
    list(finder.spans(once))

    small, large = (calls_in(lambda: list(finder.spans(text)), ignored=()) for text in (once, twice))

    assert large < 2.2 * small + 1_000
    assert large < 6 * MAX_COMPARISONS_PER_CHAR * (len(twice) + COMPARED_CHARS)


@pytest.mark.parametrize("letter", ["a", "0", " "])
def test_one_mebibyte_of_one_letter_needs_few_steps(letter: str) -> None:
    """It is searched as one run, not at each of its million positions."""
    finder = FormFinder(map(Form, [letter * 6, letter * 40 + "!", letter * 5000]))

    assert calls_in(lambda: list(finder.spans(letter * 2**20)), ignored=()) < 2_000


def test_input_that_stalls_the_search_is_hidden_from_there_on() -> None:
    """A caller that supplies both secrets and input cannot block the process."""
    head = "abcdefghijklmnopqrstuvwxyz012345"
    forms = [Form(f"{head}{number:04}") for number in range(3_000)]
    text = f"{head}-" * 10_000

    last = max(FormFinder(forms).spans(text))

    assert last[1] == len(text)
