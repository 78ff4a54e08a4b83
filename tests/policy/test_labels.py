"""What effects imply about the labels of a tool, and labels that contradict its effects or its capabilities."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from neuroscript import ToolPolicy
from neuroscript.policy.flow_rules import FLOW_PROFILES
from neuroscript.policy.labels import EFFECT_SINKS, EFFECT_SOURCES, SINKS, SOURCES, label_contradictions


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"effects": ["pure"], "sources": [], "sinks": []}, []),
        (
            {"effects": ["pure"], "sources": ["private"]},
            ["a pure tool reads nothing and sends nothing; remove its sources and sinks"],
        ),
        (
            {"effects": ["pure"], "sinks": ["storage"]},
            ["a pure tool reads nothing and sends nothing; remove its sources and sinks"],
        ),
        ({"effects": ["net"], "sinks": []}, []),
        ({"effects": ["reads", "exec"], "capabilities": ["shell:exec:git", "fs:read:{path}"], "sinks": []}, []),
        (
            {"effects": ["exec"], "capabilities": ["shell:exec:{command}"], "sinks": []},
            [
                "sinks is empty, but an argument decides about shell:exec:{command}; "
                "declare where arguments go, such as code, outside, storage"
            ],
        ),
        (
            {"effects": ["writes"], "capabilities": ["fs:write,delete:{path}"], "sinks": []},
            [
                "sinks is empty, but an argument decides about fs:write,delete:{path}; "
                "declare where arguments go, such as storage"
            ],
        ),
        ({"declassifies": ["untrusted"], "sources": []}, []),
        (
            {"declassifies": ["untrusted"]},
            ["declassifies is declared without sources; declare what its own results carry"],
        ),
    ],
)
def test_declarations_can_contradict_each_other(fields: dict[str, Any], problems: list[str]) -> None:
    """Lint and the contract checks report the same sentences."""
    assert list(label_contradictions(ToolPolicy(**fields))) == problems


def test_reference_has_the_labels_and_what_effects_imply() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/flow.md").read_text()
    tables = text.partition("## Labels\n")[2].partition("\n## ")[0]
    lines = [line.split("|")[1:-1] for line in tables.splitlines() if line.startswith("| `")]
    rows = [[tuple(re.findall(r"`([^`]+)`", cell)) for cell in line] for line in lines]
    effects = {row[0][0]: (row[1], row[2]) for row in rows if len(row) == 3}

    assert [row[0][0] for row in rows if len(row) == 2] == [*SOURCES, *SINKS]
    assert effects == {name: (EFFECT_SOURCES.get(name, ()), EFFECT_SINKS.get(name, ())) for name in effects}
    assert {*effects} == {*EFFECT_SOURCES, *EFFECT_SINKS}


def test_reference_has_the_rules_of_profiles() -> None:
    text = (Path(__file__).parents[2] / "docs/reference/flow.md").read_text()
    table = text.partition("### Profiles\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|.*\| `([^`]+)` \|$", table, re.MULTILINE)

    assert rows == [(name, str(rule)) for name, rules in FLOW_PROFILES.items() for rule in rules]
