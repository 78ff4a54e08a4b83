"""Our tools in the loop of the OpenAI Agents SDK, with a scripted model and without tracing."""

from __future__ import annotations

import asyncio
import base64
import importlib
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest
from agents import Agent, ModelBehaviorError, RunConfig, Runner, function_tool
from agents.run_config import ToolExecutionConfig
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.interop.offered_shop import PICTURE, Shop, tally

from neuroscript import ArgSpec, ArgType, Engine, ExecutionPolicy, SpecError, TerminalApprover, Toolset, ToolSpec
from neuroscript._imports import install_hint
from neuroscript.interop.openai_agents import to_openai_agents
from neuroscript.llm.offered_tools import offer_tools
from neuroscript.llm.wire.openai import strict_schema

Call = tuple[str, Any]

UNTOLD = "An error occurred while running the tool. Please try again."
"""All that the framework tells a model of arguments that do not fit."""

REMEDY = "Fix the arguments and call again."


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop.opened()
    with shop.engine:
        yield shop


@attrs.frozen(eq=False)
class Followed:
    """The run of an agent with a scripted model."""

    model: ScriptedModel

    @property
    def offered(self) -> set[str]:
        """The names of the tools that the model received."""
        return {tool.name for tool in self.model.calls[0].tools}

    @property
    def read(self) -> list[Any]:
        """What the model read for each call."""
        last = self.model.calls[-1].input
        return [item["output"] for item in last if item["type"] == "function_call_output"]


async def following(tools: Sequence[Any], *turns: Sequence[Call], **options: Any) -> Followed:
    """Run an agent with a script, and return the run."""
    requests = [
        [function_call(name, args, call_id=f"c{turn}.{at}") for at, (name, args) in enumerate(calls)]
        for turn, calls in enumerate(turns)
    ]
    model = ScriptedModel([*requests, [assistant_message("done")]])
    agent = Agent("clerk", model=model, tools=list(tools))
    config = RunConfig(tracing_disabled=True, **options)
    assert (
        await Runner.run(agent, [{"role": "user", "content": "Go on.", "type": "message"}], run_config=config)
    ).final_output == "done"
    return Followed(model)


def run_agent(tools: Sequence[Any], *turns: Sequence[Call], **options: Any) -> Followed:
    return asyncio.run(following(tools, *turns, **options))


@pytest.mark.parametrize(
    ("sent", "ours", "theirs"),
    [
        pytest.param({"count": "2"}, "2 0.5 []", "2 0.5 []", id="a string with a number"),
        pytest.param({"tags": '["a"]'}, "7 0.5 ['a']", UNTOLD, id="a list as a string"),
        pytest.param({"count": None}, "7 0.5 []", UNTOLD, id="null for what may be left out"),
        pytest.param({"count": True}, "error coercion.bool_as_number", "1 0.5 []", id="a truth for a number"),
        pytest.param({"share": 2**53 + 1}, "error coercion.lossy", f"7 {2.0**53!r} []", id="a number that is rounded"),
        pytest.param({"share": "NaN"}, "error coercion.format", "7 nan []", id="not a number"),
    ],
)
def test_arguments_are_exact_that_the_framework_alone_changes(
    shop: Shop, sent: Mapping[str, Any], ours: str, theirs: str
) -> None:
    """A call is coerced without loss or refused; the framework's native tool of the same function differs."""
    (reported,) = run_agent(to_openai_agents(shop.engine), [("shop__tally", sent)]).read
    (alone,) = run_agent([function_tool(tally)], [("tally", sent)]).read

    assert (reported.split(": ")[0], alone) == (ours, theirs)


def test_an_error_names_the_argument_and_the_model_fixes_its_call(shop: Shop) -> None:
    """All problems at once, and the run continues."""
    wrong, right = {"count": "two", "share": [], "more": 1}, {"count": "2"}
    followed = run_agent(to_openai_agents(shop.engine), [("shop__tally", wrong)], [("shop__tally", right)])

    assert followed.read == [
        "error arg.invalid: count: expected int, got str (a string must be a decimal integer, such as 42); "
        "share: expected float, got list; "
        f"more: expected only count, share, tags, got an unknown name of type int. {REMEDY}",
        "2 0.5 []",
    ]


def test_arguments_that_are_not_an_object_reach_the_call_pipeline(shop: Shop) -> None:
    """So our error describes the problem, a list means positional arguments, and no input means none."""
    texts = ['{"count": ', '{"count": 1, "count": 2}', '"2"', "[3]", ""]
    followed = run_agent(to_openai_agents(shop.engine), *([("shop__tally", text)] for text in texts))

    assert [text.split(": ")[0] for text in followed.read] == [
        "error arg.not_json",
        "error arg.duplicate_key",
        "error arg.type",
        "3 0.5 []",
        "7 0.5 []",
    ]


def test_strict_mode_is_used_if_a_tool_supports_it() -> None:
    """Every argument is then required, and null means omitted; a free map does not support it."""
    tools = Toolset("t")
    optional = ArgSpec("limit", ArgType.INT, required=False, default=5)
    tools.add(
        ToolSpec("find", "t", (ArgSpec("word", ArgType.STRING), optional), description="Find it."),
        lambda rt, *args: f"{args!r}",
    )
    tools.add(ToolSpec("keep", "t", (ArgSpec("facts", ArgType.MAP),)), lambda rt, facts: f"{facts!r}")
    with Engine(toolsets=[tools], plugins="none") as engine:
        find, keep = to_openai_agents(engine)
        followed = run_agent(
            [find, keep], [("t__find", {"word": "milk", "limit": None}), ("t__keep", {"facts": {"a": 1}})]
        )
        strict = strict_schema(engine.infos["t.find"].spec)

    assert (find.strict_json_schema, find.params_json_schema) == (True, strict)
    assert (find.params_json_schema["required"], find.description) == (["word", "limit"], "Find it.")
    assert (keep.strict_json_schema, keep.params_json_schema["properties"]) == (False, {"facts": {"type": "object"}})
    assert followed.read == ["('milk', 5)", "{'a': 1}"]


def test_the_sdk_accepts_our_strict_schemas_for_all_installed_tools() -> None:
    """The SDK makes schemas strict itself, and has nothing to change in ours."""
    with Engine(policy=ExecutionPolicy(trusted=True)) as engine:
        specs = {each.name: strict_schema(each.info.spec) for each in offer_tools(engine, subject="test")}
        taken = {each.name: each.params_json_schema for each in to_openai_agents(engine) if each.strict_json_schema}

    assert taken == {name: schema for name, schema in specs.items() if schema is not None}
    assert len(taken) > 100


def test_the_schema_of_a_tool_is_a_separate_copy() -> None:
    """Also without strict mode: modifying it changes no other."""
    tools, spec = Toolset("t"), ToolSpec("keep", "t", (ArgSpec("facts", ArgType.MAP),))
    tools.add(spec, lambda rt, facts: None)
    with Engine(toolsets=[tools], plugins="none") as engine:
        (first,), (other,) = to_openai_agents(engine), to_openai_agents(engine)
        first.params_json_schema["properties"]["facts"]["title"] = "Facts"

    assert other.params_json_schema["properties"] == {"facts": {"type": "object"}}


def test_a_denied_tool_stays_denied(shop: Shop) -> None:
    """It is not offered; calling it anyway is an unknown tool or ends the run; nothing runs."""
    tools = to_openai_agents(shop.engine)
    followed = run_agent(tools, [("shop__pay", {})], tool_not_found_behavior="return_error_to_model")
    with pytest.raises(ModelBehaviorError) as raised:
        run_agent(tools, [("shop__pay", {})])

    assert ("shop__pay" in followed.offered, "shop__tally" in followed.offered) == (False, True)
    assert followed.read == ["Tool 'shop__pay' not found."]
    assert str(raised.value) == "Tool shop__pay not found in agent clerk"
    assert shop.did == []


def test_tools_are_refused_after_their_session_ends(shop: Shop) -> None:
    """The error is sent to the model."""
    with shop.engine.session() as session:
        tools = to_openai_agents(session, tools="shop.tally")
    followed = run_agent(tools, [("shop__tally", {})])

    assert followed.read == ["error engine.closed: the engine is closed. This call cannot succeed; do not repeat it."]


def test_errors_that_the_model_cannot_fix_are_sent_too(shop: Shop) -> None:
    """With what it may do next; an exception would end the run."""
    followed = run_agent(to_openai_agents(shop.engine), [("shop__milk", {})])

    assert followed.read == ["error tool.failed: there is no milk. The same call may succeed later."]


def test_approver_and_audit_log_see_the_exact_values(shop: Shop) -> None:
    """They receive what the tool receives, and not what the model wrote."""
    followed = run_agent(
        to_openai_agents(shop.engine), [("shop__buy", {"count": "2"})], [("shop__buy", {"count": "20"})]
    )

    assert shop.approvals == [{"count": 2}, {"count": 20}]
    assert followed.read == [
        "2",
        "error policy.rejected: was not approved: that is too much. This call cannot succeed; do not repeat it.",
    ]
    assert shop.did == ["bought 2"]
    assert shop.trail() == [("shop.buy", "ok", ("int",)), ("shop.buy", "policy.rejected", ("int",))]


def test_an_unapproved_tool_is_refused() -> None:
    """Without an answer the call fails, and without an approver the tool is not offered."""
    unanswered, unasked = Shop.opened(approver=TerminalApprover(stdin=io.StringIO())), Shop.opened(approver=None)
    with unanswered.engine, unasked.engine:
        followed = run_agent(to_openai_agents(unanswered.engine), [("shop__buy", {"count": 2})])
        others = {tool.name for tool in to_openai_agents(unasked.engine)}

    assert followed.read[0].startswith("error policy.rejected: was not approved: there is no terminal to ask")
    assert ("shop__buy" in followed.offered, "shop__buy" in others) == (True, False)
    assert unanswered.did == []


def test_results_are_strings_and_images(shop: Shop) -> None:
    """Other values are JSON, and an image is one that the model can view."""
    followed = run_agent(to_openai_agents(shop.engine), [("shop__stock", {}), ("shop__picture", {})])
    url = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"

    assert json.loads(followed.read[0]) == {"milk": 2, "eggs": None}
    assert followed.read[1] == [{"type": "input_image", "image_url": url}]


def test_calls_of_one_turn_run_concurrently(shop: Shop) -> None:
    """Each of the two ends only when the other has started."""
    followed = run_agent(to_openai_agents(shop.engine), [("shop__meet", {"name": "a"}), ("shop__meet", {"name": "b"})])

    assert followed.read == ["a", "b"]


def test_calls_of_one_turn_run_in_order_if_the_run_says_so(shop: Shop) -> None:
    """The SDK configures this for a run, not for a tool."""
    calls = [("shop__step", {"name": "a"}), ("shop__step", {"name": "b"})]
    run_agent(to_openai_agents(shop.engine), calls, tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))

    assert shop.did == ["a begins", "a ends", "b begins", "b ends"]


def test_cancelling_a_run_cancels_its_call(shop: Shop) -> None:
    """The tool is notified, and the audit log records that the call did not end."""

    async def cancelled() -> bool:
        run = asyncio.create_task(following(to_openai_agents(shop.engine), [("shop__wait", {})]))
        await shop.began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return run.cancelled()

    assert asyncio.run(cancelled())
    assert shop.did == ["cancelled"]
    assert [(tool, code) for tool, code, _ in shop.trail()] == [("shop.wait", "call.interrupted")]


def test_a_pattern_without_a_match_is_reported_at_once(shop: Shop) -> None:
    """Before an agent runs."""
    with pytest.raises(SpecError) as raised:
        to_openai_agents(shop.engine, tools="shop.pay")

    assert str(raised.value) == "to_openai_agents: tools: shop.pay matches no tool that may be called here"


def test_the_error_without_the_framework_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only importing the adapter needs the framework."""
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "neuroscript.interop.openai_agents")
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module("neuroscript.interop.openai_agents")

    assert str(raised.value) == (
        f"tools for the OpenAI Agents SDK need it; install it with: {install_hint('openai-agents')}"
    )
