"""The environment, the name of the machine, the clock and pauses."""

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


def test_a_variable_is_read_under_a_grant_for_it(
    engine_with: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And under no other: a grant for one variable opens no second one."""
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
def test_a_name_is_never_a_pattern(
    engine_with: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It asks for a variable of that very name, which the grant does not give."""
    monkeypatch.setenv("SHOP_KEY", "never seen")
    engine = engine_with("env:read:SHOP_KEY", "env:read:LANG")

    with pytest.raises(PolicyError) as caught:
        engine.call("os.getenv", [name])

    assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")


def test_a_variable_that_is_not_set_gives_the_default(engine: Engine) -> None:
    """Which is an empty text unless the caller says another; an empty variable is set."""
    os.environ.pop("NOBODY_SETS_THIS", None)

    assert engine.call("os.getenv", ["NOBODY_SETS_THIS"]) == ""
    assert engine.call("os.getenv", ["NOBODY_SETS_THIS", "x"]) == "x"
    assert engine.call("os.getenv", ["a=b", "x"]) == "x"


def test_a_variable_that_is_no_text_is_replaced(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are not UTF-8 come as the replacement character."""
    monkeypatch.setenv("ODD", os.fsdecode(b"a\xffb"))

    assert engine.call("os.getenv", ["ODD"]) == "a\ufffdb"


def test_the_host_has_a_name_and_a_clock(engine: Engine) -> None:
    """The name that the system says, and a clock that goes."""
    before = time.time()

    now = engine.call("os.now")

    assert engine.call("os.hostname") == socket.gethostname()
    assert before <= now <= time.time()


def test_the_clock_is_that_of_the_host(root: Path) -> None:
    """What the host lends as a clock is what is told."""
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=root, clock=lambda: 12.5)) as engine:
        assert engine.call("os.now") == 12.5


def test_a_sleep_lasts_and_is_counted(root: Path) -> None:
    """It takes its time, and what the host permits of it in all."""
    policy = ExecutionPolicy(limits=Limits(sleep=Decimal("0.06")))
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=root), policy=policy) as engine:
        started = time.monotonic()
        assert engine.call("os.sleep", [0.05]) is True
        assert time.monotonic() - started >= 0.05
        with pytest.raises(LimitError) as caught:
            engine.call("os.sleep", [0.05])

    assert (caught.value.code, caught.value.retry) == ("limit.sleep", "host")


@pytest.mark.parametrize("door", ["call", "acall"])
def test_a_sleep_that_would_end_too_late_does_not_begin(engine: Engine, door: str) -> None:
    """It is refused at once; waiting for the deadline would give a timeout."""
    with pytest.raises(ToolFailed) as caught:
        if door == "call":
            engine.call("os.sleep", [3600], timeout=5)
        else:
            asyncio.run(engine.acall("os.sleep", [3600], timeout=5))

    text = "os.sleep: duration_seconds: expected an end before the deadline of the call, got one behind it"
    assert (text, "os.deadline", "model") == (str(caught.value), caught.value.code, caught.value.retry)


def test_a_sleep_ends_with_its_engine(root: Path) -> None:
    """When nobody waits any more it is over, an hour early."""
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
        ("os.sleep: nobody waits for the result any more", "os.cancelled", "later")
    ]
