"""Labels that contradict the effects or the capabilities of a tool."""

from __future__ import annotations

from typing import Any

import pytest

from neuroscript import ToolPolicy
from neuroscript.policy.labels import label_contradictions


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
