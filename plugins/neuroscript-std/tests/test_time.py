"""The time toolset, called through an engine."""

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
def test_now_returns_iso_8601(engine: Engine, zone: str) -> None:
    """With microseconds and an offset, the same moment in every zone, and always the same length."""
    before = datetime.now(UTC)

    result = engine.call("time.now", [zone])

    assert before <= datetime.fromisoformat(result) <= datetime.now(UTC)
    assert len("2026-11-20T13:27:46.123456+00:00") == len(result)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "1970-01-01T01:00:00.000000+01:00"), (1782000000.25, "2026-06-21T02:00:00.250000+02:00")],
)
def test_now_uses_the_host_clock(seconds: float, expected: str) -> None:
    """So a host can stop it or replay a call."""
    with Engine(plugins=["neuroscript-std"], host=Host(clock=lambda: seconds)) as engine:
        assert expected == engine.call("time.now", ["Europe/Berlin"])


def test_parse_reverses_now(engine: Engine) -> None:
    """To the microsecond."""
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
    "the earliest moment": ("0001-01-01T00:00:00+23:59", -62135683140.0),
    "the last moment": ("9999-12-31T23:59:59-23:59", 253402387139.0),
}


@pytest.mark.parametrize(("text", "expected"), PARSED.values(), ids=PARSED)
def test_parse(engine: Engine, text: str, expected: float) -> None:
    """ISO 8601 as Python parses it, in seconds since 1970-01-01 UTC."""
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
def test_invalid_dates_are_refused(engine: Engine, text: str) -> None:
    """The error says what is expected and quotes nothing."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("time.parse", [text])

    expected = "a date or a date and time in ISO 8601, such as 2026-11-20T13:27:46+00:00"
    assert f"time.parse: text: expected {expected}, got another string" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("time.bad_text", "model")


@pytest.mark.alone
def test_long_string_is_refused_quickly(engine: Engine) -> None:
    """In time linear in its length."""
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
def test_format(engine: Engine, args: list[Any], expected: str) -> None:
    """The same on every platform: years have four digits, and names are English."""
    assert expected == engine.call("time.format", args)


def test_directives_match_python(engine: Engine) -> None:
    """For four-digit years, over many times and offsets."""
    source = random.Random(8)
    pattern = "%a %A %w %d %b %B %m %y %Y %H %I %p %M %S %f %z %j %U %W %G %u %V %%"
    moments = [datetime(1900, 1, 1, tzinfo=UTC) + timedelta(seconds=source.randrange(10**10)) for _ in range(2000)]
    expected = [moment.strftime(pattern) for moment in moments]

    results = [engine.call("time.format", [moment.timestamp(), pattern]) for moment in moments]

    assert expected == results


@pytest.mark.parametrize("pattern", ["%", "%Y%", "%Q", "%-d", "%10Y", "%:", "%é", "%\n", "%E"])
def test_unknown_directive_is_refused(engine: Engine, pattern: str) -> None:
    """C's strftime leaves it to the platform; the error lists the supported directives."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("time.format", [0, pattern])

    known = "% :z A a B b c d e F f G H I j M m p S T U u V W w X x Y y Z z"
    assert f"time.format: pattern: expected one of {known} after each %, got something else" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("time.bad_pattern", "model")


def test_pattern_is_validated(engine: Engine) -> None:
    """At most 200 characters, without lone surrogates."""
    longest = engine.call("time.format", [0, "%c" * 100])

    assert longest == "Thu Jan  1 00:00:00 1970" * 100
    assert code_of(engine, "time.format", [0, "x" * 201]) == "coercion.length"
    with pytest.raises(ArgumentError) as caught:
        engine.call("time.format", [0, "\ud800"])
    assert (caught.value.code, caught.value.retry) == ("coercion.encoding", "model")


@pytest.mark.parametrize("seconds", [253402300800, -62135596801, 1e20, -1e300, 1.7e308])
def test_time_out_of_range_is_refused(engine: Engine, seconds: float) -> None:
    """The years are limited to 1 to 9999."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("time.format", [seconds])

    text = "time.format: seconds: expected a time in the years 1 to 9999, got one outside"
    assert (text, "time.range", "model") == (str(caught.value), caught.value.code, caught.value.retry)


def test_time_out_of_range_by_zone_is_refused(engine: Engine) -> None:
    """The last second of 9999 in UTC is already in the next year further east."""
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
    "all zones in one file": "tzdata.zi",
    "dots": "a.b/c",
    "no ASCII": "Zürich",
    "a dot": ".",
}


@pytest.mark.parametrize("zone", ZONES.values(), ids=ZONES)
@pytest.mark.parametrize(("tool", "args"), [("now", []), ("format", [0, "%Y"])], ids=["now", "format"])
def test_unknown_zone_is_refused(engine: Engine, tool: str, args: list[Any], zone: str) -> None:
    """An unknown name, a directory of the database, or a path out of it."""
    with pytest.raises(ToolFailed) as caught:
        engine.call(f"time.{tool}", [*args, zone])

    text = f"time.{tool}: zone: expected a time zone, such as Europe/Berlin, got another string"
    assert text == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("time.bad_zone", "model")


def test_utc_needs_no_time_zone_database(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default works even if the platform has no database."""
    monkeypatch.setattr("zoneinfo.ZoneInfo", None)

    assert engine.call("time.now").endswith("+00:00")
    assert engine.call("time.format", [0, "%Z"]) == "UTC"


def test_sleep_takes_the_requested_time(engine: Engine) -> None:
    """And returns True."""
    started = time.monotonic()

    result = engine.call("time.sleep", ["0.05"])

    assert result is True
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize("seconds", [-0.001, 3600.5, 1e9])
def test_sleep_is_limited(engine: Engine, seconds: float) -> None:
    """Negative values and more than an hour are refused before it sleeps."""
    with pytest.raises(ArgumentError) as caught:
        engine.call("time.sleep", [seconds])

    expected = "time.sleep: duration_seconds: expected float from 0 to 3600, got float out of bounds"
    assert expected == str(caught.value)


def test_sleep_does_not_block_the_event_loop(engine: Engine) -> None:
    """Otherwise the sleep would be over before other work started."""

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
def test_awaited_sleeps_run_concurrently(engine: Engine) -> None:
    """Ten of them take about as long as one."""

    async def ten() -> list[bool]:
        return await asyncio.gather(*(engine.acall("time.sleep", [0.1]) for _ in range(10)))

    started = time.monotonic()

    assert asyncio.run(ten()) == [True] * 10
    assert time.monotonic() - started < 0.9


def test_sleep_reports_progress_and_stops_with_the_engine() -> None:
    """It reports whole seconds; when the engine closes, it ends an hour early."""
    reports: list[Progress] = []
    failures: list[ToolFailed] = []
    begun = threading.Event()

    def tell(progress: Progress) -> None:
        reports.append(progress)
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

    assert reports == [Progress("time.sleep", 1, 3600, "")]
    assert [(str(each), each.code, each.retry) for each in failures] == [
        ("time.sleep: the call was cancelled", "time.cancelled", "later")
    ]


@pytest.mark.parametrize("method", ["call", "acall"])
def test_sleep_past_the_deadline_is_refused(engine: Engine, method: str) -> None:
    """Immediately, because waiting would only end in a timeout."""
    with pytest.raises(ToolFailed) as caught:
        if method == "call":
            engine.call("time.sleep", [3600], timeout=5)
        else:
            asyncio.run(engine.acall("time.sleep", [3600], timeout=5))

    text = "time.sleep: duration_seconds: expected to end before the deadline of the call, got a longer time"
    assert (text, "time.deadline", "model") == (str(caught.value), caught.value.code, caught.value.retry)
    assert engine.call("time.sleep", [0.01], timeout=5) is True


def test_nested_sleep_uses_the_outer_deadline(engine: Engine) -> None:
    """The deadline is that of the outermost call."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("list.map", [[0, 3600], "time.sleep"], timeout=5)

    assert (caught.value.code, caught.value.retry) == ("time.deadline", "model")
    assert str(caught.value).startswith("list.map: list[1]: time.sleep: ")
