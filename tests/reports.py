"""Escapes for test output with lone surrogates, which a worker cannot send."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from neuroscript.io.text import sendable


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Return the data of a report with escapes for invalid Unicode."""
    return whole((yield))


def whole(data: Any) -> Any:
    """Return plain data with escapes in its strings."""
    match data:
        case str():
            return sendable(data)
        case dict():
            return {key: whole(each) for key, each in data.items()}
        case list() | tuple():
            return type(data)(map(whole, data))
        case _:
            return data
