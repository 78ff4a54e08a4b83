"""The inputs of a plan as a form: its fields, what coercion makes of them, and the problems at each field."""

from __future__ import annotations

from typing import Any

import attrs
from starlette.datastructures import FormData

from neuroscript.console.forms.arguments_form import ArgumentsForm, field_ids
from neuroscript.console.forms.form_field import FormField
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, Problem
from neuroscript.spec.binding import bind_arguments, repairs
from neuroscript.workflow.plan.model import Plan


@attrs.frozen
class PlanInputs:
    """The form for the inputs of a plan.

    Attributes:
        form: What was entered.
        fields: The fields as a template renders them.
        problems: The place, the text and the id of the field of each problem; no text contains a value.
        notes: What coercion makes of a value, by its place.
        secrets: The names of the secret inputs.
    """

    form: ArgumentsForm
    fields: tuple[FormField, ...]
    problems: tuple[tuple[str, str, str], ...]
    notes: dict[str, str]
    secrets: tuple[str, ...]

    @property
    def values(self) -> dict[str, Any]:
        """The inputs by name, as they were entered."""
        return self.form.arguments


def empty_inputs(session: Session, plan: Plan) -> PlanInputs:
    """Return the form before anything is entered; missing inputs are no problems yet."""
    return _checked(session, plan, ArgumentsForm.filled(plan.inputs, {}), is_new=True)


async def submitted_inputs(session: Session, plan: Plan, form: FormData) -> PlanInputs:
    """Return the form after a browser has submitted it.

    Raises:
        TooManyFields: The form is too large.
    """
    return _checked(session, plan, await ArgumentsForm.submitted(plan.inputs, form))


def _checked(session: Session, plan: Plan, form: ArgumentsForm, *, is_new: bool = False) -> PlanInputs:
    notes, found = _coerced(session, plan, form)
    unread = {each.where for each in form.problems}
    rest = [(each.where, _text(each)) for each in found if each.where not in unread and "" not in unread]
    by_place: dict[str, list[str]] = {}
    for where, text in [] if is_new else rest:
        by_place.setdefault(where, []).append(text)
    fields = form.fields(problems=by_place, notes=notes)
    ids = field_ids(fields)
    problems = [] if is_new else [*((each.where, each.text) for each in form.problems), *rest]
    located = tuple((where, text, ids.get(where, "")) for where, text in problems)
    return PlanInputs(form, fields, located, notes, tuple(sorted(plan.signature.secret_names)))


def _coerced(session: Session, plan: Plan, form: ArgumentsForm) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Return what coercion makes of the inputs, and the problems with them."""
    try:
        values = bind_arguments(plan.signature, session._shared.coercion, form.arguments, by_name=True)
    except ArgumentError as error:
        return {}, tuple(error.problems)
    made = repairs(plan.signature, form.arguments, values)
    return {each.where: f"{each.got} → {each.became}" for each in made if each.where}, ()


def _text(problem: Problem) -> str:
    """Return a problem of a field as text, without its place."""
    return str(problem._replace(where="")).removeprefix(": ")
