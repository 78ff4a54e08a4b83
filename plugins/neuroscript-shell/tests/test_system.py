"""The os tools: environment, host name, clock and sleep."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, LimitError, Limits, PolicyError, ToolFailed


def test_getenv_needs_a_grant_for_the_variable(
    engine_with: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grant for one variable does not allow another."""
    monkeypatch.setenv("SHOP_LANGUAGE", "tok pisin")
    monkeypatch.setenv("SHOP_KEY", "never seen")
    engine = engine_with("env:read:SHOP_LANGUAGE", trusted=False)

    assert engine.call("os.getenv", ["SHOP_LANGUAGE"]) == "tok pisin"
    with pytest.raises(PolicyError) as caught:
        engine.call("os.getenv", ["SHOP_KEY"])
    assert (str(caught.value), caught.value.code, caught.value.retry) == (
        "os.getenv: needs env:read",
        "policy.capability",
        "host",
    )


@pytest.mark.parametrize("name", ["*", "SHOP_*", "A,SHOP_KEY", "SHOP_KEY\0", "SHOP_KEY ", "../SHOP_KEY", "?"])
def test_variable_name_is_not_a_pattern(
    engine_with: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It means a variable of exactly that name, which is not granted."""
    monkeypatch.setenv("SHOP_KEY", "never seen")
    engine = engine_with("env:read:SHOP_KEY", "env:read:LANG")

    with pytest.raises(PolicyError) as caught:
        engine.call("os.getenv", [name])

    assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")


def test_getenv_returns_the_default(engine: Engine) -> None:
    """An empty string by default; an empty variable counts as set."""
    os.environ.pop("NOBODY_SETS_THIS", None)

    assert engine.call("os.getenv", ["NOBODY_SETS_THIS"]) == ""
    assert engine.call("os.getenv", ["NOBODY_SETS_THIS", "x"]) == "x"
    assert engine.call("os.getenv", ["a=b", "x"]) == "x"


def test_invalid_utf8_in_variable_is_replaced(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the replacement character."""
    monkeypatch.setenv("ODD", os.fsdecode(b"a\xffb"))

    assert engine.call("os.getenv", ["ODD"]) == "a\ufffdb"


def test_hostname_and_clock_of_the_system(engine: Engine) -> None:
    """The name as the system reports it, and a clock that advances."""
    before = time.time()

    now = engine.call("os.now")

    assert engine.call("os.hostname") == socket.gethostname()
    assert before <= now <= time.time()


def test_now_uses_the_host_clock(root: Path) -> None:
    """The clock that the host provides."""
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=root, clock=lambda: 12.5)) as engine:
        assert engine.call("os.now") == 12.5


def test_sleep_takes_time_and_counts(root: Path) -> None:
    """It counts against the limit of the host."""
    policy = ExecutionPolicy(limits=Limits(sleep=Decimal("0.06")))
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=root), policy=policy) as engine:
        started = time.monotonic()
        assert engine.call("os.sleep", [0.05]) is True
        assert time.monotonic() - started >= 0.05
        with pytest.raises(LimitError) as caught:
            engine.call("os.sleep", [0.05])

    assert (caught.value.code, caught.value.retry) == ("limit.sleep", "host")


@pytest.mark.parametrize("method", ["call", "acall"])
def test_sleep_past_the_deadline_is_refused(engine: Engine, method: str) -> None:
    """Immediately, because waiting would only end in a timeout."""
    with pytest.raises(ToolFailed) as caught:
        if method == "call":
            engine.call("os.sleep", [3600], timeout=5)
        else:
            asyncio.run(engine.acall("os.sleep", [3600], timeout=5))

    text = "os.sleep: duration_seconds: expected to end before the deadline of the call, got a longer time"
    assert (text, "os.deadline", "model") == (str(caught.value), caught.value.code, caught.value.retry)


def test_sleep_stops_when_the_engine_closes(root: Path) -> None:
    """An hour early."""
    failures: list[ToolFailed] = []
    begun = threading.Event()

    def sleep() -> None:
        with pytest.raises(ToolFailed) as caught:
            engine.call("os.sleep", [3600])
        failures.append(caught.value)

    host = Host(sandbox_dir=root, progress=lambda progress: begun.set())
    with Engine(plugins=["neuroscript-shell"], host=host) as engine:
        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        begun.wait()
    sleeper.join()

    assert [(str(each), each.code, each.retry) for each in failures] == [
        ("os.sleep: the call was cancelled", "os.cancelled", "later")
    ]
