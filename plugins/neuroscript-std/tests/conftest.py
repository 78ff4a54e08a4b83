"""What the tests of all toolsets use: an engine with every tool of this distribution, and what a failing call says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from neuroscript import Engine, ToolFailed


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that has found this distribution by its entry points."""
    with Engine(plugins=["neuroscript-std"]) as engine:
        yield engine


@pytest.fixture(scope="session")
def failure(engine: Engine) -> Callable[..., ToolFailed]:
    """Takes a tool and its arguments, and returns the failure of that call."""

    def failing(tool: str, *args: Any) -> ToolFailed:
        with pytest.raises(ToolFailed) as caught:
            engine.call(tool, args)
        return caught.value

    return failing


@pytest.fixture(scope="session")
def told(failure: Callable[..., ToolFailed]) -> Callable[..., tuple[str, str, str]]:
    """Takes a tool and its arguments, and returns what the caller is told: the text, the code, who can mend it."""

    def telling(tool: str, *args: Any) -> tuple[str, str, str]:
        error = failure(tool, *args)
        return str(error), error.code, error.retry

    return telling
