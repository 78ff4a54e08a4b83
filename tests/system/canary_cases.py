"""Origins of values in calls, and the sinks in which each may appear."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal

import attrs
from tests.canaries import Canary
from tests.canary_worlds import ENTRY_POINTS, World

from neuroscript import (
    ArgSpec,
    ArgType,
    CoercionError,
    FlowRule,
    PolicyError,
    Runtime,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    coerce,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.policy.execution_policy import Decision

ERRORS = {"errors", "error data", "results"}
"""The forms in which a caller receives an error: as an exception and as data."""

RECORDS = {"hooks", "memory", "spans", "database", "file", "raw database"}
"""The sinks that receive call records, including refusals by the host."""

Origin = Callable[[str], tuple[str, dict[str, Any], dict[str, Any]]]
"""An origin of a secret: the tool that knows it, its arguments, and the options of the world."""

LENT = "a secret that the host provides"
ORIGINS: dict[str, Origin] = {
    "a secret argument": lambda secret: ("c.given", {"value": secret}, {}),
    "a secret key within an argument": lambda secret: ("c.nested", {"options": {"inner": {"token": secret}}}, {}),
    LENT: lambda secret: ("c.lent", {}, {"secret": secret}),
    "a variable of the environment": lambda secret: ("c.environment", {}, {}),
    "a secret answer": lambda secret: ("c.answered", {}, {"answer": secret}),
}

NAMED = ("call_named", "acall_named", "stream", "astream", "timed")
"""Entry points that take arguments by name and record no other call."""

TOLD = "told"
"""The name of a tool where it does not matter."""


@attrs.frozen
class Case:
    """One origin of a value.

    Attributes:
        run: Brings the value into a world.
        seen: The sinks that may contain it according to the contract.
        world: The options of the world, for a value.
        value: Returns the value for a canary.
    """

    run: Callable[[World, str], None]
    seen: set[str] = attrs.field(factory=set)
    world: Callable[[str], dict[str, Any]] = lambda value: {}
    value: Callable[[Canary], str] = attrs.field(default=lambda canary: canary.text, kw_only=True)


def toolset(func: Callable[..., Any], *args: ArgSpec, stream: bool = False, **policy: Any) -> dict[str, Any]:
    """Return an action that adds the tool ``t.told`` to a world."""
    made = Toolset("t")
    made.add(
        ToolSpec(TOLD, "t", args, return_type=ArgType.ANY, return_nullable=True, stream=stream),
        func,
        ToolPolicy(**policy),
    )
    return {"toolsets": [made]}


def told(world: World, value: str) -> None:
    """Call the tool of a case without arguments."""
    world.call("t.told", {})


def raising(*errors: Callable[[str], BaseException], is_async: bool = False, stream: bool = False) -> Any:
    """Return an action that adds a tool that raises these errors in turn."""

    def made(value: str) -> dict[str, Any]:
        def error() -> BaseException:
            outer = errors[0](value)
            outer.__cause__ = errors[-1](value)
            outer.add_note(value)
            return outer

        def plain(rt: Runtime) -> None:
            raise error()

        async def awaited(rt: Runtime) -> None:
            raise error()

        def items(rt: Runtime) -> Iterator[int]:
            yield 1
            raise error()

        return toolset(items if stream else awaited if is_async else plain, stream=stream)

    return made


class Odd(Exception):
    """An error that shows a value whenever Python converts it to a string."""

    def __repr__(self) -> str:
        return str(self.args)


def failing_host(part: str, use: Callable[[Any], object], seen: Collection[str] = ("log",)) -> Case:
    """Return the case of a host component that raises an error with the value while a tool uses it."""

    def world(value: str) -> dict[str, Any]:
        class Failing:
            def __getattr__(self, name: str) -> Any:
                def fail(*args: Any, **options: Any) -> Any:
                    raise ValueError(value)

                return fail

            def __call__(self, *args: Any) -> Any:
                raise ValueError(value)

        return {part: Failing(), **toolset(lambda rt: use(rt), capabilities=("model:use",))}

    return Case(told, {*seen}, world)


def failing_sink(value: str, *args: ArgSpec, **policy: Any) -> dict[str, Any]:
    """Return an action that adds a failing sink and a tool whose records are required."""

    class Failing:
        def write(self, record: Any) -> None:
            raise OSError(value)

        def close(self) -> None:
            raise OSError(value)

    return {"sinks": [Failing()], **toolset(lambda rt, *values: None, *args, effects=("writes",), **policy)}


def approving(answer: Callable[[str], Any], seen: set[str]) -> Case:
    """Return the case of an approver that answers, or raises its answer."""

    def world(value: str) -> dict[str, Any]:
        def approver(request: ApprovalRequest) -> Any:
            given = answer(value)
            if isinstance(given, BaseException):
                raise given
            return given

        return {"approver": approver}

    return Case(lambda world, value: world.call("c.asks", {"texts": []}), seen, world)


def deciding(answer: Callable[[str], Any], seen: set[str]) -> Case:
    """Return the case of a hook that answers, or raises its answer."""

    def world(value: str) -> dict[str, Any]:
        def decide(call: Any) -> Any:
            given = answer(value)
            if isinstance(given, BaseException):
                raise given
            return given

        return {"decide": decide}

    return Case(lambda world, value: world.call("c.counts", {"counts": {"a": 1}}), seen, world)


def misfits(world: World, value: str) -> None:
    """Pass the value wherever it is invalid: as another type, too long, in containers, in broken JSON."""
    for kind in ArgType:
        if kind not in (ArgType.STRING, ArgType.ANY, ArgType.BLOB, ArgType.VOID):
            for wrong in (
                value,
                [value],
                {"a": [value]},
                f'["{value}',
                f'{{"{value}": 1}}x',
                value.encode(),
                Odd(value),
            ):
                if not fits(wrong, kind):
                    world.call("t.told", {str(kind): wrong}, NAMED)
    world.call(
        "t.told", {"long": value, "choice": value, "text": Odd(value), "blob": [value], "keys": {"a": value}}, NAMED
    )
    world.execute(ToolCall("t.told", f'{{"long": "{value}'))


def fits(value: Any, kind: ArgType) -> bool:
    """Return whether a value has a type."""
    try:
        return coerce(value, kind) is not None
    except CoercionError:
        return False


def all_types(value: str) -> dict[str, Any]:
    """Return an action that adds a tool with an argument of each type."""
    kinds = [ArgSpec(str(kind), kind, required=False) for kind in ArgType if kind is not ArgType.VOID]
    rules = (
        ArgSpec("long", ArgType.STRING, max_length=3, required=False),
        ArgSpec("choice", ArgType.STRING, choices=("a", "b"), required=False),
        ArgSpec("text", ArgType.STRING, required=False),
        ArgSpec("keys", ArgType.MAP, keys=(ArgSpec("a", ArgType.INT),), required=False),
    )
    return toolset(lambda rt, *values: None, *kinds, *rules)


FAILING: dict[str, Callable[[Any], object]] = {
    "no text": lambda files: files.read_text("data/a"),
    "a link out": lambda files: files.read_bytes("data/link"),
    "a link in a path": lambda files: files.list("data/link/box"),
    "a directory": lambda files: files.read_bytes("data"),
    "below a file": lambda files: files.write_text("data/a/b", "x"),
    "nothing": lambda files: files.hash("data/nothing"),
    "no directory": lambda files: files.list("data/a"),
    "not empty": lambda files: files.delete("data/full"),
    "not free": lambda files: files.move("data/a", "data/full"),
    "a pinned link": lambda files: files.pinned("data/link").__enter__(),
    "no mode": lambda files: files.open("data/a", "w"),
}
"""File operations that fail, where one file contains the value."""


def fails_with_files(world: World, value: str) -> None:
    """Write the value to a file, then run operations that fail."""
    box = world.place / "box" / "data"
    (box / "full").mkdir(parents=True)
    (box / "full" / "b").write_text(value)
    (box / "a").write_bytes(value.encode() + b"\xff")
    (box / "link").symlink_to(world.place)
    for how in FAILING:
        world.call("t.told", {"how": how})
    assert world.failures == (len(ENTRY_POINTS) + 1) * len(FAILING)


def failing_files(value: str) -> dict[str, Any]:
    """Return an action that adds a tool whose file operations fail."""
    needs = tuple(f"fs:{verb}:data/**" for verb in ("read", "write", "delete"))
    return toolset(lambda rt, how: FAILING[how](rt.fs) and None, ArgSpec("how", ArgType.STRING), capabilities=needs)


def sends_what_it_read(world: World, value: str) -> None:
    """Read a value of outsiders, and try to send it."""
    world.call("t.reads", {})
    world.call("t.sends", {"text": value})
    world.call("t.sends", {"text": f"it says: {value}"})
    world.call("t.both", {})


def ruled(then: Literal["ask", "refuse"], by: Literal["values", "session"] = "values") -> Any:
    """Return an action that adds a rule, and tools that read from outsiders and send outside."""

    def made(value: str) -> dict[str, Any]:
        tools = Toolset("t")
        reads = ToolPolicy(effects=("net",), sources=("untrusted", "private:mail"), sinks=())
        sends = ToolPolicy(effects=("net",), sources=(), sinks=("outside",))
        tools.add(ToolSpec("reads", "t", return_type=ArgType.ANY), lambda rt: value, reads)
        tools.add(ToolSpec("sends", "t", (ArgSpec("text", ArgType.STRING),)), lambda rt, text: None, sends)
        tools.add(ToolSpec("both", "t"), lambda rt: rt.call_tool("t.sends", [rt.call_tool("t.reads")]), sends)
        return {"toolsets": [tools], "flow": [FlowRule(["untrusted"], ["outside"], then, by)]}

    return made


PATH = ArgSpec("path", ArgType.STRING)
SECRET_PATH = ArgSpec("path", ArgType.STRING, secret=True)
WORD = operator.attrgetter("word")

CASES: dict[str, Case] = {
    "the text of an exception": Case(told, {"log"}, world=raising(ValueError)),
    "the text of an exception that only says so": Case(told, {"log"}, world=raising(Odd, Odd)),
    "the text of an exception of a coroutine": Case(told, {"log"}, world=raising(OSError, KeyError, is_async=True)),
    "the text of an exception of a stream": Case(told, {"log"}, world=raising(LookupError, stream=True)),
    "the text of an exit": Case(told, {"log"}, world=raising(SystemExit, BaseException)),
    "the text of an error of the clock": failing_host("clock", lambda rt: rt.now()),
    "the text of an error of the model": failing_host("llm", lambda rt: rt.llm.ask([])),
    "the text of an error of the prompter": failing_host("prompter", lambda rt: rt.prompt_user("?")),
    "the text of an error of the output": failing_host("stdout", lambda rt: rt.println("?")),
    "the text of an error of the logger": failing_host("logger", lambda rt: rt.logger.info("?"), ()),
    "the text of an error of the random numbers": failing_host("random", lambda rt: rt.random.random()),
    "the text of an error of the progress": failing_host("progress", lambda rt: rt.progress(1)),
    "the text of an error of a sink": Case(told, {"log"}, failing_sink),
    "the text of an error of an approver": approving(ValueError, {"log"}),
    "the text of an error of a hook": deciding(KeyError, {"log"}),
    "an answer of an approver that is none": approving(str, set()),
    "an answer of a hook that is none": deciding(lambda value: [value], set()),
    "the reason of an approver": approving(Approval.reject, ERRORS),
    "the reason of an approver who stops": approving(Approval.stop, ERRORS - {"results"}),
    "the reason of an approver who waits": approving(Approval.suspend, ERRORS),
    "the sentence of a hook": deciding(str, ERRORS | {"decisions"}),
    "the decision of a hook": deciding(lambda value: Decision("c.counts", False, need=value, text=value), ERRORS | {"decisions"}),
    "the refusal of a hook": deciding(lambda value: PolicyError(value, need=value, rule=value), ERRORS | {"decisions"}),
    "an argument that does not fit": Case(misfits, world=all_types),
    "a path of a call that the audit refuses": Case(
        lambda world, value: world.call("t.told", {"path": f"data/{value}"}),
        RECORDS | {"refusals", "log"},
        lambda value: failing_sink(value, PATH, capabilities=("fs:read:{path}",)), value=WORD,
    ),
    "what a file holds": Case(fails_with_files, world=failing_files),
    "a key of an argument that is unknown": Case(
        lambda world, value: world.call("c.counts", {"counts": {}, value: 1}, NAMED),
        ERRORS | {"decisions"},
    ),
    "a name of no tool": Case(
        lambda world, value: world.call(value, {}, ["call", *NAMED]), ERRORS | {"decisions"} | RECORDS,
    ),
    "a key of a value that is converted": Case(
        lambda world, value: world.call("c.counts", {"counts": {value: "5"}}),
        RECORDS - {"spans"} | {"results", "recording"},
    ),
    "an argument that fits": Case(
        lambda world, value: world.call("c.counts", {"counts": {value: 5}}), {"recording"},
    ),
    "an argument that is to be approved": Case(
        lambda world, value: world.call("c.asks", {"texts": [value]}), {"pending"},
    ),
    "a result": Case(
        told, {"host", "results", "recording"}, lambda value: toolset(lambda rt: [value, {value: value.encode()}])
    ),
    "text of outsiders that may not be sent": Case(
        sends_what_it_read, {"host", "results", "recording"}, ruled("refuse"),
    ),
    "text of outsiders in a session that may not send": Case(
        sends_what_it_read, {"host", "results", "recording"}, ruled("refuse", "session"),
    ),
    "text of outsiders that may be sent if approved": Case(
        sends_what_it_read, {"host", "results", "recording", "pending"}, ruled("ask"),
    ),
    "a path below the sandbox that may not be read": Case(
        lambda world, value: world.call("c.reads", {"path": f"x/{value}"}),
        ERRORS | RECORDS | {"decisions", "refusals", "log"}, value=WORD,
    ),
    "a path below the sandbox that may be read": Case(
        lambda world, value: world.call("c.reads", {"path": f"data/{value}"}), RECORDS | {"recording"}, value=WORD,
    ),
    "a secret argument that a need is filled from": Case(
        lambda world, value: world.call("t.told", {"path": f"x/{value}"}),
        world=lambda value: toolset(lambda rt, path: None, SECRET_PATH, capabilities=("fs:read:{path}",)), value=WORD,
    ),
    "a secret argument that a need is filled from in another spelling": Case(
        lambda world, value: world.call("t.told", {"path": f"x/.//{value}"}),
        world=lambda value: toolset(lambda rt, path: None, SECRET_PATH, capabilities=("fs:read:{path}",)), value=WORD,
    ),
    "a path that leaves the sandbox": Case(lambda world, value: world.call("c.reads", {"path": f"../{value}"})),
    "a path from the root": Case(lambda world, value: world.call("c.reads", {"path": f"/{value}"})),
}  # fmt: skip
"""Each origin, and the sinks in which the contract lets its values appear.

These are names that the caller wrote, paths inside the sandbox, sentences meant for the caller, results for the host and
its model, and content that the host asked for.
"""
