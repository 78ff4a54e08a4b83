"""Fixtures of the std tests: an engine with every tool of this distribution, and helpers for failing calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, ToolCall, ToolFailed, ToolSpec, Turn
from neuroscript.testing import Setup
from neuroscript_std.trees.handles import SHOP

MAKING: Final[Mapping[str, Sequence[tuple[str, tuple[Any, ...]]]]] = {
    "tree-1": [("tree.loadjson", (SHOP,))],
    "tree-2": [("tree.loadjson", (SHOP,)), ("tree.setnodemetadata", ("tree-2", "node-7", "currency", "EUR"))],
}
"""What a handle in an example stands for: what the first of these calls gives, after the others have been made."""


class Parrot:
    """A custom model that records its prompts."""

    def __init__(self) -> None:
        self.asked: list[tuple[Turn, ...]] = []

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.asked.append(tuple(turns))
        return Turn("assistant", turns[-1].content.upper())

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        self.asked.append(tuple(turns))
        forms = ({"num1": 1}, [1, 2], '{"num1": 1}')
        calls = (ToolCall(tool.full_name, form, id=tool.name) for tool, form in zip(tools, forms, strict=False))
        return Turn("assistant", "I would", tool_calls=tuple(calls))

    def embed(self, text: str) -> Sequence[float]:
        return [float(len(text)), 0.5]


@pytest.fixture
def parrot() -> Parrot:
    """A model without prompts so far."""
    return Parrot()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that loads this distribution by its entry points, and provides and grants what its examples use.

    Its user answers whatever is asked.
    """
    host = Host(
        stdin=StringIO("an answer\n" * 1000),
        stdout=StringIO(),
        stderr=StringIO(),
        llm=Parrot(),
        secrets={"signing": "\x0b" * 20},
        variables={"rows": []},
    )
    policy = ExecutionPolicy(grants=["model:use:*", "secret:read:*"])
    with Engine(plugins=["neuroscript-std"], host=host, policy=policy) as engine:
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
def error_of(failure: Callable[..., ToolFailed]) -> Callable[..., tuple[str, str, str]]:
    """Takes a tool and its arguments, and returns the error: its message, its code and who can retry."""

    def telling(tool: str, *args: Any) -> tuple[str, str, str]:
        error = failure(tool, *args)
        return str(error), error.code, error.retry

    return telling


def prepared(engine: Engine, tool: str, args: Any) -> Any:
    """Return the arguments of an example with a new handle for each name of `MAKING`."""

    def made(name: Any) -> Any:
        if not (isinstance(name, str) and name in MAKING):
            return name
        (making, given), *others = MAKING[name]
        handle = engine.call(making, given)
        for other, given in others:
            engine.call(other, [handle if arg == name else arg for arg in given])
        return handle

    if isinstance(args, Mapping):
        return {key: made(arg) for key, arg in args.items()}
    return [made(arg) for arg in args]


@pytest.hookimpl(optionalhook=True)
def pytest_neuroscript_setup(distribution: str) -> Setup | None:
    """Return what the examples use: a secret, a variable, trees behind handles, and grants."""
    if distribution != "neuroscript-std":
        return None
    return Setup(
        secrets={"signing": "\x0b" * 20},
        variables={"rows": []},
        grants=["model:use:*", "secret:read:*"],
        prepare=prepared,
    )


@pytest.fixture
def setup() -> Setup | None:
    """The environment of the examples."""
    return pytest_neuroscript_setup("neuroscript-std")
