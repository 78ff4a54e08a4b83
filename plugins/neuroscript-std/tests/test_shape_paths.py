"""Paths of the shape toolset, called through an engine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuroscript import ArgumentError, Engine, ToolFailed

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
    "a boolean": ([True], f"path[0]: {SEGMENT}, got bool"),
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
    "a key of a string": ("user.name.first", "user.name: expected map, got str"),
    "an index of a string": ("user.name[0]", "user.name: expected list, got str"),
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

    results = [
        engine.call("shape.select", [value, path, options]) for path in ("Key", "KEY", "STRASSE.id", "STRAßE.id")
    ]
    error = failure("shape.select", value, "key", options)

    assert [1, 2, 3, 3] == results
    text = "key: expected one key, got 2 that differ only in case"
    assert ("shape.ambiguous", "model", text) == (error.code, error.retry, error.text)


def test_selected_value_is_a_copy(engine: Engine) -> None:
    """It shares nothing with the argument."""
    result = engine.call("shape.select", [DATA, "user.tags"])

    result.append("more")

    assert ["math", "poetry"] == DATA["user"]["tags"]  # type: ignore[index]


def test_selectmany_returns_a_map(engine: Engine) -> None:
    """With missing_ok, missing values are omitted, but an existing None is not."""
    extracts = {"who": "user.name", "first": ["items", 0, "id"], "gone": "user.email", "none": "user.none"}

    result = engine.call("shape.selectmany", [DATA, extracts, {"missing_ok": True}])

    assert {"who": "Ada", "first": 100, "none": None} == result
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

    result = engine.call("shape.selectmany", [value, extracts, {"case_insensitive": True}])

    assert {str(index): index for index in range(20_000)} == result
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
