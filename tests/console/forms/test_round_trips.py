"""Forms return the arguments that they were made for, and the engine makes the same exact values of them."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from tests.coercion.nested_specs import NestedGenerator
from tests.conftest import ALL
from tests.console.forms.html_forms import html_of, submitted
from tests.properties import same

from neuroscript import ArgumentError, ToolSpec
from neuroscript.coercion.plain_data import to_plain
from neuroscript.console.forms.fields import fields_of
from neuroscript.console.forms.json_text import read_arguments, write_arguments
from neuroscript.console.forms.reader import Reading, read_form
from neuroscript.console.forms.values import fill_form
from neuroscript.spec.binding import bind_named
from neuroscript.testing.fuzzing import values

RELAXED = settings(max_examples=2_000 if ALL else 30, deadline=None, suppress_health_check=list(HealthCheck))


def spec_of(seed: int, count: int = 2) -> ToolSpec:
    """Return the spec of a tool with random nested arguments; one seed always makes the same one."""
    generator = NestedGenerator(seed)
    pick = Random(seed)
    args = []
    for index in range(count):
        rule = generator.nested_rule(3)
        args.append(attrs.evolve(rule, name=f"a{index}.$~x" if index else "a0", required=pick.random() < 0.5))
    return ToolSpec("t", "g", tuple(args), variadic=pick.random() < 0.2)


def values_of(spec: ToolSpec, draw: Any) -> dict[str, Any]:
    """Return valid arguments of a tool."""
    found = {}
    for arg in spec.args:
        if spec.variadic and arg is spec.args[-1]:
            found[arg.name] = draw(st.lists(values(arg), min_size=1, max_size=3))
        elif arg.required or draw(st.booleans()):
            found[arg.name] = draw(values(arg))
    try:
        bind_named(spec, found)
    except ArgumentError:  # choices that are repeated exceed a maximum length
        reject()
    return found


def through_form(spec: ToolSpec, arguments: dict[str, Any]) -> Reading:
    """Return what a browser sends back for a form with these arguments, rendered twice."""
    submission = fill_form(spec.args, arguments, variadic=spec.variadic)
    for _ in range(2):
        tree = fields_of(spec.args, submission, variadic=spec.variadic)
        submission = submitted(html_of(tree))
    return read_form(spec.args, submission, variadic=spec.variadic)


def has_bytes_within_any(spec: ToolSpec, arguments: dict[str, Any]) -> bool:
    """Return whether a value of any type contains bytes, which JSON cannot express."""
    as_json = to_plain(arguments)
    return "$base64" in repr(as_json) and not same(bind_named(spec, as_json), bind_named(spec, arguments))


def is_plain(value: Any) -> bool:
    """Return whether a value has the same meaning as JSON, so a field with JSON can hold it."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return True
        case list() | tuple():
            return all(map(is_plain, value))
        case dict():
            return all(isinstance(key, str) and is_plain(each) for key, each in value.items())
        case _:
            return False


@RELAXED
@given(st.integers(0, 10**9), st.data())
def test_form_returns_the_arguments_it_was_made_for(seed: int, data: Any) -> None:
    """For random specs and values, the engine makes the same exact values of what the form returns."""
    spec = spec_of(seed)
    arguments = values_of(spec, data.draw)
    assume(not has_bytes_within_any(spec, arguments))

    reading = through_form(spec, arguments)

    assert reading.problems == ()
    assert reading.secrets == {}
    assert same(bind_named(spec, reading.arguments), bind_named(spec, arguments))


@RELAXED
@given(st.integers(0, 10**9), st.data())
def test_json_returns_the_arguments_it_was_made_for(seed: int, data: Any) -> None:
    """The JSON beside the form has the same meaning as the form, for values that JSON can express."""
    spec = spec_of(seed)
    arguments = values_of(spec, data.draw)
    if not is_plain(list(arguments.values())):
        return

    text = write_arguments(through_form(spec, arguments).shown)
    parsed = read_arguments(spec.args, text, {}, variadic=spec.variadic)

    assert parsed.problems == ()
    assert same(bind_named(spec, parsed.arguments), bind_named(spec, to_plain(arguments)))
