"""Argument errors: each gives the complete rule of its path, locates broken JSON, and never contains a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    Problem,
    SizeLimits,
    SpecError,
    Toolset,
    ToolSpec,
    coerce,
)
from neuroscript.errors import CoercionError

WIDE = tuple(f"choice{index}" for index in range(500))
KEYS = tuple(ArgSpec(f"key{index}", ArgType.INT, required=index < 2) for index in range(30))

SMALL = ArgSpec("t", ArgType.INT, minimum=1, maximum=3)
POSITIVE = ArgSpec("t", ArgType.FLOAT, minimum=0.5)
LOW = ArgSpec("t", ArgType.INT, maximum=3)
CODE = ArgSpec("t", ArgType.STRING, min_length=3, max_length=8)
EXACT = ArgSpec("t", ArgType.STRING, min_length=1, max_length=1)
BYTES = ArgSpec("t", ArgType.BLOB, max_length=2)
MODE = ArgSpec("t", ArgType.STRING, choices=("read", "write"))
MANY = ArgSpec("t", ArgType.STRING, choices=WIDE)
HIDDEN = ArgSpec("t", ArgType.STRING, choices=("read", "write"), secret=True)
LONG = ArgSpec("t", ArgType.STRING, choices=("x" * 100, "\x1b[2J"))
SMALLS = ArgSpec("t", ArgType.SLICE_INT, minimum=1, maximum=3, min_length=1, max_length=4)
MODES = ArgSpec("t", ArgType.SLICE_STRING, choices=("read", "write"))
PLACE = ArgSpec("t", ArgType.MAP, keys=(ArgSpec("town", ArgType.STRING), ArgSpec("zip", ArgType.INT, default=0)))
OPEN = ArgSpec("t", ArgType.MAP, keys=(ArgSpec("town", ArgType.STRING),), extra_keys=True, max_length=2)
PLACES = ArgSpec("t", ArgType.SLICE_MAP, keys=(ArgSpec("sizes", ArgType.SLICE_INT, maximum=3),))
WIDE_MAP = ArgSpec("t", ArgType.MAP, keys=KEYS)
COUNTS = ArgSpec("t", ArgType.MAP_STRING_INT, min_length=2)
VECTOR = ArgSpec("t", ArgType.EMBEDDING, min_length=2, max_length=2)

LISTED = ", ".join(repr(each) for each in WIDE[:20])
NAMED = "key0, key1, " + ", ".join(f"key{index} (optional)" for index in range(2, 20))

ERRORS: dict[str, tuple[ArgSpec, object, str]] = {
    "bounds and a wrong type": (SMALL, {}, "t: expected int from 1 to 3, got dict"),
    "bounds and a bad string": (
        SMALL, "x", "t: expected int from 1 to 3, got str (a string must be a decimal integer, such as 42)"
    ),
    "bounds and None": (SMALL, None, "t: expected int from 1 to 3, got None"),
    "bounds and too much": (SMALL, 4, "t: expected int from 1 to 3, got int out of bounds"),
    "a least number": (POSITIVE, [], "t: expected float of at least 0.5, got list"),
    "a greatest number": (LOW, "", "t: expected int of at most 3, got str (a string must be a decimal integer, such as 42)"),
    "a length and a wrong type": (CODE, 5, "t: expected string of 3 to 8 characters, got int"),
    "a length that is too short": (CODE, "ab", "t: expected string of 3 to 8 characters, got 2 characters"),
    "an exact length": (EXACT, "", "t: expected string of 1 character, got 0 characters"),
    "a length of bytes": (BYTES, b"abc", "t: expected blob of at most 2 bytes, got 3 bytes"),
    "choices and a wrong type": (MODE, 5, "t: expected string, one of 'read', 'write', got int"),
    "a choice that is near": (
        MODE, "Raed", "t: expected string, one of 'read', 'write', got another str (did you mean 'read'?)"
    ),
    "a choice that is not near": (MODE, "xyz", "t: expected string, one of 'read', 'write', got another str"),
    "a near choice of a secret": (HIDDEN, "raed", "t: expected string, one of 'read', 'write', got another str"),
    "a near choice in a secret": (
        ArgSpec("t", ArgType.MAP, keys=(MODE,), secret=True), {"t": "raed"},
        "t['t']: expected string, one of 'read', 'write', got another str",
    ),
    "many choices": (
        MANY, "choice4999", f"t: expected string, one of {LISTED} and 480 more, got another str "
        "(did you mean 'choice499'?)"
    ),
    "long choices": (LONG, 5, f"t: expected string, one of '{'x' * 64}…', '\\x1b[2J', got int"),
    "a long choice that is near": (
        LONG, "x" * 60, f"t: expected string, one of '{'x' * 64}…', '\\x1b[2J', got another str "
        f"(did you mean '{'x' * 64}…'?)",
    ),
    "a list and a wrong type": (SMALLS, 5, "t: expected list of int with 1 to 4 items, each from 1 to 3, got int"),
    "a list that is too long": (
        SMALLS, [1, 2, 3, 3, 3], "t: expected list of int with 1 to 4 items, each from 1 to 3, got 5 items"
    ),
    "an element of a wrong type": (SMALLS, [1, {}], "t[1]: expected int from 1 to 3, got dict"),
    "an element that is null": (SMALLS, [None], "t[0]: expected int from 1 to 3, got None"),
    "an element out of bounds": (SMALLS, [1, 4], "t[1]: expected int from 1 to 3, got int out of bounds"),
    "an element that is another choice": (
        MODES, ["read", "wriet"], "t[1]: expected string, one of 'read', 'write', got another str "
        "(did you mean 'write'?)"
    ),
    "a list of choices": (MODES, 5, "t: expected list of string, each one of 'read', 'write', got int"),
    "a map and a wrong type": (PLACE, [], "t: expected map with keys town, zip (optional), got list"),
    "a map without a key": (PLACE, {"zip": 5}, "t['town']: expected string, got nothing"),
    "a map with an unknown key": (
        PLACE, {"town": "x", "zpi": 5}, "t['zpi']: expected only town, zip, got an unknown name of type int "
        "(did you mean zip?)"
    ),
    "a map with any other keys": (OPEN, 5, "t: expected map with at most 2 keys, with keys town and others, got int"),
    "a map that is too large": (
        OPEN, {"town": "x", "a": 1, "b": 2},
        "t: expected map with at most 2 keys, with keys town and others, got 3 keys",
    ),
    "a map of many keys": (WIDE_MAP, 5, f"t: expected map with keys {NAMED} and 10 more, got int"),
    "a typed map": (COUNTS, [], "t: expected map of int with at least 2 keys, got list"),
    "a value of a typed map": (COUNTS, {"a": "x", "b": 1}, "t['a']: expected int, got str (a string must be a decimal integer, such as 42"
        ")"),
    "a list of maps": (PLACES, 5, "t: expected list of map, each with keys sizes, got int"),
    "a map in a list": (PLACES, [5], "t[0]: expected map with keys sizes, got int"),
    "a list in a map in a list": (PLACES, [{"sizes": 5}], "t[0]['sizes']: expected list of int, each of at most 3, got int"),
    "an element at the bottom": (PLACES, [{"sizes": ["x"]}], "t[0]['sizes'][0]: expected int of at most 3, got str "
        "(a string must be a decimal integer, such as 42)"),
    "an unknown key at the bottom": (
        PLACES, [{"sizes": [], "size": 1}],
        "t[0]['size']: expected only sizes, got an unknown name of type int (did you mean sizes?)",
    ),
    "a set": (ArgSpec("t", ArgType.SLICE_STRING, unique_items=True), 5, "t: expected list of unique string, got int"),
    "a set of anything": (ArgSpec("t", ArgType.SLICE, unique_items=True), 5, "t: expected list of unique items, got int"),
    "a null in a set of maps": (
        ArgSpec("t", ArgType.SLICE_MAP, keys=PLACE.keys, unique_items=True), [None],
        "t[0]: expected map with keys town, zip (optional), got None",
    ),
    "a key of a map": (
        ArgSpec("t", ArgType.MAP, key_spec=ArgSpec("k", ArgType.STRING, max_length=3), value_spec=SMALL), {5: 1},
        "t[5] (key): expected string of at most 3 characters, got int",
    ),
    "a vector": (VECTOR, "x", "t: expected list of numbers with 2 items, got str (write a JSON array, such as [0.5, 1.5])"),
    "an element of a vector": (VECTOR, [1, "x"], "t[1]: expected number, got str"),
}  # fmt: skip


def engine_of(*args: ArgSpec, variadic: bool = False) -> Engine:
    """Return an engine with one tool, ``g.t``."""
    names = ", ".join(["rt", *(arg.name for arg in args)][: -1 if variadic else None] + ["*rest"] * variadic)
    tools = Toolset("g")
    spec = ToolSpec("t", "g", args, return_type=ArgType.ANY, variadic=variadic, return_nullable=True)
    tools.add(spec, eval(f"lambda {names}: {'list(rest)' if variadic else args[0].name}"))
    return Engine(toolsets=[tools], plugins="none")


def through_steps(engine: Engine, given: Any) -> Any:
    """Call through the pipeline steps, as a stream reader does."""
    (result,) = engine.stream("g.t", given)
    return result


WAYS: dict[str, Callable[[Engine, object], object]] = {
    "compiled, in order": lambda engine, value: engine.call("g.t", [value]),
    "compiled, by name": lambda engine, value: engine.call_named("g.t", {"t": value}),
    "in steps, in order": lambda engine, value: through_steps(engine, [value]),
    "in steps, by name": lambda engine, value: through_steps(engine, {"t": value}),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("arg", "value", "text"), ERRORS.values(), ids=ERRORS)
def test_error_gives_the_complete_rule_of_its_path(arg: ArgSpec, value: object, text: str, way: Any) -> None:
    """Both pipelines agree, for positional and named arguments."""
    with engine_of(arg) as engine, pytest.raises(ArgumentError) as caught:
        way(engine, value)

    assert str(caught.value) == f"g.t: {text}"
    assert caught.value.retry == "model"


@pytest.mark.parametrize(("arg", "value", "text"), ERRORS.values(), ids=ERRORS)
def test_coerce_gives_the_same_rule(arg: ArgSpec, value: object, text: str) -> None:
    """There is no argument name, and None is a value of every type."""
    if value is None:
        return
    with pytest.raises(CoercionError) as caught:
        coerce(value, arg)

    assert str(caught.value) == text.removeprefix("t: ").removeprefix("t")
    assert caught.value.retry == "model"


CANARY = "canary, 42"

EXAMPLES = {
    ArgType.SLICE: 'JSON array, such as ["a", 1]',
    ArgType.SLICE_ANY: 'JSON array, such as ["a", 1]',
    ArgType.LIST: 'JSON array, such as ["a", 1]',
    ArgType.SLICE_STRING: 'JSON array, such as ["a", "b"]',
    ArgType.SLICE_INT: "JSON array, such as [1, 2]",
    ArgType.SLICE_FLOAT: "JSON array, such as [0.5, 1.5]",
    ArgType.SLICE_BOOL: "JSON array, such as [true, false]",
    ArgType.SLICE_MAP: 'JSON array, such as [{"key": "value"}]',
    ArgType.EMBEDDING: "JSON array, such as [0.5, 1.5]",
    ArgType.MAP: 'JSON object, such as {"key": "value"}',
    ArgType.MAP_STRING_ANY: 'JSON object, such as {"key": "value"}',
    ArgType.MAP_ANY_ANY: 'JSON object, such as {"key": "value"}',
    ArgType.MAP_STRING_STRING: 'JSON object, such as {"key": "value"}',
    ArgType.MAP_STRING_INT: 'JSON object, such as {"key": 1}',
    ArgType.MAP_STRING_FLOAT: 'JSON object, such as {"key": 0.5}',
    ArgType.MAP_STRING_BOOL: 'JSON object, such as {"key": true}',
}


@pytest.mark.parametrize("text", [CANARY, "", "null", "5", f'"{CANARY}"', "[1]", '{"a": 1}'])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_string_instead_of_a_container_gets_an_example(kind: ArgType, text: str) -> None:
    """The example depends on the type only, is valid JSON of that type, and contains no part of the string."""
    example = EXAMPLES[kind]
    coerce(example.partition("such as ")[2], kind)
    if text[:1] == ("{" if "object" in example else "["):
        return
    with pytest.raises(CoercionError) as caught:
        coerce(text, kind)

    (problem,) = caught.value.problems
    assert (problem.code, problem.got, problem.hint) == ("coercion.type", "str", f"write a {example}")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('["canary", "b"', "line 1, column 15 is not JSON"),
        ('  \n["canary" "b"]', "line 2, column 11 is not JSON"),
        ("[canary]", "line 1, column 2 is not JSON"),
        ("['canary']", "line 1, column 2 is not JSON"),
        ('["canary"],', "line 1, column 11 is not JSON"),
        ('{"canary": }', "line 1, column 12 is not JSON"),
    ],
)
def test_broken_json_in_a_container_is_located(text: str, hint: str) -> None:
    """The error gives the line and column and contains no part of the string."""
    with engine_of(ArgSpec("t", ArgType.SLICE_STRING)) as engine, pytest.raises(ArgumentError) as caught:
        engine.call("g.t", [text])

    assert caught.value.problems == (Problem("t", "coercion.type", "list of string", "str", hint),)
    assert caught.value.retry == "model"


NUMBERS = ArgSpec("numbers", ArgType.INT, minimum=1, maximum=3, required=False)


@pytest.mark.parametrize(
    ("arg", "given", "text"),
    [
        pytest.param(NUMBERS, [1, "x"], "numbers[1]: expected int from 1 to 3, got str (a string must be a decimal integer, such as 42"
                     ")", id="a wrong type"),
        pytest.param(NUMBERS, [1, None], "numbers[1]: expected int from 1 to 3, got None", id="None"),
        pytest.param(NUMBERS, {"numbers": 5}, "numbers: expected list of int, each from 1 to 3, got int", id="no list"),
        pytest.param(NUMBERS, {"numbers": "x"}, "numbers: expected list of int, each from 1 to 3, got str (write a JSON "
                     "array, such as [1, 2])", id="a bare string"),
        pytest.param(ArgSpec("numbers", ArgType.INT, maximum=3), [], "numbers: expected at least one int of at most 3, got "
                     "nothing", id="nothing"),
        pytest.param(ArgSpec("rows", ArgType.SLICE_INT, maximum=3), [[1], [5]], "rows[1][0]: expected int of at most 3, "
                     "got int out of bounds", id="an element of one of them"),
        pytest.param(ArgSpec("codes", ArgType.STRING, min_length=2), {"codes": 5}, "codes: expected list of string, each "
                     "of at least 2 characters, got int", id="a length"),
        pytest.param(NUMBERS, {"numbers": [], "number": 1}, "number: expected only numbers, got an unknown name of type int "
                     "(did you mean numbers?)", id="an unknown name"),
    ],
)  # fmt: skip
def test_variadic_values_are_checked_one_by_one(arg: ArgSpec, given: Any, text: str) -> None:
    """By name, they are passed as one list."""
    with engine_of(arg, variadic=True) as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call_named("g.t", given) if isinstance(given, dict) else engine.call("g.t", given)

    assert str(caught.value) == f"g.t: {text}"
    assert caught.value.retry == "model"


def test_too_many_variadic_values() -> None:
    """The limit is not reported as a type error."""
    tools = Toolset("g")
    spec = ToolSpec("t", "g", (NUMBERS,), return_type=ArgType.ANY, variadic=True)
    tools.add(spec, lambda rt, *numbers: None)
    with Engine(toolsets=[tools], plugins="none", size_limits=SizeLimits(nodes=3)) as engine:
        for given in ({"numbers": "[1, 2, 3, 1]"}, {"numbers": [1, 2, 3, 1]}):
            with pytest.raises(ArgumentError) as caught:
                engine.call_named("g.t", given)
            (problem,) = caught.value.problems
            assert (problem.code, problem.expected) == ("limit.nodes", "at most 3 values in one call")
            assert caught.value.retry == "model"


@pytest.mark.parametrize(
    "arg",
    [
        SMALLS,
        PLACES,
        ArgSpec("t", ArgType.SLICE_INT, unique_items=True),
        ArgSpec("t", ArgType.SLICE_MAP, keys=PLACE.keys, unique_items=True),
        ArgSpec("t", ArgType.SLICE, items=PLACE),
    ],
    ids=["ints", "maps", "a set of ints", "a set of maps", "items"],
)
def test_null_element_has_its_own_code(arg: ArgSpec) -> None:
    """In a list of any form."""
    with engine_of(arg) as engine, pytest.raises(ArgumentError) as caught:
        engine.call("g.t", [[None]])

    assert [(each.where, each.code) for each in caught.value.problems] == [("t[0]", "coercion.null_element")]
    assert caught.value.retry == "model"


NOTHING = {"None": None, "an empty string": "", "the string null": "null"}


@pytest.mark.parametrize("value", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("kind", [ArgType.INT, ArgType.FLOAT, ArgType.BOOL, ArgType.SLICE_INT, ArgType.MAP])
@pytest.mark.parametrize("required", [True, False])
def test_nullable_variadic_value_accepts_what_a_nullable_argument_accepts(
    kind: ArgType, value: object, required: bool
) -> None:
    """None is accepted, and ``""`` and ``"null"`` too unless the type includes strings."""
    plain = ArgSpec("a", kind, nullable=True, required=required)

    with engine_of(plain) as one, engine_of(plain, variadic=True) as many:
        assert one.call("g.t", [value]) is None
        assert many.call("g.t", [value, value]) == many.call_named("g.t", {"a": [value, value]}) == [None, None]


@pytest.mark.parametrize(("value", "kept"), [("", ""), ("null", "null"), (None, None)])
def test_nullable_variadic_string_stays_a_string(value: object, kept: object) -> None:
    """Types that include strings keep ``""`` and ``"null"``."""
    with engine_of(ArgSpec("a", ArgType.STRING, nullable=True), variadic=True) as engine:
        assert engine.call("g.t", [value]) == [kept]


@pytest.mark.parametrize("kind", [ArgType.NODEID, ArgType.ENTITYID])
@pytest.mark.parametrize("text", ["", "null"])
def test_string_is_never_a_missing_identifier(kind: ArgType, text: str) -> None:
    """Identifiers are strings, so an invalid one is an error even if the argument may be None."""
    with engine_of(ArgSpec("a", kind, nullable=True)) as engine, pytest.raises(ArgumentError) as caught:
        engine.call("g.t", [text])

    assert (caught.value.code, caught.value.retry) == ("coercion.format", "model")


@pytest.mark.parametrize("value", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("required", [True, False])
def test_non_nullable_variadic_value_is_never_absent(value: object, required: bool) -> None:
    """Optional means that there may be no values; each value that is passed must be valid."""
    with engine_of(ArgSpec("a", ArgType.INT, required=required), variadic=True) as engine:
        with pytest.raises(ArgumentError) as caught:
            engine.call("g.t", [1, value])

    code = "coercion.null_element" if value is None else "coercion.format"
    assert (caught.value.code, caught.value.retry) == (code, "model")


def test_choices_of_another_type_than_the_default_are_a_spec_error() -> None:
    """Only strings are compared with a string default."""
    with pytest.raises(SpecError) as caught:
        ArgSpec("a", ArgType.STRING, choices=(0.5,), default="fast")

    assert str(caught.value) == (
        "argument a: each choice must be of type string; "
        "the default does not fit: expected string, one of 0.5, got another str"
    )
