"""Tools and engines for the tests of neurosurfer."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from neuroscript import Engine, ExecutionPolicy, Host
from neuroscript.interop.neurosurfer import (
    BaseTool,
    Invoker,
    Toolkit,
    ToolParam,
    ToolResponse,
    ToolReturn,
    ToolSpec,
    from_neurosurfer,
)

GRANTED = ExecutionPolicy(grants=("neurosurfer:call:*",))
"""The policy of a host that trusts these tools."""


def make_spec(name: str = "calculator", **changes: Any) -> ToolSpec:
    """Return the spec of the document with changed fields."""
    fields = {
        "name": name,
        "description": "Performs arithmetic operations",
        "when_to_use": "Use when you must compute a numeric result",
        "inputs": [
            ToolParam(name="operation", type="string", description="add|sub|mul|div", required=True),
            ToolParam(name="a", type="number", description="Left operand", required=True),
            ToolParam(name="b", type="number", description="Right operand", required=True),
        ],
        "returns": ToolReturn(type="number", description="Result of the operation"),
    }
    return ToolSpec(**{**fields, **changes})  # type: ignore[arg-type]


def spec_with_input(kind: str, required: bool = True) -> ToolSpec:
    """Return the spec of a tool with one input ``x`` of a type."""
    return make_spec("tt", inputs=[ToolParam("x", kind, "d", required)])


def text_spec(name: str, kind: str = "string") -> ToolSpec:
    """Return the spec of a tool with one input ``text``."""
    return ToolSpec(name, "d", "w", [ToolParam("text", kind, "d")], ToolReturn("string", "r"))


class EchoTool(BaseTool):
    """The document's first tool."""

    spec = ToolSpec(
        name="echo",
        description="Echoes text back to the caller.",
        when_to_use="Use for basic echo or smoke testing",
        inputs=[ToolParam(name="text", type="string", description="Text to echo", required=True)],
        returns=ToolReturn(type="string", description="The echoed text"),
    )

    def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
        return ToolResponse(final_answer=True, observation=text)


class SQLQueryTool(BaseTool):
    """The document's second tool."""

    spec = ToolSpec(
        name="sql_query",
        description="Execute a SQL query and return rows as JSON.",
        when_to_use="When you need structured data from the database.",
        inputs=[
            ToolParam(name="query", type="string", description="The SQL query to run", required=True),
            ToolParam(name="limit", type="integer", description="Max rows to return", required=False),
        ],
        returns=ToolReturn(type="object", description="Query results as a JSON object"),
    )

    def __call__(self, *, query: str, limit: int = 100, **kwargs: Any) -> ToolResponse:
        db = kwargs.get("db_engine")
        if db is None:
            return ToolResponse(final_answer=True, observation="DB engine not available.")
        rows = db.execute(query).fetchmany(size=limit)
        return ToolResponse(final_answer=False, observation={"rows": [dict(r) for r in rows]})


class StreamLinesTool(BaseTool):
    """The document's third tool; it counts the generators that have ended."""

    spec = ToolSpec(
        name="stream_lines",
        description="Stream lines back to the caller (demo).",
        when_to_use="When producing incremental output is better for UX.",
        inputs=[ToolParam(name="lines", type="array", description="List of lines to stream", required=True)],
        returns=ToolReturn(type="string", description="A stream of lines"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.ended = 0

    def __call__(self, *, lines: Iterable[str], **kwargs: Any) -> ToolResponse:
        def _gen() -> Generator[str, None, None]:
            try:
                yield from lines
            finally:
                self.ended += 1

        return ToolResponse(final_answer=True, observation=_gen())


class Recorder(BaseTool):
    """A tool that records its inputs and returns a fixed answer."""

    def __init__(self, answer: Any, name: str = "recorder", kind: str = "string") -> None:
        self.spec = text_spec(name, kind)
        super().__init__()
        self.answer = answer
        self.inputs: dict[str, Any] = {}

    def __call__(self, *, text: Any, **kwargs: Any) -> Any:
        self.inputs = {"text": text, **kwargs}
        return self.answer


class Boom(BaseTool):
    """A tool that fails a number of times."""

    spec = text_spec("boom")

    def __init__(self, times: int, error: Exception | None = None) -> None:
        super().__init__()
        self.times, self.calls = times, 0
        self.error = error or RuntimeError("kaput")

    def __call__(self, *, text: str, **kwargs: Any) -> ToolResponse:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return ToolResponse(False, f"{text} at last")


class Database:
    """A database with two rows, which records its queries."""

    def __init__(self) -> None:
        self.queries: list[Any] = []

    def execute(self, query: str) -> Database:
        self.queries.append(query)
        return self

    def fetchmany(self, size: int) -> list[list[tuple[str, int]]]:
        self.queries.append(size)
        return [[("id", number)] for number in range(min(size, 2))]


@contextmanager
def engine_of(
    *tools: Any, policy: ExecutionPolicy = GRANTED, host: Host | None = None, **options: Any
) -> Iterator[Engine]:
    """Yield an engine with neurosurfer tools."""
    toolset = from_neurosurfer(tools, **{"trusted": True, **options})
    with Engine(plugins="none", toolsets=[toolset], policy=policy, host=host or Host()) as engine:
        yield engine


@contextmanager
def invoker_of(*tools: BaseTool, **options: Any) -> Iterator[Invoker]:
    """Yield an invoker for these tools, with no delay between attempts."""
    with engine_of(*tools) as engine:
        yield Invoker(engine, Toolkit(tools), **{"wait": lambda seconds: None, **options})


GOOD: dict[str, list[Any]] = {
    "integer": [5, -1, 10**30],
    "number": [5, 5.5],
    "boolean": [True, False],
    "array": [[], [1, "a"]],
    "object": [{}, {"a": 1}],
    "string": ["", "a"],
}


class Careless(BaseTool):
    """A tool whose constructor validates nothing, like those of the package."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def __call__(self, **kwargs: Any) -> ToolResponse:
        return ToolResponse(True, "x")
