"""The whole `str` toolset: the tools of upstream with complete specs, and upstream's cases."""

from __future__ import annotations

from typing import Any

import pytest

from neuroscript import UNSET, CallError, Engine, Example
from neuroscript_std.str import toolset

UPSTREAM = """
    bytesfrombase64 bytestobase64 color compress concat contains decompress findallregex frombase64 fromhex hasprefix
    hassuffix inspect join length linecount matchregex parsefromjsonbase64 parsejsonstring replace replaceregex split
    splitwords stripansi substring tobase64 tohex tojsonstring tolower toupper trimprefix trimspace trimsuffix
"""

EXAMPLES = [
    pytest.param(tool.name, example, id=f"{tool.spec.name}-{index}")
    for tool in toolset
    for index, example in enumerate(tool.spec.examples, 1)
]

CASES: list[tuple[str, str, list[Any], Any]] = [
    ("toolset-010", "length", ["hello"], 5),
    ("toolset-011", "length", [""], 0),
    ("toolset-013", "length", [123], "coercion.type"),
    ("toolset-014", "substring", ["abcdef", 1, 3], "bcd"),
    ("toolset-018", "substring", ["你好世界", 1, 2], "好世"),
    ("toolset-019", "substring", ["abcdef", 6, 1], ""),
    ("toolset-021", "substring", ["abcdef", 3, 10], "def"),
    ("toolset-022", "substring", ["hello", 1.5, 3.5], "coercion.fraction"),
    ("toolset-024", "tolower", ["HELLO"], "hello"),
    ("toolset-025", "trimspace", ["  hello  "], "hello"),
    ("toolset-027", "trimprefix", ["hello world", "bye"], "hello world"),
    ("toolset-030", "replace", ["hello world", "l", "X", 1], "heXlo world"),
    ("toolset-031", "replace", ["ababab", "ab", "cd", 2.7], "coercion.fraction"),
    ("toolset-032", "replace", ["abc", "a", "b", "c"], "coercion.format"),
    ("toolset-033", "contains", ["hello world", "world"], True),
    ("toolset-038", "split", ["abc", ""], ["a", "b", "c"]),
    ("toolset-040", "splitwords", [""], []),
    ("toolset-041", "join", [["a", "b", "c"], ","], "a,b,c"),
    ("toolset-044", "join", [["a", 1, True], ","], "a,1,true"),
    ("toolset-046", "linecount", ["hello"], 1),
    ("toolset-047", "linecount", ["hello\n"], 1),
    ("toolset-048", "linecount", ["\n\n\n"], 3),
    ("toolset-050", "tobase64", ["hello world"], "aGVsbG8gd29ybGQ="),
    ("toolset-051", "frombase64", ["aGVsbG8gd29ybGQ"], "str.not_base64"),
    ("toolset-052", "tohex", ["hello"], "68656c6c6f"),
    ("toolset-053", "fromhex", ["68656c6c6g"], "str.not_hex"),
    ("toolset-054", "fromhex", ["68656c6c6"], "str.not_hex"),
    ("toolset-056", "decompress", ["aGVsbG8="], "str.not_gzip"),
    ("toolset-058", "parsefromjsonbase64", ["WyIxIiwyLCJ0aHJlZSJd"], ["1", 2, "three"]),
    ("toolset-059", "parsejsonstring", ['{"key": "value"}'], {"key": "value"}),
    ("toolset-060", "parsejsonstring", ['{"key": }'], "str.not_json"),
    ("toolset-061", "parsejsonstring", [""], "str.not_json"),
    ("toolset-062", "tojsonstring", [{"a": "one", "b": 2.0}], '{"a":"one","b":2.0}'),
    ("toolset-063", "tojsonstring", [None], "null"),
    ("toolset-064", "tojsonstring", [{"a": "one"}, True], '{\n  "a": "one"\n}'),
    ("toolset-066", "tojsonstring", [{}, "not-a-bool"], "coercion.bool"),
    (
        "toolset-072",
        "inspect",
        ["this is a very long string that should be truncated by the inspect tool to show its functionality", 32],
        '"this is a very long string th..."',
    ),
    ("toolset-074", "matchregex", ["[", "abc"], "str.bad_pattern"),
    ("toolset-075", "findallregex", [r"\w+", "one two,three"], ["one", "two", "three"]),
]


def outcome(engine: Engine, name: str, args: Any) -> Any:
    """Return the result of a call, or its error code."""
    try:
        return engine.call_named(name, args) if isinstance(args, dict) else engine.call(name, args)
    except CallError as error:
        assert error.retry == "model"
        return error.code


def types_in(value: Any) -> Any:
    """Return a value with the type of each leaf in its place, because 1, 1.0 and True are equal."""
    match value:
        case list():
            return [types_in(each) for each in value]
        case dict():
            return {key: types_in(each) for key, each in value.items()}
        case _:
            return type(value)


def test_toolset_has_all_upstream_tools() -> None:
    """All 33, by their canonical names, and no others."""
    names = [tool.name for tool in toolset]

    assert sorted(f"str.{name}" for name in UPSTREAM.split()) == sorted(names)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_are_correct(engine: Engine, name: str, example: Example) -> None:
    """Each gives its result with the exact type, or fails with its code."""
    expected = example.result if example.result is not UNSET else example.error

    result = outcome(engine, name, example.args)

    assert (expected, types_in(expected)) == (result, types_in(result))


@pytest.mark.parametrize("name", [tool.name for tool in toolset])
def test_specs_are_complete(name: str) -> None:
    """Every field has text, other tools are named, and examples show results and an error."""
    spec = {tool.name: tool.spec for tool in toolset}[name]

    assert all((spec.description, spec.return_help, spec.error_conditions, *(arg.description for arg in spec.args)))
    assert any(tool.name in spec.when_to_use for tool in toolset if tool.name != name)
    assert sum(example.result is not UNSET for example in spec.examples) >= 2
    assert any(example.error for example in spec.examples)


@pytest.mark.parametrize("field", ["description", "when_to_use"])
def test_descriptions_are_unique(field: str) -> None:
    """So a model can distinguish any two tools."""
    texts = {getattr(tool.spec, field) for tool in toolset}

    assert len(toolset) == len(texts)


def test_every_tool_is_pure() -> None:
    """No tool needs anything from its host."""
    policies = {(tool.policy.effects, tool.policy.capabilities) for tool in toolset}

    assert {(("pure",), ())} == policies


@pytest.mark.parametrize(("name", "args", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_upstream_cases(engine: Engine, name: str, args: list[Any], expected: Any) -> None:
    """The expectations of upstream's own tests hold here."""
    result = outcome(engine, f"tool.str.{name}", args)

    assert (expected, types_in(expected)) == (result, types_in(result))
