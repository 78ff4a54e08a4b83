"""Formats of strings: dates, UUIDs, decimal numbers, paths, addresses and others, each with one canonical text.

`read_format` accepts any object and returns the canonical text or a `Rejection`, which is data. No code of the value
runs: instances of the standard classes are accepted only if their class is exactly that class. `make_instance` converts
a canonical text to the class that a function's parameter names.

A class is looked up only in modules that are already imported. If ``uuid`` was never imported, no value can be a UUID.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.scalars import BLANKS, Rejection, is_unicode, to_builtin

MAX_TIME_CHARS: Final = 64
MAX_DECIMAL_CHARS: Final = 64
MAX_UUID_CHARS: Final = 64
MAX_ADDRESS_CHARS: Final = 64
MAX_EMAIL_CHARS: Final = 254
MAX_EMAIL_LOCAL_CHARS: Final = 64
MAX_DOMAIN_LABEL_CHARS: Final = 63
MAX_PATH_CHARS: Final = 32_767
MAX_URI_CHARS: Final = 2**16
MAX_BASE64_CHARS: Final = 2**24
MAX_REGEX_CHARS: Final = 1_000
"""The maximum length of a text of each format or of a part of it, in characters without surrounding whitespace."""

MAX_WIDE_RANGES: Final = 20
"""The maximum number of ranges up to a non-ASCII character in a regular expression. Compiling each takes long."""

MAX_EXPONENT: Final = 384
"""The maximum adjusted exponent of a decimal number, and without its sign the minimum one."""


@attrs.frozen(eq=False, repr=False)
class Fault:
    """The reason why a value does not fit a format: a code, and a hint if the usual one says too little."""

    code: str = "coercion.format"
    hint: str = ""


@attrs.frozen(eq=False, repr=False)
class Format:
    """A format of strings.

    Attributes:
        name: The name in specs and in JSON Schema, for example ``date-time``.
        expected: The name in errors, for example ``date and time``.
        example: A canonical text for hints and documentation.
        samples: Canonical texts, with edge cases, for generators of values.
        classes: The dotted names of the standard classes with this format; empty if a value is always a string.
        takes_blank: Whether the empty string or ``null`` can be a valid text.
    """

    name: str
    expected: str
    example: str
    samples: tuple[str, ...]
    classes: tuple[str, ...]
    takes_blank: bool
    _max_chars: int
    _strips: bool
    _read: Callable[[str], str | Fault]
    _write: Callable[[Any], str | Fault]
    _make: Callable[[str, Any], Any]

    def read_text(self, text: str) -> str | Rejection:
        """Return the canonical spelling of a text."""
        short = text.strip(BLANKS) if self._strips else text
        if len(short) > self._max_chars:
            return self.refuse(Fault("coercion.format", f"use at most {self._max_chars} characters"))
        if not is_unicode(short):
            return self.refuse(Fault("coercion.encoding", "a string must be valid Unicode, without lone surrogates"))
        result = self._read(short)
        return result if type(result) is str else self.refuse(result)

    def read_instance(self, value: object) -> str | Rejection:
        """Return the canonical text of an instance of one of the classes."""
        try:
            text = self._write(value)
        except Exception:  # an instance with invalid private attributes
            return self.refuse(WRONG_TYPE)
        return self.read_text(text) if type(text) is str else self.refuse(text)

    def includes(self, cls: object) -> bool:
        """Return whether *cls* is exactly one of the classes of the format."""
        return any(cls is _loaded_class(each) for each in self.classes)

    def make(self, text: str, cls: type) -> Any:
        """Return the instance for a canonical text."""
        return self._make(text, cls)

    def refuse(self, fault: Any) -> Rejection:
        """Return a fault as a `Rejection` with the example."""
        hint = f"{fault.hint}, such as" if fault.hint else "write it like"
        return Rejection(fault.code, self.expected, f"{hint} {self.example}")


Mode = Literal["lax", "strict", "result"]

NO_FORMAT: Final = Fault()
WRONG_TYPE: Final = Fault("coercion.type", "pass a string")
OUT_OF_RANGE: Final = Fault("coercion.range", "each part must be in its range")
TOO_PRECISE: Final = Fault("coercion.format", "use at most 6 digits after the decimal point of the seconds")
NOT_CANONICAL: Final = Fault("coercion.format", "strict mode accepts only the canonical form")


def read_format(name: str, value: object, mode: Mode) -> Any:
    """Return the canonical text of a value, or a `Rejection`.

    Args:
        name: The name of the format, a key of `FORMATS`.
        mode: *strict* accepts only canonical texts and exact instances; *lax* and *result* accept other spellings too.

    """
    found = FORMATS[name]
    plain: Any = value if mode == "strict" else to_builtin(value)
    kind = type(plain)
    if kind is str:
        result = found.read_text(plain)
        return found.refuse(NOT_CANONICAL) if mode == "strict" and type(result) is str and result != plain else result
    if found.includes(kind):
        return found.read_instance(plain)
    if name == "decimal" and mode != "strict" and (kind is int or kind is float):
        return _read_number(found, plain)
    return found.refuse(WRONG_TYPE)


def make_instance(name: str, text: str, cls: type) -> Any:
    """Return the instance of *cls* for a canonical text. Formats without classes return the text.

    Raises:
        NotImplementedError: If this system has no such paths, for example ``pathlib.WindowsPath`` on Linux.

    """
    return FORMATS[name].make(text, cls)


def format_of_class(cls: type) -> str | None:
    """Return the name of the format of a standard class, or None. Subclasses of these classes have no format."""
    return next((name for name, each in FORMATS.items() if each.includes(cls)), None)


def _loaded_class(dotted: str) -> object:
    """Return a class if its module is already imported, otherwise an object that is not a class."""
    module, _, name = dotted.rpartition(".")
    return getattr(sys.modules.get(module), name, NO_FORMAT)


def _text_itself(text: str, cls: object) -> str:
    return text


def _no_instance(value: object) -> Fault:
    return WRONG_TYPE


def _constructed(text: str, cls: Any) -> Any:
    return cls(text)


# Dates, times and durations

_DATE: Final = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME: Final = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
_OFFSET: Final = r"(?:([Zz])|([+-])([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?)?"

_DATE_ALONE: Final = re.compile(_DATE)
_TIME_ALONE: Final = re.compile(_TIME + _OFFSET)
_DATE_TIME: Final = re.compile(f"{_DATE}[Tt ]{_TIME}{_OFFSET}")

_ISO_DURATION: Final = re.compile(
    r"([+-]?)P(?=[0-9T])(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.,]([0-9]+))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_CLOCK_DURATION: Final = re.compile(
    r"(?:([+-]?[0-9]+) days?, )?([+-]?)([0-9]+):([0-5][0-9]):([0-5][0-9])(?:[.,]([0-9]+))?"
)

_NO_TIME: Final = Fault("coercion.format", "add a time to the date")
_NO_OFFSET: Final = Fault("coercion.format", "the time zone of a time needs a fixed offset")
_FOREIGN_ZONE: Final = Fault("coercion.type", "the tzinfo must be None, a datetime.timezone or a zoneinfo.ZoneInfo")
_MAX_DURATION: Final = Fault("coercion.range", "use at most 999999999 days")
_DAY_HOURS: Final = Fault("coercion.range", "after days, the hours must be from 0 to 23")


def _date_time_of(text: str) -> datetime.datetime | Fault:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return _NO_TIME if _DATE_ALONE.fullmatch(text) else NO_FORMAT
    day, time = _date_of_parts(found.groups()[:3]), _time_of_parts(found.groups()[3:])
    if isinstance(day, Fault):
        return day
    return time if isinstance(time, Fault) else datetime.datetime.combine(day, time)


def _date_of(text: str) -> datetime.date | Fault:
    found = _DATE_ALONE.fullmatch(text)
    return _date_of_parts(found.groups()) if found else NO_FORMAT


def _date_of_parts(parts: tuple[str | Any, ...]) -> datetime.date | Fault:
    try:
        return datetime.date(int(parts[0]), int(parts[1]), int(parts[2]))
    except ValueError:
        return OUT_OF_RANGE


def _time_of(text: str) -> datetime.time | Fault:
    found = _TIME_ALONE.fullmatch(text)
    return _time_of_parts(found.groups()) if found else NO_FORMAT


def _time_of_parts(parts: tuple[str | Any, ...]) -> datetime.time | Fault:
    hour, minute, second, fraction, zulu, sign, *offset = parts
    microseconds = _microseconds(fraction)
    if microseconds is None:
        return TOO_PRECISE
    try:
        zone = datetime.UTC if zulu else _zone(sign, *offset) if sign else None
        return datetime.time(int(hour), int(minute), int(second or 0), microseconds, zone)
    except ValueError:
        return OUT_OF_RANGE


def _zone(sign: str, hour: str, minute: str | None, second: str | None, fraction: str | None) -> datetime.timezone:
    """Return a fixed offset. Raises ValueError if a part is out of its range."""
    parts = datetime.time(int(hour), int(minute or 0), int(second or 0), _microseconds(fraction) or 0)
    offset = datetime.timedelta(
        hours=parts.hour, minutes=parts.minute, seconds=parts.second, microseconds=parts.microsecond
    )
    return datetime.timezone(-offset if sign == "-" else offset)


def _microseconds(fraction: str | None) -> int | None:
    """Return the digits after a decimal point as microseconds, or None if one beyond the sixth is not zero."""
    digits = fraction or ""
    return None if digits[6:].strip("0") else int(digits[:6].ljust(6, "0"))


def _duration_of(text: str) -> datetime.timedelta | Fault:
    total = _iso_microseconds(text)
    if total is None:
        total = _clock_microseconds(text)
    if isinstance(total, Fault):
        return total
    try:
        return datetime.timedelta(microseconds=total)
    except OverflowError:
        return _MAX_DURATION


def _iso_microseconds(text: str) -> int | Fault | None:
    found = _ISO_DURATION.fullmatch(text)
    if found is None:
        return None
    sign, fraction = found[1], _microseconds(found[7])
    weeks, days, hours, minutes, seconds = (int(each or 0) for each in found.groups()[1:6])
    if fraction is None:
        return TOO_PRECISE
    total = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds
    return (-1 if sign == "-" else 1) * (total * 1_000_000 + fraction)


def _clock_microseconds(text: str) -> int | Fault:
    """Return the duration that ``str(timedelta)`` writes. A sign of the days does not apply to the hours."""
    found = _CLOCK_DURATION.fullmatch(text)
    if found is None or (found[1] and found[2]):
        return NO_FORMAT
    days, hours, fraction = int(found[1] or 0), int(found[3]), _microseconds(found[6])
    if fraction is None:
        return TOO_PRECISE
    if found[1] and hours > 23:
        return _DAY_HOURS
    clock = ((hours * 60 + int(found[4])) * 60 + int(found[5])) * 1_000_000 + fraction
    return days * 86_400_000_000 + (-clock if found[2] == "-" else clock)


def _write_time(value: datetime.datetime | datetime.time) -> str | Fault:
    zone = value.tzinfo
    if zone is None:
        return value.isoformat()
    if type(zone) is not datetime.timezone and type(zone) is not _loaded_class("zoneinfo.ZoneInfo"):
        return _FOREIGN_ZONE
    return _NO_OFFSET if value.utcoffset() is None else value.isoformat()


def _write_duration(value: datetime.timedelta) -> str:
    total = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    minutes, micros = divmod(abs(total), 60_000_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    seconds = f"{micros // 1_000_000}.{micros % 1_000_000:06}".rstrip("0").rstrip(".")
    clock = "".join(
        f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if amount not in (0, "0")
    )
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"{'-' if total < 0 else ''}P{text or 'T0S'}"


def _reader(parse: Callable[[str], Any], write: Callable[[Any], str | Fault]) -> Callable[[str], str | Fault]:
    """Return the function that reads a text by way of an instance."""

    def read(text: str) -> str | Fault:
        result = parse(text)
        return result if isinstance(result, Fault) else write(result)

    return read


# Identifiers and numbers

_UUID: Final = re.compile(
    r"(?:urn:uuid:)?(\{)?"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})(?(1)\})",
    re.IGNORECASE | re.ASCII,
)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INT_BITS: Final = (10**MAX_DECIMAL_CHARS).bit_length()
_DECIMAL_RANGE: Final = Fault(
    "coercion.range",
    f"use a finite number of at most {MAX_DECIMAL_CHARS} characters, from 1E-{MAX_EXPONENT} to 1E+{MAX_EXPONENT}",
)


def _read_uuid(text: str) -> str | Fault:
    found = _UUID.fullmatch(text)
    return _hyphenated(found[2].lower().replace("-", "")) if found else NO_FORMAT


def _hyphenated(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _write_uuid(value: Any) -> str | Fault:
    number = to_builtin(value.int)
    return _hyphenated(f"{number:032x}") if type(number) is int and 0 <= number < 2**128 else WRONG_TYPE


def _read_decimal(text: str) -> str | Fault:
    if not _DECIMAL.fullmatch(text):
        return NO_FORMAT
    from decimal import Decimal, InvalidOperation

    try:
        return _write_decimal(Decimal(text))
    except InvalidOperation:  # the exponent is outside the limits of the module
        return _DECIMAL_RANGE


def _write_decimal(value: Any) -> str | Fault:
    if not value.is_finite() or not -MAX_EXPONENT <= value.adjusted() <= MAX_EXPONENT:
        return _DECIMAL_RANGE
    text = str(value).upper()  # the context of a thread may ask for a small "e"
    return text if len(text) <= MAX_DECIMAL_CHARS else _DECIMAL_RANGE


def _read_number(found: Format, number: Any) -> Any:
    """Return the decimal text of an int, or of a float by its shortest representation."""
    if type(number) is int:
        text = str(number) if number.bit_length() <= _INT_BITS else ""
        return text if 0 < len(text) <= MAX_DECIMAL_CHARS else found.refuse(_DECIMAL_RANGE)
    return found.read_text(repr(number)) if number - number == 0.0 else found.refuse(_DECIMAL_RANGE)


# Paths, addresses and names

_URI_CHARS: Final = r"A-Za-z0-9._~!$&'()*+,;=:@%-"
_URI: Final = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]*:(?=[^#?])"
    rf"(?://(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?"
    rf"(?:\[(?:[0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)"
    rf"(?::[0-9]*)?(?:/[{_URI_CHARS}/]*)?|(?!//)[{_URI_CHARS}/]+)"
    rf"(?:\?[{_URI_CHARS}/?]*)?(?:#[{_URI_CHARS}/?]*)?"
)
_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_EMAIL_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_ASCII_LABEL: Final = re.compile(r"[A-Za-z0-9-]*")
_NO_NUL: Final = Fault("coercion.format", "a path must not contain NUL")
_NO_ZONE: Final = Fault("coercion.format", "a zone id is not supported")
_HOST_BITS: Final = Fault("coercion.format", "the address must be the first of its network, without host bits")


def _read_path(text: str) -> str | Fault:
    return _NO_NUL if "\0" in text else text


def _write_path(value: Any) -> str | Fault:
    if any(type(each) is not str for each in getattr(value, "_raw_paths", ())):  # Python 3.12 and later store them
        return WRONG_TYPE
    text = to_builtin(str(value))
    return text if type(text) is str else WRONG_TYPE


def _read_uri(text: str) -> str | Fault:
    return text if _URI.fullmatch(text) and not _BAD_PERCENT.search(text) else NO_FORMAT


def _read_email(text: str) -> str | Fault:
    local, at, domain = text.partition("@")
    if not at or len(local) > MAX_EMAIL_LOCAL_CHARS or not _EMAIL_LOCAL.fullmatch(local):
        return NO_FORMAT
    return text if all(_is_domain_label(each) for each in domain.split(".")) else NO_FORMAT


def _is_domain_label(label: str) -> bool:
    if not 0 < len(label) <= MAX_DOMAIN_LABEL_CHARS or label[0] == "-" or label[-1] == "-":
        return False
    if label.isascii():
        return _ASCII_LABEL.fullmatch(label) is not None
    from unicodedata import category

    return all(
        _ASCII_LABEL.fullmatch(each) is not None if each.isascii() else category(each)[0] in "LM" for each in label
    )


def _read_ipv4(text: str) -> str | Fault:
    from ipaddress import IPv4Address

    return _read_ip(IPv4Address, text)


def _read_ipv6(text: str) -> str | Fault:
    from ipaddress import IPv6Address

    return _read_ip(IPv6Address, text)


def _read_ip_network(text: str) -> str | Fault:
    from ipaddress import ip_network

    result = _read_ip(ip_network, text)
    return _HOST_BITS if isinstance(result, Fault) and _has_host_bits(text) else result


def _read_ip(parse: Callable[[str], object], text: str) -> str | Fault:
    if not text.isascii():
        return NO_FORMAT
    if "%" in text:
        return _NO_ZONE
    try:
        return str(parse(text))
    except ValueError:
        return NO_FORMAT


def _has_host_bits(text: str) -> bool:
    from ipaddress import ip_network

    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in text


def _write_ip(value: Any) -> str | Fault:
    if getattr(value, "scope_id", None) is not None:
        return _NO_ZONE
    number = to_builtin(value.__int__())
    return str(type(value)(number)) if type(number) is int else WRONG_TYPE


def _write_ip_network(value: Any) -> str | Fault:
    address = value.network_address
    kind = _loaded_class("ipaddress.IPv4Address" if value.version == 4 else "ipaddress.IPv6Address")
    text = _write_ip(address) if type(address) is kind else WRONG_TYPE
    prefix = to_builtin(value.prefixlen)
    return f"{text}/{prefix}" if type(text) is str and type(prefix) is int else text


# Encoded bytes and patterns

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*(?:[AQgw]==|[AEIMQUYcgkosw048]=)?")
_BASE64_FAULT: Final = Fault("coercion.format", "use the standard alphabet of RFC 4648 with padding")
_REGEX_FAULT: Final = Fault("coercion.format", "the pattern must compile with Python's re without a warning")
_WIDE_RANGES: Final = Fault(
    "coercion.format", f"use at most {MAX_WIDE_RANGES} ranges that end in an escape or a non-ASCII character"
)
_WIDE_RANGE: Final = re.compile(r"-(?:[^\x00-\x7f]|\\[xuUN0-7])")
_CHARACTER_SET: Final = re.compile(r"\\.|\[(\^?)(\]?(?:\\.|[^\]\\])*)", re.DOTALL)
_COMMENT: Final = re.compile(r"\(\?#[^)]*\)|#[^\n]*")
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_SET_OPERATOR: Final = re.compile(r"--|&&|~~|\|\|")
_BAD_CONDITION: Final = re.compile(r"\(\?\((?!(?:[0-9]+|[A-Za-z_][A-Za-z0-9_]*)\))")


def _read_base64(text: str) -> str | Fault:
    joined = text.replace("\r", "").replace("\n", "")
    return joined if len(joined) % 4 == 0 and _BASE64.fullmatch(joined) else _BASE64_FAULT


def _read_regex(text: str) -> str | Fault:
    if "\0" in text or _BAD_CONDITION.search(text) or _has_ambiguous_set(text):
        return _REGEX_FAULT
    if len(_WIDE_RANGE.findall(text)) > MAX_WIDE_RANGES:
        return _WIDE_RANGES
    try:
        re.compile(text)
    except Exception:  # also RecursionError, OverflowError, and a warning that the host turns into an error
        return _REGEX_FAULT
    return text


def _has_ambiguous_set(text: str) -> bool:
    """Return whether re would warn about a character set. Catching the warning would change filters of all threads."""
    texts = (text, _COMMENT.sub("", text))  # a comment may contain a bracket
    sets = [each for part in texts for each in _CHARACTER_SET.finditer(part) if each[2] is not None]
    return any(
        (not each[1] and each[2].startswith("[")) or _SET_OPERATOR.search(_ESCAPE.sub("x", each[2]), 1) for each in sets
    )


_ISO_DATE_TIME: Final = "2026-01-31T09:30:00+01:00"
_PATHS: Final = ("PurePath", "PurePosixPath", "PureWindowsPath", "Path", "PosixPath", "WindowsPath")

_ALL: Final = (
    Format(
        name="date-time",
        expected="date and time",
        example=_ISO_DATE_TIME,
        samples=(
            _ISO_DATE_TIME,
            "2026-01-31T09:30:00",
            "2024-02-29T23:59:59.999999+00:00",
            "0001-01-01T00:00:00",
            "9999-12-31T23:59:59.999999-23:59",
            "1970-01-01T00:00:00.000001+05:30",
        ),
        classes=("datetime.datetime",),
        takes_blank=False,
        max_chars=MAX_TIME_CHARS,
        strips=True,
        read=_reader(_date_time_of, _write_time),
        write=_write_time,
        make=lambda text, cls: _date_time_of(text),
    ),
    Format(
        name="date",
        expected="date",
        example="2026-01-31",
        samples=("2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31", "1970-01-01", "2000-12-31"),
        classes=("datetime.date",),
        takes_blank=False,
        max_chars=MAX_TIME_CHARS,
        strips=True,
        read=_reader(_date_of, datetime.date.isoformat),
        write=datetime.date.isoformat,
        make=lambda text, cls: _date_of(text),
    ),
    Format(
        name="time",
        expected="time",
        example="09:30:00",
        samples=(
            "09:30:00",
            "00:00:00",
            "23:59:59.999999",
            "12:00:00+00:00",
            "12:00:00.500000-03:30",
            "06:07:08+14:00",
        ),
        classes=("datetime.time",),
        takes_blank=False,
        max_chars=MAX_TIME_CHARS,
        strips=True,
        read=_reader(_time_of, _write_time),
        write=_write_time,
        make=lambda text, cls: _time_of(text),
    ),
    Format(
        name="duration",
        expected="duration",
        example="P1DT2H3M4.5S",
        samples=(
            "P1DT2H3M4.5S",
            "PT0S",
            "-PT5S",
            "PT0.000001S",
            "P7D",
            "P999999999DT23H59M59.999999S",
            "-P999999999D",
        ),
        classes=("datetime.timedelta",),
        takes_blank=False,
        max_chars=MAX_TIME_CHARS,
        strips=True,
        read=_reader(_duration_of, _write_duration),
        write=_write_duration,
        make=lambda text, cls: _duration_of(text),
    ),
    Format(
        name="uuid",
        expected="UUID",
        example="12345678-1234-4678-9234-567812345678",
        samples=(
            "12345678-1234-4678-9234-567812345678",
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "01890a5d-ac96-774b-bcce-b302099a8057",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        classes=("uuid.UUID",),
        takes_blank=False,
        max_chars=MAX_UUID_CHARS,
        strips=True,
        read=_read_uuid,
        write=_write_uuid,
        make=_constructed,
    ),
    Format(
        name="decimal",
        expected="decimal number",
        example="2.50",
        samples=("2.50", "0", "-0", "-0.01", "1E+3", "1E-384", "9.99E+384", "12345678901234567890.123456789"),
        classes=("decimal.Decimal",),
        takes_blank=False,
        max_chars=MAX_DECIMAL_CHARS,
        strips=True,
        read=_read_decimal,
        write=_write_decimal,
        make=_constructed,
    ),
    Format(
        name="path",
        expected="path",
        example="docs/guide.md",
        samples=("docs/guide.md", "/etc/hosts", ".", "..", "notes.txt", "two words.txt", "é/ü.txt", "null"),
        classes=tuple(f"pathlib.{each}" for each in _PATHS),
        takes_blank=True,
        max_chars=MAX_PATH_CHARS,
        strips=False,
        read=_read_path,
        write=_write_path,
        make=_constructed,
    ),
    Format(
        name="uri",
        expected="URI",
        example="https://example.com/a?b=c",
        samples=(
            "https://example.com/a?b=c",
            "http://user@[2001:db8::1]:8080/",
            "mailto:ann@example.com",
            "urn:isbn:0451450523",
            "ftp://example.com/a.txt",
            "https://example.com/%C3%A9#part",
        ),
        classes=(),
        takes_blank=False,
        max_chars=MAX_URI_CHARS,
        strips=True,
        read=_read_uri,
        write=_no_instance,
        make=_text_itself,
    ),
    Format(
        name="email",
        expected="email address",
        example="ann@example.com",
        samples=(
            "ann@example.com",
            "a.b+c@example.co.uk",
            "x@localhost",
            "o'neil_1@sub.example.org",
            "ann@bücher.example",
            f"{'a' * MAX_EMAIL_LOCAL_CHARS}@{'b' * MAX_DOMAIN_LABEL_CHARS}.example",
        ),
        classes=(),
        takes_blank=False,
        max_chars=MAX_EMAIL_CHARS,
        strips=True,
        read=_read_email,
        write=_no_instance,
        make=_text_itself,
    ),
    Format(
        name="ipv4",
        expected="IPv4 address",
        example="192.0.2.1",
        samples=("192.0.2.1", "0.0.0.0", "255.255.255.255", "127.0.0.1", "10.0.0.1", "224.0.0.251"),  # noqa: S104
        classes=("ipaddress.IPv4Address",),
        takes_blank=False,
        max_chars=MAX_ADDRESS_CHARS,
        strips=True,
        read=_read_ipv4,
        write=_write_ip,
        make=_constructed,
    ),
    Format(
        name="ipv6",
        expected="IPv6 address",
        example="2001:db8::1",
        samples=("2001:db8::1", "::", "::1", "fe80::1", "ff02::fb", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        classes=("ipaddress.IPv6Address",),
        takes_blank=False,
        max_chars=MAX_ADDRESS_CHARS,
        strips=True,
        read=_read_ipv6,
        write=_write_ip,
        make=_constructed,
    ),
    Format(
        name="ip-network",
        expected="IP network",
        example="192.0.2.0/24",
        samples=("192.0.2.0/24", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::/32", "::/0", "::1/128"),
        classes=("ipaddress.IPv4Network", "ipaddress.IPv6Network"),
        takes_blank=False,
        max_chars=MAX_ADDRESS_CHARS,
        strips=True,
        read=_read_ip_network,
        write=_write_ip_network,
        make=_constructed,
    ),
    Format(
        name="base64",
        expected="base64 string",
        example="aGVsbG8=",
        samples=("aGVsbG8=", "", "AA==", "+/+/", "AAAA", "null", "////"),
        classes=(),
        takes_blank=True,
        max_chars=MAX_BASE64_CHARS,
        strips=True,
        read=_read_base64,
        write=_no_instance,
        make=_text_itself,
    ),
    Format(
        name="regex",
        expected="regular expression",
        example="^[a-z]+$",
        samples=("^[a-z]+$", "", "a|b", r"\d{4}-\d{2}", "(?i)x(?P<y>.)", "null", "[^]é]*"),
        classes=(),
        takes_blank=True,
        max_chars=MAX_REGEX_CHARS,
        strips=False,
        read=_read_regex,
        write=_no_instance,
        make=_text_itself,
    ),
)

FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in _ALL}
"""All formats, by name."""
