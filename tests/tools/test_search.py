"""The index of tools: what it finds, in which order, and what hostile specs and queries cannot do."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import ArgSpec, ArgType, Engine, ExecutionPolicy, SpecError, ToolIndex, ToolPolicy, Toolset, ToolSpec

MAIL = (
    ToolSpec("send", "mail", (ArgSpec("to", "string", description="The recipient."),), description="Send an e-mail."),
    ToolSpec("list_folders", "mail", description="List the folders of a mailbox."),
    ToolSpec("createPullRequest".lower(), "git", description="Create a PullRequest on GitHub."),
    ToolSpec("add", "math", (ArgSpec("unit", "string", choices=("kelvin", "celsius")),), description="Add numbers."),
    ToolSpec(
        "book",
        "travel",
        (ArgSpec("trip", "map", keys=(ArgSpec("destination", "string", description="An airport."),)),),
        when_to_use="Use it for flights.",
    ),
    ToolSpec("weather", "city", description="天気予報を調べる。"),
    ToolSpec("coffee", "shop", description="Order at the Café."),
)


def names(tools: Any, query: str, limit: int = 5) -> list[str]:
    return [spec.full_name for spec in ToolIndex(tools).search(query, limit)]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("send", "mail.send"),
        ("the recipient", "mail.send"),
        ("folder", "mail.list_folders"),
        ("FOLDERS of queries", "mail.list_folders"),
        ("pull request", "git.createpullrequest"),
        ("github", "git.createpullrequest"),
        ("Celsius", "math.add"),
        ("destination", "travel.book"),
        ("airports", "travel.book"),
        ("flight", "travel.book"),
        ("天気", "city.weather"),
        ("cafe", "shop.coffee"),
        ("CAFE\u0301", "shop.coffee"),
        ("mail.list_folders", "mail.list_folders"),
        ("mail__list_folders", "mail.list_folders"),
        (" Tool.Mail.Send ", "mail.send"),
    ],
)
def test_tool_is_found_by_a_word_of_any_field(query: str, name: str) -> None:
    """In any case and number, with or without accents, in camelCase, and by each spelling of its name."""
    assert names(MAIL, query)[0] == name


@pytest.mark.parametrize("query", ["", "   ", "zebra", "\0", "\u202e", "\ud800", "!?", "the", "of a"])
def test_query_without_known_words_finds_nothing(query: str) -> None:
    assert names(MAIL, query) == []
    assert names((), query) == []


def test_word_in_a_name_counts_more_than_one_in_the_description_of_an_argument() -> None:
    named = ToolSpec("rate", "z")
    mentioned = ToolSpec("other", "a", (ArgSpec("x", "string", description="The rate."),))

    assert names([mentioned, named], "rate") == ["z.rate", "a.other"]


def test_repeated_word_does_not_push_a_tool_before_one_that_has_all_words() -> None:
    """So that a server cannot bring its tool to the top by repeating a word."""
    fair = ToolSpec("fair", "a", description="Convert a currency amount.")
    loud = ToolSpec("loud", "b", description="currency " * 900)

    assert names([loud, fair], "convert the amount of a currency")[0] == "a.fair"


def test_unspecific_words_count_only_if_a_query_has_no_others() -> None:
    tools = [ToolSpec("who", "x"), ToolSpec("other", "x", description="Who is the president?")]

    assert names(tools, "who") == ["x.who"]
    assert names(tools, "who is the president") == ["x.other"]


def test_results_are_what_was_indexed_under_the_policy_of_a_session() -> None:
    """So a tool that the policy refuses is not found."""
    toolset = Toolset("t")
    for spec in (ToolSpec("wipe", "t", description="Erase a disk."), ToolSpec("look", "t", description="Show a disk.")):
        toolset.add(spec, lambda rt: None, policy=ToolPolicy())
    with Engine(plugins="none", toolsets=[toolset], policy=ExecutionPolicy(deny=("t.wipe",))) as engine:
        infos = ToolIndex(engine.infos.values())

        assert infos.search("erase a disk") == (engine.infos["t.look"],)
        assert ToolIndex(engine.tools.values()).search("erase a disk")[0] is engine.tools["t.wipe"]


def test_wrong_arguments_are_refused_together() -> None:
    index = ToolIndex(MAIL)

    with pytest.raises(SpecError) as refused:
        index.search(5, 0)  # type: ignore[arg-type]

    assert str(refused.value) == "search: query must be a string, not int; limit must be a positive integer"


WORDS = st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=4)
TEXTS = st.text(max_size=40)
SPECS = st.lists(
    st.builds(lambda name, group, text: ToolSpec(name, group, description=text), WORDS, WORDS, TEXTS),
    max_size=12,
    unique_by=lambda spec: spec.full_name,
)


@given(SPECS)
def test_every_tool_is_found_first_by_its_own_name(tools: list[ToolSpec]) -> None:
    index = ToolIndex(tools)

    assert [index.search(spec.full_name, 1)[0] for spec in tools] == tools


@given(SPECS, TEXTS, st.randoms())
def test_order_of_the_tools_does_not_change_the_results(tools: list[ToolSpec], query: str, random: Any) -> None:
    shuffled = random.sample(tools, len(tools))

    assert names(tools, query) == names(shuffled, query) == names(tools, query)


@given(SPECS, TEXTS, st.integers(1, 20))
def test_fewer_results_are_the_beginning_of_more(tools: list[ToolSpec], query: str, limit: int) -> None:
    found = names(tools, query, 20)

    assert names(tools, query, limit) == found[:limit]
    assert len({*found}) == len(found) <= len(tools)


@given(SPECS, TEXTS)
def test_tools_without_words_of_the_query_are_never_found(tools: list[ToolSpec], query: str) -> None:
    """And adding such tools leaves the same tools found."""
    others = [ToolSpec(f"zzz{at}", "zzz", description="zzzz " * at) for at in range(5)]
    before, after = names(tools, query, 20), names([*tools, *others], query, 20)

    assert "zzz" in query or {*before} == {*after}


HOSTILE = {
    "huge": "currency exchange " * 100_000,
    "one word": "x" * 1_000_000,
    "humps": "aB" * 500_000,
    "NUL": "\0currency\0" * 1_000,
    "right to left": "\u202eycnerruc\u202c" * 1_000,
    "combining": "a" + "\u0301" * 200_000,
    "wide": "\ufdfa" * 100_000,
    "unspaced": "天" * 500_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_delays_neither_the_index_nor_a_query(text: str) -> None:
    """And does not hide other tools."""
    spec = ToolSpec("odd", "a", (ArgSpec("x", "string", description=text),), description=text, when_to_use=text)
    started = time.process_time()
    index = ToolIndex([spec, MAIL[0]])
    found = index.search("send an e-mail"), index.search(text)

    assert time.process_time() - started < 1
    assert found[0][0] is MAIL[0]
    assert {*found[1]} <= {spec, MAIL[0]}


def test_tool_with_many_nested_arguments_is_indexed_up_to_a_limit() -> None:
    """The first arguments count; the deepest ones are dropped."""
    inner = ArgSpec("innermost", "string")
    for level in range(30):
        inner = ArgSpec(f"level{level}", ArgType.MAP, keys=(inner, *(ArgSpec(f"k{n}", "int") for n in range(100))))
    spec = ToolSpec("deep", "a", (inner,))

    assert names([spec], "level29") == ["a.deep"]
    assert names([spec], "innermost") == []


@pytest.mark.slow
def test_ten_thousand_tools_are_indexed_in_seconds_and_searched_in_milliseconds() -> None:
    """The bounds are generous, because other tests run at the same time."""
    subjects = [f"{first}{second}" for first in "bcdfghklmn" for second in ("ank", "ook", "ird", "oat", "ill")]
    tools = [
        ToolSpec(
            f"{verb}_{subject}{at}",
            subject,
            (ArgSpec("id", "string", description=f"The id of the {subject}."), ArgSpec("limit", "int")),
            description=f"{verb.title()} the {subject} with the number {at}, and return what has changed.",
        )
        for at in range(50)
        for subject in subjects
        for verb in ("get", "list", "update", "delete")
    ]
    started = time.process_time()
    index = ToolIndex(tools)
    indexed = time.process_time()
    found = [index.search(f"please delete the bank with the number {at} and return its id") for at in range(50)]
    searched = time.process_time()

    assert len(index) == 10_000
    assert [each[0].full_name for each in found] == [f"bank.delete_bank{at}" for at in range(50)]
    assert indexed - started < 5
    assert (searched - indexed) / 50 < 0.05
