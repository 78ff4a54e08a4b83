"""One call of an MCP server's tool: send the exact values, answer the server's questions, and convert the result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from math import inf
from time import monotonic
from typing import Any, TypeVar

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import CallError, PromptError
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, passed_arguments
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import RequestSender
from neuroscript.interop.mcp.client.results import ReturnSpec, value_of
from neuroscript.io.text import one_line
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.tool_spec import ArgSpec

T = TypeVar("T")


class Caller:
    """The call on whose behalf a server asks; its questions end with it.

    Args:
        rt: The Runtime of the call. Questions are answered in the context of this constructor, in threads, because
            prompters and models block.
    """

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._context = copy_context()
        self._answer: asyncio.Future[Any] | None = None

    async def run(self, work: Callable[[Runtime], T]) -> T:
        """Return the result of *work*, called with the Runtime in a thread; await it once at a time, in one loop.

        Raises:
            CallError: ``runtime.closed``: the call has ended.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        context = self._context.copy()

        def body() -> None:
            settle: Callable[[], None]
            try:
                settle = partial(answer.set_result, context.run(work, self._rt))
            except Exception as error:
                settle = partial(answer.set_exception, error)
            except BaseException:  # an interrupt would stop the loop
                settle = partial(answer.set_exception, PromptError("the prompt was interrupted"))
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_settle, answer, settle)

        self._answer = answer
        threading.Thread(target=body, name="neuroscript-mcp-answer", daemon=True).start()
        return await answer

    def end(self) -> None:
        """End the question without an answer, because the call has ended."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(CallError("the call has ended", code="runtime.closed"))

    def log(self, text: str) -> None:
        """Log why a question was not answered."""
        with suppress(CallError):  # the call has already ended
            self._rt.logger.warning("%s", text)

    @property
    def remaining_seconds(self) -> float:
        """The time that the call has left, in seconds; infinite if it is unlimited."""
        deadline = self._rt.deadline
        return inf if deadline is None else max(deadline - monotonic(), 0.0)


def _settle(answer: asyncio.Future[Any], settle: Callable[[], None]) -> None:
    if not answer.done():  # otherwise the call has ended
        settle()


@attrs.frozen(eq=False)
class RemoteCall:
    """The function of an MCP server's tool.

    Attributes:
        definition: The accepted definition.
        args: The arguments of the tool, in order.
        promise: What the tool returns.
        connection: The connection to its server.
    """

    definition: Definition
    args: tuple[ArgSpec, ...]
    promise: ReturnSpec
    connection: RequestSender = attrs.field(repr=False)

    async def __call__(self, rt: Runtime, *values: Any) -> Any:
        """Call the tool on its server; if this is cancelled, the server is notified."""
        loop = asyncio.get_running_loop()

        def tell(done: float, total: float | None, text: str) -> None:
            with suppress(CallError):  # the call has already ended
                rt.progress(done, total, text)

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            with suppress(RuntimeError):  # the loop has already ended
                loop.call_soon_threadsafe(tell, progress, total, one_line(message, MAX_DESCRIPTION_CHARS))

        arguments = to_plain(passed_arguments(self.args, values))
        caller = Caller(rt)
        result: Mapping[str, Any] = await self.connection.request(
            lambda dialogue: dialogue.call(self.definition, arguments, report_progress, caller)
        )
        return value_of(result, self.promise)
