"""A scripted server for each test, and models that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.llm.fixtures import no_keys as no_keys
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.scripted_models import talk as talk
from tests.llm.server import Api, ModelServer

from neuroscript.llm import Model, model


@pytest.fixture
def reach(server: ModelServer) -> Iterator[Callable[..., Model]]:
    """Return a factory for models of that server, by API; their waits are as short as possible."""
    models: list[Model] = []

    def opened(api: Api, **settings: Any) -> Model:
        known = {"base_url": server.base_url(api), "api": api, "backoff": 0.001, "timeout": 5.0}
        models.append(model("tiny", **{**known, **settings}))
        return models[-1]

    yield opened
    for each in models:
        each.close()
