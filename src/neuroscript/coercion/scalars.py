"""Coercion of single values without nested values to exact built-ins. No code of the value itself runs.

Each function accepts any object and returns the exact value or a `Rejection`, which is data: nothing here raises. Each
type has three readings: *lax* for models and command lines, *strict* for values that are already exact, and *result*
for the return values of tools (strict, but subclasses are flattened and an int may become a float).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import attrs


@attrs.frozen(eq=False, repr=False)
class Rejection:
    """The reason why a value does not fit: a stable code, the expected value, and how to correct it."""

    code: str
    expected: str
    hint: str = ""


@attrs.frozen
class Handle:
    """A reference to a resource that a tool holds for its caller. Only the engine can resolve it.

    Attributes:
        id: ASCII letters, digits and ``. _ - :``, at most 128.
        kind: The kind of resource, for example ``tree``.
    """

    id: str
    kind: str = ""


class AnyContent:
    """The base of `Content`, by which a module recognizes content without importing its classes."""

    __slots__ = ()

    blocks: tuple[Any, ...]

    @property
    def data(self) -> dict[str, Any]:
        """The content as plain data with the keys of MCP; bytes are bytes."""
        raise NotImplementedError

    @property
    def wire(self) -> dict[str, Any]:
        """The content as JSON data with the keys of MCP; bytes are base64 strings."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Any, ...]:
        """The blocks as a reader sees them who does not see the structured content."""
        raise NotImplementedError

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The `parts` as JSON data with the keys of MCP."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The content as a reader sees it who reads only text."""
        raise NotImplementedError

    @property
    def values(self) -> list[Any]:
        """The value of each field of each block, then the structured content and the metadata."""
        raise NotImplementedError

    def mapped(self, change: Callable[[Any], Any]) -> Any:
        """Return the content with *change* applied to the value of each field."""
        raise NotImplementedError


Reading = Callable[[object], Any]
"""A function from a value to the exact value or a `Rejection`."""

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
DIGIT_MIN: Final = -(2**30) + 1
DIGIT_MAX: Final = 2**30 - 1
"""The ints that CPython compares without a call, because they have one digit of 30 bits."""

EXACT_INT: Final = 2**53
EXACT_FLOAT: Final = 2.0**53
"""Floats represent every integer up to here exactly. Both types are defined because comparing int and float is slow."""

MAX_NUMBER_CHARS: Final = 64
"""The maximum length of a number in a string, in characters without surrounding whitespace."""

BLANKS: Final = " \t\r\n"

STRING_TYPE: Final = Rejection("coercion.type", "string")
STRING_ENCODING: Final = Rejection(
    "coercion.encoding", "string", "a string must be valid Unicode, without lone surrogates"
)
INT_TYPE: Final = Rejection("coercion.type", "int")
INT_BOOL: Final = Rejection("coercion.bool_as_number", "int", "a boolean is not a number")
INT_FORMAT: Final = Rejection("coercion.format", "int", "a string must be a decimal integer, such as 42")
INT_FRACTION: Final = Rejection("coercion.fraction", "int", "the number must be whole")
INT_LOSSY: Final = Rejection("coercion.lossy", "int", "pass an int, because floats above 2**53 are not exact")
INT_NONFINITE: Final = Rejection("coercion.nonfinite", "int", "the number must be finite")
INT_RANGE: Final = Rejection("coercion.range", "int", "the number must be from -2**63 to 2**63-1")
FLOAT_TYPE: Final = Rejection("coercion.type", "float")
FLOAT_BOOL: Final = Rejection("coercion.bool_as_number", "float", "a boolean is not a number")
FLOAT_FORMAT: Final = Rejection("coercion.format", "float", "a string must be a decimal number, such as -1.5e3")
FLOAT_LOSSY: Final = Rejection("coercion.lossy", "float", "no float can represent this integer exactly")
FLOAT_NONFINITE: Final = Rejection("coercion.nonfinite", "float", "the number must be finite")
FLOAT_RANGE: Final = Rejection("coercion.range", "float", "the number is too large for a float")
BOOL_TYPE: Final = Rejection("coercion.type", "bool")
BOOL_VALUE: Final = Rejection("coercion.bool", "bool", "pass true, false, 1 or 0")
BLOB_TYPE: Final = Rejection("coercion.type", "blob", "pass bytes, a string, or {'$base64': string}")
BLOB_ENCODING: Final = Rejection("coercion.encoding", "blob", "a string must be valid Unicode, without lone surrogates")
BLOB_FORMAT: Final = Rejection("coercion.format", "blob", "the string under '$base64' must be valid base64")
HANDLE_TYPE: Final = Rejection("coercion.type", "handle")
HANDLE_FORMAT: Final = Rejection("coercion.format", "handle", "use at most 128 ASCII letters, digits and . _ - :")
NODEID_TYPE: Final = Rejection("coercion.type", "nodeid")
NODEID_FORMAT: Final = Rejection("coercion.format", "nodeid", "use N_ followed by at least one character")
ENTITYID_TYPE: Final = Rejection("coercion.type", "entityid")
ENTITYID_FORMAT: Final = Rejection("coercion.format", "entityid", "use E_ followed by at least one character")

_SIGNED_DIGITS: Final = "0123456789+-"
_INT_MARKS: Final = _SIGNED_DIGITS + BLANKS
_FLOAT_MARKS: Final = _INT_MARKS + ".eE"
"""Python's int and float parse strings of these characters as specified: no ``_``, no ``nan``, no non-ASCII digits."""

_HANDLE_TEXT: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}
_WHOLE: Final = slice(None)


def to_builtin(value: Any) -> Any:
    """Return the built-in value inside a subclass of str, int, float or bytes, read through the base type's own slots.

    Any other object is returned unchanged.
    """
    kind = type(value)
    if issubclass(kind, str):
        return str.__str__(value)
    if kind is bool:
        return value
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, bytes):
        return bytes.__getitem__(value, _WHOLE)
    return value


def strict_string(value: Any) -> Any:
    """Accept an exact str without lone surrogates."""
    if type(value) is not str:
        return STRING_TYPE
    return value if is_unicode(value) else STRING_ENCODING


def lax_string(value: Any) -> Any:
    """Accept a str or a subclass of it; other types are never converted to strings."""
    return strict_string(to_builtin(value))


def is_unicode(text: str) -> bool:
    """Return whether a string can be encoded as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def strict_int(value: Any) -> Any:
    """Accept an exact 64-bit int."""
    if type(value) is not int:
        return INT_BOOL if type(value) is bool else INT_TYPE
    return value if INT_MIN <= value <= INT_MAX else INT_RANGE


def lax_int(value: Any) -> Any:
    """Accept an int, an integral float up to 2**53, or a string of decimal digits."""
    kind = type(value)
    if kind is str:
        if value.isdigit() and value.isascii() and len(value) < 19:
            return int(value)
        return _int_of_text(value)
    if kind is float:
        return int(value) if value.is_integer() and -EXACT_FLOAT <= value <= EXACT_FLOAT else _why_no_int(value)
    if kind is int:
        return value if INT_MIN <= value <= INT_MAX else INT_RANGE
    if kind is bool:
        return INT_BOOL
    plain = to_builtin(value)
    return INT_TYPE if plain is value or type(plain) is bytes else lax_int(plain)


def _int_of_text(text: str) -> Any:
    rest = text.strip(_INT_MARKS)
    if rest and rest != ".":
        return INT_FORMAT
    digits = _without_point(text.strip(BLANKS))
    if len(digits) > MAX_NUMBER_CHARS or digits.strip(_SIGNED_DIGITS):
        return INT_FORMAT
    try:
        number = int(digits)
    except ValueError:
        return INT_FORMAT
    return number if INT_MIN <= number <= INT_MAX else INT_RANGE


def _without_point(text: str) -> str:
    """Return digits without a trailing ``.0``; strings with anything else after the point are returned unchanged."""
    whole, _, zeros = text.partition(".")
    return whole if zeros and not zeros.strip("0") and len(text) <= MAX_NUMBER_CHARS else text


def _why_no_int(number: float) -> Rejection:
    if number - number != 0.0:
        return INT_NONFINITE
    return INT_LOSSY if number.is_integer() else INT_FRACTION


def strict_float(value: Any) -> Any:
    """Accept an exact, finite float."""
    if type(value) is not float:
        return FLOAT_BOOL if type(value) is bool else FLOAT_TYPE
    return value if value - value == 0.0 else FLOAT_NONFINITE


def lax_float(value: Any) -> Any:
    """Accept a finite float, an int that a float represents exactly, or a decimal number in a string."""
    kind = type(value)
    if kind is float:
        return value if value - value == 0.0 else FLOAT_NONFINITE
    if kind is int:
        return float(value) if -EXACT_INT <= value <= EXACT_INT else _float_of_int(value)
    if kind is str:
        return _float_of_text(value)
    if kind is bool:
        return FLOAT_BOOL
    plain = to_builtin(value)
    return FLOAT_TYPE if plain is value or type(plain) is bytes else lax_float(plain)


def _float_of_text(text: str) -> Any:
    if text.strip(_FLOAT_MARKS) or (len(text) > MAX_NUMBER_CHARS and len(text.strip(BLANKS)) > MAX_NUMBER_CHARS):
        return FLOAT_FORMAT
    try:
        number = float(text)
    except ValueError:
        return FLOAT_FORMAT
    return number if number - number == 0.0 else FLOAT_NONFINITE


def _float_of_int(whole: int) -> Any:
    try:
        number = float(whole)
    except OverflowError:
        return FLOAT_RANGE
    return number if int(number) == whole else FLOAT_LOSSY


def result_float(value: Any) -> Any:
    """Accept a finite float or an int that a float represents exactly; subclasses are flattened."""
    plain = to_builtin(value)
    return _float_of_int(plain) if type(plain) is int else strict_float(plain)


def strict_bool(value: Any) -> Any:
    """Accept only True and False."""
    return value if type(value) is bool else BOOL_TYPE


def lax_bool(value: Any) -> Any:
    """Accept a bool, the numbers 0 and 1, and the strings true, false, 1 and 0 in any case."""
    kind = type(value)
    if kind is bool:
        return value
    if kind is str:
        return TRUTHS[value] if value in TRUTHS else TRUTHS.get(value[:6].lower(), BOOL_VALUE)
    if kind is int or kind is float:
        return value == 1 if value == 1 or value == 0 else BOOL_VALUE
    plain = to_builtin(value)
    return BOOL_TYPE if plain is value or type(plain) is bytes else lax_bool(plain)


def strict_blob(value: Any) -> Any:
    """Accept exact bytes."""
    return value if type(value) is bytes else BLOB_TYPE


def lax_blob(value: Any) -> Any:
    """Accept bytes, a bytearray, a memoryview, a string (as UTF-8), or a map ``{"$base64": string}``."""
    kind = type(value)
    if kind is bytes:
        return value
    if issubclass(kind, bytearray):
        return bytes(bytearray.__getitem__(value, _WHOLE))
    if kind is memoryview:
        return _bytes_of_view(value)
    if issubclass(kind, dict):
        return _bytes_of_map([*dict.items(value)])
    plain = to_builtin(value)
    if type(plain) is str:
        return plain.encode() if is_unicode(plain) else BLOB_ENCODING
    return plain if type(plain) is bytes else BLOB_TYPE


def _bytes_of_view(view: memoryview) -> Any:
    try:
        return view.tobytes()
    except ValueError:  # released
        return BLOB_TYPE


def _bytes_of_map(pairs: list[tuple[object, object]]) -> Any:
    if len(pairs) != 1:
        return BLOB_TYPE
    key, text = to_builtin(pairs[0][0]), to_builtin(pairs[0][1])
    if type(key) is not str or key != "$base64" or type(text) is not str:
        return BLOB_TYPE
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(text, strict_mode=True)
    except (Error, ValueError):
        return BLOB_FORMAT


def strict_handle(value: Any) -> Any:
    """Accept the id of a handle, an exact str."""
    if type(value) is not str:
        return HANDLE_TYPE
    return value if _HANDLE_TEXT.fullmatch(value) else HANDLE_FORMAT


def lax_handle(value: Any) -> Any:
    """Accept a `Handle`, which is replaced by its id, or the id as a string."""
    return strict_handle(value.id if type(value) is Handle else to_builtin(value))


def strict_nodeid(value: Any) -> Any:
    """Accept an exact str that starts with ``N_``."""
    return _prefixed(value, "N_", NODEID_TYPE, NODEID_FORMAT)


def lax_nodeid(value: Any) -> Any:
    """Accept a string that starts with ``N_``, or a map with such a string under ``_version``."""
    return strict_nodeid(to_builtin(entry(value, "_version") if issubclass(type(value), dict) else value))


def strict_entityid(value: Any) -> Any:
    """Accept an exact str that starts with ``E_``."""
    return _prefixed(value, "E_", ENTITYID_TYPE, ENTITYID_FORMAT)


def _prefixed(value: Any, prefix: str, kind: Rejection, form: Rejection) -> Any:
    if type(value) is not str:
        return kind
    return value if len(value) > 2 and value.startswith(prefix) and is_unicode(value) else form


def entry(value: dict[Any, Any], name: str) -> Any:
    """Return the value of *name* in a dict, or None, without hashing or comparing other keys."""
    for key, each in [*dict.items(value)]:
        text = to_builtin(key)
        if type(text) is str and text == name:
            return each
    return None


def flatten_subclasses(strict: Reading) -> Reading:
    """Return the result reading for a strict one: subclasses are flattened first."""

    def read(value: object) -> Any:
        return strict(to_builtin(value))

    return read
