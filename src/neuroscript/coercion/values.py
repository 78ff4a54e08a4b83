"""Coercion of any value to its exact type: decided by ``type(x) is T``, without running code of the value itself.

Subclasses of built-ins are read through the base type's own slots; other classes are rejected. Containers are rebuilt
at every level. A value that does not fit is recorded with its place, and the pass continues.
"""

from __future__ import annotations

import datetime
import re
import struct
from array import array
from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.coercion import scalars
from neuroscript.coercion.context import INVALID, CoercionPass, Where, type_name
from neuroscript.coercion.scalars import AnyContent, Handle, Rejection, to_builtin
from neuroscript.coercion.types import ELEMENTS, TYPES, VALUES, ArgType, type_phrase
from neuroscript.io.text import NotJSON, parse_json

FLOAT32_MAX: Final = 3.4028235677973362e38
"""The largest number that rounds to a finite 32-bit float."""

CHUNK_ITEMS: Final = 2**12
"""Number of ints that are packed at once. Small enough for memory that the allocator already holds."""

_WHOLE: Final = slice(None)


def coerce_value(walk: CoercionPass, kind: ArgType, value: Any, where: Where) -> Any:
    """Return *value* as the exact value of *kind*, or `FAILED`. Only `any` and `nil` accept None."""
    if walk.terms.adapters:
        value = adapt(walk, value)
    reading = walk.terms.readings.get(kind)
    if reading is None:
        return _COMPOUND[kind](walk, kind, value, where)
    result = reading(value)
    if type(result) is Rejection:
        return walk.note(where, result, type(value))
    walk.spend(where, 1, bytes_in(result))
    return result


def coerce_element(walk: CoercionPass, kind: ArgType, value: object, where: Where) -> Any:
    """Return the exact value of one element of a container. Only `any` accepts None."""
    if value is None and kind is not ArgType.ANY:
        return walk.note(where, Rejection("coercion.null_element", type_phrase(kind)), "None")
    return coerce_value(walk, kind, value, where)


def adapt(walk: CoercionPass, value: Any) -> Any:
    """Return the value converted by the host's adapter for its class, or the value itself."""
    for cls, adapt in walk.terms.adapters if walk.terms.mode == "lax" else ():
        if type(value) is cls:
            try:
                return adapt(value)
            except Exception:  # the check of the original value reports the problem
                return value
    return value


def items_of(walk: CoercionPass, kind: ArgType, value: Any, where: Where) -> Any:
    """Return a new list with the items of a list or tuple, or of a JSON array in a string."""
    value = adapt(walk, value)
    cls = type(value)
    if cls is list:
        return value[:]
    if walk.terms.mode != "strict" and issubclass(cls, list):
        return list.__getitem__(value, _WHOLE)
    if walk.terms.mode != "strict" and issubclass(cls, tuple):
        return [*tuple.__getitem__(value, _WHOLE)]
    return _decoded(walk, kind, value, list, where)


def pairs_of(walk: CoercionPass, kind: ArgType, value: Any, where: Where) -> Any:
    """Return the pairs of a dict, or of a JSON object in a string. No key is hashed."""
    value = adapt(walk, value)
    cls = type(value)
    if cls is dict or (walk.terms.mode != "strict" and issubclass(cls, dict)):
        return [*dict.items(value)]
    decoded = _decoded(walk, kind, value, dict, where)
    return decoded if decoded is INVALID else [*decoded.items()]


def _decoded(walk: CoercionPass, kind: ArgType, value: Any, wanted: type, where: Where) -> Any:
    text = to_builtin(value)
    if walk.terms.mode != "lax" or type(text) is not str:
        return walk.note(where, Rejection("coercion.type", type_phrase(kind)), type(value))
    if len(text) > walk.text_left:
        raise walk.too_much_text(where)
    walk.charge(where, text)
    try:
        decoded = parse_json(unfenced(text), walk.nodes_left)
    except NotJSON as error:
        if error.code == "limit.nodes":
            raise walk.too_many_values(where) from None
        return walk.note(where, _broken(kind, text, error), "str")
    return decoded if type(decoded) is wanted else walk.note(where, _no_container(kind), "str")


def unfenced(text: str) -> str:
    """Return the text inside a Markdown code fence, or the text itself unless it is exactly one such fence.

    >>> unfenced("```json\\n[1]\\n```"), unfenced("[1]")
    ('[1]', '[1]')
    """
    if text[:1] != "`" and not text.lstrip(scalars.BLANKS).startswith(FENCE):
        return text
    fenced = _FENCED.fullmatch(text.strip(scalars.BLANKS))
    return text if fenced is None or FENCE in fenced[1] else fenced[1].strip(scalars.BLANKS)


FENCE: Final = "```"
_FENCED: Final = re.compile(r"```(?:[ \t]*[A-Za-z0-9_+-]*[ \t]*\r?\n)?(.*)```", re.DOTALL)


def _broken(kind: ArgType, text: str, error: NotJSON) -> Rejection:
    """Return the fault of a string: where its JSON is malformed or, if it is not meant as JSON, how to write it."""
    if error.code != "arg.not_json":
        return Rejection(error.code, type_phrase(kind), error.hint)
    is_meant = text.lstrip(scalars.BLANKS)[:1] in ("[", "{")
    return Rejection("coercion.type", type_phrase(kind), error.hint) if is_meant else _no_container(kind)


def _no_container(kind: ArgType) -> Rejection:
    what = "object" if kind in VALUES else "array"
    return Rejection("coercion.type", type_phrase(kind), f"write a JSON {what}, such as {TYPES[kind].example}")


def string_keyed(walk: CoercionPass, pairs: list[tuple[Any, Any]], where: Where) -> dict[str, Any]:
    """Return pairs as a dict with exact string keys; other keys are reported."""
    text = coerce_list_fast(ArgType.STRING, [key for key, _ in pairs])
    if text >= 0:
        walk.spend(where, 0, text)
        return dict(pairs)
    found: dict[str, Any] = {}
    for key, each in pairs:
        put_entry(walk, found, _key(walk, key, where), each, where)
    return found


def _key(walk: CoercionPass, key: Any, where: Where) -> Any:
    text = key if walk.terms.mode == "strict" else to_builtin(key)
    if type(text) is not str:
        return walk.note(where, Rejection("coercion.key", "string keys"), f"a key of type {type_name(key)}")
    if not scalars.is_unicode(text):
        return walk.note(where, Rejection("coercion.encoding", "keys that are valid Unicode"), "lone surrogates")
    walk.spend(where, 0, bytes_in(text))
    return text


def coerce_any_key(walk: CoercionPass, key: Any, where: Where) -> Any:
    plain = key if walk.terms.mode == "strict" else to_builtin(key)
    if plain is None or type(plain) is bool or any(type(plain) is base for base, _ in _LEAVES):
        return coerce_value(walk, ArgType.ANY, plain, where)
    return walk.note(where, Rejection("coercion.key", "plain values as keys"), f"a key of type {type_name(key)}")


def put_entry(walk: CoercionPass, target: dict[Any, Any], key: Any, value: Any, where: Where) -> None:
    if key is INVALID:
        return
    if key in target:
        walk.note(where, Rejection("coercion.key_collision", "unique keys"), "a duplicate key")
    target[key] = value


def _slice(walk: CoercionPass, kind: ArgType, value: object, where: Where) -> Any:
    items = items_of(walk, kind, value, where)
    return INVALID if items is INVALID else walk.within(where, _elements, ELEMENTS[kind], items)


def _elements(walk: CoercionPass, kind: ArgType, items: list[Any], where: Where) -> list[Any]:
    text = coerce_list_fast(kind, items)
    if text >= 0:
        walk.spend(where, len(items), text)
        return items
    if not walk.terms.adapters:
        found = _elements_at_once(walk, kind, items, where)
        if found is not None:
            return found
    return [coerce_element(walk, kind, item, (where, index)) for index, item in enumerate(items)]


def _elements_at_once(walk: CoercionPass, kind: ArgType, items: list[Any], where: Where) -> list[Any] | None:
    """Return new elements if each of them is valid and can be read without its place, otherwise None."""
    if kind is ArgType.MAP or kind is ArgType.ANY:
        return _flat_maps(walk, items, where)
    if kind is ArgType.INT and walk.terms.mode == "lax":
        numbers = coerce_ints_fast(items)
        if numbers is not None:
            walk.spend(where, len(items))
            return numbers
    reading = walk.terms.readings.get(kind)
    if reading is None:
        return None
    read = [reading(item) for item in items]
    if [each for each in read if type(each) is Rejection]:
        return None
    walk.spend(where, len(items), sum(map(bytes_in, read)))
    return read


def _flat_maps(walk: CoercionPass, items: list[Any], where: Where) -> list[dict[str, Any]] | None:
    """Return copies of maps whose keys and values are plain and need no conversion, or None.

    The copies are checked, because other code cannot change them meanwhile. If a limit would be exceeded, the general
    path finds the place. One loop with local names takes half the time of one that calls a function for each map.
    """
    nodes, text = len(items), 0
    least, most = scalars.DIGIT_MIN, scalars.DIGIT_MAX
    copies: list[dict[str, Any]] = []
    for item in items:
        if type(item) is not dict:
            return None
        copy = item.copy()
        for key, value in copy.items():
            kind = type(value)
            if type(key) is not str:
                return None
            if kind is str:
                if not value.isascii():
                    return None
                text += len(value)
            elif kind is int:
                if not (least <= value <= most or scalars.INT_MIN <= value <= scalars.INT_MAX):
                    return None
            elif kind is float:
                if value - value != 0.0:
                    return None
            elif kind is not bool and value is not None:
                return None
        keys = "".join(copy)
        if not keys.isascii():
            return None
        text += len(keys)
        nodes += len(copy)
        copies.append(copy)
    if walk.depth >= walk.terms.sizes.depth or nodes > walk.nodes_left or text > walk.text_left:
        return None
    walk.spend(where, nodes, text)
    return copies


def coerce_ints_fast(items: list[Any]) -> list[int] | None:
    """Return *items* if they are exact ints, new ints for digits in strings and integral floats too, otherwise None.

    None does not mean rejection.
    """
    kind_of, builtin = type, int  # local names make this 5 % faster
    others = [item for item in items if kind_of(item) is not builtin]
    if not others:
        return items if _are_64_bits(items) else None
    texts = [item for item in others if kind_of(item) is str]
    floats = [item for item in others if kind_of(item) is float]
    if len(texts) + len(floats) < len(others):
        return None
    digits = "".join(texts)
    if texts and not (digits.isascii() and digits.isdigit() and max(map(len, texts)) < 19):
        return None
    largest = scalars.EXACT_FLOAT
    if floats and not (all(map(float.is_integer, floats)) and max(floats) <= largest and min(floats) >= -largest):
        return None
    try:
        numbers = [*map(int, items)]
    except ValueError:  # an empty string
        return None
    return numbers if _are_64_bits(numbers) else None


def _map(walk: CoercionPass, kind: ArgType, value: object, where: Where) -> Any:
    pairs = pairs_of(walk, kind, value, where)
    return INVALID if pairs is INVALID else walk.within(where, _entries, kind, pairs)


def _entries(walk: CoercionPass, kind: ArgType, pairs: list[tuple[Any, Any]], where: Where) -> dict[Any, Any]:
    keys = coerce_list_fast(ArgType.STRING, [key for key, _ in pairs])
    values = coerce_list_fast(VALUES[kind], [each for _, each in pairs])
    if keys >= 0 and values >= 0:
        walk.spend(where, len(pairs), keys + values)
        return dict(pairs)
    entries: dict[Any, Any] = {}
    for key, each in pairs:
        name = coerce_any_key(walk, key, where) if kind is ArgType.MAP_ANY_ANY else _key(walk, key, where)
        put_entry(walk, entries, name, coerce_element(walk, VALUES[kind], each, (where, name)), where)
    return entries


def _any(walk: CoercionPass, kind: ArgType, value: Any, where: Where) -> Any:
    cls = type(value)
    if value is None or cls is bool or cls is Handle or _is_plain_time(value):
        walk.spend(where, 1)
        return value
    if issubclass(cls, (list, tuple)):
        return _slice(walk, ArgType.SLICE_ANY, value, where)
    if issubclass(cls, dict):
        return _map(walk, ArgType.MAP, value, where)
    for base, leaf in _LEAVES:
        if issubclass(cls, base):
            return coerce_value(walk, leaf, value, where)
    if issubclass(cls, AnyContent):
        return _content(walk, value, where)
    return walk.note(where, Rejection("coercion.type", type_phrase(kind)), type(value))


def _content(walk: CoercionPass, value: Any, where: Where) -> Any:
    from neuroscript.coercion.content import Content  # few calls need it

    if type(value) is not Content:
        return walk.note(where, Rejection("coercion.type", type_phrase(ArgType.ANY)), type(value))
    walk.spend(where, value.count, value.size)
    return value


def _is_plain_time(value: Any) -> bool:
    """Return whether a value is a datetime without third-party code: naive, or with a fixed offset."""
    if type(value) is not datetime.datetime:
        return False
    return value.tzinfo is None or type(value.tzinfo) is datetime.timezone


def _nil(walk: CoercionPass, kind: ArgType, value: object, where: Where) -> Any:
    return None if value is None else walk.note(where, Rejection("coercion.type", type_phrase(kind)), type(value))


def _entityid(walk: CoercionPass, kind: ArgType, value: Any, where: Where) -> Any:
    if (walk.terms.mode == "strict" and type(value) is not dict) or not issubclass(type(value), dict):
        return _identity(walk, value, where)
    found = _identity(walk, scalars.entry(value, "id"), (where, "id"))
    return INVALID if found is INVALID else _map(walk, ArgType.MAP, value, where)


def _identity(walk: CoercionPass, value: Any, where: Where) -> Any:
    result = scalars.strict_entityid(value if walk.terms.mode == "strict" else to_builtin(value))
    if type(result) is Rejection:
        return walk.note(where, result, type(value))
    walk.spend(where, 1, bytes_in(result))
    return result


def _embedding(walk: CoercionPass, kind: ArgType, value: Any, where: Where) -> Any:
    lax = walk.terms.mode == "lax"
    if type(value) is array and (value.typecode == "f" or (lax and value.typecode not in "uw")):
        return walk.within(where, _components, value.tolist())
    if not lax or type(value) is array:
        return walk.note(where, Rejection("coercion.type", type_phrase(kind)), type(value))
    numbers = items_of(walk, kind, value, where)
    return INVALID if numbers is INVALID else walk.within(where, _components, numbers)


def _components(walk: CoercionPass, numbers: list[Any], where: Where) -> Any:
    walk.spend(where, len(numbers))
    components = [_component(walk, number, (where, index)) for index, number in enumerate(numbers)]
    return INVALID if INVALID in components else array("f", components)


def _component(walk: CoercionPass, value: object, where: Where) -> Any:
    number = to_builtin(value)
    if type(number) is not int and type(number) is not float:
        return walk.note(where, Rejection("coercion.type", "number"), type(value))
    if not -FLOAT32_MAX <= number <= FLOAT32_MAX:
        return walk.note(where, Rejection("coercion.range", "a number in the range of 32-bit floats"), type(value))
    return number


_LEAVES: Final = ((str, ArgType.STRING), (int, ArgType.INT), (float, ArgType.FLOAT), (bytes, ArgType.BLOB))

_COMPOUND: Final[Mapping[ArgType, Callable[[CoercionPass, ArgType, Any, Where], Any]]] = {
    **dict.fromkeys(ELEMENTS, _slice),
    **dict.fromkeys(VALUES, _map),
    ArgType.ANY: _any,
    ArgType.NIL: _nil,
    ArgType.VOID: _nil,
    ArgType.ENTITYID: _entityid,
    ArgType.EMBEDDING: _embedding,
}
"""The function for each type that has no reading."""


def bytes_in(value: Any) -> int:
    """Return the bytes of text or binary data that a value counts against the limit."""
    if type(value) is str:
        return len(value) if value.isascii() else len(value.encode())
    return len(value) if type(value) is bytes else 0


def coerce_list_fast(element: ArgType, items: list[Any]) -> int:
    """Return how many bytes of text *items* contain if every item is exact and needs no further check, otherwise -1.

    This fast path for whole lists runs mostly in C; -1 does not mean rejection. Types are compared by identity because
    a metaclass may define ``__eq__``, which ``list.count`` would call.
    """
    if element is ArgType.ANY:
        return _text_of_leaves(items)
    builtin, kind_of = _BULK.get(element), type  # a local name makes this 5 % faster
    if builtin is None or [item for item in items if kind_of(item) is not builtin]:
        return -1
    if builtin is str:
        text = "".join(items)
        return len(text) if text.isascii() else -1
    if builtin is int:
        return 0 if _are_64_bits(items) else -1
    total = sum(items)
    return 0 if total - total == 0.0 else -1


def _text_of_leaves(items: list[Any]) -> int:
    """Return how many bytes of text *items* contain if all are plain strings, numbers, booleans or None, else -1."""
    text = 0
    for item in items:
        kind = type(item)
        if kind is str and item.isascii():
            text += len(item)
        elif not (
            kind is bool
            or item is None
            or (kind is int and scalars.INT_MIN <= item <= scalars.INT_MAX)
            or (kind is float and item - item == 0.0)
        ):
            return -1
    return text


def _are_64_bits(items: list[int]) -> bool:
    """Return whether all ints fit in 64 bits. Where C's ``ssize_t`` has 32 bits, larger ones get a closer check."""
    try:
        for start in range(0, len(items), CHUNK_ITEMS):
            piece = items if len(items) <= CHUNK_ITEMS else items[start : start + CHUNK_ITEMS]
            struct.pack(f"{len(piece)}n", *piece)
    except struct.error:
        return False
    return True


_BULK: Final[Mapping[ArgType, type]] = {
    ArgType.STRING: str,
    ArgType.INT: int,
    ArgType.FLOAT: float,
    ArgType.BOOL: bool,
}


def copy_exact(value: Any) -> Any:
    """Return a copy of a value of exact built-ins that shares no container with the original."""
    kind = type(value)
    if kind is list:
        return [copy_exact(each) for each in value]
    if kind is dict:
        return {key: copy_exact(each) for key, each in value.items()}
    return value[:] if kind is array else value
