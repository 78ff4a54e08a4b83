"""What the page of a run shows at its end."""

from __future__ import annotations

from pathlib import Path

from tests.console.page_client import text_of
from tests.console.plans.boxes import Box, browsing, ended, start


def test_output_of_a_run_is_shown(box: Box, plans: Path) -> None:
    """With the inputs, so that no other page is needed."""
    with browsing(box, plans) as client:
        path = start(client, "sum.toml", inputs='{"a": 3}')
        ended(client)
        page = text_of(client.get(path))

    assert 'The plan succeeded. inputs {"a": 3, "b": 2} output 10 Trace' in page
