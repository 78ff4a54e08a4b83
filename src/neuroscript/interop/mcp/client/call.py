"""One call of a foreign tool: exact values out, and what came of them in.

Source: contract section 3; issue "MCP".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs

from neuroscript.coercion.plain_data import plain
from neuroscript.errors import CallError
from neuroscript.interop.foreign import LONGEST, given
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.connection import Asking
from neuroscript.interop.mcp.client.results import Promise, value_of
from neuroscript.io.text import one_line
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.tool_spec import ArgSpec


@attrs.frozen(eq=False)
class Calling:
    """The function of a foreign tool.

    Attributes:
        definition: What was accepted.
        args: Its arguments, in order.
        promise: What it returns.
        connection: To its server.
    """

    definition: Definition
    args: tuple[ArgSpec, ...]
    promise: Promise
    connection: Asking = attrs.field(repr=False)

    async def __call__(self, rt: Runtime, *values: Any) -> Any:
        """Call the tool on its server; where this is cancelled, the server is told so."""
        loop = asyncio.get_running_loop()

        def tell(done: float, total: float | None, text: str) -> None:
            with suppress(CallError):  # the call has ended meanwhile
                rt.progress(done, total, text)

        async def told(progress: float, total: float | None, message: str | None) -> None:
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(tell, progress, total, one_line(message, LONGEST))

        arguments = plain(given(self.args, values))
        result: Mapping[str, Any] = await self.connection.asked(
            lambda dialogue: dialogue.call(self.definition, arguments, told)
        )
        return value_of(result, self.promise)
