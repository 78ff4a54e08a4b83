"""The inbox: the first answer counts, and every request ends in exactly one way."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.approval.approval_cases import request
from tests.console.approvals.desks import in_thread, opened_desk, until
from tests.races import raced

from neuroscript import Approval, CallTimeout, PolicyError, SpecError
from neuroscript.console import Inbox, inbox
from neuroscript.console.inbox import EndedRequest, WaitingRequest

DELETE = {"name": "desk.delete", "arguments": {"path": "a"}}


@pytest.mark.parametrize(
    ("answer", "text", "ran"),
    [
        (Approval.approve(), "deleted a", [("a", False)]),
        (Approval.modify({"path": "b", "force": True}), "deleted b", [("b", True)]),
        (Approval.reject("not now"), "desk.delete: was not approved: not now", []),
        (Approval.stop(), "desk.delete: was not approved, and the session was stopped", []),
    ],
    ids=["approve", "modify", "reject", "stop"],
)
def test_sync_call_receives_the_answer(answer: Approval, text: str, ran: list[Any]) -> None:
    """A call in a thread waits until a user answers."""
    with opened_desk() as desk:
        call = in_thread(lambda: desk.engine.session().execute(DELETE))
        (waiting,) = desk.waiting()
        receipt = desk.answer(waiting, answer)

        result = call.result()
        assert (text, ran) == (str(result.error) if result.error else result.value, desk.ran)
        assert ("counted", "ada", 0) == (receipt.status, receipt.ended.by, len(desk.inbox))


def test_async_call_receives_the_answer_from_another_thread() -> None:
    """The event loop of the call is not blocked while it waits."""

    async def run() -> tuple[Any, Any]:
        with opened_desk() as desk:
            calls = [asyncio.create_task(desk.engine.aexecute({"name": "desk.wipe", "arguments": [n]})) for n in (1, 2)]
            while len(desk.inbox) < 2:
                await asyncio.sleep(0.001)
            for waiting in desk.inbox.waiting:
                await asyncio.to_thread(desk.answer, waiting, Approval.approve())
            return [(await call).value for call in calls], sorted(desk.ran)

    assert ([1, 2], [1, 2]) == asyncio.run(run())


def test_later_answer_learns_who_answered() -> None:
    """It does not count, and receives what the first one was."""
    with opened_desk() as desk:
        call = in_thread(lambda: desk.engine.execute(DELETE))
        (waiting,) = desk.waiting()
        desk.answer(waiting, Approval.reject("in use"), by="ada")
        late = desk.answer(waiting, Approval.approve(), by="bob")
        call.result()

        assert ("ended", "rejected", "ada", "in use") == (
            late.status,
            late.ended.outcome,
            late.ended.by,
            late.ended.reason,
        )
        assert [] == desk.ran


def test_one_of_many_answers_counts() -> None:
    """Threads that answer at the same moment: one counts, and all others learn which one."""
    with opened_desk() as desk:
        for _ in range(10):
            call = in_thread(lambda: desk.engine.session().execute(DELETE))
            (waiting,) = desk.waiting()
            receipts: list[tuple[str, Any]] = []

            def answer(number: int, waiting: Any = waiting, receipts: Any = receipts) -> None:
                receipts.append((f"user {number}", desk.answer(waiting, Approval.approve(), by=f"user {number}")))

            raced(8, answer, {inbox.__file__}, 0.3)
            assert call.result().value == "deleted a"

            winners = [name for name, receipt in receipts if receipt.status == "counted"]
            assert len(winners) == 1
            assert {(receipt.ended.by) for _, receipt in receipts} == {*winners}
        assert len(desk.ran) == 10


def test_every_request_of_many_calls_ends_once() -> None:
    """Calls, answers and cancellations at the same time: each listener hears of one end for each request."""
    changes: list[Any] = []
    with opened_desk() as desk:
        desk.inbox.subscribe(changes.append)

        def work(number: int) -> None:
            for at in range(5):
                desk.engine.session().execute({"name": "desk.delete", "arguments": [f"{number}/{at}"]})

        calls = [in_thread(lambda number=number: work(number)) for number in range(3)]  # type: ignore[misc]
        while any(call.thread.is_alive() for call in calls):
            for waiting in desk.inbox.waiting:
                raced(3, lambda number, waiting=waiting: desk.answer(waiting, Approval.approve()), (), 0.0)  # type: ignore[misc]

        order = {id: [type(each) for each in changes if each.id == id] for id in {each.id for each in changes}}
        assert 15 == len(order) == len(desk.ran)
        assert all(kinds == [WaitingRequest, EndedRequest] for kinds in order.values())


def test_request_expires() -> None:
    """The call is rejected with the reason, and the inbox remembers it."""
    with opened_desk(timeout_seconds=0.05) as desk:
        result = desk.engine.execute(DELETE)

        assert "desk.delete: was not approved: no user answered within 0.05 s" == str(result.error)
        assert ["expired"] == [each.outcome for each in desk.inbox.ended]


def test_cancelled_call_withdraws_its_request() -> None:
    """Nothing waits any more, and an answer comes too late."""

    async def run() -> tuple[Any, ...]:
        with opened_desk() as desk:
            call = asyncio.create_task(desk.engine.aexecute(DELETE))
            while not desk.inbox.waiting:
                await asyncio.sleep(0.001)
            (waiting,) = desk.inbox.waiting
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return desk.answer(waiting, Approval.approve()).ended.outcome, desk.ran

    assert ("withdrawn", []) == asyncio.run(run())


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_closed_session_withdraws_its_requests(is_async: bool) -> None:
    """The call is refused, and the requests of other sessions wait on."""
    with opened_desk() as desk:
        session, other = desk.engine.session(), desk.engine.session()
        call = in_thread(lambda: asyncio.run(session.aexecute(DELETE)) if is_async else session.execute(DELETE))
        rest = in_thread(lambda: other.execute(DELETE))
        desk.waiting(2)
        session.close()

        error = call.result().error
        text = "desk.delete: was not approved before its session was closed"
        assert ("engine.closed", "never", text) == (error.code, error.retry, str(error))
        (left,) = desk.waiting()
        assert other.id == left.request.session
        desk.answer(left, Approval.approve())
        assert rest.result().ok


def test_stopped_session_withdraws_its_other_requests() -> None:
    """An approver that stops a session ends everything that waits in it."""
    with opened_desk() as desk:
        session = desk.engine.session()
        calls = [in_thread(lambda: session.execute(DELETE)) for _ in range(2)]
        first, _ = desk.waiting(2)
        desk.answer(first, Approval.stop("enough"))

        errors = [call.result().error for call in calls]
        assert {("policy.stopped", "never")} == {(error.code, error.retry) for error in errors}
        assert {"stopped", "withdrawn"} == {each.outcome for each in desk.inbox.ended}
        assert [] == desk.ran


def test_call_whose_time_is_over_withdraws_its_request() -> None:
    """The tool that made the call has timed out, so an answer could not be used."""
    with opened_desk() as desk:
        result = desk.engine.execute({"name": "desk.within"})

        assert isinstance(result.error, CallTimeout)
        until(lambda: desk.inbox.ended)
        assert (["withdrawn"], []) == ([each.outcome for each in desk.inbox.ended], desk.ran)


def test_closing_the_engine_withdraws_all_requests() -> None:
    """The calls end, and their tools do not run."""
    with opened_desk() as desk:
        call = in_thread(lambda: desk.engine.execute(DELETE))
        desk.waiting()
        desk.engine.close(grace=0.0)

        error = call.result().error
        assert ("engine.closed", "never") == (error.code, error.retry)
        until(lambda: not len(desk.inbox))
        assert [] == desk.ran


def test_requests_beyond_the_maximum_are_rejected() -> None:
    """The reason says so, and the requests that wait are not affected."""
    with opened_desk(max_requests=1) as desk:
        call = in_thread(lambda: desk.engine.session().execute(DELETE))
        (waiting,) = desk.waiting()
        result = desk.engine.session().execute(DELETE)
        desk.answer(waiting, Approval.approve())

        reason = "1 requests wait for an approval already; try again later"
        assert f"desk.delete: was not approved: {reason}" == str(result.error)
        assert call.result().ok


def test_answer_to_another_digest_does_not_count() -> None:
    """The request still waits."""
    with opened_desk() as desk:
        call = in_thread(lambda: desk.engine.execute(DELETE))
        (waiting,) = desk.waiting()
        receipt = desk.inbox.answer(waiting.id, Approval.approve(), digest="0" * 64)

        assert ("changed", 1, []) == (receipt.status, len(desk.inbox), desk.ran)
        desk.answer(waiting, Approval.reject())
        call.result()


def test_approval_for_the_session_is_remembered() -> None:
    """The same call of the same session does not wait again."""
    with opened_desk() as desk:
        session = desk.engine.session()
        call = in_thread(lambda: session.execute(DELETE))
        (waiting,) = desk.waiting()
        desk.answer(waiting, Approval.approve(for_session=True))
        call.result()

        assert session.execute(DELETE).value == "deleted a"
        assert ["approved_for_session"] == [each.outcome for each in desk.inbox.ended]


def test_ended_requests_hold_no_arguments_and_are_bounded() -> None:
    """The inbox remembers the last ones, without values."""
    with opened_desk() as desk:
        for number in range(inbox.MAX_ENDED + 5):
            call = in_thread(lambda: desk.engine.execute({"name": "desk.delete", "arguments": ["hunter2"]}))
            (waiting,) = desk.waiting()
            desk.answer(waiting, Approval.reject(str(number)))
            call.result()

        assert (inbox.MAX_ENDED, str(inbox.MAX_ENDED + 4)) == (len(desk.inbox.ended), desk.inbox.ended[0].reason)
        assert "hunter2" not in repr(desk.inbox.ended)


def test_failing_listener_affects_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and other listeners hear the change."""
    heard: list[Any] = []

    def fail(change: object) -> None:
        raise RuntimeError("listener")

    with opened_desk(timeout_seconds=0.05) as desk, caplog.at_level(logging.ERROR):
        stop = desk.inbox.subscribe(fail)
        desk.inbox.subscribe(heard.append)
        desk.engine.execute(DELETE)
        stop()
        desk.engine.execute(DELETE)

        assert (4, 2) == (len(heard), sum("listener of the inbox" in each.message for each in caplog.records))


def test_invalid_answers_are_rejected() -> None:
    """An inbox neither suspends calls nor approves information flows for a session."""

    async def run() -> None:
        desk = Inbox()
        call = asyncio.ensure_future(desk(request(flows=("sends data to outside",))))
        await asyncio.sleep(0)
        (waiting,) = desk.waiting
        for approval in (Approval.suspend(), Approval.approve(for_session=True)):
            with pytest.raises(SpecError):
                desk.answer(waiting.id, approval, digest=waiting.request.digest)
        desk.answer(waiting.id, Approval.approve(), digest=waiting.request.digest)
        assert await call == Approval.approve()

    asyncio.run(run())


def test_engine_error_of_a_plain_call_is_raised() -> None:
    """Direct calls raise the refusal."""
    with opened_desk(timeout_seconds=0.05) as desk, pytest.raises(PolicyError, match="no user answered"):
        desk.engine.call("desk.delete", ["a"])
