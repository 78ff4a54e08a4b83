"""The rows of ``docs/how-to/coming-from-agentheaven.md``.

Each row has a test with its id in the name, or is in `LISTED` with the reason why it has none.
"""

from __future__ import annotations

import re
from pathlib import Path

LISTED = {"AH-58": "the document does not name to_ukf, and upstream's raises NotImplementedError"}
"""Rows without a test, and why."""


def test_each_row_has_a_test_or_a_reason() -> None:
    """Seventy rows; one of them is listed instead of tested."""
    files = Path(__file__).parent.glob("test_agentheaven_*.py")
    names = [
        name for path in files for name in re.findall(r"^(?:async )?def test_ah_(\d+)_", path.read_text(), re.MULTILINE)
    ]
    tested = {f"AH-{int(name)}" for name in names}

    assert {f"AH-{number}" for number in range(1, 71)} == tested | set(LISTED)
    assert not tested & set(LISTED)
    assert len(LISTED) == 1


def test_the_page_has_every_row() -> None:
    """The rows are in order, and each has a status; none is postponed."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-agentheaven.md"
    rows = re.findall(r"^\| (AH-\d+) \| [^|]+ \| (same|fixed|different) \|", page.read_text(), re.MULTILINE)

    assert [f"AH-{number}" for number in range(1, 71)] == [row for row, _ in rows]
