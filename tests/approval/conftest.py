"""Terminals for requests for approval."""

from __future__ import annotations

import os
import pty
from collections.abc import Callable, Iterator

import pytest
from tests.approval.approval_cases import BEGIN, Desk
from tests.terminals import Terminal


@pytest.fixture
def terminal() -> Iterator[Callable[[str], Terminal]]:
    """Run the code of a process in a terminal."""
    terminals: list[Terminal] = []

    def started(code: str = "ask()") -> Terminal:
        terminals.append(Terminal(f"{BEGIN}\n{code}"))
        return terminals[-1]

    yield started
    for each in terminals:
        each.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A terminal at which nothing is typed."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as stdin, os.fdopen(os.dup(theirs), "w") as output:
        yield Desk(ours, stdin, output)
    os.close(ours)
