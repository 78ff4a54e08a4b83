"""Secret values of a call, and the masked form that a person sees."""

from __future__ import annotations

from typing import Any

import pytest

from neuroscript import ArgSpec, ArgType, ToolSpec
from neuroscript.runtime.masking import mask_secrets, secret_values

TOKEN = ArgSpec("token", ArgType.ANY, secret=True, required=False, nullable=True)
LOGIN = (ArgSpec("user", ArgType.STRING), ArgSpec("password", ArgType.STRING, secret=True, required=False))
HOST = (ArgSpec("name", ArgType.STRING), ArgSpec("login", ArgType.MAP, keys=LOGIN))

CASES: dict[str, tuple[tuple[ArgSpec, ...], bool, tuple[Any, ...], list[Any], dict[str, Any]]] = {
    "none": ((ArgSpec("a", ArgType.INT),), False, (5,), [], {"a": 5}),
    "a whole argument": ((ArgSpec("a", ArgType.INT), TOKEN), False, (5, "x"), ["x"], {"a": 5, "token": "[secret]"}),
    "not given": ((TOKEN,), False, (None,), [], {"token": None}),
    "a map": ((TOKEN,), False, ({"a": ["x"]},), [{"a": ["x"]}], {"token": "[secret]"}),
    "a key": (
        (ArgSpec("login", ArgType.MAP, keys=LOGIN),),
        False,
        ({"user": "ada", "password": "x"},),
        ["x"],
        {"login": {"user": "ada", "password": "[secret]"}},
    ),
    "an absent key": (
        (ArgSpec("login", ArgType.MAP, keys=LOGIN),),
        False,
        ({"user": "ada"},),
        [],
        {"login": {"user": "ada"}},
    ),
    "a map that is not given": (
        (ArgSpec("login", ArgType.MAP, keys=LOGIN, nullable=True),),
        False,
        (None,),
        [],
        {"login": None},
    ),
    "a key in a key, in each map of a slice": (
        (ArgSpec("hosts", ArgType.SLICE_MAP, keys=HOST, extra_keys=True),),
        False,
        ([{"name": "a", "login": {"user": "u", "password": "x"}}, {"name": "b", "login": {"user": "v"}, "more": [1]}],),
        ["x"],
        {
            "hosts": [
                {"name": "a", "login": {"user": "u", "password": "[secret]"}},
                {"name": "b", "login": {"user": "v"}, "more": [1]},
            ]
        },
    ),
    "in each item of a list of lists": (
        (ArgSpec("groups", ArgType.SLICE, items=ArgSpec("group", ArgType.SLICE_MAP, keys=LOGIN)),),
        False,
        ([[{"user": "a", "password": "x"}], [{"user": "b"}, {"user": "c", "password": "y"}]],),
        ["x", "y"],
        {
            "groups": [
                [{"user": "a", "password": "[secret]"}],
                [{"user": "b"}, {"user": "c", "password": "[secret]"}],
            ]
        },
    ),
    "in a tuple": (
        (ArgSpec("pair", ArgType.SLICE, prefix_items=("int", ArgSpec("login", ArgType.MAP, keys=LOGIN))),),
        False,
        ([1, {"user": "ada", "password": "x"}],),
        ["x"],
        {"pair": [1, {"user": "ada", "password": "[secret]"}]},
    ),
    "in the values of a map, beside its keys": (
        (
            ArgSpec(
                "accounts",
                ArgType.MAP,
                keys=(ArgSpec("token", ArgType.STRING, secret=True), ArgSpec("n", ArgType.INT)),
                value_spec=ArgSpec("value", ArgType.MAP, keys=LOGIN, nullable=True),
            ),
        ),
        False,
        ({"token": "t", "n": 1, "ada": {"user": "ada", "password": "x"}, "bob": None},),
        ["t", "x"],
        {"accounts": {"token": "[secret]", "n": 1, "ada": {"user": "ada", "password": "[secret]"}, "bob": None}},
    ),
    "in one alternative of a union": (
        (ArgSpec("who", ArgType.ANY, any_of=("string", ArgSpec("login", ArgType.MAP, keys=LOGIN)), nullable=True),),
        False,
        ({"user": "ada", "password": "x"},),
        ["x"],
        {"who": {"user": "ada", "password": "[secret]"}},
    ),
    "in another alternative of a union": (
        (ArgSpec("who", ArgType.ANY, any_of=("string", ArgSpec("login", ArgType.MAP, keys=LOGIN))),),
        False,
        ("password",),
        [],
        {"who": "password"},
    ),
    "in either alternative that accepts a value": (
        (
            ArgSpec(
                "who",
                ArgType.ANY,
                any_of=(
                    ArgSpec("plain", ArgType.MAP_STRING_STRING),
                    ArgSpec("login", ArgType.MAP, keys=LOGIN),
                    ArgSpec("more", ArgType.SLICE, items=ArgSpec("login", ArgType.MAP, keys=LOGIN)),
                ),
            ),
        ),
        False,
        ({"user": "ada", "password": "x"},),
        ["x"],
        {"who": {"user": "ada", "password": "[secret]"}},
    ),
    "each of a variadic argument": (
        (ArgSpec("a", ArgType.INT), TOKEN),
        True,
        (5, "x", None, "y"),
        ["x", "y"],
        {"a": 5, "token": ["[secret]", None, "[secret]"]},
    ),
    "none of a variadic argument": ((ArgSpec("a", ArgType.INT), TOKEN), True, (5,), [], {"a": 5, "token": []}),
}


@pytest.mark.parametrize("name", CASES)
def test_person_sees_everything_that_is_not_secret(name: str) -> None:
    """Exactly the values that are yielded as secret are masked."""
    args, variadic, values, secret, shown = CASES[name]
    spec = ToolSpec("t", "g", args, variadic=variadic)

    assert [*secret_values(spec, values)] == secret
    assert mask_secrets(spec, values) == shown
    assert any(arg.holds_secret for arg in spec.args) == (name != "none")


def test_masked_arguments_are_a_copy() -> None:
    """Code that shows the arguments cannot change those of the call."""
    login = ArgSpec("login", ArgType.MAP, keys=LOGIN, extra_keys=True)
    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.SLICE), login))
    values = ([[1]], {"user": "ada", "password": "x", "more": [1]})

    shown = mask_secrets(spec, values)
    shown["a"][0].append(2)
    shown["login"]["user"] = "eve"
    shown["login"]["more"].append(2)

    assert values == ([[1]], {"user": "ada", "password": "x", "more": [1]})
