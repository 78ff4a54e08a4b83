"""A toolset with a tool for each member of the Runtime, for tests that call it in the host's process and in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs

from neuroscript import Runtime, ToolFailed, ToolPolicy, Toolset, Turn

members = Toolset("member")

FILES = ToolPolicy(
    capabilities=("fs:read:**", "fs:write:**", "fs:delete:**"),
    effects=("reads", "writes", "deletes"),
    sources=(),
    sinks=(),
)


@attrs.define
class Point:
    """A point."""

    x: int
    y: int


class Counter:
    """An object that is not plain data."""

    def __init__(self) -> None:
        self.value = 0


@members.tool
def println(rt: Runtime) -> str:
    """Write a line."""
    rt.println("one", 2, None, "\x1b[31m")
    return "written"


@members.tool
def prompt_user(rt: Runtime) -> list[str]:
    """Ask the user twice."""
    return [rt.prompt_user("name? "), rt.prompt_user("key? ", secret=True)]


@members.tool
def logger(rt: Runtime) -> int:
    """Log with every level."""
    rt.logger.debug("d %s", 1)
    rt.logger.info("i %d of %r", 2, "x")
    rt.logger.warning("w %s", object)
    rt.logger.error("e")
    return 4


@members.tool
def get_var(rt: Runtime) -> list[Any]:
    """Read variables."""
    return [rt.get_var("given"), rt.get_var("missing"), rt.get_var("missing", 7)]


@members.tool
def set_var(rt: Runtime) -> dict[str, Any]:
    """Set a variable."""
    rt.set_var("made", {"a": [1, 2.5, None, True], "b": b"\x00\xff", "c": {1: "x"}})
    found: dict[str, Any] = rt.get_var("made")
    return {"same": found["b"] == b"\x00\xff" and found["c"] == {1: "x"}, "a": found["a"]}


@members.tool
def set_no_data(rt: Runtime) -> int:
    """Set a variable to something that is not plain data."""
    rt.set_var("made", {"a": Counter()})
    return 0


@members.tool
def update_var(rt: Runtime) -> list[int]:
    """Update a variable, with another request in between."""

    def change(value: Any) -> int:
        rt.println("changing")
        return (value or 0) + 1

    return [rt.update_var("count", change), rt.update_var("count", change)]


@members.tool
def update_fails(rt: Runtime) -> str:
    """Raise in the function that changes a variable."""

    def change(value: Any) -> int:
        raise KeyError("own")

    try:
        rt.update_var("count", change)
    except KeyError as error:
        return f"caught {error.args}"
    return "nothing"


@members.tool
def variables(rt: Runtime) -> list[str]:
    """Return the names of the variables."""
    return list(rt.variables)


@members.tool(policy=FILES)
def sandbox_dir(rt: Runtime) -> bool:
    """Return whether the sandbox has an absolute path."""
    return rt.sandbox_dir.startswith("/")


@members.tool(policy=FILES)
def fs(rt: Runtime) -> list[Any]:
    """Use every operation on files."""
    files = rt.fs
    found: list[Any] = [files.mkdir("d/e"), files.mkdir("d/e"), files.exists("d/x")]
    files.write_text("d/x", "one\r\ntwo\n")
    files.append("d/x", "three")
    files.append("d/x", b"\n")
    files.write_bytes("d/y", bytes(range(256)) * 5000)
    found += [files.read_text("d/x"), len(files.read_bytes("d/y")), files.hash("d/y"), files.stat("d/y").size]
    found += [[each.path for each in files.list("d")], [each.path for each in files.walk()]]
    found += [[each.path for each in files.glob("**/[xy]")], files.exists("d/x")]
    with files.open("d/x", "r") as text:
        found += [list(text)]
    with files.open("d/y") as data:
        found += [data.read(3), data.seek(-2, 2), data.read(), data.read(), data.tell()]
    files.move("d/x", "z")
    found += [files.delete("z"), files.delete("z"), files.stat("d").kind]
    return found


@members.tool(policy=FILES)
def fs_errors(rt: Runtime) -> list[str]:
    """Return the codes of what operations on files raise."""
    codes = []
    for path in ("../x", "missing", "a\0b", "/etc/passwd"):
        try:
            rt.fs.read_text(path)
        except Exception as error:
            codes.append(f"{type(error).__name__} {getattr(error, 'code', '')} {error}")
    return codes


@members.tool(policy=FILES)
def fs_uncaught(rt: Runtime) -> str:
    """Let an error of the sandbox pass."""
    return rt.fs.read_text("missing")


@members.tool(policy=ToolPolicy(effects=("reads",), sources=(), sinks=()))
def fs_without_need(rt: Runtime) -> str:
    """Use files without having declared it."""
    return rt.fs.read_text("x")


@members.tool
def plus(a: int, b: int = 1) -> int:
    """Add two integers."""
    return a + b


@members.tool
def call_tool(rt: Runtime) -> list[Any]:
    """Call other tools."""
    found = [rt.call_tool("member.plus", (1, 2)), rt.call_tool("member.plus", ["4"])]
    found.append(rt.call_tool_named("member.plus", {"a": 3, "b": 4}))
    for name, args in (("member.plus", ("x",)), ("member.none", ()), ("member.raises", ("ValueError",))):
        try:
            rt.call_tool(name, args)
        except Exception as error:
            found.append(f"{type(error).__name__} {getattr(error, 'code', '')} {error}")
    return found


@members.tool
def call_uncaught(rt: Runtime) -> int:
    """Let the error of a nested call pass."""
    return rt.call_tool("member.plus", ("x",))  # type: ignore[no-any-return]


@members.tool
def tools(rt: Runtime) -> list[Any]:
    """Describe a tool."""
    info = rt.tools["member.plus"]
    return [len(rt.tools) > 10, "member.plus" in rt.tools, info.spec.description, info.policy.effects, info.origin]


@members.tool(policy=ToolPolicy(capabilities=("model:use",), effects=("model",), sources=(), sinks=()))
def llm(rt: Runtime) -> list[Any]:
    """Use every method of the model."""
    turn = rt.llm.ask([Turn("user", "hi")])
    asked = rt.llm.ask_with_tools([Turn("user", "add"), turn], [rt.tools["member.plus"].spec])
    return [turn.content, [each.name for each in asked.tool_calls], list(rt.llm.embed("x"))]


@members.tool
def llm_without_need(rt: Runtime) -> str:
    """Use the model without having declared it."""
    return rt.llm.ask([Turn("user", "hi")]).content


@members.tool
def new_handle(rt: Runtime) -> str:
    """Store an object."""
    return rt.handles.new(Counter(), "counter", lambda: None).id


@members.tool
def use_handle_nested(rt: Runtime, handle: str) -> Any:
    """Use the object of a handle in another call."""
    return rt.call_tool("member.use_handle", (handle,))


@members.tool
def use_handle(rt: Runtime, handle: str) -> list[Any]:
    """Use the object of a handle."""
    counter = rt.handles.get(handle, "counter")
    counter.value += 1
    try:
        rt.handles.get(handle, "other")
    except ToolFailed as error:
        code = f"{error.code} {error.retry}"
    return [counter.value, rt.handles.kind(handle), code]


@members.tool
def release_handle(rt: Runtime, handle: str) -> list[Any]:
    """Release the object of a handle."""
    return [rt.handles.release(handle), rt.handles.release(handle), rt.handles.kind(handle)]


@members.tool(policy=ToolPolicy(capabilities=("acme:use",), sources=(), sinks=()))
def require(rt: Runtime) -> str:
    """Require what is declared, and what is not."""
    rt.require("acme:use")
    try:
        rt.require("acme:own:x")
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return ""


@members.tool
def require_uncaught(rt: Runtime) -> int:
    """Require what is not declared."""
    rt.require("acme:own:x")
    return 0


@members.tool
def spend(rt: Runtime) -> str:
    """Spend a currency."""
    rt.spend("USD", "0.10").settle("0.05")
    try:
        rt.spend("USD", 100)
    except Exception as error:
        return f"{type(error).__name__} {getattr(error, 'code', '')}"
    return ""


@members.tool
def labels(rt: Runtime) -> list[str]:
    """Return the labels of the call."""
    return list(rt.labels())


@members.tool
def confine(rt: Runtime) -> list[Any]:
    """Start a program as a policy says that confines none."""
    with rt.confine("/bin/true", read=["/srv"], granted=True) as (words, descriptors):
        return [list(words), list(descriptors)]


@members.tool(policy=ToolPolicy(capabilities=("secret:read:key",), sources=(), sinks=()))
def secret(rt: Runtime) -> list[Any]:
    """Read a secret."""
    try:
        rt.secret("other")
    except Exception as error:
        return [len(rt.secret("key")), type(error).__name__]
    return []


@members.tool
def progress(rt: Runtime) -> int:
    """Report progress."""
    rt.progress(1, 2, "half")
    rt.progress(2.5)
    return 2


@members.tool
def cancelled(rt: Runtime) -> bool:
    """Return whether the call was cancelled."""
    return rt.cancelled


@members.tool
def deadline(rt: Runtime) -> bool:
    """Return whether there is a deadline."""
    return rt.deadline is not None


@members.tool
def now(rt: Runtime) -> float:
    """Return the time."""
    return rt.now()


@members.tool
def random(rt: Runtime) -> list[Any]:
    """Return random numbers."""
    return [rt.random.random(), rt.random.getrandbits(70), rt.random.randrange(5), rt.random.randrange(3, 9)]


# What functions are, receive, return and raise


@members.tool
def point(value: Point) -> Point:
    """Move a point."""
    assert type(value) is Point
    return Point(value.x + 1, value.y)


@members.tool
def result(kind: str) -> Any:
    """Return a value of some kind."""
    values: dict[str, Any] = {
        "none": None,
        "tuple": (1, 2),
        "big": 2**63 - 1,
        "nan": float("inf"),
        "bytes": b"\x00" * 3000,
        "long": "ä" * 3000,
        "dollar": {"$str": 1, "$": [2]},
        "keys": {1: "a", (2, 3): "b"},
        "object": Counter(),
        "deep": {"a": [{"b": Counter()}]},
        "generator": (each for each in ()),
        "set": {1},
        "subclass": type("Text", (str,), {})("x"),
    }
    return values[kind]


@members.tool
def raises(kind: str) -> int:
    """Raise an exception."""
    if kind == "failed":
        raise ToolFailed("the text for the caller", code="own.code", retry="model")
    if kind == "chained":
        try:
            raise ValueError("inner")
        except ValueError as error:
            raise ToolFailed("outer") from error
    raise {"ValueError": ValueError, "SystemExit": SystemExit, "KeyError": KeyError}[kind]("some value")


@members.tool
def items(count: int) -> Iterator[int]:
    """Yield integers, and raise after the third."""
    for each in range(count):
        if each == 3:
            raise ToolFailed("enough", code="own.end")
        yield each


@members.tool
async def slow(value: int) -> int:
    """Return a value after a moment."""
    await asyncio.sleep(0.001)
    return value


@members.tool
async def slow_items(count: int) -> AsyncIterator[int]:
    """Yield integers, slowly."""
    for each in range(count):
        await asyncio.sleep(0.001)
        yield each
