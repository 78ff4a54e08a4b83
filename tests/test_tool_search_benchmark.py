"""The benchmark of the search for tools: how it reads its files, what the page states, and the goals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks import tool_search
from tests.benchmarks.tool_search import BEGIN, CATALOGUES, END, PAGE, RANKS, RESULTS

STORED: dict[str, Any] = json.loads(RESULTS.read_text())


def test_page_has_the_stored_tables() -> None:
    block = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]

    assert block.split("\n") == ["", *tool_search.table(STORED), "", ""]


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_right_function_is_found_more_often_than_by_fastmcp(catalogue: str) -> None:
    found = STORED["catalogues"][catalogue]

    assert all(found["neuroscript"][str(rank)] > found["FastMCP"][str(rank)] for rank in RANKS)


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_search_costs_a_model_at_most_15_percent_of_the_tokens(catalogue: str) -> None:
    assert STORED["catalogues"][catalogue]["tokens"]["percent"] <= 15


FUNCTIONS: list[dict[str, Any]] = [
    {
        "name": "WeatherApi.getForecast",
        "description": "Get the forecast.",
        "parameters": {
            "type": "dict",
            "required": ["city", "gone"],
            "properties": {
                "city": {"type": "String", "description": "A city.", "default": 5},
                "unit": {"type": "string", "enum": ["C", "F"]},
                "days": {"type": "tuple", "items": {"type": "long"}},
                "more": {"type": "any"},
            },
        },
    },
    {"name": "order", "description": "Order tea.", "parameters": {"type": "dict", "properties": {}}},
]


def test_files_of_the_leaderboard_are_read(tmp_path: Path) -> None:
    """A second function of the same name is left out, and so is a question without an answer."""
    rows = [
        {"id": "a_1", "question": [[{"role": "system", "content": "x"}, {"role": "user", "content": "Rain?"}]]},
        {"id": "a_2", "question": [[{"role": "user", "content": "Tea?"}]]},
    ]
    (tmp_path / "possible_answer").mkdir()
    (tmp_path / "BFCL_v4_a.json").write_text("\n".join(json.dumps({**row, "function": FUNCTIONS}) for row in rows))
    answer = {"id": "a_1", "ground_truth": [{"WeatherApi.getForecast": {"city": ["Rome"]}}]}
    (tmp_path / "possible_answer" / "BFCL_v4_a.json").write_text(json.dumps(answer))

    read = tool_search.read(tmp_path)

    forecast, order = read.specs
    assert (read.documents, [spec.full_name for spec in read.specs]) == (
        4,
        ["weather_api.get_forecast", "tools.order"],
    )
    assert [(arg.name, arg.type, arg.required, arg.choices) for arg in forecast.args] == [
        ("city", "string", True, ()),
        ("unit", "string", False, ("C", "F")),
        ("days", "slice_int", False, ()),
        ("more", "any", False, ()),
    ]
    assert order.description == "Order tea."
    assert [(each.text, each.answers) for each in read.questions] == [("Rain?", {"weather_api.get_forecast"})]


def test_both_searches_answer_with_the_same_names(tmp_path: Path) -> None:
    """So a wrong mapping of names cannot lower the figures of one of them."""
    specs = tuple(tool_search.spec_of(tool_search.canonical_name(each["name"]), each) for each in FUNCTIONS)
    catalogue = tool_search.Catalogue(specs, tuple(FUNCTIONS), (), 2)
    questions = [
        tool_search.Question("1", "the forecast", frozenset({"weather_api.get_forecast"})),
        tool_search.Question("2", "a cup of tea", frozenset({"tools.order"})),
        tool_search.Question("3", "nothing of that", frozenset({"tools.order"})),
    ]
    index = tool_search.ToolIndex(specs)

    def ours(text: str) -> list[str]:
        return [spec.full_name for spec in index.search(text, 10)]

    for search in (ours, tool_search.fastmcp_search(catalogue)):
        shares, seconds = tool_search.recalls(questions, search)
        assert shares == {"1": 0.6667, "5": 0.6667, "10": 0.6667}
        assert len(seconds) == 3


if os.environ.get("NEUROSCRIPT_TEST_ALL") or tool_search.ENVIRONMENT.exists():  # it needs a package index

    @pytest.mark.full
    def test_figures_are_those_of_the_page() -> None:
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.tool_search", "--check"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tool_search.ROOT,
        )

        assert done.returncode == 0, done.stdout + done.stderr
