"""Texts of tools, models, plans, files, servers and audit logs execute nothing in a page, wherever they stand."""

from __future__ import annotations

from tests.browsers import PageOpener
from tests.console.hostile_text import PAYLOADS, ExecutionWatcher, press_everything


def test_harness_detects_each_payload(open_page: PageOpener) -> None:
    """In a page that writes it without escaping, in its context. Otherwise the tests below would show nothing."""
    watcher = ExecutionWatcher(open_page.new_context())
    page = watcher.context.new_page()
    undetected = []
    for payload in PAYLOADS:
        page.goto("about:blank")
        watcher.take()
        page.set_content(payload.page)
        press_everything(page)
        for _ in range(20):
            if f"executed {payload.number}" in watcher.events:
                break
            page.wait_for_timeout(10)
        else:
            undetected.append(payload)
    open_page.take_problems()

    assert undetected == []
    assert len({each.text for each in PAYLOADS}) == len(PAYLOADS)
