"""A seeded generator of nested specs, and of valid, sloppy, damaged and hostile values for them.

One seed produces one sequence. Specs have every form: items, tuples, sets, maps by keys and values, formats, unions and
tagged unions, each nullable or bounded, up to four levels deep.
"""

from __future__ import annotations

import datetime
import json
from collections import deque
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import PurePosixPath
from typing import Any, Final
from uuid import UUID

import attrs
from tests.generator import CANARY, DICT, LIST, LYING, OBJECT, TEXT, TUPLE, Generator, _tripwire

from neuroscript import ArgSpec, ArgType, SpecError
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.coercion.types import ELEMENTS, VALUES

MAX_DEPTH: Final = 4
LEAVES: Final = (
    *("string", "int", "float", "bool", "blob", "any", "embedding", "handle", "nodeid", "entityid"),
    *("slice_int", "slice_string", "slice_float", "slice_bool", "map_string_int", "map_string_string", "map", "slice"),
)
KEYS: Final = ("int", "float", "bool", "string")
WORDS: Final = ("Red", "blue", "auto", "Straße", "1", "é")

DAY, MOMENT, AMOUNT, PATH = (
    _tripwire(f"Own{base.__name__}", base)
    for base in (datetime.date, datetime.datetime, datetime.timedelta, PurePosixPath)
)


class OwnSet(set):  # type: ignore[type-arg]
    """A set whose iteration is the code of a caller."""

    def __iter__(self) -> Any:
        raise RuntimeError("OwnSet.__iter__ ran")


HOSTILE: Final = (
    *(OBJECT, LYING, object, lambda: TEXT("2026-01-02"), lambda: TEXT(CANARY), lambda: LIST([1]), lambda: TUPLE((1,))),
    *(lambda: DICT({"kind": "a"}), lambda: DICT({TEXT("kind"): TEXT("a")}), lambda: OwnSet({1}), lambda: {1, "a"}),
    *(lambda: deque([1]), lambda: frozenset({"a"}), lambda: float("nan"), lambda: "\ud800", lambda: 2**70, lambda: 10**400),
    *(lambda: DAY(2026, 1, 2), lambda: MOMENT(2026, 1, 2), lambda: AMOUNT(1), lambda: PATH("a")),
    *(lambda: Decimal("NaN"), lambda: Decimal("1E+999"), lambda: Decimal("1.50"), lambda: UUID(int=7)),
    *(lambda: datetime.datetime(2026, 1, 2, 3), lambda: datetime.date(2026, 1, 2), lambda: datetime.timedelta(1)),
    *(lambda: PurePosixPath("a/b"), lambda: IPv4Address(1), lambda: "```json\n[1]\n```", lambda: "[" * 2_000),
    *(lambda: '{"kind": "a", "kind": "b"}', lambda: {"kind": OBJECT()}, lambda: {OBJECT(): 1, "kind": "a"}),
    *(lambda: endless_list(), lambda: endless_dict(), lambda: (None,) * 3, lambda: iter(()), lambda: [[[[]]]] * 2),
)  # fmt: skip
"""Functions that make values which no spec expects."""


def endless_list() -> list[Any]:
    """Return a list that contains itself."""
    values: list[Any] = [1]
    values.append(values)
    return values


def endless_dict() -> dict[str, Any]:
    """Return a map that contains itself."""
    values: dict[str, Any] = {"kind": "a", "k0": 1}
    values["k1"] = values["kind0"] = values
    return values


class NestedGenerator(Generator):
    """A source of nested specs and of values for them."""

    def nested_rule(self, depth: int = MAX_DEPTH) -> ArgSpec:
        """Return a spec at most *depth* levels deep."""
        while True:
            try:
                return self._options(self._form(depth))
            except SpecError:  # such as a union of two equal alternatives
                continue

    def _form(self, depth: int) -> ArgSpec:
        if depth <= 0:
            return self._leaf()
        pick = self.randrange(13)
        if pick < 2:
            return self._leaf()
        if pick < 4:
            return ArgSpec("x", ArgType.SLICE, items=self.nested_rule(depth - 1))
        if pick == 4:
            parts = tuple(self.nested_rule(depth - 1) for _ in range(self.randint(1, 3)))
            return ArgSpec("x", ArgType.SLICE, prefix_items=parts)
        if pick == 5:
            return ArgSpec("x", ArgType.SLICE, items=self.nested_rule(depth - 2), unique_items=True)
        if pick == 6:
            return ArgSpec("x", ArgType.MAP, value_spec=self.nested_rule(depth - 1), key_spec=self._key_text())
        if pick == 7:
            key = self.choice((None, *map(self._key_rule, KEYS)))
            return ArgSpec("x", ArgType.MAP_ANY_ANY, value_spec=self.nested_rule(depth - 1), key_spec=key)
        if pick < 10:
            return self._record(depth)
        return self._tagged(depth) if pick == 12 else self._union(depth)

    def _leaf(self) -> ArgSpec:
        pick = self.random()
        if pick < 0.3:
            return ArgSpec("x", ArgType.STRING, format=self.choice([*FORMATS]))
        if pick < 0.45:
            return ArgSpec("x", ArgType.STRING, choices=tuple(self.sample(WORDS, self.randint(1, 4))))
        if pick < 0.5:
            kind = self.choice((ArgType.INT, ArgType.BOOL))
            return ArgSpec("x", kind, choices=(self._known(kind),))
        if pick < 0.55:
            return ArgSpec("x", ArgType.SLICE_STRING, choices=WORDS, unique_items=self.random() < 0.7)
        return ArgSpec("x", ArgType(self.choice(LEAVES)))

    def _options(self, rule: ArgSpec) -> ArgSpec:
        changes: dict[str, Any] = {}
        if self.random() < 0.25:
            changes["nullable"] = True
        if (
            self.random() < 0.15
            and (rule.type in ELEMENTS or rule.type in VALUES)
            and not (rule.prefix_items or rule.keys)
        ):
            is_free = rule.type in ELEMENTS and not rule.unique_items
            changes["min_length" if is_free and self.random() < 0.3 else "max_length"] = self.randint(1, 3)
        elif self.random() < 0.2 and rule.type in (ArgType.INT, ArgType.SLICE_INT) and not rule.choices:
            changes["minimum"] = 0
        elif self.random() < 0.5 and rule.format == "decimal":
            changes[self.choice(("maximum", "exclusive_maximum"))] = 10
        elif self.random() < 0.4 and rule.type in (ArgType.FLOAT, ArgType.SLICE_FLOAT):
            changes[self.choice(("minimum", "exclusive_minimum"))] = 0
        return attrs.evolve(rule, **changes) if changes else rule

    def _record(self, depth: int) -> ArgSpec:
        keys = tuple(
            attrs.evolve(self.nested_rule(depth - 1), name=f"k{index}", required=self.random() < 0.6)
            for index in range(self.randint(1, 3))
        )
        pick = self.random()
        if pick < 0.2:
            return ArgSpec("x", ArgType.MAP, keys=keys, value_spec=self.nested_rule(depth - 1))
        kind = ArgType.SLICE_MAP if pick < 0.35 else ArgType.MAP
        return ArgSpec("x", kind, keys=keys, extra_keys=pick > 0.85)

    def _union(self, depth: int) -> ArgSpec:
        return ArgSpec("x", ArgType.ANY, any_of=tuple(self.nested_rule(depth - 1) for _ in range(self.randint(2, 4))))

    def _tagged(self, depth: int) -> ArgSpec:
        """Return a union of maps with a key in common that tells them apart."""
        maps = [
            ArgSpec("x", ArgType.MAP, keys=(
                ArgSpec("kind", ArgType.STRING, choices=(tag,), required=self.random() < 0.8),
                attrs.evolve(self.nested_rule(depth - 2), name=f"{tag}0", required=self.random() < 0.5),
            ))
            for tag in self.sample(("a", "Bb", "kind"), self.randint(2, 3))
        ]  # fmt: skip
        others = [self.nested_rule(depth - 1)] if self.random() < 0.4 else []
        return ArgSpec("x", ArgType.ANY, any_of=(*maps, *others))

    def _key_text(self) -> ArgSpec | None:
        return self.choice((None, None, ArgSpec("key", ArgType.STRING, choices=("k0", "K1", "é")),
                            ArgSpec("key", ArgType.STRING, format=self.choice(("date", "uuid", "decimal"))),
                            ArgSpec("key", ArgType.STRING, max_length=2)))  # fmt: skip

    def _key_rule(self, kind: str) -> ArgSpec:
        return ArgSpec("key", ArgType(kind))

    def nested_value(self, rule: ArgSpec) -> tuple[Any, bool]:
        """Return a value for a spec, and whether it is valid and exact."""
        pick = self.random()
        if pick < 0.3:
            return self.spelt(rule, 0.0, 0.0), True
        if pick < 0.6:
            return self.spelt(rule, 0.4, 0.0), False
        if pick < 0.95:
            return self.spelt(rule, 0.2, 0.08), False
        return self.choice(HOSTILE)(), False

    def spelt(self, rule: ArgSpec, sloppiness: float, damage: float) -> Any:
        """Return a value for a spec.

        Args:
            sloppiness: How often a value is written in another way; 0 makes exact values.
            damage: How often a value is replaced by an unexpected one.
        """
        if damage and self.random() < damage:
            return self.anything(2) if self.random() < 0.6 else self.choice(HOSTILE)()
        if rule.nullable and self.random() < 0.15:
            return None
        value = self._valid(rule, sloppiness, damage)
        return self._restyled(rule, value) if sloppiness and self.random() < sloppiness else value

    def _valid(self, rule: ArgSpec, sloppiness: float, damage: float) -> Any:
        if rule.any_of:
            return self.spelt(self.choice(rule.any_of), sloppiness, damage)
        if rule.format:
            return self._formatted(rule)
        if rule.type in ELEMENTS:
            return self._items(rule, sloppiness, damage)
        if rule.type in VALUES:
            return self._entries(rule, sloppiness, damage)
        return self._scalar(rule.type, rule)

    def _scalar(self, kind: ArgType, rule: ArgSpec) -> Any:
        if rule.choices:
            return self.choice(rule.choices)
        match kind:
            case ArgType.INT:
                return abs(self._exact(kind)) % 2**63 if rule.minimum is not None else self._exact(kind)
            case ArgType.FLOAT if rule.lowest is not None:
                return abs(self._exact(kind)) or 0.5
            case ArgType.STRING | ArgType.FLOAT | ArgType.BOOL:
                return self._exact(kind)
            case ArgType.BLOB:
                return self.choice((b"", b"xy", bytes(range(9))))
            case ArgType.EMBEDDING:
                from array import array

                return array("f", [0.5] * self.randint(0, 3))
            case ArgType.HANDLE:
                return self.choice(("tree-1", "a" * 128))
            case ArgType.NODEID:
                return "N_1"
            case ArgType.ENTITYID:
                return self.choice(("E_1", {"id": "E_2", "more": [1, None]}))
            case ArgType.MAP:
                return {"a": [1, {"b": None}]}
        return self.choice((0, "a", [1, [None]], {"a": {"b": 1.5}}, True, b"z"))

    def _formatted(self, rule: ArgSpec) -> str:
        samples = FORMATS[rule.format].samples
        if rule.maximum is not None:
            samples = tuple(each for each in samples if Decimal(each) <= Decimal(rule.maximum)) or ("1",)
        if rule.exclusive_maximum is not None:
            samples = tuple(each for each in samples if Decimal(each) < Decimal(rule.exclusive_maximum)) or ("1",)
        return self.choice(samples)

    def _count(self, rule: ArgSpec) -> int:
        low, high = rule.min_length or 0, 3 if rule.max_length is None else rule.max_length
        return self.randint(low, max(low, high))

    def _items(self, rule: ArgSpec, sloppiness: float, damage: float) -> list[Any]:
        if rule.prefix_items:
            return [self.spelt(each, sloppiness, damage) for each in rule.prefix_items]
        inner = rule.items
        if inner is None:
            kind = ELEMENTS[rule.type]
            plain = attrs.evolve(_LEAF[kind], keys=rule.keys, extra_keys=rule.extra_keys) if rule.keys else _LEAF[kind]
            bounds = {"choices": rule.choices, "minimum": rule.minimum, "exclusive_minimum": rule.exclusive_minimum}
            inner = attrs.evolve(plain, **bounds) if rule.has_bounds else plain
        items = [self.spelt(inner, sloppiness, damage) for _ in range(self._count(rule))]
        if not rule.unique_items or sloppiness:
            return items
        seen: dict[str, Any] = {}
        for item in items:
            seen.setdefault(canonical_text(item), item)
        return [*seen.values()]

    def _entries(self, rule: ArgSpec, sloppiness: float, damage: float) -> dict[Any, Any]:
        if rule.keys:
            return self._keyed(rule, sloppiness, damage)
        inner = rule.value_spec or _LEAF[VALUES[rule.type]]
        values: dict[Any, Any] = {}
        for index in range(self._count(rule)):
            key = self._entry_key(rule, index)
            values[self._restyled_key(rule, key) if self.random() < sloppiness else key] = self.spelt(
                inner, sloppiness, damage
            )
        return values

    def _entry_key(self, rule: ArgSpec, index: int) -> Any:
        key = rule.key_spec
        if key is None:
            return (
                self.choice((index, f"k{index}", float(index) + 0.5))
                if rule.type is ArgType.MAP_ANY_ANY
                else f"k{index}"
            )
        if key.format:
            samples = FORMATS[key.format].samples
            return samples[index % len(samples)]
        if key.choices:
            return key.choices[index % len(key.choices)]
        return {"int": index, "float": index + 0.5, "bool": index % 2 == 0}.get(key.type.value, f"k{index}")

    def _restyled_key(self, rule: ArgSpec, key: Any) -> Any:
        return self.choice((str(key), f" {key} ", TEXT(str(key)), key)) if rule.key_spec is not None else key

    def _keyed(self, rule: ArgSpec, sloppiness: float, damage: float) -> dict[Any, Any]:
        keys = [
            key
            for key in rule.keys
            if (key.required and not (damage and self.random() < damage)) or self.random() < 0.5
        ]
        self.shuffle(keys)
        values = {key.name: self.spelt(key, sloppiness, damage) for key in keys}
        if (rule.extra_keys or rule.value_spec is not None) and self.random() < 0.4:
            values["z"] = 5 if rule.value_spec is None else self.spelt(rule.value_spec, sloppiness, damage)
        if damage and self.random() < damage:
            values[self.choice(("z", 5, TEXT("k0"), OBJECT()))] = 1
        return values

    def _restyled(self, rule: ArgSpec, value: Any) -> Any:
        """Return a value as a sloppy caller might write it: usually still valid."""
        is_plain = any(type(value) is kind for kind in (type(None), bool, int, float, str, list, dict))
        if not is_plain or (type(value) is int and value >= 2**64):
            return value
        match value:
            case None:
                return self.choice((None, "null", ""))
            case str() if rule.choices:
                return self.choice((value.upper(), f" {value}\n", value.lower(), TEXT(value)))
            case str() if rule.format:
                return self.choice((f" {value} ", value.lower(), value.replace("T", " "), TEXT(value)))
            case list():
                pick = self.choice((tuple, TUPLE, LIST, deque, self._text, self._fenced, self._as_set, self._doubled))
                return pick(value)
            case dict():
                return self.choice((DICT, self._text, self._fenced))(value)
        return self._other_spelling(value)

    def _fenced(self, value: Any) -> Any:
        text = self._text(value)
        return f"```json\n{text}\n```" if isinstance(text, str) else text

    def _as_set(self, value: list[Any]) -> Any:
        return {each for each in value if any(type(each) is kind for kind in (int, float, bool, str))}

    def _doubled(self, value: list[Any]) -> list[Any]:
        return value + value


_LEAF: Final = {ArgType(kind): ArgSpec("x", ArgType(kind)) for kind in ("any", "string", "int", "float", "bool", "map")}


def canonical_text(value: Any) -> str:
    """Return a string that is equal only for values of equal types and contents, whatever the order of keys."""
    if type(value) is dict:
        return f"map {sorted((canonical_text(key), canonical_text(each)) for key, each in value.items())}"
    if type(value) is list:
        return f"[{', '.join(map(canonical_text, value))}]"
    return f"{type(value).__name__} {value!r}" if value != 0 or type(value) is not float else "float 0.0"


def as_json(value: Any) -> str | None:
    """Return a value as JSON text if it consists of JSON values with string keys."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return text
