"""Tools that the tests of adapters offer to the loops of frameworks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import attrs

from neuroscript import (
    Approval,
    ApprovalRequest,
    Engine,
    ExecutionPolicy,
    MemoryAudit,
    Runtime,
    ToolFailed,
    ToolPolicy,
    Toolset,
)

PICTURE = b"\x89PNG\r\n\x1a\n" + b"\x00" * 8
LOOKS = ToolPolicy(effects=("reads",))


def tally(count: int = 7, share: float = 0.5, tags: list[str] = []) -> str:  # noqa: B006
    """Return exactly what has arrived; a function without a Runtime, as a framework takes it."""
    return f"{count!r} {share!r} {tags!r}"


@attrs.define(eq=False)
class Shop:
    """An engine with tools that record their calls.

    Attributes:
        approvals: The arguments that an approver received.
        did: The calls that ran.
    """

    engine: Engine
    audit: MemoryAudit
    approvals: list[dict[str, Any]] = attrs.field(factory=list)
    did: list[str] = attrs.field(factory=list)
    began: asyncio.Event = attrs.field(factory=asyncio.Event)
    two: threading.Barrier = attrs.field(factory=lambda: threading.Barrier(2))

    @classmethod
    def opened(cls, **policy: Any) -> Shop:
        """Return a shop that permits everything except ``shop.pay``, and approves a purchase of less than 10."""

        def approve(request: ApprovalRequest) -> Approval:
            shop.approvals.append(dict(request.arguments))
            return Approval.approve() if request.arguments["count"] < 10 else Approval.reject("that is too much")

        audit = MemoryAudit()
        permits = ExecutionPolicy(**{"deny": ("shop.pay",), "approver": approve, **policy})
        shop = cls(Engine(plugins="none", policy=permits, audit=audit), audit)
        shop.engine.register(shop.toolset())
        return shop

    def toolset(self) -> Toolset:
        """Return the tools of this shop."""
        tools = Toolset("shop")

        @tools.tool(policy=ToolPolicy(effects=("pure",)), name="tally")
        def _tally(rt: Runtime, count: int = 7, share: float = 0.5, tags: list[str] | None = None) -> str:
            """Tell exactly what has arrived.

            Args:
                count: How many.
            """
            return tally(count, share, tags or [])

        @tools.tool()
        def pay(rt: Runtime) -> str:
            self.did.append("paid")
            return "paid"

        @tools.tool(policy=ToolPolicy(requires_approval=True, effects=("writes",)))
        def buy(rt: Runtime, count: int) -> int:
            self.did.append(f"bought {count!r}")
            return count

        @tools.tool(policy=LOOKS)
        def meet(rt: Runtime, name: str) -> str:
            """Return when two calls run at the same time."""
            self.two.wait(10)
            return name

        @tools.tool(policy=ToolPolicy(effects=("writes",)))
        async def step(rt: Runtime, name: str) -> str:
            """Start, yield to other calls, and end."""
            self.did.append(f"{name} begins")
            for _ in range(20):
                await asyncio.sleep(0)
            self.did.append(f"{name} ends")
            return name

        @tools.tool(policy=LOOKS)
        async def wait(rt: Runtime) -> str:
            """Wait forever."""
            self.began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.did.append("cancelled")
                raise
            return "never"

        @tools.tool(policy=LOOKS)
        def stock(rt: Runtime) -> dict[str, Any]:
            return {"milk": 2, "eggs": None}

        @tools.tool(policy=LOOKS)
        def picture(rt: Runtime) -> bytes:
            return PICTURE

        @tools.tool(policy=LOOKS)
        def seal(rt: Runtime) -> bytes:
            return b"hello"

        @tools.tool(policy=LOOKS)
        def milk(rt: Runtime) -> str:
            raise ToolFailed("there is no milk", retry="later")

        return tools

    def trail(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Return the tool, the code and the types of the arguments of each completed or refused call."""
        ended = [each for each in self.audit.records if each.code]
        return [(each.about.tool, each.code, tuple(kind.__name__ for kind in each.types)) for each in ended]
