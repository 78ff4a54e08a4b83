"""Colors, escape sequences, and readable representations of values."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroscript import ArgumentError, Engine, Handle
from neuroscript_std.str import toolset


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("[red]Hello[reset]", "\x1b[31mHello\x1b[0m"),
        ("[bold][bright][dim][italic][underline]", "\x1b[1m\x1b[1m\x1b[2m\x1b[3m\x1b[4m"),
        ("[blink][reverse][hidden][strike]", "\x1b[5m\x1b[7m\x1b[8m\x1b[9m"),
        ("[black][white][bright-black][gray][bright-white]", "\x1b[30m\x1b[37m\x1b[90m\x1b[90m\x1b[97m"),
        ("[bg-black][bg-white][bg-bright-black][bg-bright-white]", "\x1b[40m\x1b[47m\x1b[100m\x1b[107m"),
        ("[default][bg-default]", "\x1b[39m\x1b[49m"),
        ("[[red]]", "[\x1b[31m]"),
        ("[Red] [ red] [] [bg-] list[0]", "[Red] [ red] [] [bg-] list[0]"),
    ],
)
def test_color_tags(engine: Engine, tagged: str, expected: str) -> None:
    """Tags are lowercase, and other brackets are left unchanged."""
    assert expected == engine.call("str.color", (tagged,))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("\x1b[31;1mred\x1b[m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[?25l\x1b[2J\x1b[1;1H\x1b[0 q", "x"),
        ("\x1b[38:5:1mx", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9d0;title\x9ctext", "text"),
        ("\x1bP1$r0m\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\z\x1bXsos\x1b\\", "xyz"),
        ("\x1bc\x1b7\x1b(B\x1b=x\x1bM", "x"),
        ("\x1b", ""),
        ("a\x1b[31", "a31"),
        ("a\x1b]0;never ends", "a0;never ends"),
        ("\x1b\x1b[0m[31mx", "[31mx"),
        ("\x1b[\x1b[0m31mx", "31mx"),
        ("tab\tline\nnext\x85é [31m 漢", "tab\tline\nnext\x85é [31m 漢"),
    ],
    ids=ascii,
)
def test_escape_sequences_are_removed(engine: Engine, written: str, expected: str) -> None:
    """All sequences are removed, and the introducer of an incomplete one; text stays."""
    assert expected == engine.call("str.stripansi", (written,))


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("\x1b\x9b\x9d\x9c\x07[]\\P0;1m(Bx \x18é")))
def test_result_contains_no_sequence(text: str) -> None:
    """No ESC and no one-character introducer remains, so the result cannot move a cursor or set a title."""
    with Engine(toolsets=[toolset], plugins="none") as engine:
        rest = engine.call("str.stripansi", (text,))

        assert not set("\x1b\x90\x98\x9b\x9c\x9d\x9e\x9f") & set(rest)
        assert rest == engine.call("str.stripansi", (rest,))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("hello",), '"hello"'),
        ((123,), "123"),
        ((123.45,), "123.45"),
        ((2.0,), "2.0"),
        ((True,), "true"),
        ((None,), "<nil>"),
        ((["a", 1],), '["a", 1]'),
        (({"z": 1, "a": {"y": 1, "b": 2}},), '{"a":{"b":2, "y":1}, "z":1}'),
        ((b"12345",), "<5 bytes>"),
        ((Handle("t-1", "tree"),), "<handle t-1>"),
        ((datetime.datetime(2024, 2, 3, 4, 5),), "<2024-02-03T04:05:00>"),
        (('"\\\n\t\x1b\u202eé漢',), '"\\"\\\\\\n\\t\\x1b\\u202eé漢"'),
        (("abcd", 4), '"abcd"'),
        (("abcde", 4), '"a..."'),
        (("abcde", 3), '"..."'),
        (("漢字漢字漢", 4), '"漢..."'),
        (({"longkey": "longtext"}, 5), '{"lo...":"lo..."}'),
        (([[[1]]], 128, 2), "[[...]]"),
        (([1], 128, 0), "..."),
        (("text", 128, 0), '"text"'),
        (([[[[[[1]]]]]],), "[[[[[...]]]]]"),
        (([], 128, 1), "[]"),
        (("x" * 129,), f'"{"x" * 125}..."'),
        ((["x"], None, None), '["x"]'),
    ],
)
def test_inspect(engine: Engine, args: tuple[Any, ...], expected: str) -> None:
    """One line, deterministic, truncated in length and depth, with control characters escaped."""
    assert expected == engine.call("str.inspect", args)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("abc", 2), "str.inspect: max_length: expected int of at least 3, got int out of bounds"),
        (("abc", -1), "str.inspect: max_length: expected int of at least 3, got int out of bounds"),
        (("abc", 10, -1), "str.inspect: max_depth: expected int of at least 0, got int out of bounds"),
    ],
)
def test_inspect_limits_have_a_minimum(engine: Engine, args: tuple[Any, ...], expected: str) -> None:
    """Limits that leave no room for the dots are refused."""
    with pytest.raises(ArgumentError) as caught:
        engine.call("str.inspect", args)

    assert expected == str(caught.value)
