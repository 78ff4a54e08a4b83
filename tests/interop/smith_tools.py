"""Files, plans and a scripted model for the tests of Smith."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from neuroscript import Engine, ExecutionPolicy, LLMError, ToolCall, ToolImplementation, Toolset, ToolSpec, Turn
from neuroscript.interop.smith import from_smith, payload_of, plan_problems


def metadata(**changes: Any) -> dict[str, Any]:
    """Return the METADATA of the document's section 2, with changes."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {
        "name": "weather_fetcher",
        "function": "run_weather",
        "dangerous": False,
        "parameters": schema,
        **changes,
    }


def write_tool(folder: Path, name: str, said: object, code: str = "def run_weather(city):\n    return city\n") -> Path:
    """Write a file with a tool of Smith."""
    path = folder / name
    path.write_text(f"METADATA = {said!r}\n\n{code}")
    return path


def run_weather(city: str = "Oslo") -> str:
    """Return a city."""
    return f"sunny in {city}"


def call_tool(tool: ToolImplementation, arguments: Mapping[str, Any], policy: ExecutionPolicy | None = None) -> Any:
    """Call a tool through an engine that grants nothing."""
    with engine_of(tool, policy=policy) as engine:
        return engine.call_named(tool.name, arguments)


def engine_of(*tools: ToolImplementation, policy: ExecutionPolicy | None = None) -> Engine:
    """Return an engine with tools."""
    return Engine(plugins="none", toolsets=[Toolset("smith", tools)], policy=policy or ExecutionPolicy())


def nested(levels: int, *, as_tuple: bool = False) -> Any:
    """Return nested lists or tuples."""
    found: Any = "x"
    for _ in range(levels):
        found = (found,) if as_tuple else [found]
    return found


def doubled(levels: int) -> Any:
    """Return a small list whose JSON has two to the power of *levels* values."""
    found: Any = "x"
    for _ in range(levels):
        found = [found, found]
    return found


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@attrs.define
class Scripted:
    """A model that replays its answers, and records its requests."""

    answers: Sequence[str | LLMError]
    requests: list[tuple[Turn, ...]] = attrs.field(factory=list)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the next answer."""
        self.requests.append(tuple(turns))
        answer = self.answers[len(self.requests) - 1]
        if isinstance(answer, LLMError):
            raise answer
        return Turn("assistant", answer)

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the next answer."""
        return self.ask(turns)

    def embed(self, text: str) -> Sequence[float]:
        """Return nothing."""
        return ()


def node(**changes: Any) -> dict[str, Any]:
    """Return a valid node of a plan, with changes; a value of None removes the key."""
    whole = {
        "id": 0,
        "tool": "w",
        "function": "run_w",
        "inputs": {"city": "Rome"},
        "depends_on": [],
        "retry": 0,
        "timeout": 60,
        "on_fail": "halt",
        **changes,
    }
    return {key: each for key, each in whole.items() if each is not None}


def plan(*nodes: Any, last: Any = 0) -> dict[str, Any]:
    """Return a plan."""
    return {"nodes": list(nodes), "final_output_node": last}


def tools() -> list[dict[str, Any]]:
    """Return the METADATA of the tools for plans."""
    properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return [{**metadata(name="w", function="run_w", parameters=schema), "notes": "for authors", "description": "Ask."}]


def first(data: Any) -> str:
    """Return the first problem of a plan."""
    return plan_problems(data, tools())[0]


def payload(result: Any) -> dict[str, Any]:
    """Return the payload of a call whose tool returns or raises *result*."""

    def run_weather(city: str) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    with engine_of(from_smith(metadata(), run_weather)) as engine:
        return payload_of(engine.execute(ToolCall("smith.weather_fetcher", {"city": "Rome"})))
