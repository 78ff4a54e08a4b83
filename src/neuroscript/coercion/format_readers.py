"""Readers and writers of the canonical text of each format of strings.

A reader returns the canonical text or a `Fault`, which is data. A class is looked up only in modules that are already
imported. If ``uuid`` was never imported, no value can be a UUID.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Callable
from typing import Any, Final

import attrs

from neuroscript.coercion.scalars import to_builtin

MAX_DECIMAL_CHARS: Final = 64
MAX_EMAIL_LOCAL_CHARS: Final = 64
MAX_DOMAIN_LABEL_CHARS: Final = 63
"""The maximum length of a number, the local part of an address and a label of a domain, in characters."""

MAX_WIDE_RANGES: Final = 20
"""The maximum number of ranges up to a non-ASCII character in a regular expression. Compiling each takes long."""

MAX_EXPONENT: Final = 384
"""The maximum adjusted exponent of a decimal number, and without its sign the minimum one."""


@attrs.frozen(eq=False, repr=False)
class Fault:
    """The reason why a value does not fit a format: a code, and a hint if the usual one says too little."""

    code: str = "coercion.format"
    hint: str = ""


NO_FORMAT: Final = Fault()
WRONG_TYPE: Final = Fault("coercion.type", "pass a string")
OUT_OF_RANGE: Final = Fault("coercion.range", "each part must be in its range")
TOO_PRECISE: Final = Fault("coercion.format", "use at most 6 digits after the decimal point of the seconds")


def loaded_class(dotted: str) -> object:
    """Return a class if its module is already imported, otherwise an object that is not a class."""
    module, _, name = dotted.rpartition(".")
    return getattr(sys.modules.get(module), name, NO_FORMAT)


def reject_instance(value: object) -> Fault:
    return WRONG_TYPE


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


def parse_date_time(text: str) -> datetime.datetime | Fault:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return _NO_TIME if _DATE_ALONE.fullmatch(text) else NO_FORMAT
    day, time = _date_of_parts(found.groups()[:3]), _time_of_parts(found.groups()[3:])
    if isinstance(day, Fault):
        return day
    return time if isinstance(time, Fault) else datetime.datetime.combine(day, time)


def is_plain_date_time(text: str) -> bool:
    """Return whether a string is exactly what ``isoformat`` writes."""
    try:
        return datetime.datetime.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def make_time(text: str, read: Callable[[str], Any], parse: Callable[[str], Any]) -> Any:
    """Return the instance for a canonical text; *read* of Python 3.11 drops an offset of less than one second."""
    return parse(text) if "00:00:00." in text[-15:] else read(text)


def is_plain_date(text: str) -> bool:
    """Return whether a string is exactly what ``isoformat`` writes."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def parse_date(text: str) -> datetime.date | Fault:
    found = _DATE_ALONE.fullmatch(text)
    return _date_of_parts(found.groups()) if found else NO_FORMAT


def _date_of_parts(parts: tuple[str | Any, ...]) -> datetime.date | Fault:
    try:
        return datetime.date(int(parts[0]), int(parts[1]), int(parts[2]))
    except ValueError:
        return OUT_OF_RANGE


def parse_time(text: str) -> datetime.time | Fault:
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


def parse_duration(text: str) -> datetime.timedelta | Fault:
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


def write_time(value: datetime.datetime | datetime.time) -> str | Fault:
    zone = value.tzinfo
    if zone is None:
        return value.isoformat()
    if type(zone) is not datetime.timezone and type(zone) is not loaded_class("zoneinfo.ZoneInfo"):
        return _FOREIGN_ZONE
    return _NO_OFFSET if value.utcoffset() is None else value.isoformat()


def write_duration(value: datetime.timedelta) -> str:
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


def make_reader(parse: Callable[[str], Any], write: Callable[[Any], str | Fault]) -> Callable[[str], str | Fault]:
    """Return a function that reads a string: it creates an instance and returns its canonical text."""

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
is_plain_decimal: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,6})?").fullmatch
"""Matches numbers that Decimal writes as they are: it uses an exponent below 0.000001."""

_INT_BITS: Final = (10**MAX_DECIMAL_CHARS).bit_length()
_DECIMAL_RANGE: Final = Fault(
    "coercion.range",
    f"use a finite number of at most {MAX_DECIMAL_CHARS} characters, from 1E-{MAX_EXPONENT} to 1E+{MAX_EXPONENT}",
)


def read_uuid(text: str) -> str | Fault:
    found = _UUID.fullmatch(text)
    return _hyphenated(found[2].lower().replace("-", "")) if found else NO_FORMAT


def _hyphenated(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def write_uuid(value: Any) -> str | Fault:
    number = to_builtin(value.int)
    return _hyphenated(f"{number:032x}") if type(number) is int and 0 <= number < 2**128 else WRONG_TYPE


def read_decimal(text: str) -> str | Fault:
    if not _DECIMAL.fullmatch(text):
        return NO_FORMAT
    from decimal import Decimal, InvalidOperation

    try:
        return write_decimal(Decimal(text))
    except InvalidOperation:  # the exponent is outside the limits of the module
        return _DECIMAL_RANGE


def write_decimal(value: Any) -> str | Fault:
    if not value.is_finite() or not -MAX_EXPONENT <= value.adjusted() <= MAX_EXPONENT:
        return _DECIMAL_RANGE
    text = str(value).upper()  # the context of a thread may ask for a small "e"
    return text if len(text) <= MAX_DECIMAL_CHARS else _DECIMAL_RANGE


def write_number(number: Any) -> str | Fault:
    """Return the decimal text of an int, or of a float by its shortest representation."""
    if type(number) is int:
        text = str(number) if number.bit_length() <= _INT_BITS else ""
        return text if 0 < len(text) <= MAX_DECIMAL_CHARS else _DECIMAL_RANGE
    return repr(number) if number - number == 0.0 else _DECIMAL_RANGE


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


def read_path(text: str) -> str | Fault:
    return _NO_NUL if "\0" in text else text


def write_path(value: Any) -> str | Fault:
    if any(type(each) is not str for each in getattr(value, "_raw_paths", ())):  # Python 3.12 and later store them
        return WRONG_TYPE
    text = to_builtin(str(value))
    return text if type(text) is str else WRONG_TYPE


def read_uri(text: str) -> str | Fault:
    return text if _URI.fullmatch(text) and not _BAD_PERCENT.search(text) else NO_FORMAT


def read_email(text: str) -> str | Fault:
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


def read_ipv4(text: str) -> str | Fault:
    from ipaddress import IPv4Address

    return _read_ip(IPv4Address, text)


def read_ipv6(text: str) -> str | Fault:
    from ipaddress import IPv6Address

    return _read_ip(IPv6Address, text)


def read_ip_network(text: str) -> str | Fault:
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


def write_ip(value: Any) -> str | Fault:
    if getattr(value, "scope_id", None) is not None:
        return _NO_ZONE
    number = to_builtin(value.__int__())
    return str(type(value)(number)) if type(number) is int else WRONG_TYPE


def write_ip_network(value: Any) -> str | Fault:
    address = value.network_address
    kind = loaded_class("ipaddress.IPv4Address" if value.version == 4 else "ipaddress.IPv6Address")
    text = write_ip(address) if type(address) is kind else WRONG_TYPE
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


def read_base64(text: str) -> str | Fault:
    joined = text.replace("\r", "").replace("\n", "")
    return joined if len(joined) % 4 == 0 and _BASE64.fullmatch(joined) else _BASE64_FAULT


def read_regex(text: str) -> str | Fault:
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
