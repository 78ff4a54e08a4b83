"""Functions, tools and registries for the tests of AgentHeaven."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from neuroscript.interop.agentheaven import ToolRegistry, ToolSpec, reg_toolspec


def search_database(query: str, limit: int = 10) -> dict:  # type: ignore[type-arg]
    """Search the database for matching records.

    Args:
        query: The search query string
        limit: Maximum number of results to return

    Returns:
        dict: Search results with matched records
    """
    return {"results": [query] * limit}


def user_action(user_id: str, action: str) -> str:
    """Perform an action for a user."""
    return f"User {user_id} performed: {action}"


@pytest.fixture
def search() -> ToolSpec:
    """The tool of the document's section 3.1."""
    return ToolSpec.from_function(search_database)


@pytest.fixture
def action() -> ToolSpec:
    """The tool of the document's section 4.1, with its user bound."""
    return ToolSpec.from_function(user_action).bind(param="user_id", default="user123")


def make_tool(annotation: Any) -> ToolSpec:
    """Return a tool with an argument ``x`` of a type, which it returns."""

    def echo(x: Any) -> Any:
        return x

    echo.__annotations__["x"] = annotation
    return ToolSpec.from_function(echo)


CODE = '''
def f(n: int) -> int:
    """Return a factorial."""
    return 1 if n < 2 else n * f(n - 1)
'''


class Base(ToolRegistry):
    """A registry with two tools."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    @reg_toolspec(parse_docstring=True)
    def search(self, query: str, limit: int = 10) -> list:  # type: ignore[type-arg]
        """Search."""
        return [self.number, query, limit]

    @reg_toolspec
    def add_item(self, title: str) -> dict:  # type: ignore[type-arg]
        """Add an item."""
        return {"title": title, "number": self.number}

    def helper(self) -> None:
        """Not a tool, because it is not marked."""

    @reg_toolspec
    def _hidden(self) -> None:
        """Not a tool, because its name starts with an underscore."""


class Extended(Base):
    """A registry with one more tool."""

    @reg_toolspec
    def extra(self) -> int:
        """Return the number."""
        return self.number


@dataclass
class Point:
    """A point in the plane."""

    x: int
    y: int = 0
