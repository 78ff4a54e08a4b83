"""Changes that are reported as compatible: every accepted call stays accepted."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.config.diffed_tools import evolve
from tests.conftest import ALL
from tests.generator import Generator

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CoercionError,
    Engine,
    SpecError,
    ToolCall,
    Toolset,
    ToolSpec,
    coerce,
)
from neuroscript.coercion.scalars import Handle
from neuroscript.coercion.types import NONE_TYPES, accepts_all, returns_subset
from neuroscript.config.spec_diff import argument_changes
from neuroscript.tools.fingerprints import canonical_text

ARGUMENTS = [kind for kind in ArgType if kind is not ArgType.VOID]


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

    expected = [new for new in ARGUMENTS if accepts_all(new, old)]
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

    expected = [new for new in ArgType if returns_subset(new, old)]
    assert expected == [new for new in fits if old in NONE_TYPES or new not in NONE_TYPES]


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
            values["type"] = self.choice([kind for kind in ARGUMENTS if accepts_all(kind, rule.type)])
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


@settings(max_examples=50_000 if ALL else 300)
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
