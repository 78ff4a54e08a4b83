"""Proof, before any timing, that the measured engine has all features enabled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Engine,
    PolicyError,
    ReturnError,
    Runtime,
    ToolPolicy,
    Toolset,
    ToolSpec,
)

SURROGATE: Final = "\ud800"
NAN: Final = float("nan")


def toolset() -> Toolset:
    """Return the tools that test the promises, for the measured engine."""
    tools = Toolset("proof")
    items = (ArgSpec("items", ArgType.SLICE_INT),)
    tools.add(ToolSpec("handed", "proof", items), _Keeper())
    tools.add(ToolSpec("wrong_result", "proof", return_type=ArgType.INT), lambda rt: "a word")
    tools.add(ToolSpec("trusted", "proof"), lambda rt: None, ToolPolicy(requires_trust=True))
    return tools


class _Keeper:
    """A tool function that stores its Runtime and its arguments, which tools must not do."""

    rt: Any = None
    items: Any = None

    def __call__(self, rt: Runtime, items: list[int]) -> None:
        rt.get_var("nothing")
        self.rt, self.items = rt, items


def _raises(kind: type[CallError], tool: str, *given: object) -> Callable[[Engine], bool]:
    def check(engine: Engine) -> bool:
        try:
            engine.call(tool, given)
        except kind:
            return True
        return False

    return check


def _hands_over_a_copy(engine: Engine) -> bool:
    given = [1, 2, 3]
    keeper = _handed(engine, given)
    return keeper.items == given and keeper.items is not given


def _ends_the_runtime(engine: Engine) -> bool:
    keeper = _handed(engine, [1])
    try:
        keeper.rt.get_var("nothing")
    except CallError as error:
        return (error.code, error.retry) == ("runtime.closed", "never")
    return False


def _handed(engine: Engine, given: list[int]) -> Any:
    engine.call("proof.handed", (given,))
    return engine.tools["proof.handed"].func


PROMISES: Final[Mapping[str, Callable[[Engine], bool]]] = {
    "an int of more than 64 bits is refused": _raises(ArgumentError, "bench.two", 2**63, 1),
    "such a result is refused": _raises(ReturnError, "bench.two", 2**62, 2**62),
    "such an int in a list is refused": _raises(ArgumentError, "bench.integers", [*range(100), 2**63]),
    "NaN is refused": _raises(ArgumentError, "bench.eight", 7, NAN, "a word", True, 42, 2.25, "another", False),
    "NaN in a declared map is refused": _raises(
        ArgumentError, "bench.rows", [{"id": 1, "name": "row", "weight": NAN, "active": True}]
    ),
    "a lone surrogate is refused": _raises(ArgumentError, "bench.tags", SURROGATE, []),
    "a lone surrogate in a list is refused": _raises(ArgumentError, "bench.tags", "a word", ["red", SURROGATE]),
    "True is not an int": _raises(ArgumentError, "bench.two", True, 1),
    "a result of another type is refused": _raises(ReturnError, "proof.wrong_result"),
    "a tool that needs trust is refused": _raises(PolicyError, "proof.trusted"),
    "a list is handed over as a copy": _hands_over_a_copy,
    "the Runtime ends with its call": _ends_the_runtime,
}


def unkept(engine: Engine) -> list[str]:
    """Return the promises that *engine*, which has both toolsets, breaks."""
    return [promise for promise, holds in PROMISES.items() if not holds(engine)]
