"""The official conformance suite against our server and our client, in both protocol revisions.

These tests are never skipped: without the suite, nothing shows that the protocol is spoken correctly.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.interop.mcp_conformance import REVISIONS, Role, required, run
from tests.interop.mcp_conformance_server import serving

CLIENT: Final = shlex.join([sys.executable, str(Path(__file__).with_name("mcp_conformance_client.py"))])
"""The command with which the suite starts the client; it adds the address of its server."""

REQUIRED: Final[Mapping[tuple[Role, str], int]] = {
    ("server", "2025-11-25"): 30,
    ("server", "2026-07-28"): 37,
    ("client", "2025-11-25"): 18,
    ("client", "2026-07-28"): 32,
}
"""The number of scenarios that each revision requires."""

OAUTH: Final = {
    "auth/client-credentials-basic": "extension: authorization without a user, by a password of the client",
    "auth/client-credentials-jwt": "extension: authorization without a user, by a signed assertion of the client",
    "auth/dpop": "extension: tokens that are bound to a key of the client",
    "auth/dpop-nonce": "extension: tokens that are bound to a key of the client",
    "auth/enterprise-managed-authorization": "extension: tokens that an organization exchanges",
    "auth/wif-jwt-bearer": "extension: tokens for the identity of a workload",
}

NOT_PASSED: Final[Mapping[tuple[Role, str], Mapping[str, str]]] = {
    ("server", "2025-11-25"): {
        "server-sse-polling": "pending in the suite: the server does not close the stream of a running call",
    },
    ("server", "2026-07-28"): {
        "tasks-status-notifications": "optional: the server sends no notifications about tasks, so no check applies",
    },
    ("client", "2025-11-25"): OAUTH,
    ("client", "2026-07-28"): OAUTH,
}
"""The scenarios that are not passed, each with the reason. No revision requires one of them."""

SHORT: Final = [
    ("2025-11-25", "elicitation-sep1034-client-defaults"),
    ("2026-07-28", "sep-2322-client-request-state"),
    ("2026-07-28", "auth/metadata-default"),
]
"""Scenarios of the client of each kind; a whole set takes a minute or two."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


def check(role: Role, revision: str, found: Mapping[str, list[str]]) -> None:
    """Check that every scenario passed, except the listed ones, which must have failed."""
    scenarios, listed = required(role, revision), NOT_PASSED[role, revision]
    failed = {name: failures for name, failures in found.items() if failures}

    assert {name: failures for name, failures in failed.items() if name not in listed} == {}
    assert [name for name in listed if name not in failed] == []
    assert (len(scenarios), scenarios - found.keys(), scenarios & listed.keys()) == (
        REQUIRED[role, revision],
        set(),
        set(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("revision", [pytest.param(REVISIONS[0], marks=pytest.mark.full), *REVISIONS[1:]])
def test_server_passes_every_scenario_that_is_not_listed(url: str, tmp_path: Path, revision: str) -> None:
    """A listed scenario that passes fails the test too, so that the list only becomes shorter."""
    found = run("server", tmp_path / "results", "--url", url, "--requirements", revision)

    check("server", revision, found)


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_client_passes_every_scenario_that_is_not_listed(tmp_path: Path, revision: str) -> None:
    """The suite starts all clients of a set at the same time, so each may take long."""
    words = ("--command", CLIENT, "--requirements", revision, "--timeout", "600000")

    check("client", revision, run("client", tmp_path / "results", *words, seconds=900))


@pytest.mark.slow
@pytest.mark.parametrize(("revision", "scenario"), SHORT)
def test_client_passes_a_scenario_of_each_kind(tmp_path: Path, revision: str, scenario: str) -> None:
    """A question with a handshake, one without, and authorization."""
    words = ("--command", CLIENT, "--scenario", scenario, "--spec-version", revision, "--timeout", "60000")

    assert run("client", tmp_path / "results", *words) == {scenario: []}
