"""Each row of the table of annotations in ``docs/how-to/write-tools-from-functions.md``, in lax and strict mode."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from neuroscript import Engine, Toolset, coerce, tool

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "write-tools-from-functions.md").read_text()
ROWS = re.findall(r"^\| `(.+)` \| `(\w+)` \| `(.+)` \| `(.+)` \|$", PAGE, re.MULTILINE)
CLASSES = re.search(r"```python\n(import datetime\nimport enum\n.+?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the page defines, in a module, as the reader has them."""
    assert CLASSES is not None
    module = sys.modules["page_on_functions"] = ModuleType("page_on_functions")
    exec(CLASSES[1], module.__dict__)
    return module.__dict__


def test_the_page_has_a_row_for_each_form() -> None:
    """The pattern above finds the whole table."""
    assert len(ROWS) == 33


@pytest.mark.parametrize("mode", ["lax", "strict"])
@pytest.mark.parametrize(("annotation", "kind", "written", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_page_is_true(
    page: dict[str, Any], annotation: str, kind: str, written: str, expected: str, mode: Literal["lax", "strict"]
) -> None:
    """The type of the spec, and the very value that the function receives."""
    received: list[Any] = []

    def take(value: Any) -> None:
        received.append(value)

    take.__annotations__ = {"value": eval(annotation.replace("\\|", "|"), page), "return": None}
    made = tool(take, group="page")
    given = json.loads(written)
    if kind in ("blob", "map_any_any") and mode == "strict":  # JSON has neither bytes nor keys of other types
        given = coerce(given, made.spec.args[0])

    with Engine(toolsets=[Toolset("page", (made,))], plugins="none", mode=mode) as engine:
        engine.call("page.take", (given,))
        engine.call_named("page.take", {"value": given})

    wanted = eval(expected, page)
    assert made.spec.args[0].type == kind
    assert received == [wanted, wanted]
    assert {type(each) for each in received} == {type(wanted)}
