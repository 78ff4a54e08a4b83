"""The process of a worker on systems where nothing can be forked from a zygote: macOS and Windows.

This file is a program: ``python -I spawned.py``. The first line of its standard input is a JSON object with its setup.
The rest of the input never comes: its end means that the host is gone, and ends this process.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def main() -> NoReturn:
    """Run a worker."""
    setup = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_host, daemon=True).start()
    sys.path[:] = setup["path"]
    from neuroscript.isolation import zygote
    from neuroscript.isolation.frames import Channel

    channel = Channel(_connection(setup), is_lenient=True)
    try:
        _, rules = channel.receive()
        zygote.run_worker(channel, rules, setup["descriptors"], (), None)
    except EOFError:
        pass
    os._exit(0)


def _connection(setup: dict[str, Any]) -> socket.socket:
    if sys.platform == "win32":
        return socket.fromshare(bytes.fromhex(setup["share"]))
    return socket.socket(fileno=setup["socket"])


def _end_with_the_host() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
