"""Rules of every nested form, by name: lists, tuples, sets, maps, formats and unions."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript import ArgSpec, ArgType


def rule(kind: str, **fields: Any) -> ArgSpec:
    """Return the rule of the argument ``x``."""
    return ArgSpec("x", ArgType(kind), **fields)


def listed(*items: Any, **fields: Any) -> ArgSpec:
    """Return a list whose items have these specs."""
    return rule("slice", **({"items": items[0]} if len(items) == 1 else {"prefix_items": items}), **fields)


ID = ArgSpec("id", "int")
NAME = ArgSpec("name", "string", required=False)
CARD = ArgSpec("card", "map", keys=(ArgSpec("kind", "string", choices=("card",)), ArgSpec("number", "string")))
CASH = ArgSpec("cash", "map", keys=(ArgSpec("kind", "string", choices=("cash",)), NAME))
CASH_AND_ID = attrs.evolve(CASH, keys=(*CASH.keys, attrs.evolve(ID, required=False)))

RULES: dict[str, ArgSpec] = {
    "any": rule("any"),
    "int": rule("int"),
    "string": rule("string"),
    "map": rule("map"),
    "slice": rule("slice"),
    "slice_int": rule("slice_int"),
    "slice_int, at most 3": rule("slice_int", maximum=3),
    "map_string_int": rule("map_string_int"),
    "map_any_any": rule("map_any_any"),
    "nullable ints": listed(rule("int", nullable=True)),
    "lists of ints": listed(rule("slice_int")),
    "lists of few ints": listed(rule("slice_int", max_length=1)),
    "lists of floats": listed(rule("slice_float")),
    "lists": listed(rule("slice")),
    "few lists": listed(rule("slice"), max_length=1),
    "unique ints": rule("slice_int", unique_items=True),
    "pair": listed("int", "string"),
    "pair of ints": listed("int", "int"),
    "triple": listed("int", "int", "any"),
    "objects": rule("slice_map", keys=(ID, NAME)),
    "unique objects": rule("slice_map", keys=(ID, NAME), unique_items=True),
    "nullable objects": listed(ArgSpec("item", "map", keys=(ID, NAME), nullable=True)),
    "map of ints or null": rule("map", value_spec=ArgSpec("value", "int", nullable=True)),
    "map of lists": rule("map", value_spec="slice"),
    "map of lists of ints": rule("map", value_spec="slice_int"),
    "map by color": rule("map", key_spec=ArgSpec("key", "string", choices=("Red", "blue"))),
    "map by more colors": rule("map", key_spec=ArgSpec("key", "string", choices=("Red", "blue", "b"))),
    "map by clashing colors": rule("map", key_spec=ArgSpec("key", "string", choices=("Red", "red", "blue"))),
    "map by int": rule("map_any_any", key_spec="int", value_spec="any"),
    "map of strings by int": rule("map_any_any", key_spec="int", value_spec="string"),
    "closed object": rule("map", keys=(ID, NAME)),
    "smaller object": rule("map", keys=(ID,)),
    "open object": rule("map", keys=(ID,), extra_keys=True),
    "object and ints": rule("map", keys=(ID,), value_spec="int"),
    "object and strings": rule("map", keys=(ID,), value_spec="string"),
    "object and strings or null": rule("map", keys=(ID,), value_spec=ArgSpec("value", "string", nullable=True)),
    "date": rule("string", format="date"),
    "date-time": rule("string", format="date-time"),
    "color": rule("string", choices=("Red", "blue")),
    "colors": rule("string", choices=("Red", "blue", "RED")),
    "price": rule("string", format="decimal", minimum=0),
    "any price": rule("string", format="decimal"),
    "dates": listed(rule("string", format="date")),
    "int or string": rule("any", any_of=("int", "string")),
    "string or int": rule("any", any_of=("string", "int")),
    "int or auto": rule("any", any_of=("int", ArgSpec("a", "string", choices=("auto",)))),
    "int or float": rule("any", any_of=("int", "float")),
    "int or bool": rule("any", any_of=("int", "bool")),
    "int, bool or ints": rule("any", any_of=("int", "bool", "slice_int")),
    "int, bool or string": rule("any", any_of=("int", "bool", "string")),
    "date or string": rule("any", any_of=(rule("string", format="date"), "string")),
    "int or ints": rule("any", any_of=("int", "slice_int")),
    "int or list": rule("any", any_of=("int", "slice")),
    "string or anything": rule("any", any_of=("string", ArgSpec("a", "any", description="Something else."))),
    "string or described string or anything": rule(
        "any", any_of=("string", ArgSpec("a", "any", any_of=("string", "any"), description="Something else."))
    ),
    "int or object": rule("any", any_of=("int", ArgSpec("o", "map", keys=(ID,)))),
    "int or bigger object": rule("any", any_of=("int", ArgSpec("o", "map", keys=(ID, NAME)))),
    "payment": rule("any", any_of=(CARD, CASH)),
    "payment with id": rule("any", any_of=(CARD, CASH_AND_ID)),
    "payment or id": rule("any", any_of=(CARD, CASH, ArgSpec("i", "map", keys=(ID,)))),
    "payment or text": rule("any", any_of=(CARD, CASH, "string")),
    "payments": listed(ArgSpec("p", "any", any_of=(CARD, CASH))),
}
