"""Two repairs: a choice in another case or with blanks around it, and JSON text inside a Markdown code fence."""

from __future__ import annotations

from enum import Flag
from typing import Any, Literal

import pytest
from tests.coercion.union_table import spec_of
from tests.properties import REFUSED, outcome

from neuroscript import ArgSpec, Engine, ToolCall, Toolset, ToolSpec

DAY = ArgSpec("x", "string", format="date")  # type: ignore[arg-type]
SPORTS = ("Basketball", "Football", "Ice Hockey")

BFCL: tuple[tuple[tuple[str, ...], str, Any], ...] = (
    (SPORTS, "basketball", "Basketball"),
    (SPORTS, "FOOTBALL", "Football"),
    (SPORTS, " Ice hockey ", "Ice Hockey"),
    (SPORTS, "hockey", REFUSED),
    (("Celsius", "Fahrenheit"), "celsius", "Celsius"),
    (("NBA", "NFL"), "nba", "NBA"),
    (("Spanish", "French"), "spanish\n", "Spanish"),
    (("economy", "business", "first"), "Economy", "economy"),
    (("economy", "business", "first"), "first class", REFUSED),
    (("M", "F"), "m", "M"),
    (("SUV", "sedan"), "Suv", "SUV"),
    (("Weekly", "Monthly"), "\tweekly", "Weekly"),
)
"""Choices of functions of the Berkeley Function Calling Leaderboard, and what models write for them."""


class Rights(Flag):
    """What one may do."""

    READ = 1
    WRITE = 2


@pytest.mark.parametrize(("choices", "text", "expected"), BFCL)
def test_choice_that_a_model_spells_otherwise(choices: tuple[str, ...], text: str, expected: Any) -> None:
    """Ten of these twelve are repaired; an approximate word never is, and strict mode repairs none."""
    rule = ArgSpec("x", "string", choices=choices)  # type: ignore[arg-type]

    assert outcome(text, rule, "lax") == expected
    assert outcome(text, rule, "strict") is REFUSED


CHOSEN = spec_of(Literal["Red", "blue"])


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        (spec_of(dict[Literal["Red", "blue"], int]), {"red": "1"}, {"Red": 1}),
        (spec_of(dict[Literal["Red", "blue"], int]), {"red": 1, "Red": 2}, REFUSED),
        (spec_of(list[Literal["Red", "blue"]]), ["RED", " blue"], ["Red", "blue"]),
        (spec_of(list[Literal["Red", "blue"] | None]), ["RED", None], ["Red", None]),
        (spec_of(set[Literal["Red", "blue"]]), ["RED", "red", "blue"], ["Red", "blue"]),
        (spec_of(Rights), ["read", "READ"], ["READ"]),
        (spec_of(int | Literal["auto"]), "AUTO", "auto"),
        (spec_of(Literal["auto"] | str), "AUTO", "AUTO"),
        (spec_of(tuple[Literal["Red"], int]), [" red", "1"], ["Red", 1]),
        (spec_of(Literal["Red", "RED", "blue"]), "red", REFUSED),
        (spec_of(Literal["Red", "RED", "blue"]), "RED", "RED"),
        (spec_of(Literal["STRASSE", "b"]), "straße", "STRASSE"),
        (spec_of(Literal["a b"]), "ab", REFUSED),
    ],
)
def test_choice_is_repaired_wherever_it_is(rule: ArgSpec, value: Any, expected: Any) -> None:
    """In keys, lists, sets and unions, if exactly one choice is equal but for case and blanks."""
    assert outcome(value, rule, "lax") == expected


FENCE = "```"


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        (spec_of(list[int]), f"{FENCE}json\n[1, 2]\n{FENCE}", [1, 2]),
        (spec_of(list[int]), f" {FENCE}\n[1]\n{FENCE}\n", [1]),
        (spec_of(list[int]), f"{FENCE}[1]{FENCE}", [1]),
        (spec_of(list[int]), f"{FENCE}JSON\r\n[1]\r\n{FENCE}", [1]),
        (spec_of(dict[str, int]), f'{FENCE}json\n{{"a": "1"}}\n{FENCE}', {"a": 1}),
        (spec_of(list[list[int]]), ["[1]", f"{FENCE}json\n[2]\n{FENCE}"], [[1], [2]]),
        (spec_of(list[int] | dict[str, int]), f"{FENCE}\n[1]\n{FENCE}", [1]),
        (spec_of(list[int] | str), f"{FENCE}\n[1]\n{FENCE}", f"{FENCE}\n[1]\n{FENCE}"),
        (spec_of(str), f"{FENCE}\n[1]\n{FENCE}", f"{FENCE}\n[1]\n{FENCE}"),
        (spec_of(int), f"{FENCE}\n1\n{FENCE}", REFUSED),
        (spec_of(list[int]), f"{FENCE}\n[1]\n{FENCE}\n{FENCE}\n[2]\n{FENCE}", REFUSED),
        (spec_of(list[int]), f"Here it is:\n{FENCE}\n[1]\n{FENCE}", REFUSED),
        (spec_of(list[int]), f"{FENCE}\n[1]", REFUSED),
        (spec_of(list[int]), f"{FENCE}\n1, 2\n{FENCE}", REFUSED),
        (spec_of(list[int]), f"{FENCE}\n{FENCE}", REFUSED),
        (spec_of(list[int]), "```` \n[1]\n````", REFUSED),
        (spec_of(list[int]), FENCE * 50_000, REFUSED),
    ],
)  # fmt: skip
def test_json_inside_one_code_fence(rule: ArgSpec, text: Any, expected: Any) -> None:
    """It is read where a container is expected, and never in strict mode."""
    assert outcome(text, rule, "lax") == expected
    assert outcome(text, rule, "strict") in (REFUSED, text)


@pytest.mark.parametrize(
    ("rule", "value", "repair"),
    [
        (CHOSEN, "RED", ("x", "str", "str")),
        (spec_of(list[Literal["Red", "blue"]]), ["blue", "red"], ("x[1]", "str", "str")),
        (spec_of(dict[Literal["Red", "blue"], int]), {"red": 1}, ("x['Red']", "str key", "str key")),
        (spec_of(list[int]), f"{FENCE}json\n[1]\n{FENCE}", ("x", "str", "list")),
    ],
)
def test_both_are_reported_as_repairs(rule: ArgSpec, value: Any, repair: tuple[str, str, str]) -> None:
    """A host sees what its model does."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g", (rule,)), lambda rt, x: None)

    with Engine(toolsets=[tools], plugins="none") as engine:
        result = engine.execute(ToolCall("g.t", (value,)))

    assert [(each.where, each.got, each.became) for each in result.repairs] == [repair]
