"""A value into an exact value: the only place that decides what is accepted.

A `Walk` goes through one value, or through all arguments of one call, and builds a fresh copy made of exact built-ins.
It asks ``type(x) is T``, reads subclasses through the base type's own slots, and so never runs code of the value's own.
What does not fit is noted with its place and the walk goes on, so that every problem is found at once; only a limit of
size ends it early.

Source: contract section 3.
"""

from __future__ import annotations

import datetime
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, Protocol

import attrs

from neuroscript import scalars
from neuroscript.argtypes import ELEMENTS, TEXT_HOLDERS, VALUES, ArgType
from neuroscript.display import shown
from neuroscript.errors import LISTED, UNSET, CoercionError, Problem, SpecError
from neuroscript.jsontext import NotJSON, parsed
from neuroscript.names import near
from neuroscript.scalars import Handle, Misfit, Reading, flattened

Mode = Literal["lax", "strict", "result"]
"""How much is accepted: *lax* and *strict* for arguments, *result* for what a tool returns."""

Where = tuple[Any, object] | None
"""A place in the arguments: the place that holds it, and the name, key or index in there."""


@attrs.frozen
class SizeLimits:
    """How large the arguments of one call may be.

    Attributes:
        depth: How many containers may stand in each other.
        nodes: How many values there may be, containers and what they hold alike.
        text: How many bytes all texts (as UTF-8), keys and byte strings may have together.
    """

    depth: int = 64
    nodes: int = 200_000
    text: int = 8 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        faults = [
            f"{name} must be a whole number from 0"
            for name, limit in attrs.asdict(self).items()
            if type(limit) is not int or limit < 0
        ]
        if faults:
            raise SpecError("SizeLimits", faults)


READINGS: Final[Mapping[Mode, Mapping[ArgType, Reading]]] = {
    "lax": {
        ArgType.STRING: scalars.lax_string,
        ArgType.INT: scalars.lax_int,
        ArgType.FLOAT: scalars.lax_float,
        ArgType.BOOL: scalars.lax_bool,
        ArgType.BLOB: scalars.lax_blob,
        ArgType.HANDLE: scalars.lax_handle,
        ArgType.NODEID: scalars.lax_nodeid,
    },
    "strict": {
        ArgType.STRING: scalars.strict_string,
        ArgType.INT: scalars.strict_int,
        ArgType.FLOAT: scalars.strict_float,
        ArgType.BOOL: scalars.strict_bool,
        ArgType.BLOB: scalars.strict_blob,
        ArgType.HANDLE: scalars.strict_handle,
        ArgType.NODEID: scalars.strict_nodeid,
    },
    "result": {
        ArgType.STRING: scalars.lax_string,
        ArgType.INT: scalars.flattening(scalars.strict_int),
        ArgType.FLOAT: scalars.result_float,
        ArgType.BOOL: scalars.strict_bool,
        ArgType.BLOB: scalars.flattening(scalars.strict_blob),
        ArgType.HANDLE: scalars.lax_handle,
        ArgType.NODEID: scalars.flattening(scalars.strict_nodeid),
    },
}
"""The function that reads each type whose values hold no others, for each mode."""


@attrs.frozen
class Coercion:
    """The terms on which values are taken.

    Attributes:
        mode: How much is accepted.
        sizes: How large it may be.
        adapters: For classes that are no built-ins, the host's function that gives a built-in for an object of exactly
            that class. It is called in lax mode, for callers whom the host trusts.
        readings: The function that reads each type whose values hold no others, in this mode.
    """

    mode: Mode = "lax"
    sizes: SizeLimits = SizeLimits()
    adapters: tuple[tuple[type, Callable[[Any], object]], ...] = ()
    readings: Mapping[ArgType, Reading] = attrs.field(init=False, eq=False, repr=False)

    @readings.default
    def _readings_of_mode(self) -> Mapping[ArgType, Reading]:
        return READINGS[self.mode]


class Rule(Protocol):
    """What is asked of one argument or key; an `ArgSpec` is one."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> ArgType: ...
    @property
    def required(self) -> bool | None: ...
    @property
    def default(self) -> Any: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def choices(self) -> tuple[Any, ...]: ...
    @property
    def keys(self) -> tuple[Any, ...]: ...
    @property
    def extra_keys(self) -> bool: ...
    @property
    def minimum(self) -> float | None: ...
    @property
    def maximum(self) -> float | None: ...
    @property
    def min_length(self) -> int | None: ...
    @property
    def max_length(self) -> int | None: ...


LAX: Final = Coercion()
RESULT: Final = Coercion(mode="result", sizes=SizeLimits(nodes=2_000_000, text=64 * 1024 * 1024))
"""A tool may return more than a caller may send."""

FAILED: Final = object()
"""Stands for a value that did not fit; what is wrong with it has been noted."""

ROOT: Final[Where] = (None, None)
"""The place of one value that is no argument of a call."""

ABSENT: Final = object()
"""Stands for an optional argument that was not given and has no default."""

EXACT: Final[Mapping[ArgType, str]] = {
    ArgType.STRING: "type({0}) is str and {0}.isascii()",
    ArgType.INT: "type({0}) is int and {0} > -1073741824 and {0} < 1073741824",
    ArgType.FLOAT: "type({0}) is float and {0} - {0} == 0.0",
    ArgType.BOOL: "({0} is True or {0} is False)",
    ArgType.BLOB: "type({0}) is bytes",
}
"""For some of these types an expression that is cheap, and true only of values that are exact and need no further look.

CPython compares ints of one digit (30 bits) without a call; larger ones are left to `READINGS`.
"""

_WHOLE: Final = slice(None)
_FLOAT32_MAX: Final = 3.4028235677973362e38
"""The largest number that rounds to a finite float of 32 bits."""

_name_of_type: Final = type.__dict__["__name__"].__get__


def coerce(
    value: object,
    type: ArgType | Rule | str,
    *,
    mode: Literal["lax", "strict"] = "lax",
    limits: SizeLimits = LAX.sizes,
) -> Any:
    """Return *value* as the exact built-in that *type* names; None passes for every type, as upstream has it.

    Args:
        value: What a caller sent. It is not changed, and no code of its own runs.
        type: An `ArgType`, its word, or an `ArgSpec`, whose choices, bounds and keys then hold too.
        mode: ``"strict"`` accepts only what already has the exact type at every level.
        limits: How large the value may be.

    Returns:
        A value that shares no container with *value*.

    Raises:
        CoercionError: With every problem found.
        SpecError: *type* is no word of the contract.

    >>> coerce('["a", "b"]', "slice_string")
    ['a', 'b']

    Source: contract section 3; upstream ``coerceArg``.
    """
    rule = named_type(type) if isinstance(type, str) else type
    walk = Walk(Coercion(mode, limits))
    if value is None:
        return None
    step: Callable[..., Any] = walk.exact if isinstance(rule, ArgType) else walk.fit
    result = walk.limited(step, rule, value, ROOT)
    if walk.noted:
        raise CoercionError(walk.problems, found=walk.noted)
    return result


def named_type(word: str) -> ArgType:
    """Return the `ArgType` that *word* names, or raise a `SpecError`."""
    try:
        return ArgType(word)
    except ValueError:
        raise SpecError("type", [f"{shown(word)} is no ArgType; the words are {', '.join(ArgType)}"]) from None


def type_name(value: object) -> str:
    """Return the name of a value's type, escaped and cut, without running code of that type."""
    return name_of(type(value))


def name_of(kind: Any) -> str:
    """Return the name of a type, escaped and cut, without running code of it."""
    return "None" if kind is type(None) else shown(_name_of_type(kind))


def copied(value: Any) -> Any:
    """Return a copy of a value made of exact built-ins that shares no container with it."""
    kind = type(value)
    if kind is list:
        return [copied(each) for each in value]
    if kind is dict:
        return {key: copied(each) for key, each in value.items()}
    return value[:] if kind is array else value


def described(rule: Rule) -> str:
    """Return in words what *rule* asks, as it stands behind "expected"."""
    parts = [worded(rule.type)]
    if rule.choices:
        parts.append(f"one of {', '.join(repr(choice) for choice in rule.choices)}")
    if rule.minimum is not None or rule.maximum is not None:
        parts.append(_span(rule.minimum, rule.maximum, ""))
    if rule.min_length is not None or rule.max_length is not None:
        parts.append(_span(rule.min_length, rule.max_length, "a length "))
    return ", ".join(parts)


def worded(kind: ArgType) -> str:
    """Return a type in the words of an error: ``list of int`` for `slice_int`."""
    if kind in ELEMENTS:
        element = ELEMENTS[kind]
        return "list" if element is ArgType.ANY else f"list of {element}"
    if kind in VALUES:
        element = VALUES[kind]
        return "map" if element is ArgType.ANY else f"map of {element}"
    return {ArgType.EMBEDDING: "list of numbers", ArgType.ANY: "a JSON-like value", ArgType.NIL: "nothing"}.get(
        kind, kind
    )


def _span(low: float | None, high: float | None, what: str) -> str:
    if low is None:
        return f"{what}at most {high}"
    return f"{what}at least {low}" if high is None else f"{what}from {low} to {high}"


def bounded(rule: Rule) -> bool:
    """Tell whether *rule* asks for more of a value than its type and its keys."""
    return bool(
        rule.choices
        or rule.minimum is not None
        or rule.maximum is not None
        or rule.min_length is not None
        or rule.max_length is not None
    )


def bulk_text(element: ArgType, items: list[Any]) -> int:
    """Return how many bytes of text *items* hold if each is exact and needs no further look, else -1.

    Speaks for whole lists in C, ten times faster than a loop; -1 is no refusal.
    """
    builtin = _BULK.get(element)
    if builtin is None or list(map(type, items)).count(builtin) != len(items):
        return -1
    if builtin is str:
        text = "".join(items)
        return len(text) if text.isascii() else -1
    if builtin is int:
        return 0 if _are_64_bits(items) else -1
    total = sum(items)
    return 0 if total - total == 0.0 else -1


def _are_64_bits(items: list[int]) -> bool:
    """Tell whether all ints are of 64 bits; where C's long has 32, larger ones are left to a closer look."""
    try:
        for start in range(0, len(items), 1024):
            chunk = items[start : start + 1024]
            struct.pack(f"{len(chunk)}l", *chunk)
    except struct.error:
        return False
    return True


_BULK: Final[Mapping[ArgType, type]] = {
    ArgType.STRING: str,
    ArgType.INT: int,
    ArgType.FLOAT: float,
    ArgType.BOOL: bool,
}


class Exceeded(Exception):
    """The walk has met a limit of size and can not go on."""


class Walk:
    """One pass over the arguments of one call: what was noted, and how much has been seen."""

    noted = 0
    """How many problems have been noted."""

    _depth = 0
    _nodes = 0
    _text = 0

    def __init__(self, coercion: Coercion) -> None:
        self._coercion = coercion
        self._notes: list[tuple[Where, Misfit, object]] = []

    # What was noted, and what was seen

    def note(self, where: Where, misfit: Misfit, got: str | type) -> Any:
        """Remember one problem and return `FAILED`; *got* is the type of what was given, or words for it."""
        self.noted += 1
        if self.noted <= LISTED:
            self._notes.append((where, misfit, got))
        return FAILED

    def problems(self) -> list[Problem]:
        """Return the listed problems, with their places written out."""
        return [
            Problem(place(where), each.code, each.expected, got if type(got) is str else name_of(got), each.hint)
            for where, each, got in self._notes
        ]

    def limited(self, step: Callable[..., Any], *values: Any) -> Any:
        """Carry out one step of the walk; a limit that it meets is one more problem."""
        try:
            return step(*values)
        except (Exceeded, RecursionError) as end:
            return self.ended(end)

    def ended(self, end: Exception) -> Any:
        """Return `FAILED` for a walk that could not go on; a full stack is noted here, other limits have been."""
        if isinstance(end, RecursionError):  # the caller itself stands near its end
            self.note(None, Misfit("limit.depth", "fewer levels"), "more than the stack holds")
        return FAILED

    def _exceed(self, where: Where, code: str, most: int, what: str) -> Exceeded:
        self.note(where, Misfit(code, f"at most {most} {what}"), "more")
        return Exceeded()

    def _spend(self, where: Where, nodes: int, text: int = 0) -> None:
        self._nodes += nodes
        self._text += text
        if self._nodes > self._coercion.sizes.nodes:
            raise self._exceed(where, "limit.nodes", self._coercion.sizes.nodes, "values in one call")
        if self._text > self._coercion.sizes.text:
            raise self._exceed(where, "limit.text", self._coercion.sizes.text, "bytes of text in one call")

    def _enter(self, where: Where) -> None:
        self._depth += 1
        if self._depth > self._coercion.sizes.depth:
            raise self._exceed(
                where, "limit.depth", self._coercion.sizes.depth, "levels, so no value that holds itself"
            )
        self._spend(where, 1)

    # Arguments and keys: given or not, None or not, and what a rule asks beyond the type

    def members(self, rules: Iterable[Rule], given: dict[str, Any], extra_keys: bool, where: Where) -> dict[str, Any]:
        """Return by name the exact value of each rule that has one; a name that no rule has is noted or kept.

        Args:
            given: What was given by name; its keys are exact texts. It is used up.
        """
        found: dict[str, Any] = {}
        for rule in rules:
            place_of_it = (where, rule.name)
            if rule.name in given:
                found[rule.name] = self.given(rule, given.pop(rule.name), place_of_it)
            elif (value := self.absent(rule, place_of_it)) is not ABSENT:
                found[rule.name] = value
        for name, value in given.items():
            if extra_keys:
                found[name] = self.exact(ArgType.ANY, value, (where, name))
            else:
                self._unknown(name, value, rules, where)
        return found

    def _unknown(self, name: str, value: object, rules: Iterable[Rule], where: Where) -> None:
        names = [rule.name for rule in rules]
        alike = near(name, names)
        hint = f"did you mean {' or '.join(alike)}?" if alike else ""
        expected = f"only {', '.join(names)}" if names else "nothing"
        self.note((where, name), Misfit("arg.unknown", expected, hint), f"an unknown name with {type_name(value)}")

    def absent(self, rule: Rule, where: Where) -> Any:
        """Return what stands for an argument or key that was not given: its default, or `ABSENT`."""
        if rule.required:
            return self.note(where, Misfit("arg.missing", described(rule)), "nothing")
        return ABSENT if rule.default is UNSET else copied(rule.default)

    def given(self, rule: Rule, value: object, where: Where) -> Any:
        """Return the exact value of an argument or key that was given, perhaps as None.

        Source: contract section 3, the table of None and absence.
        """
        if rule.required and not rule.nullable:
            if value is None:
                return self.note(where, Misfit("arg.missing", described(rule)), "None")
        elif value is None or self._says_nothing(rule, value):
            return None if rule.nullable or rule.default is UNSET else copied(rule.default)
        return self.fit(rule, value, where)

    def _says_nothing(self, rule: Rule, value: object) -> bool:
        if self._coercion.mode != "lax" or rule.type in TEXT_HOLDERS:
            return False
        text = flattened(value)
        return type(text) is str and (text == "" or text == "null")

    def fit(self, rule: Rule, value: object, where: Where) -> Any:
        """Return the exact value for the rule's type, with its keys, choices and bounds, or `FAILED`."""
        if not rule.keys:
            result = self.exact(rule.type, value, where)
        elif rule.type in ELEMENTS:
            result = self._declared_maps(rule, value, where)
        else:
            result = self._declared_map(rule, value, where)
        if result is not FAILED and bounded(rule) and self._faults(rule, result, where):
            return FAILED
        return result

    def _declared_maps(self, rule: Rule, value: object, where: Where) -> Any:
        items = self.items(rule.type, value, where)
        if items is FAILED:
            return FAILED
        before = self.noted
        self._enter(where)
        maps = [
            self.note((where, index), Misfit("coercion.null_element", "map"), "None")
            if item is None
            else self._declared_map(rule, item, (where, index))
            for index, item in enumerate(items)
        ]
        self._depth -= 1
        return maps if self.noted == before else FAILED

    def _declared_map(self, rule: Rule, value: object, where: Where) -> Any:
        pairs = self._pairs(ArgType.MAP, value, where)
        if pairs is FAILED:
            return FAILED
        before = self.noted
        self._enter(where)
        given = self._by_text(pairs, where)
        order = [*given]
        found = self.members(rule.keys, given, rule.extra_keys, where)
        found = {name: found.pop(name) for name in order if name in found} | found
        self._depth -= 1
        return found if self.noted == before else FAILED

    def named(self, mapping: dict[Any, Any]) -> dict[str, Any]:
        """Return what a dict of arguments holds by name; a key that is no text is noted."""
        return self._by_text([*dict.items(mapping)], None)

    def _by_text(self, pairs: list[tuple[Any, Any]], where: Where) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for key, each in pairs:
            self._put(given, self._key(key, where), each, where)
        return given

    def further(self, rule: Rule, value: object, where: Where) -> Any:
        """Return the exact value of one of the further values of a variadic tool."""
        if value is not None:
            return self.fit(rule, value, where)
        return None if rule.nullable else self._element(rule.type, value, where)

    def _faults(self, rule: Rule, result: Any, where: Where) -> bool:
        before = self.noted
        if type(result) in _SIZED and not _between(len(result), rule.min_length, rule.max_length):
            self.note(where, Misfit("coercion.length", described(rule)), f"a length of {len(result)}")
        if rule.type in ELEMENTS:
            for index, item in enumerate(result):
                self._fault(rule, item, (where, index))
        else:
            self._fault(rule, result, where)
        return self.noted > before

    def _fault(self, rule: Rule, result: Any, where: Where) -> None:
        if rule.choices and not any(type(each) is type(result) and each == result for each in rule.choices):
            self.note(where, Misfit("coercion.choice", described(rule)), f"another {type_name(result)}")
        if type(result) in _NUMBERS and not _between(result, rule.minimum, rule.maximum):
            self.note(where, Misfit("coercion.bounds", described(rule)), f"{type_name(result)} out of bounds")

    # Values, by their type alone

    def exact(self, kind: ArgType, value: Any, where: Where) -> Any:
        """Return *value* as the exact value of *kind*, or `FAILED`; None only where `any` and `nil` take it."""
        if self._coercion.adapters:
            value = self._adapted(value)
        reading = self._coercion.readings.get(kind)
        if reading is None:
            return _COMPOUND[kind](self, kind, value, where)
        result = reading(value)
        if type(result) is Misfit:
            return self.note(where, result, type(value))
        self._spend(where, 1, _bytes_in(result))
        return result

    def _adapted(self, value: Any) -> Any:
        for cls, adapt in self._coercion.adapters if self._coercion.mode == "lax" else ():
            if type(value) is cls:
                try:
                    return adapt(value)
                except Exception:  # what it can not adapt is refused for what it is
                    return value
        return value

    def _elements(self, element: ArgType, items: list[Any], where: Where) -> Any:
        text = bulk_text(element, items)
        if text >= 0:
            self._spend(where, len(items), text)
            return items
        return [self._element(element, item, (where, index)) for index, item in enumerate(items)]

    def _element(self, kind: ArgType, value: object, where: Where) -> Any:
        if value is None and kind is not ArgType.ANY:
            return self.note(where, Misfit("coercion.null_element", worded(kind)), "None")
        return self.exact(kind, value, where)

    def _slice(self, kind: ArgType, value: object, where: Where) -> Any:
        items = self.items(kind, value, where)
        if items is FAILED:
            return FAILED
        before = self.noted
        self._enter(where)
        exact = self._elements(ELEMENTS[kind], items, where)
        self._depth -= 1
        return exact if self.noted == before else FAILED

    def items(self, kind: ArgType, value: Any, where: Where) -> Any:
        """Return a list of our own with the items of a list or tuple, or of a text that is a JSON array."""
        value = self._adapted(value)
        cls = type(value)
        if cls is list:
            return value[:]
        if self._coercion.mode != "strict" and issubclass(cls, list):
            return list.__getitem__(value, _WHOLE)
        if self._coercion.mode != "strict" and issubclass(cls, tuple):
            return [*tuple.__getitem__(value, _WHOLE)]
        return self._decoded(kind, value, list, "a text must be a JSON array", where)

    def _map(self, kind: ArgType, value: object, where: Where) -> Any:
        pairs = self._pairs(kind, value, where)
        if pairs is FAILED:
            return FAILED
        before = self.noted
        self._enter(where)
        result: dict[Any, Any] = {}
        for key, each in pairs:
            name = self._any_key(key, where) if kind is ArgType.MAP_ANY_ANY else self._key(key, where)
            self._put(result, name, self._element(VALUES[kind], each, (where, name)), where)
        self._depth -= 1
        return result if self.noted == before else FAILED

    def _pairs(self, kind: ArgType, value: Any, where: Where) -> Any:
        """Return the pairs of a dict, or of a text that is a JSON object; no key is hashed."""
        value = self._adapted(value)
        cls = type(value)
        if cls is dict or (self._coercion.mode != "strict" and issubclass(cls, dict)):
            return [*dict.items(value)]
        decoded = self._decoded(kind, value, dict, "a text must be a JSON object", where)
        return decoded if decoded is FAILED else [*decoded.items()]

    def _decoded(self, kind: ArgType, value: Any, wanted: type, hint: str, where: Where) -> Any:
        text = flattened(value)
        if self._coercion.mode != "lax" or type(text) is not str:
            return self.note(where, Misfit("coercion.type", worded(kind)), type(value))
        if len(text) > self._coercion.sizes.text - self._text:
            raise self._exceed(where, "limit.text", self._coercion.sizes.text, "bytes of text in one call")
        try:
            decoded = parsed(text)
        except NotJSON as error:
            if error.code != "arg.not_json":
                return self.note(where, Misfit(error.code, worded(kind), error.hint), "str")
            decoded = None
        if type(decoded) is not wanted:
            return self.note(where, Misfit("coercion.type", worded(kind), hint), "str")
        return decoded

    def _key(self, key: Any, where: Where) -> Any:
        text = key if self._coercion.mode == "strict" else flattened(key)
        if type(text) is not str:
            return self.note(where, Misfit("coercion.key", "texts as keys"), f"{type_name(key)} as a key")
        if not scalars.is_unicode(text):
            return self.note(where, Misfit("coercion.encoding", "keys of valid Unicode"), "lone surrogates")
        self._spend(where, 0, _bytes_in(text))
        return text

    def _any_key(self, key: Any, where: Where) -> Any:
        plain = key if self._coercion.mode == "strict" else flattened(key)
        if plain is None or type(plain) is bool or any(type(plain) is base for base, _ in _LEAVES):
            return self.exact(ArgType.ANY, plain, where)
        return self.note(where, Misfit("coercion.key", "plain values as keys"), f"{type_name(key)} as a key")

    def _put(self, target: dict[Any, Any], key: Any, value: Any, where: Where) -> None:
        if key is FAILED:
            return
        if key in target:
            self.note(where, Misfit("coercion.key_collision", "each key once"), "one key twice")
        target[key] = value

    def _any(self, kind: ArgType, value: Any, where: Where) -> Any:
        cls = type(value)
        if value is None or cls is bool or cls is Handle or _is_plain_time(value):
            self._spend(where, 1)
            return value
        if issubclass(cls, (list, tuple)):
            return self._slice(ArgType.SLICE_ANY, value, where)
        if issubclass(cls, dict):
            return self._map(ArgType.MAP, value, where)
        for base, leaf in _LEAVES:
            if issubclass(cls, base):
                return self.exact(leaf, value, where)
        return self.note(where, Misfit("coercion.type", worded(kind)), type(value))

    def _nil(self, kind: ArgType, value: object, where: Where) -> Any:
        return None if value is None else self.note(where, Misfit("coercion.type", worded(kind)), type(value))

    def _entityid(self, kind: ArgType, value: Any, where: Where) -> Any:
        if (self._coercion.mode == "strict" and type(value) is not dict) or not issubclass(type(value), dict):
            return self._identity(value, where)
        found = self._identity(scalars.entry(value, "id"), (where, "id"))
        return FAILED if found is FAILED else self._map(ArgType.MAP, value, where)

    def _identity(self, value: Any, where: Where) -> Any:
        result = scalars.strict_entityid(value if self._coercion.mode == "strict" else flattened(value))
        if type(result) is Misfit:
            return self.note(where, result, type(value))
        self._spend(where, 1, _bytes_in(result))
        return result

    def _embedding(self, kind: ArgType, value: Any, where: Where) -> Any:
        if type(value) is array and (
            value.typecode == "f" or (self._coercion.mode == "lax" and value.typecode not in "uw")
        ):
            numbers = value.tolist()
        elif self._coercion.mode == "lax" and type(value) is not array:
            numbers = self.items(kind, value, where)
        else:
            return self.note(where, Misfit("coercion.type", worded(kind)), type(value))
        if numbers is FAILED:
            return FAILED
        before = self.noted
        self._enter(where)
        self._spend(where, len(numbers))
        exact = [self._component(number, (where, index)) for index, number in enumerate(numbers)]
        self._depth -= 1
        return array("f", exact) if self.noted == before else FAILED

    def _component(self, value: object, where: Where) -> Any:
        number = flattened(value)
        if type(number) is not int and type(number) is not float:
            return self.note(where, Misfit("coercion.type", "number"), type(value))
        if not -_FLOAT32_MAX <= number <= _FLOAT32_MAX:
            return self.note(where, Misfit("coercion.range", "a number of 32-bit floats"), type(value))
        return number


_SIZED: Final = frozenset({str, bytes, list, dict, array})
_NUMBERS: Final = frozenset({int, float})
_LEAVES: Final = ((str, ArgType.STRING), (int, ArgType.INT), (float, ArgType.FLOAT), (bytes, ArgType.BLOB))

_COMPOUND: Final[Mapping[ArgType, Callable[[Walk, ArgType, Any, Where], Any]]] = {
    **dict.fromkeys(ELEMENTS, Walk._slice),
    **dict.fromkeys(VALUES, Walk._map),
    ArgType.ANY: Walk._any,
    ArgType.NIL: Walk._nil,
    ArgType.VOID: Walk._nil,
    ArgType.ENTITYID: Walk._entityid,
    ArgType.EMBEDDING: Walk._embedding,
}
"""The way through each type that `READINGS` does not read."""


def place(where: Where) -> str:
    """Return a place as it is written in Python: ``tags[1]``, ``headers['x']``."""
    parts: list[str] = []
    while where is not None and where is not ROOT:
        where, key = where
        parts.append(_step(key, bare=where is None))
    return "".join(reversed(parts))


def _step(key: object, *, bare: bool) -> str:
    if type(key) is str:
        return shown(key) if bare else f"['{shown(key)}']"
    return f"[{key}]" if type(key) is int else "[…]"


def _between(number: float, low: float | None, high: float | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


def _bytes_in(value: Any) -> int:
    if type(value) is str:
        return len(value) if value.isascii() else len(value.encode())
    return len(value) if type(value) is bytes else 0


def _is_plain_time(value: Any) -> bool:
    """Tell whether a value is a datetime that holds no code of others: naive, or with a fixed offset."""
    if type(value) is not datetime.datetime:
        return False
    return value.tzinfo is None or type(value.tzinfo) is datetime.timezone
