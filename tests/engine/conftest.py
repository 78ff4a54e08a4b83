"""An event that is never set while a test runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event for which a tool can wait; it is set when the test ends."""
    event = threading.Event()
    yield event
    event.set()
