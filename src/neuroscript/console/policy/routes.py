"""Pages of the policy: its rules in words, the decision about a call, rules without effect, and comparisons."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.console.paging import ListPage, page_number
from neuroscript.console.policy.compared import PolicyChoice, choices, read_policy
from neuroscript.console.policy.explained import Asked, explain_asked
from neuroscript.console.policy.limits import limit_rows
from neuroscript.console.rendering import fragment, page
from neuroscript.console.routing import console_of, get, post, visitor_of
from neuroscript.engine.explanation.comparison import compare
from neuroscript.engine.explanation.description import TITLES, describe
from neuroscript.engine.explanation.findings import check_engine
from neuroscript.errors import SpecError

PAGE_ROWS: Final = 100
"""Maximum number of rows of a table in a page."""

MAX_LISTED_TOOLS: Final = 300
"""Maximum number of names that a field suggests."""


async def index(request: Request) -> Response:
    """Show the effective policy in words, and the use of its limits."""
    console, visitor = console_of(request), visitor_of(request)
    policy = visitor.session.policy
    sections = describe(policy, frozenset(console.engine.tools))
    return page(
        request,
        "policy/index.html",
        active="policy",
        sections=[(TITLES[group], sentences) for group, sentences in sections.items() if sentences],
        has_layers=len(policy.layers) > 1,
        usage=limit_rows(console.engine, visitor.session),
    )


async def limits(request: Request) -> Response:
    """Return the use of the limits, for a page that loads it again."""
    rows = limit_rows(console_of(request).engine, visitor_of(request).session)
    return fragment(request, "policy/_limits.html", usage=rows)


async def call(request: Request) -> Response:
    """Show the form for a call, and what a tool needs if its name is in the query."""
    asked = Asked(request.query_params.get("tool", "").strip(), "")
    return await _explained(request, asked, "policy/call.html")


async def explain_call(request: Request, form: FormData) -> Response:
    """Show what would be decided about a call."""
    return await _explained(request, Asked.of(form), "policy/call.html")


async def explain_live(request: Request, form: FormData) -> Response:
    """Return the same for a form that is being filled in."""
    return await _explained(request, Asked.of(form), "policy/_explanation.html")


async def _explained(request: Request, asked: Asked, template: str) -> Response:
    console, session = console_of(request), visitor_of(request).session
    found = await asyncio.to_thread(explain_asked, console, session, asked)
    is_page = not template.startswith("policy/_")
    names = sorted(console.engine.tools)[:MAX_LISTED_TOOLS] if is_page else []
    show = page if is_page else fragment
    return show(request, template, active="policy", asked=asked, found=found, names=names)


async def findings(request: Request) -> Response:
    """Show the rules that have no effect, and the tools that can never run."""
    report = await asyncio.to_thread(check_engine, console_of(request).engine)
    unusable = ListPage.of(report.unusable_tools, page_number(request), PAGE_ROWS)
    return page(request, "policy/findings.html", active="policy", report=report, unusable=unusable)


async def comparison(request: Request) -> Response:
    """Show two policies side by side, or the form that chooses them."""
    query = request.query_params
    pair = (PolicyChoice(query.get("a", "current")), PolicyChoice(query.get("b", "default")))
    return await _compared(request, pair, is_asked="a" in query or "b" in query)


async def compare_texts(request: Request, form: FormData) -> Response:
    """Show two policies side by side, of which some are written in the form."""
    pair = tuple(PolicyChoice(_text(form, name), _text(form, f"{name}_text")) for name in ("a", "b"))
    return await _compared(request, (pair[0], pair[1]), is_asked=True)


async def _compared(request: Request, pair: tuple[PolicyChoice, PolicyChoice], *, is_asked: bool) -> Response:
    console = console_of(request)
    found: Any = None
    problems: list[tuple[str, SpecError]] = []
    policies = []
    for choice in pair if is_asked else ():
        try:
            policies.append(await asyncio.to_thread(read_policy, console, choice))
        except SpecError as error:
            problems.append((choice.source, error))
    if len(policies) == len(pair):
        engine = console.engine
        found = await asyncio.to_thread(compare, policies[0], policies[1], engine.tools, engine.aliases)
    return page(
        request,
        "policy/compare.html",
        status=422 if problems else 200,
        active="policy",
        choices=choices(console),
        pair=pair,
        found=found,
        tools=ListPage.of([] if found is None else found.tools, page_number(request), PAGE_ROWS),
        has_texts=any(choice.text for choice in pair),
        problems=problems,
        titles=TITLES,
    )


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


ROUTES: Final = (
    get("/policy", index, "policy.index"),
    get("/policy/limits", limits, "policy.limits"),
    get("/policy/call", call, "policy.call"),
    post("/policy/call", explain_call, "policy.explain", role="viewer"),
    post("/policy/call/live", explain_live, "policy.explain_live", role="viewer"),
    get("/policy/findings", findings, "policy.findings"),
    get("/policy/compare", comparison, "policy.compare"),
    post("/policy/compare", compare_texts, "policy.compare_texts", role="viewer"),
)
