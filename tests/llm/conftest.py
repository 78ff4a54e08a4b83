"""A scripted server for each test, and an environment without keys and without models of this machine's user."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.llm.server import Api, ModelServer

from neuroscript.llm import Model, model

NOISY = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Forget the keys of the environment, and return the empty directory where ``llm`` keeps its own."""
    for name in NOISY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    return tmp_path / "llm"


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


@pytest.fixture
def reach(server: ModelServer) -> Iterator[Callable[..., Model]]:
    """What returns a model of that server, for an API; it waits for no longer than it must."""
    models: list[Model] = []

    def opened(api: Api, **settings: Any) -> Model:
        known = {"base_url": server.base_url(api), "api": api, "pause": 0.001, "timeout": 5.0}
        models.append(model("tiny", **{**known, **settings}))
        return models[-1]

    yield opened
    for each in models:
        each.close()
