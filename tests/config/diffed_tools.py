"""Definitions of tools, and each change of an argument with its compatibility."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript import (
    ArgSpec,
    ToolPolicy,
    ToolSpec,
)
from neuroscript.config.tool_diff import Definition, changes


def tool(*args: ArgSpec, policy: ToolPolicy | None = None, **fields: Any) -> Definition:
    """Return the definition of a tool with these arguments."""
    return Definition(ToolSpec("t", "g", args, **fields), policy or ToolPolicy())


def change_lines(old: Definition, new: Definition) -> list[str]:
    """Return the changes as a person reads them."""
    return [f"{each.kind} {each}" for each in changes(old, new)]


INT = ArgSpec("n", "int")
FLOAT = ArgSpec("f", "float")
LATER = ArgSpec("n", "int", required=False)
FIVE = ArgSpec("n", "int", default=5)
TEXT = ArgSpec("s", "string")
DEEP = ArgSpec("m", "map", keys=(ArgSpec("depth", "int"), ArgSpec("tail", "string", required=False)))
evolve = attrs.evolve


def keyed(**fields: Any) -> ArgSpec:
    """Return the map with another first key."""
    return evolve(DEEP, keys=(evolve(DEEP.keys[0], **fields), DEEP.keys[1]))


READ = "the text for models changed; review it before use"

ARGUMENT_ROWS: list[tuple[str, Any, Any, list[str]]] = [
    ("gone", (INT, TEXT), (INT,), ["breaking args.s: the argument was removed"]),
    ("new, required", (INT,), (INT, TEXT), ["breaking args.s: a new required argument"]),
    (
        "new, optional",
        (INT,),
        (INT, evolve(TEXT, required=False)),
        ["compatible args.s: a new optional argument"],
    ),
    (
        "new, before others",
        (INT,),
        (evolve(TEXT, required=False), INT),
        [
            "breaking args: the order of arguments changed, which affects positional calls",
            "compatible args.s: a new optional argument",
        ],
    ),
    (
        "order",
        (INT, TEXT),
        (TEXT, INT),
        ["breaking args: the order of arguments changed, which affects positional calls"],
    ),
    ("required", (LATER,), (INT,), ["breaking args.n.required: is now required"]),
    ("optional", (INT,), (LATER,), ["compatible args.n.required: is now optional"]),
    ("optional, with default", (INT,), (FIVE,), ["compatible args.n.required: is now optional"]),
    ("required, had a default", (FIVE,), (INT,), ["breaking args.n.required: is now required"]),
    ("default", (FIVE,), (evolve(FIVE, default=6),), ["breaking args.n.default: has a different default"]),
    ("default, new", (LATER,), (FIVE,), ["breaking args.n.default: now has a default"]),
    ("default, gone", (FIVE,), (LATER,), ["breaking args.n.default: no longer has a default"]),
    ("default, None", (LATER,), (evolve(LATER, default=None),), ["compatible args.n.default: now has a default"]),
    ("nullable", (INT,), (evolve(INT, nullable=True),), ["compatible args.n.nullable: now accepts None"]),
    (
        "nullable, no more",
        (evolve(INT, nullable=True),),
        (INT,),
        ["breaking args.n.nullable: no longer accepts None"],
    ),
    (
        "nullable, was the default",
        (FIVE,),
        (evolve(FIVE, nullable=True),),
        ["breaking args.n.nullable: now accepts None"],
    ),
    (
        "nullable, no difference",
        (LATER,),
        (evolve(LATER, nullable=True),),
        ["compatible args.n.nullable: now accepts None"],
    ),
    ("type", (INT,), (evolve(INT, type="string"),), ["breaking args.n.type: changed from int to string"]),
    (
        "type, wider",
        (INT,),
        (evolve(INT, type="any"),),
        ["compatible args.n.type: accepts more: any instead of int"],
    ),
    (
        "type, wider, with its default",
        (FIVE,),
        (ArgSpec("n", "any", default=5),),
        ["compatible args.n.type: accepts more: any instead of int"],
    ),
    ("choices", (INT,), (evolve(INT, choices=(1, 2)),), ["breaking args.n.choices: now accepts only certain values"]),
    (
        "choices, none",
        (evolve(INT, choices=(1, 2)),),
        (INT,),
        ["compatible args.n.choices: now accepts all values of its type"],
    ),
    (
        "choices, others",
        (evolve(INT, choices=(1, 2)),),
        (evolve(INT, choices=(2, 3, 4)),),
        [
            "breaking args.n.choices: 1 value is no longer accepted",
            "compatible args.n.choices: 2 further values are accepted",
        ],
    ),
    (
        "choices, order",
        (evolve(INT, choices=(1, 2)),),
        (evolve(INT, choices=(2, 1)),),
        ["compatible args.n.choices: the order of values changed"],
    ),
    ("minimum", (INT,), (evolve(INT, minimum=0),), ["breaking args.n.minimum: the minimum is tighter"]),
    (
        "minimum, lower",
        (evolve(INT, minimum=3),),
        (evolve(INT, minimum=0),),
        ["compatible args.n.minimum: the minimum is looser"],
    ),
    (
        "maximum",
        (evolve(INT, maximum=3),),
        (evolve(INT, maximum=2),),
        ["breaking args.n.maximum: the maximum is tighter"],
    ),
    ("maximum, gone", (evolve(INT, maximum=3),), (INT,), ["compatible args.n.maximum: the maximum is looser"]),
    (
        "exclusive_minimum",
        (evolve(FLOAT, minimum=0),),
        (evolve(FLOAT, exclusive_minimum=0),),
        ["breaking args.f.exclusive_minimum: the minimum is tighter"],
    ),
    (
        "exclusive_minimum, now inclusive",
        (evolve(FLOAT, exclusive_minimum=0),),
        (evolve(FLOAT, minimum=0),),
        ["compatible args.f.minimum: the minimum is looser"],
    ),
    (
        "exclusive_maximum",
        (evolve(FLOAT, maximum=1),),
        (evolve(FLOAT, exclusive_maximum=1),),
        ["breaking args.f.exclusive_maximum: the maximum is tighter"],
    ),
    (
        "exclusive_maximum, gone",
        (evolve(FLOAT, exclusive_maximum=1),),
        (FLOAT,),
        ["compatible args.f.exclusive_maximum: the maximum is looser"],
    ),
    (
        "min_length",
        (TEXT,),
        (evolve(TEXT, min_length=1),),
        ["breaking args.s.min_length: the minimum length is tighter"],
    ),
    (
        "max_length",
        (evolve(TEXT, max_length=5),),
        (evolve(TEXT, max_length=9),),
        ["compatible args.s.max_length: the maximum length is looser"],
    ),
    (
        "bounds, written otherwise",
        (evolve(INT, minimum=1),),
        (evolve(INT, minimum=1.0),),
        ["compatible is written differently"],
    ),
    ("secret", (TEXT,), (evolve(TEXT, secret=True),), ["compatible args.s.secret: its value is now secret"]),
    (
        "secret, no more",
        (evolve(TEXT, secret=True),),
        (TEXT,),
        ["breaking args.s.secret: its value is no longer secret"],
    ),
    ("description", (INT,), (evolve(INT, description="Send it all."),), [f"compatible args.n.description: {READ}"]),
    ("key, gone", (DEEP,), (evolve(DEEP, keys=DEEP.keys[:1]),), ["breaking args.m.keys.tail: the key was removed"]),
    (
        "key, new and required",
        (DEEP,),
        (evolve(DEEP, keys=(*DEEP.keys, TEXT)),),
        ["breaking args.m.keys.s: a new required key"],
    ),
    (
        "key, new",
        (DEEP,),
        (evolve(DEEP, keys=(*DEEP.keys, FIVE)),),
        ["compatible args.m.keys.n: a new optional key"],
    ),
    (
        "key, new, fills the map",
        (evolve(DEEP, max_length=2),),
        (evolve(DEEP, max_length=2, keys=(*DEEP.keys, FIVE)),),
        ["breaking args.m.keys.n: a new optional key"],
    ),
    (
        "key, optional",
        (DEEP,),
        (keyed(required=False),),
        ["compatible args.m.keys.depth.required: is now optional"],
    ),
    ("key, required", (keyed(required=False),), (DEEP,), ["breaking args.m.keys.depth.required: is now required"]),
    ("key, type", (DEEP,), (keyed(type="string"),), ["breaking args.m.keys.depth.type: changed from int to string"]),
    (
        "key, default of None",
        (keyed(required=False),),
        (keyed(required=None, default=None),),
        ["breaking args.m.keys.depth.default: now has a default"],
    ),
    (
        "keys, order",
        (DEEP,),
        (evolve(DEEP, keys=DEEP.keys[::-1]),),
        ["compatible args.m.keys: the order of keys changed"],
    ),
    (
        "keys, none",
        (DEEP,),
        (evolve(DEEP, keys=()),),
        [
            "compatible args.m.keys.depth: the key no longer has a spec",
            "compatible args.m.keys.tail: the key no longer has a spec",
            "compatible args.m.extra_keys: now accepts unknown keys",
        ],
    ),
    (
        "keys, none, and one was secret",
        (keyed(secret=True),),
        (evolve(DEEP, keys=()),),
        [
            "breaking args.m.keys.depth: the key no longer has a spec",
            "compatible args.m.keys.tail: the key no longer has a spec",
            "compatible args.m.extra_keys: now accepts unknown keys",
        ],
    ),
    (
        "keys, none, and one was a float",
        (evolve(DEEP, keys=(ArgSpec("depth", "float"),)),),
        (evolve(DEEP, keys=()),),
        [
            "breaking args.m.keys.depth: the key no longer has a spec",
            "compatible args.m.extra_keys: now accepts unknown keys",
        ],
    ),
    (
        "keys, some",
        (evolve(DEEP, keys=()),),
        (DEEP,),
        [
            "breaking args.m.keys.depth: the key accepted any value and now has a spec",
            "breaking args.m.keys.tail: the key accepted any value and now has a spec",
            "breaking args.m.extra_keys: no longer accepts unknown keys",
        ],
    ),
    (
        "extra_keys",
        (DEEP,),
        (evolve(DEEP, extra_keys=True),),
        ["compatible args.m.extra_keys: now accepts unknown keys"],
    ),
    (
        "extra_keys, no more",
        (evolve(DEEP, extra_keys=True),),
        (DEEP,),
        ["breaking args.m.extra_keys: no longer accepts unknown keys"],
    ),
]
