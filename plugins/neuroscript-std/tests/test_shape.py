"""The shape toolset, with Path-Lite and Shape-Lite, called through an engine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuroscript import ArgumentError, CallError, Engine, ToolFailed
from neuroscript_std.formats import is_email, is_iso_datetime, is_url
from neuroscript_std.shapes import parse_shape

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "upstream.json"
UPSTREAM = [
    case for case in json.loads(VECTORS.read_text()) if case["tool_or_fn"].startswith(("tool.shape.", "tool.ai."))
]

DATA = {
    "user": {"name": "Ada", "tags": ["math", "poetry"], "none": None, "age": 36},
    "items": [{"id": 100}, {"id": 200, "sub": [[1, 2], [3]]}],
    "a.b": "literal dot",
    "c[0]": "literal bracket",
}


def as_shape_call(case: dict[str, Any]) -> tuple[str, list[Any]]:
    """Convert an upstream case of ``ai`` to a call of ``shape``, whose third argument is a map of options."""
    args = [{"missing_ok": arg} if type(arg) is bool else arg for arg in case["args"]]
    return case["tool_or_fn"].replace("tool.ai.", "tool.shape."), args


@pytest.fixture(scope="module")
def failure(failure: Callable[..., ToolFailed]) -> Callable[..., ToolFailed]:
    """The shared fixture; here the model can fix every failure."""

    def failing(tool: str, *args: Any) -> ToolFailed:
        error = failure(tool, *args)
        assert error.retry == "model"
        return error

    return failing


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["id"])
def test_upstream_cases(engine: Engine, case: dict[str, Any]) -> None:
    """The expectations of upstream's own tests hold here."""
    tool, args = as_shape_call(case)

    assert case["expect"]["value"] == engine.call(tool, args)


# Paths

FOUND = {
    "a key": ("user", DATA["user"]),
    "keys and an index": ("user.tags[1]", "poetry"),
    "an index and a key": ("items[1].id", 200),
    "indexes": ("items[1].sub[0][1]", 2),
    "zeros before an index": ("items[001].id", 200),
    "a list": (["items", 1, "id"], 200),
    "a list with a whole float": (["items", 1.0, "id"], 200),
    "a literal dot": (["a.b"], "literal dot"),
    "a literal bracket": (["c[0]"], "literal bracket"),
    "None that is there": ("user.none", None),
}


@pytest.mark.parametrize(("path", "expected"), FOUND.values(), ids=FOUND)
def test_select_returns_the_value_at_a_path(engine: Engine, path: Any, expected: object) -> None:
    """The path is a string or a list, outermost segment first."""
    assert expected == engine.call("shape.select", [DATA, path])


def test_path_can_start_with_an_index(engine: Engine) -> None:
    """The outermost value can be a list."""
    assert 3 == engine.call("shape.select", [[[1], [2, 3]], "[1][1]"])


VALID = {
    "a key": "a",
    "a key of digits": "0.1",
    "keys with blanks and marks": "first name.e-mail_1.größe.☃",
    "an index": "[0]",
    "indexes": "a[0][1]",
    "all of it": "a.b[0].c",
    "128 segments": ".".join("a" * 128),
    "128 segments with indexes": "a" + "[0]" * 127,
    "a segment of 256": "x" * 256,
    "an index of 18 digits": f"a[{'9' * 18}]",
}


@pytest.mark.parametrize("path", VALID.values(), ids=VALID)
def test_valid_paths(engine: Engine, path: str) -> None:
    """Dots between keys, digits in brackets, and the limits of upstream."""
    assert engine.call("shape.isvalidpath", [path]) is True


INVALID = {
    "nothing": "",
    "a dot": ".",
    "a leading dot": ".a",
    "a trailing dot": "a.",
    "two dots": "a..b",
    "a dot before an index": "a.[0]",
    "a key right behind an index": "a[0]b",
    "an empty index": "a[]",
    "a word as an index": "a[x]",
    "a sign": "a[-1]",
    "a plus": "a[+1]",
    "a blank": "a[ 1]",
    "a fraction": "a[1.5]",
    "digits and letters": "a[1a]",
    "digits of another script": "a[٣]",
    "an open bracket": "a[0",
    "a bracket alone": "a[",
    "a closing bracket": "a]",
    "brackets in brackets": "a[[0]]",
    "129 segments": ".".join("a" * 129),
    "129 segments with indexes": "a" + "[0]" * 128,
    "a segment of 257": "x" * 257,
    "a later segment of 257": "a." + "x" * 257,
    "an index of 19 digits": f"a[{'9' * 19}]",
    "a line break at the end": "a[0]\n",
}


@pytest.mark.parametrize("path", INVALID.values(), ids=INVALID)
def test_invalid_paths(engine: Engine, failure: Callable[..., ToolFailed], path: str) -> None:
    """isvalidpath returns false, and select refuses the path for any value."""
    error = failure("shape.select", {}, path, {"missing_ok": True})

    assert engine.call("shape.isvalidpath", [path]) is False
    expected = "1 to 128 keys and indexes, as a string such as a.b[0] or as a list"
    assert ("shape.bad_path", "model", f"path: expected {expected}, got another string") == (
        error.code,
        error.retry,
        error.text,
    )


SEGMENT = "expected a key of 1 to 256 characters or an integer from 0"
WHOLE = "path: expected 1 to 128 keys and indexes, as a string such as a.b[0] or as a list"
BAD_LISTS = {
    "an empty list": ([], f"{WHOLE}, got a list of 0"),
    "a list of 129": (["a"] * 129, f"{WHOLE}, got a list of 129"),
    "a map": ({"a": 1}, f"{WHOLE}, got dict"),
    "a number": (1, f"{WHOLE}, got int"),
    "an index below 0": (["items", -1], f"path[1]: {SEGMENT}, got another number"),
    "a fraction": ([0.5], f"path[0]: {SEGMENT}, got another number"),
    "a truth value": ([True], f"path[0]: {SEGMENT}, got bool"),
    "None": ([None], f"path[0]: {SEGMENT}, got None"),
    "an empty key": (["a", ""], f"path[1]: {SEGMENT}, got a string of 0"),
    "a key of 257": (["x" * 257], f"path[0]: {SEGMENT}, got a string of 257"),
}


@pytest.mark.parametrize(("path", "text"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_invalid_path_lists(failure: Callable[..., ToolFailed], path: Any, text: str) -> None:
    """Lists have the same limits, and the error names the wrong segment."""
    error = failure("shape.select", DATA, path)

    assert ("shape.bad_path", "model", text) == (error.code, error.retry, error.text)


MISSING = {
    "a key": ("user.email", "user.email"),
    "a key in another case": ("user.NAME", "user.NAME"),
    "an index at the end": ("items[2]", "items[2]"),
    "an index far off": ("items[99999]", "items[99999]"),
    "the first of several": ("x.y.z", "x"),
    "behind None": ("user.none.more", "user.none.more"),
    "an index behind None": ("user.none[0]", "user.none[0]"),
    "a key with a dot": (["user", "a.b"], "user['a.b']"),
    "a key that is not printable": (["a\x1b[2J"], r"['a\x1b[2J']"),
    "a long key": ("x" * 256, "x" * 64 + "…"),
}


@pytest.mark.parametrize(("path", "where"), MISSING.values(), ids=MISSING)
def test_missing_value(engine: Engine, failure: Callable[..., ToolFailed], path: Any, where: str) -> None:
    """The error says where the path ends; with missing_ok the result is None."""
    error = failure("shape.select", DATA, path)

    text = f"{where}: expected a value, got nothing; set missing_ok to allow this"
    assert ("shape.missing", "model", text) == (error.code, error.retry, error.text)
    assert engine.call("shape.select", [DATA, path, {"missing_ok": True}]) is None


def test_none_has_no_values(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """With None as the outermost value, every path is missing."""
    error = failure("shape.select", None, "a")
    assert ("shape.missing", "model") == (error.code, error.retry)
    assert engine.call("shape.select", [None, "a", {"missing_ok": True}]) is None


WRONG = {
    "a key of a list": ("items.id", "items: expected map, got list"),
    "a key of digits of a list": ("items.0", "items: expected map, got list"),
    "an index of a map": ("user[0]", "user: expected list, got dict"),
    "a key of a text": ("user.name.first", "user.name: expected map, got str"),
    "an index of a text": ("user.name[0]", "user.name: expected list, got str"),
    "a key of a number": ("user.age.unit", "user.age: expected map, got int"),
    "an index of the outermost": ("[0]", "value: expected list, got dict"),
}


@pytest.mark.parametrize("options", [{}, {"missing_ok": True}], ids=["as it is", "with missing_ok"])
@pytest.mark.parametrize(("path", "text"), WRONG.values(), ids=WRONG)
def test_path_into_the_wrong_type(
    failure: Callable[..., ToolFailed], path: str, text: str, options: dict[str, Any]
) -> None:
    """A key of a string is an error, not a missing value, so missing_ok does not apply."""
    error = failure("shape.select", DATA, path, options)

    assert ("shape.wrong_type", "model", text) == (error.code, error.retry, error.text)


def test_case_insensitive_paths_are_optional(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """An exact key is preferred; two keys that differ only in case are an error."""
    value = {"Key": 1, "KEY": 2, "Straße": {"ID": 3}}
    options = {"case_insensitive": True}

    came = [engine.call("shape.select", [value, path, options]) for path in ("Key", "KEY", "STRASSE.id", "STRAßE.id")]
    error = failure("shape.select", value, "key", options)

    assert [1, 2, 3, 3] == came
    text = "key: expected one key, got 2 that differ only in case"
    assert ("shape.ambiguous", "model", text) == (error.code, error.retry, error.text)


def test_selected_value_is_a_copy(engine: Engine) -> None:
    """It shares nothing with the argument."""
    came = engine.call("shape.select", [DATA, "user.tags"])

    came.append("more")

    assert ["math", "poetry"] == DATA["user"]["tags"]  # type: ignore[index]


def test_selectmany_returns_a_map(engine: Engine) -> None:
    """With missing_ok, missing values are omitted, but an existing None is not."""
    extracts = {"who": "user.name", "first": ["items", 0, "id"], "gone": "user.email", "none": "user.none"}

    came = engine.call("shape.selectmany", [DATA, extracts, {"missing_ok": True}])

    assert {"who": "Ada", "first": 100, "none": None} == came
    assert {} == engine.call("shape.selectmany", [DATA, {}])


SELECT_MANY = {
    "a missing one": ({"n": "user.name", "e": "user.x"}, "shape.missing", "extracts['e']: user.x: expected a value"),
    "a bad path": ({"e": "a..b"}, "shape.bad_path", "extracts['e']: path: expected 1 to 128 keys and indexes"),
    "a wrong type": ({"e": "user[0]"}, "shape.wrong_type", "extracts['e']: user: expected list, got dict"),
    "a bad path before a missing one": ({"m": "x", "b": ""}, "shape.bad_path", "extracts['b']: path: expected 1"),
    "a long name": ({"x" * 99: "y"}, "shape.missing", f"extracts['{'x' * 64}…']: y: expected a value"),
}


@pytest.mark.parametrize(("extracts", "code", "text"), SELECT_MANY.values(), ids=SELECT_MANY)
def test_selectmany_names_the_failed_extract(
    failure: Callable[..., ToolFailed], extracts: dict[str, Any], code: str, text: str
) -> None:
    """Invalid paths are reported before missing values."""
    error = failure("shape.selectmany", DATA, extracts)

    assert (code, "model") == (error.code, error.retry)
    assert error.text.startswith(text)


def test_missing_ok_applies_only_to_missing_values(failure: Callable[..., ToolFailed]) -> None:
    """A path into the wrong type fails in selectmany as in select."""
    error = failure("shape.selectmany", DATA, {"e": "user.name.first"}, {"missing_ok": True})

    assert "extracts['e']: user.name: expected map, got str" == error.text


@pytest.mark.alone
def test_many_case_insensitive_extracts_are_linear(engine: Engine) -> None:
    """A map is folded once, not once per extract."""
    value = {f"Key{index}": index for index in range(20_000)}
    extracts = {str(index): f"kEY{index}" for index in range(20_000)}
    started = time.perf_counter()

    came = engine.call("shape.selectmany", [value, extracts, {"case_insensitive": True}])

    assert {str(index): index for index in range(20_000)} == came
    assert time.perf_counter() - started < 2


OPTIONS = {
    "an unknown name": (
        "select",
        [{}, "a", {"missing": True}],
        "options['missing']: expected only case_insensitive, missing_ok, got an unknown name of type bool",
    ),
    "a word": (
        "selectmany",
        [{}, {}, {"missing_ok": "yes"}],
        "options['missing_ok']: expected bool, got str (pass true, false, 1 or 0)",
    ),
    "a list": (
        "validate",
        [{}, {}, [True]],
        "options: expected map with keys allow_extra (optional), case_insensitive (optional), got list",
    ),
}


@pytest.mark.parametrize(("tool", "args", "text"), OPTIONS.values(), ids=OPTIONS)
def test_options_are_validated(engine: Engine, tool: str, args: list[Any], text: str) -> None:
    """An unknown name or a wrong type is an argument error."""
    with pytest.raises(ArgumentError) as caught:
        engine.call(f"shape.{tool}", args)

    assert text in str(caught.value)


# Shapes

FITTING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "each type": (
        {"s": "", "i": -1, "f": 0.5, "b": False, "a": None},
        {"s": "string", "i": "int", "f": "float", "b": "bool", "a": "any"},
    ),
    "a whole float is an int": ({"i": 5.0}, {"i": "int"}),
    "an int is a float": ({"f": 5}, {"f": "float"}),
    "texts with a form": (
        {"e": "a@b.com", "u": "https://example.com", "d": "2025-01-01T00:00:00Z"},
        {"e": "email", "u": "url", "d": "isoDatetime"},
    ),
    "an optional field that is there": ({"a": 1}, {"a?": "int"}),
    "an optional field that is not": ({}, {"a?": "int"}),
    "an empty list": ({"a": []}, {"a[]": "int"}),
    "a list": ({"a": ["x", "y"]}, {"a[]": "string"}),
    "a list of anything": ({"a": [None, 1, [2]]}, {"a[]": "any"}),
    "an optional list": ({"a": [1], "b": [2]}, {"a[]?": "int", "b?[]": "int", "c?[]": "int"}),
    "a map": ({"m": {"x": {"y": 1}}}, {"m": {"x": {"y": "int"}}}),
    "a list of maps": ({"m": [{"x": 1}, {"x": 2}]}, {"m[]": {"x": "int"}}),
    "names with dots and blanks": ({"a.b": 1, "first name": "x"}, {"a.b": "int", "first name?": "string"}),
    "a question mark within": ({"a?b": 1, "[]a": 2}, {"a?b": "int", "[]a": "int"}),
}


@pytest.mark.parametrize(("value", "shape"), FITTING.values(), ids=FITTING)
def test_valid_maps(engine: Engine, value: dict[str, Any], shape: dict[str, Any]) -> None:
    """Every field has its type, and there are no other fields."""
    assert engine.call("shape.validate", [value, shape]) is True


MISMATCHES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a missing field": ({}, {"a": "int"}, "a: expected int, got nothing"),
    "a missing list": ({}, {"a[]": "int"}, "a: expected list of int, got nothing"),
    "a missing map": ({}, {"a": {}}, "a: expected map, got nothing"),
    "a missing list of maps": ({}, {"a[]": {}}, "a: expected list of map, got nothing"),
    "a missing field within": ({"a": {}}, {"a": {"b": "email"}}, "a.b: expected email, got nothing"),
    "another type": ({"a": 1}, {"a": "string"}, "a: expected string, got int"),
    "a truth value as an int": ({"a": True}, {"a": "int"}, "a: expected int, got bool"),
    "a truth value as a float": ({"a": True}, {"a": "float"}, "a: expected float, got bool"),
    "a fraction as an int": ({"a": 1.5}, {"a": "int"}, "a: expected int, got float"),
    "a numeric text as an int": ({"a": "1"}, {"a": "int"}, "a: expected int, got str"),
    "a number as a bool": ({"a": 1}, {"a": "bool"}, "a: expected bool, got int"),
    "None": ({"a": None}, {"a?": "string"}, "a: expected string, got None"),
    "None as a list": ({"a": None}, {"a?[]": "any"}, "a: expected list of any, got None"),
    "None as a map": ({"a": None}, {"a": {}}, "a: expected map, got None"),
    "a list where one is meant": ({"a": ["x"]}, {"a": "string"}, "a: expected string, got list"),
    "one where a list is meant": ({"a": "x"}, {"a[]": "string"}, "a: expected list of string, got str"),
    "elements": (
        {"a": [1, "x", 2]},
        {"a[]": "string"},
        "a[0]: expected string, got int; a[2]: expected string, got int",
    ),
    "a field of a map in a list": (
        {"a": [{"b": 1}, {"b": "x"}]},
        {"a[]": {"b": "int"}},
        "a[1].b: expected int, got str",
    ),
    "an element that is no map": ({"a": [1]}, {"a[]": {"b": "int"}}, "a[0]: expected map, got int"),
    "another form": ({"a": "ada"}, {"a": "email"}, "a: expected email, got a string of another format"),
    "no text where one has a form": ({"a": 1}, {"a": "url"}, "a: expected url, got int"),
    "more than is named": ({"a": 1, "b": 2}, {"a": "int"}, "b: expected nothing, got int"),
    "more than is named, within": ({"a": {"x": None}}, {"a": {}}, "a.x: expected nothing, got None"),
    "all of it": (
        {"a": 1, "b": "x", "d": 2},
        {"a": "string", "b": "int", "c": "bool"},
        "a: expected string, got int; b: expected int, got str; c: expected bool, got nothing; d: expected nothing, got int",
    ),
    "names that need quotes": (
        {"a.b": {"": 1, "x\n": 2}},
        {"a.b": {"c[d]": "int"}},
        r"['a.b']['c[d]']: expected int, got nothing; ['a.b']['']: expected nothing, got int; "
        r"['a.b'].x\n: expected nothing, got int",
    ),
}


@pytest.mark.parametrize(("value", "shape", "text"), MISMATCHES.values(), ids=MISMATCHES)
def test_invalid_maps(
    failure: Callable[..., ToolFailed], value: dict[str, Any], shape: dict[str, Any], text: str
) -> None:
    """Every mismatch is reported with the expected and the actual type, and never a value."""
    error = failure("shape.validate", value, shape)

    assert ("shape.mismatch", "model", text) == (error.code, error.retry, error.text)


def test_at_most_twenty_mismatches_are_listed(failure: Callable[..., ToolFailed]) -> None:
    """The others are counted, because an endless message helps no caller."""
    error = failure("shape.validate", {"a": [1] * 50_000}, {"a[]": "string"})

    told = [f"a[{index}]: expected string, got int" for index in range(20)]
    assert "; ".join([*told, "and 49980 more"]) == error.text


def test_allow_extra_applies_at_every_level(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """Also to maps in lists, and to nothing else."""
    shape = {"a": "int", "m": {"b": "int"}, "l[]": {"c": "int"}}
    value = {"a": 1, "x": 0, "m": {"b": 1, "x": 0}, "l": [{"c": 1, "x": 0}]}
    options = {"allow_extra": True}

    assert engine.call("shape.validate", [value, shape, options]) is True
    error = failure("shape.validate", {**value, "a": "x"}, shape, options)
    assert "a: expected int, got str" == error.text


def test_case_insensitive_fields(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """A key can differ in case from its field; two keys for one field are a mismatch."""
    shape = {"Name": "string", "m?": {"Größe": "int"}}
    options = {"case_insensitive": True}

    assert engine.call("shape.validate", [{"NAME": "Ada", "M": {"GRÖSSE": 1}}, shape, options]) is True
    error = failure("shape.validate", {"NAME": "Ada", "name": 1}, shape, options)
    assert "Name: expected one key, got 2 that differ only in case" == error.text
    assert "NAME: expected nothing, got str" in failure("shape.validate", {"NAME": "Ada"}, shape).text


TYPE = "expected one of string, int, float, bool, any, email, url, isoDatetime or a map of fields"
NAME = "expected a name followed by at most one ? and one []"
BAD_SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown type": ({"a": "text"}, f"a: {TYPE}, got another string"),
    "a type in another case": ({"a": "String"}, f"a: {TYPE}, got another string"),
    "a number": ({"a": 123}, f"a: {TYPE}, got int"),
    "a list": ({"a": ["string"]}, f"a: {TYPE}, got list"),
    "None": ({"a": None}, f"a: {TYPE}, got None"),
    "an unknown type within": ({"a[]": {"b?": "x"}}, f"['a[]'].b?: {TYPE}, got another string"),
    "no name": ({"": "int"}, f"['']: {NAME}, got another string"),
    "a suffix alone": ({"?": "int"}, f"?: {NAME}, got another string"),
    "suffixes alone": ({"[]?": "int"}, f"['[]?']: {NAME}, got another string"),
    "one suffix twice": ({"a??": "int"}, f"a??: {NAME}, got another string"),
    "a list of lists": ({"a[][]": "int"}, f"['a[][]']: {NAME}, got another string"),
    "three suffixes": ({"a?[]?": "int"}, f"['a?[]?']: {NAME}, got another string"),
    "one field twice": ({"a": "int", "a?": "int"}, "a?: expected each field once, got another of that name"),
    "all of it": ({"a": 1, "b": 2}, f"a: {TYPE}, got int; b: {TYPE}, got int"),
}


@pytest.mark.parametrize(("shape", "text"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_invalid_shapes(failure: Callable[..., ToolFailed], shape: dict[str, Any], text: str) -> None:
    """The whole shape is checked before the value, and its faults have a separate code."""
    error = failure("shape.validate", {"a": 1}, shape)

    assert ("shape.bad_shape", "model", text) == (error.code, error.retry, error.text)


def test_duplicate_case_insensitive_fields(engine: Engine, failure: Callable[..., ToolFailed]) -> None:
    """Without the option they are two fields."""
    shape = {"a": "int", "A": "int"}

    assert engine.call("shape.validate", [{"a": 1, "A": 2}, shape]) is True
    error = failure("shape.validate", {"a": 1}, shape, {"case_insensitive": True})
    assert "A: expected each field once, got another of that name" == error.text


def nested(levels: int) -> dict[str, Any]:
    shape: dict[str, Any] = {"a": "int"}
    for _ in range(levels):
        shape = {"a": shape}
    return shape


def test_shapes_can_be_nested_64_levels() -> None:
    """The depth limit of an engine applies first; without an engine, the same limit holds."""
    assert parse_shape(nested(64))
    with pytest.raises(ToolFailed) as caught:
        parse_shape(nested(65))

    assert str(caught.value).endswith("expected at most 64 levels of nested shapes, got more")


# Forms of texts

FORMS: dict[str, tuple[Callable[[str], bool], list[str], list[str]]] = {
    "email": (
        is_email,
        [
            "test@example.com",
            "test@sub.example.co.uk",
            "test+alias@example.com",
            "a.b!#$%&'*+/=?^_`{|}~-c@x.y",
            "A1@xn--mnchen-3ya.de",
            f"{'l' * 64}@{'.'.join(['d' * 61] * 4)}.com",
        ],
        [
            "",
            "@",
            "test.example.com",
            "test@",
            "@example.com",
            "test@example",
            "test@ example.com",
            " test@example.com",
            "test@example.com\n",
            "a@b@c.de",
            ".a@b.de",
            "a.@b.de",
            "a..b@c.de",
            "a@.de",
            "a@b..de",
            "a@-b.de",
            "a@b-.de",
            "a@b_c.de",
            "a@127.0.0.1",
            '"a b"@c.de',
            "ä@b.de",
            f"{'l' * 65}@d.com",
            f"a@{'d' * 64}.com",
            f"a@{'.'.join(['d' * 61] * 5)}.com",
        ],
    ),
    "url": (
        is_url,
        [
            "http://example.com",
            "HTTPS://Example.COM",
            "https://example.com/path/to/resource?a=b&c[]=%5B#top".replace("[]", "%5B%5D"),
            "https://sub.domain.com:8080/path",
            "https://user:secret@example.com/",
            "http://localhost",
            "http://my_host:1",
            "http://127.0.0.1/?q=@",
            "http://[::1]:80/",
            "https://example.com?q",
            "https://example.com#top",
            "https://example.com:/",
        ],
        [
            "",
            "example.com",
            "//example.com",
            "ftp://example.com",
            "mailto:a@b.de",
            "javascript://example.com/%0aalert(1)",
            "http:/example.com",
            "http://",
            "http:///path",
            "http://?q",
            "http://:80",
            "http://user@",
            "http://a b.com",
            "http://example.com/a b",
            "http://example.com\n",
            "http://example.com/%",
            "http://example.com/%zz",
            "http://example.com:65536",
            "http://example.com:port",
            "http://example.com:80:80",
            "http://[::1",
            "http://[::g]",
            "http://[127.0.0.1]",
            "http://a..b",
            "http://example.com/<x>",
            "http://münchen.de",
            "not a url",
        ],
    ),
    "isoDatetime": (
        is_iso_datetime,
        [
            "2025-01-01T12:00:00Z",
            "2025-01-01T12:00:00+01:00",
            "2025-01-01T12:00:00-23:59",
            "2025-01-01T12:00:00.12345Z",
            "2024-02-29T23:59:59.999999999Z",
            "0001-01-01T00:00:00Z",
        ],
        [
            "",
            "2025-01-01",
            "12:00:00Z",
            "2025-01-01 12:00:00Z",
            "2025-01-01T12:00:00",
            "2025-01-01T12:00Z",
            "2025-01-01t12:00:00z",
            "2025-01-01T12:00:00Z ",
            "2025-01-01T12:00:00Z\n",
            "2025-02-29T12:00:00Z",
            "2025-13-01T12:00:00Z",
            "2025-01-01T24:00:00Z",
            "2025-01-01T23:59:60Z",
            "2025-01-01T12:00:00.Z",
            "2025-01-01T12:00:00,5Z",
            "2025-01-01T12:00:00+0100",
            "2025-01-01T12:00:00+24:00",
            "0000-01-01T00:00:00Z",
            "20250101T120000Z",
            "٢٠٢٥-01-01T12:00:00Z",
        ],
    ),
}
TEXTS = [(word, text, True) for word, form in FORMS.items() for text in form[1]] + [
    (word, text, False) for word, form in FORMS.items() for text in form[2]
]


@pytest.mark.parametrize(("word", "text", "expected"), TEXTS, ids=[f"{word}-{text!r}"[:60] for word, text, _ in TEXTS])
def test_string_formats(engine: Engine, word: str, text: str, expected: bool) -> None:
    """Upstream's cases, and edge cases of the standards."""
    try:
        came = engine.call("shape.validate", [{"a": text}, {"a": word}])
    except CallError:
        came = False

    assert expected == came


SIZE = 100_000
HOSTILE = {
    "one letter": "a" * SIZE,
    "dots": "a." * (SIZE // 2),
    "at signs": "a@" * (SIZE // 2),
    "a long local part": "a" * SIZE + "@b.de",
    "local dots": "a." * (SIZE // 2) + "@b.de",
    "a long domain": "a@" + "b." * (SIZE // 2) + "!",
    "hyphens": "a@" + "-" * SIZE,
    "a label that is not ended": "a@" + "a-" * (SIZE // 2) + ".de",
    "a long host": "http://" + "a" * SIZE + "!",
    "many at signs": "http://" + "a@" * (SIZE // 2),
    "many colons": "http://" + "a:" * (SIZE // 2),
    "brackets": "http://" + "[" * SIZE,
    "an address": "http://[" + ":" * SIZE + "]",
    "a long path and a wrong end": "http://a/" + "b" * SIZE + " ",
    "percent signs": "http://a/" + "%41" * (SIZE // 3) + "%4",
    "parts of a path": "http://a/" + "b%41" * (SIZE // 4) + " ",
    "slashes": "http://a/" + "/?#" * (SIZE // 3) + "\n",
    "a long port": "http://a:" + "9" * SIZE,
    "a long fraction": "2025-01-01T12:00:00." + "9" * SIZE,
    "digits": "9" * SIZE,
    "a scheme": "http" * (SIZE // 4) + "://a",
    "marks of a scheme": "://" * (SIZE // 3),
}


@pytest.mark.alone
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("word", FORMS)
def test_hostile_strings_are_refused_quickly(word: str, text: str) -> None:
    """The checks do not backtrack, so 100 kB take a fraction of 0.2 seconds."""
    started = time.perf_counter()

    fits = FORMS[word][0](text)

    assert fits is False
    assert time.perf_counter() - started < 0.2


@pytest.mark.alone
def test_hostile_paths_and_shapes_are_refused_quickly(engine: Engine) -> None:
    """At 100 kB, neither language has slow inputs."""
    texts = ["a" * SIZE, "a." * (SIZE // 2), "[0]" * (SIZE // 3), "[" * SIZE, "[" + "0" * SIZE, "." * SIZE]
    names = [text + suffix for text in ("a" * SIZE, "?" * SIZE, "[]" * (SIZE // 2), "\n" * SIZE) for suffix in "?a"]
    started = time.perf_counter()

    valid = [engine.call("shape.isvalidpath", [text]) for text in texts]
    for name in names:
        with pytest.raises(ToolFailed):
            engine.call("shape.validate", [{}, {name: "int", "b": 0}])

    assert [False] * len(texts) == valid
    assert time.perf_counter() - started < 1
