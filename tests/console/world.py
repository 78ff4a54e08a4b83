"""A console that shows everything it can show, with the texts that a test chooses in every place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import quote, urlencode

import attrs
from playwright.sync_api import Page
from tests.audit_records import RECORD
from tests.console.conftest import ServedConsole, serving
from tests.console.hostile_text import as_json

from neuroscript import (
    ArgSpec,
    ArgType,
    Engine,
    Example,
    ExecutionPolicy,
    FileApprover,
    FileAudit,
    Host,
    Runtime,
    ToolFacts,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.console import Inbox, app

Text = Callable[[str], str]
"""Returns the text for a place, such as ``tool-description``."""

PURE: Final = ToolPolicy(effects=("pure",))
ASKS: Final = ToolPolicy(effects=("deletes",), requires_approval=True)

WAIT_SECONDS: Final = 30.0


@attrs.frozen
class World:
    """A console that is served, with what it shows.

    Attributes:
        served: The console.
        directory: Its files.
    """

    served: ServedConsole
    directory: Path


def tools_with(text: Text) -> Toolset:
    """Return tools whose descriptions, values and results contain texts."""
    tools = Toolset("world", origin=text("origin"))

    def say(rt: Runtime, *values: Any) -> dict[str, Any]:
        return {"text": text("result-text"), text("result-key"): [text("result-item")]}

    tools.add(described_spec("say", text), say, policy=PURE)

    def fail(rt: Runtime) -> str:
        raise ValueError(text("error-message"))

    tools.add(ToolSpec("fail", "world", description=text("failing-description")), fail, policy=PURE)

    def pieces(rt: Runtime) -> Iterator[str]:
        rt.progress(1, 2, text("progress-message"))
        rt.logger.warning(text("log-message"))
        yield text("stream-item")

    spec = ToolSpec("pieces", "world", return_type=ArgType.STRING, description=text("stream-description"), stream=True)
    tools.add(spec, pieces, policy=PURE)

    def remove(rt: Runtime, path: str, options: dict[str, Any]) -> str:
        return text("approved-result")

    args = (ArgSpec("path", ArgType.STRING, description=text("path-description")), ArgSpec("options", ArgType.MAP))
    tools.add(ToolSpec("remove", "world", args, description=text("removing-description")), remove, policy=ASKS)
    return tools


def described_spec(name: str, text: Text) -> ToolSpec:
    """Return a spec with a text in each of its fields."""
    choices = (text("choice"), "other")
    keys = (ArgSpec("inner", ArgType.STRING, description=text("key-description"), default=text("key-default")),)
    args = (
        ArgSpec("plain", ArgType.STRING, description=text("argument-description"), default=text("default")),
        ArgSpec("chosen", ArgType.STRING, choices=choices, default=choices[0]),
        ArgSpec("nested", ArgType.MAP, keys=keys, description=text("nested-description"), default={}),
        ArgSpec("number", ArgType.INT, default=1),
        ArgSpec("flag", ArgType.BOOL, default=False),
        ArgSpec("items", ArgType.SLICE_STRING, default=[text("default-item")]),
        ArgSpec("anything", ArgType.ANY, default={"key": text("default-value")}),
        ArgSpec("key", ArgType.STRING, secret=True, default="", description=text("secret-description")),
    )
    return ToolSpec(
        name,
        "world",
        args,
        return_type=ArgType.ANY,
        description=text("tool-description"),
        when_to_use=text("when-to-use"),
        return_help=text("return-help"),
        category=text("category"),
        error_conditions=text("error-conditions"),
        deprecated=text("deprecation"),
        examples=(Example((text("example-argument"),), text("example-result")),),
    )


def write_audit_log(path: Path, text: Text) -> None:
    """Write a log with a text in each field of its records that is a string."""
    facts = ToolFacts(
        text("audit-tool"),
        "a" * 64,
        text("audit-distribution"),
        text("audit-version"),
        text("audit-rule"),
        effects=("deletes",),
    )
    with closing(FileAudit(path)) as sink:
        for number, (kind, code) in enumerate(
            [("outcome", "ok"), ("outcome", text("audit-code")), ("refused", "policy")], 1
        ):
            sink.write(
                RECORD._replace(
                    kind=kind,
                    about=facts,
                    call=number,
                    parent=number - 1,
                    code=code,
                    rule=text("audit-decision"),
                    session=text("audit-session"),
                    needs=(f"fs:read:{text('audit-need')}",),
                )
            )


def suspend(directory: Path, text: Text) -> None:
    """Suspend calls as another process does, and damage a copy of one."""
    policy = ExecutionPolicy(approver=FileApprover(directory))
    with Engine(plugins=(), toolsets=[tools_with(text)], policy=policy) as engine:
        arguments = [text("stored-argument"), {text("stored-key"): text("stored-value")}]
        result = engine.execute({"name": "world.remove", "arguments": arguments})
    assert result.error is not None
    (path,) = directory.glob("*.json")
    stored = json.loads(path.read_text())
    stored |= {name: text(f"stored-{name}") for name in ("tool", "reason", "session", "policy", "fingerprint")}
    path.with_name(f"{path.stem}2.json").write_text(json.dumps(stored))


@contextmanager
def world_with(directory: Path, text: Text) -> Iterator[World]:
    """Serve a console with texts in each place; a call waits in its inbox."""
    approvals, log = directory / "approvals", directory / "audit.jsonl"
    (directory / "sandbox").mkdir()
    write_audit_log(log, text)
    suspend(approvals, text)
    inbox = Inbox()
    engine = Engine(
        plugins=(),
        toolsets=[tools_with(text)],
        policy=ExecutionPolicy(approver=inbox),
        host=Host(sandbox_dir=directory / "sandbox"),
    )
    application = app(engine, inbox=inbox, approvals=approvals, audit=[log], run_effects=True)
    with serving(application) as served:
        arguments = [text("live-argument"), {text("live-key"): text("live-value")}]
        call = {"name": "world.remove", "arguments": arguments}
        session = engine.session()
        waiting = Thread(target=session.execute, args=(call,))
        waiting.start()
        wait_until(lambda: len(inbox) == 1)
        yield World(served, directory)
        session.close()
        waiting.join()


def wait_until(is_true: Callable[[], object]) -> None:
    """Wait until something is true."""
    end = monotonic() + WAIT_SECONDS
    while not is_true():
        assert monotonic() < end
        sleep(0.005)


# Every page


@attrs.frozen
class Visit:
    """A request of a browser that shows something.

    Attributes:
        route: The name of its route.
        form: What a POST sends; None for a GET.
        is_part: Whether the response is a part of a page.
        leads_to: The route of the page that a form leads to.
        waits_for: The place whose text the page shows at last.
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
    }
)
"""Routes that respond with events, a file or only a redirect."""


def visits(world: World, text: Text) -> tuple[Visit, ...]:
    """Return requests of each route that shows something, with texts in queries and forms."""
    return (
        *access_visits(world, text),
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


def approval_visits(world: World, text: Text) -> Iterator[Visit]:
    """Return requests about the waiting call and the suspended ones; the last ones answer them."""
    (live,) = world.served.app.console.settings.inbox.waiting
    arguments = {"arguments": as_json({"path": text("changed-argument"), text("unknown-argument"): 1})}
    form = {"digest": live.request.digest, **arguments}
    yield Visit("approvals.index", "/approvals")
    yield Visit("approvals.count", "/approvals/count", is_part=True)
    yield Visit("approvals.live", f"/approvals/live/{live.id}")
    yield Visit("approvals.live", f"/approvals/live/{quote(text('unknown-request'), safe='')}")
    yield Visit("approvals.check_live", f"/approvals/live/{live.id}/check", form, is_part=True)
    yield Visit("approvals.answer_live", f"/approvals/live/{live.id}", {**form, "verdict": "modify"})
    for path in sorted((world.directory / "approvals").glob("*.json")):
        address = f"/approvals/stored/{quote(path.name)}"
        digest = json.loads(path.read_text())["digest"]
        yield Visit("approvals.stored", address)
        yield Visit("approvals.check_stored", f"{address}/check", arguments, is_part=True)
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
    for number in (1, 2, 3):
        yield Visit("audit.call", f"/audit/calls/{number}")
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
        page.goto(base + visit.path)
    else:
        with page.expect_navigation():
            page.evaluate(SEND_FORM, [visit.path, visit.form])
    if visit.waits_for:
        page.get_by_text(visit.waits_for).first.wait_for()


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
