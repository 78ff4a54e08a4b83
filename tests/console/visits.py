"""A request for each route of the console that shows something, and what makes it in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

import attrs
from playwright.sync_api import Page
from tests.console.hostile_text import as_json
from tests.console.world import Text, World

from neuroscript.workflow import load_plan


@attrs.frozen
class Visit:
    """A request of a browser that shows something.

    Attributes:
        route: The name of its route.
        path: The address. After ``+``, it continues that of the page that is open.
        form: What a POST sends; None for a GET.
        is_part: Whether the response is a part of a page.
        leads_to: The route of the page that a form leads to.
        waits_for: A string that the page shows at last.
    """

    route: str
    path: str
    form: Mapping[str, str] | None = None
    is_part: bool = False
    leads_to: str = ""
    waits_for: str = ""


NOT_SHOWN: Final = frozenset(
    {
        "approvals.events",
        "activity.events",
        "audit.export",
        "access.sign_out",
        "access.theme",
        "home",
        "activity.cancel",
        "plans.download",
        "tools.picture",
    }
)
"""Routes that respond with events, a file or only a redirect."""


def visits(world: World, text: Text) -> tuple[Visit, ...]:
    """Return requests of each route that shows something, with strings in queries and forms."""
    return (
        *access_visits(world, text),
        *tool_visits(world, text),
        *plan_visits(world, text),
        *chat_visits(world, text),
        *health_visits(world, text),
        *approval_visits(world, text),
        *audit_visits(world, text),
        *policy_visits(world, text),
    )


def access_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests for signing in, and for pages that do not exist."""
    yield Visit("access.enter", "/enter?token=x")
    yield Visit("access.sign_in", "/sign-in")
    yield Visit("access.sign_in_action", "/sign-in", {"token": text("token")})
    yield Visit("access.who", "/browser")
    yield Visit("access.link", "/link", {})
    yield Visit("home", f"/{quote(text('path'))}")


def tool_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about tools, and calls of them."""
    form = {"$edited": "json", "$json": as_json({"plain": text("sent-value"), text("sent-name"): 1}), "$do": "show"}
    valid = {"$edited": "json", "$json": as_json({"plain": text("run-value")}), "$do": "run"}
    empty = {"$edited": "json", "$json": "{}", "$do": "run"}
    yield Visit("tools.index", "/tools")
    yield Visit("tools.index", f"/tools?{urlencode({'q': text('search'), 'state': text('filter')})}")
    yield Visit("tools.show", "/tools/world.say")
    yield Visit("tools.show", "/tools/world.say?example=1")
    yield Visit("tools.show", "/tools/world.remove")
    yield Visit("tools.show", f"/tools/{quote(text('unknown-tool'), safe='')}")
    yield Visit("tools.form", "/tools/world.say", form)
    yield Visit("tools.fields", "/tools/world.say/fields", form, is_part=True)
    yield Visit("tools.check", "/tools/world.say/check", form, is_part=True)
    yield Visit("tools.run", "/tools/world.say/run", form)
    yield Visit("tools.run", "/tools/world.say/run", valid, leads_to="tools.activity", waits_for="result-item")
    yield Visit("tools.run", "/tools/world.fail/run", empty, leads_to="tools.activity", waits_for="error-message")
    yield Visit("tools.run", "/tools/world.pieces/run", empty, leads_to="tools.activity", waits_for="stream-item")
    yield Visit("tools.session", "/session")


def plan_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about plans and traces, and a run."""
    files = sorted(path.name for path in (world.directory / "plans").glob("*.toml"))
    digest = load_plan(world.directory / "plans" / "greeting.toml").digest
    sent = {"digest": digest, "$do": "run", "$edited": "json"}
    right = {**sent, "$json": as_json({"who": text("plan-argument")})}
    wrong = {**sent, "$json": as_json({text("unknown-input"): 1})}
    fields = {**sent, "$edited": "form", "$do": "show", "arg.who": text("plan-field")}
    yield Visit("plans.index", "/plans")
    for name in files:
        yield Visit("plans.show", f"/plans/files/{quote(name)}")
    yield Visit("plans.show", f"/plans/files/{quote(text('unknown-plan'), safe='')}")
    yield Visit("plans.form", "/plans/files/greeting.toml/form", fields)
    yield Visit("plans.fields", "/plans/files/greeting.toml/fields", fields, is_part=True)
    yield Visit("plans.check", "/plans/files/greeting.toml/check", wrong, is_part=True)
    yield Visit("plans.run", "/plans/files/greeting.toml/run", wrong)
    yield Visit(
        "plans.run",
        "/plans/files/greeting.toml/run",
        right,
        leads_to="plans.activity",
        waits_for="The plan succeeded",
    )
    yield Visit("plans.run_trace", "+/trace")
    yield Visit("plans.save", "+", {"name": text("trace-name")})
    yield Visit("plans.runs", "/plans/runs")
    yield Visit("plans.durable_run", "/plans/runs/first")
    yield Visit("plans.durable_run", f"/plans/runs/{quote(text('unknown-run'), safe='')}")
    yield Visit("plans.cancel_run", "/plans/runs/first/cancel", {})
    yield Visit("plans.resume", "/plans/runs/first/resume", {})
    yield Visit("plans.approvals", "/plans/approvals", is_part=True)
    yield Visit("plans.traces", "/plans/traces")
    yield Visit("plans.trace", "/plans/traces/one.json")
    yield Visit("plans.compare", "/plans/compare?a=file:one.json&b=file:two.json")
    yield Visit("plans.compare", f"/plans/compare?{urlencode({'a': text('trace-a'), 'b': text('trace-b')})}")


def chat_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests of a chat."""
    yield Visit("chat.index", "/chat")
    yield Visit("chat.send", "/chat", {"prompt": text("prompt")}, waits_for="model-answer")
    yield Visit("chat.index", "/chat")
    yield Visit("chat.activity", "/chat/turns/unknown")
    yield Visit("chat.clear", "/chat/new", {})


def health_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about the health of the engine."""
    yield Visit("health.index", "/health")
    yield Visit("health.run_checks", "/health/checks", {}, waits_for="check-text")
    yield Visit("health.checks", "/health/checks", is_part=True)
    yield Visit("health.compare_lock", "/health/lock", {})
    yield Visit("health.lock", "/health/lock", is_part=True)
    yield Visit("health.server", "/health/servers/far")
    yield Visit("health.server", f"/health/servers/{quote(text('unknown-server'), safe='')}")
    yield Visit("health.review", "/health/servers/far/review", {}, waits_for="server-description")
    yield Visit("health.accept", "/health/servers/far/accept", {"digest": text("digest")})


def approval_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about the waiting call and the suspended ones; the last ones answer them."""
    (live,) = world.served.app.console.settings.inbox.waiting
    arguments = {"arguments": as_json({"path": text("changed-argument"), text("unknown-argument"): 1})}
    form = {"digest": live.request.digest, **arguments}
    yield Visit("approvals.index", "/approvals")
    yield Visit("approvals.count", "/approvals/count", is_part=True)
    yield Visit("approvals.live", f"/approvals/live/{live.id}")
    yield Visit("approvals.live", f"/approvals/live/{quote(text('unknown-request'), safe='')}")
    yield Visit("approvals.check", f"/approvals/live/{live.id}/check", form, is_part=True)
    changed = {"digest": live.request.digest, "$edited": "json", "$json": arguments["arguments"], "$do": "show"}
    yield Visit("approvals.change", f"/approvals/live/{live.id}/change")
    yield Visit("approvals.submit_change", f"/approvals/live/{live.id}/change", changed)
    yield Visit("approvals.change_fields", f"/approvals/live/{live.id}/change/fields", changed, is_part=True)
    yield Visit("approvals.check_change", f"/approvals/live/{live.id}/change/check", changed, is_part=True)
    yield Visit("approvals.answer_live", f"/approvals/live/{live.id}", {**form, "verdict": "modify"})
    for path in sorted((world.directory / "approvals").glob("*.json")):
        address = f"/approvals/stored/{quote(path.name)}"
        digest = json.loads(path.read_text())["digest"]
        yield Visit("approvals.stored", address)
        yield Visit("approvals.check", f"{address}/check", arguments, is_part=True)
        yield Visit("approvals.answer_stored", address, {"digest": digest, **arguments, "verdict": "modify"})
    (path, _) = sorted((world.directory / "approvals").glob("*.json"))
    answer = {"digest": json.loads(path.read_text())["digest"], "verdict": "approve"}
    address = f"/approvals/stored/{quote(path.name)}"
    yield Visit(
        *("approvals.answer_stored", address, answer), leads_to="approvals.activity", waits_for="approved-result"
    )


def audit_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about the audit log."""
    query = urlencode(
        {name: text(f"audit-{name}-query") for name in ("tool", "session", "code", "label", "since", "until")}
    )
    yield Visit("audit.index", "/audit")
    yield Visit("audit.index", "/audit?part=rows", is_part=True)
    yield Visit("audit.index", f"/audit?{query}")
    listed = world.served.sign_in().get("/audit").text
    for address in sorted(set(re.findall(r"/audit/calls/\d+", listed))):
        yield Visit("audit.call", address)
    yield Visit("audit.line", "/audit/lines/2")
    yield Visit("audit.statistics", "/audit/statistics")
    yield Visit("audit.verification", "/audit/verification")
    yield Visit("audit.verify", "/audit/verification", {"head": text("head")})


def policy_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about the policy."""
    asked = {"tool": "world.remove", "arguments": as_json({"path": text("asked-argument"), text("asked-name"): 1})}
    broken = f"[policy]\nallow = [{as_json(text('pattern'))}]\n{as_json(text('table'))} = 1\n"
    yield Visit("policy.index", "/policy")
    yield Visit("policy.limits", "/policy/limits", is_part=True)
    yield Visit("policy.call", f"/policy/call?{urlencode({'tool': text('asked-tool')})}")
    yield Visit("policy.explain", "/policy/call", asked)
    yield Visit("policy.explain_live", "/policy/call/live", asked, is_part=True)
    yield Visit("policy.findings", "/policy/findings")
    yield Visit("policy.compare", f"/policy/compare?{urlencode({'a': text('profile'), 'b': 'default'})}")
    yield Visit("policy.compare_texts", "/policy/compare", {"a": "text", "a_text": broken, "b": "current"})


def show(page: Page, base: str, visit: Visit) -> None:
    """Show a response in a page as the script of the console or a form of it does."""
    if visit.is_part:
        page.evaluate(SHOW_PART, [visit.path, visit.form])
    elif visit.form is None:
        page.goto(address_of(page, base, visit))
    else:
        with page.expect_navigation():
            page.evaluate(SEND_FORM, [address_of(page, base, visit), visit.form])
    if visit.waits_for:
        page.get_by_text(visit.waits_for).first.wait_for(state="attached")


def address_of(page: Page, base: str, visit: Visit) -> str:
    """Return the address of a request."""
    return page.url + visit.path[1:] if visit.path.startswith("+") else base + visit.path


SHOW_PART: Final = """async ([path, form]) => {
  const body = form === null ? undefined : new URLSearchParams({...form, csrf: document.body.dataset.csrf});
  const headers = {"x-requested-with": "neuroscript"};
  const response = await fetch(path, {method: body ? "POST" : "GET", body, headers});
  const {show} = await import(document.querySelector("script[src*='console.js']").src);
  show(document.querySelector("main"), await response.text());
}"""
"""Shows a part of a page with the script of the console."""

SEND_FORM: Final = """([path, fields]) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = path;
  for (const [name, value] of Object.entries({...fields, csrf: document.body.dataset.csrf})) {
    const area = document.createElement("textarea");
    area.name = name;
    area.value = value;
    form.append(area);
  }
  document.body.append(form);
  form.submit();
}"""
"""Sends a form of a page of the console."""
