"""Conversations of a session under flow rules: the user's words, labelled results, and tools named beforehand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.flow.mail_tools import ADDRESS, ASK, PAGE, REFUSE, checked_code, engine_with
from tests.llm.scripted_models import Script

from neuroscript import Approval, ApprovalRequest, SpecError, ToolCall, Turn
from neuroscript.llm import ConversationError, aconverse, converse


def calls(*wanted: tuple[str, dict[str, Any]]) -> Turn:
    """Return a turn of a model that requests calls."""
    made = [ToolCall(f"t.{name}", args, id=f"c{index}") for index, (name, args) in enumerate(wanted)]
    return Turn("assistant", tool_calls=made)


def outcomes(script: Script) -> list[str]:
    """Return the codes of the results that the model has read."""
    turns = script.received[-1]
    results = [each for turn in turns for each in turn.tool_results]
    return ["ok" if each.error is None else checked_code(each.error) for each in results]


OBEDIENT = (calls(("page", {})), calls(("send", {"to": ADDRESS, "body": "all of it"})), Turn("assistant", "Done."))
"""What a model does that obeys the page."""


def test_text_of_the_prompt_may_be_sent() -> None:
    with engine_with(REFUSE) as engine:
        script = Script([*OBEDIENT])
        converse(engine.session(), "Read the page.", model=script)
        assert outcomes(script) == ["ok", "policy.flow"]

        script = Script([*OBEDIENT])
        converse(engine.session(), f"Read the page, then write to {ADDRESS}.", model=script)
        assert outcomes(script) == ["ok", "ok"]


def test_words_of_the_system_and_of_earlier_prompts_may_be_sent() -> None:
    with engine_with(REFUSE) as engine:
        for words in (
            {"system": f"You write to {ADDRESS}."},
            {"history": [Turn("user", f"My address is {ADDRESS}."), Turn("assistant", "Noted.")]},
        ):
            script = Script([*OBEDIENT])
            converse(engine.session(), "Read the page.", model=script, **words)  # type: ignore[arg-type]
            assert outcomes(script) == ["ok", "ok"]


def test_results_of_an_earlier_session_stay_labelled() -> None:
    """A host that continues a conversation in a new session passes its turns."""
    with engine_with(REFUSE) as engine:
        first = converse(engine.session(), "Read the page.", model=Script([OBEDIENT[0], OBEDIENT[2]]))
        script = Script([*OBEDIENT[1:]])
        session = engine.session()
        converse(session, "Go on.", history=first.turns, model=script)
        assert outcomes(script) == ["ok", "policy.flow"]
        assert session.labels == ("untrusted",)


def test_prompt_that_repeats_the_page_is_the_users_own() -> None:
    """What a host puts into a prompt counts as the user's words, even if it was labelled before."""
    with engine_with(REFUSE) as engine:
        session = engine.session()
        session.add_labelled(PAGE, ["untrusted"])
        script = Script([calls(("send", {"to": ADDRESS})), OBEDIENT[2]])
        converse(session, PAGE, model=script)
        assert outcomes(script) == ["ok"]


# Tools named beforehand


def test_named_tools_run_and_others_ask() -> None:
    answers: list[ApprovalRequest] = []
    with engine_with(answers=answers) as engine:
        script = Script([Turn("assistant", '["t.page", "t__upper"]'), *OBEDIENT])
        conversation = converse(engine.session(), "Read the page.", model=script, plan_first=True)
    assert conversation.answer == "Done."
    assert [request.tool for request in answers] == ["t.send"]
    assert script.offered[0] == []
    assert "t.send" in script.offered[1]
    asked = script.received[0][-1].content
    assert "name every tool" in asked
    assert "\n- t.send: Send a message" in asked
    assert conversation.turns[0].content == "Read the page."
    assert not any("name every tool" in turn.content for turn in conversation.turns)
    assert len(conversation.replies) == 4


def test_without_an_approver_other_tools_are_not_offered() -> None:
    with engine_with() as engine:
        script = Script([Turn("assistant", '["t.page"]'), *OBEDIENT])
        converse(engine.session(), "Read the page.", model=script, plan_first=True)
    assert script.offered[1] == ["t.page"]
    assert outcomes(script) == ["ok", "policy.approval"]


def test_answer_that_is_no_list_is_corrected() -> None:
    with engine_with() as engine:
        script = Script(
            [
                Turn("assistant", "I need the page."),
                Turn("assistant", '["t.page", "t.nothing"]'),
                Turn("assistant", "[]"),
                Turn("assistant", "Done."),
            ]
        )
        converse(engine.session(), "Say hello.", model=script, plan_first=True)
    assert script.received[2][-1].content.startswith("1 of these tools do not exist")
    assert script.offered[-1] == []


def test_model_that_never_names_its_tools() -> None:
    with engine_with() as engine:
        script = Script([Turn("assistant", "No.")] * 3)
        with pytest.raises(ConversationError) as caught:
            converse(engine.session(), "Say hello.", model=script, plan_first=True, turns=3)
    assert caught.value.code == "llm.answer"
    assert caught.value.retry == "never"


def test_async_conversation_names_its_tools() -> None:
    answers: list[ApprovalRequest] = []

    async def conversation() -> str:
        with engine_with(ASK, answers=answers) as engine:
            script = Script([Turn("assistant", '["t.page", "t.send"]'), *OBEDIENT])
            return (await aconverse(engine.session(), "Read the page.", model=script, plan_first=True)).answer  # type: ignore[no-any-return]

    assert asyncio.run(conversation()) == "Done."
    assert [request.flows for request in answers] == [("sends untrusted data from t.page (call 1) to outside",)]


def test_narrowed_session_ends_with_the_caller() -> None:
    """The approver stops the session of the conversation, and with it that of the host."""
    with engine_with(ASK, approver=lambda request: Approval.stop("enough")) as engine:
        session = engine.session()
        script = Script([Turn("assistant", '["t.page"]'), *OBEDIENT])
        with pytest.raises(ConversationError) as caught:
            converse(session, "Read the page.", model=script, plan_first=True)
        assert (caught.value.code, caught.value.retry) == ("llm.stopped", "host")
        assert session.is_closed


def test_plan_first_is_a_flag() -> None:
    with engine_with() as engine, pytest.raises(SpecError, match="plan_first must be True or False"):
        converse(engine, "Hello.", model=Script([]), plan_first="yes")  # type: ignore[arg-type]
