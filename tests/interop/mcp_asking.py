"""MCP servers that ask questions and create tasks: over stdio without an SDK, and over HTTP in threads.

The argument of the program is the protocol version that it speaks.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

OBJECT: Final = {"type": "object"}
MODERN: Final = "2026-07-28"
ARGUMENTS: Final = {"rounds": {"type": "array"}, "states": {"type": "array"}, "file": {"type": "string"}}
TOOLS: Final = (
    "ask",
    "ask_forever",
    "hold",
    "answers",
    "die",
    "huge_state",
    "task",
    "odd_task",
    "odd_result",
    "mismatch",
)


def command(version: str) -> list[str]:
    """Return the command line of a server."""
    return [sys.executable, str(Path(__file__)), version]


def form(message: str = "Which?", **properties: Any) -> dict[str, Any]:
    """Return the request to fill in a form, all of whose fields are required."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


class Server:
    """A server on the standard streams."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.count = 0
        self.lists = self.refused_at = 0
        self.early: Any = ()
        self.roots: Any = None
        self.held: list[Any] = []
        self.task: dict[str, Any] = {}

    def run(self) -> None:
        """Answer requests until the input ends."""
        for line in sys.stdin:
            self.handle(json.loads(line))

    def handle(self, request: dict[str, Any]) -> None:
        """Answer one request; notifications are ignored."""
        params = request.get("params") or {}
        match request.get("method"):
            case "server/discover" if self.version == MODERN:
                offered = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
                found = {"supportedVersions": [MODERN], "capabilities": offered}
                self.reply(request, {**found, "ttlMs": 0, "cacheScope": "private"})
            case "initialize" if self.version != MODERN:
                tasks = {"requests": {"tools": {"call": {}}}, "cancel": {}}
                offered = {"tools": {}, **({"tasks": tasks} if self.version == "2025-11-25" else {})}
                info = {"name": "asking", "version": "1"}
                self.reply(request, {"protocolVersion": self.version, "capabilities": offered, "serverInfo": info})
            case "tools/list":
                self.lists += 1
                if self.version != MODERN:
                    self.early = self.ask(form(a={"type": "string"})), self.ask({"method": "roots/list"})
                self.reply(request, {"tools": [*map(self.definition, TOOLS)], "ttlMs": 0, "cacheScope": "private"})
            case "notifications/roots/list_changed":
                self.roots = self.ask({"method": "roots/list"})
            case "tools/call":
                getattr(self, f"call_{params['name']}")(request, params["arguments"], params)
            case "tasks/get":
                self.reply(request, self.next_state())
            case "tasks/result":
                while self.task["states"]:
                    self.next_state()
                self.text(request, self.task["answers"])
            case "tasks/update":
                self.task["answers"].append(params["inputResponses"])
                self.reply(request, {})
            case "tasks/cancel":
                Path(self.task["file"]).write_text("cancelled")
                self.reply(request, self.next_state())
            case _ if "method" in request and "id" in request:
                self.send(id=request["id"], error={"code": -32601, "message": "no"})

    def definition(self, name: str) -> dict[str, Any]:
        """Return the definition of a tool."""
        is_task = name == "task" and self.version == "2025-11-25"
        needs = {"execution": {"taskSupport": "required"}} if is_task else {}
        return {"name": name, "inputSchema": {**OBJECT, "properties": ARGUMENTS}, **needs}

    def send(self, **message: Any) -> None:
        """Write a message."""
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def reply(self, request: dict[str, Any], result: dict[str, Any]) -> None:
        """Send a result."""
        complete = {"resultType": "complete"} if self.version == MODERN else {}
        self.send(id=request["id"], result={**complete, **result})

    def text(self, request: dict[str, Any], data: Any) -> None:
        """Send the result of a call: data as text."""
        self.reply(request, {"content": [{"type": "text", "text": json.dumps(data)}]})

    def ask(self, question: dict[str, Any]) -> Any:
        """Send a question as a request, and return the result or the error; other requests wait until then."""
        self.count += 1
        self.send(id=f"q{self.count}", **question)
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == f"q{self.count}" and "method" not in message:
                return message.get("result", message.get("error"))
            self.handle(message)
        return sys.exit()

    # Tools

    def call_ask(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Ask the questions of each round, and return the answers."""
        rounds = arguments["rounds"]
        if self.version != MODERN:
            self.text(request, [{key: self.ask(each) for key, each in one.items()} for one in rounds])
        else:
            done = int(params.get("requestState", "0"))
            if done < len(rounds):
                asked = {"inputRequests": rounds[done]} if rounds[done] else {}
                self.reply(request, {"resultType": "input_required", "requestState": str(done + 1), **asked})
            else:
                self.text(request, params.get("inputResponses"))
        for each in self.held:
            self.text(each, "held")
        self.held = []

    def call_ask_forever(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Ask without end."""
        question = form(a={"type": "string"})
        if self.version == MODERN:
            self.reply(request, {"resultType": "input_required", "inputRequests": {"a": question}})
        while self.version != MODERN and self.ask(question):
            pass

    def call_hold(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Wait for a call of the tool that asks."""
        self.held.append(request)

    def call_answers(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Return the answers to the questions before any call, and the roots since then."""
        self.text(request, [*self.early, self.roots])

    def call_die(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """End the process right after a question."""
        self.send(id="q", **form(a={"type": "string"}))
        os._exit(3)

    def call_huge_state(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Return a request state that is too long."""
        self.reply(request, {"resultType": "input_required", "requestState": "x" * 70_000})

    def call_task(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Create a task with the states of the argument; the last state repeats."""
        assert self.version == MODERN or "task" in params
        self.task = {"states": arguments["states"], "answers": [], "file": arguments.get("file")}
        state = self.next_state()
        self.reply(request, {"resultType": "task", **state} if self.version == MODERN else {"task": state})

    def call_odd_task(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Return a task without an id."""
        self.reply(request, {"resultType": "task", "task": {"status": "working"}})

    def call_odd_result(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Return a result of an unknown type."""
        self.reply(request, {"resultType": "odd", "content": []})

    def call_mismatch(self, request: dict[str, Any], arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Refuse the headers of the first call, and return how often the tools were listed since then."""
        if self.refused_at:
            self.text(request, self.lists - self.refused_at)
        else:
            self.refused_at = self.lists
            self.send(id=request["id"], error={"code": -32020, "message": "the headers do not match"})

    def next_state(self) -> dict[str, Any]:
        """Return the next state of the task."""
        states = self.task["states"]
        state = states[0] if len(states) == 1 and states[0]["status"] == "working" else states.pop(0)
        is_modern = self.version == MODERN
        times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        hints = {"ttlMs": None, "pollIntervalMs": 1} if is_modern else {"ttl": None, "pollInterval": 1}
        if is_modern and state["status"] == "completed" and "result" not in state:
            text = json.dumps(self.task["answers"])
            state = {**state, "result": {"content": [{"type": "text", "text": text}]}}
        return {"taskId": "t1", **times, **hints, **state}


class Handler(BaseHTTPRequestHandler):
    """Serves two tools over HTTP: one asks on the stream of its call as soon as two calls are in progress; the stream of
    the other has no end."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        place: Any = self.server
        match message:
            case {"id": str(id), "result": result}:
                place.answers[id].put(result)
                self.reply(202, b"")
            case {"method": "initialize", "id": id}:
                info = {"name": "two", "version": "1"}
                offered = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
                self.json(id, offered)
            case {"method": "tools/list", "id": id}:
                self.json(id, {"tools": [{"name": name, "inputSchema": OBJECT} for name in ("ask", "endless")]})
            case {"method": "tools/call", "id": id, "params": {"name": name}}:
                self.call(id, name)
            case {"id": id}:
                self.reply(200, json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": ""}}))
            case _:
                self.reply(202, b"")

    def call(self, id: Any, name: str) -> None:
        place: Any = self.server
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        if name == "endless":
            with suppress(OSError):  # the client has gone
                while True:
                    self.event({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
            place.answers["gone"].put(None)
            return
        place.barrier.wait(20)
        place.answers[f"q{id}"] = SimpleQueue()
        self.event({"id": f"q{id}", **form(a={"type": "string"})})
        answer = place.answers[f"q{id}"].get(timeout=20)
        self.event({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(answer)}]}})

    def event(self, message: dict[str, Any]) -> None:
        self.wfile.write(b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")
        self.wfile.flush()

    def json(self, id: Any, result: dict[str, Any]) -> None:
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))

    def reply(self, status: int, body: str | bytes) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.reply(405, b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served() -> Iterator[tuple[str, SimpleQueue[None]]]:
    """Serve over HTTP, and yield the address, and a queue that gets an item when an endless stream has been left."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        place: Any = server
        place.barrier, place.answers, server.daemon_threads = threading.Barrier(2), {"gone": SimpleQueue()}, True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp", place.answers["gone"]
        finally:
            server.shutdown()
            thread.join(10)


if __name__ == "__main__":
    Server(sys.argv[1]).run()
