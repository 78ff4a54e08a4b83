"""JSON text: how many values it holds is known before it is parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import calls_in, functions_in, seconds_in

from neuroscript import ArgSpec, ArgType, ArgumentError, Engine, SizeLimits, ToolCall, Toolset, ToolSpec
from neuroscript.io.text import MAX_VALUES, NotJSON, has_more_values, parse_json

marks = st.text('a,[]{}":\\ é\u2028', max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | marks,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(marks, inner, max_size=4),
    max_leaves=30,
)


def count(value: Any) -> int:
    """Return how many values there are, keys not counted."""
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


@given(values, st.sampled_from([None, 0, 2]), st.booleans())
def test_the_number_of_values_is_exact(value: Any, indent: int | None, ascii_only: bool) -> None:
    """Whatever the strings hold, with blanks or without, escaped or not."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    number = count(value)

    assert not has_more_values(text, number)
    assert has_more_values(text, number - 1)


@given(st.text('a,[]{}":\\ 1', max_size=30), st.integers(1, 5))
def test_text_that_is_not_json_is_an_error_in_any_case(text: str, most: int) -> None:
    """Which one does not matter; JSON with fewer values is not refused."""
    try:
        number = count(json.loads(text))
    except ValueError:
        with pytest.raises(NotJSON):
            parse_json(text, most)
    else:
        assert has_more_values(text, most) == (number > most)


MANY = {
    "numbers": "0",
    "strings": '"a"',
    "strings with commas": '"a,b,c"',
    "escapes": '"\\\\\\",\\""',
    "empty arrays": "[]",
    "empty objects": "{ }",
    "objects": '{"a": 1}',
}


@pytest.mark.parametrize("item", MANY.values(), ids=MANY)
def test_too_many_values_are_not_parsed(item: str) -> None:
    """The parser is not called, and the error says how many there may be."""
    text = f"[{','.join([item] * 20_000)}]"

    called = {code.co_name for code in functions_in(lambda: parse_json(text, 20_000))}
    with pytest.raises(NotJSON) as caught:
        parse_json(text, 20_000)

    assert not called & {"loads", "decode", "raw_decode"}
    assert (caught.value.code, caught.value.hint) == ("limit.nodes", "the JSON text has more than 20000 values")
    assert len(parse_json(f"[{','.join([item] * 9_999)}]", 20_000)) == 9_999


@pytest.mark.parametrize("item", MANY.values(), ids=MANY)
def test_values_are_counted_in_linear_time(item: str) -> None:
    """Twice the text takes twice the time, and the same number of calls."""
    few, many = (f"[{','.join([item] * size)}]" for size in (200_000, 400_000))

    assert calls_in(lambda: has_more_values(few, 1_000)) == calls_in(lambda: has_more_values(many, 1_000))
    assert seconds_in(lambda: has_more_values(many, 1_000)) < 3.5 * seconds_in(lambda: has_more_values(few, 1_000))


def test_commas_in_strings_are_no_values() -> None:
    """JSON text that is full of them is accepted, also with escaped quotes before them."""
    text = json.dumps({"a": ',",[{' * 100_000})

    assert parse_json(text, 2) == json.loads(text)
    assert not has_more_values(text, 2)


def test_a_reader_without_a_limit_of_its_own_has_one() -> None:
    """Files, replies and answers of servers are read with it."""
    text = f"[{','.join(['0'] * MAX_VALUES)}]"

    with pytest.raises(NotJSON) as caught:
        parse_json(text)

    assert caught.value.code == "limit.nodes"
    assert len(parse_json(text[:-3] + "]")) == MAX_VALUES - 1


@pytest.fixture
def engine() -> Engine:
    """Return an engine that takes 10 values in one call, and has tools of a list, a map and a vector."""
    tools = Toolset("g")
    for name, kind in (("list", ArgType.LIST), ("map", ArgType.MAP), ("vector", ArgType.EMBEDDING)):
        spec = ToolSpec(f"t{name}", "g", (ArgSpec("a", kind),), return_type=ArgType.INT)
        tools.add(spec, lambda rt, a: len(a))
    return Engine(toolsets=[tools], plugins="none", size_limits=SizeLimits(nodes=10))


FITS = {
    "tlist": ("[1, 2, 3, 4, 5, 6, 7, 8, 9]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"),
    "tmap": ('{"a": [1, 2, 3, 4, 5, 6, "a,b"], "b": ","}', '{"a": [1, 2, 3, 4, 5, 6, "a,b"], "b": ",", "c": 5}'),
    "tvector": ("[1, 2, 3, 4, 5, 6, 7, 8, 9]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"),
}


@pytest.mark.parametrize("tool", FITS)
def test_the_limit_of_values_is_that_of_the_engine(engine: Engine, tool: str) -> None:
    """JSON text has the limit of the values that it stands for, in a container and as all arguments of a call."""
    fits, exceeds = FITS[tool]
    size = len(json.loads(fits))

    assert engine.call(f"g.{tool}", [fits]) == engine.call(f"g.{tool}", [json.loads(fits)]) == size
    assert engine.execute(ToolCall(f"g.{tool}", f'{{"a": {fits}}}')).value == size
    assert engine.execute(ToolCall(f"g.{tool}", f"[{fits}]")).value == size
    for value in (exceeds, json.loads(exceeds)):
        with pytest.raises(ArgumentError) as caught:
            engine.call(f"g.{tool}", [value])
        (problem,) = caught.value.problems
        assert (problem.where[:1], problem.expected, problem.got) == ("a", "at most 10 values in one call", "more")
        assert (caught.value.code, caught.value.retry) == ("limit.nodes", "model")
    for text in (f'{{"a": {exceeds}}}', f"[{exceeds}]"):
        error = engine.execute(ToolCall(f"g.{tool}", text)).error
        (decision,) = engine.check([ToolCall(f"g.{tool}", text)])
        assert error is not None
        assert str(error) == f"g.{tool}: expected at most 10 values in one call, got more"
        assert (error.code, error.retry) == (decision.code, decision.retry) == ("limit.nodes", "model")
