"""Call tools through a chain of llm, whose model follows a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llm
import sqlite_utils
from llm.logs import LogStore
from llm.migrations import migrate
from missing import Missing, refuse_if_defined


class Scripted(llm.Model):
    model_id = "scripted"
    supports_tools = True

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.calls = [llm.ToolCall(name, arguments, "c1")]
        self.errors: list[str | None] = []

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        self.errors += [each.output if each.exception else None for each in prompt.tool_results]
        if self.calls:
            response.add_tool_call(self.calls.pop())
        else:
            yield "done"


def ask(tools: list[Any], name: str, arguments: dict[str, Any], **options: Any) -> str | None:
    """Run a chain whose model makes one call, and return the error that the model receives."""
    model = Scripted(name, arguments)
    model.chain("Call the tool.", tools=tools, **options).text()
    (error,) = model.errors
    return error


def call(tool: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    return ask([tool], tool.__name__, arguments)


def call_with_rule(tool: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    seen: list[Any] = []
    ask([tool], tool.__name__, arguments, before_call=lambda tool, call: seen.append(call.arguments["account"]))
    return seen


def call_nested(inner: Callable[..., Any]) -> None:
    def outer() -> str:
        """Call the other tool. llm passes no context to a function, so it calls the function."""
        return str(inner())

    def deny(tool: Any, call: Any) -> None:
        if call.name == "inner":
            raise llm.CancelToolCall("denied")

    ask([inner, outer], "outer", {}, before_call=deny)


def call_limited(tool: Callable[..., Any], seconds: float) -> None:
    try:
        llm.Tool.function(tool, timeout=seconds)  # type: ignore[call-arg]
    except TypeError:
        raise Missing("no limit") from None
    raise AssertionError("llm may have time limits now")


def edited_log(tool: Callable[..., Any], directory: Path) -> bool:
    database = sqlite_utils.Database(directory / "logs.db")
    migrate(database)
    for response in Scripted(tool.__name__, {"euros": 1}).chain("Call the tool.", tools=[tool]).responses():
        response.log_to_db(database)
    assert LogStore(database).verify() == []
    ((part, payload),) = database.execute("select id, payload from parts where type = 'tool_call'").fetchall()
    database["parts"].update(part, {"payload": payload.replace("1", "9", 1)})
    return LogStore(database).verify() != []


def served() -> list[str]:
    refuse_if_defined("llm", "(?:to|as|serve)_mcp", "no")
    raise AssertionError


def has_provider(name: str) -> bool:
    return any(name in type(model).__module__ for model in llm.get_models())
