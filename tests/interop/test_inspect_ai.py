"""Our tools in Inspect: a scripted model calls them in its loop, under our contract."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
    execute_tools,
    get_model,
)
from inspect_ai.tool import Tool, ToolCall, ToolDef, tool
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
from neuroscript.interop.inspect_ai import to_inspect_ai


@tool(name="shop__take")
def own() -> Tool:
    """Return Inspect's native tool for the same function."""

    async def execute(count: int, tags: list[str] | None = None) -> int:
        """Take things out of the shop.

        Args:
            count: How many.
            tags: What is written on them.
        """
        return take(count, tags)

    return execute


def read(messages: list[ChatMessage]) -> list[tuple[str, str]]:
    """Return what a model reads for each call: the text, or the error."""
    found = [each for each in messages if isinstance(each, ChatMessageTool)]
    return [("error", each.error.message) if each.error else ("ok", each.text) for each in found]


def run(tools: list[Tool], *turns: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a scripted model reads that calls ``shop__take`` with these arguments, turn by turn."""
    calls = [ModelOutput.for_tool_call("mockllm/model", "shop__take", each) for each in turns]
    outputs = [*calls, ModelOutput.from_content("mockllm/model", "done")]
    for each in outputs:
        each.usage = ModelUsage()  # otherwise the model downloads a table to count tokens
    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    messages, _ = asyncio.run(model.generate_loop([ChatMessageUser(content="go")], tools=tools))
    return read(messages)


async def at_once(tools: list[Tool], *calls: tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what a model reads that requests several calls in one turn."""
    made = [ToolCall(id=f"c{at}", function=name, arguments=given) for at, (name, given) in enumerate(calls)]
    messages, _ = await execute_tools([ChatMessageAssistant(content="", tool_calls=made)], tools)
    return read(messages)


# Descriptions and values


def test_a_model_in_inspect_receives_the_contract() -> None:
    """Each parameter has a description, because Inspect requires one."""
    plain = Toolset("plain")
    plain.tool(name="bare")(_bare)
    with engine_of() as engine:
        engine.register(plain)
        second, first = map(ToolDef, to_inspect_ai(engine))

    assert (first.name, first.description) == ("shop__take", "Take things out of the shop.")
    assert first.parameters.model_dump(exclude_none=True) == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "How many."},
            "tags": {
                "type": ["array", "null"],
                "items": {"type": "string"},
                "description": "What is written on them.",
            },
        },
        "required": ["count"],
        "additionalProperties": False,
    }
    assert (second.name, second.description, second.parameters.properties["a"].description) == (
        "plain__bare",
        "plain__bare",
        "a",
    )


def _bare(a: int) -> int:
    return a


def test_values_are_exact_that_inspect_alone_rejects() -> None:
    """The native tool never receives them, and Inspect's error repeats the value."""
    with engine_of() as engine:
        ours, theirs = (run(tools, {"count": "2", "tags": '["a"]'}) for tools in (to_inspect_ai(engine), [own()]))

    assert SEEN == [(2, ["a"])]
    assert ours == [("ok", "2")]
    assert theirs == [
        (
            "error",
            "Found 2 validation errors parsing tool input arguments:\n"
            "- '2' is not of type 'integer'\n"
            "- '[\"a\"]' is not valid under any of the given schemas",
        )
    ]


def test_a_model_fixes_its_call_with_the_error_message() -> None:
    """Every message about arguments is ours: it names them, and contains no value."""
    with engine_of() as engine:
        answers = run(to_inspect_ai(engine), {"count": "two"}, {"cuont": 2}, {"count": "2"})

    remedy = "Fix the arguments and call again."
    assert answers == [
        (
            "error",
            f"error coercion.format: count: expected int, got str (a string must be a decimal integer, such as 42). {remedy}",
        ),
        (
            "error",
            "error arg.invalid: count: expected int, got nothing; "
            f"cuont: expected only count, tags, got an unknown name of type int (did you mean count?). {remedy}",
        ),
        ("ok", "2"),
    ]


@pytest.mark.parametrize("name", ["self", "call", "kwargs", "arguments"])
def test_an_argument_may_have_a_name_that_the_adapter_uses(name: str) -> None:
    """It arrives as the model sent it."""
    SEEN.clear()
    odd = Toolset("odd")
    odd.add(ToolSpec("t", "odd", (ArgSpec(name, "int"),)), lambda rt, *values: SEEN.append(values))
    with Engine(toolsets=[odd], plugins="none") as engine:
        asyncio.run(at_once(to_inspect_ai(engine), ("odd__t", {name: "2"})))

    assert SEEN == [(2,)]


@pytest.mark.parametrize(
    ("rule", "sent", "got"),
    [
        ("blob", {"$base64": "AAE="}, b"\0\1"),
        ("slice_int", "[1, 2]", [1, 2]),
        ("map_string_float", {"a": "1.5"}, {"a": 1.5}),
        ("embedding", [1, 2.5], [1.0, 2.5]),
        ("entityid", {"id": "E_1"}, {"id": "E_1"}),
        ("any", [None, {"a": 1}], [None, {"a": 1}]),
    ],
    ids=str,
)
def test_exact_values_of_every_type_pass_the_check_of_inspect(rule: str, sent: Any, got: Any) -> None:
    """Inspect validates them with the schema that the model received."""
    SEEN.clear()
    odd = Toolset("odd")
    odd.add(ToolSpec("t", "odd", (ArgSpec("a", rule),)), lambda rt, a: SEEN.append(a))
    with Engine(toolsets=[odd], plugins="none") as engine:
        asyncio.run(at_once(to_inspect_ai(engine), ("odd__t", {"a": sent})))

    assert [list(each) if rule == "embedding" else each for each in SEEN] == [got]


def test_strict_mode_of_the_engine_applies() -> None:
    """The adapter does not coerce values first."""
    with engine_of(mode="strict") as engine:
        answers = run(to_inspect_ai(engine), {"count": "2"}, {"count": 2})

    text = "error coercion.type: count: expected int, got str. Fix the arguments and call again."
    assert (answers, SEEN) == ([("error", text), ("ok", "2")], [(2, None)])


def test_rules_that_inspect_cannot_express_are_still_checked() -> None:
    """Models receive as much of an imported schema as Inspect can express."""
    schema = {"type": "object", "properties": {"a": True, "b": {"type": "integer", "multipleOf": 2}}, "required": ["b"]}
    odd = Toolset("odd")
    odd.add(spec_from_schema("odd.t", schema), lambda rt, a, b: b)
    with Engine(toolsets=[odd], plugins="none") as engine:
        tools = to_inspect_ai(engine)
        answers = asyncio.run(at_once(tools, ("odd__t", {"b": "3"}), ("odd__t", {"a": [1], "b": "4"})))

    text = "error schema.multipleOf: b: expected a multiple of 2, got int. Fix the arguments and call again."
    assert answers == [("error", text), ("ok", "4")]


def test_an_imported_schema_may_omit_properties() -> None:
    """The tool then has no arguments."""
    odd = Toolset("odd")
    odd.add(spec_from_schema("odd.t", {"type": "object"}), lambda rt: "done")
    with Engine(toolsets=[odd], plugins="none") as engine:
        answers = asyncio.run(at_once(to_inspect_ai(engine), ("odd__t", {})))

    assert answers == [("ok", "done")]


# Permissions


def test_a_denied_tool_stays_denied() -> None:
    """It is not offered; the loop reports it as unknown, and selecting it by name is an error for the host."""
    with engine_of() as engine, engine.session(policy=ExecutionPolicy(deny=("shop.take",))) as session:
        offered = to_inspect_ai(session)
        answers = run(offered, {"count": 2})
        with pytest.raises(SpecError) as caught:
            to_inspect_ai(session, tools="shop.take")

    assert (offered, answers, SEEN) == ([], [("error", "Tool shop__take not found")], [])
    assert str(caught.value) == "to_inspect_ai: tools: shop.take matches no tool that may be called here"


def test_policy_and_audit_see_the_exact_values() -> None:
    """A numeric string is a number for the policy, and a refused call is recorded too."""
    records: list[Any] = []

    class Kept:
        intents = False

        def write(self, record: Any) -> None:
            records.append((record.code, record.types))

        def close(self) -> None:
            pass

    needs, grants = ToolPolicy(capabilities=("shop:take:{count}",)), ExecutionPolicy(grants=("shop:take:2",))
    with engine_of(needs, policy=grants, audit=Kept()) as engine:
        answers = run(to_inspect_ai(engine), {"count": "2"}, {"count": "3"}, {"count": "x"})

    assert SEEN == [(2, None)]
    assert records == [("ok", (int, type(None))), ("policy.capability", (int, type(None))), ("coercion.format", ())]
    assert answers[:2] == [
        ("ok", "2"),
        (
            "error",
            "error policy.capability: needs shop:take. Only the host can change that; do not repeat this call.",
        ),
    ]


def test_an_unapproved_call_is_refused() -> None:
    """The approver sees the exact value."""
    requests: list[Any] = []

    def refuse(request: ApprovalRequest) -> Approval:
        requests.append(dict(request.arguments))
        return Approval.reject()

    with engine_of(ToolPolicy(requires_approval=True), policy=ExecutionPolicy(approver=refuse)) as engine:
        answers = run(to_inspect_ai(engine), {"count": "2"})

    text = "error policy.rejected: was not approved. This call cannot succeed; do not repeat it."
    assert (answers, SEEN, requests) == ([("error", text)], [], [{"count": 2, "tags": None}])


# Execution


def test_calls_of_read_only_tools_run_concurrently() -> None:
    """Each waits for the other; tools with side effects run one at a time."""
    together = asyncio.Barrier(2)
    pair = Toolset("pair")

    @pair.tool(policy=ToolPolicy(effects=("reads",)))
    async def meet(n: int) -> int:
        """Meet."""
        async with asyncio.timeout(10), together:
            return n

    pair.tool(policy=ToolPolicy(effects=("writes",)))(take)
    pair.tool(name="bare")(_bare)
    with Engine(toolsets=[pair], plugins="none") as engine:
        tools = to_inspect_ai(engine, tools="pair.*")
        answers = asyncio.run(at_once(tools, ("pair__meet", {"n": 1}), ("pair__meet", {"n": 2})))

    assert answers == [("ok", "1"), ("ok", "2")]
    assert {each.name: each.parallel for each in map(ToolDef, tools)} == {
        "pair__meet": True,
        "pair__take": False,
        "pair__bare": False,
    }


def test_cancelling_a_task_ends_its_call() -> None:
    """The tool is cancelled at once, and no result is invented."""
    ended = asyncio.run(is_cancelled(lambda engine: at_once(to_inspect_ai(engine), ("slow__wait", {}))))
    with warnings.catch_warnings(action="ignore"):  # Inspect leaves a stream open, and anyio warns about it
        gc.collect()

    assert (ended, SEEN) == (True, ["cancelled"])
