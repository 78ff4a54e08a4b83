"""Alternative spellings of a value: none bypasses a rule, because every rule sees the value that the function receives.

For each type of argument one value is forbidden by every kind of rule, and passed in each form that JSON, a command line or
Python allows. Similar values that mean something else are refused as arguments or are other values, which the rule decides
about.
"""

from __future__ import annotations

import asyncio
import enum
import json
import os
from array import array
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import attrs
import pytest
from tests.properties import same, shares
from tests.system.test_vectors import HOSTILE, NAMESPACE

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Capability,
    Engine,
    ExecutionPolicy,
    Grant,
    Handle,
    Host,
    PolicyError,
    Runtime,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.types import ELEMENTS
from neuroscript.policy.templates import FITTING
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
    Forbidden(ArgType.STRING, "admin", TEXTS, ("Admin", " admin", 1, ["admin"]), "guest", {"choices": ("admin", "guest")}),
)  # fmt: skip
"""At least one row for each type that an argument can have."""


def test_every_type_of_argument_has_a_row() -> None:
    """The exception is `void`, which is not an argument type."""
    assert {row.type for row in ROWS} == {*ArgType} - {ArgType.VOID}


# Rules

Rule = Callable[[Any, list[Any]], dict[str, Any]]
"""Takes the forbidden value and a list for the values that the rule sees; returns the options of a `Probe`."""


def by_approver(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Reject one value, and approve all others."""

    def approver(request: ApprovalRequest) -> Approval:
        seen.append(request.arguments["x"])
        return Approval.reject("forbidden") if same(request.arguments["x"], forbidden) else Approval.approve()

    return {"asks": True, "policy": ExecutionPolicy(approver=approver)}


def by_async_approver(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Do the same with an async approver."""

    async def approver(request: ApprovalRequest) -> Approval:
        await asyncio.sleep(0)
        seen.append(request.arguments["x"])
        return Approval.reject("forbidden") if same(request.arguments["x"], forbidden) else Approval.approve()

    return {"asks": True, "policy": ExecutionPolicy(approver=approver)}


def by_second_approver(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Let the host reject what a narrower policy approves with changed arguments."""
    host = by_approver(forbidden, seen)["policy"]

    def approver(request: ApprovalRequest) -> Approval:
        return Approval.modify(request.arguments)

    return {"asks": True, "policy": host.narrowed(approver=approver)}


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


RULES: dict[str, Rule] = {
    "approver": by_approver,
    "async approver": by_async_approver,
    "approver of the host": by_second_approver,
    "hook": by_hook,
}
CODES = {"approver": "policy.rejected", "async approver": "policy.rejected", "approver of the host": "policy.rejected",
         "hook": "policy.hook"}  # fmt: skip


# Ways to call


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


def ruled(row: Forbidden, kind: str, forbidden: Any) -> tuple[Probe, list[Any]]:
    """Return a probe with a rule that forbids one value, and the list of values that the rule sees."""
    seen: list[Any] = []
    return Probe(row, **RULES[kind](forbidden, seen)), seen


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


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("row", ROWS, ids=label)
def test_forbidden_value_never_reaches_the_function(row: Forbidden, kind: str) -> None:
    """Every spelling is refused; a similar value is refused or differs, as the rule sees it."""
    for way in WAYS:
        probe, _ = ruled(row, kind, row.value)
        for value in row.spellings:
            assert CODES[kind] == probe.end(way, value), f"{value!r} of {type(value)}, {way}"
            assert probe.received == []
        for value in row.alike:
            assert probe.end(way, value) in ("", "arg"), f"{value!r} of {type(value)}, {way}"
            assert not any(same(each, row.value) for each in probe.received), f"{value!r} of {type(value)}, {way}"


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("row", ROWS, ids=label)
def test_rule_sees_exactly_what_the_function_receives(row: Forbidden, kind: str) -> None:
    """Values and types are equal at every level, and the rule has its own copy."""
    probe, seen = ruled(row, kind, object())

    for way in WAYS:
        for value in (*row.spellings, row.other):
            assert probe.end(way, value) == "", f"{value!r} of {type(value)}, {way}"
            received = probe.received[-1]
            assert same(seen[-1], received), way
            assert not shares(seen[-1], received), way
            assert same(received, row.value) or value is row.other


@pytest.mark.parametrize("kind", ["approver", "hook"])
def test_rule_that_changes_its_copy_changes_nothing(kind: str) -> None:
    """Neither the function nor the next rule sees the change."""

    def spoil(value: Any) -> None:
        value["k"].append(5)
        value.clear()

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> None:
            spoil(call.arguments["x"])

    def approver(request: ApprovalRequest) -> Approval:
        spoil(request.arguments["x"])
        return Approval.approve()

    seen: list[Any] = []
    host = by_approver(None, seen)["policy"]
    options = {
        "hook": {"hooks": [Gate(), *by_hook(None, seen)["hooks"]]},
        "approver": {"policy": host.narrowed(approver=approver), "asks": True},
    }[kind]
    probe = Probe(Forbidden(ArgType.MAP, None, (), (), None), **options)

    probe.engine.call("g.t", ({"k": [1]},))

    assert probe.received == seen == [{"k": [1]}]


VECTORS = [case for case in HOSTILE["cases"] if case["target"] != "void"]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["id"])
def test_rule_sees_a_hostile_value_as_the_function_receives_it(case: Mapping[str, Any]) -> None:
    """Accepted values of the corpus are refused if the listed value is forbidden; no rule sees the others."""
    for kind in RULES:
        value = eval(case["expr"], NAMESPACE)
        row = Forbidden(ArgType(case["target"]), None, (), (), None)
        free, seen = ruled(row, kind, object())
        code = free.end("in order", value)

        assert code in ("", "arg"), kind
        assert len(seen) == len(free.received) == int(code == ""), kind
        if code == "":
            assert same(seen[0], free.received[0]), kind
            bound, _ = ruled(row, kind, free.received[0])
            assert CODES[kind] == bound.end("in order", eval(case["expr"], NAMESPACE))
            assert bound.received == []


# Capabilities

SCOPED = [row for row in ROWS if ELEMENTS.get(row.type, row.type) in FITTING and row.value is not None]


def scopes_of(value: Any) -> tuple[str, ...]:
    """Return a value as it is written in a grant."""
    values = value if type(value) is list else [value]
    return tuple(str(each).lower() for each in values)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", SCOPED, ids=label)
def test_capability_of_an_argument_covers_the_value_that_the_function_receives(row: Forbidden, way: str) -> None:
    """A grant of the value admits every spelling, and a grant of another value admits none.

    Calls from a tool without needs are the exception: tools below it have no permissions.
    """
    for granted in (row.other, row.value):
        passes = granted is row.value and way != "from within"
        grants = tuple(f"account:use:{scope}" for scope in scopes_of(granted))
        probe = Probe(row, needs=("account:use:{x}",), policy=ExecutionPolicy(grants=grants))
        for value in row.spellings:
            assert ("" if passes else "policy.capability") == probe.end(way, value), f"{value!r} of {type(value)}"
        assert len(probe.received) == (len(row.spellings) if passes else 0)


SECRET = "the secret of the other directory"
FORBIDDEN_PATHS = (
    "secret/key", "./secret/key", "secret//key", "secret/./key", "secret/../secret/key", "data/../secret/key",
    "data/./../secret//key", "data/a/../../secret/key", "secret/key/", "secret/key/.", "./data/..//secret/key",
    "/secret/key", "//secret/key", "../ROOT/secret/key", "data/../../ROOT/secret/key", "data\\..\\secret\\key",
    "data/%2e%2e/secret/key", "data/..%2fsecret/key", "data/\u200b../secret/key", "data/\u2025/secret/key",
    "data/\uff0e\uff0e/secret/key", "data/..\x00/secret/key", "data/.. /secret/key", "file:secret/key", "~/secret/key",
    "data/link/key", "data/linked", "data/{x}/../../secret/key", "data/**/../../secret/key", "data/*", "data,secret/key",
    Text("secret/key"), Lying("data/../secret/key"), "*", "**", "", ".", "data/..", "SECRET/key",
)  # fmt: skip
FREE_PATHS = (
    "data/free", "./data/free", "data//free", "data/./free", "data/../data/free", "secret/../data/free", "data/a/../free",
    Text("data/free"), Lying("data/free"),
)  # fmt: skip


@attrs.frozen
class Files:
    """A sandbox with a granted directory and another one, and a tool that reads."""

    base: Path
    got: list[str] = attrs.field(factory=list)

    def engine(self, needs: str, **options: Any) -> Engine:
        root = self.base / "ROOT"
        for name, text in (("data/free", "free"), ("secret/key", SECRET), ("data/a/x", "")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "data" / "link").symlink_to("../secret")
        (root / "data" / "linked").symlink_to("../secret/key")
        toolset = Toolset("g")

        def read(rt: Runtime, x: str) -> None:
            self.got.append(rt.fs.read_text(x))

        asks = "approver" in options
        policy = ExecutionPolicy(grants=("fs:read:data/**",) if needs != "all" else ("fs:read:*",), **options)
        arg = ArgSpec("x", ArgType.STRING)
        toolset.add(ToolSpec("t", "g", (arg,), return_type=ArgType.NIL), read,
                    ToolPolicy(capabilities=("fs:read" if needs == "whole" else "fs:read:{x}",), requires_approval=asks))  # fmt: skip
        return Engine(toolsets=[toolset], plugins="none", policy=policy, host=Host(sandbox_dir=root))


def test_path_outside_the_grant_is_not_readable_by_any_alias(tmp_path: Path) -> None:
    """The grant is ``data/**``; dots, slashes, links, other alphabets, absolute paths and globs do not help."""
    files = Files(tmp_path)
    absolute = os.fspath(tmp_path / "ROOT" / "secret" / "key")
    with files.engine("path") as engine:
        for path in (*FORBIDDEN_PATHS, absolute, f"data/{absolute}", f"/{absolute}"):
            with pytest.raises(CallError):
                engine.call("g.t", (path,))
            assert files.got == [], f"{path!r}"
        for path in FREE_PATHS:
            engine.call("g.t", (path,))
            assert files.got.pop() == "free"


def test_tool_that_needs_a_whole_resource_does_not_run_with_a_partial_grant(tmp_path: Path) -> None:
    """The host grants a part of the resource, so every spelling of a path is refused."""
    files = Files(tmp_path)
    with files.engine("whole") as engine:
        for path in (*FORBIDDEN_PATHS, *FREE_PATHS):
            with pytest.raises(PolicyError) as caught:
                engine.call("g.t", (path,))
            assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")
    assert files.got == []


def test_approver_that_compares_a_need_with_a_grant_recognizes_every_path_alias(tmp_path: Path) -> None:
    """A `Grant` compares paths as the sandbox opens them, so one grant covers all spellings."""
    files = Files(tmp_path)
    refused = Grant.parse("fs:read:secret/**")
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        (need,) = request.needs
        asked.append(need)
        return Approval.reject() if refused.covers(Capability.parse(need)) else Approval.approve()

    with files.engine("all", approver=approver) as engine:
        for path in FORBIDDEN_PATHS:
            with pytest.raises(CallError):
                engine.call("g.t", (path,))
            assert files.got == [], f"{path!r}"
        for path in FREE_PATHS:
            engine.call("g.t", (path,))
            assert files.got.pop() == "free"
    assert len(asked) > len(FREE_PATHS)


@pytest.mark.parametrize("kind", ["approver", "hook"])
def test_rule_sees_the_same_need_for_every_path_alias(tmp_path: Path, kind: str) -> None:
    """It is the complete path as it will be opened, so a rule may compare the strings of needs."""
    told: list[str] = []

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> None:
            told.extend(map(str, call.needs))

    def approver(request: ApprovalRequest) -> Approval:
        told.extend(request.needs)
        return Approval.approve()

    name = "n" * 100
    aliases = (f"data/{name}", f"./data/{name}", f"data//{name}", f"data/../data/./{name}", Lying(f"data/{name}"))
    options: dict[str, Any] = {"hooks": [Gate()]} if kind == "hook" else {"asks": True}
    policy = ExecutionPolicy(grants=("fs:read:*",), approver=approver)
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("fs:read:{x}",), policy=policy, **options)

    for alias in aliases:
        assert probe.end("in order", alias) == ""

    assert told == [f"fs:read:data/{name}"] * len(aliases)


@pytest.mark.parametrize("kind", ["approver", "hook"])
def test_rule_sees_the_same_need_for_every_spelling_of_a_url(kind: str) -> None:
    """It is the host and port that a client would connect to."""
    told: list[str] = []

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> None:
            told.extend(map(str, call.needs))

    def approver(request: ApprovalRequest) -> Approval:
        told.extend(request.needs)
        return Approval.approve()

    urls = ("http://good.example", "HTTP://GOOD.EXAMPLE.", "http://x@good.example:80/a", "ws://good.example")
    options: dict[str, Any] = {"hooks": [Gate()]} if kind == "hook" else {"asks": True}
    policy = ExecutionPolicy(grants=("net:read:*",), approver=approver)
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("net:read:{x.host}",), policy=policy, **options)

    for url in urls:
        assert probe.end("in order", url) == ""

    assert told == ["net:read:good.example:80"] * len(urls)


PLACES = (
    "http://evil.example/", "HTTP://EVIL.EXAMPLE", "http://evil.example.", "http://Evil.Example.:80/x?y#z",
    "http://good.example@evil.example/", "http://a:b@evil.example:80", "http://evil.example:0080/", "ws://evil.example",
    "http://good.example\\@evil.example/",
    "http://evil\u3002example/", "http://\uff45vil.example/", "//evil.example", "evil.example", "http:evil.example",
    "http://evil.example:443", "http://evil.example:99999", "http://[::ffff:1.2.3.4]/", "http:///evil.example",
    "http://good.example%2eevil.example/", "http://good.example.evil.example/", "http://evil.example\t.good.example",
    Text("http://evil.example/"), Lying("http://evil.example/"), "", " http://evil.example/",
)  # fmt: skip
GOOD_PLACES = ("http://good.example/", "HTTP://GOOD.example.", "http://x@good.example:80/a", "ws://good.example",
               "http://good.example?@evil.example", Text("http://good.example"))  # fmt: skip


def test_host_without_a_grant_is_not_reachable_by_any_spelling_of_a_url() -> None:
    """The host that a client would connect to is compared; a URL that clients could read differently is invalid."""
    policy = ExecutionPolicy(grants=("net:read:good.example:80",))
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("net:read:{x.host}",), policy=policy)

    for url in PLACES:
        assert probe.end("in order", url) in ("policy.capability", "arg"), f"{url!r}"
    assert probe.received == []
    for url in GOOD_PLACES:
        assert probe.end("in order", url) == "", f"{url!r}"


def test_value_with_scope_syntax_needs_only_itself() -> None:
    """``*``, ``:``, ``,``, braces and backslashes in a value are literal, so the need is neither broader nor narrower."""
    signs = ("*", "a,b", "a:b", "a*", "?", "{x}", "a\\", "\\*", "**", "[ab]", "guest,admin", "guest:admin", "gue*t", "")
    policy = ExecutionPolicy(grants=("account:use:guest", "account:use:a", "account:use:b"))
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("account:use:{x}",), policy=policy)

    for sign in signs:
        assert probe.end("in order", sign) == "policy.capability"
    assert probe.received == []
    assert probe.end("in order", "guest") == ""


@pytest.mark.parametrize("kind", ["hook", "capability"])
@pytest.mark.parametrize("spelling", NUMBERS, ids=lambda each: f"{type(each).__name__} {each!r}")
def test_arguments_from_an_approver_are_bound_again_and_seen_by_every_rule(spelling: Any, kind: str) -> None:
    """Values from ``modify`` are coerced, and checked against the grants and hooks."""

    def approver(request: ApprovalRequest) -> Approval:
        return Approval.modify({"x": spelling})

    grant = "account:use:2" if kind == "capability" else "account:use:*"
    options = by_hook(1, []) if kind == "hook" else {}
    policy = ExecutionPolicy(approver=approver, grants=(grant,))
    probe = Probe(ROWS[1], asks=True, needs=("account:use:{x}",), policy=policy, **options)

    assert f"policy.{kind}" == probe.end("in order", 2)
    assert probe.received == []
