"""The error toolset, called through an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuroscript import CallError, Engine, ToolFailed

VECTORS = Path(__file__).parents[3] / "tests" / "vectors" / "upstream.json"
UPSTREAM = [case for case in json.loads(VECTORS.read_text()) if case["tool_or_fn"].startswith("tool.error.")]
CODES = {"toolset-100": "coercion.type", "toolset-101": "error.bad_code"}


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["id"])
def test_upstream_cases(engine: Engine, case: dict[str, Any]) -> None:
    """The expectations of upstream's own tests hold here."""
    with pytest.raises(CallError) as caught:
        engine.call(case["tool_or_fn"], case["args"])

    assert (CODES[case["id"]], "model") == (caught.value.code, caught.value.retry)


ACCEPTED = {
    "a word": ("NOT_FOUND", "NOT_FOUND"),
    "nothing": ("", ""),
    "an int": (404, 404),
    "a float stays one": (404.0, 404.0),
    "digits": ("404", 404),
    "digits with blanks and a sign": (" -7 ", -7),
    "a whole number with a point": ("5.0", 5),
    "a whole number with an exponent": ("1e3", 1000),
    "a fraction": ("4.5", 4.5),
    "the largest int": ("9223372036854775807", 2**63 - 1),
    "digits that no 64 bits hold": ("9223372036854775808", "9223372036854775808"),
    "a whole number that no 64 bits hold": ("1e30", "1e30"),
    "no finite number": ("nan", "nan"),
    "digits with a mark of Python's": ("1_000", "1_000"),
    "digits of another script": ("٤٠٤", "٤٠٤"),
}


@pytest.mark.parametrize(("code", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_numeric_string_codes_become_numbers(engine: Engine, code: Any, expected: Any) -> None:
    """An int if possible, otherwise a float, and a string if no number is exact."""
    result = engine.call("error.new", [code, "what happened"])

    assert repr({"code": expected, "message": "what happened"}) == repr(result)


REFUSED = {
    "a boolean": (False, "bool"),
    "a list": ([1], "list"),
    "a map": ({"code": 1}, "dict"),
    "bytes": (b"1", "bytes"),
}


@pytest.mark.parametrize(("code", "got"), REFUSED.values(), ids=REFUSED)
def test_code_of_another_type_is_refused(engine: Engine, code: Any, got: str) -> None:
    """A boolean is neither a string nor a number."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("error.new", [code, "what happened"])

    assert f"error.new: code: expected a string or a number, got {got}" == str(caught.value)
    assert (caught.value.code, caught.value.retry) == ("error.bad_code", "model")
