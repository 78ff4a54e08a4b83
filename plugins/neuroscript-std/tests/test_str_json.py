"""JSON serialization and parsing."""

from __future__ import annotations

import datetime
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroscript import ArgumentError, Engine, Handle
from neuroscript_std.str import toolset

NOT_JSON = "invalid JSON"

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (2, "2"),
        (2.0, "2.0"),
        (1e300, "1e+300"),
        ("<a>&é\u2028\n", '"<a>&é\u2028\\n"'),
        ({"b": 1, "a": {"d": [], "c": {}}}, '{"a":{"c":{},"d":[]},"b":1}'),
        (b"\xff", '{"$base64":"/w=="}'),
        ([Handle("tree-1", "tree")], '["tree-1"]'),
        (datetime.datetime(2024, 2, 3, tzinfo=datetime.UTC), '"2024-02-03T00:00:00+00:00"'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tojsonstring(engine: Engine, value: Any, expected: str) -> None:
    """Sorted keys, no whitespace, Unicode unescaped, floats stay floats; other types have a JSON form."""
    assert expected == engine.call("str.tojsonstring", (value,))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"pretty_print": True}, '{\n  "a": [\n    1\n  ],\n  "b": {}\n}'),
        ({"pretty_print": True, "prefix": "# ", "indent": "\t"}, '{\n# \t"a": [\n# \t\t1\n# \t],\n# \t"b": {}\n# }'),
        ({"pretty_print": True, "indent": ""}, '{\n"a": [\n1\n],\n"b": {}\n}'),
        ({"pretty_print": "true", "prefix": None}, '{\n  "a": [\n    1\n  ],\n  "b": {}\n}'),
        ({"prefix": "#"}, '{"a":[1],"b":{}}'),
    ],
    ids=["plain", "prefix", "no-indent", "defaults", "compact"],
)
def test_pretty_print(engine: Engine, args: dict[str, Any], expected: str) -> None:
    """Prefix and indent apply only with pretty_print."""
    assert expected == engine.call_named("str.tojsonstring", {"value": {"b": {}, "a": [1]}, **args})


def test_newline_in_a_string_gets_no_prefix(engine: Engine) -> None:
    """The prefix applies only to lines of the layout."""
    assert '[\n#  "a\\nb"\n#]' == engine.call("str.tojsonstring", (["a\nb"], True, "#"))


def test_pretty_print_is_limited(error_of: Callable[..., tuple[str, str, str]]) -> None:
    """Many lines with long prefixes stop at 8 MiB."""
    value: Any = [0] * 100_000
    for _ in range(50):
        value = [value]
    expected = "str.tojsonstring: the result would exceed 8 MiB; process less text per call"

    assert (expected, "str.too_large", "model") == error_of("str.tojsonstring", value, True, " " * 64, " " * 64)


def test_prefix_and_indent_are_limited(engine: Engine) -> None:
    """The limits are part of the spec."""
    with pytest.raises(ArgumentError) as caught:
        engine.call("str.tojsonstring", ([], True, "", " " * 65))

    expected = "str.tojsonstring: indent: expected string of at most 64 characters, got 65 characters"
    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "syntax error at line 1, column 1"),
        ('{"a": 1,\n x}', "syntax error at line 2, column 2"),
        ("[1] 2", "syntax error at line 1, column 5"),
        ("{'a': 1}", "syntax error at line 1, column 2"),
        ("\ufeff[]", "syntax error at line 1, column 1"),
        ('"a\nb"', "syntax error at line 1, column 3"),
        ("01", "syntax error at line 1, column 2"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "an object in it has a duplicate key"),
        ("[NaN]", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
        ("1e999", "a number in it is too large for a float"),
        ("9223372036854775808", "it contains an integer of more than 64 bits; write it as a string"),
        ("9" * 5000, "it contains an integer of more than 64 bits; write it as a string"),
        ('["\\ud800"]', "a string in it contains a lone surrogate"),
        ('{"\\ud800": 1}', "a string in it contains a lone surrogate"),
        ("[" * 65 + "]" * 65, "it is nested deeper than 64 levels"),
        ("[" * 1_000_000, "it is nested deeper than 64 levels"),
        ('{"a":' * 100_000, "it is nested deeper than 64 levels"),
    ],
    ids=lambda value: ascii(value[:12]),
)
def test_invalid_json_is_refused(error_of: Callable[..., tuple[str, str, str]], text: str, why: str) -> None:
    """The error says what is wrong and where, and quotes nothing."""
    encoded = b64encode(text.encode()).decode()

    for name, given_text in (("parsejsonstring", text), ("parsefromjsonbase64", encoded)):
        expected = f"str.{name}: {NOT_JSON}: {why}"
        assert (expected, "str.not_json", "model") == error_of(f"str.{name}", given_text)


def test_json_must_be_utf8(error_of: Callable[..., tuple[str, str, str]]) -> None:
    """Other bytes in Base64 are refused."""
    expected = f"str.parsefromjsonbase64: {NOT_JSON}: the decoded bytes are not UTF-8"

    assert (expected, "str.not_json", "model") == error_of("str.parsefromjsonbase64", "/w==")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("1.0", 1.0), ("1e2", 100.0), ("true", True), ("-9223372036854775808", -(2**63)), ('"é"', "é")],
)
def test_numbers_keep_their_type(engine: Engine, text: str, expected: Any) -> None:
    """An int stays an int, and a float a float."""
    result = engine.call("str.parsejsonstring", (text,))

    assert (expected, type(expected)) == (result, type(result))


def test_json_depth_limit_is_exact(engine: Engine) -> None:
    """64 levels are accepted."""
    assert json.loads("[" * 64 + "]" * 64) == engine.call("str.parsejsonstring", ("[" * 64 + "]" * 64,))


@settings(max_examples=100, deadline=None)
@given(JSON, st.booleans())
def test_json_round_trip(value: Any, pretty: bool) -> None:
    """For any JSON value, with or without layout, and with other parsers."""
    with Engine(toolsets=[toolset], plugins="none") as engine:
        text = engine.call("str.tojsonstring", (value, pretty))

        assert repr(value) == repr(json.loads(text)) or value == json.loads(text)
        assert value == engine.call("str.parsejsonstring", (text,))
