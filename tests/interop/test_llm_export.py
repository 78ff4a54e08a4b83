"""Tools of an engine in the Python API of ``llm``."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.interop.llm_calls import GIF, WRONG, engine_of, times
from tests.interop.llm_models import AsyncScripted, Scripted

from neuroscript import Approval, ApprovalRequest, Engine, ExecutionPolicy, SpecError, ToolPolicy
from neuroscript.audit import MemoryAudit
from neuroscript.interop.llm import to_llm


def test_arguments_are_exact_that_llm_alone_passes_unchanged() -> None:
    """On its own, ``llm`` checks nothing: the function receives a string instead of a number."""
    alone = Scripted([("times", {"text": "ab", "count": "2"})], "")
    alone.chain("", tools=[times]).text()
    model = Scripted([("g__times", {"text": "ab", "count": "2"})], "done")

    with engine_of(times) as engine:
        text = model.conversation().chain("Repeat it", tools=to_llm(engine)).text()

    assert alone.results == ["Error: can't multiply sequence by non-int of type 'str'"]
    assert (model.results, text) == (["abab"], "done")


def test_an_error_names_the_argument_and_the_model_fixes_its_call() -> None:
    """It reads our message after the prefix that ``llm`` adds to each error."""
    model = Scripted([("g__times", {"text": "ab", "count": "two"})], [("g__times", {"text": "ab", "count": 2.0})], "")

    with engine_of(times) as engine:
        model.chain("", tools=to_llm(engine)).text()

    assert model.results == [WRONG, "abab"]


def test_a_denied_tool_is_not_offered_and_cannot_be_called() -> None:
    """A pattern cannot select it either."""
    executed: list[str] = []

    def wipe() -> int:
        executed.append("wipe")
        return 1

    model = Scripted([("g__wipe", {})], "")
    with engine_of(times, wipe) as engine:
        denying = engine.session(policy=ExecutionPolicy(deny=["g.wipe"]))
        tools = to_llm(denying)
        model.chain("", tools=tools).text()
        with pytest.raises(SpecError) as caught:
            to_llm(denying, tools="g.wipe")
        with pytest.raises(SpecError):
            to_llm(denying, tools=["g.times", "h.*"])

    assert ([each.name for each in tools], executed) == (["g__times"], [])
    assert model.results == ['Error: tool "g__wipe" does not exist']
    assert str(caught.value) == "to_llm: tools: g.wipe matches no tool that may be called here"


def test_a_tool_of_a_stopped_session_is_refused() -> None:
    """The tool was offered before."""
    model = Scripted([("g__times", {"text": "a", "count": 1})], "")

    with engine_of(times) as engine, engine.session() as session:
        tools = to_llm(session)
        session._stop()
        model.chain("", tools=tools).text()

    assert model.results == [
        "Error: error policy.stopped: the session was stopped by an approver. "
        "Only the host can change that; do not repeat this call."
    ]


def test_approver_and_audit_log_see_the_exact_values() -> None:
    """The audit log contains the call."""
    requests: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approval:
        requests.append(request)
        return Approval.approve()

    audit = MemoryAudit()
    model = Scripted([("g__times", {"text": "ab", "count": "2"})], "")
    policy = ExecutionPolicy(approver=approve)

    with engine_of(times, needs=ToolPolicy(requires_approval=True), policy=policy, audit=audit) as engine:
        model.chain("", tools=to_llm(engine)).text()

    assert [each.arguments for each in requests] == [{"text": "ab", "count": 2}]
    assert [(each.tool, each.types) for each in audit.records if each.kind == "outcome"] == [("g.times", (str, int))]


def test_an_unapproved_call_is_refused() -> None:
    """Without an approver the tool is not offered."""
    model = Scripted([("g__times", {"text": "ab", "count": 2})], "")
    alone = Scripted([("g__times", {"text": "ab", "count": 2})], "")
    policy = ExecutionPolicy(approver=lambda request: Approval.reject("not today"))

    with engine_of(times, needs=ToolPolicy(requires_approval=True), policy=policy) as engine:
        model.chain("", tools=to_llm(engine)).text()
    with engine_of(times, needs=ToolPolicy(requires_approval=True)) as engine:
        alone.chain("", tools=to_llm(engine)).text()

    assert model.results == [
        "Error: error policy.rejected: was not approved: not today. This call cannot succeed; do not repeat it."
    ]
    assert alone.results == ['Error: tool "g__times" does not exist']


def test_calls_of_one_turn_run_concurrently_for_an_async_model() -> None:
    """Each waits for the other."""
    meeting = threading.Barrier(2, timeout=20)

    def meet(at: int) -> int:
        meeting.wait()
        return at

    model = AsyncScripted([("g__meet", {"at": "1"}), ("g__meet", {"at": "2"})], "done")

    async def run() -> str:
        return str(await model.conversation().chain("", tools=to_llm(engine, is_async=True)).text())

    with engine_of(meet, needs=ToolPolicy(blocking=True)) as engine:
        text = asyncio.run(run())

    assert (model.results, text) == (["1", "2"], "done")


def test_cancelling_a_task_cancels_its_calls() -> None:
    """The tool is cancelled and does not continue."""
    events: list[str] = []

    async def run() -> None:
        begun = asyncio.Event()

        async def wait() -> int:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise
            return 1

        async with engine_of(wait) as engine:
            tools = to_llm(engine, is_async=True)
            chain = AsyncScripted([("g__wait", {})], "").chain("", tools=tools)
            task = asyncio.ensure_future(chain.text())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())

    assert events == ["cancelled"]


def test_sync_and_async_tools_work_with_both_kinds_of_models() -> None:
    """Calls then run one after the other, and errors are the same."""
    sync, wrong = Scripted([("g__times", {"text": "a", "count": "2"})], ""), {"text": "a", "count": "x"}
    later = AsyncScripted([("g__times", {"text": "a", "count": "2"})], [("g__times", wrong)], "")

    async def run(engine: Engine) -> None:
        await later.chain("", tools=to_llm(engine)).text()

    with engine_of(times) as engine:
        sync.chain("", tools=to_llm(engine, is_async=True)).text()
        asyncio.run(run(engine))

    assert sync.results == ["aa"]
    assert later.results == ["aa", WRONG]


def test_a_sync_model_can_be_used_in_a_running_loop() -> None:
    """As in a notebook; a coroutine tool then runs in a loop of the engine."""

    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    async def cell(engine: Engine) -> str:
        return str(model.chain("", tools=to_llm(engine)).text())

    model = Scripted([("g__later", {"text": "tea"})], "done")
    with engine_of(later) as engine:
        text = asyncio.run(cell(engine))

    assert (model.results, text) == (["TEA"], "done")


def test_an_image_is_attached() -> None:
    """Other values are strings or JSON."""

    def draw() -> bytes:
        return GIF

    def numbers() -> dict[str, int]:
        return {"tea": 2}

    model = Scripted([("g__draw", {}), ("g__numbers", {})], "")
    with engine_of(draw, numbers) as engine:
        model.chain("", tools=to_llm(engine)).text()

    assert model.results == ["attached: image/gif", '{"tea": 2}']
    assert [(each.type, each.content) for each in model.attached] == [("image/gif", GIF)]


def test_a_tool_can_be_called_directly() -> None:
    """Without a model."""
    with engine_of(times) as engine:
        (tool,) = to_llm(engine)

        assert tool.implementation(text="ab", count="2").output == "abab"
