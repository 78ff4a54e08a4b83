"""An MCP server with the tools of a JSON file: ``python stock_server.py FILE``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(path: str) -> None:
    """Answer requests on stdin until it ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request["method"], path)}), flush=True)


def answer(method: str, path: str) -> dict[str, Any]:
    """Return the result of a method, or an error."""
    match method:
        case "initialize":
            server = {"name": "stock", "version": "2"}
            return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}}
        case "tools/list":
            return {"result": {"tools": json.loads(Path(path).read_text())}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "3"}]}}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


if __name__ == "__main__":
    main(sys.argv[1])
