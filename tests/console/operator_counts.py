"""Counts of what a person does in a page: clicks, keys, and the time until the task is done."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import attrs
from playwright.sync_api import Locator, Page


@attrs.frozen
class Effort:
    """What a task takes.

    Attributes:
        clicks: Clicks. A choice in a list takes two.
        keys: Keys pressed. The text of one field counts as one.
        seconds: Of a program that neither reads nor hesitates, so mostly of the pages.
    """

    clicks: int
    keys: int
    seconds: float


@attrs.define
class Operator:
    """A person at a page. Each method does what a person can do, and counts it.

    Attributes:
        page: What the person sees. Tests also read it to wait for a result, which counts as nothing.
    """

    page: Page
    clicks: int = 0
    keys: int = 0
    _begun: float = attrs.field(factory=perf_counter)

    def click(self, target: Locator) -> None:
        """Click."""
        self.clicks += 1
        target.click()

    def choose(self, target: Locator, option: str) -> None:
        """Choose an option in a list."""
        self.clicks += 2
        target.select_option(option)

    def type(self, target: Locator, text: str) -> None:
        """Replace the text of a field: click it, unless it has the focus, and type."""
        if not target.evaluate("element => element === document.activeElement"):
            self.click(target)
        self.keys += 1
        target.fill("")
        target.press_sequentially(text)

    def press(self, key: str) -> None:
        """Press a key."""
        self.keys += 1
        self.page.keyboard.press(key)

    def effort(self) -> Effort:
        """Return what was counted until now."""
        return Effort(self.clicks, self.keys, round(perf_counter() - self._begun, 1))


def as_data(effort: Effort) -> dict[str, Any]:
    """Return it as JSON data."""
    return attrs.asdict(effort)
