"""Messages between the host and a worker process, and the encoding of the values in them.

A frame is JSON with the small values, followed by the long strings and the bytes as they are. The other side is not
trusted: sizes are checked before anything is read, and nothing is unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
from array import array
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from neuroscript.coercion.plain_data import content_of
from neuroscript.coercion.scalars import AnyContent, Handle
from neuroscript.io.text import type_name

MAX_FRAME_BYTES: Final = 192 << 20
"""Maximum size of a frame in bytes; a result may contain 64 MiB of text."""

MAX_JSON_BYTES: Final = 48 << 20
"""Maximum size of the JSON in a frame."""

MAX_JSON_VALUES: Final = 9_000_000
"""Maximum number of values in the JSON of a frame, because small ones need far more memory than text."""

MAX_PARTS: Final = 1 << 20
"""Maximum number of parts that follow the JSON."""

MAX_CLASSES: Final = 100
"""Maximum number of classes of objects in a frame that exist only in another process, because each costs memory."""

MAX_EQUAL_HASHES: Final = 100
"""Maximum number of keys that have the hash of another key, because they make a dict slow."""

MAX_DEPTH: Final = 200
"""How many levels of containers a worker sends at least; the host refuses results that are less deep."""

MAX_INLINE_CHARS: Final = 512
"""Maximum length of a string within the JSON; a longer one follows as bytes."""

MAX_INLINE_INT: Final = 1 << 63
"""Integers from this size on are sent in hexadecimal digits, because Python limits how it reads decimal ones."""

FLOAT_CODES: Final = ("f", "d")
"""The types of arrays that can be sent."""

CHUNK_BYTES: Final = 1 << 16

HEAD: Final = struct.Struct(">II")
"""The size of the JSON, and the number of parts that follow it."""

SIZE: Final = struct.Struct(">I")

MARK: Final = "$"
"""The start of the key that marks a value that JSON lacks."""


class ProtocolError(Exception):
    """The other side sent something that is not a valid frame; the message says what is wrong."""


class UnsendableValue(TypeError):
    """A value that exists only in its own process; the message names its type."""


class Opaque:
    """Stands for an object that cannot leave its process. Its class has the name of the object's class."""


def opaque(name: str) -> Opaque:
    """Return what stands for an object of a class with this name."""
    made: Opaque = type(name if name.isidentifier() else "object", (Opaque,), {})()
    return made


class Channel:
    """One end of a connection between the host and a worker.

    Args:
        is_lenient: Whether values are made sendable: instances of subclasses become built-ins, and what exists only in
            this process becomes an `Opaque` object, so that the host reports it as it reports any wrong value.

    Attributes:
        tick: Called while something is sent or received: after each piece of a message, and whenever the timeout of
            the socket has passed; it may raise.
    """

    def __init__(self, connection: socket.socket, *, is_lenient: bool = False) -> None:
        self.socket = connection
        self.tick: Callable[[], object] | None = None
        self._is_lenient = is_lenient
        self._read = bytearray()

    def send(self, *message: Any) -> None:
        """Send a message, which consists of values.

        Raises:
            UnsendableValue: A value cannot be sent. Nothing is sent then.
            OSError: The other side is gone.
        """
        data = frame(message, self._is_lenient)
        sent = self._send(data)
        if sent < len(data):
            with memoryview(data) as rest:
                while sent < len(data):
                    sent += self._send(rest[sent:])

    def _send(self, data: bytes | memoryview) -> int:
        """Send as much as fits, and return how many bytes that are; the timeout of the socket calls `tick`."""
        while True:
            try:
                return self.socket.send(data)
            except TimeoutError:
                if self.tick is None:
                    raise
                self.tick()

    def receive(self) -> list[Any]:
        """Return the next message.

        Raises:
            EOFError: The other side is gone.
            ProtocolError: It sent something else.
            TimeoutError: The timeout of the socket has passed, and there is no `tick`.
        """
        head = self._take(HEAD.size)
        json_bytes, count = HEAD.unpack(head)
        if json_bytes > MAX_JSON_BYTES or count > MAX_PARTS:
            raise ProtocolError("it announced a frame that is too large")
        sizes = struct.unpack(f">{count}I", self._take(count * SIZE.size))
        if json_bytes + sum(sizes) > MAX_FRAME_BYTES:
            raise ProtocolError("it announced a frame that is too large")
        text = self._take(json_bytes)
        return parse_frame(text, [self._take(size) for size in sizes])

    @property
    def is_idle(self) -> bool:
        """Whether nothing has arrived beyond the last message, as far as this end knows."""
        return not self._read

    def close(self) -> None:
        """Close this end."""
        self.socket.close()

    def _take(self, size: int) -> bytes:
        """Return the next bytes; a large part grows as it arrives, so that an announcement alone costs nothing."""
        read = self._read
        while len(read) < size:
            try:
                data = self.socket.recv(max(CHUNK_BYTES, min(size - len(read), 1 << 20)))
            except TimeoutError:
                if self.tick is None:
                    raise
                self.tick()
                continue
            except ConnectionError:
                raise EOFError from None
            if not data:
                raise EOFError
            read += data
            if self.tick is not None:
                self.tick()  # a worker that never stops sending causes no timeout
        with memoryview(read) as view:
            taken = bytes(view[:size])
        del read[:size]
        return taken


def frame(message: tuple[Any, ...], is_lenient: bool = False) -> bytes:
    """Return the bytes of a message, or raise `UnsendableValue`."""
    parts: list[bytes] = []
    try:
        text = _json([encode(each, parts) for each in message])
    except (UnsendableValue, RecursionError) as error:
        if not is_lenient:
            raise error if isinstance(error, UnsendableValue) else UnsendableValue("it is nested too deeply")
        parts = []
        text = _json([encode(sendable(each, 0), parts) for each in message])
    size = len(text) + sum(map(len, parts))
    if size > MAX_FRAME_BYTES or len(text) > MAX_JSON_BYTES or len(parts) > MAX_PARTS:
        raise UnsendableValue("it is larger than a message may be")
    head = HEAD.pack(len(text), len(parts)) + b"".join(SIZE.pack(len(part)) for part in parts)
    return b"".join((head, text, *parts))


def _json(encoded: list[Any]) -> bytes:
    return json.dumps(encoded, separators=(",", ":")).encode("ascii")


class Parts:
    """The parts of a frame while it is decoded. Each part is used once, so that a small frame never becomes large."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts: list[bytes | None] = [*parts]
        self._classes: dict[str, Opaque] = {}

    def take(self, index: Any) -> bytes:
        """Return a part that was not used."""
        if type(index) is not int or index < 0:
            raise ValueError
        part, self._parts[index] = self._parts[index], None
        if part is None:
            raise ValueError
        return part

    def opaque(self, name: Any) -> Opaque:
        """Return what stands for an object of a class with this name."""
        if type(name) is not str:
            raise ValueError
        name = name[:MAX_INLINE_CHARS]
        if name not in self._classes:
            if len(self._classes) >= MAX_CLASSES:
                raise ValueError
            self._classes[name] = opaque(name)
        return self._classes[name]


def parse_frame(text: bytes, parts: list[bytes]) -> list[Any]:
    """Return the message in a frame, or raise `ProtocolError`."""
    if text.count(b",") + text.count(b"[") + text.count(b"{") > MAX_JSON_VALUES:
        raise ProtocolError("it sent too many values")
    try:
        message = decode(json.loads(text), Parts(parts))
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        raise ProtocolError("it sent a frame that is not valid") from None
    if type(message) is not list or not message or type(message[0]) is not str:
        raise ProtocolError("it sent a frame without a message")
    return message


def encode(value: Any, parts: list[bytes]) -> Any:
    """Return the JSON value for a value. Long strings and bytes are added to *parts*."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is str:
        if len(value) <= MAX_INLINE_CHARS:
            return value
        parts.append(value.encode("utf-8", "surrogatepass"))
        return {"$str": len(parts) - 1}
    if kind is int:
        return value if -MAX_INLINE_INT < value < MAX_INLINE_INT else {"$int": hex(value)}
    if kind is list:
        return [encode(each, parts) for each in value]
    if kind is dict:
        if all(type(key) is str and key[:1] != MARK for key in value):
            return {key: encode(each, parts) for key, each in value.items()}
        return {"$pairs": [[encode(key, parts), encode(each, parts)] for key, each in value.items()]}
    if kind is bytes:
        parts.append(value)
        return {"$bytes": len(parts) - 1}
    if kind is tuple:
        return {"$tuple": [encode(each, parts) for each in value]}
    if kind is array and value.typecode in FLOAT_CODES:
        parts.append(value.tobytes())
        return {"$array": [value.typecode, len(parts) - 1]}
    if kind is datetime:
        return {"$time": [value.isoformat(), value.fold]}
    if kind is Handle:
        return {"$handle": [value.id, value.kind]}
    if kind is Decimal:
        return {"$decimal": str(value)}
    if isinstance(value, AnyContent):
        return {"$content": encode(value.data, parts)}
    if isinstance(value, Opaque):
        return {"$opaque": kind.__name__}
    raise UnsendableValue(f"{type_name(value)} exists only in its own process")


def sendable(value: Any, depth: int) -> Any:
    """Return a value that can be sent: built-ins for instances of their subclasses, and `Opaque` objects for others."""
    kind = type(value)
    for base, build in BUILTINS:
        if isinstance(value, base):
            return value if kind is base else build(value)
    for base, copy in CONTAINERS:
        if isinstance(value, base):
            return copy(value, depth + 1) if depth < MAX_DEPTH else None
    return value if kind in (Handle, type(None)) or isinstance(value, (AnyContent, Opaque)) else opaque(kind.__name__)


BUILTINS: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (bool, bool),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__ if hasattr(bytes, "__bytes__") else bytes),
    (datetime, lambda value: datetime.fromisoformat(datetime.isoformat(value)).replace(fold=value.fold)),
    (Decimal, Decimal),
)
"""The types that can be sent besides None, handles and containers, and what makes a built-in of an instance of each."""


CONTAINERS: Final[tuple[tuple[type, Callable[[Any, int], Any]], ...]] = (
    (list, lambda value, depth: [sendable(each, depth) for each in list.__iter__(value)]),
    (tuple, lambda value, depth: tuple(sendable(each, depth) for each in tuple.__iter__(value))),
    (dict, lambda value, depth: {_key(key, depth): sendable(each, depth) for key, each in dict.items(value)}),
    (array, lambda value, depth: array(value.typecode, value) if value.typecode in FLOAT_CODES else opaque("array")),
)
"""The containers that can be sent, and what copies each of them."""


def _key(key: Any, depth: int) -> Any:
    """Return a key of a dict, which stays hashable."""
    made = sendable(key, depth)
    return made if isinstance(made, Opaque) or made.__hash__ is not None else opaque(type(key).__name__)


def decode(value: Any, parts: Parts) -> Any:
    """Return the value for what `encode` returned; anything else raises an exception that `parse_frame` handles.

    Containers are changed in place, so that a frame is not in memory twice.
    """
    kind = type(value)
    if kind is list:
        for index, each in enumerate(value):
            if type(each) is list or type(each) is dict:
                value[index] = decode(each, parts)
        return value
    if kind is not dict:
        return value
    if len(value) == 1:
        ((key, each),) = value.items()
        if key[:1] == MARK:
            return READERS[key](each, parts)
    elif any(key[:1] == MARK for key in value):
        raise ValueError
    for key, each in value.items():
        if type(each) is list or type(each) is dict:
            value[key] = decode(each, parts)
    return value


def _pairs(value: Any, parts: Parts) -> dict[Any, Any]:
    keys = [decode(key, parts) for key, _ in value]
    if len(keys) - len(set(map(hash, keys))) > MAX_EQUAL_HASHES:
        raise ValueError
    return {key: decode(each, parts) for key, (_, each) in zip(keys, value, strict=True)}


def _tuple(items: Any, parts: Parts) -> tuple[Any, ...]:
    if type(items) is not list:
        raise ValueError
    return tuple(decode(items, parts))


def _array(value: Any, parts: Parts) -> array[float]:
    code, index = value
    if code not in FLOAT_CODES:
        raise ValueError
    made: array[float] = array(code)
    made.frombytes(parts.take(index))
    return made


def _time(value: Any, parts: Parts) -> datetime:
    text, fold = value
    return datetime.fromisoformat(text).replace(fold=fold)


def _handle(value: Any, parts: Parts) -> Handle:
    id, kind = value
    if not type(id) is type(kind) is str:
        raise ValueError
    return Handle(id, kind)


READERS: Final[Mapping[str, Callable[[Any, Parts], Any]]] = {
    "$str": lambda index, parts: parts.take(index).decode("utf-8", "surrogatepass"),
    "$int": lambda text, parts: int(text, 16),
    "$pairs": _pairs,
    "$bytes": lambda index, parts: parts.take(index),
    "$tuple": _tuple,
    "$array": _array,
    "$time": _time,
    "$handle": _handle,
    "$content": lambda data, parts: content_of(decode(data, parts)),
    "$decimal": lambda text, parts: Decimal(text),
    "$opaque": lambda name, parts: parts.opaque(name),
}
