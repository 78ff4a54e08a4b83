"""Conversations in which the model searches for tools, because there are too many to offer all of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.llm.scripted_models import Script, asks, made, says

from neuroscript import Engine, ExecutionPolicy, MemoryAudit, SpecError, Toolset, ToolSpec
from neuroscript.llm import CallEnded
from neuroscript.llm.events import Event


def result_of(conversation: Any, at: int = 0) -> Any:
    """Return a result that the model read."""
    return [result for turn in conversation.turns for result in turn.tool_results][at]


def test_found_tools_are_offered_from_the_next_request_on(talk: Any) -> None:
    """Under their own names; each call of them is an ordinary call."""
    script = Script(
        [
            asks(("tools__search", '{"query": "total", "limit": "1"}')),
            asks(("t__total", {"numbers": ["1", 2]}), ("tools.search", ["note a text", 1])),
            says("3"),
        ]
    )
    audit = MemoryAudit()

    conversation = talk(made(audit=audit), "Sum?", model=script, search_above=3)

    assert conversation.answer == "3"
    assert script.offered == [
        ["tools.search"],
        ["tools.search", "t.total"],
        ["tools.search", "t.total", "t.note"],
    ]
    assert [result_of(conversation, at).value for at in range(3)] == [
        "You can now call: t__total", 3, "You can now call: t__note",
    ]  # fmt: skip
    assert [(record.tool, record.code) for record in audit.records] == [("t.total", "ok")]


@pytest.mark.parametrize("above", [None, 4, 100])
def test_few_tools_are_offered_as_they_are(talk: Any, above: int | None) -> None:
    """Then the search does not exist."""
    script = Script([asks(("tools__search", {"query": "total"})), says("?")])

    conversation = talk(made(), "Sum?", model=script, search_above=above)

    assert script.offered[0] == ["t.fail", "t.look", "t.note", "t.total"]
    error = result_of(conversation).error
    assert (error.code, error.retry) == ("tool.not_found", "model")


def test_tools_outside_the_selection_or_the_policy_are_neither_found_nor_called(talk: Any) -> None:
    script = Script(
        [
            asks(("tools__search", {"query": "note look fail total t", "limit": 20})),
            asks(("t__note", {"text": "a"}), ("t__look", {"text": "a"})),
            says("?"),
        ]
    )
    engine = made(policy=ExecutionPolicy(deny=("t.look",)))

    conversation = talk(engine, "Sum?", model=script, tools=("t.f*", "t.t*"), search_above=0)

    assert script.offered[1] == ["tools.search", "t.fail", "t.total"]
    errors = [result_of(conversation, at).error for at in (1, 2)]
    assert [(error.code, error.retry) for error in errors] == [
        ("policy.not_allowed", "host"), ("policy.denied", "host"),
    ]  # fmt: skip


def test_permitted_tool_that_was_not_found_can_be_called(talk: Any) -> None:
    """Models know names from instructions; the policy decides, not the search."""
    script = Script([asks(("t__total", {"numbers": [1]})), says("1")])

    assert result_of(talk(made(), "Sum?", model=script, search_above=0)).value == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "query: expected string, got nothing"),
        ({"query": 5.5, "limit": 50, "more": "secret"}, "limit: expected int from 1 to 20, got int out of bounds; more: "),
        ('{"query": ', "line 1, column 11 is not JSON"),
        (None, "query: expected string"),
    ],
    ids=["nothing", "wrong", "malformed", "none"],
)  # fmt: skip
def test_invalid_search_is_an_error_that_the_model_reads(talk: Any, arguments: Any, text: str) -> None:
    script = Script([asks(("tools__search", arguments)), says("?")])

    error = result_of(talk(made(), "Sum?", model=script, search_above=0)).error

    assert (error.code.partition(".")[0], error.retry) in {("arg", "model"), ("coercion", "model")}
    assert text in str(error)
    assert "secret" not in str(error)
    assert script.offered[1] == ["tools.search"]


def test_search_that_finds_nothing_says_so(talk: Any) -> None:
    script = Script([asks(("tools__search", {"query": "zebra"})), says("?")])

    assert result_of(talk(made(), "Sum?", model=script, search_above=0)).value.startswith("No tool contains any")


def test_tools_called_in_the_history_are_offered(talk: Any) -> None:
    first = Script([asks(("t__note", {"text": "a"})), says("Noted.")])
    engine = made()
    history = talk(engine, "Note a.", model=first, search_above=0).turns
    second = Script([says("Yes.")])

    talk(engine, "Again?", model=second, search_above=0, history=history)

    assert second.offered == [["tools.search", "t.note"]]


def test_real_tool_with_the_name_of_the_search_keeps_it(talk: Any) -> None:
    """The search then has another name."""
    own = Toolset("tools")
    own.add(ToolSpec("search", "tools", description="Real."), lambda rt: "real")
    own.add(ToolSpec("search_tools", "tools", description="Real too."), lambda rt: "real")
    script = Script([asks(("tools__search", {}), ("tools__search_tools_tools", {"query": "real"})), says("?")])
    with Engine(toolsets=[own], plugins="none") as engine:
        conversation = talk(engine, "?", model=script, search_above=0)

    assert script.offered == [
        ["tools.search_tools_tools"],
        ["tools.search_tools_tools", "tools.search", "tools.search_tools"],
    ]
    assert result_of(conversation).value == "real"


def test_search_counts_as_a_call_and_is_reported(talk: Any) -> None:
    events: list[Event] = []
    script = Script([asks(("tools__search", {"query": "total"})), says("?")])

    talk(made(), "Sum?", model=script, search_above=0, calls=1, on_event=events.append)

    (ended,) = [event for event in events if isinstance(event, CallEnded)]
    assert (ended.result.tool, ended.result.ok) == ("tools.search", True)


def test_named_tools_above_the_number_are_searched(talk: Any) -> None:
    """With ``plan_first``, only the tools that the model has named count, and can be found."""
    named = [says('["t.total", "t.look"]'), asks(("tools__search", {"query": "t", "limit": 20})), says("?")]
    script = Script([*named])

    talk(made(), "Sum?", model=script, search_above=1, plan_first=True)

    assert script.offered == [[], ["tools.search"], ["tools.search", "t.look", "t.total"]]


@pytest.mark.parametrize("number", [-1, 2.5, "5", True], ids=repr)
def test_invalid_number_is_refused(talk: Any, number: Any) -> None:
    with pytest.raises(SpecError, match="search_above"):
        talk(made(), "Sum?", model=Script([says("?")]), search_above=number)
