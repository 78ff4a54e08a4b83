"""One call of an MCP server's tool: send the exact values, and convert the result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import CallError
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, passed_arguments
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import RequestSender
from neuroscript.interop.mcp.client.results import ReturnSpec, value_of
from neuroscript.io.text import one_line
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.tool_spec import ArgSpec


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
        result: Mapping[str, Any] = await self.connection.request(
            lambda dialogue: dialogue.call(self.definition, arguments, report_progress)
        )
        return value_of(result, self.promise)
