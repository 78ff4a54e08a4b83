"""What the results of tools carry, and where their calls send arguments: declared, or implied by effects."""

from __future__ import annotations

from typing import Any

import pytest

from neuroscript import ToolPolicy
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES, label_contradictions, sinks_of, sources_of


@pytest.mark.parametrize(
    ("fields", "sources", "sinks"),
    [
        ({}, ALL_SOURCES, ALL_SINKS),
        ({"effects": ["idempotent"]}, ALL_SOURCES, ALL_SINKS),
        ({"effects": ["pure"]}, (), ()),
        ({"effects": ["pure", "idempotent"]}, (), ()),
        ({"effects": ["clock", "random", "prompts", "model"]}, (), ()),
        ({"effects": ["reads"]}, ("private",), ()),
        ({"effects": ["net"]}, ("untrusted",), ("outside",)),
        ({"effects": ["writes", "deletes"]}, (), ("storage",)),
        ({"effects": ["exec"]}, ("untrusted", "private"), ("code", "outside", "storage")),
        ({"effects": ["clock"], "capabilities": ["net:read,write:a.b"]}, ("untrusted",), ("outside",)),
        ({"effects": ["clock"], "capabilities": ["fs:read,delete:a"]}, ("private",), ("storage",)),
        ({"sources": []}, (), ALL_SINKS),
        ({"effects": ["net"], "sinks": ["people"]}, ("untrusted",), ("people",)),
    ],
)
def test_undeclared_labels_follow_from_effects(
    fields: dict[str, Any], sources: tuple[str, ...], sinks: tuple[str, ...]
) -> None:
    """A tool without effects could do anything, and idempotent says nothing about what a call does."""
    policy = ToolPolicy(**fields)

    assert (sources_of(policy), sinks_of(policy)) == (sources, sinks)


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
