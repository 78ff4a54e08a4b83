"""Reports of tests with invalid Unicode, as workers send them."""

from __future__ import annotations

from tests.reports import whole


def test_report_contains_no_lone_surrogate() -> None:
    """A lone surrogate would end the whole run; everything else is unchanged."""
    data = {"sections": [("Captured log", "it said \ud800, ä"), ("", "\udcff")], "duration": 0.5, "longrepr": None}

    expected = {
        "sections": [("Captured log", "it said \\ud800, ä"), ("", "\\udcff")],
        "duration": 0.5,
        "longrepr": None,
    }
    assert expected == whole(data)
