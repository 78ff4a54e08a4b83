"""Our tools in LangChain: a scripted model calls them in the loop of its agents, and our contract decides."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import StructuredTool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from tests.interop.langchain_agent import arun, asking, run
from tests.interop.offered_take import SEEN, engine_of, is_cancelled, take

from neuroscript import (
    ApprovalRequest,
    ArgSpec,
    Engine,
    ExecutionPolicy,
    SpecError,
    ToolPolicy,
    Toolset,
    ToolSpec,
    spec_from_schema,
)
from neuroscript.approval.request import Approval
from neuroscript.interop.langchain import to_langchain


def read(messages: list[Any]) -> list[tuple[str, str]]:
    """Return what a model reads of each call: whether it went well, and its text."""
    return [(each.status, each.content) for each in messages]


# What a tool is told and gives


def test_a_model_of_langchain_is_told_the_contract() -> None:
    """The name without a dot, what it does, and the arguments as JSON Schema."""
    with engine_of() as engine:
        (given,) = to_langchain(engine)

    assert convert_to_openai_tool(given) == {
        "type": "function",
        "function": {
            "name": "shop__take",
            "description": "Take things out of the shop.",
            "parameters": {
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "description": "How many."},
                    "tags": {
                        "type": ["array", "null"],
                        "items": {"type": "string"},
                        "description": "What is written on them.",
                        "default": None,
                    },
                },
                "required": ["count"],
                "additionalProperties": False,
            },
        },
    }


def test_values_arrive_exact_that_langchain_delivers_as_they_came() -> None:
    """LangChain hands on what is no model of Pydantic; we coerce it, and the artifact is the value."""
    call = asking(("shop__take", {"count": "2", "tags": '["a"]'}))
    with engine_of() as engine:
        (ours,) = to_langchain(engine)
        theirs = StructuredTool.from_function(take, name="shop__take", args_schema=ours.args_schema)
        (answer,), (other,) = run([ours], call), run([theirs], call)

    assert SEEN == [(2, ["a"]), ("2", '["a"]')]
    assert (answer.content, answer.artifact, other.content) == ("2", 2, "2")


def test_an_argument_that_nobody_knows_is_refused_where_langchain_drops_it() -> None:
    """Dropped, the call would do something else than the model thinks."""
    call = asking(("take", {"count": 2, "tag": ["a"]}))
    with engine_of() as engine:
        theirs = run([tool(take)], call)
        ours = run(to_langchain(engine), asking(("shop__take", {"count": 2, "tag": ["a"]})))

    assert SEEN == [(2, None)]
    assert read(theirs) == [("success", "2")]
    assert read(ours) == [
        (
            "error",
            "error arg.unknown: tag: expected only count, tags, got an unknown name of type list (did you mean tags?). "
            "Fix the arguments and call again.",
        )
    ]


def test_a_model_mends_its_call_by_what_the_error_says() -> None:
    """The text names the argument and what to do, and no value."""
    turns = [asking(("shop__take", {"count": given})) for given in ("two", "2")]
    with engine_of() as engine:
        answers = read(run(to_langchain(engine), *turns))

    text = "count: expected int, got str (a string must be a decimal integer, such as 42). Fix the arguments and call again."
    assert answers == [("error", f"error coercion.format: {text}"), ("success", "2")]


@pytest.mark.parametrize("name", ["self", "config", "run_manager", "callbacks", "args", "kwargs", "tool_call_id"])
def test_an_argument_may_be_called_as_langchain_calls_its_own(name: str) -> None:
    """It arrives as the model sent it."""
    SEEN.clear()
    odd = Toolset("odd")
    odd.add(ToolSpec("t", "odd", (ArgSpec(name, "int"),)), lambda rt, *values: SEEN.append(values))
    with Engine(toolsets=[odd], plugins="none") as engine:
        run(to_langchain(engine), asking(("odd__t", {name: "2"})))

    assert SEEN == [(2,)]


def test_a_schema_of_others_may_speak_of_no_arguments() -> None:
    """Then there are none, for LangChain's own view of them too."""
    odd = Toolset("odd")
    odd.add(spec_from_schema("odd.t", {"type": "object"}), lambda rt: "done")
    with Engine(toolsets=[odd], plugins="none") as engine:
        (given,) = to_langchain(engine)
        answers = read(run([given], asking(("odd__t", {}))))

    assert (given.args, answers) == ({}, [("success", "done")])


# What is permitted


def test_a_denied_tool_stays_denied() -> None:
    """It is not offered; asked for anyway, the loop knows no such tool, and named it is a mistake of the host."""
    with engine_of() as engine, engine.session(policy=ExecutionPolicy(deny=("shop.take",))) as session:
        offered = to_langchain(session)
        answers = read(run(offered, asking(("shop__take", {"count": 2}))))
        with pytest.raises(SpecError) as caught:
            to_langchain(session, tools="shop.take")

    assert (offered, SEEN) == ([], [])
    assert answers == [("error", "Error: shop__take is not a valid tool, try one of [].")]
    assert str(caught.value) == "to_langchain: tools: shop.take matches no tool that may be called here"


def test_policy_and_audit_see_what_the_tool_is_called_with() -> None:
    """A text that says a number is that number for whoever decides, and for the record."""
    records: list[Any] = []

    class Kept:
        intents = False

        def write(self, record: Any) -> None:
            records.append(record)

        def close(self) -> None:
            pass

    needs, grants = ToolPolicy(capabilities=("shop:take:{count}",)), ExecutionPolicy(grants=("shop:take:2",))
    turn = asking(("shop__take", {"count": "2"}), ("shop__take", {"count": "3"}))
    with engine_of(needs, policy=grants, audit=Kept()) as engine:
        answers = read(run(to_langchain(engine), turn))

    assert SEEN == [(2, None)]
    assert {(each.code, each.types) for each in records} == {
        ("ok", (int, type(None))),
        ("policy.capability", (int, type(None))),
    }
    assert answers == [
        ("success", "2"),
        (
            "error",
            "error policy.capability: needs shop:take. Only the host can change that; do not repeat this call.",
        ),
    ]


def test_a_call_that_nobody_approves_is_refused() -> None:
    """The approver sees the exact value; a model is told that only the host can change that."""
    asked: list[Any] = []

    def refuse(request: ApprovalRequest) -> Approval:
        asked.append(dict(request.arguments))
        return Approval.reject()

    with engine_of(ToolPolicy(requires_approval=True), policy=ExecutionPolicy(approver=refuse)) as engine:
        answers = read(run(to_langchain(engine), asking(("shop__take", {"count": "2"}))))

    text = "error policy.rejected: was not approved. This call cannot succeed; do not repeat it."
    assert (answers, SEEN, asked) == ([("error", text)], [], [{"count": 2, "tags": None}])


def test_a_tool_that_nobody_can_approve_is_not_offered() -> None:
    """Where no approver is, a model would ask in vain."""
    with engine_of(ToolPolicy(requires_approval=True)) as engine:
        offered = to_langchain(engine)

    assert offered == []


# How calls are made


def test_an_error_is_raised_where_a_host_says_so() -> None:
    """LangChain's own switch holds; the error tells nothing of what stands behind it."""
    with engine_of() as engine:
        (given,) = to_langchain(engine)
        given.handle_tool_error = False
        with pytest.raises(ToolException) as caught:
            given.invoke({"count": None})

    text = "error arg.missing: count: expected int, got None. Fix the arguments and call again."
    assert (str(caught.value), caught.value.__cause__, caught.value.__context__) == (text, None, None)


def test_callbacks_are_told_of_a_call() -> None:
    """Of its start with what was sent, and of its end with the message."""
    told: list[Any] = []

    class Listener(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            told.append((serialized["name"], more["inputs"]))

        def on_tool_end(self, output: Any, **more: Any) -> None:
            told.append((output.tool_call_id, output.content))

    with engine_of() as engine:
        (given,) = to_langchain(engine)
        given.invoke(asking(("shop__take", {"count": "2"})).tool_calls[0], {"callbacks": [Listener()]})

    assert told == [("shop__take", {"count": "2"}), ("c1", "2")]


def test_calls_of_one_turn_run_at_once() -> None:
    """On threads and in one loop: each waits until the other is there too."""
    both, together = threading.Barrier(2, timeout=10), asyncio.Barrier(2)
    pair = Toolset("pair")
    pair.tool(policy=ToolPolicy(blocking=True))(_meeting(both))
    pair.tool()(_ameeting(together))
    with Engine(toolsets=[pair], plugins="none") as engine:
        tools = to_langchain(engine)
        waited = read(run(tools, asking(("pair__meet", {"n": 1}), ("pair__meet", {"n": 2}))))
        awaited = read(asyncio.run(arun(tools, asking(("pair__ameet", {"n": 1}), ("pair__ameet", {"n": 2})))))

    assert waited == awaited == [("success", "1"), ("success", "2")]


def _meeting(both: threading.Barrier) -> Any:
    def meet(n: int) -> int:
        """Meet."""
        both.wait()
        return n

    return meet


def _ameeting(together: asyncio.Barrier) -> Any:
    async def ameet(n: int) -> int:
        """Meet in one loop."""
        async with asyncio.timeout(10), together:
            return n

    return ameet


def test_a_task_that_is_cancelled_ends_its_call() -> None:
    """The tool is told at once, and no answer is made up."""
    ended = asyncio.run(is_cancelled(lambda engine: arun(to_langchain(engine), asking(("slow__wait", {})))))

    assert (ended, SEEN) == (True, ["cancelled"])
