"""Values written as JSON and read out of it."""

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

NOT_JSON = "the text is not JSON"

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
def test_a_value_is_written_as_json(engine: Engine, value: Any, expected: str) -> None:
    """Keys are sorted, there are no blanks, Unicode stays, floats stay floats, and what JSON lacks has a stand-in."""
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
def test_json_is_laid_out_in_lines(engine: Engine, args: dict[str, Any], expected: str) -> None:
    """Prefix and indent stand at the beginning of lines, and only where lines are asked for."""
    assert expected == engine.call_named("str.tojsonstring", {"value": {"b": {}, "a": [1]}, **args})


def test_a_line_break_in_a_text_gets_no_prefix(engine: Engine) -> None:
    """The prefix belongs to lines of the layout alone."""
    assert '[\n#  "a\\nb"\n#]' == engine.call("str.tojsonstring", (["a\nb"], True, "#"))


def test_a_layout_of_gigabytes_is_not_begun(told: Callable[..., tuple[str, str, str]]) -> None:
    """Many lines with long beginnings end at 8 MiB."""
    value: Any = [0] * 100_000
    for _ in range(50):
        value = [value]
    expected = "str.tojsonstring: the result would be larger than 8 MiB; work on less text in one call"

    assert (expected, "str.too_large", "model") == told("str.tojsonstring", value, True, " " * 64, " " * 64)


def test_a_long_indent_is_refused(engine: Engine) -> None:
    """The length of prefix and indent is part of the spec."""
    with pytest.raises(ArgumentError) as caught:
        engine.call("str.tojsonstring", ([], True, "", " " * 65))

    expected = "str.tojsonstring: indent: expected string of at most 64 characters, got 65 characters"
    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it goes wrong at line 1, column 1"),
        ('{"a": 1,\n x}', "it goes wrong at line 2, column 2"),
        ("[1] 2", "it goes wrong at line 1, column 5"),
        ("{'a': 1}", "it goes wrong at line 1, column 2"),
        ("\ufeff[]", "it goes wrong at line 1, column 1"),
        ('"a\nb"', "it goes wrong at line 1, column 3"),
        ("01", "it goes wrong at line 1, column 2"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "an object in it gives one key twice"),
        ("[NaN]", "NaN is no JSON number"),
        ("-Infinity", "-Infinity is no JSON number"),
        ("1e999", "a number in it is too large for a float"),
        ("9223372036854775808", "a whole number in it has more than 64 bits; write it as a text"),
        ("9" * 5000, "a whole number in it has more than 64 bits; write it as a text"),
        ('["\\ud800"]', "a text in it has half of a surrogate pair"),
        ('{"\\ud800": 1}', "a text in it has half of a surrogate pair"),
        ("[" * 65 + "]" * 65, "it nests deeper than 64 levels"),
        ("[" * 1_000_000, "it nests deeper than 64 levels"),
        ('{"a":' * 100_000, "it nests deeper than 64 levels"),
    ],
    ids=lambda value: ascii(value[:12]),
)
def test_what_is_not_json_is_refused(told: Callable[..., tuple[str, str, str]], text: str, why: str) -> None:
    """The caller hears what is wrong and where, and nothing of the text."""
    encoded = b64encode(text.encode()).decode()

    for name, given_text in (("parsejsonstring", text), ("parsefromjsonbase64", encoded)):
        expected = f"str.{name}: {NOT_JSON}: {why}"
        assert (expected, "str.not_json", "model") == told(f"str.{name}", given_text)


def test_json_of_bytes_that_are_no_text_is_refused(told: Callable[..., tuple[str, str, str]]) -> None:
    """JSON is UTF-8."""
    expected = f"str.parsefromjsonbase64: {NOT_JSON}: the decoded bytes are not UTF-8"

    assert (expected, "str.not_json", "model") == told("str.parsefromjsonbase64", "/w==")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1), ("1.0", 1.0), ("1e2", 100.0), ("true", True), ("-9223372036854775808", -(2**63)), ('"é"', "é")],
)
def test_a_number_keeps_its_kind(engine: Engine, text: str, expected: Any) -> None:
    """An int stays an int, and a float a float."""
    result = engine.call("str.parsejsonstring", (text,))

    assert (expected, type(expected)) == (result, type(result))


def test_the_deepest_json_is_read(engine: Engine) -> None:
    """64 levels are the last that are taken."""
    assert json.loads("[" * 64 + "]" * 64) == engine.call("str.parsejsonstring", ("[" * 64 + "]" * 64,))


@settings(max_examples=100, deadline=None)
@given(JSON, st.booleans())
def test_what_is_written_is_read_back(value: Any, pretty: bool) -> None:
    """A value of JSON's kinds survives both ways, laid out or not, and other readers agree."""
    with Engine(toolsets=[toolset], plugins="none") as engine:
        text = engine.call("str.tojsonstring", (value, pretty))

        assert repr(value) == repr(json.loads(text)) or value == json.loads(text)
        assert value == engine.call("str.parsejsonstring", (text,))
