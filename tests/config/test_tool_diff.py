"""Differences between two definitions of a tool, and their compatibility for callers and hosts."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import ALL
from tests.generator import Generator

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CoercionError,
    Engine,
    Example,
    SpecError,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    coerce,
)
from neuroscript.coercion.scalars import Handle
from neuroscript.coercion.types import NONE_TYPES, gives_no_more, takes_all
from neuroscript.config.spec_diff import argument_changes
from neuroscript.config.tool_diff import Definition, changes
from neuroscript.tools.fingerprints import canonical_text

ARGUMENTS = [kind for kind in ArgType if kind is not ArgType.VOID]


def tool(*args: ArgSpec, policy: ToolPolicy | None = None, **fields: Any) -> Definition:
    """Return the definition of a tool with these arguments."""
    return Definition(ToolSpec("t", "g", args, **fields), policy or ToolPolicy())


def told(old: Definition, new: Definition) -> list[str]:
    """Return the changes as a person reads them."""
    return [f"{each.kind} {each}" for each in changes(old, new)]


# Types


def values() -> Iterator[Any]:
    """Yield values of every kind, including their JSON and command-line forms."""
    yield from (True, 0, 1, -3, 2**53 + 1, 2**63 - 1, 2**63, 1.0, 5.5, 1e300, 2.0**70)
    yield from (
        "",
        "null",
        "a",
        "true",
        "1",
        "5.0",
        "1e3",
        "2" * 30,
        "N_abc",
        "E_abc",
        "N_a b",
        "N_",
        "handle-1",
        "x y",
    )
    yield from ("{}", "[]", '{"a": 1}', '{"a": "b"}', '{"a": true}', '{"a": 1.5}', '{"id": "E_abc"}')
    yield from ("[1]", '["a"]', "[true]", "[1.5]", "[null]", "[{}]", "[9223372036854775808]", '{"$base64": "YQ=="}')
    yield from (b"a", bytearray(b"a"), memoryview(b"a"), array("f", [1]), array("d", [1]), Handle("h", "kind"))
    yield from ({}, {"a": 1}, {"a": "b"}, {"a": True}, {"a": 1.5}, {"a": None}, {"a": [1]}, {"a": 2**63}, {1: 2})
    yield from ({"id": "E_abc", "x": 1}, {"_version": "N_abc"}, {"$base64": "YQ=="}, {b"a": 1}, {"a": 1e300})
    yield from ([], (), [1], (1,), ["a"], [True], [1.5], [None], [{}], [{"a": 1}], [{1: 2}], [2**63], [[1]], [b"a"])
    yield from (datetime.datetime(2026, 1, 2), [datetime.datetime(2026, 1, 2)], range(2), {1}, object(), 5j, "\ud800")


def is_taken(value: Any, kind: ArgType, mode: Any) -> bool:
    """Return whether a value has a type."""
    try:
        coerce(value, kind, mode=mode)
    except CoercionError:
        return False
    return True


@pytest.mark.parametrize("old", ARGUMENTS)
def test_only_a_wider_type_accepts_every_value(old: ArgType) -> None:
    """The whole table is checked against coercion in both modes."""
    taken = [(value, mode) for value in values() for mode in ("lax", "strict") if is_taken(value, old, mode)]

    wider = [new for new in ARGUMENTS if all(is_taken(value, new, mode) for value, mode in taken)]

    expected = [new for new in ARGUMENTS if takes_all(new, old)]
    assert expected == (wider if taken else [ArgType.ANY, ArgType.NIL])  # nil accepts None only


def results() -> dict[ArgType, list[Any]]:
    """Return results of each type, as an engine returns them."""
    found: dict[ArgType, list[Any]] = {kind: [] for kind in ArgType}
    for value in values():
        for kind in ARGUMENTS:
            if is_taken(value, kind, "lax"):
                found[kind].append(coerce(value, kind))
    return {**found, ArgType.NIL: [None], ArgType.VOID: [None]}


@pytest.fixture(scope="module")
def given_results() -> dict[ArgType, list[Any]]:
    """Return the values once."""
    return results()


@pytest.mark.parametrize("old", ArgType)
def test_narrower_result_is_always_valid_for_the_old_type(old: ArgType, given_results: Any) -> None:
    """The whole table is checked against an engine that enforces result types."""
    toolset = Toolset("g")
    sent: list[Any] = []
    toolset.add(ToolSpec("t", "g", return_type=old), lambda rt: sent[-1])
    fits: list[ArgType] = []
    with Engine(plugins="none", toolsets=[toolset]) as engine:
        for new in ArgType:
            sent.append(None)
            outcomes = []
            for value in given_results[new]:
                sent[-1] = value
                result = engine.execute(ToolCall("g.t"))
                outcomes.append(result.ok and canonical_text(result.value) == canonical_text(value))
            if all(outcomes):
                fits.append(new)

    expected = [new for new in ArgType if gives_no_more(new, old)]
    assert expected == [new for new in fits if old in NONE_TYPES or new not in NONE_TYPES]


# One change at a time

INT = ArgSpec("n", "int")
LATER = ArgSpec("n", "int", required=False)
FIVE = ArgSpec("n", "int", default=5)
TEXT = ArgSpec("s", "string")
DEEP = ArgSpec("m", "map", keys=(ArgSpec("depth", "int"), ArgSpec("tail", "string", required=False)))
evolve = attrs.evolve


def keyed(**fields: Any) -> ArgSpec:
    """Return the map with another first key."""
    return evolve(DEEP, keys=(evolve(DEEP.keys[0], **fields), DEEP.keys[1]))


READ = "the text for models changed; review it before use"

ARGUMENT_ROWS: list[tuple[str, Any, Any, list[str]]] = [
    ("gone", (INT, TEXT), (INT,), ["breaking args.s: the argument was removed"]),
    ("new, required", (INT,), (INT, TEXT), ["breaking args.s: a new required argument"]),
    (
        "new, optional",
        (INT,),
        (INT, evolve(TEXT, required=False)),
        ["compatible args.s: a new optional argument"],
    ),
    (
        "new, before others",
        (INT,),
        (evolve(TEXT, required=False), INT),
        [
            "breaking args: the order of arguments changed, which affects positional calls",
            "compatible args.s: a new optional argument",
        ],
    ),
    (
        "order",
        (INT, TEXT),
        (TEXT, INT),
        ["breaking args: the order of arguments changed, which affects positional calls"],
    ),
    ("required", (LATER,), (INT,), ["breaking args.n.required: is now required"]),
    ("optional", (INT,), (LATER,), ["compatible args.n.required: is now optional"]),
    ("optional, with default", (INT,), (FIVE,), ["compatible args.n.required: is now optional"]),
    ("required, had a default", (FIVE,), (INT,), ["breaking args.n.required: is now required"]),
    ("default", (FIVE,), (evolve(FIVE, default=6),), ["breaking args.n.default: has a different default"]),
    ("default, new", (LATER,), (FIVE,), ["breaking args.n.default: now has a default"]),
    ("default, gone", (FIVE,), (LATER,), ["breaking args.n.default: no longer has a default"]),
    ("default, None", (LATER,), (evolve(LATER, default=None),), ["compatible args.n.default: now has a default"]),
    ("nullable", (INT,), (evolve(INT, nullable=True),), ["compatible args.n.nullable: now accepts None"]),
    (
        "nullable, no more",
        (evolve(INT, nullable=True),),
        (INT,),
        ["breaking args.n.nullable: no longer accepts None"],
    ),
    (
        "nullable, was the default",
        (FIVE,),
        (evolve(FIVE, nullable=True),),
        ["breaking args.n.nullable: now accepts None"],
    ),
    (
        "nullable, no difference",
        (LATER,),
        (evolve(LATER, nullable=True),),
        ["compatible args.n.nullable: now accepts None"],
    ),
    ("type", (INT,), (evolve(INT, type="string"),), ["breaking args.n.type: changed from int to string"]),
    (
        "type, wider",
        (INT,),
        (evolve(INT, type="any"),),
        ["compatible args.n.type: accepts more: any instead of int"],
    ),
    (
        "type, wider, with its default",
        (FIVE,),
        (ArgSpec("n", "any", default=5),),
        ["compatible args.n.type: accepts more: any instead of int"],
    ),
    ("choices", (INT,), (evolve(INT, choices=(1, 2)),), ["breaking args.n.choices: now accepts only certain values"]),
    (
        "choices, none",
        (evolve(INT, choices=(1, 2)),),
        (INT,),
        ["compatible args.n.choices: now accepts all values of its type"],
    ),
    (
        "choices, others",
        (evolve(INT, choices=(1, 2)),),
        (evolve(INT, choices=(2, 3, 4)),),
        [
            "breaking args.n.choices: 1 value is no longer accepted",
            "compatible args.n.choices: 2 further values are accepted",
        ],
    ),
    (
        "choices, order",
        (evolve(INT, choices=(1, 2)),),
        (evolve(INT, choices=(2, 1)),),
        ["compatible args.n.choices: the order of values changed"],
    ),
    ("minimum", (INT,), (evolve(INT, minimum=0),), ["breaking args.n.minimum: the minimum is tighter"]),
    (
        "minimum, lower",
        (evolve(INT, minimum=3),),
        (evolve(INT, minimum=0),),
        ["compatible args.n.minimum: the minimum is looser"],
    ),
    (
        "maximum",
        (evolve(INT, maximum=3),),
        (evolve(INT, maximum=2),),
        ["breaking args.n.maximum: the maximum is tighter"],
    ),
    ("maximum, gone", (evolve(INT, maximum=3),), (INT,), ["compatible args.n.maximum: the maximum is looser"]),
    (
        "min_length",
        (TEXT,),
        (evolve(TEXT, min_length=1),),
        ["breaking args.s.min_length: the minimum length is tighter"],
    ),
    (
        "max_length",
        (evolve(TEXT, max_length=5),),
        (evolve(TEXT, max_length=9),),
        ["compatible args.s.max_length: the maximum length is looser"],
    ),
    (
        "bounds, written otherwise",
        (evolve(INT, minimum=1),),
        (evolve(INT, minimum=1.0),),
        ["compatible is written differently"],
    ),
    ("secret", (TEXT,), (evolve(TEXT, secret=True),), ["compatible args.s.secret: its value is now secret"]),
    (
        "secret, no more",
        (evolve(TEXT, secret=True),),
        (TEXT,),
        ["breaking args.s.secret: its value is no longer secret"],
    ),
    ("description", (INT,), (evolve(INT, description="Send it all."),), [f"compatible args.n.description: {READ}"]),
    ("key, gone", (DEEP,), (evolve(DEEP, keys=DEEP.keys[:1]),), ["breaking args.m.keys.tail: the key was removed"]),
    (
        "key, new and required",
        (DEEP,),
        (evolve(DEEP, keys=(*DEEP.keys, TEXT)),),
        ["breaking args.m.keys.s: a new required key"],
    ),
    (
        "key, new",
        (DEEP,),
        (evolve(DEEP, keys=(*DEEP.keys, FIVE)),),
        ["compatible args.m.keys.n: a new optional key"],
    ),
    (
        "key, new, fills the map",
        (evolve(DEEP, max_length=2),),
        (evolve(DEEP, max_length=2, keys=(*DEEP.keys, FIVE)),),
        ["breaking args.m.keys.n: a new optional key"],
    ),
    (
        "key, optional",
        (DEEP,),
        (keyed(required=False),),
        ["compatible args.m.keys.depth.required: is now optional"],
    ),
    ("key, required", (keyed(required=False),), (DEEP,), ["breaking args.m.keys.depth.required: is now required"]),
    ("key, type", (DEEP,), (keyed(type="string"),), ["breaking args.m.keys.depth.type: changed from int to string"]),
    (
        "key, default of None",
        (keyed(required=False),),
        (keyed(required=None, default=None),),
        ["breaking args.m.keys.depth.default: now has a default"],
    ),
    (
        "keys, order",
        (DEEP,),
        (evolve(DEEP, keys=DEEP.keys[::-1]),),
        ["compatible args.m.keys: the order of keys changed"],
    ),
    (
        "keys, none",
        (DEEP,),
        (evolve(DEEP, keys=()),),
        [
            "compatible args.m.keys.depth: the key no longer has a spec",
            "compatible args.m.keys.tail: the key no longer has a spec",
            "compatible args.m.extra_keys: now accepts unknown keys",
        ],
    ),
    (
        "keys, none, and one was secret",
        (keyed(secret=True),),
        (evolve(DEEP, keys=()),),
        [
            "breaking args.m.keys.depth: the key no longer has a spec",
            "compatible args.m.keys.tail: the key no longer has a spec",
            "compatible args.m.extra_keys: now accepts unknown keys",
        ],
    ),
    (
        "keys, none, and one was a float",
        (evolve(DEEP, keys=(ArgSpec("depth", "float"),)),),
        (evolve(DEEP, keys=()),),
        [
            "breaking args.m.keys.depth: the key no longer has a spec",
            "compatible args.m.extra_keys: now accepts unknown keys",
        ],
    ),
    (
        "keys, some",
        (evolve(DEEP, keys=()),),
        (DEEP,),
        [
            "breaking args.m.keys.depth: the key accepted any value and now has a spec",
            "breaking args.m.keys.tail: the key accepted any value and now has a spec",
            "breaking args.m.extra_keys: no longer accepts unknown keys",
        ],
    ),
    (
        "extra_keys",
        (DEEP,),
        (evolve(DEEP, extra_keys=True),),
        ["compatible args.m.extra_keys: now accepts unknown keys"],
    ),
    (
        "extra_keys, no more",
        (evolve(DEEP, extra_keys=True),),
        (DEEP,),
        ["breaking args.m.extra_keys: no longer accepts unknown keys"],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in ARGUMENT_ROWS], ids=[row[0] for row in ARGUMENT_ROWS]
)
def test_each_argument_change_is_classified(old: Any, new: Any, expected: list[str]) -> None:
    """The class depends on what happens to calls written for the old definition."""
    assert told(tool(*old), tool(*new)) == expected


def test_nested_key_changes_are_classified() -> None:
    before = evolve(DEEP, keys=(evolve(DEEP, name="inner"),))
    after = evolve(DEEP, keys=(evolve(keyed(minimum=1), name="inner"),))

    assert told(tool(before), tool(after)) == ["breaking args.m.keys.inner.keys.depth.minimum: the minimum is tighter"]


REST = ArgSpec("rest", "int", required=False)

ASKED = '{"type": "object", "minProperties": 0}'

TOOL_ROWS: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    (
        "variadic",
        {"args": (INT,)},
        {"args": (INT, REST), "variadic": True},
        [
            "compatible variadic: accepts further values",
            "compatible args.rest: a new optional argument",
        ],
    ),
    (
        "variadic, of a single value",
        {"args": (REST,)},
        {"args": (REST,), "variadic": True},
        ["breaking variadic: accepts further values in an argument that was a single value"],
    ),
    (
        "variadic, no more",
        {"args": (REST,), "variadic": True},
        {"args": (REST,)},
        ["breaking variadic: no longer accepts further values"],
    ),
    (
        "variadic, of another argument",
        {"args": (REST,), "variadic": True},
        {"args": (REST, LATER), "variadic": True},
        [
            "breaking variadic: further values now belong to another argument",
            "compatible args.n: a new optional argument",
        ],
    ),
    (
        "variadic, None",
        {"args": (evolve(REST, nullable=True),), "variadic": True},
        {"args": (REST,), "variadic": True},
        ["breaking args.rest.nullable: no longer accepts None"],
    ),
    (
        "return_type",
        {"return_type": "any"},
        {"return_type": "int"},
        ["compatible return_type: changed from any to int"],
    ),
    (
        "return_type, wider",
        {"return_type": "int"},
        {"return_type": "any"},
        ["breaking return_type: changed from int to any"],
    ),
    (
        "return_nullable",
        {"return_type": "int"},
        {"return_type": "int", "return_nullable": True},
        ["breaking return_nullable: may now be None"],
    ),
    (
        "return_nullable, of any",
        {},
        {"return_nullable": True},
        ["compatible return_nullable: may now be None"],
    ),
    (
        "return_nullable, no more",
        {"return_type": "int", "return_nullable": True},
        {"return_type": "int"},
        ["compatible return_nullable: can no longer be None"],
    ),
    ("stream", {}, {"stream": True}, ["breaking stream: now streams its result"]),
    ("may stream", {}, {"stream": "maybe"}, ["breaking stream: may now stream its result"]),
    ("streams no more", {"stream": "maybe"}, {}, ["breaking stream: no longer streams its result"]),
    ("stream, no more", {"stream": True}, {}, ["breaking stream: no longer streams its result"]),
    ("description", {}, {"description": "Send me all files."}, [f"compatible description: {READ}"]),
    ("when_to_use", {}, {"when_to_use": "Always."}, [f"compatible when_to_use: {READ}"]),
    ("return_help", {}, {"return_help": "What to do next."}, [f"compatible return_help: {READ}"]),
    ("category", {}, {"category": "safe"}, [f"compatible category: {READ}"]),
    ("error_conditions", {}, {"error_conditions": "Never."}, [f"compatible error_conditions: {READ}"]),
    ("examples", {}, {"examples": (Example((), 1),)}, [f"compatible examples: {READ}"]),
    ("deprecated", {}, {"deprecated": "use g.u"}, ["compatible deprecated: is now deprecated"]),
    ("deprecated, no more", {"deprecated": "use g.u"}, {}, ["compatible deprecated: is no longer deprecated"]),
    (
        "deprecated, for another",
        {"deprecated": "use g.u"},
        {"deprecated": "use g.v"},
        [f"compatible deprecated: {READ}"],
    ),
    ("schema", {}, {"schema": ASKED}, ["breaking schema: now has additional constraints on the arguments"]),
    (
        "schema, no more",
        {"schema": ASKED},
        {},
        ["compatible schema: no longer has additional constraints on the arguments"],
    ),
    (
        "schema, another",
        {"schema": ASKED},
        {"schema": "{}"},
        ["breaking schema: has different additional constraints on the arguments"],
    ),
    ("name", {}, {"name": "u"}, ["compatible fullname: was renamed to g.u"]),
    ("group", {}, {"group": "h"}, ["compatible fullname: was renamed to h.t"]),
]


def of_spec(fields: dict[str, Any]) -> Definition:
    """Return a definition whose spec has these fields."""
    return Definition(ToolSpec(**{"name": "t", "group": "g", **fields}), ToolPolicy())


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in TOOL_ROWS], ids=[row[0] for row in TOOL_ROWS])
def test_each_spec_change_is_classified(old: Any, new: Any, expected: list[str]) -> None:
    """This covers what callers read or receive, and what models see."""
    assert told(of_spec(old), of_spec(new)) == expected


POLICY_ROWS: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("trust", {}, {"requires_trust": True}, ["breaking requires_trust: now requires a trusted host"]),
    (
        "trust, no more",
        {"requires_trust": True},
        {},
        ["breaking requires_trust: no longer requires a trusted host"],
    ),
    ("approval", {}, {"requires_approval": True}, ["breaking requires_approval: now requires approval of each call"]),
    (
        "approval, no more",
        {"requires_approval": True},
        {},
        ["breaking requires_approval: no longer requires approval"],
    ),
    ("need", {}, {"capabilities": ["net:read:a.b"]}, ["breaking capabilities: now also needs net:read:a.b"]),
    (
        "need, no more",
        {"capabilities": ["net:read:a.b"]},
        {},
        ["compatible capabilities: no longer needs net:read:a.b"],
    ),
    (
        "need, another",
        {"capabilities": ["fs:read:a"]},
        {"capabilities": ["fs:read,write:a"]},
        ["breaking capabilities: now also needs fs:write:a"],
    ),
    (
        "need, narrower",
        {"capabilities": ["fs:read"]},
        {"capabilities": ["fs:read:a"]},
        ["compatible capabilities: now needs only fs:read:a"],
    ),
    (
        "need, wider",
        {"capabilities": ["fs:read:a"]},
        {"capabilities": ["fs:read"]},
        ["breaking capabilities: now also needs fs:read"],
    ),
    (
        "need, another scope",
        {"capabilities": ["fs:read:a"]},
        {"capabilities": ["fs:read:b"]},
        ["breaking capabilities: now also needs fs:read:b", "compatible capabilities: no longer needs fs:read:a"],
    ),
    (
        "need, written otherwise",
        {"capabilities": ["fs:read,write:a"]},
        {"capabilities": ["fs:read:a", "fs:write:a"]},
        ["compatible capabilities: the capabilities are written differently"],
    ),
    (
        "need, without what was in it",
        {"capabilities": ["fs:read", "fs:read:a"]},
        {"capabilities": ["fs:read"]},
        ["compatible capabilities: the capabilities are written differently"],
    ),
    ("effect", {}, {"effects": ["net"]}, ["breaking effects: now has the effect net"]),
    ("effect, no more", {"effects": ["net"]}, {}, ["compatible effects: no longer has the effect net"]),
    ("promise", {}, {"effects": ["pure"]}, ["compatible effects: is now pure"]),
    ("promise, no more", {"effects": ["idempotent"]}, {}, ["breaking effects: is no longer idempotent"]),
    (
        "effects, order",
        {"effects": ["net", "reads"]},
        {"effects": ["reads", "net"]},
        ["compatible effects: the order of effects changed"],
    ),
    ("timeout", {}, {"timeout": 5}, ["breaking timeout: the timeout is shorter"]),
    ("timeout, longer", {"timeout": 5}, {"timeout": 6}, ["compatible timeout: the timeout is longer"]),
    ("timeout, none", {"timeout": 5}, {}, ["compatible timeout: the timeout is longer"]),
    ("blocking", {}, {"blocking": True}, ["compatible blocking: acall runs it in a different way"]),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in POLICY_ROWS], ids=[row[0] for row in POLICY_ROWS]
)
def test_each_policy_change_is_classified(old: Any, new: Any, expected: list[str]) -> None:
    """More authority is breaking, and so is the loss of a restriction."""
    before, after = (tool(policy=ToolPolicy(**fields)) for fields in (old, new))

    assert told(before, after) == expected


@pytest.mark.parametrize(
    ("cls", "rows", "untold"),
    [
        (ArgSpec, ARGUMENT_ROWS, {"name", "cls"}),
        (ToolSpec, TOOL_ROWS, {"args", "full_name", "exports"}),
        (ToolPolicy, POLICY_ROWS, set()),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_every_field_is_covered(cls: type, rows: list[Any], untold: set[str]) -> None:
    """A new field needs a row here; a renamed argument is a different argument."""
    shown = {part for _, _, _, lines in rows for line in lines for part in line.split(": ")[0].split()[1].split(".")}

    spelt = {"name": "fullname", "group": "fullname"} if cls is ToolSpec else {}
    missing = {each.name for each in attrs.fields(cls)} - untold
    assert {name for name in missing if spelt.get(name, name) not in shown} == set()


def test_equal_definitions_have_no_changes() -> None:
    """They have the same fingerprint."""
    definition = tool(DEEP, FIVE, policy=ToolPolicy(effects=("net",)))

    assert changes(definition, Definition.of_data(definition.data)) == ()


def test_changes_contain_no_values() -> None:
    """They contain names, types, and needs as declared."""
    old = tool(ArgSpec("s", "string", default="canary-1", choices=("canary-1", "x")), description="canary-2")
    new = tool(ArgSpec("s", "string", default="canary-3", choices=("canary-3", "x")), description="canary-4")

    assert len(changes(old, new)) == 4
    assert "canary" not in " ".join(told(old, new))


# Soundness of the verdict


class Mutator(Generator):
    """Generates pairs of specs that differ in one place."""

    def pair(self) -> tuple[ToolSpec, ToolSpec]:
        """Return the spec of ``old.t`` and that of ``new.t``."""
        while True:
            try:
                old = evolve(self.spec(self.randint(1, 3)), group="old")
                for _ in range(self.choice((0, 1, 2))):  # cases that the generator does not produce
                    old = self.mutated(old) if old.args else old
                new = evolve(self.mutated(old) if old.args else self.spec(1), group="new")
            except SpecError:
                continue
            if (old.args, old.variadic) != (new.args, new.variadic):
                return old, new

    def mutated(self, spec: ToolSpec) -> ToolSpec:
        """Return a spec with one change."""
        args = [*spec.args]
        index = self.randrange(len(args))
        match self.choice(("arg", "arg", "arg", "arg", "add", "insert", "drop", "swap", "variadic")):
            case "arg":
                args[index] = self.changed(args[index])
            case "add":
                args.append(evolve(self.rule(1), name=self.choice("bcd")))
            case "insert":
                args.insert(index, evolve(self.rule(1), name=self.choice("bcd")))
            case "drop":
                del args[index]
            case "swap":
                self.shuffle(args)
            case _:
                return evolve(spec, variadic=not spec.variadic)
        return evolve(spec, args=tuple(args))

    def changed(self, rule: ArgSpec) -> ArgSpec:
        """Return a rule with one change: a field, a key, or its type."""
        if rule.keys and self.random() < 0.5:
            keys = [*rule.keys]
            index = self.randrange(len(keys))
            match self.choice(("change", "change", "drop", "add", "turn", "open")):
                case "change":
                    keys[index] = self.changed(keys[index])
                case "drop":
                    del keys[index]
                case "add":
                    keys.append(evolve(self.rule(0), name=self.choice("efg")))
                case "open":
                    keys.clear()
                case _:
                    keys.reverse()
            return evolve(rule, keys=tuple(keys), extra_keys=rule.extra_keys and bool(keys))
        other = self.rule(1)
        fields = [
            "required",
            "default",
            "nullable",
            "choices",
            "keys",
            "extra_keys",
            "type",
            "type",
            "minimum",
            "max_length",
        ]
        names = {
            "required": ("required", "default"),
            "type": self.choice((("type",), ("type", "keys", "extra_keys", "choices"))),
        }
        field = self.choice(fields)
        values = {name: getattr(other, name) for name in names.get(field, (field,))}
        if field == "type" and self.random() < 0.4:
            values["type"] = self.choice([kind for kind in ARGUMENTS if takes_all(kind, rule.type)])
        if field in ("minimum", "max_length"):
            values = {field: self.choice((None, 0, 1, 2))}
        return evolve(rule, **values)

    def call(self, spec: ToolSpec) -> Any:
        """Return arguments, positional or named, that may bind."""
        if self.random() < 0.5:
            more = self.randint(0, 2) if spec.variadic else 0
            rules = [*spec.args, *spec.args[-1:] * more]
            return tuple(self.value(rule) for rule in rules[: len(rules) - self.choice((0, 0, 0, 1, 2))])
        named = {rule.name: self.value(rule) for rule in spec.args if self.random() < 0.8}
        if spec.variadic and spec.args[-1].name in named:
            named[spec.args[-1].name] = [self.value(spec.args[-1]) for _ in range(self.randint(0, 2))]
        return named


def engine_of(old: ToolSpec, new: ToolSpec, reached: list[Any], mode: Any) -> Engine:
    """Return an engine with both tools, which record their arguments."""
    toolsets = [Toolset("old"), Toolset("new")]
    for toolset, spec in zip(toolsets, (old, new), strict=True):
        toolset.add(spec, lambda rt, *values: reached.append(values))
    return Engine(plugins="none", toolsets=toolsets, mode=mode)


def bound(engine: Engine, name: str, args: Any, reached: list[Any]) -> Any:
    """Return what a tool receives, or None if the call does not reach it."""
    reached.clear()
    try:
        (engine.call if isinstance(args, tuple) else engine.call_named)(name, args)
    except ArgumentError:
        return None
    return reached[0]


CALLS = 25


@settings(max_examples=3_000 if not ALL else 50_000)
@given(st.integers(0, 2**64))
def test_compatible_change_keeps_accepted_calls(seed: int) -> None:
    """Arguments that bound before still bind to the same values on a real engine, in both modes."""
    random = Mutator(seed)
    old, new = random.pair()
    found = [*argument_changes(old, new)]
    if any(each.kind == "breaking" for each in found):
        return
    typed = any(each.path.endswith((".type", ".extra_keys")) or ".keys" in each.path for each in found)
    reached: list[Any] = []
    with engine_of(old, new, reached, random.choice(("lax", "strict"))) as engine:
        for _ in range(CALLS):
            args = random.call(old)
            before = bound(engine, "old.t", args, reached)
            if before is None:
                continue
            after = bound(engine, "new.t", args, reached)
            assert after is not None, (old, new, found, args)
            if not typed and not new.variadic:
                assert canonical_text(before) == canonical_text(after[: len(before)]), (old, new, found, args)
