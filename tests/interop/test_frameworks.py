"""Our tools as functions in frameworks that accept callables; large ones are only installed for the full run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.interop import framework_place as place
from tests.interop.recorded import EVERYTHING

PROGRAM = Path(__file__).with_name("framework_tools.py")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-our-tools-in-any-framework.md"

COMMON = {
    "name": "shop__order",
    "types": {"item": "string", "count": "integer", "mode": "string", "tags": "array", "extra": "object"},
    "ordered": {"item": "tea", "count": 2, "mode": "fast", "tags": ["a"], "extra": {"k": 1}},
    "added": 6,
    "awaited": 0.5,
}
"""What becomes of our tools in every framework, but for what a framework has of its own."""

FULL = ["item", "count", "tags"]
FRAMEWORKS: dict[str, dict[str, Any]] = {
    "smolagents": {"described": FULL, "refused": "ArgumentError", "awaited": "ValueError"},
    "autogen-core": {"described": ["item", "count"], "refused": "ValidationError"},
    "agno": {"described": FULL, "refused": "ValueError"},
    "dspy": {"described": [], "refused": "ValueError"},
    "llama-index-core": {"described": ["item", "count"], "refused": "ArgumentError"},
    "haystack-ai": {"described": ["item", "count"], "refused": "ToolInvocationError"},
    "crewai": {"described": [], "refused": "ValueError"},
    "strands-agents": {"described": FULL, "refused": "ValueError"},
    "google-adk": {"described": [], "refused": "ArgumentError"},
    "semantic-kernel": {
        "described": ["item", "count"],
        "refused": "KernelInvokeException",
        "types": {**COMMON["types"], "mode": "object"},  # type: ignore[dict-item]
    },
}
"""Which arguments have their descriptions, how a wrong one ends, and where a framework differs from the others."""


def test_the_page_lists_the_frameworks_at_the_versions_that_are_tested() -> None:
    """The page and the tests list the same versions."""
    listed = dict(re.findall(r"^\| `([a-z-]+)` ([\d.]+) \|", PAGE.read_text(), re.MULTILINE))

    assert place.VERSIONS == listed
    assert set(place.VERSIONS) == set(FRAMEWORKS)


if EVERYTHING:

    @pytest.mark.parametrize("framework", FRAMEWORKS)
    def test_a_framework_accepts_our_tools_as_functions(framework: str, tmp_path: Path) -> None:
        """With names, types and descriptions; they can be called, and a wrong argument is refused."""
        found = json.loads(place.run(framework, PROGRAM, tmp_path).splitlines()[-1])

        assert {**COMMON, **FRAMEWORKS[framework]} == found
