"""The time toolset, through an engine as a caller would use it."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from neuroscript import ArgumentError, CallError, Engine, Host, Progress, ToolFailed


def code_of(engine: Engine, tool: str, args: list[Any]) -> str:
    with pytest.raises(CallError) as caught:
        engine.call(tool, args)
    assert caught.value.retry == "model"
    return caught.value.code


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Etc/GMT+12"])
def test_now_is_the_clock_with_microseconds_and_offset(engine: Engine, zone: str) -> None:
    """The text says the same moment in every zone, and its form is always of one length."""
    before = datetime.now(UTC)

    came = engine.call("time.now", [zone])

    assert before <= datetime.fromisoformat(came) <= datetime.now(UTC)
    assert len("2026-11-20T13:27:46.123456+00:00") == len(came)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "1970-01-01T01:00:00.000000+01:00"), (1782000000.25, "2026-06-21T02:00:00.250000+02:00")],
)
def test_now_is_told_by_the_hosts_clock(seconds: float, expected: str) -> None:
    """So that a host can stop it, or play a call again."""
    with Engine(plugins=["neuroscript-std"], host=Host(clock=lambda: seconds)) as engine:
        assert expected == engine.call("time.now", ["Europe/Berlin"])


def test_parse_reads_what_now_wrote(engine: Engine) -> None:
    """A moment that goes out as a text comes back as the same microsecond."""
    text = engine.call("time.now")

    seconds = engine.call("time.parse", [text])

    assert text == engine.call("time.format", [seconds])


PARSED = {
    "UTC": ("2026-11-20T13:27:46Z", 1795181266.0),
    "an offset": ("2026-11-20T13:27:46+05:45", 1795160566.0),
    "no offset, which is UTC": ("2026-11-20T13:27:46", 1795181266.0),
    "a fraction": ("1970-01-01T00:00:00.25+00:00", 0.25),
    "a date": ("1969-12-31", -86400.0),
    "a blank between": ("1970-01-01 01:00", 3600.0),
    "a date of a week": ("1970-W01-5", 86400.0),
    "the basic format": ("19700101T010000Z", 3600.0),
    "the first moment, before which there is none": ("0001-01-01T00:00:00+23:59", -62135683140.0),
    "the last moment": ("9999-12-31T23:59:59-23:59", 253402387139.0),
}


@pytest.mark.parametrize(("text", "expected"), PARSED.values(), ids=PARSED)
def test_a_date_and_time_becomes_seconds(engine: Engine, text: str, expected: float) -> None:
    """ISO 8601 as Python reads it, counted from 1970-01-01 UTC."""
    assert expected == engine.call("time.parse", [text])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-13-01",
        "2026-02-29",
        " 2026-11-20",
        "20:00",
        "1" * 15,
        "2026-11-20x10:00",
        "1795181266",
        "2026-11-20T13:27:46+24:00",
    ],
)
def test_another_text_is_no_date(engine: Engine, text: str) -> None:
    """The error says what to write and repeats nothing of the text."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("time.parse", [text])

    expected = "a date or a date and time in ISO 8601, such as 2026-11-20T13:27:46+00:00"
    assert f"time.parse: text: expected {expected}, got another text" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("time.bad_text", "model")


@pytest.mark.alone
def test_a_long_text_is_refused_quickly(engine: Engine) -> None:
    """A hostile text takes no longer than its length explains."""
    started = time.perf_counter()

    codes = {code_of(engine, "time.parse", [each * 100_000]) for each in ("1", "2026-11-20T", "-")}

    assert {"time.bad_text"} == codes
    assert time.perf_counter() - started < 0.2


FORMATTED = {
    "the default": ([0.5], "1970-01-01T00:00:00.500000+00:00"),
    "before 1970": ([-1], "1969-12-31T23:59:59.000000+00:00"),
    "a zone in summer": ([1782000000, "%H:%M %Z", "Europe/Berlin"], "02:00 CEST"),
    "a zone in winter": ([1795181266, "%H:%M %z", "Europe/Berlin"], "14:27 +0100"),
    "an offset with seconds": ([-5000000000, "%z %:z", "Europe/Amsterdam"], "+001932 +00:19:32"),
    "a year below 1000": ([-62135596800, "%Y %G %F"], "0001 0001 0001-01-01"),
    "the last second": ([253402300799, "%c|%x|%X"], "Fri Dec 31 23:59:59 9999|12/31/99|23:59:59"),
    "names are English": ([0, "%A %a %B %b"], "Thursday Thu January Jan"),
    "noon and midnight": ([43200, "%I %p"], "12 PM"),
    "a percent sign": ([0, "100%%"], "100%"),
    "other characters stay": ([0, "Jahr\t%Y\0\n☃"], "Jahr\t1970\0\n☃"),
    "an empty pattern": ([0, ""], ""),
}


@pytest.mark.parametrize(("args", "expected"), FORMATTED.values(), ids=FORMATTED)
def test_a_moment_is_written_as_the_pattern_says(engine: Engine, args: list[Any], expected: str) -> None:
    """The same on every platform: years have four digits, and names are those of no locale."""
    assert expected == engine.call("time.format", args)


def test_every_directive_means_what_python_means_by_it(engine: Engine) -> None:
    """For years of four digits Python's own strftime says the same, over many moments and offsets."""
    source = random.Random(8)
    pattern = "%a %A %w %d %b %B %m %y %Y %H %I %p %M %S %f %z %j %U %W %G %u %V %%"
    moments = [datetime(1900, 1, 1, tzinfo=UTC) + timedelta(seconds=source.randrange(10**10)) for _ in range(2000)]
    expected = [moment.strftime(pattern) for moment in moments]

    came = [engine.call("time.format", [moment.timestamp(), pattern]) for moment in moments]

    assert expected == came


@pytest.mark.parametrize("pattern", ["%", "%Y%", "%Q", "%-d", "%10Y", "%:", "%é", "%\n", "%E"])
def test_an_unknown_directive_is_refused(engine: Engine, pattern: str) -> None:
    """What C's strftime leaves to the platform is an error here, which lists what there is."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("time.format", [0, pattern])

    known = "% :z A a B b c d e F f G H I j M m p S T U u V W w X x Y y Z z"
    assert f"time.format: pattern: expected one of {known} behind each %, got something else" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("time.bad_pattern", "model")


def test_a_pattern_is_a_short_text(engine: Engine) -> None:
    """At most 200 characters, and none that is half of a pair."""
    longest = engine.call("time.format", [0, "%c" * 100])

    assert longest == "Thu Jan  1 00:00:00 1970" * 100
    assert code_of(engine, "time.format", [0, "x" * 201]) == "coercion.length"
    with pytest.raises(ArgumentError) as caught:
        engine.call("time.format", [0, "\ud800"])
    assert (caught.value.code, caught.value.retry) == ("coercion.encoding", "model")


@pytest.mark.parametrize("seconds", [253402300800, -62135596801, 1e20, -1e300, 1.7e308])
def test_a_moment_outside_the_calendar_is_refused(engine: Engine, seconds: float) -> None:
    """The years 1 to 9999 are all there are."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("time.format", [seconds])

    text = "time.format: seconds: expected a moment from the year 1 to 9999, got one outside"
    assert (text, "time.range", "model") == (str(caught.value), caught.value.code, caught.value.retry)


def test_a_moment_that_only_its_zone_puts_outside_is_refused(engine: Engine) -> None:
    """The last second of 9999 in UTC is already the next year further east."""
    assert code_of(engine, "time.format", [253402300799, "%Y", "Asia/Tokyo"]) == "time.range"


ZONES = {
    "nothing": "",
    "no zone": "Nowhere",
    "a directory of zones": "Europe",
    "a way round": "Europe/../UTC",
    "a file": "/etc/passwd",
    "a way out": "../UTC",
    "a zero byte": "UTC\0",
    "a blank": "Europe/Berlin ",
    "a long name": "x" * 100_000,
    "a long way": "x/" * 1000,
    "other data": "leapseconds",
    "all zones as a text": "tzdata.zi",
    "dots": "a.b/c",
    "no ASCII": "Zürich",
    "a dot": ".",
}


@pytest.mark.parametrize("zone", ZONES.values(), ids=ZONES)
@pytest.mark.parametrize(("tool", "args"), [("now", []), ("format", [0, "%Y"])], ids=["now", "format"])
def test_an_unknown_zone_is_refused(engine: Engine, tool: str, args: list[Any], zone: str) -> None:
    """A name that is none of the database's, a directory of it, or a way out of it."""
    with pytest.raises(ToolFailed) as caught:
        engine.call(f"time.{tool}", [*args, zone])

    text = f"time.{tool}: zone: expected a time zone, such as Europe/Berlin, got another text"
    assert text == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("time.bad_zone", "model")


def test_utc_needs_no_time_zone_database(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the platform has none, the default still works."""
    monkeypatch.setattr("zoneinfo.ZoneInfo", None)

    assert engine.call("time.now").endswith("+00:00")
    assert engine.call("time.format", [0, "%Z"]) == "UTC"


def test_sleep_takes_as_long_as_it_is_told(engine: Engine) -> None:
    """It really waits, and says True when the time is over."""
    started = time.monotonic()

    came = engine.call("time.sleep", ["0.05"])

    assert came is True
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize("seconds", [-0.001, 3600.5, 1e9])
def test_sleep_has_bounds(engine: Engine, seconds: float) -> None:
    """Neither below 0 nor above an hour, and the refusal comes before any waiting."""
    with pytest.raises(ArgumentError) as caught:
        engine.call("time.sleep", [seconds])

    expected = "time.sleep: duration_seconds: expected float from 0 to 3600, got float out of bounds"
    assert expected == str(caught.value)


def test_sleep_does_not_hold_up_the_loop_that_awaits_it(engine: Engine) -> None:
    """Other work of the loop goes on while it waits; held up, the sleep would be over before the first of it."""

    async def others_while_asleep() -> int:
        sleep = asyncio.create_task(engine.acall("time.sleep", [0.3]))
        others = 0
        while not sleep.done():
            others += 1
            await asyncio.sleep(0.01)
        assert await sleep is True
        return others

    assert asyncio.run(others_while_asleep()) > 3


@pytest.mark.alone
def test_sleeps_that_are_awaited_together_run_together(engine: Engine) -> None:
    """Ten of them take about as long as one."""

    async def ten() -> list[bool]:
        return await asyncio.gather(*(engine.acall("time.sleep", [0.1]) for _ in range(10)))

    started = time.monotonic()

    assert asyncio.run(ten()) == [True] * 10
    assert time.monotonic() - started < 0.9


def test_a_sleep_tells_how_far_it_is_and_ends_with_its_engine() -> None:
    """It reports whole seconds; when nobody waits any more it is over, an hour early."""
    told: list[Progress] = []
    failures: list[ToolFailed] = []
    begun = threading.Event()

    def tell(progress: Progress) -> None:
        told.append(progress)
        begun.set()

    def sleep() -> None:
        with pytest.raises(ToolFailed) as caught:
            engine.call("time.sleep", [3600])
        failures.append(caught.value)

    with Engine(plugins=["neuroscript-std"], host=Host(progress=tell)) as engine:
        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        begun.wait()
    sleeper.join()

    assert told == [Progress("time.sleep", 1, 3600, "")]
    assert [(str(each), each.code, each.retry) for each in failures] == [
        ("time.sleep: nobody waits for the result any more", "time.cancelled", "later")
    ]


@pytest.mark.parametrize("door", ["call", "acall"])
def test_a_sleep_that_would_end_too_late_does_not_begin(engine: Engine, door: str) -> None:
    """It is refused at once; waiting for the deadline would give a timeout."""
    with pytest.raises(ToolFailed) as caught:
        if door == "call":
            engine.call("time.sleep", [3600], timeout=5)
        else:
            asyncio.run(engine.acall("time.sleep", [3600], timeout=5))

    text = "time.sleep: duration_seconds: expected an end before the deadline of the call, got one behind it"
    assert (text, "time.deadline", "model") == (str(caught.value), caught.value.code, caught.value.retry)
    assert engine.call("time.sleep", [0.01], timeout=5) is True


def test_a_sleep_within_another_call_knows_its_deadline(engine: Engine) -> None:
    """Which is that of the outermost call."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("list.map", [[0, 3600], "time.sleep"], timeout=5)

    assert (caught.value.code, caught.value.retry) == ("time.deadline", "model")
    assert str(caught.value).startswith("list.map: list[1]: time.sleep: ")
