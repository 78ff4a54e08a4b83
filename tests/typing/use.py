"""User code that mypy --strict checks and that is never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, assert_type

from neuroscript import (
    Arg,
    ArgSpec,
    ArgType,
    AuditSink,
    CallRecord,
    Capability,
    Engine,
    ExecutionPolicy,
    FileAudit,
    Grant,
    MemoryAudit,
    Runtime,
    SqliteAudit,
    ToolCall,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Turn,
    aask,
    ask,
    bind,
    coerce,
    from_code,
    from_function,
    tool,
)
from neuroscript.testing import ContractCheck, FakeRuntime, Report, check_toolset, checks_for

files = Toolset("files")


def count_tags(rt: Runtime, text: str, tags: list[str] | None) -> int:
    rt.println("counting")
    found: Any = rt.call_tool("str.length", (text,))
    return sum(text.count(tag) for tag in tags or ()) + int(found)


made: ToolImplementation = files.add(
    ToolSpec(
        "count_tags",
        "files",
        (ArgSpec("text", ArgType.STRING), ArgSpec("tags", ArgType.SLICE_STRING, required=False)),
        return_type=ArgType.INT,
    ),
    count_tags,
    policy=ToolPolicy(effects=("pure",), capabilities=("fs:read:a", Capability.parse("env:read:A"))),
)


@files.tool()
def shout(rt: Runtime, text: str, times: int = 1) -> str:
    return " ".join([text.upper()] * times)


@files.tool
def whisper(rt: Runtime, text: str) -> str:
    return text.lower()


whispered: str = whisper(None, "X")  # type: ignore[arg-type]
added_by_a_call: str = files.tool(whisper, name="murmur")(None, "X")  # type: ignore[arg-type]
still_a_function: str = shout(None, "x", 2)  # type: ignore[arg-type]

either: list[str] = ["string", "int"]
specs: list[ArgSpec] = [ArgSpec("text", "string", choices=["a", "b"])]
accepted_specs = [
    ArgSpec("x", "any", any_of=either),
    ArgSpec("x", "any", any_of=specs),
    ArgSpec("x", "any", any_of=["string", ArgType.INT, ArgSpec("y", "bool")]),
    ArgSpec("x", "map", keys=specs),
]
accepted_turn = Turn("assistant", tool_calls=[ToolCall("a.b", {})])
a_string_is_no_list = ArgSpec("x", "string", choices="abc")  # type: ignore[arg-type]
a_sequence_is_rejected: Sequence[ToolCall] = accepted_turn.tool_calls
rejected_turn = Turn("assistant", tool_calls=a_sequence_is_rejected)  # type: ignore[arg-type]
read_off: ToolImplementation = tool(shout, group="files")
from_text: ToolImplementation = from_code("def two() -> int: return 2", "two", {"a": 1}, group="files")


@files.tool(description="Shorten a string.")
async def cut(text: Annotated[str, Arg("What is cut.", min_length=1)], *, at: int = 1) -> str:
    return text[:at]


method: ToolImplementation = from_function(partial(cut, at=2), group="files", name="two_letters")
engine = Engine(toolsets=[files], plugins=["neuroscript-std"])
tools: Mapping[str, ToolImplementation] = engine.tools
host = ExecutionPolicy(grants=("fs:read:*", Grant.parse("env:read:*")))
grants: tuple[Grant, ...] = host.grants
missing: Capability | None = host.uncovered_need([Capability.parse("fs:read")])
ok: bool = engine.execute(ToolCall("files.shout", {"text": "a"}, id="1")).ok
values: tuple[Any, ...] = bind(made.spec, ["a"])
one: Any = coerce("1", ArgType.INT, mode="strict")


async def main() -> Any:
    async with engine as open_engine:
        return await open_engine.acall("files.shout", ("a",))


class Printed:
    """A sink of a third party."""

    def write(self, record: CallRecord) -> None:
        print(record.tool)

    def close(self) -> None:
        print("closed")


def sinks() -> tuple[AuditSink, ...]:
    return (MemoryAudit(), FileAudit("trail.jsonl", key=bytes(32), durable=True), SqliteAudit("trail.db"), Printed())


def scripted() -> Runtime:
    return FakeRuntime(answers=["yes"], clock=[1, 2.5])


def checked(toolset: Toolset) -> tuple[Report, list[ContractCheck]]:
    return check_toolset(toolset, without=["importable"]), [case.contract_check for case in checks_for([toolset])]


@dataclass
class Item:
    name: str


async def asked(rt: Runtime, unknown: Any) -> None:
    """An answer has the type that is asked for, if it is a class; any other annotation gives Any."""
    assert_type(ask(rt.llm, "Who?"), str)
    assert_type(ask(rt.llm, "Who?", answer=None, attempts=2), str)
    assert_type(ask(rt.llm, "Which?", answer=Item), Item)
    assert_type(ask(rt.llm, "Which?", answer=list[Item]), list[Item])
    assert_type(ask(rt.llm, "How many?", answer=int), int)
    counts: Sequence[int] = ask(rt.llm, "How many?", answer=Sequence[int])
    assert_type(ask(rt.llm, "How many?", answer=Annotated[int, Arg(minimum=1)]), Any)
    assert_type(ask(rt.llm, "How many?", answer=ArgType.INT), Any)
    assert_type(ask(rt.llm, "How many?", answer=ArgSpec("count", ArgType.INT)), Any)
    assert_type(ask(rt.llm, "How many?", answer="int"), Any)
    assert_type(ask(rt.llm, "Which?", answer=unknown), Any)
    assert_type(await aask(rt.llm, "Who?"), str)
    assert_type(await aask(rt.llm, "Which?", answer=list[Item]), list[Item])
    perhaps: Item | None = ask(rt.llm, "Which?", answer=Item | None)
    perhaps = await aask(rt.llm, "Which?", answer=Item | None)
    assert counts or perhaps is None or perhaps.name
