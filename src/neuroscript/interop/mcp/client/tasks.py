"""Tasks: calls that a server continues in the background, polled until they end and cancelled with their call.

MCP 2025-11-25 runs a tool as a task if the client asks for it; with the extension ``io.modelcontextprotocol/tasks`` of
2026-07-28, the server decides. The SDK has neither, except for the types of the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import attrs

from neuroscript._imports import missing_extra
from neuroscript.errors import ToolFailed
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.results import response_error
from neuroscript.io.text import one_line

try:
    import mcp_types as types
    from mcp.shared.dispatcher import ProgressFnT
    from pydantic import TypeAdapter, ValidationError
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The identifier of the extension of 2026-07-28."""

DEFAULT_POLL_SECONDS: Final = 1.0
MIN_POLL_SECONDS: Final = 0.05
MAX_POLL_SECONDS: Final = 60.0
"""Seconds between two requests for the state of a task: the default, and the limits for what a server sets."""

CANCEL_TIMEOUT_SECONDS: Final = 2.0
"""Timeout for cancelling a task whose call has ended, in seconds."""

MAX_TTL_SECONDS: Final = 86_400.0
"""How long a server is asked to store a task at most, in seconds."""

MAX_ID_CHARS: Final = 1_000
"""Maximum length of the id of a task, in characters."""

Answer = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Answers questions by key, all in the wire format of MCP."""


class TaskRequest(types.Request[dict[str, Any], str]):
    """A request about a task; its id is also sent as a header."""

    name_param = "taskId"


@attrs.frozen(eq=False)
class RemoteTask:
    """A task on a server.

    Attributes:
        send: Sends a request, and returns the result.
        id: The id of the task.
        is_extension: Whether it is a task of the extension.
        on_progress: Receives the messages about its status.
        answer: Answers its questions.
    """

    send: Callable[[TaskRequest], Awaitable[Mapping[str, Any]]]
    id: str
    is_extension: bool
    on_progress: ProgressFnT
    answer: Answer

    async def finish(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of the call, in the wire format of MCP.

        Args:
            state: The state of the task.

        Raises:
            ToolFailed: The task was cancelled or has failed, or its state is invalid.
            Exception: Raised by *answer*.
        """
        try:
            ended = await self._ended(state)
        except BaseException:
            await self._cancel()
            raise
        match ended:
            case {"status": "completed", "result": dict(result)} if self.is_extension:
                return result
            case {"status": "failed", "error": dict(error)} if self.is_extension:
                message = one_line(error.get("message"), MAX_DESCRIPTION_CHARS)
                raise ToolFailed(f"the server refused: {message}", code="mcp.refused", retry="host")
            case {"status": "cancelled"}:
                raise ToolFailed("the server has cancelled the task", code="mcp.refused", retry="host")
            case {"status": "completed" | "failed"} if not self.is_extension:
                return await self._send("tasks/result")
        raise response_error("contains an invalid task")

    async def _ended(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the state of the task when it has ended."""
        message, count = None, 0
        answered: set[str] = set()
        while True:
            match state:
                case {"status": "completed" | "failed" | "cancelled"}:
                    return state
                case {"status": "input_required"} if not self.is_extension:
                    await self._send("tasks/result")  # it asks while it waits for the result
                case {"status": "input_required", "inputRequests": dict(requests)}:
                    new = {key: each for key, each in requests.items() if key not in answered}
                    answered |= {*new}
                    if new:
                        await self._send("tasks/update", inputResponses=await self.answer(new))
                case {"status": "working"}:
                    pass
                case _:
                    raise response_error("contains an invalid task")
            if state.get("statusMessage") not in (None, message):
                message, count = state["statusMessage"], count + 1
                await self.on_progress(count, None, message)
            await asyncio.sleep(poll_seconds(state))
            state = await self._send("tasks/get")

    async def _cancel(self) -> None:
        with suppress(Exception):  # the connection has ended, or the task has
            async with asyncio.timeout(CANCEL_TIMEOUT_SECONDS):
                await self._send("tasks/cancel")

    async def _send(self, method: str, **params: Any) -> Mapping[str, Any]:
        return await self.send(TaskRequest(method=method, params={"taskId": self.id, **params}))


def task_state(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool] | None:
    """Return the state of the task that a server has created in place of a result, and whether it is an extension's.

    Raises:
        ToolFailed: ``mcp.answer``: it is invalid.
    """
    is_extension = result.get("resultType") == "task"
    if not is_extension and "task" not in result:
        return None
    state = result if is_extension else result["task"]
    id = state.get("taskId") if isinstance(state, dict) else None
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID_CHARS:
        raise response_error("contains an invalid task")
    return state, is_extension


def poll_seconds(state: Mapping[str, Any]) -> float:
    """Return the time until the state of a task is requested again, in seconds."""
    milliseconds = state.get("pollIntervalMs", state.get("pollInterval"))
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return DEFAULT_POLL_SECONDS
    return min(MAX_POLL_SECONDS * 1000, max(MIN_POLL_SECONDS * 1000, milliseconds)) / 1000


def read_questions(requests: Mapping[str, Any]) -> dict[str, types.InputRequest]:
    """Return questions from the wire format of MCP; raise a `ToolFailed` if they are invalid."""
    try:
        found: dict[str, types.InputRequest] = QUESTIONS.validate_python(requests, by_name=False)
        return found
    except ValidationError:
        raise response_error("contains invalid questions") from None


QUESTIONS: Final[Any] = TypeAdapter(types.InputRequests)
