"""Formats of strings: dates, UUIDs, decimal numbers, paths, addresses and others, each with one canonical text.

`read_format` accepts any object and returns the canonical text or a `Rejection`, which is data. No code of the value
runs: instances of the standard classes are accepted only if their class is exactly that class. `Format.maker`
returns the function that converts a canonical text to the class that a parameter names.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.format_readers import (
    MAX_DECIMAL_CHARS,
    MAX_DOMAIN_LABEL_CHARS,
    MAX_EMAIL_LOCAL_CHARS,
    WRONG_TYPE,
    Fault,
    is_plain_date,
    is_plain_date_time,
    is_plain_decimal,
    loaded_class,
    make_reader,
    make_time,
    parse_date,
    parse_date_time,
    parse_duration,
    parse_time,
    read_base64,
    read_decimal,
    read_email,
    read_ip_network,
    read_ipv4,
    read_ipv6,
    read_path,
    read_regex,
    read_uri,
    read_uuid,
    reject_instance,
    write_decimal,
    write_duration,
    write_ip,
    write_ip_network,
    write_number,
    write_path,
    write_time,
    write_uuid,
)
from neuroscript.coercion.scalars import BLANKS, Rejection, is_unicode, to_builtin

MAX_TIME_CHARS: Final = 64
MAX_UUID_CHARS: Final = 64
MAX_ADDRESS_CHARS: Final = 64
MAX_EMAIL_CHARS: Final = 254
MAX_PATH_CHARS: Final = 32_767
MAX_URI_CHARS: Final = 2**16
MAX_BASE64_CHARS: Final = 2**24
MAX_REGEX_CHARS: Final = 1_000
"""The maximum length of a string in each format, in characters without surrounding whitespace."""


@attrs.frozen(eq=False, repr=False)
class Format:
    """A format of strings.

    Attributes:
        name: The name in specs and in JSON Schema, for example ``date-time``.
        expected: The name in errors, for example ``date and time``.
        example: A canonical text for hints and documentation.
        samples: Strings in canonical form, with edge cases, for generators of values.
        classes: The dotted names of the standard classes with this format; empty if a value is always a string.
        takes_blank: Whether the empty string or ``null`` can be a valid value.
        is_canonical: A fast test that is true only for canonical strings, as most are, or None.
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
    _make: Callable[[str], Any] | None = None
    is_canonical: Callable[[str], object] | None = None

    def read_text(self, text: str) -> str | Rejection:
        """Return the canonical spelling of a string, or a `Rejection`."""
        if self.is_canonical is not None and self.is_canonical(text):
            return text
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
        return any(cls is loaded_class(each) for each in self.classes)

    def maker(self, cls: Any) -> Callable[[str], Any]:
        """Return the function that makes an instance of *cls* from a canonical text.

        The function raises `NotImplementedError` if this system has no such paths, for example
        ``pathlib.WindowsPath`` on Linux.
        """
        return self._make or cls

    def refuse(self, fault: Any) -> Rejection:
        """Return a fault as a `Rejection` with the example."""
        hint = f"{fault.hint}, such as" if fault.hint else "write it like"
        return Rejection(fault.code, self.expected, f"{hint} {self.example}")


Mode = Literal["lax", "strict", "result"]

NOT_CANONICAL: Final = Fault("coercion.format", "strict mode accepts only the canonical form")


def read_format(name: str, value: object, mode: Mode) -> Any:
    """Return the canonical text of a value, or a `Rejection`.

    Args:
        name: The name of the format, a key of `FORMATS`.
        mode: *strict* accepts only canonical text and exact instances; *lax* and *result* accept other spellings too.

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
        text = write_number(plain)
        return found.read_text(text) if type(text) is str else found.refuse(text)
    return found.refuse(WRONG_TYPE)


def format_of_class(cls: type) -> str | None:
    """Return the name of the format of a standard class, or None. Subclasses of these classes have no format."""
    return next((name for name, each in FORMATS.items() if each.includes(cls)), None)


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
        read=make_reader(parse_date_time, write_time),
        write=write_time,
        make=lambda text: make_time(text, datetime.datetime.fromisoformat, parse_date_time),
        is_canonical=is_plain_date_time,
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
        read=make_reader(parse_date, datetime.date.isoformat),
        write=datetime.date.isoformat,
        make=datetime.date.fromisoformat,
        is_canonical=is_plain_date,
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
        read=make_reader(parse_time, write_time),
        write=write_time,
        make=lambda text: make_time(text, datetime.time.fromisoformat, parse_time),
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
        read=make_reader(parse_duration, write_duration),
        write=write_duration,
        make=parse_duration,
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
        read=read_uuid,
        write=write_uuid,
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
        read=read_decimal,
        write=write_decimal,
        is_canonical=is_plain_decimal,
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
        read=read_path,
        write=write_path,
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
        read=read_uri,
        write=reject_instance,
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
        read=read_email,
        write=reject_instance,
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
        read=read_ipv4,
        write=write_ip,
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
        read=read_ipv6,
        write=write_ip,
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
        read=read_ip_network,
        write=write_ip_network,
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
        read=read_base64,
        write=reject_instance,
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
        read=read_regex,
        write=reject_instance,
    ),
)

FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in _ALL}
"""All formats, by name."""
