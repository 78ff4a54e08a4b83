"""A toolset with each kind of argument and result that the pages of tools show, for tests."""

from __future__ import annotations

import base64
import datetime
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

import attrs

from neuroscript import (
    ArgSpec,
    ArgType,
    Content,
    Engine,
    Example,
    ExecutionPolicy,
    Host,
    Image,
    Runtime,
    ToolPolicy,
    Toolset,
    ToolSpec,
)

PURE: Final = ToolPolicy(effects=("pure",))
READS: Final = ToolPolicy(effects=("reads",))
WRITES: Final = ToolPolicy(effects=("writes",))

RED_DOT: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg=="
)
SCRIPT_PICTURE: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.__xss=1"><script>window.__xss=1</script></svg>'
)
SECRET: Final = "correct-horse-battery"


class Address(TypedDict):
    """Where a parcel goes."""

    street: str
    city: str


@attrs.frozen
class Parcel:
    """What is sent."""

    to: Address
    weight: float
    tags: list[str] = attrs.field(factory=list)
    kind: Literal["letter", "box"] = "letter"


@attrs.define(eq=False)
class Workshop:
    """Tools, and what the test controls while they run.

    Attributes:
        go: Lets the tools that wait go on.
        waiting: Set when a tool waits.
        received: The arguments that tools have received.
        ended: The tools that were cancelled.
    """

    go: threading.Event = attrs.field(factory=threading.Event)
    waiting: threading.Event = attrs.field(factory=threading.Event)
    received: list[Any] = attrs.field(factory=list)
    ended: list[str] = attrs.field(factory=list)

    def engine(self, directory: Path, **options: Any) -> Engine:
        """Return an engine with the tools."""
        policy = options.pop("policy", ExecutionPolicy(grants=("fs:read:**",), deny=("shop.denied",)))
        return Engine(plugins=(), toolsets=[self.tools()], host=Host(sandbox_dir=directory), policy=policy, **options)

    def tools(self) -> Toolset:
        """Return the toolset."""
        tools = Toolset("shop")
        self._add_values(tools)
        self._add_results(tools)
        self._add_waiting(tools)
        return tools

    def _add_values(self, tools: Toolset) -> None:
        @tools.tool(policy=PURE)
        def price(item: str, count: int = 1, discount: float | None = None, day: datetime.date | None = None) -> float:
            """Return the price of an item.

            Args:
                item: Its name.
                count: How many.
                discount: The part that is not paid, from 0 to 1.
                day: When it is bought.
            """
            self.received.append((item, count, discount, day))
            return len(item) * count * (1 - (discount or 0)) / 2

        @tools.tool(policy=PURE)
        def ship(parcel: Parcel, express: bool, notes: dict[str, str] | None = None) -> dict[str, Any]:
            """Describe a shipment.

            Args:
                parcel: What is sent.
                express: Whether it must arrive tomorrow.
                notes: Notes for the driver by place.
            """
            self.received.append((parcel, express, notes))
            return {"city": parcel.to["city"], "tags": parcel.tags, "notes": notes}

        @tools.tool(policy=ToolPolicy(effects=("reads",), capabilities=("fs:read:{path}",)))
        def read(rt: Runtime, path: str) -> str:
            """Read a file of the sandbox.

            Args:
                path: Which one.
            """
            return rt.fs.read_text(path)

        tools.add(
            ToolSpec(
                "login",
                "shop",
                (ArgSpec("user", ArgType.STRING), ArgSpec("password", ArgType.STRING, secret=True)),
                return_type=ArgType.STRING,
                description="Check a password.",
            ),
            lambda rt, user, password: (
                self.received.append((user, password)) or f"{user} has {len(password)} characters"
            ),
            policy=PURE,
        )

        @tools.tool(policy=WRITES)
        def order(item: str) -> str:
            """Order an item."""
            self.received.append(item)
            return f"ordered {item}"

        @tools.tool(policy=PURE)
        def denied(item: str) -> str:
            """Do something that the policy denies."""
            return item

        tools.add(
            ToolSpec(
                "repeat",
                "shop",
                (ArgSpec("text", ArgType.STRING), ArgSpec("times", ArgType.INT, default=2)),
                return_type=ArgType.STRING,
                description="Repeat a string.",
                deprecated="use str.repeat",
                examples=(Example(("ab", 3), "ababab"), Example({"text": "<b>"}, note="by name")),
            ),
            lambda rt, text, times: text * times,
            policy=PURE,
        )
        tools.alias("shop.again", "shop.repeat")

        @tools.tool(policy=ToolPolicy(effects=("reads",), requires_approval=True))
        def confidential(item: str) -> str:
            """Read something that needs an approval."""
            return f"contents of {item}"

        @tools.tool(policy=ToolPolicy(effects=("prompts",)))
        def ask(rt: Runtime) -> str:
            """Ask the user."""
            return rt.prompt_user("Name?")

        @tools.tool(policy=PURE)
        def measure(data: bytes, day: datetime.date | None = None) -> str:
            """Return the size of data.

            Args:
                data: What is measured.
                day: When.
            """
            self.received.append((data, day))
            return f"{len(data)} bytes"

        @tools.tool(policy=PURE)
        def spin() -> str:
            """Use the processor until the test goes on; it does not declare that it waits."""
            self.waiting.set()
            while not self.go.is_set():
                pass
            return "spun"

        @tools.tool(policy=PURE)
        def talk(rt: Runtime) -> str:
            """Print and log."""
            rt.println("printed", "\x1b[31mred")
            rt.logger.warning("logged %s", "<i>text</i>")
            return "said"

    def _add_results(self, tools: Toolset) -> None:
        @tools.tool(policy=PURE)
        def picture() -> bytes:
            """Return a picture."""
            return RED_DOT

        @tools.tool(policy=PURE)
        def drawing() -> Content:
            """Return something that says it is a picture, but is a document with a script."""
            return Content("drawn", Image(SCRIPT_PICTURE, "image/svg+xml"), Image(RED_DOT, "image/svg+xml"))

        @tools.tool(policy=PURE)
        def rows() -> list[dict[str, Any]]:
            """Return rows."""
            return [{"name": "pen", "price": 1.5}, {"name": "<b>ink</b>", "price": 4.0}]

        @tools.tool(policy=PURE)
        def remember(rt: Runtime, value: str) -> str:
            """Set a variable."""
            rt.set_var("remembered", value)
            return "stored"

    def _add_waiting(self, tools: Toolset) -> None:
        @tools.tool(policy=READS)
        def count(rt: Runtime, to: int) -> Iterator[str]:
            """Count, and wait in the middle."""
            for number in range(1, to + 1):
                rt.progress(number, to, f"step {number}")
                rt.logger.info("counted %s", number)
                yield f"number {number}"
                if number == to // 2:
                    self._wait(rt, "count")

        @tools.tool(policy=READS)
        def wait(rt: Runtime) -> str:
            """Wait until the test goes on."""
            self._wait(rt, "wait")
            return "waited"

    def _wait(self, rt: Runtime, name: str) -> None:
        self.waiting.set()
        while not self.go.wait(0.01):
            if rt.cancelled:
                self.ended.append(name)
                return


def many_tools(count: int = 1_000) -> Toolset:
    """Return many tools with descriptions of usual length."""
    tools = Toolset("many")
    for number in range(count):
        spec = ToolSpec(
            f"tool_{number}",
            "many",
            (ArgSpec("value", ArgType.STRING, description="What it works on."),),
            description=f"Convert a value with number {number}, and return what the conversion of this value gives.",
        )
        tools.add(spec, lambda rt, value: value, policy=PURE)
    return tools
