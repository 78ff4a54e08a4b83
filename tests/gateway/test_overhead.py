"""What a call through the gateway costs, compared with a proxy that checks nothing."""

from __future__ import annotations

import asyncio

import pytest
from tests.benchmarks import gateway

LIMIT = 2.0
"""The maximum ratio; about 1.3 is measured."""


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.parametrize("transport", ["stdio", "HTTP"])
def test_gateway_costs_little_more_than_a_bare_proxy(transport: str) -> None:
    """The second hop itself costs more than everything that the gateway adds to it."""
    direct, bare, ours = asyncio.run(gateway.measure(transport, 40)).values()

    assert direct < bare
    assert ours / bare < LIMIT
