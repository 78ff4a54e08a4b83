"""The documentation of the test kit matches the code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import pytest

from neuroscript import testing
from neuroscript.testing import CHECKS, FakeRuntime, Setup, plugin

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "testing.md").read_text()
HOW_TO = (DOCS / "how-to" / "test-a-toolset.md").read_text()


def first_cells(section: str) -> list[str]:
    """Return the names in the first column of the tables of a section of the reference."""
    text = REFERENCE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(-*[\w-]+)[^`]*`", cell)]


def fixtures() -> Iterator[str]:
    """Yield the fixtures of the plugin of pytest, read off its source, for pytest has had several ways to mark them."""
    for node in ast.parse(inspect.getsource(plugin)).body:
        if isinstance(node, ast.FunctionDef):
            marks = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
            if "pytest.fixture" in map(ast.unparse, marks):
                yield node.name


PLUGIN = [
    plugin.ISOLATED,
    plugin.OPTION,
    *fixtures(),
    *(name for name in vars(plugin.Hooks) if name.startswith("pytest_")),
]


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("Names", testing.__all__),
        ("FakeRuntime", inspect.signature(FakeRuntime).parameters),
        ("Setup", attrs.fields_dict(Setup)),
        ("The pytest plugin", PLUGIN),
    ],
    ids=["names", "FakeRuntime", "Setup", "plugin"],
)
def test_reference_lists_exactly_the_names(section: str, names: Iterable[str]) -> None:
    """In the first column of a table."""
    assert sorted(names) == sorted(first_cells(section))


def test_plugin_has_option_fixtures_and_hook() -> None:
    """The list above is read from the source."""
    options = {"--neuroscript-isolated", "--neuroscript-toolset"}
    assert options | {"sandbox", "runtime", "isolate", "engine", "pytest_neuroscript_setup"} == set(PLUGIN)


@pytest.mark.parametrize("name", PLUGIN)
def test_how_to_shows_whole_plugin(name: str) -> None:
    """In prose or in an example."""
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", HOW_TO)


def test_documents_state_number_of_checks() -> None:
    """Adding or removing a check must be documented for users."""
    changes = (DOCS.parent / "CHANGELOG.md").read_text()

    assert f"There are {len(CHECKS)} contract checks." in REFERENCE
    assert f"There are {len(CHECKS)} checks." in HOW_TO
    assert f"{len(CHECKS)} contract checks for every tool" in changes
