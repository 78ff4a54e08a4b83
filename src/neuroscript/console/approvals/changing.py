"""Forms for other arguments: the fields of the tool, checked while the user types, and the same arguments as JSON."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import attrs
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.console.approvals.answering import settle_live, settle_stored
from neuroscript.console.approvals.answers import secret_arguments
from neuroscript.console.approvals.requests import Entry, find_entry, stored_file
from neuroscript.console.approvals.views import GONE, absent_page, card_context
from neuroscript.console.console import Console
from neuroscript.console.forms.arguments_form import ACTION, ArgumentsForm, field_ids
from neuroscript.console.forms.reader import TooManyFields
from neuroscript.console.rendering import fragment, message, not_found, page
from neuroscript.console.routing import console_of, get, post
from neuroscript.console.tools.preview import problem_text
from neuroscript.engine.preflight import bind_call
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, CallError
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.spec.binding import repairs
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.tools.tool import ToolImplementation

APPROVE: Final = "approve"
"""The button that approves the call with the arguments of the form."""


@attrs.frozen
class Change:
    """A request whose arguments a user changes.

    Attributes:
        found: The request.
        request: The same.
        tool: Its tool.
    """

    found: Entry
    request: ApprovalRequest
    tool: ToolImplementation

    @property
    def args(self) -> tuple[ArgSpec, ...]:
        """The arguments that the form shows; those that are or contain secrets stay unchanged."""
        return tuple(arg for arg in self.tool.spec.args if arg.name not in self.request.secrets)

    @property
    def variadic(self) -> bool:
        """Whether the last argument of the form takes a list of values."""
        return self.tool.spec.variadic and self.args[-1:] == self.tool.spec.args[-1:]

    def all_arguments(self, form: ArgumentsForm) -> dict[str, Any]:
        """Return the arguments of the form with the secret ones of the request."""
        return {**secret_arguments(self.request), **form.arguments}


def change_of(console: Console, kind: str, id: str) -> Change | None:
    """Return a request whose arguments can be changed in a form: one of a tool as this engine has it."""
    found = find_entry(console, kind, id)
    if found is None or found.request is None:
        return None
    tool = console.engine.tools.get(found.request.tool)
    if tool is None or fingerprint(tool) != found.request.fingerprint:
        return None
    return Change(found, found.request, tool)


async def _change(request: Request) -> Change | None:
    return await asyncio.to_thread(
        change_of, console_of(request), request.path_params["kind"], request.path_params["id"]
    )


async def show(request: Request) -> Response:
    """Show the form, with the arguments of the request."""
    change = await _change(request)
    if change is None:
        return not_found(request, GONE)
    given = {name: value for name, value in change.request.arguments.items() if name not in change.request.secrets}
    form = ArgumentsForm.filled(change.args, given, variadic=change.variadic)
    return await _page(request, change, form)


async def submit(request: Request, form: FormData) -> Response:
    """Approve the request with the arguments of the form, or show the form again after another button."""
    change = await _change(request)
    if change is None:
        return absent_page(request, request.path_params["id"], 409)
    submitted = await _submitted(request, change, form)
    if isinstance(submitted, Response):
        return submitted
    if form.get(ACTION) != APPROVE:
        return await _page(request, change, submitted)
    context = await _context(request, change, submitted)
    if context["problems"]:
        return await _page(request, change, submitted, 422)
    approval = Approval.modify(change.all_arguments(submitted))
    if change.found.key.kind == "live":
        return await settle_live(request, form, change.found, approval)
    stored = await asyncio.to_thread(stored_file, console_of(request), change.found.key.id)
    if stored is None:
        return absent_page(request, change.found.key.id, 409)
    return await settle_stored(request, form, stored, change.found, approval)


async def fields(request: Request, form: FormData) -> Response:
    """Return the fields after a button was pressed, for JavaScript."""
    return await _part(request, form, "tools/_fields.html")


async def check(request: Request, form: FormData) -> Response:
    """Return what is wrong with the arguments, while the user types."""
    return await _part(request, form, "approvals/_change_check.html")


async def _part(request: Request, form: FormData, template: str) -> Response:
    change = await _change(request)
    if change is None:
        return not_found(request, GONE)
    submitted = await _submitted(request, change, form)
    if isinstance(submitted, Response):
        return submitted
    return fragment(request, template, is_live=True, **await _context(request, change, submitted))


async def _submitted(request: Request, change: Change, form: FormData) -> ArgumentsForm | Response:
    try:
        has_secrets = bool(change.request.secrets)
        return await ArgumentsForm.submitted(change.args, form, variadic=change.variadic, has_secrets=has_secrets)
    except TooManyFields as error:
        return message(request, 413, "The form is too large", f"{str(error).capitalize()}.")


async def _page(request: Request, change: Change, form: ArgumentsForm, status: int = 200) -> Response:
    context = {**card_context(change.found), **await _context(request, change, form)}
    return page(request, "approvals/change.html", status, active="approvals", is_live=False, **context)


async def _context(request: Request, change: Change, form: ArgumentsForm) -> dict[str, Any]:
    """Return the variables of the form: its fields, what is wrong, and what was changed."""
    problems, notes, changed = await asyncio.to_thread(_checked, console_of(request).engine, change, form)
    unread = {each.where for each in form.problems}
    found: dict[str, list[str]] = {}
    for where, text in problems:
        if where not in unread:
            found.setdefault(where, []).append(text)
    shown = form.fields(problems=found, notes=notes)
    ids = field_ids(shown)
    return {
        "form": form,
        "fields": shown,
        "notes": notes,
        "problems": [(where, text, ids.get(where, "")) for where, text in problems],
        "changed": changed,
        "has_secrets": bool(change.request.secrets),
    }


def _checked(
    session: Session, change: Change, form: ArgumentsForm
) -> tuple[list[tuple[str, str]], dict[str, str], tuple[str, ...]]:
    """Return the problems by place, what coercion converts by place, and the names of the arguments that differ."""
    problems = [(each.where, each.text) for each in form.problems]
    if problems:
        return problems, {}, ()
    arguments = change.all_arguments(form)
    call = ToolCall(change.tool.name, arguments)
    try:
        known, values = bind_call(session, call)
    except ArgumentError as error:
        return [(each.where, problem_text(each)) for each in error.problems], {}, ()
    except CallError as error:
        return [("", str(error))], {}, ()
    decision = session.check([call])[0]
    if not decision.allowed:
        problems.append(("", decision.text or decision.code))
    spec = known.pipeline.tool.spec
    notes = {each.where: f"{each.got} → {each.became}" for each in repairs(spec, arguments, values) if each.where}
    before = change.request.arguments
    after = spec.by_name(values)
    changed = tuple(name for name in after if name not in before or repr(after[name]) != repr(before[name]))
    return problems, notes, changed


ROUTES: Final = (
    get("/approvals/{kind}/{id}/change", show, "approvals.change", role="approver"),
    post("/approvals/{kind}/{id}/change", submit, "approvals.submit_change", role="approver"),
    post("/approvals/{kind}/{id}/change/fields", fields, "approvals.change_fields", role="approver"),
    post("/approvals/{kind}/{id}/change/check", check, "approvals.check_change", role="approver"),
)
