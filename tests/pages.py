"""Run the code blocks of a page in order, also if another worker ran the earlier ones.

Workers take tests from each other, so the end of a page may run in another process than its start.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from sybil.integration.pytest import SybilItem

WAITING: pytest.StashKey[dict[pytest.Collector, list[SybilItem]]] = pytest.StashKey()
"""The blocks of each page that this process has not run, in order."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record the blocks of each page."""
    pages = session.config.stash[WAITING] = defaultdict(list)
    for item in session.items:
        if isinstance(item, SybilItem) and item.parent is not None:
            pages[item.parent].append(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run the earlier blocks of the page that this process has not run."""
    if not isinstance(item, SybilItem) or item.parent is None:
        return
    waiting = item.config.stash[WAITING][item.parent]
    if item not in waiting:  # this process ran it before a later block, and took it from another process since
        item.runtest = lambda: None  # type: ignore[method-assign]
    while item in waiting:
        above = waiting.pop(0)
        if above is not item:
            above.setup()
            above.runtest()
