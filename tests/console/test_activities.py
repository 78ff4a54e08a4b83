"""Activities: their events reach pages that connect late, again, or from another thread."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from neuroscript.console import activities
from neuroscript.console.activities import Activities, Activity, TooManyActivities


async def received(activity: Activity, after: int = 0) -> list[Any]:
    """Return the HTML of all events, and the number of the last one."""
    events = [each async for each in activity.stream(after)]
    html = [json.loads(each.partition("data: ")[2])["html"] for each in events if each.startswith("id:")]
    return [*html, events[-1]]


def test_each_reader_receives_all_events() -> None:
    """A reader that connects again receives those that it lacks."""

    async def work(activity: Activity) -> None:
        for number in range(3):
            activity.emit(f"<p>{number}</p>")
            await asyncio.sleep(0)
        await asyncio.to_thread(activity.emit, "<p>thread</p>")

    async def main() -> list[list[Any]]:
        activity = Activities().start("tools", "a call", work)
        first = await received(activity)
        return [first, await received(activity, 3)]

    first, again = asyncio.run(main())

    assert first == ["<p>0</p>", "<p>1</p>", "<p>2</p>", "<p>thread</p>", "event: end\nid: 4\ndata: \n\n"]
    assert again == ["<p>thread</p>", "event: end\nid: 4\ndata: \n\n"]


def test_failure_is_shown_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    """The text may contain a value; the log names the type."""

    async def work(activity: Activity) -> None:
        raise RuntimeError("hunter2")

    async def main() -> list[Any]:
        return await received(Activities().start("tools", "a call", work))

    events = asyncio.run(main())

    assert "internal error" in events[0]
    assert "hunter2" not in str(events)
    assert caplog.messages == ["an activity failed (RuntimeError)"]


def test_cancelled_activity_ends() -> None:
    """Its readers learn that it has ended."""

    async def main() -> tuple[bool, list[Any]]:
        activity = Activities().start("tools", "a call", lambda _: asyncio.sleep(60))
        await asyncio.sleep(0)
        activity.cancel()
        await activity.wait()
        return activity.finished, await received(activity)

    assert asyncio.run(main()) == (True, ["event: end\nid: 0\ndata: \n\n"])


def test_number_of_events_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later additions are counted; the latest state of an element is still sent."""
    monkeypatch.setattr(activities, "MAX_EVENTS", 3)

    async def work(activity: Activity) -> None:
        activity.emit("<p>state 0</p>", target="state", mode="replace")
        for number in range(5):
            activity.emit(f"<p>{number}</p>")
        activity.emit("<p>state 1</p>", target="state", mode="replace")

    async def main() -> tuple[list[Any], int]:
        activity = Activities().start("tools", "a call", work)
        return await received(activity), activity.omitted

    events, omitted = asyncio.run(main())

    assert events[:-1] == ["<p>0</p>", "<p>1</p>", "<p>state 1</p>"]
    assert omitted == 3


def test_number_of_activities_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished ones are forgotten, and running ones are refused."""
    monkeypatch.setattr(activities, "MAX_RUNNING", 2)
    monkeypatch.setattr(activities, "MAX_FINISHED", 1)

    async def nothing(activity: Activity) -> None:
        pass

    async def main() -> tuple[int, str]:
        known = Activities()
        for _ in range(4):
            await known.start("tools", "a call", nothing).wait()
        for _ in range(2):
            known.start("tools", "a call", lambda _: asyncio.sleep(60))
        with pytest.raises(TooManyActivities) as refused:
            known.start("tools", "a call", nothing)
        count = len(list(known))
        known.close()
        return count, str(refused.value)

    assert asyncio.run(main()) == (3, "2 activities are running; wait for one to end, or cancel one")
