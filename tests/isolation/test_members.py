"""Every member of the Runtime, and everything that a function can return or raise, gives the same in a worker."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from tests.isolation.every_member import members

from neuroscript import Engine, ExecutionPolicy, Host, Limits, Progress, Runtime, ToolCall, ToolSpec, Turn
from neuroscript.isolation import processes

MEMBERS: Final = [name for name in dir(Runtime) if not name.startswith("_")]

CALLS: Final[list[tuple[str, tuple[Any, ...]]]] = [
    *((name, ()) for name in ("println", "prompt_user", "logger", "get_var", "set_var", "set_no_data", "update_var")),
    *((name, ()) for name in ("update_fails", "variables", "sandbox_dir", "fs", "fs_errors", "fs_uncaught")),
    *((name, ()) for name in ("fs_without_need", "call_tool", "call_uncaught", "tools", "llm", "llm_without_need")),
    *((name, ()) for name in ("require", "require_uncaught", "spend", "labels", "secret", "progress", "cancelled")),
    *((name, ()) for name in ("deadline", "now", "random", "confine")),
    ("point", ({"x": 1, "y": 2},)),
    ("point", ({"x": "no"},)),
    *(("result", (kind,)) for kind in ("none", "tuple", "big", "nan", "bytes", "long", "dollar", "keys", "object")),
    *(("result", (kind,)) for kind in ("deep", "generator", "set", "subclass")),
    *(("raises", (kind,)) for kind in ("failed", "chained", "ValueError", "SystemExit", "KeyError")),
    *(("items", (count,)) for count in (0, 2, 5)),
    ("slow", (3,)),
    ("slow_items", (3,)),
]


class Model:
    """A model that answers from what it is asked."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        return Turn("assistant", f"you said {turns[-1].content}")

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        return Turn("assistant", tool_calls=(ToolCall(tools[0].full_name, {"a": len(turns)}),))

    def embed(self, text: str) -> Sequence[float]:
        return [0.5, 1.0]


class Outcomes:
    """An engine, and everything that a test can see of its calls."""

    def __init__(self, directory: Path, *, isolate: bool) -> None:
        self.output = io.StringIO()
        self.messages: list[str] = []
        self.progress: list[Progress] = []
        logger = logging.getLogger(f"test.members.{isolate}")
        logger.setLevel("DEBUG")
        logger.propagate = False
        handler = logging.Handler()
        handler.emit = lambda record: self.messages.append(f"{record.levelname} {record.getMessage()}")  # type: ignore[method-assign]
        logger.handlers = [handler]
        host = Host(
            stdin=io.StringIO("Ann\nhidden\n"),
            stdout=self.output,
            stderr=io.StringIO(),
            logger=logger,
            sandbox_dir=str(directory),
            secrets={"key": "k-123456789"},
            llm=Model(),
            progress=self.progress.append,
            clock=lambda: 1234.5,
            random=Random(7),
            variables={"given": {"x": [1]}},
        )
        policy = ExecutionPolicy(
            grants=("fs:*:*", "model:use:*", "acme:use:*", "secret:read:*"),
            limits=Limits(money={"USD": "1.00"}),
            isolate=("member.*",) if isolate else (),
        )
        self.engine = Engine(toolsets=members, plugins="none", policy=policy, host=host)

    def of(self, name: str, args: tuple[Any, ...]) -> list[Any]:
        """Return everything that one call has caused."""
        outcome = self._outcome(f"member.{name}", args)
        seen = [outcome, self.output.getvalue(), self.progress[:], [_short(each) for each in self.messages]]
        self.messages.clear()
        return seen

    def _outcome(self, name: str, args: tuple[Any, ...]) -> Any:
        try:
            return repr(self.engine.call(name, args))
        except Exception as error:
            cause = error.__cause__
            return [type(error).__name__, str(error), getattr(error, "code", ""), getattr(error, "retry", ""),
                    getattr(error, "items", None), type(cause).__name__, str(cause)]  # fmt: skip


def _short(message: str) -> str:
    """Return a logged message without the line numbers of a traceback and the frames of this project."""
    lines = [line for line in message.splitlines() if "every_member.py" in line or not line.startswith("  ")]
    return "\n".join(re.sub(r"line \d+", "line N", line) for line in lines if line.strip())


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "spawned"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    here = Outcomes(tmp_path_factory.mktemp("here"), isolate=False)
    there = Outcomes(tmp_path_factory.mktemp("there"), isolate=True)
    with here.engine, there.engine, pytest.MonkeyPatch.context() as changed:
        changed.setattr(processes, "FORKS", request.param)
        yield here, there


@pytest.mark.parametrize(
    ("name", "args"), CALLS, ids=lambda part: part if isinstance(part, str) else "-".join(map(str, part))
)
def test_call_has_the_same_effects_in_a_worker(
    both: tuple[Outcomes, Outcomes], name: str, args: tuple[Any, ...]
) -> None:
    here, there = both
    assert there.of(name, args) == here.of(name, args)


def test_every_member_has_a_tool() -> None:
    named = {each.name.removeprefix("member.") for each in members.tools}
    assert set(MEMBERS) - named - {"handles", "call_tool_named"} == set()


def test_objects_behind_handles_stay_in_their_worker(both: tuple[Outcomes, Outcomes]) -> None:
    for each in both:
        engine = each.engine
        first, second = engine.call("member.new_handle"), engine.call("member.new_handle")
        assert engine.call("member.use_handle", [first]) == [1, "counter", "handle.kind model"]
        assert engine.call("member.use_handle", [second]) == [1, "counter", "handle.kind model"]
        assert engine.call("member.use_handle", [first]) == [2, "counter", "handle.kind model"]
        assert engine.call("member.release_handle", [first]) == [True, False, None]
        assert each.of("use_handle", (first,))[0][2] == "handle.unknown"
        assert engine.call("member.use_handle", [second]) == [2, "counter", "handle.kind model"]


async def _async_outcomes(engine: Engine) -> list[Any]:
    found = [await engine.acall("member.plus", (1, 2)), await engine.acall("member.slow", (3,))]
    async for item in engine.astream("member.slow_items", (2,)):
        found.append(item)
    return found


def test_async_callers_get_the_same(both: tuple[Outcomes, Outcomes]) -> None:
    import asyncio

    here, there = (asyncio.run(_async_outcomes(each.engine)) for each in both)
    assert there == here == [3, 3, 0, 1]
