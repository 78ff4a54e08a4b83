"""A scripted model server for each test, and an environment that leads to no other server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.llm.server import ModelServer

VARIABLES = (
    *("NEUROSCRIPT_MODEL", "NEUROSCRIPT_MODEL_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"),
)
"""The environment variables that would lead to a real model."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Remove all keys and addresses from the environment, and return the empty directory of ``llm``.

    No certificate authority is trusted: no server of these tests has TLS, and each client would parse all certificates.
    """
    place = tmp_path_factory.mktemp("llm")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(place))
    monkeypatch.setenv("LLM_USER_PATH", str(place))
    return place


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    """A model server for all tests of a module, because stopping one takes half a second."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> Iterator[ModelServer]:
    """A model server without a script and without recorded requests."""
    running.reset()
    yield running
    running.reset()
