"""Tools that send what no worker sends: frames that are not valid, and requests that their policy does not permit.

The code of a worker is not trusted, so the host must check everything that arrives. These tools use the worker's own
connection, as a plugin can that replaces the functions around it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from neuroscript import PolicyError, Runtime, ToolPolicy, Toolset
from neuroscript.isolation import worker_runtime
from neuroscript.isolation.frames import Channel, frame

forging = Toolset("forging")
permitted = Toolset("permitted")

EVERYTHING: Final = ToolPolicy(
    capabilities=("fs:read,write,delete:**", "secret:read:*", "model:use:*"),
    effects=("reads", "writes", "deletes"),
    sources=(),
    sinks=(),
)

Target = dict[str, Any]


def raw(text: bytes, *parts: bytes) -> bytes:
    """Return a frame with this text and these parts."""
    sizes = b"".join(struct.pack(">I", len(each)) for each in parts)
    return struct.pack(">II", len(text), len(parts)) + sizes + text + b"".join(parts)


def message(*values: Any) -> bytes:
    """Return a frame with JSON values as they are."""
    return raw(json.dumps(values).encode())


def channel_of(rt: Runtime) -> Channel:
    """Return the connection of the worker."""
    link = rt._link  # type: ignore[attr-defined]
    assert isinstance(link, worker_runtime.HostLink)
    return link._channel


def failure(**changes: Any) -> bytes:
    """Return the report of a failure, with changes."""
    usual = {
        "kind": "ToolFailed",
        "text": "x",
        "traceback": "",
        "code": "x.y",
        "retry": "never",
        "tool": "",
        "cause": None,
    }
    return message("failed", {**usual, **changes})


def nested(levels: int) -> Any:
    """Return the report of a failure with many causes."""
    usual = {"kind": "ToolFailed", "text": "x", "traceback": "", "code": "x.y", "retry": "never", "tool": ""}
    found: Any = None
    for _ in range(levels):
        found = {**usual, "cause": found}
    return found


COLLIDING: Final = 2**61 - 1
"""Integers that differ by this number have the same hash."""

FRAMES: Final[dict[str, Callable[[], bytes]]] = {
    # what is not a frame
    "garbage": lambda: b"\xff" * 1000,
    "text": lambda: b'{"jsonrpc": "2.0"}\n' * 100,
    "zeros": lambda: bytes(64),
    "giant_text": lambda: struct.pack(">II", 1 << 30, 0),
    "giant_part": lambda: struct.pack(">III", 2, 1, 1 << 30) + b"[]",
    "many_parts": lambda: struct.pack(">II", 2, 0xFFFFFFFF),
    "forty_million_parts": lambda: struct.pack(">II", 2, 40_000_000),
    "small_parts_that_are_large_together": lambda: struct.pack(">II", 2, 200) + struct.pack(">I", 1 << 20) * 200,
    # what is not JSON
    "no_json": lambda: raw(b"done"),
    "no_utf8": lambda: raw(b'["\xff\xfe"]'),
    "two_documents": lambda: raw(b'["end"]["end"]'),
    "deep": lambda: raw(b"[" * 200_000 + b"]" * 200_000),
    "deep_objects": lambda: raw(b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
    "long_integer": lambda: raw(b'["done", ' + b"9" * 100_000 + b"]"),
    # what is not a message
    "empty": lambda: raw(b"[]"),
    "object": lambda: raw(b"{}"),
    "number": lambda: raw(b"[1]"),
    "unknown_word": lambda: message("hello"),
    "two_results": lambda: message("done", 1, 2),
    "no_result": lambda: message("done"),
    "item": lambda: message("item", 1),
    "stream": lambda: message("stream"),
    "end": lambda: message("end"),
    "ready": lambda: message("ready", ["landlock"]),
    "start": lambda: message("start", "threads", ""),
    "setup": lambda: message("setup", {}),
    "call": lambda: message("call", "x"),
    "ok": lambda: message("ok", 1),
    "raised": lambda: message("raised"),
    # marks
    "unknown_mark": lambda: message("done", {"$object": 1}),
    "mark_among_keys": lambda: message("done", {"$int": "1", "a": 1}),
    "part_that_is_missing": lambda: message("done", {"$bytes": 0}),
    "part_before_the_first": lambda: raw(b'["done",{"$bytes":-1}]', b"x"),
    "part_without_a_number": lambda: raw(b'["done",{"$bytes":"0"}]', b"x"),
    "part_that_is_used_often": lambda: raw(b'["done",[' + b",".join([b'{"$str":0}'] * 1000) + b"]]", b"x" * (8 << 20)),
    "part_that_is_no_text": lambda: raw(b'["done",{"$str":0}]', b"\xff\xff"),
    "integer_that_is_none": lambda: message("done", {"$int": "x"}),
    "array_of_objects": lambda: raw(b'["done",{"$array":["u",0]}]', b"\xff\xff\xff\x7f"),
    "array_of_half_a_number": lambda: raw(b'["done",{"$array":["d",0]}]', b"xxx"),
    "unhashable_key": lambda: message("done", {"$pairs": [[[], 1]]}),
    "pair_of_three": lambda: message("done", {"$pairs": [[1, 2, 3]]}),
    "time_that_is_none": lambda: message("done", {"$time": ["now", 0]}),
    "time_with_many_folds": lambda: message("done", {"$time": ["2020-01-01T00:00:00", 9]}),
    "decimal_that_is_none": lambda: message("done", {"$decimal": "x"}),
    "handle_without_a_kind": lambda: message("done", {"$handle": ["x"]}),
    "handle_of_numbers": lambda: message("done", {"$handle": [1, 2]}),
    "colliding_keys": lambda: message("done", {"$pairs": [[each * COLLIDING, 0] for each in range(1, 200_000)]}),
    "many_classes": lambda: message("done", [{"$opaque": f"C{each}"} for each in range(200_000)]),
    "too_many_values": lambda: raw(b'["done",[' + b"[]," * 4_600_000 + b"1]]"),
    # failures
    "failure_of_a_number": lambda: message("failed", 1),
    "failure_without_text": lambda: message("failed", {"kind": "ValueError"}),
    "failure_of_numbers": lambda: message("failed", {"kind": 1, "text": 2, "traceback": 3}),
    "failure_with_unknown_retry": lambda: failure(retry="always"),
    "failure_with_unhashable_retry": lambda: failure(retry=["never"]),
    "failure_with_code_of_a_number": lambda: failure(code=7),
    "failure_with_a_long_code": lambda: failure(code="x" * 2000),
    "failure_of_policy_with_need_of_a_list": lambda: failure(kind="PolicyError", need=[]),
    "failure_with_a_wrong_cause": lambda: failure(cause="x"),
    "failure_with_many_causes": lambda: failure(cause=nested(300)),
    "refusal_without_a_number": lambda: message("refused", "0"),
    "refusal_before_the_first": lambda: message("refused", -1),
    "refusal_after_the_last": lambda: message("refused", 7),
    "misfit_without_problems": lambda: message("misfit", []),
    "misfit_of_numbers": lambda: message("misfit", [[1, 2, 3, 4]]),
    "misfit_of_many_parts": lambda: message("misfit", [["a"] * 9]),
    "misfit_of_many_problems": lambda: message("misfit", [["a", "b", "c", "d", ""]] * 5000),
    "misfit_of_a_number": lambda: message("misfit", 3),
    # requests
    "request_for_an_unknown_member": lambda: message("rt", "__class__", []),
    "request_for_a_private_member": lambda: message("rt", "_file", [1]),
    "request_without_arguments": lambda: message("rt", "now"),
    "request_with_an_object": lambda: message("rt", "now", {}),
    "request_for_a_list": lambda: message("rt", ["now"], []),
    "file_that_is_not_open": lambda: message("rt", "file/read", [1, 10]),
    "file_of_a_list": lambda: message("rt", "file/read", [[], 10]),
    "file_with_a_negative_size": lambda: message("rt", "file/read", [1, -1]),
    "object_without_a_number": lambda: message("rt", "handles/new", ["a", "kind"]),
    "reservation_of_others": lambda: message("rt", "settle", [0, 1]),
    "reservation_before_the_first": lambda: message("rt", "settle", [-1, 1]),
    "unknown_level": lambda: message("rt", "log", ["setLevel", "x"]),
    "message_of_a_number": lambda: message("rt", "log", ["info", 7]),
    "tools_of_a_number": lambda: message("rt", "llm/ask_with_tools", [[], 1]),
}
"""Bytes that a worker never sends, for which the host ends it."""


def _sender(name: str, data: Callable[[], bytes]) -> Callable[..., int]:
    def send(rt: Runtime, target: Target) -> int:
        channel = channel_of(rt)
        channel.socket.sendall(data())
        channel.socket.recv(1)  # the host answers nothing
        return 0

    send.__name__ = send.__qualname__ = name
    send.__doc__ = f"Send {name.replace('_', ' ')}."
    return send


for _name, _data in FRAMES.items():
    forging.tool(_sender(_name, _data))


REQUESTS: Final[dict[str, tuple[str, list[Any]]]] = {
    "too_few_arguments": ("println", []),
    "too_many_arguments": ("now", [1, 2, 3]),
    "name_of_a_list": ("get_var", [[]]),
    "unhashable_name": ("set_var", [{}, 1]),
    "prompt_of_a_number": ("prompt_user", [1, 2]),
    "format": ("log", ["info", "%8000000000d", [1]]),
    "path_of_a_number": ("fs/read_bytes", [7, {}]),
    "path_of_nul": ("fs/read_bytes", ["\0", {}]),
    "options_of_a_list": ("fs/read_bytes", ["a", []]),
    "unknown_option": ("fs/read_bytes", ["a", {"follow": True}]),
    "mode_to_write": ("fs/open", ["inside/private", "wb"]),
    "bits_of_text": ("random/getrandbits", ["8"]),
    "range_of_nothing": ("random/randrange", [None, None]),
    "many_bits": ("random/getrandbits", [1 << 40]),
    "capability_of_a_list": ("require", [[]]),
    "amount_of_text": ("spend", ["USD", "much"]),
    "progress_of_text": ("progress", ["a", "b", 7]),
    "secret_of_a_list": ("secret", [[]]),
    "handle_of_a_list": ("handles/get", [[], {}]),
    "kind_of_a_number": ("handles/new", [1, 7]),
    "turns_of_a_number": ("llm/ask", [7]),
    "embedding_of_a_number": ("llm/embed", [7]),
    "change_without_a_function": ("update_var", ["x", 1]),
    "tool_of_a_number": ("call_tool", [7, 8]),
    "arguments_of_text": ("call_tool_named", ["forging.own", "x"]),
    "tool_info_of_a_list": ("tool_info", [[]]),
    "walk_of_a_number": ("fs/walk", [7]),
    "write_of_a_number": ("fs/write_bytes", ["a", 7]),
}
"""Requests with arguments that no tool can pass: the tool gets an error."""

FORBIDDEN: Final[dict[str, tuple[str, list[Any]]]] = {
    "read_text": ("fs/read_text", ["inside/private", {}]),
    "read_bytes": ("fs/read_bytes", ["inside/private", {}]),
    "open_file": ("fs/open", ["inside/private", "rb"]),
    "read_above": ("fs/read_text", ["../secret", {}]),
    "read_absolute": ("fs/read_text", ["/etc/passwd", {}]),
    "read_link": ("fs/read_text", ["inside/link", {}]),
    "list_files": ("fs/list", ["inside"]),
    "write_file": ("fs/write_text", ["inside/file", "changed"]),
    "delete_file": ("fs/delete", ["inside/file"]),
    "move_file": ("fs/move", ["inside/file", "inside/moved"]),
    "pinned_path": ("fs/pinned", ["inside/private"]),
    "use_secret": ("secret", ["key"]),
    "ask_model": ("llm/ask", [[["user", "hello", [], [], None]]]),
    "denied_tool": ("call_tool", ["working.environment", []]),
    "denied_tool_named": ("call_tool_named", ["working.environment", {}]),
}
"""Requests that the policy does not permit, whatever the worker's own code checks."""


def _requester(name: str, member: str, arguments: list[Any]) -> Callable[..., Any]:
    def request(rt: Runtime, target: Target) -> Any:
        return rt._link.ask(member, *arguments)  # type: ignore[attr-defined]

    request.__name__ = request.__qualname__ = name
    request.__doc__ = f"Request {name.replace('_', ' ')}."
    return request


for _name, (_member, _arguments) in {**REQUESTS, **FORBIDDEN}.items():
    forging.tool(_requester(_name, _member, _arguments))
for _name, (_member, _arguments) in FORBIDDEN.items():
    permitted.tool(policy=EVERYTHING)(_requester(_name, _member, _arguments))


@forging.tool
def settle_twice(rt: Runtime, target: Target) -> Any:
    """Settle a reservation twice, to get back more than was reserved."""
    reservation = rt.spend("USD", "10.00")
    for _ in range(2):
        reservation.settle("5.00")
    return rt.spend("USD", "5.01")


@forging.tool
def spend_too_much(rt: Runtime, target: Target) -> Any:
    """Spend more than the host permits, with the check in the worker removed."""
    worker_runtime.WorkerRuntime.spend = lambda self, what, amount: 0  # type: ignore[method-assign, assignment]
    rt._link.ask("spend", "USD", "1000")  # type: ignore[attr-defined]
    return rt._link.ask("spend", "USD", "1000")  # type: ignore[attr-defined]


@forging.tool
def request_after_the_end(rt: Runtime, target: Target) -> int:
    """Let a thread make requests after the call."""

    def later() -> None:
        channel, link = channel_of(rt), rt._link  # type: ignore[attr-defined]
        while not link._is_over:  # the result has been sent then
            time.sleep(0.001)
        while True:
            channel.socket.sendall(frame(("rt", "println", ["late"])))
            time.sleep(0.01)

    threading.Thread(target=later, daemon=True).start()
    return 1


@forging.tool
def garbage_after_the_end(rt: Runtime, target: Target) -> int:
    """Let a thread send garbage during the next call."""
    channel = channel_of(rt)

    def later() -> None:
        time.sleep(0.1)
        channel.socket.sendall(b"\xff" * 100)

    threading.Thread(target=later, daemon=True).start()
    return 1


@forging.tool
def wait(rt: Runtime, target: Target) -> int:
    """Wait."""
    time.sleep(1)
    return 1


@forging.tool
def close_connection(rt: Runtime, target: Target) -> int:
    """Close every descriptor."""
    os.closerange(3, 1024)
    return 1


@forging.tool
def shut_connection(rt: Runtime, target: Target) -> int:
    """Shut the connection down, and go on."""
    channel_of(rt).socket.shutdown(socket.SHUT_RDWR)
    time.sleep(1000)
    return 1


@forging.tool
def write_to_all_descriptors(rt: Runtime, target: Target) -> int:
    """Write into every descriptor."""
    for number in range(1024):
        try:
            os.write(number, b"\xff" * 64)
        except OSError:
            continue
    time.sleep(1000)
    return 1


@forging.tool
def never_read(rt: Runtime, target: Target) -> int:
    """Ask for much, and do not read the answers."""
    channel = channel_of(rt)
    rt.set_var("big", "x" * (4 << 20))
    while True:
        channel.socket.sendall(frame(("rt", "get_var", ["big"])))


@forging.tool
def slow_frame(rt: Runtime, target: Target) -> int:
    """Send a frame byte by byte, forever."""
    channel = channel_of(rt)
    channel.socket.sendall(struct.pack(">II", 1 << 20, 0))
    while True:
        channel.socket.sendall(b" ")
        time.sleep(0.001)


@forging.tool
def slow_items(rt: Runtime, target: Target) -> Iterator[int]:
    """Answer the close of a stream with items."""
    try:
        while True:
            yield 1
    finally:
        channel_of(rt).socket.sendall(frame(("item", 1)))
        time.sleep(1000)


@forging.tool
def result_in_place_of_items(rt: Runtime, target: Target) -> Iterator[int]:
    """End a stream with a result."""
    yield 1
    channel_of(rt).socket.sendall(frame(("done", 1)))
    time.sleep(1000)


@forging.tool
def send_descriptors(rt: Runtime, target: Target) -> int:
    """Send descriptors to the host."""
    channel = channel_of(rt)
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(100):
        socket.send_fds(channel.socket, [frame(("rt", "now", []))], [null] * 50)
        channel.receive()
    raise PermissionError("done")


@forging.tool
def replace_functions(rt: Runtime, target: Target) -> int:
    """Replace a function of the worker, so that the next call does something else."""
    from neuroscript.isolation import worker

    def run(self: Any, *_: Any) -> None:
        link = worker_runtime.HostLink(self._channel, self.objects)
        try:
            link.ask("fs/read_text", "inside/private", {})
        except Exception as error:
            self._channel.send("refused", link.host_error(error))

    worker.Worker.call = run  # type: ignore[method-assign]
    return 1


@forging.tool
def answer_twice(rt: Runtime, target: Target) -> int:
    """Send a result for the next call too."""
    channel_of(rt).socket.sendall(message("done", 1) + message("done", 7))
    return 1


@forging.tool
def new_handle(rt: Runtime, target: Target) -> Any:
    """Store an object."""
    return rt.handles.new(object(), "counter")


@forging.tool
def handles_without_end(rt: Runtime, target: Target) -> Any:
    """Store objects forever."""
    while True:
        rt.handles.new(0, "counter")


@forging.tool
def use_handle(rt: Runtime, handle: str) -> Any:
    """Request what a handle stands for, whatever the worker knows of it."""
    return rt._link.ask("handles/get", handle, "counter")  # type: ignore[attr-defined]


@forging.tool
def release_handle(rt: Runtime, handle: str) -> bool:
    """Release what a handle stands for."""
    return rt.handles.release(handle)


@forging.tool
def read_remedy(rt: Runtime, target: Target) -> str:
    """Return what the host could change so that a call succeeds."""
    try:
        rt.call_tool("working.environment")
    except PolicyError as error:
        return error.remedy
    return "nothing"


@forging.tool
def own(rt: Runtime, target: Target) -> int:
    """Return a number."""
    return 1
