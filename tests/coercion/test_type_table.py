"""The table of ArgTypes is the only place that lists facts by type."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from tests.properties import REFUSED, outcome, same

import neuroscript
from neuroscript import ArgSpec, ArgType, ToolSpec, spec_from_schema, spec_to_schema
from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.types import READINGS, TYPES
from neuroscript.testing.checks.samples import takes

SOURCE = Path(neuroscript.__file__).parent
MAX_KEYS = 4
"""How many types a module may name in one dict or set: some facts concern only a few types."""

ALLOWED = {
    "coercion/types.py",  # the table
    "coercion/values.py",  # the functions that read containers
    "interop/neurosurfer/spec_text.py",  # the names of types in another program
}


def tables(path: Path) -> list[int]:
    """Return the lines of the dicts, sets and matches of a module that name more than a few ArgTypes."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Dict(keys=keys, values=values):
                parts = [*keys, *values]
            case ast.Set(elts=parts):
                pass
            case ast.Match(cases=cases):
                parts = [each for case in cases for each in ast.walk(case.pattern)]
            case _:
                continue
        names = {
            each.attr
            for each in parts
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "ArgType"
        }
        if len(names) > MAX_KEYS:
            found.append(node.lineno)
    return found


@pytest.mark.slow
def test_other_modules_have_no_tables_by_type() -> None:
    found = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if tables(path)}
    assert found == ALLOWED


def test_the_search_finds_the_table_itself() -> None:
    assert tables(SOURCE / "coercion" / "types.py")


def test_every_type_has_a_row_in_the_order_of_the_enum() -> None:
    assert [*TYPES] == [*ArgType]


@pytest.mark.parametrize("kind", ArgType)
def test_facts_agree_with_the_coercion(kind: ArgType) -> None:
    row = TYPES[kind]
    assert not row.element or row.builtin is list
    assert not row.value or row.builtin is dict
    assert all((kind in readings) == (row.strict is not None) for readings in READINGS.values())
    if kind is ArgType.VOID:
        return
    arg = ArgSpec("value", kind)
    example = json.loads(row.example)
    value = coerce(example, arg) if example is not None else None
    assert row.builtin is None or type(value) is row.builtin
    assert all(takes(arg, each) for each in (*row.samples, *row.rare_samples) if each is not None)
    assert row.accepts_text == takes(arg, "E_1") or kind is ArgType.NODEID


class Text(str):
    """A subclass of a built-in, as of numpy or an enum."""


class Whole(int):
    """An int."""


class Real(float):
    """A float."""


class Raw(bytes):
    """Bytes."""


class Items(list[Any]):
    """A list."""


class Entries(dict[Any, Any]):
    """A dict."""


SUBCLASSES: dict[type, type] = {str: Text, int: Whole, float: Real, bytes: Raw, list: Items, dict: Entries}


def in_subclasses(value: Any) -> Any:
    """Return a value in which every built-in is an instance of a subclass."""
    match value:
        case list():
            return Items(map(in_subclasses, value))
        case dict():
            return Entries({in_subclasses(key): in_subclasses(each) for key, each in value.items()})
    return SUBCLASSES[type(value)](value) if type(value) in SUBCLASSES else value


@pytest.mark.parametrize("kind", ArgType)
def test_instance_of_a_subclass_becomes_the_builtin_except_in_strict_mode(kind: ArgType) -> None:
    """At every level; strict mode accepts exact types only."""
    for sample in (*TYPES[kind].samples, *TYPES[kind].rare_samples):
        wrapped = in_subclasses(sample)
        assert same(coerce(wrapped, kind), coerce(sample, kind))
        if wrapped is not sample:
            assert outcome(wrapped, kind, "strict") is REFUSED


@pytest.mark.parametrize("kind", [kind for kind in ArgType if kind is not ArgType.VOID])
def test_every_type_survives_a_schema(kind: ArgType) -> None:
    spec = ToolSpec("t", "g", (ArgSpec("value", kind),), return_type=kind)
    assert spec_from_schema("g.t", json.loads(json.dumps(spec_to_schema(spec)))) == spec
