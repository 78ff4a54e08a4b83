"""Servers over stdio whose tools use every part of a definition and every form of a result: ``sdk`` or ``fastmcp``."""

from __future__ import annotations

import sys
from typing import Any

import mcp_types as types
from fastmcp import FastMCP
from fastmcp.utilities.types import Image
from mcp.server.mcpserver import MCPServer
from mcp_types import Icon, ToolAnnotations
from pydantic import BaseModel

PNG = b"\x89PNG\r\n\x1a\n\xff"
LONG = "Search.\n\n" + "\n".join(f"- rule {number}:\tmind\u00e9d" for number in range(200))
ICON = Icon(src="https://shop.example/a.png", mime_type="image/png", sizes=["48x48"])
QUIET = ToolAnnotations(title="Look", read_only_hint=True, open_world_hint=False)
ADDING = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)

LINK = types.ResourceLink(
    type="resource_link",
    uri="shop:a",
    name="a",
    title="A",
    description="One.",
    mime_type="text/csv",
    size=3,
    icons=[ICON],
)
BLOCKS: list[Any] = [
    types.TextContent(type="text", text="The plot:", annotations=types.Annotations(audience=["user"], priority=0.5)),
    types.ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png", _meta={"a": [1]}),
    types.AudioContent(type="audio", data="UklGRgA=", mime_type="audio/wav"),
    LINK,
    types.EmbeddedResource(
        type="resource",
        resource=types.TextResourceContents(
            uri="shop:b", mime_type="text/plain", text="gr\u00fc\u00dfe\n", _meta={"b": 2}
        ),
    ),
    types.EmbeddedResource(type="resource", resource=types.BlobResourceContents(uri="shop:c", blob="/w==")),
]

sdk = MCPServer("rich")


class Found(BaseModel):
    """What was found."""

    names: list[str]
    total: int


@sdk.tool(
    title="Search the shop", description=LONG, annotations=QUIET, icons=[ICON], meta={"shop/rank": {"a": [1, None]}}
)
def search_shop(text: str, limit: int = 3) -> Found:
    return Found(names=[text], total=limit)


@sdk.tool(annotations=ADDING)
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@sdk.tool()
def blocks() -> types.CallToolResult:
    """Return a block of each form."""
    return types.CallToolResult(content=BLOCKS, _meta={"took": 3})


@sdk.tool()
def chart() -> types.CallToolResult:
    """Return a picture beside structured content."""
    return types.CallToolResult(content=BLOCKS[1:2], structured_content={"points": [1, 2]})


@sdk.tool(structured_output=False)
def nothing() -> None:
    """Return nothing."""


@sdk.tool()
def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)


fast = FastMCP("fast")


@fast.tool(title="Add", tags={"sums"}, icons=[ICON], meta={"m": 1}, annotations=ADDING)
def plus(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@fast.tool
def names(count: int) -> list[str]:
    """Return names."""
    return [f"name {number}" for number in range(count)]


@fast.tool
def found(name: str) -> Found:
    """Return an object."""
    return Found(names=[name], total=1)


@fast.tool
def picture() -> Image:
    """Return a picture."""
    return Image(data=PNG, format="png")


@fast.tool(output_schema=None)
def several() -> list[Any]:
    """Return texts and a picture."""
    return ["one", Image(data=PNG, format="png"), {"two": 2}]


if __name__ == "__main__":
    if sys.argv[1] == "sdk":
        sdk.run()
    else:
        fast.run(show_banner=False, log_level="CRITICAL")
