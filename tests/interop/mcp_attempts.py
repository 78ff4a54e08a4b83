"""An MCP server over stdio whose tool tries what a server should not do. Its arguments are ignored."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from mcp_stdio import OBJECT, send_text, serve  # beside this file, which is run as a program


def attempt(what: str, place: str) -> str:
    """Try something, and return the outcome."""
    match what:
        case "read":
            return Path(place).read_text()
        case "write":
            Path(place).write_text("x")
        case "delete":
            Path(place).unlink()
        case "connect":
            socket.create_connection(("127.0.0.1", int(place)), 5).close()
        case "execute":
            return subprocess.run([place], capture_output=True, text=True, check=False).stdout.strip()
        case "environment":
            return json.dumps({name: os.environ[name] for name in os.environ if name != "LC_CTYPE"})  # Python sets it
        case "daemon":
            if not os.fork():
                os.setsid()
                if not os.fork():
                    os.chdir(place)
                    os.closerange(0, 64)
                    time.sleep(600)
                os._exit(0)
    return "done"


def call(request: dict[str, Any]) -> None:
    """Respond to a call."""
    try:
        text = attempt(**request["params"]["arguments"])
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        text = "refused"
    send_text(request, text)


if __name__ == "__main__":
    string = {"type": "string"}
    takes = {**OBJECT, "properties": {"what": string, "place": string}, "required": ["what", "place"]}
    serve("attempts", lambda: [{"name": "attempt", "inputSchema": takes}], call)
