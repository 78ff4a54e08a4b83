"""Checks of coercion over every type, nested keys and both modes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import ALL
from tests.generator import TYPES, Generator
from tests.properties import check

from neuroscript import ArgSpec

CASES = 5_000_000 if ALL else 100_000
SHARES = 20

json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
numbers_as_text = st.from_regex(r"\s*[+-]?[0-9_]{0,20}(\.[0-9]{0,3})?(e[+-]?[0-9]{1,3})?\s*", fullmatch=True)
spellings = st.sampled_from(
    ["", "null", "true", "FALSE", "1", "0", "[]", "{}", "[1, 2]", '["a"]', '{"a": 1}', "N_1", "E_1"]
)
values = json_like | numbers_as_text | spellings


@settings(max_examples=5_000 if ALL else 300)
@given(values)
def test_checks_hold_for_json_values(value: object) -> None:
    """Coercion is total, exact, idempotent, fresh, runs no code of the value, and accepts less in strict mode.

    Each value is checked for every type.
    """
    for kind in TYPES:
        try:
            check(value, kind)
        except BaseException as error:
            error.add_note(f"the type: {kind}")
            raise


@given(st.integers(0, 2**32), values)
def test_checks_hold_for_rules_with_keys_choices_and_bounds(seed: int, value: object) -> None:
    """hypothesis provides the value, and the generator the rule."""
    check(value, Generator(seed).rule())


@pytest.mark.parametrize("share", range(SHARES))
def test_checks_hold_for_a_hundred_thousand_generated_cases(share: int) -> None:
    """The generator provides valid, damaged and hostile values for rules of every kind."""
    random = Generator(share)
    for index in range(CASES // SHARES // 5):
        rule: ArgSpec = random.rule()
        for attempt in range(5):
            value = random.value(rule)
            try:
                check(value, rule)
            except BaseException as error:
                error.add_note(f"share {share}, case {index}.{attempt}: {rule}")
                raise
