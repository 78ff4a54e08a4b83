"""Arguments: what is said of those that do not fit, and what becomes of those that are absent or None."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest

from neuroscript import (
    UNSET,
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    Problem,
    SizeLimits,
    Toolset,
    ToolSpec,
    bind,
    bind_named,
    coerce,
)
from neuroscript.coercion.context import CoercionSettings
from neuroscript.errors import MAX_PROBLEMS
from neuroscript.spec.binding import bind_arguments

INT, STRING, SLICE_INT = ArgType.INT, ArgType.STRING, ArgType.SLICE_INT

PAIR = ToolSpec("pair", "g", (ArgSpec("first", INT), ArgSpec("second", STRING, required=False)))
TEXTS = ToolSpec("words", "g", (ArgSpec("glue", STRING), ArgSpec("words", STRING)), variadic=True)


@pytest.mark.parametrize(
    ("way", "spec", "given", "text"),
    [
        (bind, PAIR, (), "g.pair: first: expected int, got nothing"),
        (bind, PAIR, (None,), "g.pair: first: expected int, got None"),
        (bind, PAIR, (1, "a", 2), "g.pair: expected at most 2 arguments, got 3"),
        (bind, PAIR, ("x", 5), "g.pair: first: expected int, got str (a string must be a decimal integer, such as 42); "
         "second: expected string, got int"),
        (bind, PAIR, {"first": 1}, "g.pair: expected a list or tuple of arguments, got dict (use call_named for arguments by name"
         ")"),
        (bind, PAIR, "12", "g.pair: expected a list or tuple of arguments, got str"),
        (bind_named, PAIR, [1], "g.pair: expected a dict of arguments by name, got list (use call for positional arguments)"),
        (bind_named, PAIR, {"frist": 1}, "g.pair: first: expected int, got nothing; frist: expected only first, second, "
         "got an unknown name of type int (did you mean first?)"),
        (bind_named, PAIR, {"first": 1, 5: 2}, "g.pair: expected string keys, got a key of type int"),
        (bind_named, PAIR, {"first": 1, "\x1b[2J": 2}, "g.pair: \\x1b[2J: expected only first, second, got an unknown name of type"
         " int"),
        (bind_named, ToolSpec("none", "g"), {"x": 1}, "g.none: x: expected nothing, got an unknown name of type int"),
        (bind, ToolSpec("none", "g"), (1,), "g.none: expected at most 0 arguments, got 1"),
        (bind, TEXTS, (",",), "g.words: words: expected at least one string, got nothing"),
        (bind, TEXTS, (",", "a", 5, None), "g.words: words[1]: expected string, got int; words[2]: expected string, got "
         "None"),
        (bind_named, TEXTS, {"glue": ",", "words": "a"}, "g.words: words: expected list of string, got str (write a "
         'JSON array, such as ["a", "b"])'),
        (bind_named, TEXTS, {"glue": ",", "words": []}, "g.words: words: expected at least one string, got nothing"),
    ],
)  # fmt: skip
def test_every_problem_is_named_at_once(way: Any, spec: ToolSpec, given: Any, text: str) -> None:
    """Count, unknown, missing and mistyped arguments in one text, with places as in Python."""
    with pytest.raises(ArgumentError) as caught:
        way(spec, given)

    assert text == str(caught.value)


def test_problems_are_data_too() -> None:
    """A host that presents them in another way does not have to parse the message."""
    with pytest.raises(ArgumentError) as caught:
        bind(ToolSpec("t", "g", (ArgSpec("xs", SLICE_INT), ArgSpec("n", INT))), ([1, "2.5"],))

    hint = "a string must be a decimal integer, such as 42"
    assert caught.value.problems == (
        Problem("xs[1]", "coercion.format", "int", "str", hint),
        Problem("n", "arg.missing", "int", "nothing"),
    )
    assert ("g.t", "arg.invalid", 4, "model") == (
        caught.value.tool,
        caught.value.code,
        caught.value.number,
        caught.value.retry,
    )


def test_at_most_a_hundred_problems_are_described_and_the_rest_counted() -> None:
    """A list of a thousand bad elements makes one short text, which names twenty."""
    with pytest.raises(ArgumentError) as caught:
        bind(ToolSpec("t", "g", (ArgSpec("xs", SLICE_INT),)), ([None] * 1000,))

    error = caught.value
    assert (len(error.problems), error.unlisted, error.total) == (MAX_PROBLEMS, 900, 1000)
    assert str(error) == f"g.t: {''.join(f'xs[{n}]: expected int, got None; ' for n in range(20))}and 980 more"
    assert (error.code, error.retry) == ("arg.invalid", "model")
    assert (str(pickle.loads(pickle.dumps(error))), error.total) == (str(error), 1000)


def test_an_error_that_is_made_of_many_problems_describes_a_hundred() -> None:
    """The caller does not have to count them; they share one code only if all of them have it."""
    for count, code in ((100, "arg.type"), (101, "arg.invalid")):
        error = ArgumentError([Problem("", "arg.type", "int", "str")] * count)

        assert (len(error.problems), error.total, error.code, error.retry) == (100, count, code, "model")


@pytest.mark.parametrize(
    ("rule", "given", "code"),
    [
        (ArgSpec("x", INT, choices=(1, 2)), 3, "coercion.choice"),
        (ArgSpec("x", ArgType.SLICE_STRING, choices=("a",)), ["a", "b"], "coercion.choice"),
        (ArgSpec("x", ArgType.SLICE_FLOAT, maximum=1), [0.5, "2"], "coercion.bounds"),
        (ArgSpec("x", STRING, min_length=2), "a", "coercion.length"),
        (ArgSpec("x", ArgType.BLOB, max_length=1), b"ab", "coercion.length"),
        (ArgSpec("x", ArgType.MAP, max_length=0), {"a": 1}, "coercion.length"),
        (ArgSpec("x", ArgType.SLICE, min_length=1), [], "coercion.length"),
        (ArgSpec("x", ArgType.ANY), Decimal(1), "coercion.type"),
        (ArgSpec("x", ArgType.MAP), '{"a": 1, "a": 2}', "arg.duplicate_key"),
        (ArgSpec("x", ArgType.MAP), '{"a": NaN}', "coercion.nonfinite"),
        (ArgSpec("x", ArgType.SLICE), "[" * 100_000, "limit.depth"),
        (ArgSpec("x", ArgType.SLICE), f"[{'9' * 5000}]", "coercion.range"),
        (ArgSpec("x", ArgType.SLICE), "[1", "coercion.type"),
        (ArgSpec("x", ArgType.SLICE), "{}", "coercion.type"),
        (ArgSpec("x", ArgType.MAP), {"\ud800": 1}, "coercion.encoding"),
        (ArgSpec("x", ArgType.MAP_ANY_ANY), {(1, 2): 3}, "coercion.key"),
        (ArgSpec("x", INT), -(2**63) - 1, "coercion.range"),
        (ArgSpec("x", INT), "-9223372036854775809", "coercion.range"),
    ],
)
def test_what_a_rule_asks_has_a_code_of_its_own(rule: ArgSpec, given: object, code: str) -> None:
    """A host can count what its models get wrong."""
    with pytest.raises(ArgumentError) as caught:
        bind(ToolSpec("t", "g", (rule,)), (given,))

    assert (code, "model") == (caught.value.code, caught.value.retry)


@pytest.mark.parametrize(("options", "expected"), [
    ({}, ("arg.missing", "arg.missing", "coercion.format", "coercion.format")),
    ({"nullable": True}, ("arg.missing", None, None, None)),
    ({"required": False}, (None, None, None, None)),
    ({"required": False, "default": 7}, (7, 7, 7, 7)),
    ({"required": False, "nullable": True}, (None, None, None, None)),
    ({"required": False, "nullable": True, "default": 7}, (7, None, None, None)),
])  # fmt: skip
def test_none_and_absence_for_an_int(options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Nothing, None, "" and "null": the table of the contract, for arguments and for keys."""
    spec = ToolSpec("t", "g", (ArgSpec("x", INT, **options),))
    inner = ToolSpec("t", "g", (ArgSpec("m", ArgType.MAP, keys=(ArgSpec("x", INT, **options),)),))

    for given, wanted in zip((UNSET, None, "", "null"), expected, strict=True):
        mapping = {} if given is UNSET else {"x": given}

        assert wanted == outcome(lambda mapping=mapping: bind_named(spec, mapping)[0])
        assert wanted == outcome(lambda mapping=mapping: bind_named(inner, {"m": mapping})[0].get("x"))
        if given is not UNSET:
            assert wanted == outcome(lambda given=given: bind(spec, (given,))[0])


@pytest.mark.parametrize("kind", [STRING, ArgType.ANY, ArgType.BLOB])
def test_a_type_that_holds_texts_takes_null_as_a_text(kind: ArgType) -> None:
    """``""`` and ``"null"`` are values of theirs."""
    spec = ToolSpec("t", "g", (ArgSpec("x", kind, required=False, nullable=True),))

    assert bind(spec, ("null",)) == (coerce("null", kind),)
    assert bind(spec, ("",)) == (coerce("", kind),)


def test_strict_mode_takes_no_text_for_an_absence() -> None:
    """Only None is None there."""
    toolset = Toolset("g")
    toolset.add(ToolSpec("t", "g", (ArgSpec("x", INT, required=False),)), lambda rt, x: x)

    with Engine(toolsets=[toolset], plugins="none", mode="strict") as engine:
        assert engine.call("g.t", (None,)) is None
        assert outcome(lambda: engine.call("g.t", ("null",))) == "coercion.type"


def test_an_optional_key_without_a_default_stays_absent() -> None:
    """An argument becomes None, for the function has a parameter for it; a key does not come up."""
    keys = (ArgSpec("a", INT, required=False), ArgSpec("b", INT, default=2))

    assert coerce({}, ArgSpec("m", ArgType.MAP, keys=keys)) == {"b": 2}


def test_keys_keep_the_order_in_which_they_were_given() -> None:
    """And those with a default follow."""
    keys = (ArgSpec("a", INT), ArgSpec("b", INT, default=2), ArgSpec("c", INT))

    assert [*coerce({"c": 3, "a": 1}, ArgSpec("m", ArgType.MAP, keys=keys))] == ["c", "a", "b"]


def outcome(run: Any) -> Any:
    """Return what *run* returns, or the code of the error that it raises."""
    try:
        return run()
    except ArgumentError as error:
        assert error.retry == "model"
        return error.code


def test_variadic_values_follow_the_others() -> None:
    """By position they are spread, by name they are a list; JSON text of one will do."""
    assert bind(TEXTS, (",", "a", "b")) == (",", "a", "b")
    assert bind_named(TEXTS, {"glue": ",", "words": ["a", "b"]}) == (",", "a", "b")
    assert bind_named(TEXTS, {"glue": ",", "words": '["a"]'}) == (",", "a")


def test_an_optional_variadic_tail_may_be_empty() -> None:
    """None for the list is as good as no list."""
    spec = ToolSpec("t", "g", (ArgSpec("n", INT, required=False),), variadic=True)

    assert bind(spec, ()) == ()
    assert bind_named(spec, {"n": None}) == ()


@pytest.mark.parametrize(
    ("sizes", "given", "text"),
    [
        (SizeLimits(depth=2), [[[1]]], "x[0][0]: expected at most 2 levels of nesting, without cycles, got more"),
        (SizeLimits(nodes=3), [1, 2, 3], "x: expected at most 3 values in one call, got more"),
        (SizeLimits(text=3), ["é", "é"], "x[1]: expected at most 3 bytes of text in one call, got more"),
        (SizeLimits(text=3), {"abcd": 1}, "x: expected at most 3 bytes of text in one call, got more"),
        (SizeLimits(text=3), b"abcd", "x: expected at most 3 bytes of text in one call, got more"),
    ],
)
def test_a_value_beyond_the_limits_is_an_error_and_no_crash(sizes: SizeLimits, given: Any, text: str) -> None:
    """Depth, number and text are bounded; a host may set the bounds."""
    toolset = Toolset("g")
    toolset.add(ToolSpec("t", "g", (ArgSpec("x", ArgType.ANY),)), lambda rt, x: x)
    engine = Engine(toolsets=[toolset], plugins="none", size_limits=sizes)

    with pytest.raises(ArgumentError) as caught:
        engine.call("g.t", (given,))

    assert f"g.t: {text}" == str(caught.value)


def test_json_text_counts_against_what_the_other_arguments_left() -> None:
    """It is refused before it is decoded."""
    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.ANY), ArgSpec("b", ArgType.SLICE)))
    terms = CoercionSettings("lax", SizeLimits(text=8))

    assert bind_arguments(spec, terms, ("abcd", "[10]"), by_name=False) == ("abcd", [10])
    with pytest.raises(ArgumentError, match="b: expected at most 8 bytes of text in one call, got more"):
        bind_arguments(spec, terms, ("abcde", "[10]"), by_name=False)


def test_a_value_that_holds_itself_is_an_error() -> None:
    """As a list, as a dict, and round about."""
    loop: list[Any] = []
    loop.append({"again": loop})

    with pytest.raises(ArgumentError) as caught:
        coerce(loop, ArgType.ANY)

    assert (caught.value.code, caught.value.retry) == ("limit.depth", "model")


def test_a_dag_with_many_paths_ends_in_time() -> None:
    """Each visit counts, so shared parts cannot multiply without limit."""
    value: Any = "lol"
    for _ in range(60):
        value = [value, value]

    with pytest.raises(ArgumentError) as caught:
        coerce(value, ArgType.ANY)

    assert (caught.value.code, caught.value.retry) == ("limit.nodes", "model")


def test_a_caller_near_the_end_of_the_stack_gets_an_argument_error() -> None:
    """The walk may be the frame that is too many."""

    def deeper(levels: int) -> Any:
        return coerce([[[[1]]]], ArgType.ANY) if levels == 0 else deeper(levels - 1)

    outcomes = set()
    for levels in range(850, 1000):
        try:
            deeper(levels)
        except ArgumentError as error:
            assert error.retry == "model"
            outcomes.add(error.code)
        except RecursionError:
            break

    assert outcomes <= {"limit.depth"}


def test_adapters_bring_a_hosts_own_classes_in() -> None:
    """Exact classes in lax mode; values that an adapter rejects are still errors."""
    toolset = Toolset("g")
    toolset.add(
        ToolSpec("t", "g", (ArgSpec("xs", ArgType.SLICE_FLOAT),), return_type=ArgType.SLICE_FLOAT), lambda rt, xs: xs
    )
    engine = Engine(toolsets=[toolset], plugins="none", adapters={Decimal: lambda each: float(each)})

    assert engine.call("g.t", ([Decimal("1.5"), 2],)) == [1.5, 2.0]
    assert outcome(lambda: engine.call("g.t", ([Decimal("NaN")],))) == "coercion.nonfinite"
    assert outcome(lambda: engine.call("g.t", ([Decimal("sNaN")],))) == "coercion.type"
    assert outcome(lambda: coerce([Decimal(1)], "slice_float")) == "coercion.type"


def test_coerce_names_a_place_as_python_writes_it() -> None:
    """The value itself has no name, so its parts begin with a bracket."""
    with pytest.raises(ArgumentError) as caught:
        coerce({"a": [1, {"b": object()}]}, ArgType.MAP)

    assert "['a'][1]['b']: expected a JSON-like value, got object" == str(caught.value)


def test_an_embedding_holds_what_a_32_bit_float_can() -> None:
    """The largest number that still rounds to a finite one is in, the next is out."""
    assert list(coerce([3.4028235677973362e38, 1], "embedding")) == [3.4028234663852886e38, 1.0]
    assert outcome(lambda: coerce([3.4028235677973366e38], "embedding")) == "coercion.range"
    assert outcome(lambda: coerce([True], "embedding")) == "coercion.type"
    assert outcome(lambda: coerce(["1"], "embedding")) == "coercion.type"
