"""Strings of tools, models, plans, files, servers and audit logs execute nothing in a page, wherever they stand."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, Request, Route
from tests.browsers import PageOpener
from tests.conftest import ALL
from tests.console.hostile_text import (
    CONTEXTS,
    FOREIGN_PARTS,
    PAYLOADS,
    ExecutionWatcher,
    Payload,
    hostile,
    places_in,
    press_everything,
)
from tests.console.test_attacks import GETS, POSTS
from tests.console.visits import NOT_SHOWN, show, visits
from tests.console.world import world_with

from neuroscript.console.access import HEADERS

OF_EACH_CONTEXT: Final = tuple({each.context: each for each in PAYLOADS}.values())

GROUPS: Final = [PAYLOADS[first::20] for first in range(20)] if ALL else [OF_EACH_CONTEXT]
"""Groups of payloads of many kinds; each page shows all payloads of one group in each place."""

SETTLING_MILLISECONDS: Final = 30
"""How long a page is observed after it has loaded."""


def test_harness_detects_each_payload(open_page: PageOpener) -> None:
    """In a page that writes it without escaping, in its context. Otherwise the tests below would show nothing."""
    watcher = ExecutionWatcher(open_page.new_context())
    page = watcher.context.new_page()
    undetected = []
    for payload in PAYLOADS if ALL else OF_EACH_CONTEXT:
        page.goto("about:blank")
        watcher.take()
        page.set_content(payload.page)
        press_everything(page)
        if not was_executed(page, watcher, payload):
            undetected.append(payload)
    open_page.take_problems()

    assert undetected == []
    assert len({each.text for each in PAYLOADS}) == 60


def was_executed(page: Page, watcher: ExecutionWatcher, payload: Payload) -> bool:
    """Return whether the page executes a payload within a moment."""
    for _ in range(50):
        if f"executed {payload.number}" in watcher.events:
            return True
        page.wait_for_timeout(10)
    return False


@pytest.mark.full
@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_harness_detects_what_the_policy_of_a_page_blocks(open_page: PageOpener, number: int) -> None:
    """A page with the headers of the console that writes a group without escaping: nothing runs, and it is seen."""
    group = GROUPS[number]
    context = open_page.new_context()
    context.route("http://console.test/**", partial(respond, group))
    watcher = ExecutionWatcher(context)
    page = context.new_page()
    found = {}
    for name in ("text", "double", "single", "title", "textarea", "string", "comment"):
        page.goto(f"http://console.test/{name}")
        page.wait_for_timeout(SETTLING_MILLISECONDS)
        found[name] = [*page.evaluate(FOREIGN_PARTS), *watcher.take()]
    open_page.take_problems()

    assert found["text"] != []
    assert not any(event.startswith("executed") for events in found.values() for event in events)
    assert any(event.startswith("blocked script") for events in found.values() for event in events)


def respond(group: tuple[Payload, ...], route: Route, request: Request) -> None:
    """Respond with a page that writes a group of payloads in a context without escaping."""
    context = CONTEXTS.get(request.url.rpartition("/")[2], "%s")
    body = "<!doctype html><body>" + context.replace("%s", hostile("control", group))
    route.fulfill(body=body, headers={**HEADERS, "content-type": "text/html; charset=utf-8"})


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_no_text_is_executed(open_page: PageOpener, tmp_path: Path, number: int) -> None:
    """In any place of any page, whether a page is loaded, a form is sent or a part of a page is replaced."""
    text = partial(hostile, payloads=GROUPS[number])
    seen: set[str] = set()
    found = {}
    with world_with(tmp_path, text) as world:
        watcher = ExecutionWatcher(open_page.new_context())
        page = open_page(world.served.link(), watcher.context)
        page.wait_for_url(lambda url: "/enter" not in url)
        for visit in visits(world, text):
            show(page, world.served.url, visit)
            page.wait_for_timeout(SETTLING_MILLISECONDS)
            seen |= places_in(page.content())
            found[visit.route, visit.path] = [*watcher.take(), *page.evaluate(FOREIGN_PARTS)]
        open_page.close()
        open_page.take_problems()  # pages with a status other than 200

    assert {key: problems for key, problems in found.items() if problems} == {}
    assert PLACES - seen == set()
    assert len(PLACES) >= 30


PLACES: Final = frozenset(
    [
        "approved-result",
        "argument-description",
        "asked-argument",
        "asked-name",
        "asked-tool",
        "audit-code",
        "audit-code-query",
        "audit-decision",
        "audit-distribution",
        "audit-label-query",
        "audit-need",
        "audit-session",
        "audit-session-query",
        "audit-since-query",
        "audit-tool",
        "audit-tool-query",
        "audit-until-query",
        "audit-version",
        "category",
        "changed-argument",
        "check-fix",
        "check-part",
        "check-subject",
        "check-text",
        "choice",
        "default",
        "default-item",
        "default-value",
        "deprecation",
        "error-conditions",
        "error-message",
        "example-argument",
        "example-result",
        "failing-description",
        "key-default",
        "key-description",
        "live-argument",
        "live-key",
        "live-value",
        "log-message",
        "model-answer",
        "model-argument",
        "model-key",
        "model-text",
        "nested-description",
        "node-name",
        "node-tool",
        "origin",
        "output-one",
        "output-two",
        "path-description",
        "pattern",
        "plan-argument",
        "plan-default",
        "plan-description",
        "plan-file",
        "plan-input",
        "plan-key",
        "plan-name",
        "plan-value",
        "profile",
        "prompt",
        "removing-description",
        "result-item",
        "result-key",
        "result-text",
        "return-help",
        "run-value",
        "search",
        "secret-description",
        "sent-name",
        "sent-value",
        "server-argument",
        "server-description",
        "stored-argument",
        "stored-key",
        "stored-value",
        "stream-description",
        "stream-item",
        "table",
        "tool-description",
        "trace-code",
        "trace-error",
        "trace-file",
        "trace-input",
        "trace-key",
        "trace-message",
        "trace-output",
        "trace-plan",
        "trace-run",
        "trace-tool",
        "trace-value",
        "unknown-argument",
        "unknown-input",
        "when-to-use",
    ]
)
"""Places whose strings the pages show; each has all payloads."""


def test_each_route_is_visited(tmp_path: Path) -> None:
    """A new page fails here until it has a visit."""
    with world_with(tmp_path, str) as world:
        visited = {route for each in visits(world, str) for route in (each.route, each.leads_to) if route}

    assert {*GETS, *POSTS} - NOT_SHOWN == visited - NOT_SHOWN
