"""Fuzzing of tools: valid arguments must lead to a result or a deliberate failure, invalid ones to an ArgumentError.

It requires hypothesis, which is imported on first use: ``pip install hypothesis``.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from neuroscript.coercion.parameters import COUNT, Form, instance, optional, require
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.coercion.types import ELEMENTS, TYPES, VALUES, ArgType
from neuroscript.errors import ArgumentError, CallError
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.testing.checks.check_case import Violation
from neuroscript.testing.checks.contract import is_refused
from neuroscript.testing.checks.samples import WRONG, decimals_within, takes
from neuroscript.testing.checks.setup import Setup, toolsets_of
from neuroscript.testing.checks.trials import OUTSIDE, Log, call, observe, run_trial
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SEED: Final = Form("an integer", lambda seed: type(seed) is int)
INT: Final = 2**63 - 1
MAX_SIZE: Final = 50
"""Maximum number of characters, items and keys in a generated value."""


def fuzz_toolset(
    toolsets: Toolset | Sequence[Toolset], setup: Setup | None = None, *, examples: int = 50, seed: int = 0
) -> None:
    """Call each tool with generated values through a real engine.

    Tools with the effects ``exec`` and ``net``, and tools that require trust or approval, are skipped.

    Args:
        toolsets: One toolset, or several that are delivered together.
        setup: The environment that the examples need.
        examples: The number of valid and of invalid calls generated for each tool.
        seed: The same seed generates the same calls.

    Raises:
        AssertionError: If valid arguments lead to an unintended error, or invalid ones do not lead to an
            `ArgumentError`. The message names tool, argument and type, but no value.
    """
    sets = toolsets_of("fuzz", toolsets)
    require("fuzz", setup=(setup, optional(instance(Setup))), examples=(examples, COUNT), seed=(seed, SEED))
    tools = tuple(tool for each in sets for tool in each)
    found = [fault for tool in tools if _can_be_drawn(tool) for fault in _faults(tool, tools, setup, examples, seed)]
    if found:
        raise AssertionError("\n".join(map(str, found)))


def _can_be_drawn(tool: ToolImplementation) -> bool:
    return not (is_refused(tool) or OUTSIDE.intersection(tool.policy.effects) or not tool.spec.args)


def _faults(
    tool: ToolImplementation, tools: Sequence[ToolImplementation], setup: Setup | None, examples: int, seed: int
) -> list[Violation]:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    log = Log()
    watching = [observe(each, log) if each is tool else each for each in tools]
    faults: dict[str, None] = {}
    with (setup or Setup()).world(watching) as world:

        def valid(args: dict[str, Any]) -> None:
            trial = run_trial(world, log, tool, args, "valid arguments")
            if trial.crash:
                faults[f"valid arguments raise {trial.crash}"] = None
            if isinstance(trial.error, ArgumentError):
                faults[f"valid arguments are refused with {trial.error.code}"] = None

        def invalid(args: dict[str, Any]) -> None:
            try:
                call(world.engine, tool.name, args)
            except ArgumentError:
                return
            except CallError as error:
                faults[f"invalid arguments end in {error.code}"] = None
            else:
                faults["invalid arguments are accepted"] = None

        for run, strategy in ((valid, arguments(tool)), (invalid, wrong_arguments(tool))):
            bounded = settings(
                max_examples=examples,
                database=None,
                deadline=None,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            )
            bounded(seeded(seed)(given(strategy)(run)))()
    return [Violation("fuzz", tool.name, tuple(faults))] if faults else []


def arguments(tool: ToolImplementation) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for valid arguments of a tool, by name."""
    from hypothesis import strategies as st

    def drawn(arg: ArgSpec, is_rest: bool) -> SearchStrategy[Any]:
        return st.lists(values(arg), min_size=1, max_size=3) if is_rest else values(arg)

    rest = len(tool.spec.args) - 1 if tool.spec.variadic else -1
    each = {arg.name: drawn(arg, place == rest) for place, arg in enumerate(tool.spec.args)}
    needed = {arg.name for arg in tool.spec.args if arg.required}
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in each.items() if name in needed},
        optional={name: strategy for name, strategy in each.items() if name not in needed},
    )


def wrong_arguments(tool: ToolImplementation) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for arguments of a tool, by name, of which one is invalid."""
    from hypothesis import strategies as st

    names = [arg.name for arg in tool.spec.args]

    def spoilt(args: dict[str, Any], name: str, value: object) -> dict[str, Any]:
        return {**args, name: value}

    unfit = st.sampled_from(WRONG)
    return st.builds(spoilt, arguments(tool), st.sampled_from(names), unfit)


def values(arg: ArgSpec) -> SearchStrategy[Any]:
    """Return a strategy for values that an argument accepts."""
    from hypothesis import strategies as st

    drawn = _typed(arg)
    fitting = drawn if arg.choices else drawn.filter(lambda value: takes(arg, value))
    return st.none() | fitting if arg.nullable else fitting


def _typed(arg: ArgSpec) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if arg.choices:
        one = st.sampled_from(arg.choices)
        return one if arg.element is arg.type else st.lists(one, max_size=MAX_SIZE)
    if arg.is_refined:
        return _refined(arg)
    if arg.keys:
        made: SearchStrategy[Any] = st.fixed_dictionaries(
            {key.name: values(key) for key in arg.keys if key.required},
            optional={key.name: values(key) for key in arg.keys if not key.required},
        )
        return st.lists(made, max_size=3) if arg.type is ArgType.SLICE_MAP else made
    if arg.type in ELEMENTS:
        return st.lists(_scalar(arg.element, arg), max_size=arg.max_length or 8)
    if arg.type in VALUES:
        return st.dictionaries(_text(), _scalar(VALUES[arg.type], arg), max_size=8)
    return _scalar(arg.type, arg)


def _refined(arg: ArgSpec) -> SearchStrategy[Any]:
    """Return a strategy for a spec with items, keys and values of their own, alternatives or a format."""
    from hypothesis import strategies as st

    if arg.any_of:
        return st.one_of([values(each) for each in arg.any_of])
    if arg.format:
        near = decimals_within(arg)
        if near:
            places = st.decimals(min(map(Decimal, near)), max(map(Decimal, near)), places=6, allow_nan=False)
            return st.sampled_from(near) | places.map(str)
        return st.sampled_from(FORMATS[arg.format].samples)
    if arg.prefix_items:
        return st.tuples(*map(values, arg.prefix_items)).map(list)
    least, most = arg.min_length or 0, 8 if arg.max_length is None else arg.max_length
    if arg.type in ELEMENTS:
        inner = values(arg.items) if arg.items is not None else _scalar(arg.element, arg)
        return st.lists(inner, min_size=least, max_size=max(least, most))
    other = _scalar(ArgType.ANY, arg) if arg.value_spec is None else values(arg.value_spec)
    key = _text() if arg.key_spec is None else values(arg.key_spec)
    entries = st.dictionaries(key, other, min_size=0 if arg.keys else least, max_size=max(least, most))
    if not arg.keys:
        return entries
    needed = {each.name: values(each) for each in arg.keys if each.required}
    optional = {each.name: values(each) for each in arg.keys if not each.required}
    return st.builds(lambda further, declared: {**further, **declared}, entries,
                     st.fixed_dictionaries(needed, optional=optional))  # fmt: skip


def _text() -> SearchStrategy[str]:
    from hypothesis import strategies as st

    return st.text(_characters(), max_size=MAX_SIZE)


def _characters() -> SearchStrategy[str]:
    from hypothesis import strategies as st

    return st.characters(exclude_categories=["Cs"])


def _scalar(kind: ArgType, arg: ArgSpec) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    row, low, high = TYPES[kind], arg.lowest, arg.highest
    if "pattern" in row.schema:
        return st.from_regex(row.schema["pattern"], alphabet=_characters())
    if row.builtin is str:
        return _text()
    if row.builtin is int:
        return st.integers(-INT if low is None else int(low), INT if high is None else int(high))
    if row.builtin is float:
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    if row.builtin is bool:
        return st.booleans()
    if row.builtin is bytes:
        return st.binary(max_size=MAX_SIZE)
    if row.builtin is array:
        return st.lists(st.floats(-1, 1, width=32), max_size=8)
    if row.builtin is dict:
        return st.dictionaries(_text(), _text(), max_size=3)
    if row.builtin is type(None):
        return st.none()
    leaves = st.none() | st.booleans() | st.integers(-INT, INT) | _text()
    return st.recursive(leaves, lambda each: st.lists(each, max_size=3) | st.dictionaries(_text(), each, max_size=3))
