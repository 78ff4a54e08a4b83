"""The rows of ``docs/how-to/coming-from-neurosurfer.md``.

Each row has a test with its id in the name, or is in `LISTED` with the reason why it has none.
"""

from __future__ import annotations

import re
from pathlib import Path

LISTED = {
    "NSF-36": "guidance: when a streaming tool is to say that it is final",
    "NSF-47": "guidance: what makes a good tool",
    "NSF-48": "guidance: how to name a tool that has changed",
    "NSF-60": "true of the original's parser of Action lines alone; interop.prompted reads what models write",
}
"""Rows without a test, and why."""


def test_each_row_has_a_test_or_a_reason() -> None:
    """Sixty rows; four of them are listed instead of tested."""
    files = Path(__file__).parent.glob("test_neurosurfer_*.py")
    names = [
        name
        for path in files
        for name in re.findall(r"^(?:async )?def test_nsf_(\d+)_", path.read_text(), re.MULTILINE)
    ]
    tested = {f"NSF-{int(name)}" for name in names}

    assert {f"NSF-{number}" for number in range(1, 61)} == tested | set(LISTED)
    assert not tested & set(LISTED)
    assert len(LISTED) == 4


def test_the_page_has_every_row() -> None:
    """The rows are in order, each has a status, and the page lists the rows without a test."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-neurosurfer.md").read_text()
    rows = re.findall(r"^\| (NSF-\d+) \| [^|]+ \| (same|fixed|different|guidance) \|", page, re.MULTILINE)

    assert [f"NSF-{number}" for number in range(1, 61)] == [row for row, _ in rows]
    (untested,) = re.findall(r"Each row\s+except\s([^.]*?)\s+has\s+a\s+test\b", page)
    assert list(LISTED) == re.findall(r"NSF-\d+", untested)
