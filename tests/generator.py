"""A seeded generator of values and rules: valid, damaged and hostile ones, in any number.

It makes about 20,000 cases a second, so it provides the volume; hypothesis finds small cases.
"""

from __future__ import annotations

import datetime
import json
import random
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from neuroscript import ArgSpec, ArgType, Handle, ToolSpec

CANARY = "cаnary"  # with a Cyrillic letter, so it matches nothing else
SCALARS = (ArgType.STRING, ArgType.INT, ArgType.FLOAT, ArgType.BOOL)
TYPES = tuple(kind for kind in ArgType if kind is not ArgType.VOID)
DECLARED = (ArgType.MAP, ArgType.MAP_STRING_ANY, ArgType.SLICE_MAP)

RAN: list[str] = []
"""The code of values that ran while it was watched: every method of a tripwire is recorded here."""

WATCHED = [False]


@contextmanager
def watched() -> Iterator[list[str]]:
    """Watch for code of values that runs, and yield the list of it."""
    RAN.clear()
    WATCHED[0] = True
    try:
        yield RAN
    finally:
        WATCHED[0] = False


def _tripwire(name: str, base: type) -> type:
    """Return a subclass of *base* that records each of its own methods that runs while it is watched."""

    def telling(method: str) -> Any:
        def tell(self: Any, *args: Any, **kwargs: Any) -> Any:
            if WATCHED[0]:
                RAN.append(f"{name}.{method}")
                raise RuntimeError(f"{name}.{method} ran")
            return getattr(base, method)(self, *args, **kwargs)

        return tell

    made = ("__new__", "__init__", "__class__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__del__")
    methods = {method for method in dir(base) if callable(getattr(base, method)) and method not in made}
    methods |= {"__int__", "__float__", "__index__", "__len__", "__iter__", "__bool__", "__getitem__", "__fspath__"}
    return type(name, (base,), {method: telling(method) for method in methods})


class Meta(type):
    """A metaclass that lies about its classes, and records each query."""

    def __eq__(cls, other: object) -> bool:
        if WATCHED[0]:
            RAN.append("Meta.__eq__")
        return True

    def __hash__(cls) -> int:
        if WATCHED[0]:
            RAN.append("Meta.__hash__")
        return hash(str)

    def __instancecheck__(cls, other: object) -> bool:
        if WATCHED[0]:
            RAN.append("Meta.__instancecheck__")
        return True

    def __subclasscheck__(cls, other: type) -> bool:
        if WATCHED[0]:
            RAN.append("Meta.__subclasscheck__")
        return True


OBJECT = _tripwire("Object", object)
LYING = Meta("Lying", (), {"__class__": str})
TEXT, INT, FLOAT, BYTES = (_tripwire(base.__name__.title(), base) for base in (str, int, float, bytes))
LIST, TUPLE, DICT = (_tripwire(base.__name__.title(), base) for base in (list, tuple, dict))


class Color(IntEnum):
    """An int subclass with named members."""

    RED = 1


class Generator(random.Random):
    """A source of rules and values; one seed produces one sequence."""

    def rule(self, depth: int = 2) -> ArgSpec:
        """Return a rule of any type, with the keys, choices, bounds and default that the type supports."""
        kind = self.choice(TYPES)
        options: dict[str, Any] = {"nullable": self.random() < 0.3, "required": self.random() < 0.7}
        if kind in DECLARED and depth and self.random() < 0.7:
            options["keys"] = tuple(
                self._named(self.rule(depth - 1), name) for name in self.sample("abcd", self.randint(1, 3))
            )
            options["extra_keys"] = self.random() < 0.3
        if kind in SCALARS and self.random() < 0.3:
            options["choices"] = tuple(self._known(kind) for _ in range(3))
        if kind in (ArgType.INT, ArgType.FLOAT, ArgType.SLICE_INT, ArgType.SLICE_FLOAT) and self.random() < 0.2:
            options["minimum"], options["maximum"] = -5, self.choice((5, 2.5))
        if kind in (ArgType.STRING, ArgType.SLICE_ANY, ArgType.MAP_STRING_INT, ArgType.BLOB) and self.random() < 0.2:
            options["max_length"] = self.randint(0, 3)
        if not options["required"] and kind in SCALARS and "choices" in options:
            options["default"] = options["choices"][0]
        elif not options["required"] and kind in SCALARS and "maximum" not in options and "max_length" not in options:
            options["default"] = self._known(kind)
        if "minimum" in options and "choices" in options:
            del options["choices"], options["minimum"], options["maximum"]
            options.pop("default", None)
        if "max_length" in options and "choices" in options:
            del options["max_length"]
        if "minimum" in options and self.random() < 0.3:
            options["exclusive_minimum"] = options.pop("minimum")
        return ArgSpec("x", kind, **options)

    def _named(self, rule: ArgSpec, name: str) -> ArgSpec:
        fields = {
            each: getattr(rule, each) for each in ("required", "default", "nullable", "choices", "keys", "extra_keys")
        }
        return ArgSpec(name, rule.type, **fields)

    def spec(self, count: int) -> ToolSpec:
        """Return the spec of a tool with *count* arguments."""
        args = tuple(self._renamed(self.rule(1), f"a{index}") for index in range(count))
        variadic = count > 0 and self.random() < 0.15 and repr(args[-1].default) == "UNSET"
        return ToolSpec("t", "g", args, variadic=variadic)

    def _renamed(self, rule: ArgSpec, name: str) -> ArgSpec:
        import attrs

        return attrs.evolve(rule, name=name)

    def value(self, rule: ArgSpec | ArgType, depth: int = 3) -> Any:
        """Return a value for a rule: usually valid or nearly so, sometimes anything."""
        pick = self.random()
        if pick < 0.12:
            return self.anything(depth)
        if pick < 0.2:
            return self.choice((None, "", "null"))
        return self._spelt(rule, depth)

    def _spelt(self, rule: ArgSpec | ArgType, depth: int) -> Any:
        kind = rule if isinstance(rule, ArgType) else rule.type
        if not isinstance(rule, ArgType) and rule.choices and self.random() < 0.5:
            return self._other_spelling(self.choice(rule.choices))
        if not isinstance(rule, ArgType) and rule.keys:
            return self._declared(rule, kind, depth)
        if kind in SCALARS:
            return self._other_spelling(self._exact(kind))
        return self._container(self._compound(kind, depth))

    def _declared(self, rule: ArgSpec, kind: ArgType, depth: int) -> Any:
        def one() -> Any:
            keys = [key for key in rule.keys if self.random() < 0.9]
            self.shuffle(keys)
            made = {self._key(key.name): self.value(key, depth - 1) for key in keys}
            if self.random() < 0.1:
                made[self._key(self.choice("abcdz"))] = self.anything(1)
            return self._container(made)

        return self._container([one() for _ in range(self.randint(0, 3))]) if kind is ArgType.SLICE_MAP else one()

    def _key(self, name: str) -> Any:
        return (
            name if self.random() < 0.97 else self.choice((TEXT(name), 1, b"k", OBJECT()) if name != "z" else (name,))
        )

    def _compound(self, kind: ArgType, depth: int) -> Any:
        word = kind.value
        match kind:
            case ArgType.BLOB:
                return self.choice(
                    (b"xy", bytearray(b"z"), memoryview(b"v"), "text", {"$base64": "eHk="}, {"$base64": "?"})
                )
            case ArgType.EMBEDDING:
                return self.choice(
                    ([1, 2.5], (0.1,), array("f", [1.5]), array("d", [2.5]), array("i", [1]), "[1.5]", [1e39])
                )
            case ArgType.HANDLE:
                return self.choice((Handle("tree-1", "tree"), "tree-1", "a b", "x" * 129, ""))
            case ArgType.NODEID:
                return self.choice(("N_1", "N_", {"_version": "N_2"}, {"_version": 5}, TEXT("N_3")))
            case ArgType.ENTITYID:
                return self.choice(("E_1", "E_", {"id": "E_2", "more": [1]}, {"id": "X"}, {}))
            case ArgType.NIL:
                return None
            case ArgType.ANY:
                return self.anything(depth, plain=True)
        element = word.rpartition("_")[2]
        inner = ArgType(element) if element in {"string", "int", "float", "bool", "map"} else ArgType.ANY
        count = self.choice((0, 1, 2, 3, 14))
        if word.startswith(("slice", "list")):
            return [self._element(inner, depth) for _ in range(count)]
        names = [self._key(f"k{index}") for index in range(count)]
        if kind is ArgType.MAP_ANY_ANY:
            names = [self.choice((index, f"k{index}", float(index), (index,))) for index in range(count)]
        return {name: self._element(inner if inner is not ArgType.MAP else ArgType.ANY, depth) for name in names}

    def _element(self, kind: ArgType, depth: int) -> Any:
        return self._exact(kind) if kind in SCALARS and self.random() < 0.9 else self.value(kind, depth - 1)

    def _exact(self, kind: ArgType) -> Any:
        match kind:
            case ArgType.STRING:
                return self.choice(("", "a", "null", "5", "[1]", f"{CANARY}{self.random()}", "é", "\U0001f600"))
            case ArgType.INT:
                return self.choice((0, 1, -1, 3, 2**30, -(2**30), 2**53 + 1, 2**63 - 1, -(2**63), self.getrandbits(40)))
            case ArgType.FLOAT:
                return self.choice((0.0, -0.0, 1.0, 2.5, -1.5e300, 5e-324, 2.0**53, self.random()))
        return self.random() < 0.5

    def _known(self, kind: ArgType) -> Any:
        """Return a value that an author might write into a spec, and that errors may contain."""
        value = self._exact(kind)
        return "b" if isinstance(value, str) and CANARY in value else value

    def _other_spelling(self, value: Any) -> Any:
        """Return a value in one of the correct or incorrect forms that a caller might send."""
        pick = self.random()
        if pick < 0.55:
            return value
        match value:
            case bool():
                return self.choice(
                    (int(value), str(value), str(value).upper(), float(value), f" {value}", "1", "yes", 2)
                )
            case int():
                spellings = (
                    str(value),
                    f" {value}\n",
                    f"{value}.0",
                    f"+{abs(value)}",
                    float(value),
                    f"{value}.5",
                    INT(value),
                )
                return self.choice((*spellings, f"{value}_0", hex(value), 2**63 + abs(value), Decimal(value), "\u0663"))
            case float():
                spellings = (
                    repr(value),
                    f"\t{value!r} ",
                    FLOAT(value),
                    "nan",
                    "1e999",
                    float("nan"),
                    float("inf"),
                    10**400,
                )
                return self.choice(
                    (*spellings, int(value) if abs(value) < 1e300 else value, ".5", "5.", "1,5", "0x1p2")
                )
            case str():
                return self.choice((TEXT(value), "\ud800", 5, [value], value.encode(errors="replace")))
        return value

    def _container(self, value: Any) -> Any:
        """Sometimes return a container as a subclass, another kind of container, or JSON text."""
        pick = self.random()
        if pick < 0.6:
            return value
        match value:
            case list():
                if pick < 0.7:
                    return self._text(value)
                return self.choice(
                    (tuple(value), LIST(value), TUPLE(value), iter(value), dict.fromkeys(range(len(value))))
                )
            case dict():
                if pick < 0.7:
                    return self._text(value)
                return self.choice(
                    (DICT(value), OrderedDict(dict.items(value)) if type(value) is dict else value, [value])
                )
        return value

    def _text(self, value: Any) -> Any:
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return value

    def anything(self, depth: int, *, plain: bool = False) -> Any:
        """Return any value; a *plain* one is JSON-like."""
        leaves = [
            None,
            True,
            0,
            2**70,
            1.5,
            float("nan"),
            "",
            CANARY,
            "x",
            b"b",
            datetime.datetime(2026, 1, 2),
            Handle("h"),
        ]
        if not plain:
            leaves += [
                OBJECT(),
                LYING(),
                TEXT("t"),
                INT(3),
                FLOAT(1.5),
                BYTES(b"b"),
                Color.RED,
                Decimal(1),
                UUID(int=1),
            ]
            leaves += [
                PurePosixPath("a"),
                object(),
                int,
                {1, 2},
                frozenset(),
                range(3),
                self._endless(),
                bytearray(b"x"),
            ]
        if depth <= 0 or self.random() < 0.6:
            return self.choice(leaves)
        items = [self.anything(depth - 1, plain=plain) for _ in range(self.randint(0, 3))]
        if self.random() < 0.5:
            return self._container(items)
        return self._container({self._key(f"k{index}"): item for index, item in enumerate(items)})

    def _endless(self) -> Any:
        while True:
            RAN.append("a generator was started")
            yield 1
