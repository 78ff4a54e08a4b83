"""Formats of strings: accepted spellings, the canonical text, refused values, and the standard classes."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import pathlib
import re
import subprocess
import sys
import time
import uuid
import warnings
import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import ALL

from neuroscript.coercion.scalars import Rejection
from neuroscript.coercion.string_formats import FORMATS, Mode, format_of_class, read_format

FORMAT, RANGE, TYPE, ENCODING = "coercion.format", "coercion.range", "coercion.type", "coercion.encoding"
MODES: tuple[Mode, ...] = ("lax", "strict", "result")
TIMES = ("date-time", "date", "time", "duration")
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
D = decimal.Decimal

ACCEPTED: dict[str, dict[Any, str]] = {
    "date-time": {
        "2026-01-31T09:30:00": "2026-01-31T09:30:00",
        "2026-01-31t09:30:00z": "2026-01-31T09:30:00+00:00",
        "2026-01-31 09:30:00": "2026-01-31T09:30:00",
        " \t2026-01-31T09:30:00Z\r\n": "2026-01-31T09:30:00+00:00",
        "2026-01-31T09:30": "2026-01-31T09:30:00",
        "2026-01-31T09:30Z": "2026-01-31T09:30:00+00:00",
        "2026-01-31T09:30:00.5": "2026-01-31T09:30:00.500000",
        "2026-01-31T09:30:00,25": "2026-01-31T09:30:00.250000",
        "2026-01-31T09:30:00.123456000": "2026-01-31T09:30:00.123456",
        "2026-01-31T09:30:00.0": "2026-01-31T09:30:00",
        "2026-01-31T09:30:00-00:00": "2026-01-31T09:30:00+00:00",
        "2026-01-31T09:30:00+01": "2026-01-31T09:30:00+01:00",
        "2026-01-31T09:30:00-05:30": "2026-01-31T09:30:00-05:30",
        "1893-01-01T00:00:00+00:53:28": "1893-01-01T00:00:00+00:53:28",
        "2026-01-31T09:30:00-00:00:00.000001": "2026-01-31T09:30:00-00:00:00.000001",
        "0001-01-01T00:00:00+14:00": "0001-01-01T00:00:00+14:00",
    },
    "date": {"2026-01-31": "2026-01-31", " 2024-02-29\n": "2024-02-29", "0001-01-01": "0001-01-01"},
    "time": {
        "09:30": "09:30:00",
        " 09:30:00 ": "09:30:00",
        "09:30:00Z": "09:30:00+00:00",
        "09:30:00.5z": "09:30:00.500000+00:00",
        "09:30:00,0-03:30": "09:30:00-03:30",
        "09:30+01": "09:30:00+01:00",
    },
    "duration": {
        "P1DT2H3M4.5S": "P1DT2H3M4.5S",
        "P2W": "P14D",
        "P1W1D": "P8D",
        "PT90M": "PT1H30M",
        "PT3600S": "PT1H",
        "pt5s": "PT5S",
        "+PT5S": "PT5S",
        "-PT5S": "-PT5S",
        "-PT0S": "PT0S",
        "P0D": "PT0S",
        "PT0.5000000S": "PT0.5S",
        "PT1,25S": "PT1.25S",
        " PT1S ": "PT1S",
        "00:00:05": "PT5S",
        "1:02:03.000004": "PT1H2M3.000004S",
        "36:00:00": "P1DT12H",
        "-00:00:05": "-PT5S",
        "1 day, 0:00:00": "P1D",
        "2 days, 03:04:05.5": "P2DT3H4M5.5S",
        "-1 day, 23:59:55": "-PT5S",
        "-999999999 days, 0:00:00": "-P999999999D",
    },
    "uuid": {
        "12345678-1234-4678-9234-56781234ABCD": "12345678-1234-4678-9234-56781234abcd",
        "{12345678-1234-4678-9234-56781234abcd}": "12345678-1234-4678-9234-56781234abcd",
        "URN:UUID:12345678-1234-4678-9234-56781234abcd": "12345678-1234-4678-9234-56781234abcd",
        " 1234567812344678923456781234abcd ": "12345678-1234-4678-9234-56781234abcd",
    },
    "decimal": {
        "2.50": "2.50",
        " 2.50\n": "2.50",
        "+1": "1",
        "-0": "-0",
        "007": "7",
        "5.": "5",
        ".5": "0.5",
        "1e3": "1E+3",
        "1.5E-10": "1.5E-10",
        "0.000001": "0.000001",
        "0.0000001": "1E-7",
        "9" * 64: "9" * 64,
        "1e-384": "1E-384",
        "9.9e384": "9.9E+384",
        "0e-384": "0E-384",
        5: "5",
        -(10**63) + 1: "-" + "9" * 63,
        0.1: "0.1",
        1e300: "1E+300",
        5e-324: "5E-324",
        -0.0: "-0.0",
    },
    "path": {"": "", "a//b/": "a//b/", " a\n": " a\n", "null": "null", "a" * 32_767: "a" * 32_767},
    "uri": {
        " https://example.com ": "https://example.com",
        "HTTPS://EXAMPLE.com/A": "HTTPS://EXAMPLE.com/A",
        "a:b": "a:b",
        "data:text/plain;base64,AAAA": "data:text/plain;base64,AAAA",
        "http://[v1.x]:/": "http://[v1.x]:/",
        "tel:+1-201-555-0123": "tel:+1-201-555-0123",
    },
    "email": {" ann@example.com ": "ann@example.com", "A@B": "A@B", "a@दिल्ली.example": "a@दिल्ली.example"},
    "ipv4": {" 192.0.2.1 ": "192.0.2.1"},
    "ipv6": {"2001:DB8:0:0:0:0:0:1": "2001:db8::1", " ::1": "::1", "0::": "::"},
    "ip-network": {
        "192.0.2.1": "192.0.2.1/32",
        "192.0.2.0/255.255.255.0": "192.0.2.0/24",
        "2001:DB8::/032": "2001:db8::/32",
        "::1": "::1/128",
    },
    "base64": {" AAAA\n": "AAAA", "AA\r\nAA\nAAA=": "AAAAAAA=", "": "", "\n": ""},
    "regex": {
        "": "",
        " a ": " a ",
        "[^]]": "[^]]",
        "[a[b]": "[a[b]",
        "[^[]": "[^[]",
        "[a-z-9]": "[a-z-9]",
        "(a)(?(1)b|c)": "(a)(?(1)b|c)",
        "[a-\xff]" * 20: "[a-\xff]" * 20,
    },
}

REFUSED: dict[str, dict[Any, str]] = {
    "date-time": {
        "": FORMAT,
        "2026-01-31": FORMAT,
        "20260131T093000": FORMAT,
        "2026-W05-6T09:30:00": FORMAT,
        "2026-01-31  09:30:00": FORMAT,
        "2026-01-31T09": FORMAT,
        "2026-01-31T09:30:00+0100": FORMAT,
        "2026-01-31T09:30:00 +01:00": FORMAT,
        "2026-01-31T09:30:00.": FORMAT,
        "2026-01-31T09:30:00.1234567": FORMAT,
        "2026-01-31T09:30:60": RANGE,
        "2026-01-31T24:00:00": RANGE,
        "2026-02-29T00:00:00": RANGE,
        "0000-01-01T00:00:00": RANGE,
        "2026-01-31T09:30:00+24:00": RANGE,
        "2026-01-31T09:30:00+01:60": RANGE,
        "1769851800": FORMAT,
        "٢026-01-31T09:30:00": FORMAT,
        "2026-01-31T09:30:00−01:00": FORMAT,
        "2026-01-31T09:30:00Z\0": FORMAT,
        1769851800: TYPE,
        1769851800.5: TYPE,
        datetime.date(2026, 1, 31): TYPE,
    },
    "date": {
        "20260131": FORMAT,
        "2026-1-31": FORMAT,
        "2026-01-31T00:00:00": FORMAT,
        "2026-031": FORMAT,
        "2026-02-30": RANGE,
        "2026-13-01": RANGE,
        "0000-01-01": RANGE,
        "31/01/2026": FORMAT,
        "20484": FORMAT,
        20484: TYPE,
        datetime.datetime(2026, 1, 31): TYPE,
    },
    "time": {
        "9:30": FORMAT,
        "0930": FORMAT,
        "T09:30:00": FORMAT,
        "24:00:00": RANGE,
        "09:60": RANGE,
        "23:59:60Z": RANGE,
        "09:30:00+24:00": RANGE,
        "09:30 PM": FORMAT,
        "34200": FORMAT,
        34200: TYPE,
        datetime.time(9, 30, tzinfo=BERLIN): FORMAT,
    },
    "duration": {
        "": FORMAT,
        "P": FORMAT,
        "PT": FORMAT,
        "P1DT": FORMAT,
        "P1Y": FORMAT,
        "P1M": FORMAT,
        "PT1.5H": FORMAT,
        "PT0.0000001S": FORMAT,
        "PT1S1M": FORMAT,
        "--PT1S": FORMAT,
        "5": FORMAT,
        "1:02": FORMAT,
        "00:60:00": FORMAT,
        "1 day": FORMAT,
        "1 day, -1:00:00": FORMAT,
        "1 day, 24:00:00": RANGE,
        "P1000000000D": RANGE,
        "PT" + "9" * 60 + "S": RANGE,
        "PT٥S": FORMAT,
        "PT1ſ": FORMAT,
        5: TYPE,
        5.5: TYPE,
    },
    "uuid": {
        "": FORMAT,
        "{12345678-1234-4678-9234-56781234abcd": FORMAT,
        "12345678123446789234-56781234abcd": FORMAT,
        "12345678-1234-4678-9234-56781234abcg": FORMAT,
        "1" * 31: FORMAT,
        "١" * 32: FORMAT,
        b"\0" * 16: TYPE,
        5: TYPE,
    },
    "decimal": {
        "": FORMAT,
        ".": FORMAT,
        "1_000": FORMAT,
        "1,5": FORMAT,
        "1 000": FORMAT,
        "0x10": FORMAT,
        "NaN": FORMAT,
        "-Infinity": FORMAT,
        "1e": FORMAT,
        "--1": FORMAT,
        "٥": FORMAT,
        "9" * 65: FORMAT,
        "1e385": RANGE,
        "1e-385": RANGE,
        "0e-385": RANGE,
        "1e99999999999999999999": RANGE,
        "." + "1" * 63: RANGE,
        10**64: RANGE,
        -(10**63): RANGE,
        10**100_000: RANGE,
        float("nan"): RANGE,
        float("inf"): RANGE,
        True: TYPE,
        D("NaN"): RANGE,
        D("Infinity"): RANGE,
        D("1" * 65): RANGE,
        None: TYPE,
    },
    "path": {"a\0b": FORMAT, "a" * 32_768: FORMAT, pathlib.PurePosixPath("\0"): FORMAT, b"a": TYPE},
    "uri": {
        "": FORMAT,
        "example.com": FORMAT,
        "/a": FORMAT,
        "//example.com": FORMAT,
        "https:": FORMAT,
        "1a:b": FORMAT,
        "a:b c": FORMAT,
        "a:b\\c": FORMAT,
        "a:%4": FORMAT,
        "a:b#c#d": FORMAT,
        "http://a@b@c/": FORMAT,
        "http://[::1/": FORMAT,
        "http://a:b:c/": FORMAT,
        "https://bücher.example": FORMAT,
    },
    "email": {
        "": FORMAT,
        "ann": FORMAT,
        "@b": FORMAT,
        "a@": FORMAT,
        "a@b@c": FORMAT,
        "a..b@c": FORMAT,
        ".a@b": FORMAT,
        "a b@c": FORMAT,
        "Ann <a@b>": FORMAT,
        "a@b, c@d": FORMAT,
        "a@-b": FORMAT,
        "a@b_c": FORMAT,
        "a@b..c": FORMAT,
        "a@[127.0.0.1]": FORMAT,
        "a@٥.example": FORMAT,
        "é@example.com": FORMAT,
        f"{'a' * 65}@b": FORMAT,
        f"a@{'b' * 64}": FORMAT,
        f"a@{'b.' * 130}c": FORMAT,
    },
    "ipv4": {"256.0.0.1": FORMAT, "1.2.3": FORMAT, "01.2.3.4": FORMAT, "١.2.3.4": FORMAT, "::1": FORMAT, 1: TYPE},
    "ipv6": {"1::2::3": FORMAT, "fe80::1%eth0": FORMAT, "[::1]": FORMAT, "1.2.3.4": FORMAT, 1: TYPE},
    "ip-network": {"192.0.2.1/24": FORMAT, "::1/64": FORMAT, "192.0.2.0/33": FORMAT, "fe80::%1/64": FORMAT, "": FORMAT},
    "base64": {
        "A": FORMAT,
        "AA": FORMAT,
        "AA=": FORMAT,
        "AB==": FORMAT,
        "A A=": FORMAT,
        "-_-_": FORMAT,
        "AA==AA==": FORMAT,
        b"AAAA": TYPE,
    },
    "regex": {
        "(": FORMAT,
        "[[a]": FORMAT,
        "[a--b]": FORMAT,
        "[a&&b]": FORMAT,
        "(?x) # [\n[[a]": FORMAT,
        "(?#[)[[a]": FORMAT,
        "a{2,1}": FORMAT,
        "(?L)a": FORMAT,
        "(" * 1000: FORMAT,
        "a" * 1001: FORMAT,
        "(?i)" + "[a-\uffff]" * 190: FORMAT,
        "[a-\xff]" * 21: FORMAT,
        r"(?i)" + r"[\0-\uffff]" * 80: FORMAT,
        "(a)(?(+1)b)": FORMAT,
        "\0": FORMAT,
        re.compile("a"): TYPE,
    },
}

INSTANCES: dict[str, list[tuple[Any, str]]] = {
    "date-time": [
        (datetime.datetime(2026, 1, 31, 9, 30), "2026-01-31T09:30:00"),
        (datetime.datetime(2026, 7, 1, 9, 30, tzinfo=BERLIN), "2026-07-01T09:30:00+02:00"),
        (datetime.datetime(1890, 1, 1, tzinfo=BERLIN), "1890-01-01T00:00:00+00:53:28"),
        (datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC), "2026-01-31T00:00:00+00:00"),
    ],
    "date": [(datetime.date(2026, 1, 31), "2026-01-31")],
    "time": [
        (datetime.time(9, 30), "09:30:00"),
        (datetime.time(9, 30, tzinfo=datetime.UTC), "09:30:00+00:00"),
        (datetime.time(9, 30, tzinfo=zoneinfo.ZoneInfo("UTC")), "09:30:00+00:00"),
    ],
    "duration": [(datetime.timedelta(seconds=-5), "-PT5S"), (datetime.timedelta.min, "-P999999999D")],
    "uuid": [(uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001")],
    "decimal": [(D("2.50"), "2.50"), (D("1e5"), "1E+5"), (D("-0.0"), "-0.0")],
    "path": [
        (pathlib.Path("a//b/"), "a/b"),
        (pathlib.PurePosixPath("/x"), "/x"),
        (pathlib.PurePath(), "."),
        (pathlib.PureWindowsPath("C:/x"), "C:\\x"),
    ],
    "ipv4": [(ipaddress.IPv4Address("192.0.2.1"), "192.0.2.1")],
    "ipv6": [(ipaddress.IPv6Address("2001:db8:0::1"), "2001:db8::1")],
    "ip-network": [
        (ipaddress.IPv4Network("192.0.2.0/24"), "192.0.2.0/24"),
        (ipaddress.IPv6Network("2001:db8::/32"), "2001:db8::/32"),
    ],
}


class Text(str):
    """A string whose methods must not run."""

    def _fail(self, *args: object) -> Any:
        raise AssertionError("code of a value ran")

    __str__ = __len__ = __eq__ = __hash__ = __getitem__ = __iter__ = strip = encode = isascii = replace = _fail  # type: ignore[assignment]


class Zone(datetime.tzinfo):
    """A time zone whose methods must not run."""

    utcoffset = tzname = dst = Text._fail  # type: ignore[assignment]


class Int(int):
    """An int whose methods must not run."""

    to_bytes = __index__ = __int__ = __format__ = __str__ = __repr__ = bit_length = Text._fail  # type: ignore[assignment]


def subclass(cls: type) -> type:
    return type(
        "Sub",
        (cls,),
        {
            "__str__": Text._fail,
            "isoformat": Text._fail,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
        },
    )


def rows(table: dict[str, dict[Any, str]]) -> list[Any]:
    return [
        pytest.param(name, value, result, id=f"{name}-{index}")
        for name, values in table.items()
        for index, (value, result) in enumerate(values.items())
    ]


def code_of(result: object) -> str:
    assert type(result) is Rejection, result
    return result.code


@pytest.mark.parametrize(("name", "value", "expected"), rows(ACCEPTED))
def test_accepted_spellings_become_the_canonical_text(name: str, value: Any, expected: str) -> None:
    """Lax and result mode accept them; strict mode accepts only the canonical text."""
    assert read_format(name, value, "lax") == expected
    assert read_format(name, value, "result") == expected
    strict = read_format(name, value, "strict")
    if type(value) is str:
        assert strict == expected if value == expected else code_of(strict) == FORMAT
    else:
        assert code_of(strict) == TYPE
    assert read_format(name, expected, "strict") == expected


@pytest.mark.parametrize(("name", "value", "code"), rows(REFUSED))
def test_other_values_are_refused_with_a_code_and_the_example(name: str, value: Any, code: str) -> None:
    """A rejection has the name of the format and a hint, and never the value."""
    results = [read_format(name, value, mode) for mode in MODES]
    is_number = type(value) in (int, float)

    assert [code_of(each) for each in results] == [code, TYPE if is_number else code, code]
    for each in results:
        assert each.expected == FORMATS[name].expected
        assert each.hint.endswith(FORMATS[name].example)
        assert not (type(value) is str and len(value) > 8 and value in each.hint.removesuffix(FORMATS[name].example))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_samples_are_canonical(name: str, mode: Mode) -> None:
    """Every mode returns a sample unchanged, and an instance of each class has the same text."""
    found = FORMATS[name]

    assert found.example in found.samples
    assert len(set(found.samples)) >= 6
    assert [read_format(name, each, mode) for each in found.samples] == [*found.samples]
    for text in found.samples:
        for cls in classes_of(name, text):
            instance = FORMATS[name].maker(cls)(text)
            assert type(instance) is cls
            assert read_format(name, instance, mode) == text


def classes_of(name: str, text: str) -> list[type]:
    """Return the classes that an instance of a string can have on every system."""
    match name:
        case "path":
            return [pathlib.PurePosixPath]
        case "ip-network":
            return [ipaddress.IPv6Network if ":" in text else ipaddress.IPv4Network]
    return [class_of(each) for each in FORMATS[name].classes] or [str]


def class_of(dotted: str) -> type:
    module, _, name = dotted.rpartition(".")
    found: type = getattr(sys.modules[module], name)
    return found


INSTANCE_ROWS = [(name, value, text) for name, pairs in INSTANCES.items() for value, text in pairs]


@pytest.mark.parametrize(("name", "value", "text"), INSTANCE_ROWS, ids=lambda each: str(each)[:40])
@pytest.mark.parametrize("mode", MODES)
def test_instances_of_standard_classes_become_the_canonical_text(name: str, value: Any, text: str, mode: Mode) -> None:
    """Every mode accepts them, only in their own format, and their text makes an equal instance."""
    assert read_format(name, value, mode) == text
    assert read_format(name, FORMATS[name].maker(type(value))(text), mode) == text
    assert {code_of(read_format(each, value, mode)) for each in FORMATS if each != name} == {TYPE}


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("mode", MODES)
def test_subclasses_of_standard_classes_are_refused(name: str, mode: Mode) -> None:
    """None of their code runs, and their name does not matter."""
    for text in FORMATS[name].samples:
        for cls in classes_of(name, text):
            sub = subclass(cls)
            value = FORMATS[name].maker(cls)(text)
            arguments = {"date-time": (2026, 1, 31), "date": (2026, 1, 31), "time": (1,), "duration": (1,)}.get(name)
            instance = sub(*arguments) if arguments else sub(str(value))
            assert code_of(read_format(name, instance, mode)) == TYPE
            assert format_of_class(sub) is None


def test_classes_have_formats() -> None:
    """Only exactly these classes have one."""
    assert {each: format_of_class(class_of(each)) for found in FORMATS.values() for each in found.classes} == {
        "datetime.datetime": "date-time",
        "datetime.date": "date",
        "datetime.time": "time",
        "datetime.timedelta": "duration",
        "uuid.UUID": "uuid",
        "decimal.Decimal": "decimal",
        "pathlib.PurePath": "path",
        "pathlib.PurePosixPath": "path",
        "pathlib.PureWindowsPath": "path",
        "pathlib.Path": "path",
        "pathlib.PosixPath": "path",
        "pathlib.WindowsPath": "path",
        "ipaddress.IPv4Address": "ipv4",
        "ipaddress.IPv6Address": "ipv6",
        "ipaddress.IPv4Network": "ip-network",
        "ipaddress.IPv6Network": "ip-network",
    }
    assert [format_of_class(each) for each in (str, int, type(None), object, Rejection)] == [None] * 5


@pytest.mark.parametrize("value", [datetime.datetime(2026, 1, 1, tzinfo=Zone()), datetime.time(1, tzinfo=Zone())])
def test_foreign_time_zones_are_refused(value: Any) -> None:
    """None of their code runs."""
    name = "time" if type(value) is datetime.time else "date-time"

    assert [code_of(read_format(name, value, mode)) for mode in MODES] == [TYPE] * 3


@pytest.mark.parametrize("name", FORMATS)
def test_string_subclasses_are_flattened_except_in_strict_mode(name: str) -> None:
    """None of their code runs."""
    for text in FORMATS[name].samples:
        results = [read_format(name, Text(text), mode) for mode in ("lax", "result")]
        assert results == [text, text]
        assert [type(each) for each in results] == [str, str]
        assert code_of(read_format(name, Text(text), "strict")) == TYPE


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("decimal", Int(5), "5"),
        ("uuid", uuid.UUID(bytes=b"\0" * 15 + b"\1"), "00000000-0000-0000-0000-000000000001"),
        ("ipv4", ipaddress.IPv4Address(Int(1)), "0.0.0.1"),
        ("ipv6", ipaddress.IPv6Address(Int(1)), "::1"),
        ("ip-network", ipaddress.IPv4Network((0, Int(8))), "0.0.0.0/8"),
    ],
    ids=["decimal", "uuid", "ipv4", "ipv6", "ip-network"],
)
def test_int_subclasses_inside_instances_run_no_code(name: str, value: Any, text: str) -> None:
    """An instance may hold an int subclass; it is read through the slots of int."""
    if name == "uuid":
        object.__setattr__(value, "int", Int(1))

    assert read_format(name, value, "lax") == text


@pytest.mark.parametrize("name", INSTANCES)
def test_damaged_instances_are_refused(name: str) -> None:
    """An instance that was made without its constructor is a value of another type."""
    for text in FORMATS[name].samples:
        for cls in classes_of(name, text):
            if cls.__module__ in ("uuid", "ipaddress"):
                assert code_of(read_format(name, object.__new__(cls), "lax")) == TYPE


def test_ipv6_instances_with_a_zone_id_are_refused() -> None:
    """A zone id is refused in strings too."""
    value = ipaddress.IPv6Address("fe80::1%eth0")

    assert [code_of(read_format("ipv6", value, mode)) for mode in MODES] == [FORMAT] * 3


def test_decimal_text_does_not_depend_on_the_context() -> None:
    """Precision, traps and capitals of the thread change nothing."""
    values = ["1e5", "12345678901234567890.5", D("1e5"), "1e99999999999999999999"]
    expected = [read_format("decimal", each, "lax") for each in values]
    with decimal.localcontext() as context:
        context.prec, context.capitals, context.Emax = 3, 0, 4
        context.clear_traps()
        result = [read_format("decimal", each, "lax") for each in values]

    assert result[:3] == expected[:3] == ["1E+5", "12345678901234567890.5", "1E+5"]
    assert [code_of(each[3]) for each in (result, expected)] == [RANGE, RANGE]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "2026-01-31T09:30:00\ud800"])
def test_lone_surrogates_are_refused(name: str, text: str) -> None:
    """The code says that the encoding is wrong."""
    assert [code_of(read_format(name, text, mode)) for mode in MODES] == [ENCODING] * 3


HOSTILE: dict[str, str] = {
    "letters": "a" * 100_000,
    "digits": "1" * 100_000,
    "other digits": "٣" * 100_000,
    "percent signs": "a:" + "%" * 100_000,
    "user names": "http://" + "a" * 60_000,
    "many at signs": "a@" * 50_000,
    "labels": "a@" + "a." * 100,
    "blanks": " " * 100_000 + "x" + " " * 100_000,
    "NUL": "\0" * 100_000,
    "surrogates": "\ud800" * 100_000,
    "braces": "(" * 100_000,
    "padding": "AAAA" * 50_000 + "=",
    "lines": "\n" * 100_000 + "=",
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_little_time(name: str, text: str) -> None:
    """Length is limited before a string is parsed, and patterns take linear time."""
    start = time.process_time()
    result = read_format(name, text, "lax")

    assert time.process_time() - start < 1
    assert type(result) is Rejection or name in ("path", "base64", "uri", "regex")


@given(st.text(alphabet="[]^-&|~\\ab(?P<1>):#+{,}", max_size=16))
def test_accepted_patterns_compile_without_a_warning(pattern: str) -> None:
    """Patterns that re warns about are refused before they are compiled, so that no warning is shown."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        result = read_format("regex", pattern, "lax")

    assert not shown
    if type(result) is str:
        re.compile(result)


offsets = st.builds(datetime.timezone, st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)))
BUILDERS: dict[str, st.SearchStrategy[Any]] = {
    "date-time": st.datetimes(timezones=st.none() | st.timezones() | offsets),
    "date": st.dates(),
    "time": st.times(timezones=st.none() | offsets),
    "duration": st.timedeltas(),
    "uuid": st.uuids(),
    "decimal": st.decimals(-(10**20), 10**20, places=3)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda n: D(repr(n))),
    "path": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(pathlib.PurePath),
    "ipv4": st.ip_addresses(v=4),
    "ipv6": st.ip_addresses(v=6),
    "ip-network": st.builds(
        lambda number, prefix: ipaddress.ip_network((number, prefix), strict=False),
        st.integers(0, 2**32 - 1),
        st.integers(0, 32),
    ),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_instances_and_texts_convert_both_ways(name: str) -> None:
    """An instance has one text, every mode accepts that text, and the instance of the text equals the first."""

    @given(BUILDERS[name])
    def holds(value: Any) -> None:
        text = read_format(name, value, "lax")
        again = FORMATS[name].maker(type(value))(text)

        assert type(text) is str
        assert [read_format(name, text, mode) for mode in MODES] == [text] * 3
        assert read_format(name, again, "strict") == text
        assert again == value or name in ("date-time", "time")
        if name in ("date-time", "time"):
            assert (again.replace(tzinfo=None), again.utcoffset()) == (value.replace(tzinfo=None), value.utcoffset())

    holds()


spellings = (
    st.text()
    | st.from_regex(r"[-+ ]?[0-9PTZ:.,eE+ -]{0,40}", fullmatch=True)
    | st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-5][0-9](:[0-6][0-9]([.,][0-9]{1,8})?)?([zZ]|[+-][0-9]{2}(:[0-9]{2})?)?",
        fullmatch=True,
    )
    | st.from_regex(
        r"[+-]?P([0-9]{1,3}W)?([0-9]{1,3}D)?T([0-9]{1,3}H)?([0-9]{1,9}M)?([0-9]{1,9}([.,][0-9]{1,8})?S)?",
        fullmatch=True,
    )
    | st.from_regex(r"[0-9A-Fa-f:./]{2,40}", fullmatch=True)
    | st.from_regex(r"[a-z]{1,4}:(//)?[a-z@:./?#%0-9\[\]]{0,20}", fullmatch=True)
    | st.from_regex(r"[A-Za-z0-9+/]{0,8}={0,2}", fullmatch=True)
    | st.decimals().map(str)
    | st.floats().map(repr)
    | st.sampled_from([each for found in FORMATS.values() for each in found.samples])
)


@pytest.mark.slow
@settings(max_examples=5_000 if ALL else 400)
@given(spellings | st.integers() | st.floats() | st.booleans() | st.none() | st.binary())
def test_reading_is_total_and_idempotent(value: Any) -> None:
    """A result is an exact string that every mode accepts unchanged, and strict mode accepts nothing else.

    Each value is read in every format.
    """
    for name in FORMATS:
        result = read_format(name, value, "lax")

        assert type(result) in (str, Rejection), name
        strict = read_format(name, value, "strict")
        assert strict == result if value == result else type(strict) is Rejection, name
        if type(result) is str:
            assert [read_format(name, result, mode) for mode in MODES] == [result] * 3, name


def test_import_loads_no_module_of_a_format() -> None:
    """A spec with a date does not load uuid, decimal, ipaddress or pathlib."""
    code = """
import sys
import neuroscript.coercion.string_formats as formats
formats.read_format("date-time", "2026-01-31T09:30:00Z", "lax")
formats.read_format("uuid", "12345678-1234-4678-9234-567812345678", "lax")
formats.format_of_class(int)
print(sorted({"uuid", "decimal", "ipaddress", "pathlib", "zoneinfo"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


PARSERS: dict[str, Callable[[str], Any]] = {
    "date-time": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "decimal": D,
    "uuid": uuid.UUID,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "ip-network": ipaddress.ip_network,
}


@pytest.mark.parametrize("name", PARSERS)
def test_the_standard_library_reads_the_same_value(name: str) -> None:
    """Each accepted spelling means what the parser of the standard library reads, where it can read it."""
    for spelling, text in ACCEPTED[name].items():
        try:
            expected = PARSERS[name](spelling.strip() if type(spelling) is str else repr(spelling))
        except ValueError:
            continue
        assert PARSERS[name](text) == expected


def test_reference_lists_each_format() -> None:
    """The table of docs/reference/types.md has each format with its canonical text and its class."""
    page = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "types.md").read_text()
    section = page.split("## Formats")[1].split("## Unions")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split(" |")] for line in section.splitlines() if line[:3] == "| `"
    ]

    assert [f"`{name}`" for name in FORMATS] == [row[0] for row in rows]
    for row, entry in zip(rows, FORMATS.values(), strict=True):
        assert f"`{entry.example}`" == row[2]
        assert (row[1] != "") == bool(entry.classes)
        assert entry.name == "path" or all(each.rpartition(".")[2] in row[1] for each in entry.classes)
