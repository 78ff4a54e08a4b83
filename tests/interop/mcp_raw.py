"""An MCP server that answers with arbitrary bytes: over stdio as a program, over HTTP in a thread."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

HELLO: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}
TAKES: Final = {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]}
GIVES: Final = {"type": "object", "properties": {"a": {"type": ["number", "null"]}}}
TOOLS: Final = [{"name": "raw", "inputSchema": TAKES}, {"name": "held", "inputSchema": TAKES, "outputSchema": GIVES}]
SURROGATE: Final = "<not UTF-8>"
"""What stands for a byte that is not UTF-8."""


def answer(request: dict[str, Any], tools: list[Any]) -> bytes | None:
    """Return the line that answers a message, or None.

    ``ID`` in the line that a call passes is replaced by the number of the call, and ``[N * TEXT]`` by a list with N
    copies of the string.
    """
    match request["method"]:
        case "initialize":
            found: Any = {"result": HELLO}
        case "tools/list":
            found = {"result": {"tools": tools}}
        case "tools/call":
            line = request["params"]["arguments"]["line"].replace("ID", str(request["id"]))
            head, is_many, rest = line.partition("[N * ")
            if is_many:
                (count, text), rest = rest.split("]", 1)[0].split(" ", 1), rest.split("]", 1)[1]
                line = f"{head}[{','.join([text] * int(count))}]{rest}"
            before, is_odd, after = line.encode().partition(SURROGATE.encode())
            return before + b"\xff" + after if is_odd else before
        case _:
            found = {"error": {"code": -32601, "message": "no"}}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **found}).encode() if "id" in request else None


class Handler(BaseHTTPRequestHandler):
    """Answers over HTTP, with one body or a stream of events, depending on the server's ``kind``."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data = answer(request, self.server.tools)
        is_events = self.server.kind == "text/event-stream" and data is not None
        body = b"event: message\ndata: " + data + b"\n\n" if is_events and data else data or b""
        self.send_response(200 if data is not None else 202)
        self.send_header("content-type", self.server.kind if data is not None else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served(kind: str, tools: list[Any] = TOOLS) -> Iterator[str]:
    """Serve over HTTP, and yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.kind, server.tools, server.daemon_threads = kind, tools, True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join(10)


def main() -> None:
    """Serve over stdio the tools of a file, or `TOOLS`."""
    tools = json.loads(Path(sys.argv[1]).read_text()) if sys.argv[1:] else TOOLS
    for line in sys.stdin:
        data = answer(json.loads(line), tools)
        if data is not None:
            sys.stdout.buffer.write(data + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
