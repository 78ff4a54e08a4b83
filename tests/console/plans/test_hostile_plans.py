"""Hostile text in plans and traces: it stays text in each page, in pictures and in events."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from tests.console.plans.boxes import Box, browsing, ended, start
from tests.console.plans.test_trace_pages import TRACE

from neuroscript.workflow import NodeTrace, save_trace

PAYLOADS = (
    "<script>window.__xss = 1</script>",
    '"><img src=x onerror="window.__xss=1">',
    "'><svg onload=window.__xss=1>",
    "</title></text></svg><script>window.__xss = 1</script>",
    "javascript:window.__xss=1",
    "{{ 7 * 7 }}{% include 'layout.html' %}",
    "&lt;script&gt;window.__xss = 1&lt;/script&gt;",
    "\u202ereversed\u0000\u001b[31m",
)


class ActiveParts(HTMLParser):
    """Finds the elements and attributes that could execute something, except the script of the console."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect an element or an attribute."""
        values = {name: value or "" for name, value in attributes}
        is_own = tag == "script" and values.get("src", "").startswith("/static/")
        if tag in ("script", "img", "iframe", "object", "style") and not is_own:
            self.found.append(tag)
        self.found += [name for name in values if name.startswith("on") or name == "style"]
        links = [values.get(name, "") for name in ("href", "src", "action", "formaction")]
        self.found += [link for link in links if link.strip().lower().startswith("javascript:")]


def active_parts(html: str) -> list[str]:
    """Return what could execute something in HTML, and characters that a page must not contain."""
    parser = ActiveParts()
    parser.feed(html)
    return [*parser.found, *re.findall("[\u202e\x1b\x00]", html)]


def test_active_parts_are_found() -> None:
    """In HTML that is not escaped."""
    assert [bool(active_parts(each)) for each in PAYLOADS] == [True, True, True, True, False, False, False, True]
    assert active_parts('<a href="javascript:x">') == ["javascript:x"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_a_plan_stays_text(box: Box, plans: Path, payload: str) -> None:
    """Its name, descriptions, tools, inputs and arguments: before, during and after a run."""
    data = {
        "name": payload,
        "description": payload,
        "inputs": {"a": {"type": "string", "description": payload, "default": payload, "required": False}},
        "nodes": {
            "good": {"tool": "box.wait", "description": payload, "inputs": {"text": payload}},
            "bad": {"tool": "box.add", "inputs": {"a": 1, "b": 2}, "when": {"value": payload, "equals": 1}},
        },
    }
    (plans / "hostile.json").write_text(json.dumps(data))
    (plans / "unknown.json").write_text(json.dumps({"nodes": {"a": {"tool": payload, "inputs": {payload: payload}}}}))
    file_name = payload.replace("/", "").replace("\0", "")[:60]
    (plans / f"{file_name}.toml").write_text(f"# {payload}")
    box.go.set()
    with browsing(box, plans) as client:
        pages = [client.get("/plans"), client.get("/plans/files/unknown.json"), client.get("/plans/files/hostile.json")]
        path = start(client, "hostile.json")
        events = [event.html for event in ended(client).events]
        pages += [client.get(path), client.get(f"{path}/trace"), client.get("/plans/traces"), client.get("/plans")]
        key = f"run:{path.rpartition('/')[2]}"
        pages.append(client.get("/plans/compare", a=key, b=key))

    assert [active_parts(each) for each in (*pages, *events)] == [[]] * (len(pages) + len(events))
    assert "49" not in re.findall(r"<h1>([^<]*)</h1>", pages[2])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_text_of_a_trace_stays_text(box: Box, plans: Path, payload: str) -> None:
    """Every string that its format permits, from a file that anybody may have written."""
    error = {"code": payload, "message": payload, "retry": "never"}
    nodes = (
        NodeTrace("a", payload, "failed", (), {payload: payload}, None, error, payload),
        NodeTrace("b", payload, "succeeded", ("a",), [payload], {payload: [payload]}),
    )
    trace = attrs.evolve(
        TRACE, run=payload, plan=payload, nodes=nodes, error=error, answer=payload, inputs={payload: payload}
    )
    try:
        save_trace(trace, plans / "hostile.json")
    except (ValueError, TypeError):
        pytest.skip("the format does not permit it")
    with browsing(box, plans) as client:
        found = client.client.get("/plans/traces/hostile.json")
        pages = [found.text, client.get("/plans/traces")]
        pages.append(client.client.get("/plans/compare?a=file:hostile.json&b=file:hostile.json").text)

    assert [active_parts(each) for each in pages] == [[]] * len(pages)
