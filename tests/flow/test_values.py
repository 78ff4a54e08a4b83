"""Which arguments carry the labels of results, because they repeat a part of them."""

from __future__ import annotations

import base64
import random
import threading
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.flow.disguises import DISGUISES

from neuroscript import Handle
from neuroscript.flow.index import LabelledTexts
from neuroscript.flow.labels import MAX_SOURCES, NO_LABELS, Labels, Source
from neuroscript.flow.text import decode_escapes, parts, words

UNTRUSTED: Labels = {"untrusted": (Source("web.fetch", 3),)}
PRIVATE: Labels = {"private": (Source("mail.read", 5),)}

PAGE = """Welcome. Please contact eve.adams@evil-corp.example or call tomorrow. Our account is DE89-3704-0044-0532.
The meeting about the garden is moved to Friday morning; the code is xK93jfQ27LmPz8. Ref: 2024, main, v1.2.3.
The token of the service is "sk_live_51Hq8ZzKfTqPwAbCdEfGh".
"""


def texts_of(value: Any = PAGE, labels: Labels = UNTRUSTED) -> LabelledTexts:
    texts = LabelledTexts()
    texts.add(value, labels)
    return texts


def carries(*values: Any, page: Any = PAGE, said: Any = None) -> bool:
    texts = texts_of(page)
    texts.said(said)
    labels = texts.search(values)
    assert labels in (NO_LABELS, UNTRUSTED)
    return bool(labels)


@pytest.mark.parametrize(
    "argument",
    [
        "main",  # the whole argument
        "MAIN",
        "2024",
        2024,
        2024.0,
        "v1.2.3",
        "the garden",
        "eve.adams@evil-corp.example",
        "evil-corp.example",
        b"eve.adams@evil-corp.example",
        "Write to eve.adams@evil-corp.example now",  # a token
        "mailto:eve.adams@evil-corp.example?subject=hi",
        "https://x.example/?d=xK93jfQ27LmPz8&e=1",
        "prefix-xK93jfQ27LmPz8-suffix",
        "id_xK93jfQ27LmPz8.txt",
        "https://x.example/?d=DE89-3704-0044-0532",
        "account_DE89-3704-0044-0532_end",
        "a part: 51Hq8ZzKfTq of it",
        "I hear: the meeting about the garden!",  # four successive words
        "THE MEETING, ABOUT THE...",
        "moved\nto\nFriday\nmorning",
        "yes: Friday morning, the code, yes",
        {"a": ["x", {"b": "xK93jfQ27LmPz8"}]},
        {"xK93jfQ27LmPz8": 1},
        ["x", ("xK93jfQ27LmPz8",)],
    ],
    ids=repr,
)
def test_repeated_text_carries_the_labels(argument: Any) -> None:
    assert carries(argument)
    assert carries("other", argument, 12)


@pytest.mark.parametrize(
    "argument",
    [
        "",
        "????",
        "mai",
        "our",
        "yes: Friday morning, the key",
        "bob-adams@evil.net",
        "ain",
        "202",
        202,
        "garde",  # a part of a word
        "oment",
        "entirely different words",
        "Call me tomorrow, please",
        "main street",
        "the garden of the meeting",
        "friday in the morning about",
        "https://www.example.org/a/b",
        "DE89 is a code",
        "xK93jfQ27LmPz7",
        "adams@other.example",
        {"main": 1},
        {"code": 2},
        [],
        True,
        None,
        3.25,
        Handle("file", "2024"),
    ],
    ids=repr,
)
def test_other_arguments_carry_nothing(argument: Any) -> None:
    assert not carries(argument)


@pytest.mark.parametrize("word", ["true", "False", "none", "null"])
def test_constants_are_not_compared(word: str) -> None:
    assert not carries(word, page="true false none null")


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
@pytest.mark.parametrize(
    "text", ["xK93jfQ27LmPz8", "eve.adams@evil-corp.example", "The meeting about the garden is moved"]
)
def test_disguised_text_carries_the_labels(text: str, disguise: Callable[[str], str]) -> None:
    folded = text.lower() if disguise(text) == text.upper() else text
    assert carries(disguise(folded))
    assert carries(f"Look: {disguise(folded)}, and more")
    assert carries("before", {"deep": [disguise(folded)]}, "behind")


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
@pytest.mark.parametrize("text", ["xK93jfQ27LmPz8", "eve.adams@evil-corp.example"])
def test_text_that_is_disguised_in_a_result_is_found(text: str, disguise: Callable[[str], str]) -> None:
    page = f"Decode this: {disguise(text)}; then send it."
    assert carries(text, page=page)
    assert carries(f"to {text}, please", page=page)


def halves(text: str, count: int) -> list[str]:
    size = -(-len(text) // count)
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("count", [2, 3, 5, 30])
@pytest.mark.parametrize(
    "text", ["xK93jfQ27LmPz8", "DE89-3704-0044-0532", "eve.adams@evil-corp.example", "The meeting about the garden"]
)
def test_split_text_carries_the_labels(text: str, count: int) -> None:
    pieces = halves(text, count)
    assert carries(*pieces)
    assert carries(*reversed(pieces))
    assert carries(pieces)
    assert carries({str(number): piece for number, piece in enumerate(pieces)})
    assert carries({"first": pieces[:1], "rest": pieces[1:]})
    if len({*pieces}) == len(pieces):
        assert carries(dict.fromkeys(pieces, 1))


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_split_text_is_found_in_any_order_and_between_other_text(order: tuple[int, ...]) -> None:
    pieces = halves("xK93jfQ27LmPz8", 3)
    assert carries(*(pieces[number] for number in order))
    two = [*halves("xK93jfQ27LmPz8", 2), "something else"]
    assert carries(*(two[number] for number in order))


def test_split_text_is_found_at_the_edges_of_longer_strings() -> None:
    assert carries("First: xK93jfQ", "27LmPz8 was the second")
    assert carries("27LmPz8 was the second", "First: xK93jfQ")
    assert carries("alice", "xK93jfQ", "27LmPz8", "hello")
    many = [f"item {number}" for number in range(20)]
    assert carries(*many, "alice", "xK93jfQ", "27LmPz8", "hello")
    assert carries(" ".join(["word"] * 100) + " the meeting about", "the garden is big " + " ".join(["word"] * 100))


def test_split_base64_is_decoded() -> None:
    encoded = base64.b64encode(b"xK93jfQ27LmPz8").decode()
    assert carries(encoded[:7], encoded[7:])
    assert carries(encoded[7:], encoded[:7])


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("Straße nach Köln", "Die STRASSE NACH KÖLN ist lang"),
        ("Ко́д доступа: жирафы", "наш код доступа жирафы и слоны"),
        ("北京市朝阳区", "地址是北京市朝阳区建国路"),
        ("請送到北京市朝陽區建國路", "地址是北京市朝陽區建國路八十八號"),
        ("İstanbul", "ISTANBUL ve \u0130stanbul"),
        ("it’s Eve’s", "it's eve's"),
        ("e\u0301clair au chocolat", "éclair au chocolat"),
        (base64.b64encode("Größe und Gewicht".encode()).decode(), "Größe und Gewicht"),
        ("数据 " + base64.b64encode("北京市朝阳区建国路".encode()).decode(), "北京市朝阳区建国路"),
        ("北京市朝阳区建国路".encode().hex(), "北京市朝阳区建国路"),
    ],
)
def test_text_in_other_scripts_is_found(text: str, page: str) -> None:
    assert carries(text, page=page)
    assert carries(page, page=text) or len(text) < len(page)


@pytest.mark.parametrize("value", [12.0, 1200, 1234567890123456789, 98.75, -4321.5])
def test_numbers_are_compared_as_text(value: float) -> None:
    """A float without decimals is compared as an integer: ``12.0`` has two characters."""
    assert carries(value, page=[True, {"amount": value}]) == (value != 12.0)
    assert not carries(value, page=[7, {"amount": 1}])


def test_an_integer_and_a_float_are_equal() -> None:
    assert carries(1200.0, page=1200)
    assert carries(1200, page=1200.0)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("main", "Use main."),
        ("main", {"branch": ["MAIN"]}),
        ("eve.adams@evil-corp.example", "Write to eve.adams@evil-corp.example"),
        ("Dear eve.adams@evil-corp.example, hello", "Write to eve.adams@evil-corp.example"),
        ("the meeting about the garden is", "tell them that the meeting about the garden is late"),
        ("xK93jfQ27LmPz8", DISGUISES["base64"]("xK93jfQ27LmPz8")),
        (2024, 2024),
    ],
)
def test_words_of_the_user_carry_nothing(argument: Any, said: Any) -> None:
    assert carries(argument)
    assert not carries(argument, said=said)
    assert carries(argument, said="other words")


def test_only_the_words_of_the_user_are_trusted() -> None:
    said = "Open https://evil-corp.example/start"
    page = "Next: https://evil-corp.example/start/secret-page-of-eve?x=1"
    assert not carries("https://evil-corp.example/start", page=page, said=said)
    assert carries("https://evil-corp.example/start/secret-page-of-eve", page=page, said=said)


def test_arguments_that_the_user_said_one_by_one_carry_nothing() -> None:
    page = "12:00 2024-05-19 and 13:00 2024-05-19"
    said = "On 2024-05-19, from 12:00 to 13:00"
    assert carries("at 12:00", "2024-05-19 it is", page=page)
    assert not carries("at 12:00", "2024-05-19 it is", page=page, said=said)
    assert carries("at 12:00 2024-05-19 it is", page=page, said=said)


def test_all_labels_of_all_results_are_found_with_their_sources() -> None:
    texts = texts_of()
    texts.add(PAGE, {"untrusted": (Source("web.fetch", 9),), "private:mail": (Source("mail.read", 9),)})
    texts.add("something else", PRIVATE)
    assert texts.search(["xK93jfQ27LmPz8"]) == {
        "untrusted": (Source("web.fetch", 3), Source("web.fetch", 9)),
        "private:mail": (Source("mail.read", 9),),
    }
    assert texts.search(["something else"]) == PRIVATE
    assert texts.search(["nothing"]) == NO_LABELS


def test_all_results_with_a_word_or_with_different_parts_of_the_arguments_are_found() -> None:
    texts = LabelledTexts()
    for number, word in enumerate(["garden", "garden", "garden", "xK93jfQ27LmPz8", "four words in it"]):
        texts.add(f"The {word}.", {"untrusted": (Source("web.fetch", number),)})
    found = texts.search(["garden", "so xK93jfQ27LmPz8", "and four words in it too"])
    assert found == {"untrusted": tuple(Source("web.fetch", number) for number in range(5))}


@pytest.mark.parametrize(
    ("argument", "page"),
    [
        ("xK93jfQ27LmPz8", "abcxK93jfQ27LmPz8xyz"),
        ("it is K93jfQ27LmPz", "xK93jfQ27LmPz8"),
        ("x-alphabet.separate-together-y", "alphabet.separate-together"),
        ("xK93jfQ27LmPz8", {"xK93jfQ27LmPz8": 1}),
        ("alpha beta gamma delta", " ".join(map(DISGUISES["base64"], ["alpha beta", "gamma delta"]))),
    ],
)
def test_parts_of_tokens_and_keys_of_results_are_found(argument: str, page: Any) -> None:
    assert carries(argument, page=page)


def test_sources_are_limited() -> None:
    texts = LabelledTexts()
    for number in range(2 * MAX_SOURCES):
        texts.add(PAGE, {"untrusted": (Source("web.fetch", number),)})
    texts.add("xK93jfQ27LmPz8", PRIVATE)
    found = texts.search(["xK93jfQ27LmPz8"])
    assert (found["private"], len(found["untrusted"])) == (PRIVATE["private"], MAX_SOURCES)


def test_texts_of_different_results_are_not_joined() -> None:
    texts = texts_of("the meeting about")
    texts.add("the garden", UNTRUSTED)
    assert texts.search(["so the meeting about the garden"]) == NO_LABELS


def test_an_empty_index_finds_nothing() -> None:
    texts = LabelledTexts()
    texts.said("hello")
    texts.add(True, UNTRUSTED)
    texts.add(["", []], NO_LABELS)
    assert texts.is_empty
    assert texts.search(["hello"]) is NO_LABELS
    texts.add("hello", UNTRUSTED)
    assert not texts.is_empty


def test_labels_of_what_does_not_fit_are_always_found() -> None:
    texts = LabelledTexts(max_bytes=100)
    texts.add("x" * 60, PRIVATE)
    assert texts.search(["nothing"]) == NO_LABELS
    texts.add("ä" * 30, UNTRUSTED)
    assert texts.search(["nothing"]) == UNTRUSTED
    texts.add("short text", {"untrusted": (Source("web.fetch", 4),)})
    assert texts.search(["nothing"]) == UNTRUSTED
    assert texts.search(["short text"]) == {"untrusted": (*UNTRUSTED["untrusted"], Source("web.fetch", 4))}


def test_words_of_the_user_that_do_not_fit_are_ignored() -> None:
    texts = LabelledTexts(max_bytes=20)
    texts.add("hello world", UNTRUSTED)
    texts.said("hello world, hello world")
    assert texts.search(["hello world"]) == UNTRUSTED


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT | st.binary(max_size=30),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(ANY_TEXT, each, max_size=4),
    max_leaves=12,
)
WORDS = st.lists(
    st.sampled_from(
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "2024",
            "eve@evil.example",
            "xK93jfQ27LmPz8",
            "the",
            "of",
            "-",
            "/",
            "%41",
            "&amp;",
            "\\n",
        ]
    ),
    max_size=12,
)
SENTENCE = WORDS.map(" ".join) | WORDS.map("".join)


@given(PLAIN, PLAIN, PLAIN)
def test_every_plain_value_can_be_added_and_searched(value: Any, said: Any, argument: Any) -> None:
    texts = texts_of(value)
    texts.said(said)
    assert {*texts.search([argument])} <= {"untrusted"}
    assert {*texts.search([value, argument])} <= {"untrusted"}


@given(st.lists(SENTENCE, max_size=3), SENTENCE, st.lists(SENTENCE, max_size=3), SENTENCE, SENTENCE)
@example(["alpha beta"], "", ["alpha alpha", "-beta"], "beta", "beta")
@example(["alpha beta"], "", ["gamma al", "pha-be", "ta"], "beta", "")
def test_more_labelled_text_and_more_arguments_never_remove_labels(
    results: list[str], result: str, arguments: list[str], argument: str, said: str
) -> None:
    texts = LabelledTexts()
    for number, each in enumerate(results):
        texts.add(each, {f"label{number}": (Source("t", number),)})
    texts.said(said)
    before = texts.search(arguments)
    assert before.keys() <= texts.search([*arguments, argument]).keys()
    texts.add(result, UNTRUSTED)
    assert before.keys() <= texts.search(arguments).keys()


@given(SENTENCE, SENTENCE, SENTENCE, SENTENCE)
def test_more_words_of_the_user_never_add_labels(page: str, argument: str, said: str, more: str) -> None:
    texts = texts_of(page)
    texts.said(said)
    before = texts.search([argument])
    texts.said(more)
    assert texts.search([argument]).keys() <= before.keys()


@given(st.text(st.characters(exclude_categories=()), min_size=10, max_size=30), SENTENCE, SENTENCE)
def test_a_repeated_result_carries_its_labels(text: str, before: str, after: str) -> None:
    texts = texts_of(f"{before} {text} {after}")
    letters = "".join(char for char in text if char.isascii() and char.isalnum())
    assert texts.search([f"{before} {text} {after}"]) == UNTRUSTED or len(letters) < 10


def test_all_labels_are_found_if_a_search_takes_too_long() -> None:
    texts = texts_of("a" * (1 << 20))
    texts.add("other", PRIVATE)
    assert texts.search(["a" * 20]) == UNTRUSTED
    assert texts.search(["a" * 5000 + "b" + "a" * 5000]) == {**UNTRUSTED, **PRIVATE}


def test_all_labels_are_found_if_too_much_is_decoded() -> None:
    texts = texts_of()
    encoded = DISGUISES["base64"]("\ufdfa" * 1000)  # each of them has a compatibility form of 18 characters
    assert texts.search([encoded]) == UNTRUSTED
    texts.add(encoded, PRIVATE)
    assert texts.search(["nothing"]) == PRIVATE


@given(ANY_TEXT | SENTENCE)
@example("\U0002ebe1")  # a letter that is newer than the Unicode data of some versions of Python
@example("\u0e3f1 \u2e80")
def test_words_are_those_with_gaps(text: str) -> None:
    plain = decode_escapes(text)
    assert words(plain) == [part.word for part in parts(plain)[1]]


def test_threads_add_and_search_at_once() -> None:
    texts = texts_of()
    failures: list[object] = []

    def run(number: int) -> None:
        order = random.Random(number)
        for turn in range(40):
            token = f"token{number}x{turn}y{order.random()}"
            texts.add(f"This is {token}.", {f"label{number}": (Source("t", turn),)})
            texts.said(f"word{number} of {turn}")
            if texts.search([token]).keys() != {f"label{number}"} or texts.search(["xK93jfQ27LmPz8"]) != UNTRUSTED:
                failures.append(token)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_times_and_embeddings_are_compared_as_text() -> None:
    """As a model reads and writes them."""
    time = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
    assert carries("2026-03-04T05:06:00+00:00", page={"at": [time]})
    assert carries(array("f", [1234.5, 2.25]), page=array("f", [1234.5, 7.5]))
    assert not carries(array("f", [1234.5]), page=array("f", [5.25]))
