"""The rows of ``docs/how-to/coming-from-smith.md``.

Each row has a test with its id in the name, or is in `LISTED` with the reason why it has none.
"""

from __future__ import annotations

import re
from pathlib import Path

LISTED = {
    "SM-8": "guidance: descriptive names",
    "SM-12": "guidance: atomic parameters, consistent names, no free-form prompts",
    "SM-25": "guidance: a checklist for authors; problems_of is its second line",
    "SM-26": "guidance: no hidden global state",
    "SM-57": "the original's code: names of its events; here listeners receive a Step, and the trace has the rest",
    "SM-64": "the original's code: one lock for each tool; here a node never runs twice at once, and a tool may",
}
"""Rows without a test, and why."""

RUNNING = Path(__file__).parents[1] / "workflow" / "test_smith_runs.py"
"""The tests of the rows about running plans."""


def rows_of(path: Path) -> set[str]:
    """Return the rows that the tests in a file have in their names."""
    return {
        f"SM-{int(number)}" for number in re.findall(r"^(?:async )?def test_sm_(\d+)_", path.read_text(), re.MULTILINE)
    }


def test_each_row_has_a_test_or_a_reason() -> None:
    """Sixty-four rows; some are listed instead of tested, some are tested where plans are run."""
    tested = {row for path in Path(__file__).parent.glob("test_smith_*.py") for row in rows_of(path)}
    runs = rows_of(RUNNING)

    assert {f"SM-{number}" for number in range(1, 65)} == tested | set(LISTED) | runs
    assert not tested & (set(LISTED) | runs)
    assert len(LISTED) <= 15


def test_the_page_has_every_row() -> None:
    """The rows are in order, each has a status, and the page lists the rows without a test."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-smith.md").read_text()
    rows = re.findall(r"^\| (SM-\d+) \| [^|]+ \| (same|fixed|different|guidance) \|", page, re.MULTILINE)

    assert [f"SM-{number}" for number in range(1, 65)] == [row for row, _ in rows]
    assert {row for row, word in rows if word == "guidance"} <= set(LISTED)
    (untested,) = re.findall(r"Each row\s+except\s([^.]*?)\s+has\s+a\s+test\b", page)
    assert list(LISTED) == re.findall(r"SM-\d+", untested)
