"""A block of a page needs what those above it have made, also where another worker has run them.

Workers take tests from each other, so that the rest of a page may be run where its beginning was not.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from sybil.integration.pytest import SybilItem

WAITING: pytest.StashKey[dict[pytest.Collector, list[SybilItem]]] = pytest.StashKey()
"""The blocks of each page that this process has not run, in order."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which blocks each page has."""
    pages = session.config.stash[WAITING] = defaultdict(list)
    for item in session.items:
        if isinstance(item, SybilItem) and item.parent is not None:
            pages[item.parent].append(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run the blocks above this one, as far as this process has not."""
    if not isinstance(item, SybilItem) or item.parent is None:
        return
    waiting = item.config.stash[WAITING][item.parent]
    while item in waiting:
        above = waiting.pop(0)
        if above is not item:
            above.setup()
            above.runtest()
