"""Messages between the host and a worker: values arrive exactly, and no message harms the receiver."""

from __future__ import annotations

import datetime
import json
import socket
import struct
import threading
from array import array
from collections import OrderedDict, namedtuple
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.properties import same

from neuroscript import Handle
from neuroscript.isolation import frames
from neuroscript.isolation.frames import Channel, Opaque, ProtocolError, UnsendableValue, frame, parse_frame

LEAVES = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(),
    some.integers(min_value=2**62, max_value=2**70),
    some.floats(allow_nan=False),
    some.text(),
    some.text(min_size=500, max_size=600),
    some.binary(max_size=100),
    some.datetimes(),
    some.builds(lambda numbers: array("f", numbers), some.lists(some.floats(width=32, allow_nan=False), max_size=4)),
    some.builds(Handle, some.text("ab-1", min_size=1), some.just("k")),
    some.decimals(allow_nan=False),
)
KEYS = some.one_of(some.text(), some.integers(), some.booleans(), some.tuples(some.integers(), some.text()))
VALUES = some.recursive(
    LEAVES,
    lambda each: some.one_of(
        some.lists(each, max_size=4),
        some.tuples(each, each),
        some.dictionaries(some.text(), each, max_size=4),
        some.dictionaries(KEYS, each, max_size=4),
        some.dictionaries(some.sampled_from(["$", "$str", "$bytes", "$pairs"]), each, max_size=2),
    ),
    max_leaves=20,
)


def channels() -> tuple[Channel, Channel]:
    one, other = socket.socketpair()
    one.settimeout(5)
    other.settimeout(5)
    return Channel(one), Channel(other)


@given(VALUES)
def test_value_arrives_exactly(value: Any) -> None:
    one, other = channels()
    one.send("value", value)
    received = other.receive()
    assert received[0] == "value"
    assert same(received[1], value)
    one.close()
    other.close()


def test_surrogates_and_large_values_arrive() -> None:
    one, other = channels()
    one.send("number", float("nan"))
    assert repr(other.receive()[1]) == "nan"
    values = ["\ud800" * 3, "\ud800" * 3000, "x" * (8 << 20), b"\0" * (8 << 20), [2**70000], list(range(100_000))]
    sender = threading.Thread(target=one.send, args=("values", values))
    sender.start()
    assert other.receive() == ["values", values]
    sender.join()
    one.close()
    other.close()


@given(some.binary(max_size=200))
def test_garbage_is_a_protocol_error_or_the_end(data: bytes) -> None:
    one, other = channels()
    one.socket.sendall(data)
    one.close()
    with pytest.raises((ProtocolError, EOFError)):
        while True:
            other.receive()
    other.close()


JSON = some.recursive(
    some.one_of(some.none(), some.booleans(), some.integers(), some.floats(), some.text(max_size=5)),
    lambda each: some.one_of(
        some.lists(each, max_size=3),
        some.dictionaries(some.sampled_from([*frames.READERS, "$x", "a"]), each, max_size=2),
    ),
)


@given(JSON, some.lists(some.binary(max_size=9), max_size=2))
def test_any_json_is_a_message_or_a_protocol_error(data: Any, parts: list[bytes]) -> None:
    try:
        message = parse_frame(json.dumps(data).encode(), parts)
    except ProtocolError:
        return
    assert type(message) is list
    assert type(message[0]) is str


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'["a",' + b"[" * 50_000 + b"]" * 50_000 + b"]",
        b'["x",1e999999]'.replace(b"1e999999", b"1" * 5000),
        b'["x",{"$array":["d",0]}]',
        b'["x",{"$str":true}]',
        b'["x",{"$decimal":"1e"}]',
        b'["x",{"$pairs":[[{"$pairs":[]},1]]}]',
        b'{"a":1}',
        b"[]",
        b"\xff",
    ],
)
def test_invalid_text_is_a_protocol_error(text: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_frame(text, [b"odd"])


@pytest.mark.parametrize(
    "head",
    [
        struct.pack(">II", 0xFFFFFFFF, 0),
        struct.pack(">II", 2, 0xFFFFFFFF),
        struct.pack(">III", 2, 1, 1 << 30),
        struct.pack(">IIII", 2, 2, frames.MAX_FRAME_BYTES, 1),
    ],
)
def test_large_frame_is_refused_when_it_is_announced(head: bytes) -> None:
    one, other = channels()
    one.socket.sendall(head)
    with pytest.raises(ProtocolError, match="too large"):
        other.receive()
    one.close()
    other.close()


def test_announced_frame_costs_no_memory_before_it_arrives() -> None:
    import tracemalloc

    one, other = channels()
    one.socket.sendall(struct.pack(">III", 2, 1, frames.MAX_FRAME_BYTES - 100))
    one.close()
    tracemalloc.start()
    try:
        with pytest.raises(EOFError):
            other.receive()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
        other.close()


def test_too_many_values_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_JSON_VALUES", 100)
    with pytest.raises(ProtocolError, match="too many"):
        parse_frame(b'["x",' + b"[]," * 100 + b"1]", [])


class Level(IntEnum):
    LOW = 1


Pair = namedtuple("Pair", "a b")


def test_worker_sends_builtins_and_marks_objects() -> None:
    one, other = socket.socketpair()
    worker, host = Channel(one, is_lenient=True), Channel(other)
    text = type("Text", (str,), {"__str__": lambda self: "other"})("own")
    worker.send("value", [Level.LOW, Pair(1, text), OrderedDict(a=object()), {1}, lambda: 0, {object: 1}])
    _, (level, pair, mapping, items, function, keys) = host.receive()
    assert (type(level), level, pair) == (int, 1, (1, "own"))
    assert type(mapping) is dict
    assert type(mapping["a"]).__name__ == "object"
    assert [type(each).__name__ for each in (items, function)] == ["set", "function"]
    assert isinstance(next(iter(keys)), Opaque)
    worker.close()
    host.close()


def test_host_sends_no_object() -> None:
    with pytest.raises(UnsendableValue, match="object exists only in its own process"):
        frame(("value", [1, object()]))


def test_time_keeps_its_zone_and_fold() -> None:
    moments = [
        datetime.datetime(2024, 10, 27, 2, 30, fold=1),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=45))),
    ]
    text = frame(("times", moments, Decimal("0.10")))
    size, _ = struct.unpack(">II", text[:8])
    _, times, amount = parse_frame(text[8 : 8 + size], [])
    assert [(each, each.fold, each.tzinfo) for each in times] == [(each, each.fold, each.tzinfo) for each in moments]
    assert str(amount) == "0.10"


def frame_of(text: bytes, *parts: bytes) -> list[Any]:
    return parse_frame(b'["x",' + text + b"]", list(parts))


@pytest.mark.parametrize(
    "text",
    [
        b'[{"$str":0},{"$str":0}]',
        b'[{"$bytes":0},{"$array":["d",0]}]',
        b'{"$pairs":[' + b",".join(b"[%d,0]" % (each * (2**61 - 1)) for each in range(1, 200)) + b"]}",
        b"[" + b",".join(b'{"$opaque":"C%d"}' % each for each in range(frames.MAX_CLASSES + 1)) + b"]",
    ],
    ids=["a part is used twice", "a part is used as two types", "keys have the same hash", "there are many classes"],
)
def test_small_frame_that_becomes_large_or_slow_is_refused(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="not valid"):
        frame_of(text, bytes(16))


def test_objects_of_one_class_share_what_stands_for_them() -> None:
    _, found = frame_of(b"[" + b",".join([b'{"$opaque":"Same"}'] * 1000) + b"]")
    assert {type(each).__name__ for each in found} == {"Same"}
    assert len({id(each) for each in found}) == 1


def test_frame_with_too_many_parts_is_refused_when_it_is_announced() -> None:
    one, other = channels()
    one.socket.sendall(struct.pack(">II", 2, frames.MAX_PARTS + 1))
    with pytest.raises(ProtocolError, match="too large"):
        other.receive()
    one.close()
    other.close()


def test_value_that_is_too_large_is_refused_where_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 1000)
    with pytest.raises(UnsendableValue, match="larger than a message may be"):
        frame(("x", "y" * 1001))


def test_worker_sends_the_outer_levels_of_a_cycle() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(UnsendableValue, match="nested too deeply"):
        frame(("x", cycle))
    data = frame(("x", cycle), is_lenient=True)
    (size,) = struct.unpack(">I", data[:4])
    _, found = parse_frame(data[8 : 8 + size], [])
    depth = 0
    while found:
        (found,), depth = found, depth + 1
    assert depth == frames.MAX_DEPTH


def test_worker_marks_an_array_of_integers() -> None:
    data = frame(("x", array("i", [1])), is_lenient=True)
    assert type(parse_frame(data[8:], [])[1]).__name__ == "array"


def test_sender_that_never_pauses_does_not_prevent_ticks() -> None:
    class Over(Exception):
        pass

    def tick() -> None:
        raise Over

    one, other = channels()
    one.socket.sendall(frame(("x", 1)))
    other.tick = tick
    with pytest.raises(Over):
        other.receive()
    one.close()
    other.close()
