"""Specs: everything wrong is said when they are made, and plain data holds all that they say."""

from __future__ import annotations

import datetime
import inspect
import json
import re
from collections import OrderedDict
from enum import Enum, Flag
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.generator import Generator

from neuroscript import (
    UNSET,
    ArgSpec,
    ArgType,
    Example,
    SizeLimits,
    SpecError,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
    bind,
    coerce,
    policy_from_data,
    policy_to_data,
    spec_from_data,
    spec_to_data,
)
from neuroscript.tools.fingerprints import fingerprint

INT, STRING, MAP = ArgType.INT, ArgType.STRING, ArgType.MAP
NAME = "name must be 1 to 128 printable characters without whitespace, braces, brackets and quotes"
BOUNDS = "minimum must be a finite number"


@attrs.frozen
class Node:
    """A class that holds itself."""

    inner: Node | None = None


@attrs.frozen
class Loose:
    """A class with a field of an unsupported type."""

    items: list[complex]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ArgSpec("", INT), f"argument : {NAME}"),
        (lambda: ArgSpec("a b", INT), f"argument a b: {NAME}"),
        (lambda: ArgSpec("a[0]", INT), f"argument a[0]: {NAME}"),
        (lambda: ArgSpec("a\n", INT), f"argument a\\n: {NAME}"),
        (lambda: ArgSpec("x" * 129, INT), f"argument {'x' * 64}…: {NAME}"),
        (lambda: ArgSpec(5, INT), f"argument ?: {NAME}, not int"),
        (lambda: ArgSpec("a", ArgType.VOID), "argument a: void is valid for results only"),
        (lambda: ArgSpec("a", INT, default="x"), "argument a: the default does not fit: expected int, got str "
         "(a string must be a decimal integer, such as 42)"),
        (lambda: ArgSpec("a", INT, required=True, default=1), "argument a: a required argument has no default"),
        (lambda: ArgSpec("a", INT, required="yes"), "argument a: required must be True or False, not str"),
        (lambda: ArgSpec("a", INT, choices=(1, "2")), "argument a: each choice must be of type int"),
        (lambda: ArgSpec("a", INT, choices=(True,)), "argument a: each choice must be of type int"),
        (lambda: ArgSpec("a", INT, choices=("1", "2")), "argument a: each choice must be of type int"),
        (lambda: ArgSpec("a", ArgType.SLICE_INT, choices=("1", "2")), "argument a: each choice must be of type int"),
        (lambda: ArgSpec("a", MAP, choices=({},)), "argument a: choices are valid for strings, numbers, booleans and slices of them, not for"
         " map"),
        (lambda: ArgSpec("a", INT, choices=(1, 2), default=3), "argument a: the default does not fit: expected int, one "
         "of 1, 2, got another int"),
        (lambda: ArgSpec("a", INT, minimum=2, maximum=1), "argument a: minimum is above maximum"),
        (lambda: ArgSpec("a", INT, minimum=float("nan")), f"argument a: {BOUNDS}"),
        (lambda: ArgSpec("a", INT, minimum=True), f"argument a: {BOUNDS}, not bool"),
        (lambda: ArgSpec("a", STRING, minimum=1), "argument a: minimum and maximum are not valid for string"),
        (lambda: ArgSpec("a", INT, min_length=1), "argument a: min_length and max_length are not valid for int"),
        (lambda: ArgSpec("a", STRING, max_length=-1), "argument a: max_length must be a non-negative integer"),
        (lambda: ArgSpec("a", INT, keys=(ArgSpec("k", INT),)), "argument a: keys and extra_keys are valid for map and slice_map, not for"
         " int"),
        (lambda: ArgSpec("a", MAP, keys=(1,)), "argument a: keys[0] must be an ArgSpec, not int"),
        (lambda: ArgSpec("a", MAP, keys=(ArgSpec("k", INT), ArgSpec("k", INT))), "argument a: duplicate key k"),
        (lambda: ArgSpec("a", MAP, extra_keys=True), "argument a: extra_keys requires explicit keys"),
        (lambda: ArgSpec("a", MAP, cls=int), "argument a: cls must be an Enum, a class with fields or of a format, tuple, set, frozenset, "
         "deque, OrderedDict, defaultdict or bytearray"),
        (lambda: ArgSpec("a", INT, cls=OrderedDict), "argument a: cls OrderedDict is valid for a map, not for int"),
        (lambda: ArgSpec("a", STRING, cls=bytearray), "argument a: cls bytearray is valid for blob, not for string"),
        (lambda: ArgSpec("a", MAP, cls=Node), "argument a: field inner: Node contains itself (Node -> Node); use dict[str, Any] there"),
        (lambda: ArgSpec("a", MAP, cls=Loose), "argument a: field items: complex is not supported; use list[float]"),
        (lambda: ArgSpec("a", INT, nullable=1, minimum="x", description=None), "argument a: nullable must be True or "
         "False, not int; description must be a valid Unicode string, without lone surrogates, not None; "
         f"{BOUNDS}, not str"),
        (lambda: ToolSpec("a__b", "g"), "g.a__b: a name, and each part of a group, must consist of a-z, 0-9 and _, start with a letter and not contain __"
         ""),
        (lambda: ToolSpec("a.b", "g"), "g.a.b: a name, and each part of a group, must consist of a-z, 0-9 and _, start with a letter and not contain __"
         ""),
        (lambda: ToolSpec("a", "g."), "g..a: a name, and each part of a group, must consist of a-z, 0-9 and _, start with a letter and not contain __"
         ""),
        (lambda: ToolSpec("a", "g", (1,)), "g.a: args[0] must be an ArgSpec, not int"),
        (lambda: ToolSpec("a", "g", (ArgSpec("x", INT), ArgSpec("x", STRING)), variadic="no"), "g.a: duplicate argument"
         " x; variadic must be True or False, not str"),
        (lambda: ToolSpec("a", "g", variadic=True), "g.a: variadic requires a last argument without a default"),
        (lambda: ToolSpec("a", "g", description=5), "g.a: description must be a valid Unicode string, without lone surrogates"
         ", not int"),
        (lambda: ToolSpec("a", "g", when_to_use="\ud800"), "g.a: when_to_use must be a valid Unicode string, without lone surrogates"
         ""),
        (lambda: ToolSpec("a", "g", returns=ArgSpec("result", INT, default=1)), "g.a: returns: required and default are valid for arguments and keys"
         " only"),
        (lambda: ToolSpec("a", "g", returns=ArgSpec("result", INT, required=False)), "g.a: returns: required and default are valid for arguments "
         "and keys only"),
        (lambda: ToolSpec("a", "g", returns=ArgSpec("result", INT, secret=True)), "g.a: returns: secret is valid for arguments and keys only"),
        (lambda: ToolSpec("a", "g", returns=5), "g.a: returns must be an ArgSpec, an ArgType or its name, not int"),
        (lambda: Example(5), "example: args must be a list or tuple, or a mapping with string keys, not int"),
        (lambda: ToolPolicy(effects=("pure", "writes")), "policy: a pure tool can have no other effect except idempotent"),
        (lambda: ToolPolicy(effects=("magic",)), "policy: magic is not an effect (clock, deletes, exec, idempotent, model, "
         "net, prompts, pure, random, reads, writes)"),
        (lambda: ToolPolicy(capabilities=("fs",)), "policy: fs is not a capability; write "
         "resource:verb[,verb][:scope[,scope]], such as fs:read:data/a.txt"),
        (lambda: ToolPolicy(capabilities="fs:read", timeout=0), "policy: timeout must be a positive, finite number of seconds"
         ", or None; capabilities must be a collection of strings or Capabilities, not str"),
        (lambda: SizeLimits(depth=-1, nodes=True), "SizeLimits: depth must be a non-negative integer; nodes must be "
         "a non-negative integer, not bool"),
        (lambda: coerce(1, 5), "coerce: type must be an ArgType, its name or an ArgSpec, not int"),
        (lambda: coerce(1, "int", mode="result"), "coerce: mode must be 'lax' or 'strict'"),
        (lambda: coerce(1, "int", limits=5), "coerce: limits must be a SizeLimits, not int"),
        (lambda: Toolset("A B"), "toolset A B: the name is not a valid group name"),
    ],
)  # fmt: skip
def test_a_bad_spec_can_not_be_made(make: Any, text: str) -> None:
    """Every fault is named at once, when the thing is made and never at call time."""
    with pytest.raises(SpecError) as caught:
        make()

    assert text == str(caught.value)
    assert isinstance(caught.value, ValueError)


class Colour(Enum):
    """Strings."""

    RED = "red"
    BLUE = "blue"


class Mixed(Enum):
    """Values of two types."""

    AUTO = "auto"
    ONE = 1


class Rights(Flag):
    """Names in a list."""

    READ = 1


ID = ArgSpec("id", INT)
NESTED = "choices, keys, minimum and maximum belong to the nested specs"
ALTERNATIVES = "any_of requires two different alternatives besides null; use the only one"
OPTIONAL = "required and default are valid for arguments and keys only"
REFINED_WRONGLY: list[tuple[str, dict[str, Any], str]] = [
    ("int", {"items": "int"}, "items and prefix_items refine slice, not int"),
    ("slice_int", {"prefix_items": ("int", "int")}, "items and prefix_items refine slice, not slice_int"),
    ("slice", {"items": "map", "prefix_items": ("int",)}, "pass either items or prefix_items"),
    ("slice", {"items": "map", "choices": ("x",)}, NESTED),
    ("slice", {"items": "map", "keys": (ID,)}, NESTED),
    ("slice", {"items": "map", "minimum": 1}, NESTED),
    ("slice", {"prefix_items": ("int",), "maximum": 1}, NESTED),
    ("any", {"any_of": ("int", "string"), "exclusive_minimum": 1}, NESTED),
    ("any", {"any_of": ("int", "string"), "exclusive_maximum": 1}, NESTED),
    ("any", {"any_of": ("int", "map"), "extra_keys": True}, NESTED),
    ("slice", {"prefix_items": ("int", "int"), "min_length": 2}, "the length follows from prefix_items"),
    ("slice", {"prefix_items": ("int", "int"), "max_length": 2}, "the length follows from prefix_items"),
    ("slice", {"prefix_items": ("int", "int"), "unique_items": True}, "pass either prefix_items or unique_items"),
    ("slice_map", {"cls": set}, "the items of a set must be hashable; use list"),
    ("slice", {"cls": frozenset, "items": "slice_int"}, "the items of a frozenset must be hashable; use list"),
    ("string", {"unique_items": True}, "unique_items refines slices, not string"),
    ("slice", {"unique_items": "yes"}, "unique_items must be True or False, not str"),
    ("int", {"value_spec": "int"}, "value_spec refines map and map_any_any, not int"),
    ("map_string_string", {"value_spec": "int"}, "value_spec refines map and map_any_any, not map_string_string"),
    ("map", {"keys": (ID,), "value_spec": "int", "extra_keys": True},
     "value_spec describes the values of further keys; leave extra_keys out"),
    ("map_string_int", {"key_spec": "string"}, "key_spec refines map and map_any_any, not map_string_int"),
    ("map", {"key_spec": "int"}, "key_spec of map must be a string that is not nullable"),
    ("map", {"key_spec": ArgSpec("key", STRING, nullable=True)}, "key_spec of map must be a string that is not nullable"),
    ("map_any_any", {"key_spec": "blob"},
     "key_spec of map_any_any must be a string, int, float or bool that is not nullable"),
    ("map_any_any", {"key_spec": ArgSpec("key", INT, nullable=True)},
     "key_spec of map_any_any must be a string, int, float or bool that is not nullable"),
    ("string", {"any_of": ("int", "string")}, "any_of refines any, not string"),
    ("any", {"any_of": ("int",)}, ALTERNATIVES),
    ("any", {"any_of": ("int", "int", "nil")}, ALTERNATIVES),
    ("int", {"format": "date"}, "format refines string, not int"),
    ("string", {"format": "date", "choices": ("2026-11-23",)}, "pass either format or choices"),
    ("string", {"format": 5}, "format must be one of date-time, date, time, duration, uuid, decimal, path, uri, email, ipv4, ipv6, "
     "ip-network, base64, regex, not int"),
    ("slice", {"items": ArgSpec("item", INT, default=1)}, f"items: {OPTIONAL}"),
    ("slice", {"items": ArgSpec("item", INT, required=False)}, f"items: {OPTIONAL}"),
    ("map", {"value_spec": ArgSpec("value", INT, secret=True)}, "value_spec: secret is valid for arguments and keys only"),
    ("slice", {"items": "void"}, "items: void is valid for results only"),
    ("any", {"items": 5, "value_spec": [], "prefix_items": "int", "any_of": ("int", 5)},
     "items must be an ArgSpec, an ArgType or its name, not int; "
     "value_spec must be an ArgSpec, an ArgType or its name, not list; "
     "prefix_items must be a list or tuple of ArgSpecs, ArgTypes or their names, not str; "
     "any_of must be an ArgSpec, an ArgType or its name, not int"),
    ("map", {"cls": tuple}, "cls tuple is valid for a slice, not for map"),
    ("slice", {"cls": OrderedDict}, "cls OrderedDict is valid for a map, not for slice"),
    ("slice_int", {"cls": Node}, "cls Node is valid for map and slice_map, not for slice_int"),
    ("string", {"cls": Mixed}, "the values of Mixed have several types; use any"),
    ("string", {"cls": Rights}, "the values of Rights are of type slice_string, which does not fit string"),
    ("int", {"cls": datetime.date}, "cls date is valid for a string of the format date"),
    ("string", {"cls": datetime.date, "format": "time"}, "cls date is valid for a string of the format date"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    REFINED_WRONGLY,
    ids=[f"{kind} {' '.join(fields)}" for kind, fields, _ in REFINED_WRONGLY],
)
def test_refinement_that_does_not_fit_is_refused(kind: Any, fields: dict[str, Any], text: str) -> None:
    """A refinement that no check would read is an error, as is one that contradicts another."""
    with pytest.raises(SpecError) as caught:
        ArgSpec("a", kind, **fields)

    assert f"argument a: {text}" == str(caught.value)


@pytest.mark.parametrize(
    ("written", "same"),
    [
        (("slice", {"items": "int"}), ("slice_int", {})),
        (("slice", {"items": "any"}), ("slice", {})),
        (("slice", {"items": ArgSpec("i", INT, minimum=1, choices=(1, 2))}), ("slice_int", {"minimum": 1, "choices": (1, 2)})),
        (("slice", {"items": "int", "cls": set}), ("slice_int", {"cls": set, "unique_items": True})),
        (("slice", {"items": ArgSpec("i", MAP, keys=(ID,))}), ("slice_map", {"keys": (ID,)})),
        (("map", {"value_spec": "int"}), ("map_string_int", {})),
        (("map", {"value_spec": "any"}), ("map", {})),
        (("map", {"value_spec": "any", "keys": (ID,)}), ("map", {"extra_keys": True, "keys": (ID,)})),
        (("map", {"key_spec": "string"}), ("map", {})),
        (("map_any_any", {"key_spec": "string"}), ("map", {})),
        (("map_any_any", {"key_spec": "string", "value_spec": "float"}), ("map_string_float", {})),
        (("any", {"any_of": ("int", ArgSpec("x", "any", any_of=("string", "int")), "nil")}),  # type: ignore[arg-type]
         ("any", {"any_of": ("int", "string"), "nullable": True})),
        (("any", {"any_of": (ArgSpec("x", INT, nullable=True), "string")}), ("any", {"any_of": ("int", "string"), "nullable": True})),
        (("slice_string", {"cls": Rights}), ("slice_string", {"cls": Rights, "unique_items": True, "choices": ("READ",)})),
        (("slice_string", {"cls": Colour, "unique_items": True}),
         ("slice_string", {"cls": Colour, "unique_items": True, "choices": ("red", "blue")})),
        (("string", {"cls": datetime.date}), ("string", {"cls": datetime.date, "format": "date"})),
    ],
    ids=str,
)  # fmt: skip
def test_specs_with_the_same_meaning_are_equal(written: tuple[Any, dict[str, Any]], same: tuple[Any, Any]) -> None:
    """Each meaning has one form, so lock files and exports do not depend on how the author wrote it."""
    one, other = (ArgSpec("a", kind, **fields) for kind, fields in (written, same))

    assert one == other
    assert hash(one) == hash(other)
    assert [(one.type, getattr(one, name)) for name in same[1]] == [(same[0], getattr(other, name)) for name in same[1]]


def test_union_with_a_description_stays_an_alternative() -> None:
    """A union within a union is flattened unless its description would be lost."""
    inner = ArgSpec("alternative", ArgType.ANY, any_of=("int", "bool"), description="A number.")  # type: ignore[arg-type]

    assert (inner, ArgSpec("alternative", STRING)) == ArgSpec("a", ArgType.ANY, any_of=(inner, "string")).any_of  # type: ignore[arg-type]


def test_changed_spec_equals_a_new_one() -> None:
    """What a spec derives from its type follows the new type, so `attrs.evolve` cannot leave a wrong rule behind."""
    old = ArgSpec("a", STRING, choices=("x",))
    changed, new = attrs.evolve(old, type=INT, choices=(1,)), ArgSpec("a", INT, choices=(1,))
    derived = [field.name for field in attrs.fields(ArgSpec) if not field.init]

    assert changed == new
    assert [getattr(changed, name) for name in derived] == [getattr(new, name) for name in derived]
    assert bind(ToolSpec("t", "g", (attrs.evolve(changed, choices=(), nullable=True),)), ("",)) == (None,)


def test_repr_of_a_spec_shows_its_parameters() -> None:
    """It contains what the author can pass, and no derived fields."""
    shown = re.findall(r"(\w+)=", repr(ArgSpec("a", INT, choices=(1, 2), minimum=1)))

    assert [*inspect.signature(ArgSpec).parameters] == shown


def test_an_unknown_type_lists_the_words() -> None:
    """The error for ``number`` lists the supported types."""
    with pytest.raises(SpecError) as caught:
        ArgSpec("a", "number")  # type: ignore[arg-type]

    assert f"argument a: number is not an ArgType; use one of {', '.join(ArgType)}" == str(caught.value)


def test_a_spec_takes_words_for_types_and_is_canonical() -> None:
    """Names are lowered, a leading ``tool.`` goes, and required follows from the default."""
    spec = ToolSpec("Add", "tool.Tool.Math", (ArgSpec("a", "int", default="7"),), return_type="float")  # type: ignore[arg-type]

    assert (spec.name, spec.group, spec.full_name) == ("add", "math", "math.add")
    assert (spec.upstream_name, spec.wire_name) == ("tool.math.add", "math__add")
    assert (spec.args[0].type, spec.args[0].required, spec.args[0].default) == (ArgType.INT, False, 7)
    assert spec.return_type is ArgType.FLOAT


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ("int", ("int", False, None)),
        ("nil", ("nil", False, None)),
        (ArgSpec("x", INT, nullable=True), ("int", True, None)),
        (ArgSpec("x", ArgType.SLICE, items="int"), ("slice_int", False, None)),  # type: ignore[arg-type]
        (ArgSpec("x", INT, minimum=1), ("int", False, ArgSpec("result", INT, minimum=1))),
        (
            ArgSpec("x", STRING, format="date", nullable=True),
            ("string", True, ArgSpec("result", STRING, format="date", nullable=True)),
        ),
    ],
    ids=str,
)
def test_type_of_a_result_is_derived_from_its_spec(returns: Any, expected: tuple[Any, ...]) -> None:
    """Its type and whether it may be None; the spec remains only if these two do not describe the result."""
    spec = ToolSpec("t", "g", returns=returns)

    assert expected == (spec.return_type, spec.return_nullable, spec.returns)


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3], "ab", 5])
@pytest.mark.parametrize("variadic", [False, True])
def test_values_by_name_must_match_the_arguments(values: Any, variadic: bool) -> None:
    """A variadic tool takes any number of values after the others."""
    spec = ToolSpec("t", "g", (ArgSpec("a", INT), ArgSpec("b", INT)), variadic=variadic)
    got = "" if isinstance(values, list) else f", not {type(values).__name__}"

    if variadic and values in ([1], [1, 2, 3]):
        assert {"a": 1, "b": values[1:]} == spec.by_name(values)
    else:
        with pytest.raises(SpecError) as caught:
            spec.by_name(values)
        assert f"g.t: values must be a list or tuple of one value for each argument{got}" == str(caught.value)


def test_nil_is_always_nullable() -> None:
    """Its only value is None, so it must be possible to give it."""
    assert ArgSpec("a", ArgType.NIL).nullable


@pytest.mark.parametrize(
    ("func", "variadic", "text"),
    [
        (lambda a: None, False, "g.t: func must take (rt, a), not (a)"),
        (lambda rt, b: None, False, "g.t: func must take (rt, a), not (rt, b)"),
        (lambda rt, a, b: None, False, "g.t: func must take (rt, a), not (rt, a, b)"),
        (lambda rt, a, *, b: None, False, "g.t: func is called with positional arguments, but b is keyword-only"),
        (lambda rt, a: None, True, "g.t: the spec is variadic; func must take *a"),
        (5, False, "g.t: func must be a function, not int"),
    ],
)
def test_a_function_must_take_what_the_spec_gives(func: Any, variadic: bool, text: str) -> None:
    """``rt`` and the spec's names in order, so no parameter receives the wrong argument."""
    spec = ToolSpec("t", "g", (ArgSpec("a", INT),), variadic=variadic)

    with pytest.raises(SpecError) as caught:
        ToolImplementation(spec, func)

    assert text == str(caught.value)


def test_a_function_that_takes_values_may_call_them_as_it_likes() -> None:
    """Importers produce names that are not Python identifiers."""
    spec = ToolSpec("t", "g", (ArgSpec("user-id", INT), ArgSpec("from", STRING)))

    assert ToolImplementation(spec, lambda rt, *values: None).name == "g.t"


@pytest.mark.parametrize(
    ("example", "text"),
    [
        (Example((1, 2)), "g.t: example 1: its arguments do not fit: g.t: expected at most 1 arguments, got 2"),
        (Example({"a": "x"}), "g.t: example 1: its arguments do not fit: g.t: a: expected int, got str (a string must be a decimal integer, such as 42"
         ")"),
        (Example((1,), "x"), "g.t: example 1: its result does not fit: expected int, got str"),
        (Example((1,), error="coercion.format"), "g.t: example 1: its arguments are valid, but coercion.format was expected"),
        (Example(("x",), error="arg.missing"), "g.t: example 1: its arguments do not fit: g.t: a: expected int, got str (a string must be a decimal integer, such as 42"
         ")"),
    ],
)  # fmt: skip
def test_every_example_is_bound_when_the_tool_is_made(example: Example, text: str) -> None:
    """An example that contradicts the spec is an error."""
    spec = ToolSpec("t", "g", (ArgSpec("a", INT),), return_type=INT, examples=(example,))

    with pytest.raises(SpecError) as caught:
        ToolImplementation(spec, lambda rt, a: a)

    assert text == str(caught.value)


@given(st.integers(0, 2**32), st.integers(0, 4))
def test_a_spec_survives_plain_data(seed: int, count: int) -> None:
    """Through a dict and through JSON text, without loss."""
    spec = Generator(seed).spec(count)
    spec = attrs.evolve(spec, description="d", when_to_use="w", examples=(Example((b"x", 1), [b"y"], note="n"),))

    assert spec_from_data(spec_to_data(spec)) == spec
    assert spec_from_data(json.loads(json.dumps(spec_to_data(spec)))) == spec


def test_a_spec_has_the_shape_of_upstreams_export() -> None:
    """Upstream's own keys where it has them, so that its tools can be read and ours can be shown to it."""
    key = ArgSpec("zip", STRING, default="", max_length=5)
    spec = ToolSpec(
        "send",
        "post",
        (
            ArgSpec("to", MAP, keys=(key,), extra_keys=True, description="Where."),
            ArgSpec("note", STRING, required=False),
        ),
        return_type=ArgType.BOOL,
        description="Send a letter.",
        category="mail",
        return_help="Whether it was sent.",
        error_conditions="post.closed",
        variadic=True,
    )

    assert spec_to_data(spec) == {
        "name": "send",
        "groupname": "post",
        "fullname": "post.send",
        "description": "Send a letter.",
        "category": "mail",
        "args": [
            {
                "name": "to",
                "type": "map",
                "description": "Where.",
                "required": True,
                "mapKeySpecs": [
                    {
                        "name": "zip",
                        "type": "string",
                        "description": "",
                        "required": False,
                        "defaultValue": "",
                        "maxLength": 5,
                    }
                ],
                "extraKeys": True,
            },
            {"name": "note", "type": "string", "description": "", "required": False},
        ],
        "returnType": "bool",
        "returnHelp": "Whether it was sent.",
        "errorConditions": "post.closed",
        "variadic": True,
    }


def test_a_class_is_written_as_its_keys() -> None:
    """Data cannot contain a class, only the shape that a caller must pass."""

    @attrs.frozen
    class Point:
        x: float
        y: float = 0.0

    (arg,) = spec_to_data(ToolSpec("t", "g", (ArgSpec("p", MAP, cls=Point),)))["args"]

    assert [(key["name"], key["type"], key["required"]) for key in arg["mapKeySpecs"]] == [
        ("x", "float", True),
        ("y", "float", False),
    ]


def test_everything_wrong_with_data_is_said_at_once() -> None:
    """Each problem with its path in the data, and none of the data's values."""
    data = {
        "name": 1,
        "groupname": "g",
        "args": [
            {"name": "x", "type": "nubmer", "required": "false"},
            {"nme": "y", "type": "map", "mapKeySpecs": [{"name": "k", "type": "int", "minLength": 1}]},
        ],
        "returnType": None,
        "variadic": "false",
    }

    with pytest.raises(SpecError) as caught:
        spec_from_data(data)

    words = ", ".join(ArgType)
    assert caught.value.problems == (
        "expected str, got int @ ToolSpec.name",
        f"nubmer is not an ArgType; use one of {words} @ ToolSpec.args[0].type",
        "expected bool, got str @ ToolSpec.args[0].required",
        "missing key name @ ToolSpec.args[1].name",
        "min_length and max_length are not valid for int @ ToolSpec.args[1].mapKeySpecs[0]",
        "unknown keys nme @ ToolSpec.args[1]",
        "expected str, got None @ ToolSpec.returnType",
        "expected bool, got str @ ToolSpec.variadic",
    )


@pytest.mark.parametrize("data", [None, [], "spec", {}, {"name": "a", "groupname": "b", "fullname": "b.c"}])
def test_what_is_no_spec_at_all_is_a_spec_error(data: Any) -> None:
    """Whatever the data is, the only error is ours."""
    with pytest.raises(SpecError):
        spec_from_data(data)


@pytest.mark.parametrize(
    "policy",
    [
        ToolPolicy(),
        ToolPolicy(requires_trust=True, requires_approval=True, timeout=2.5, blocking=False),
        ToolPolicy(raw_files=True),
        ToolPolicy(capabilities=("fs:read:{path}", "net:read,write:a:1,b", "model:use"), effects=("reads", "net")),
    ],
)
def test_a_policy_survives_plain_data(policy: ToolPolicy) -> None:
    """In upstream's shape: resource, verbs and scopes apart."""
    assert policy_from_data(json.loads(json.dumps(policy_to_data(policy)))) == policy


def test_raw_files_is_written_only_if_declared() -> None:
    """The fingerprints of other tools, and so all lock files and indexes, are those of versions without the field."""
    needs = ToolPolicy(capabilities=("fs:read:a",), effects=("reads",))
    tool = ToolImplementation(ToolSpec("t", "t"), lambda rt: None, needs)

    assert fingerprint(tool) == "071f585ae70bee7b4e9ad2390f9ab2e5afed1f7810a6f92898cedbf2447f46e3"
    assert policy_to_data(ToolPolicy(raw_files=True)) == {"requiresTrust": False, "rawFiles": True}
    with pytest.raises(SpecError, match=r"^data: expected bool, got int @ ToolPolicy\.rawFiles$"):
        policy_from_data({"rawFiles": 1})


def test_upstreams_capabilities_are_read() -> None:
    """Its export spells them with capitals."""
    data = {"requiresTrust": True, "requiredCaps": [{"Resource": "fs", "Verbs": ["read", "write"], "Scopes": None}]}

    assert policy_from_data(data).capabilities == ("fs:read,write",)


def test_effects_decide_whether_acall_needs_a_thread() -> None:
    """Unless the tool says so itself."""
    assert [
        ToolPolicy(effects=effects, blocking=blocking).waits
        for effects, blocking in (((), None), (("pure",), None), (("clock", "random"), None), (("reads",), None))
    ] == [False, False, False, True]
    assert ToolPolicy(effects=("clock",), blocking=True).waits
    assert not ToolPolicy(effects=("net",), blocking=False).waits


@pytest.mark.parametrize(
    ("effects", "is_idempotent"),
    [((), False), (("pure",), True), (("idempotent",), True), (("idempotent", "writes"), True), (("reads",), False)],
)
def test_pure_and_idempotent_tools_may_be_called_twice(effects: tuple[str, ...], is_idempotent: bool) -> None:
    """A plan may retry such a call after a timeout."""
    assert ToolPolicy(effects=effects).is_idempotent is is_idempotent


def test_coerce_takes_a_spec_with_all_that_it_asks() -> None:
    """Keys, choices and bounds hold, and None passes as it does for every type."""
    rule = ArgSpec("m", MAP, keys=(ArgSpec("n", INT, minimum=1), ArgSpec("k", STRING, choices=("a",), default="a")))

    assert coerce('{"n": "2"}', rule) == {"n": 2, "k": "a"}
    assert coerce(None, rule) is None
    with pytest.raises(ValueError, match="expected int of at least 1, got int out of bounds"):
        coerce({"n": 0}, rule)


def test_unset_is_not_none() -> None:
    """A default of None is a default; no default is `UNSET`."""
    assert ArgSpec("a", INT, default=None).required is False
    assert ArgSpec("a", INT).default is UNSET
    assert repr(UNSET) == "UNSET"
