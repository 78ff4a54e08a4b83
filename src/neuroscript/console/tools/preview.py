"""What would happen if arguments were sent now: repairs, problems by field, needs, and the decision of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from neuroscript.console.console import Console
from neuroscript.console.effects import is_held_back
from neuroscript.console.forms.arguments_form import ArgumentsForm
from neuroscript.console.policy.limits import LimitRow, limit_rows
from neuroscript.engine.explanation.checks import Explanation, explain
from neuroscript.engine.explanation.decisions import is_about_arguments
from neuroscript.engine.explanation.remedies import Remedy, remedy_of
from neuroscript.engine.explanation.tool_sources import source_of
from neuroscript.engine.preflight import bind_call
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, CallError, Problem
from neuroscript.formats.one_line import to_json
from neuroscript.io.text import shorten
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.spec.binding import Repair, repairs
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation

MAX_VALUE_CHARS: Final = 200
HIDDEN: Final = "[secret]"


@attrs.frozen
class ExactValue:
    """A value that the tool would receive.

    Attributes:
        name: The name of the argument.
        type: The name of its exact type.
        text: The value, shortened; not of a secret.
    """

    name: str
    type: str
    text: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Preview:
    """What would happen with a call.

    Attributes:
        problems: What is wrong, each with its place in the arguments.
        repairs: Values that would be converted.
        values: The exact values that the tool would receive.
        needs: What the call needs, filled in from the arguments.
        explanation: The decision and the outcome of each check.
        remedy: What would permit a refused call, or None.
        limits: The limits that count the call.
        is_held_back: Whether this console does not run the tool, because it has effects or declares none.
    """

    problems: tuple[tuple[str, str], ...] = ()
    repairs: tuple[Repair, ...] = ()
    values: tuple[ExactValue, ...] = ()
    needs: tuple[str, ...] = ()
    explanation: Explanation
    remedy: Remedy | None = None
    limits: Sequence[LimitRow] = ()
    is_held_back: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether the policy refuses the call, whatever its arguments are."""
        decision = self.explanation.decision
        return not decision.allowed and not is_about_arguments(decision)

    def problems_by_place(self) -> dict[str, list[str]]:
        """Return the problems by the place of the field."""
        found: dict[str, list[str]] = {}
        for where, text in self.problems:
            found.setdefault(where, []).append(text)
        return found

    def notes(self) -> dict[str, str]:
        """Return what coercion makes of values, by the place of the field."""
        return {each.where: f"{each.got} → {each.became}" for each in self.repairs if each.where}


def preview_call(console: Console, session: Session, tool: ToolImplementation, form: ArgumentsForm) -> Preview:
    """Return what would happen if the arguments of a form were sent now; nothing runs."""
    call = ToolCall(tool.name, form.arguments)
    source = source_of(console.engine, tool.name)
    explanation = explain(session, tool, source, call, old=source.old)
    decision = explanation.decision
    problems = [(each.where, each.text) for each in form.problems]
    found: tuple[Problem, ...] = ()
    values: tuple[Any, ...] | None = None
    try:
        known, values = bind_call(session, call)
    except ArgumentError as error:
        found = tuple(error.problems)
    except CallError:  # the decision says why
        values = None
    unread = {each.where for each in form.problems}
    problems += [(each.where, problem_text(each)) for each in found if each.where not in unread and "" not in unread]
    more: dict[str, Any] = {}
    if values is not None and not problems:
        more = _details(session, tool, form, values, known.pipeline.tool.templates)
    return Preview(
        problems=tuple(problems),
        explanation=explanation,
        remedy=None if decision.allowed or is_about_arguments(decision) else remedy_of(decision),
        limits=limit_rows(console.engine, session),
        is_held_back=is_held_back(console, tool.policy),
        **more,
    )


def problem_text(problem: Problem) -> str:
    """Return a problem of a field as text, without its place."""
    return str(problem._replace(where="")).removeprefix(": ")


def _details(
    session: Session, tool: ToolImplementation, form: ArgumentsForm, values: tuple[Any, ...], templates: Sequence[Any]
) -> dict[str, Any]:
    spec = tool.spec
    secret = spec.secret_names
    needs = [] if secret else [str(need) for template in templates for need in template.fill(values)]
    named = spec.by_name(values)
    shown = [
        _exact_value(arg, session._without_secrets(named[arg.name])) for arg in spec.args if named[arg.name] is not None
    ]
    found = repairs(spec, form.arguments, values)
    return {"repairs": found, "values": tuple(shown), "needs": tuple(dict.fromkeys(needs))}


def _exact_value(arg: ArgSpec, value: Any) -> ExactValue:
    if arg.holds_secret:
        return ExactValue(arg.name, type(value).__name__, HIDDEN)
    try:
        text = repr(value) if isinstance(value, bytes) else to_json(value)
    except (TypeError, ValueError):  # keys that are not strings
        text = repr(value)
    return ExactValue(
        arg.name,
        type(value).__name__,
        shorten(text, MAX_VALUE_CHARS),
    )
