"""Alternative spellings of values, and the rules and ways to call that see them."""

from __future__ import annotations

import asyncio
import enum
import json
from array import array
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import attrs
from tests.properties import same

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Engine,
    Handle,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.runtime.records import PendingCall
from neuroscript.tools.hookspecs import hookimpl


class Text(str):
    """A string that claims to equal nothing."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False


class Lying(str):
    """A string that claims to be another."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return "something else"


class Whole(int):
    """A number that claims to be another."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__

    def __int__(self) -> int:
        return 2

    __index__ = __int__


class One(enum.IntEnum):
    """An enum member that is a number."""

    ONE = 1
    TWO = 2


class Flag(enum.IntFlag):
    """A flag that is a number."""

    ONE = 1


class Name(str, enum.Enum):  # noqa: UP042
    """An enum member that is a string."""

    ADMIN = "admin"


class Real(float):
    """A float that claims to be another."""

    def __float__(self) -> float:
        return 2.0

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = float.__hash__


class Row(list[Any]):
    """A list that claims to be empty."""

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter(())


class Table(dict[Any, Any]):
    """A map that claims to contain something else."""

    def __getitem__(self, key: object) -> Any:
        return "something else"

    def __iter__(self) -> Any:
        return iter(())

    def items(self) -> Any:
        return ()


class Raw(bytes):
    """Bytes that claim to be others."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


Pair = namedtuple("Pair", "first second")


@attrs.frozen
class Forbidden:
    """A value that must not reach a function, and similar values.

    Attributes:
        value: The exact value.
        spellings: Other forms of the value, which are coerced to it.
        alike: Similar values: each is refused, or is a different value.
        other: A value that is not forbidden.
        options: Further fields of the argument's spec.
    """

    type: ArgType
    value: Any
    spellings: tuple[Any, ...]
    alike: tuple[Any, ...]
    other: Any
    options: Mapping[str, Any] = attrs.field(factory=dict)


def maps(kind: ArgType, value: Any, spellings: tuple[Any, ...], alike: tuple[Any, ...], other: Any) -> Forbidden:
    """Return the row of a map with one key, whose value has each spelling."""
    given: tuple[Any, ...] = tuple(each for every in spellings for each in ({"k": every}, Table({"k": every})))
    texts = tuple(json.dumps({"k": every}) for every in spellings if type(every) in (str, int, float, bool))
    more = (OrderedDict(k=value), defaultdict(list, k=value), {Text("k"): value}, *(f" {text}\n" for text in texts))
    wrong = (
        *({"k": every} for every in alike), {"K": value}, {"k ": value}, [("k", value)], {b"k": value},
        json.dumps([["k", value]]), json.dumps(json.dumps({"k": value})), {"k": value, "l": value},
    )  # fmt: skip
    return Forbidden(kind, {"k": value}, (*given, *texts, *more), wrong, {"k": other})


def slices(kind: ArgType, value: Any, spellings: tuple[Any, ...], alike: tuple[Any, ...], other: Any) -> Forbidden:
    """Return the row of a list of two, whose items have each spelling."""
    given: tuple[Any, ...] = tuple(
        each
        for every in spellings
        for each in ([every, every], (every, every), Row([every, every]), Pair(every, every))
    )
    plain = tuple(every for every in spellings if type(every) in (str, int, float, bool, dict))
    texts = tuple(json.dumps([every, every]) for every in plain)
    wrong = (
        *([every, value] for every in alike), [value], [value, value, value], [[value, value]], {0: value, 1: value},
        json.dumps(json.dumps([value, value])), iter([value, value]),
    )  # fmt: skip
    return Forbidden(kind, [value, value], (*given, *texts, *(f"\t{text} " for text in texts)), wrong, [other, other])


TEXTS = ("admin", Text("admin"), Lying("admin"), Name.ADMIN)
NO_TEXTS = (" admin", "admin ", "Admin", "ADMIN", b"admin", ["admin"], '"admin"', "adm\u0131n", "admin\x00", "ad\u200bmin",
            PurePosixPath("admin"), None)  # fmt: skip
NUMBERS = (1, 1.0, "1", " 1 ", "+1", "1.0", "01", "1.000", "\t1\r\n", One.ONE, Flag.ONE, Whole(1), Real(1.0), Text("1"))
NO_NUMBERS = (
    True,
    1.5,
    "1e0",
    "0x1",
    "1_0",
    "\uff11",
    "one",
    "[1]",
    [1],
    Decimal(1),
    b"1",
    "1.0.0",
    "--1",
    2,
    "",
    None,
)
REALS = (1.0, 1, "1", "1.0", " 1 ", "1.", "1e0", "10e-1", "0.1E1", "+1", One.ONE, Whole(1), Real(1.0))
NO_REALS = (True, "1,0", "nan", "inf", 1.0000000000000002, "1e-0x", [1.0], "1f", Decimal("1.0"), b"1", None, 2**53 + 1)
TRUTHS = (True, 1, 1.0, "true", "True", "TRUE", "tRuE", "1", One.ONE, Whole(1), Real(1.0), Text("true"))
NO_TRUTHS = (2, 0.5, "yes", "on", " true", "true ", "y", "t", "[true]", [True], b"true", "01", "1.0", "", None)
ANYTHING = (1, One.ONE, Whole(1))
NO_ANYTHING = (True, 1.0, "1", Real(1.0), [1], None)
BLOBS = (b"abc", bytearray(b"abc"), memoryview(b"abc"), "abc", Text("abc"), Raw(b"abc"), {"$base64": "YWJj"},
         memoryview(b"xabcx")[1:4])  # fmt: skip
NO_BLOBS = (
    "YWJj",
    b"ABC",
    '{"$base64": "YWJj"}',
    {"$base64": "YWJj", "x": 1},
    [97, 98, 99],
    "abc ",
    array("b", b"abc"),
    97,
)
FLOATS = ([1.0, 2.0], [1, 2], (1, 2.0), "[1, 2]", " [1.0, 2e0]", array("f", [1, 2]), array("d", [1, 2]), array("i", [1, 2]),
          Row([1, 2]), Pair(1.0, 2))  # fmt: skip
NO_FLOATS = (
    ["1", "2"],
    [True, 2],
    [1.0],
    [[1, 2]],
    "1, 2",
    [1.0000001, 2],
    b"\x00\x00\x80?\x00\x00\x00@",
    {0: 1, 1: 2},
)

ROWS = (
    Forbidden(ArgType.STRING, "admin", TEXTS, NO_TEXTS, "guest"),
    Forbidden(ArgType.INT, 1, NUMBERS, NO_NUMBERS, 2),
    Forbidden(ArgType.FLOAT, 1.0, REALS, NO_REALS, 2.0),
    Forbidden(ArgType.BOOL, True, TRUTHS, NO_TRUTHS, False),
    *(maps(kind, 1, ANYTHING, NO_ANYTHING, 2) for kind in (ArgType.MAP, ArgType.MAP_STRING_ANY, ArgType.MAP_ANY_ANY)),
    maps(ArgType.MAP_STRING_STRING, "admin", TEXTS, NO_TEXTS, "guest"),
    maps(ArgType.MAP_STRING_INT, 1, NUMBERS, NO_NUMBERS, 2),
    maps(ArgType.MAP_STRING_FLOAT, 1.0, REALS, NO_REALS, 2.0),
    maps(ArgType.MAP_STRING_BOOL, True, TRUTHS, NO_TRUTHS, False),
    *(slices(kind, 1, ANYTHING, NO_ANYTHING, 2) for kind in (ArgType.SLICE, ArgType.LIST, ArgType.SLICE_ANY)),
    slices(ArgType.SLICE_STRING, "admin", TEXTS, NO_TEXTS, "guest"),
    slices(ArgType.SLICE_INT, 1, NUMBERS, NO_NUMBERS, 2),
    slices(ArgType.SLICE_FLOAT, 1.0, REALS, NO_REALS, 2.0),
    slices(ArgType.SLICE_BOOL, True, TRUTHS, NO_TRUTHS, False),
    slices(ArgType.SLICE_MAP, {"k": 1}, ({"k": 1}, OrderedDict(k=1), Table(k=One.ONE)), ({"k": 1.0}, [("k", 1)]), {"k": 2}),
    Forbidden(ArgType.BLOB, b"abc", BLOBS, NO_BLOBS, b"xyz"),
    Forbidden(ArgType.EMBEDDING, array("f", [1, 2]), FLOATS, NO_FLOATS, array("f", [2, 2])),
    Forbidden(ArgType.HANDLE, "admin", (*TEXTS, Handle("admin")), ("Admin", "admin ", " admin", b"admin", {"id": "admin"}),
              "guest"),
    Forbidden(ArgType.NODEID, "N_1", ("N_1", Text("N_1"), {"_version": "N_1"}, Table(_version="N_1")),
              ("n_1", " N_1", "E_1", {"id": "N_1"}, ["N_1"], "N_01"), "N_2"),
    Forbidden(ArgType.ENTITYID, "E_1", ("E_1", Text("E_1"), Lying("E_1")),
              ("e_1", "E_1 ", "N_1", {"id": "E_1"}, ["E_1"], {"_version": "E_1"}), "E_2"),
    Forbidden(ArgType.ANY, 1, ANYTHING, NO_ANYTHING, 2),
    Forbidden(ArgType.NIL, None, (None, "null", ""), ("nil", 0, False, [], {}, "None"), None),
    Forbidden(ArgType.MAP, {"id": 1, "name": "?"},
              ({"id": 1}, {"id": "1"}, {"id": " 1.0 ", "name": "?"}, '{"id": "1"}', Table(id=1.0), {"id": One.ONE, "name": None}),
              ({"id": True}, {"ID": 1}, {"id": 1, "name": "!"}, {"id": 1, "x": 2}), {"id": 2},
              {"keys": (ArgSpec("id", ArgType.INT), ArgSpec("name", ArgType.STRING, default="?"))}),
    Forbidden(ArgType.INT, 1, (*NUMBERS, None, "", "null"), (True, "1e0", [1], "nil"), 2, {"required": False, "default": 1}),
    Forbidden(ArgType.INT, None, (None, "", "null"), (0, False, "None", [], 1), 2, {"nullable": True}),
    Forbidden(ArgType.STRING, "admin", (*TEXTS, "Admin", " admin"), (1, ["admin"], "adm in"), "guest",
              {"choices": ("admin", "guest")}),
)  # fmt: skip
"""At least one row for each type that an argument can have."""


def by_hook(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Refuse one value in a hook."""

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> str | None:
            if call.tool != "g.t":
                return None
            seen.append(call.arguments["x"])
            return "forbidden" if same(call.arguments["x"], forbidden) else None

    return {"hooks": [Gate()]}


class Probe:
    """An engine with a tool of one argument that records its value, and a tool that calls it.

    Attributes:
        received: The values that the function received.
        nested: The value that the outer tool passes.
    """

    def __init__(self, row: Forbidden, *, asks: bool = False, needs: tuple[str, ...] = (), **options: Any) -> None:
        self.received: list[Any] = []
        self.nested: Any = None
        toolset = Toolset("g")
        policy = ToolPolicy(requires_approval=asks, capabilities=needs)
        spec = ToolSpec("t", "g", (ArgSpec("x", row.type, **row.options),), return_type=ArgType.NIL)
        toolset.add(spec, lambda rt, x: self.received.append(x), policy)
        toolset.add(ToolSpec("outer", "g", return_type=ArgType.NIL), lambda rt: rt.call_tool("g.t", (self.nested,)))
        self.engine = Engine(toolsets=[toolset], plugins="none", **options)

    def end(self, way: str, value: Any) -> str:
        """Call the tool with a value and return the code of its refusal; ``"arg"`` stands for any argument error."""
        try:
            WAYS[way](self, value)
        except ArgumentError:
            return "arg"
        except CallError as error:
            if isinstance(error.__cause__, ArgumentError):
                return "arg"
            assert error.retry == ("never" if error.code == "policy.rejected" else "host")
            return error.code
        return ""


def by_json(probe: Probe, value: Any) -> object:
    """Send a call like a model, with JSON text as its arguments if JSON can represent the value."""
    try:
        text = json.dumps({"x": value})
        assert same(json.loads(text), {"x": value})
    except (TypeError, ValueError, AssertionError):
        return probe.engine.call_named("g.t", {"x": value})
    result = probe.engine.execute(ToolCall("g__t", text))
    if result.error is not None:
        raise result.error
    return result.value


def from_within(probe: Probe, value: Any) -> object:
    """Call it from another tool."""
    probe.nested = value
    return probe.engine.call("g.outer")


WAYS: dict[str, Callable[[Probe, Any], object]] = {
    "in order": lambda probe, value: probe.engine.call("g.t", (value,)),
    "by name": lambda probe, value: probe.engine.call_named("g.t", {"x": value}),
    "by name, awaited": lambda probe, value: asyncio.run(probe.engine.acall_named("g.t", {"x": value})),
    "as JSON": by_json,
    "as a stream": lambda probe, value: list(probe.engine.stream("g.t", (value,))),
    "from within": from_within,
}


def label(row: Forbidden) -> str:
    """Return the id of a row."""
    return "-".join((row.type, *row.options))
