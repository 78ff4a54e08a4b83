"""What a test wrote, on its way from a worker."""

from __future__ import annotations

from tests.reports import whole


def test_a_report_holds_no_lone_surrogate() -> None:
    """Its worker would end the whole run; everything else stays as it is."""
    data = {"sections": [("Captured log", "it said \ud800, ä"), ("", "\udcff")], "duration": 0.5, "longrepr": None}

    expected = {
        "sections": [("Captured log", "it said \\ud800, ä"), ("", "\\udcff")],
        "duration": 0.5,
        "longrepr": None,
    }
    assert expected == whole(data)
