"""Tasks: calls that continue after the response to their request. Clients poll, answer and cancel them.

The tasks of a server are in its memory, so a client must send all requests about a task to the same process.

See the extension ``io.modelcontextprotocol/tasks`` of MCP 2026-07-28.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import attrs

from neuroscript._imports import missing_extra
from neuroscript.interop.mcp.server.request_states import principal_of, scopes_of
from neuroscript.interop.mcp.server.rounds import ELICITATION, ROOTS, SAMPLING, TASKS

try:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        HEADER_MISMATCH,
        INVALID_PARAMS,
        METHOD_NOT_FOUND,
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        RequestParams,
    )
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

TASK_SECONDS: Final = 3600.0
"""Time after which a task is cancelled and forgotten, in seconds since it began."""

TASK_POLL_SECONDS: Final = 1.0
"""The interval that the server suggests for polling, in seconds."""

MAX_TASKS: Final = 1_000
"""Maximum number of tasks of a server; further calls are not continued as tasks."""

REQUIRED: Final[Mapping[str, Any]] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}

MESSAGES: Final[Mapping[str, tuple[Any, Any]]] = {
    ELICITATION: (types.ElicitRequest, types.ElicitResult),
    SAMPLING: (types.CreateMessageRequest, types.CreateMessageResult),
    ROOTS: (types.ListRootsRequest, types.ListRootsResult),
}
"""The types of a request to the client and of its result, by method."""

Outcome = Literal["completed", "failed", "cancelled"]


class TaskRequestParams(RequestParams):
    """Parameters of a request about a task."""

    task_id: str


class TaskUpdateParams(TaskRequestParams):
    """Parameters of ``tasks/update``."""

    input_responses: dict[str, Any]


@attrs.define(eq=False, repr=False)
class Task:
    """A call that continues after the response to its request. Its methods must be called on the loop of the server.

    Attributes:
        principal: Who made the call; other clients cannot find the task.
        scopes: The scopes of the token with which it was made; tokens without one of them cannot find the task.
        id: A random id.
        began: When it began, in seconds since 1970.
        changed: When its state changed last.
        message: What the tool reported last about its progress.
        stop: Stops the call.
        outcome: How it ended, or an empty string.
        detail: The result or the error in its state.
        questions: The requests to the client without an answer, by key.
    """

    principal: str | None
    scopes: frozenset[str] = frozenset()
    id: str = attrs.field(factory=lambda: os.urandom(16).hex())
    began: float = attrs.field(factory=time.time)
    changed: float = attrs.field(factory=time.time)
    message: str = ""
    stop: Callable[[], object] | None = None
    outcome: Outcome | Literal[""] = ""
    detail: Mapping[str, Any] = attrs.field(factory=dict)
    questions: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    _answers: dict[str, asyncio.Future[dict[str, Any]]] = attrs.field(factory=dict)
    _counts: Counter[str] = attrs.field(factory=Counter)

    def state(self) -> dict[str, Any]:
        """Return its state in the wire format."""
        status = self.outcome or ("input_required" if self.questions else "working")
        return {
            "taskId": self.id,
            "status": status,
            **({"statusMessage": self.message} if self.message else {}),
            "createdAt": _timestamp(self.began),
            "lastUpdatedAt": _timestamp(self.changed),
            "ttlMs": round(TASK_SECONDS * 1_000),
            "pollIntervalMs": round(TASK_POLL_SECONDS * 1_000),
        }

    def details(self) -> dict[str, Any]:
        """Return its state with the questions, the result or the error."""
        asked = {"inputRequests": dict(self.questions)} if self.questions and not self.outcome else {}
        return {**self.state(), **asked, **self.detail}

    async def ask(self, key: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the client's answer to a question, and wait for it.

        Args:
            key: The key of the question; a number is added if it is not unique.

        Raises:
            asyncio.CancelledError: The task has been cancelled.
        """
        if self.outcome:
            raise asyncio.CancelledError
        self._counts[key] += 1
        key = key if self._counts[key] == 1 else f"{key}-{self._counts[key]}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[key] = answer
        self.questions[key] = {"method": method, "params": dict(params)}
        self.changed = time.time()
        try:
            return await answer
        finally:
            self._forget(key)

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Pass answers to those who wait for them; answers to other questions are ignored.

        Raises:
            Exception: A ``ValidationError``, which the SDK reports to the client: one of the answers is invalid.
        """
        found = {
            key: MESSAGES[question["method"]][1].model_validate(answers[key])
            for key, question in self.questions.items()
            if key in answers
        }
        for key, answer in found.items():
            waiting = self._answers[key]
            self._forget(key)
            if not waiting.done():
                waiting.set_result(answer.model_dump(by_alias=True, mode="json", exclude_none=True))

    def _forget(self, key: str) -> None:
        self.questions.pop(key, None)
        self._answers.pop(key, None)
        self.changed = time.time()

    def end(self, outcome: Outcome, detail: Mapping[str, Any] | None = None) -> None:
        """Record how it ended, unless it has ended before."""
        if not self.outcome:
            self.outcome, self.detail, self.changed = outcome, detail or {}, time.time()

    def cancel(self) -> None:
        """Cancel it, as far as its call can be stopped."""
        if not self.outcome:
            self.end("cancelled")
            if self.stop is not None:
                self.stop()


class Tasks:
    """The tasks of a server, and the requests about them.

    Args:
        server: The server that answers the requests.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._tasks: dict[str, Task] = {}
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", TaskRequestParams, self._get)
        server.add_request_handler("tasks/update", TaskUpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskRequestParams, self._cancel)

    def begin(self, context: Any) -> Task | None:
        """Return a new task for a request, or None if there are too many."""
        self.expire()
        if len(self._tasks) >= MAX_TASKS:
            return None
        task = Task(principal_of(context), scopes_of(context))
        self._tasks[task.id] = task
        return task

    def expire(self) -> None:
        """Cancel and forget the tasks whose time is over."""
        oldest = time.time() - TASK_SECONDS
        for task in [task for task in self._tasks.values() if task.began < oldest]:
            self.forget(task)

    def forget(self, task: Task) -> None:
        """Cancel and forget a task."""
        task.cancel()
        del self._tasks[task.id]

    def close(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks.values():
            task.cancel()

    async def _get(self, context: Any, params: TaskRequestParams) -> dict[str, Any]:
        return {"resultType": "complete", **self._task(context, params.task_id).details()}

    async def _update(self, context: Any, params: TaskUpdateParams) -> dict[str, Any]:
        self._task(context, params.task_id).answer(params.input_responses)
        return {}

    async def _cancel(self, context: Any, params: TaskRequestParams) -> dict[str, Any]:
        self._task(context, params.task_id).cancel()
        return {}

    def _task(self, context: Any, id: str) -> Task:
        """Return a task of the client that makes a request.

        Raises:
            MCPError: The protocol or the client does not support tasks, the header names another task, or the client
                has no such task.
        """
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
        if not supports_tasks(context):
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the client does not support tasks", REQUIRED)
        if context.request is not None and context.request.headers.get("mcp-name", id) != id:
            raise MCPError(HEADER_MISMATCH, "the header Mcp-Name must be the id of the task")
        task = self._tasks.get(id)
        if task is None or task.principal != principal_of(context) or not task.scopes <= scopes_of(context):
            raise MCPError(INVALID_PARAMS, "there is no task with this id")
        return task


def supports_tasks(context: Any) -> bool:
    """Return whether the client that makes a request supports tasks."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    return TASKS in (getattr(context.session.client_capabilities, "extensions", None) or {})


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
