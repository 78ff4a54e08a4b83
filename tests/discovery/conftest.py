"""Distributions whose index is built once and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.distributions import Published, ship


@pytest.fixture(scope="session")
def install_with_index(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Return a function that installs distributions with their indexes into a folder without other distributions.

    A process builds the index of each combination only once.
    """
    built: dict[tuple[Published, ...], Path] = {}

    def install(site: Path, *published: Published) -> None:
        if published in built:
            shutil.copytree(built[published], site, dirs_exist_ok=True)
            return
        for each in published:
            each.install(site)
        ship(site)
        built[published] = tmp_path_factory.mktemp("built") / "site"
        shutil.copytree(site, built[published], ignore=shutil.ignore_patterns("__pycache__"))

    return install
