"""A scripted server of models for each test, and an environment that leads to no other."""

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
"""What in the environment would lead to a model."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forget what leads to a model, and return the empty directory where ``llm`` keeps its own."""
    place = tmp_path_factory.mktemp("llm")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLM_USER_PATH", str(place))
    return place


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    """A server of models that runs as long as the tests of a module; to stop one takes half a second."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with ModelServer() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> Iterator[ModelServer]:
    """A server of models without a script, of which nothing was asked."""
    running.reset()
    yield running
    running.reset()
