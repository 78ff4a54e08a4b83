"""Nested specs as plain data: nothing is lost, the fingerprint notices each part, and errors have the whole path."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import attrs
import pytest
from tests.spec.nested_rules import RULES

from neuroscript import ArgSpec, SpecError, Toolset, ToolSpec, spec_from_data, spec_to_data
from neuroscript.tools.fingerprints import digest_of


@pytest.mark.parametrize("name", RULES)
def test_nested_spec_survives_plain_data(name: str) -> None:
    """As an argument, as a key, and as the result; through a dict and through JSON text."""
    inner = ArgSpec("outer", "map", keys=(attrs.evolve(RULES[name], name="k", description="d", secret=True),))
    spec = ToolSpec("t", "g", (RULES[name], inner), returns=RULES[name], return_help="r")

    data = spec_to_data(spec)

    assert spec == spec_from_data(data)
    assert spec == spec_from_data(json.loads(json.dumps(data)))


def test_each_nested_spec_has_its_own_fingerprint() -> None:
    """A lock file and an approval notice a change at any depth, in an argument and in a result."""
    digests = {}
    for name, rule in RULES.items():
        digests[name] = digest_of({"spec": spec_to_data(ToolSpec("t", "g", (rule,)))})
        digests[f"result {name}"] = digest_of({"spec": spec_to_data(ToolSpec("t", "g", returns=rule))})

    assert [] == [pair for pair in combinations(digests, 2) if digests[pair[0]] == digests[pair[1]]]


def test_nested_specs_have_these_keys() -> None:
    args = (
        ArgSpec("pairs", "slice", items=ArgSpec("item", "slice", prefix_items=("int", "string")), unique_items=True),
        ArgSpec("days", "map_any_any", key_spec="int", value_spec=ArgSpec("value", "string", format="date")),
        ArgSpec("who", "any", any_of=("int", ArgSpec("alternative", "string", choices=("me",)))),
    )

    data = spec_to_data(ToolSpec("t", "g", args, returns=ArgSpec("result", "slice", items="slice_int")))

    assert [_short(each) for each in data["args"]] == [
        {
            "name": "pairs",
            "type": "slice",
            "uniqueItems": True,
            "items": {"name": "item", "type": "slice", "prefixItems": [_named("int"), _named("string")]},
        },
        {
            "name": "days",
            "type": "map_any_any",
            "keySpec": {"name": "key", "type": "int"},
            "valueSpec": {"name": "value", "type": "string", "format": "date"},
        },
        {
            "name": "who",
            "type": "any",
            "anyOf": [
                {"name": "alternative", "type": "int"},
                {"name": "alternative", "type": "string", "choices": ["me"]},
            ],
        },
    ]
    assert ("slice", {"name": "result", "type": "slice", "items": _named("slice_int")}) == (
        data["returnType"],
        _short(data["returns"]),
    )


def _named(kind: str) -> dict[str, Any]:
    return {"name": "item", "type": kind}


def _short(data: Any) -> Any:
    """Return data without the keys that are always there."""
    if isinstance(data, list):
        return [_short(each) for each in data]
    if not isinstance(data, dict):
        return data
    return {key: _short(each) for key, each in data.items() if key not in ("description", "required")}


def test_faults_in_nested_data_have_their_path() -> None:
    """All at once, at any depth."""
    inner = {"name": "value", "type": "slice", "items": {"name": "item", "type": "nubmer"}}
    data = {
        "name": "t",
        "groupname": "g",
        "args": [
            {"name": "a", "type": "map", "valueSpec": inner},
            {
                "name": "b",
                "type": "any",
                "anyOf": [{"name": "x", "type": "int"}, {"name": "x", "type": "int", "nul": 1}],
            },
            {"name": "c", "type": "slice", "prefixItems": "int", "uniqueItems": 1},
            {"name": "d", "type": "int", "items": {"name": "item", "type": "int"}},
        ],
        "returns": {"name": "result", "type": "string", "format": "dates"},
    }

    with pytest.raises(SpecError) as caught:
        spec_from_data(data)

    assert [each.partition(" @ ")[2] for each in caught.value.problems] == [
        "ToolSpec.args[0].valueSpec.items.type",
        "ToolSpec.args[1].anyOf[1]",
        "ToolSpec.args[2].prefixItems",
        "ToolSpec.args[2].uniqueItems",
        "ToolSpec.args[3]",
        "ToolSpec.returns",
    ]


@pytest.mark.parametrize("name", RULES)
def test_copied_spec_is_equal(name: str) -> None:
    """An engine rebuilds each spec that a plugin provides."""
    toolset = Toolset("g")
    added = toolset.add(ToolSpec("t", "g", (RULES[name],), returns=RULES[name]), lambda rt, x: x)

    assert [added.spec] == [copy.spec for copy in toolset.copies()]


class Changing(ArgSpec):
    """A spec that could answer differently each time."""


@pytest.mark.parametrize("field", ["items", "value_spec", "key_spec", "prefix_items", "any_of"])
def test_nested_spec_of_a_subclass_is_refused(field: str) -> None:
    """An engine accepts exact specs only, at any depth."""
    inner = Changing("inner", "string", format="date")  # type: ignore[arg-type]
    kinds = {"value_spec": "map", "key_spec": "map", "any_of": "any"}
    changing: Any = {"prefix_items": ("int", inner), "any_of": ("int", inner)}.get(field, inner)
    toolset = Toolset("g")
    arg = ArgSpec("a", kinds.get(field, "slice"), **{field: changing})  # type: ignore[arg-type]
    toolset.add(ToolSpec("t", "g", (arg,)), lambda rt, a: a)

    with pytest.raises(SpecError, match=r"g\.t was changed after it was added"):
        toolset.copies()
