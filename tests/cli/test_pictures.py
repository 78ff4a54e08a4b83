"""The pictures of the documentation show what the commands print."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SCRIPT = runpy.run_path(str(PICTURES / "make.py"))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "demo" else pytest.mark.full) for name in SCRIPT["PICTURES"]],
)
def test_picture_is_current(name: str) -> None:
    """If it is not, run ``python3 dev.py run docs.pictures.make``."""
    assert (PICTURES / f"{name}.svg").read_text("utf-8") == SCRIPT["svg"](name)


def test_every_picture_is_made_by_the_script() -> None:
    assert sorted(SCRIPT["PICTURES"]) == sorted(file.stem for file in PICTURES.glob("*.svg"))
