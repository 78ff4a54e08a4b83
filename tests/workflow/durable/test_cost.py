"""The cost of durable calls beside a bare queue of DBOS, measured in one run."""

from __future__ import annotations

import pytest
from tests.workflow.durable.cost import cost_of, throughput
from tests.workflow.durable.databases import MakeDatabase

pytestmark = [pytest.mark.full, pytest.mark.alone]


def test_durable_calls_cost_little_more_than_a_bare_queue(make_database: MakeDatabase) -> None:
    """In CPU time of the process; and a chain does not wait for polls."""
    is_sqlite = make_database("cost").startswith("sqlite")
    cost = cost_of(make_database("cost_ours"), make_database("cost_bare"))

    assert cost.idempotent <= 1.3 * cost.bare
    assert cost.other <= 1.6 * cost.bare
    assert cost.chain <= (60 if is_sqlite else 25)


def test_throughput_grows_with_workers(make_database: MakeDatabase) -> None:
    """While tools wait for something else than this machine."""
    one, two = (throughput(make_database(f"throughput{workers}"), workers) for workers in (1, 2))

    assert two > 1.4 * one
