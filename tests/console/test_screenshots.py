"""The pictures of the console in the documentation can be made, and show something."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.browsers import PageOpener
from tests.console.screenshots import HEIGHT, PICTURES, SCREENSHOTS, WIDTH, make

MAX_BYTES = 150_000
MIN_COLOURS = 30
"""A page with text has more colours, because its letters have soft edges."""

MEASURE = """async (text) => {
  const response = await fetch(`data:image/webp;base64,${text}`);
  const picture = await createImageBitmap(await response.blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  const data = new Uint32Array(canvas.getImageData(0, 0, picture.width, picture.height).data.buffer);
  return [picture.width, picture.height, new Set(data).size];
}"""
"""Returns the width, the height, and the number of colours of a picture."""


def measured(page: Page, path: Path) -> Any:
    """Return the width, the height and the number of colours of a picture."""
    return page.evaluate(MEASURE, base64.b64encode(path.read_bytes()).decode())


@pytest.mark.full
def test_pictures_can_be_made(open_page: PageOpener, tmp_path: Path) -> None:
    """Each page has its heading, and none is blank."""
    made = [each.name for each in make(open_page.browser, tmp_path)]
    page = open_page("about:blank")
    found = {name: measured(page, tmp_path / f"{name}.webp") for name in made}

    assert made == [each.name for each in SCREENSHOTS]
    assert [name for name, (*size, colours) in found.items() if size != [WIDTH, HEIGHT] or colours < MIN_COLOURS] == []
    assert [name for name in made if (tmp_path / f"{name}.webp").stat().st_size > MAX_BYTES] == []


def test_pictures_of_the_documentation_are_complete() -> None:
    """Each is written by ``python -m tests.console.screenshots``."""
    files = {path.stem: path.stat().st_size for path in PICTURES.glob("console-*.webp")}

    assert set(files) == {each.name for each in SCREENSHOTS}
    assert [name for name, size in files.items() if size > MAX_BYTES] == []
