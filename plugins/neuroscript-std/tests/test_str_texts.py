"""Measuring, transforming, joining and splitting strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroscript import Engine
from neuroscript_std.str import toolset

MIB = 1024 * 1024
TOO_LARGE = "the result would exceed 8 MiB; process less text per call"
TOO_MANY = "the result would contain more than 1,000,000 values; process less text per call"


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("length", ("e\u0301😀",), 3),
        ("substring", ("😀é漢", 1, 1), "é"),
        ("substring", ("abc", 2**62, 2**62), ""),
        ("substring", ("abc", 0, 0), ""),
        ("linecount", ("",), 0),
        ("linecount", ("a\r\nb\rc",), 2),
        ("linecount", ("\n",), 1),
        ("trimspace", ("\u3000\u2028\x85x\x1f",), "x\x1f"),
        ("trimprefix", ("aaa", ""), "aaa"),
        ("trimsuffix", ("aaa", "a"), "aa"),
        ("hasprefix", ("abc", ""), True),
        ("hassuffix", ("", "a"), False),
        ("contains", ("", ""), True),
        ("tolower", ("ÄΣ",), "äς"),
        ("toupper", ("ŉ",), "ʼN"),
    ],
)
def test_characters_are_code_points(engine: Engine, name: str, args: tuple[Any, ...], expected: Any) -> None:
    """No tool counts bytes, and ranges past the end are clamped."""
    assert expected == engine.call(f"str.{name}", args)


@pytest.mark.parametrize("args", [("abc", -1, 1), ("abc", 0, -1)], ids=["start", "length"])
def test_negative_start_is_refused(error_of: Callable[..., tuple[str, str, str]], args: tuple[Any, ...]) -> None:
    """Negative numbers do not count from the end."""
    expected = "str.substring: start_index and length must not be negative"

    assert (expected, "str.bounds", "model") == error_of("str.substring", *args)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("aaa", "a", "b"), "bbb"),
        (("aaa", "a", "b", -7), "bbb"),
        (("aaa", "a", "b", 0), "aaa"),
        (("aaa", "a", "b", 2**62), "bbb"),
        (("aaa", "aa", "b"), "ba"),
        (("ab", "", "-"), "-a-b-"),
        (("ab", "", "-", 2), "-a-b"),
        (("ab", "c", "d"), "ab"),
        (("ab", "a", "b", None), "bb"),
    ],
)
def test_replace_counts_from_the_left(engine: Engine, args: tuple[Any, ...], expected: str) -> None:
    """All matches are replaced without a count or with a negative one; an empty string matches between all characters."""
    assert expected == engine.call("str.replace", args)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("text", "text"),
        ('"', '"'),
        (1, "1"),
        (2.0, "2.0"),
        (True, "true"),
        (None, "null"),
        ({"b": [1, "x"], "a": None}, '{"a":null,"b":[1,"x"]}'),
        (b"\xff", '{"$base64":"/w=="}'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_join_writes_other_values_as_json(engine: Engine, value: Any, written: str) -> None:
    """Strings stay unchanged."""
    assert f"<{written}>" == engine.call("str.concat", (["<", value, ">"],))
    assert f"{written}, {written}" == engine.call("str.join", ([value, value], ", "))


def test_join_of_an_empty_list_is_empty(engine: Engine) -> None:
    """Without separators."""
    assert "" == engine.call("str.join", ([], ","))


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("split", ("", ","), [""]),
        ("split", ("", ""), []),
        ("split", (",", ","), ["", ""]),
        ("split", ("é漢😀", ""), ["é", "漢", "😀"]),
        ("split", ("a--b---c", "--"), ["a", "b", "-c"]),
        ("splitwords", (" \t\n",), []),
        ("splitwords", ("a\u00a0b\u2003c\x1fd",), ["a", "b", "c\x1fd"]),
    ],
)
def test_split(engine: Engine, name: str, args: tuple[str, ...], expected: list[str]) -> None:
    """A delimiter preserves empty parts, whitespace leaves none, and an empty delimiter gives characters."""
    assert expected == engine.call(f"str.{name}", args)


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text(min_size=1, max_size=2))
def test_join_reverses_split(text: str, mark: str) -> None:
    """For any string and delimiter."""
    with Engine(toolsets=[toolset], plugins="none") as engine:
        parts = engine.call("str.split", (text, mark))

        assert text == engine.call("str.join", (parts, mark))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("replace", ("a" * 4 * MIB, "a", "b" * 3 * MIB)),
        ("replace", ("a" * MIB, "", "b" * 7 * MIB)),
        ("replace", ("a" * 3 * MIB, "a", "€")),
        ("join", ([1] * 100_000, "," * 7 * MIB)),
        ("concat", (["\x01" * MIB, ["\x01" * 2 * MIB]],)),
        ("toupper", ("ΐ" * 4 * MIB,)),
        ("tojsonstring", ("\x01" * 2 * MIB,)),
        ("inspect", ("\x01" * 4 * MIB, 2**62)),
        ("tohex", ("a" * 5 * MIB,)),
        ("tobase64", ("a" * 7 * MIB,)),
        ("bytestobase64", ("a" * 7 * MIB,)),
        ("replaceregex", ("a", "a" * 1000, "b" * 7 * MIB)),
        ("replaceregex", ("x", f"xx{'y' * 5 * MIB}", "b" * 2 * MIB)),
        ("replaceregex", ("(?s)(.*)", "a" * MIB, "$1" * MIB)),
    ],
    ids=lambda value: value if isinstance(value, str) else "large",
)
def test_result_size_is_limited(
    error_of: Callable[..., tuple[str, str, str]], name: str, args: tuple[Any, ...]
) -> None:
    """To 8 MiB, before the memory is allocated."""
    assert (f"str.{name}: {TOO_LARGE}", "str.too_large", "model") == error_of(f"str.{name}", *args)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("split", ("a" * 1_000_001, "")),
        ("split", ("," * 1_000_000, ",")),
        ("splitwords", ("a " * 1_000_001,)),
        ("parsejsonstring", (f"[{'0,' * 1_000_000}0]",)),
    ],
    ids=["characters", "marks", "words", "JSON"],
)
def test_number_of_result_values_is_limited(
    error_of: Callable[..., tuple[str, str, str]], name: str, args: tuple[Any, ...]
) -> None:
    """By the tool, with its own code, before the engine's limit."""
    assert (f"str.{name}: {TOO_MANY}", "str.too_large", "model") == error_of(f"str.{name}", *args)


def test_limits_are_exact(engine: Engine) -> None:
    """The limits themselves are accepted."""
    assert 8 * MIB == len(engine.call("str.replace", ("a" * 4 * MIB, "a", "bb")))
    assert 1_000_000 == len(engine.call("str.split", ("," * 999_999, ",")))
