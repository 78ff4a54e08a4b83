"""Our tools in the loop of Pydantic AI, with its own scripted models."""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, ModelResponse, TextPart, Tool, ToolCallPart, ToolReturnPart
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from tests.interop.offered_shop import PICTURE, Shop, tally

from neuroscript import SpecError, TerminalApprover
from neuroscript._imports import install_hint
from neuroscript.interop.pydantic_ai import to_pydantic_ai

Call = tuple[str, Any]


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop.opened()
    with shop.engine:
        yield shop


class Script:
    """A model that requests the calls of each turn, and records its tools and messages."""

    def __init__(self, *turns: Sequence[Call]) -> None:
        self.turns = turns
        self.offered: dict[str, dict[str, Any]] = {}
        self.messages: list[ModelMessage] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.messages = messages
        self.offered = {each.name: each.parameters_json_schema for each in info.function_tools}
        turn = sum(isinstance(each, ModelResponse) for each in messages)
        if turn == len(self.turns):
            return ModelResponse(parts=[TextPart("done")])
        calls = enumerate(self.turns[turn])
        return ModelResponse(parts=[ToolCallPart(name, args, f"c{turn}.{at}") for at, (name, args) in calls])

    @property
    def returned(self) -> list[ToolReturnPart]:
        """The results of the calls."""
        return [part for each in self.messages for part in each.parts if isinstance(part, ToolReturnPart)]

    @property
    def read(self) -> list[tuple[str | None, Any]]:
        """How each call ended, and what the model read for it."""
        return [(part.outcome, part.content) for part in self.returned]


def agent(shop: Shop, script: Script, *, retries: int = 3) -> Agent[None, str]:
    return Agent(FunctionModel(script), toolsets=[to_pydantic_ai(shop.engine)], retries=retries)


def run(agent: Agent[None, str]) -> str:
    """Return the answer of an agent; `run_sync` would leave a loop open."""
    return asyncio.run(agent.run("Go on.")).output


def run_agent(shop: Shop, *turns: Sequence[Call], retries: int = 3) -> Script:
    """Return the script after an agent has run it."""
    script = Script(*turns)
    assert run(agent(shop, script, retries=retries)) == "done"
    return script


REMEDY = "Fix the arguments and call again."


@pytest.mark.parametrize(
    ("sent", "ours", "theirs"),
    [
        pytest.param({"count": "2"}, "2 0.5 []", "2 0.5 []", id="a string with a number"),
        pytest.param({"tags": '["a"]'}, "7 0.5 ['a']", None, id="a list as a string"),
        pytest.param({"count": None}, "7 0.5 []", None, id="null for what may be left out"),
        pytest.param({"count": True}, "error coercion.bool_as_number", "1 0.5 []", id="a truth for a number"),
        pytest.param({"share": 2**53 + 1}, "error coercion.lossy", f"7 {2.0**53!r} []", id="a number that is rounded"),
        pytest.param({"share": "NaN"}, "error coercion.format", "7 nan []", id="not a number"),
    ],
)
def test_arguments_are_exact_that_the_framework_alone_changes(
    shop: Shop, sent: Mapping[str, Any], ours: str, theirs: str | None
) -> None:
    """A call is coerced without loss or refused; the framework's native tool of the same function differs."""
    (reported,) = run_agent(shop, [("shop__tally", json.dumps(sent))]).read
    alone = Script([("tally", json.dumps(sent))])
    run(Agent(FunctionModel(alone), tools=[tally]))

    assert str(reported[1]).split(": ")[0] == ours
    assert (alone.read[0][1] if alone.read[0][0] == "success" else None) == theirs


def test_a_tool_of_the_framework_with_our_schema_receives_a_string_for_a_number(shop: Shop) -> None:
    """The framework does not check the arguments of tools with external schemas."""
    sent = [("shop__tally", '{"count": "2"}')]
    script = run_agent(shop, sent)
    theirs = Tool.from_schema(tally, "shop__tally", None, script.offered["shop__tally"])
    alone = Script(sent)
    run(Agent(FunctionModel(alone), tools=[theirs]))

    assert (script.read, alone.read) == ([("success", "2 0.5 []")], [("success", "'2' 0.5 []")])


def test_an_error_names_the_argument_and_the_model_fixes_its_call(shop: Shop) -> None:
    """All problems at once, as the framework's retry prompt."""
    wrong, right = {"count": "two", "share": [], "more": 1}, {"count": "2"}
    script = run_agent(shop, [("shop__tally", wrong)], [("shop__tally", right)])

    assert script.read == [
        (
            "retried",
            "error arg.invalid: count: expected int, got str (a string must be a decimal integer, such as 42); "
            f"share: expected float, got list; more: expected only count, share, tags, got an unknown name of type int. {REMEDY}",
        ),
        ("success", "2 0.5 []"),
    ]


def test_arguments_that_are_not_an_object_reach_the_call_pipeline(shop: Shop) -> None:
    """So our error describes the problem, a list means positional arguments, and no input means none."""
    texts = ['{"count": ', '{"count": 1, "count": 2}', '"2"', "[3]", "", None]
    script = run_agent(shop, *([("shop__tally", text)] for text in texts), retries=9)

    assert [str(content).split(": ")[0] for _, content in script.read] == [
        "error arg.not_json",
        "error arg.duplicate_key",
        "error arg.type",
        "3 0.5 []",
        "7 0.5 []",
        "7 0.5 []",
    ]


def test_wrappers_between_the_agent_and_us_see_arguments_by_name(shop: Shop) -> None:
    """The framework's wrappers require a dict, whatever the model sent; each name leads to its value."""
    seen: list[Any] = []

    def asks(context: object, definition: object, args: dict[str, Any]) -> bool:
        seen.append(args.get("count"))
        return False

    script = Script([("shop__tally", "[3]"), ("shop__tally", '{"count": "4"}')])
    toolset = to_pydantic_ai(shop.engine).approval_required(asks)
    run(Agent(FunctionModel(script), toolsets=[toolset]))

    assert seen == [None, "4"]
    assert script.read == [("success", "3 0.5 []"), ("success", "4 0.5 []")]


def test_a_denied_tool_stays_denied(shop: Shop) -> None:
    """It is not offered, and calling it anyway is an unknown tool; nothing runs."""
    script = run_agent(shop, [("shop__pay", {})])

    assert "shop__pay" not in script.offered
    assert "shop__tally" in script.offered
    assert script.read[0][0] == "retried"
    assert script.read[0][1].startswith("Unknown tool name: 'shop__pay'.")
    assert shop.did == []


def test_an_error_that_the_model_cannot_fix_is_sent_as_a_failure(shop: Shop) -> None:
    """It does not count as a retry, and the run continues."""
    script = run_agent(shop, [("shop__milk", {})], [("shop__milk", {})], retries=0)

    assert script.read == [("failed", "error tool.failed: there is no milk. The same call may succeed later.")] * 2


def test_a_model_that_never_fixes_its_call_ends_the_run(shop: Shop) -> None:
    """The agent's number of retries applies to our tools too."""
    wrong = [("shop__tally", {"count": "two"})]
    script = Script(wrong, wrong, wrong)
    expected = "Tool 'shop__tally' exceeded max retries count of 1."
    with pytest.raises(UnexpectedModelBehavior) as raised:
        run(agent(shop, script, retries=1))

    assert str(raised.value).startswith(expected)
    assert len(script.turns) - 1 == len([each for each in shop.trail() if each[1] == "coercion.format"])


def test_approver_and_audit_log_see_the_exact_values(shop: Shop) -> None:
    """They receive what the tool receives, and not what the model wrote."""
    script = run_agent(shop, [("shop__buy", {"count": "2"})], [("shop__buy", {"count": "20"})])

    assert shop.approvals == [{"count": 2}, {"count": 20}]
    assert script.read == [
        ("success", 2),
        (
            "failed",
            "error policy.rejected: was not approved: that is too much. This call cannot succeed; do not repeat it.",
        ),
    ]
    assert shop.did == ["bought 2"]
    assert shop.trail() == [("shop.buy", "ok", ("int",)), ("shop.buy", "policy.rejected", ("int",))]


def test_an_unapproved_tool_is_refused() -> None:
    """Without an answer the call fails, and without an approver the tool is not offered."""
    unanswered, unasked = Shop.opened(approver=TerminalApprover(stdin=io.StringIO())), Shop.opened(approver=None)
    with unanswered.engine, unasked.engine:
        scripts = [run_agent(shop, [("shop__buy", {"count": 2})]) for shop in (unanswered, unasked)]

    assert ["shop__buy" in script.offered for script in scripts] == [True, False]
    assert [how for script in scripts for how, _ in script.read] == ["failed", "retried"]
    assert scripts[0].read[0][1].startswith("error policy.rejected: was not approved: there is no terminal to ask")
    assert scripts[1].read[0][1].startswith("Unknown tool name: 'shop__buy'.")
    assert unanswered.did + unasked.did == []


def test_results_are_values_of_the_framework(shop: Shop) -> None:
    """Plain data unchanged, and an image as one that the model can view."""
    script = run_agent(shop, [("shop__stock", {}), ("shop__seal", {}), ("shop__picture", {})])

    assert script.read == [
        ("success", {"milk": 2, "eggs": None}),
        ("success", {"$base64": "aGVsbG8="}),
        ("success", BinaryContent(PICTURE, media_type="image/png")),
    ]


def test_calls_of_read_only_tools_run_concurrently(shop: Shop) -> None:
    """Each of the two ends only when the other has started."""
    script = run_agent(shop, [("shop__meet", {"name": "a"}), ("shop__meet", {"name": "b"})])

    assert script.read == [("success", "a"), ("success", "b")]


def test_calls_with_side_effects_run_one_by_one(shop: Shop) -> None:
    """In the order in which the model requested them."""
    run_agent(shop, [("shop__step", {"name": "a"}), ("shop__step", {"name": "b"})])

    assert shop.did == ["a begins", "a ends", "b begins", "b ends"]


def test_cancelling_a_run_cancels_its_call(shop: Shop) -> None:
    """The tool is notified, and the audit log records that the call did not end."""

    async def cancelled() -> bool:
        running = asyncio.create_task(agent(shop, Script([("shop__wait", {})])).run("Go on."))
        await shop.began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return running.cancelled()

    assert asyncio.run(cancelled())
    assert shop.did == ["cancelled"]
    assert [(tool, code) for tool, code, _ in shop.trail()] == [("shop.wait", "call.interrupted")]


def test_the_test_model_of_the_framework_can_call_every_tool(shop: Shop) -> None:
    """It generates arguments from our schemas; unselected tools are absent, and the framework's prefixes work."""
    toolset = to_pydantic_ai(shop.engine, tools=("shop.tally", "shop.stock")).prefixed("our")
    output = run(Agent(TestModel(), toolsets=[toolset]))

    assert json.loads(output) == {"our_shop__tally": "7 0.5 []", "our_shop__stock": {"milk": 2, "eggs": None}}


def test_a_pattern_without_a_match_is_reported_at_once(shop: Shop) -> None:
    """Before an agent runs."""
    with pytest.raises(SpecError) as raised:
        to_pydantic_ai(shop.engine, tools="shop.pay")

    assert str(raised.value) == "to_pydantic_ai: tools: shop.pay matches no tool that may be called here"


def test_the_error_without_the_framework_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only importing the adapter needs the framework."""
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "neuroscript.interop.pydantic_ai")
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module("neuroscript.interop.pydantic_ai")

    assert str(raised.value) == f"a toolset for Pydantic AI needs it; install it with: {install_hint('pydantic-ai')}"
