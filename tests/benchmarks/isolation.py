"""What isolation costs: calls in workers, new workers, and the start of the processes, next to a bare round trip."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final

from neuroscript import Engine, ExecutionPolicy, Isolation, Toolset

from .harness import Seconds

tools = Toolset("isolated")


@tools.tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tools.tool
def echo(text: str) -> str:
    """Return a string."""
    return text


WARM_GOAL: Final = 250e-6
"""Seconds of W1 in a worker whose rules already match."""

NEW_GOAL: Final = 6e-3
"""Seconds of a call in a new worker that is confined by Landlock and seccomp."""

NAMESPACES_GOAL: Final = 20e-3
"""Seconds of a call in a new worker that also has namespaces of its own."""

ECHO_GOAL: Final = 5e-3
"""Seconds to send 1 MiB of text to a worker and back."""

START_GOAL: Final = 400e-3
"""Seconds until the first call, with the start of the processes."""

ROUND_TRIPS: Final = 25.0
"""How many bare round trips between two processes W1 in a worker may take; a test checks this ratio."""


def engine(**settings: Any) -> Engine:
    """Return an engine whose tools run in workers."""
    policy = ExecutionPolicy(isolate=Isolation(tools=("isolated.*",), **settings))
    return Engine(toolsets=tools, plugins="none", policy=policy)


def least(run: Callable[[], object], rounds: int) -> Seconds:
    """Return the minimum wall time of a function, which contains the time of the other processes."""
    found = []
    for _ in range(rounds):
        began = perf_counter()
        run()
        found.append(perf_counter() - began)
    return Seconds(min(found), min(found))


def warm_seconds(rounds: int) -> Seconds:
    """Return the times of W1 in a worker."""
    with engine() as made:
        made.call("isolated.add", (1, 2))
        return least(lambda: made.call("isolated.add", (1, 2)), 200 * rounds)


def echo_seconds(rounds: int) -> Seconds:
    """Return the times of 1 MiB to a worker and back."""
    text = "x" * (1 << 20)
    with engine() as made:
        made.call("isolated.echo", (text,))
        return least(lambda: made.call("isolated.echo", (text,)), 10 * rounds)


def new_seconds(rounds: int, *, namespaces: bool) -> Seconds:
    """Return the times of a call in a new worker."""
    with engine(reuse=False) as made:
        made._shared.pool.namespaces = namespaces
        made.call("isolated.add", (1, 2))
        return least(lambda: made.call("isolated.add", (1, 2)), 10 * rounds)


def start_seconds(rounds: int) -> Seconds:
    """Return the times until the first call."""

    def first() -> None:
        with engine() as made:
            made.call("isolated.add", (1, 2))

    return least(first, rounds)


def bare_seconds(rounds: int) -> Seconds:
    """Return the times of one byte to a process that sends it back."""
    with answering_process() as connection:

        def once() -> None:
            connection.send(b"x")
            connection.recv(1)

        return least(once, 200 * rounds)


@contextmanager
def answering_process() -> Iterator[socket.socket]:
    """Provide a connection to a process that returns each byte."""
    own, other = socket.socketpair()
    child = os.fork()
    if not child:
        own.close()
        while data := other.recv(1):
            other.send(data)
        os._exit(0)
    other.close()
    with own:
        yield own
    os.waitpid(child, 0)


CASES: Final[dict[str, tuple[Callable[[int], Seconds], float]]] = {
    "W1 in a warm worker": (warm_seconds, WARM_GOAL),
    "1 MiB to a warm worker and back": (echo_seconds, ECHO_GOAL),
    "W1 in a new worker without namespaces": (lambda rounds: new_seconds(rounds, namespaces=False), NEW_GOAL),
    "W1 in a new worker": (lambda rounds: new_seconds(rounds, namespaces=True), NAMESPACES_GOAL),
    "the first call": (start_seconds, START_GOAL),
}
"""What is measured, and the goal of each."""
