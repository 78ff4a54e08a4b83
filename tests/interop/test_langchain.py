"""Our tools in LangChain: a scripted model calls them in an agent loop, under our contract."""

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
    """Return what a model reads for each call: whether it succeeded, and its text."""
    return [(each.status, each.content) for each in messages]


# Descriptions and values


def test_a_langchain_model_receives_the_contract() -> None:
    """The name without a dot, the description, and the arguments as JSON Schema."""
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


def test_values_are_exact_that_langchain_passes_unchanged() -> None:
    """LangChain only converts Pydantic models; we coerce everything, and the artifact is the value."""
    call = asking(("shop__take", {"count": "2", "tags": '["a"]'}))
    with engine_of() as engine:
        (ours,) = to_langchain(engine)
        theirs = StructuredTool.from_function(take, name="shop__take", args_schema=ours.args_schema)
        (answer,), (other,) = run([ours], call), run([theirs], call)

    assert SEEN == [(2, ["a"]), ("2", '["a"]')]
    assert (answer.content, answer.artifact, other.content) == ("2", 2, "2")


def test_an_unknown_argument_is_refused_that_langchain_drops() -> None:
    """Without it, the call would not do what the model intended."""
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


def test_a_model_fixes_its_call_with_the_error_message() -> None:
    """The message names the argument and the fix, and contains no value."""
    turns = [asking(("shop__take", {"count": given})) for given in ("two", "2")]
    with engine_of() as engine:
        answers = read(run(to_langchain(engine), *turns))

    text = "count: expected int, got str (a string must be a decimal integer, such as 42). Fix the arguments and call again."
    assert answers == [("error", f"error coercion.format: {text}"), ("success", "2")]


@pytest.mark.parametrize("name", ["self", "config", "run_manager", "callbacks", "args", "kwargs", "tool_call_id"])
def test_an_argument_may_have_a_name_that_langchain_uses(name: str) -> None:
    """It arrives as the model sent it."""
    SEEN.clear()
    odd = Toolset("odd")
    odd.add(ToolSpec("t", "odd", (ArgSpec(name, "int"),)), lambda rt, *values: SEEN.append(values))
    with Engine(toolsets=[odd], plugins="none") as engine:
        run(to_langchain(engine), asking(("odd__t", {name: "2"})))

    assert SEEN == [(2,)]


def test_an_imported_schema_may_omit_properties() -> None:
    """The tool then has no arguments, in LangChain's own view too."""
    odd = Toolset("odd")
    odd.add(spec_from_schema("odd.t", {"type": "object"}), lambda rt: "done")
    with Engine(toolsets=[odd], plugins="none") as engine:
        (given,) = to_langchain(engine)
        answers = read(run([given], asking(("odd__t", {}))))

    assert (given.args, answers) == ({}, [("success", "done")])


# Permissions


def test_a_denied_tool_stays_denied() -> None:
    """It is not offered; the loop reports it as unknown, and selecting it by name is an error for the host."""
    with engine_of() as engine, engine.session(policy=ExecutionPolicy(deny=("shop.take",))) as session:
        offered = to_langchain(session)
        answers = read(run(offered, asking(("shop__take", {"count": 2}))))
        with pytest.raises(SpecError) as caught:
            to_langchain(session, tools="shop.take")

    assert (offered, SEEN) == ([], [])
    assert answers == [("error", "Error: shop__take is not a valid tool, try one of [].")]
    assert str(caught.value) == "to_langchain: tools: shop.take matches no tool that may be called here"


def test_policy_and_audit_see_the_exact_values() -> None:
    """A numeric string is a number for the policy and in the record."""
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


def test_an_unapproved_call_is_refused() -> None:
    """The approver sees the exact value; the error says that only the host can change that."""
    requests: list[Any] = []

    def refuse(request: ApprovalRequest) -> Approval:
        requests.append(dict(request.arguments))
        return Approval.reject()

    with engine_of(ToolPolicy(requires_approval=True), policy=ExecutionPolicy(approver=refuse)) as engine:
        answers = read(run(to_langchain(engine), asking(("shop__take", {"count": "2"}))))

    text = "error policy.rejected: was not approved. This call cannot succeed; do not repeat it."
    assert (answers, SEEN, requests) == ([("error", text)], [], [{"count": 2, "tags": None}])


def test_a_tool_without_an_approver_is_not_offered() -> None:
    """Without an approver, every call would be refused."""
    with engine_of(ToolPolicy(requires_approval=True)) as engine:
        offered = to_langchain(engine)

    assert offered == []


# Execution


def test_errors_are_raised_if_the_host_says_so() -> None:
    """LangChain's own switch applies; the error does not reveal its cause."""
    with engine_of() as engine:
        (given,) = to_langchain(engine)
        given.handle_tool_error = False
        with pytest.raises(ToolException) as caught:
            given.invoke({"count": None})

    text = "error arg.missing: count: expected int, got None. Fix the arguments and call again."
    assert (str(caught.value), caught.value.__cause__, caught.value.__context__) == (text, None, None)


def test_callbacks_receive_a_call() -> None:
    """Its start with the arguments, and its end with the message."""
    received: list[Any] = []

    class Listener(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            received.append((serialized["name"], more["inputs"]))

        def on_tool_end(self, output: Any, **more: Any) -> None:
            received.append((output.tool_call_id, output.content))

    with engine_of() as engine:
        (given,) = to_langchain(engine)
        given.invoke(asking(("shop__take", {"count": "2"})).tool_calls[0], {"callbacks": [Listener()]})

    assert received == [("shop__take", {"count": "2"}), ("c1", "2")]


def test_calls_of_one_turn_run_concurrently() -> None:
    """On threads and in one loop: each waits for the other."""
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


def test_cancelling_a_task_ends_its_call() -> None:
    """The tool is cancelled at once, and no result is invented."""
    ended = asyncio.run(is_cancelled(lambda engine: arun(to_langchain(engine), asking(("slow__wait", {})))))

    assert (ended, SEEN) == (True, ["cancelled"])
